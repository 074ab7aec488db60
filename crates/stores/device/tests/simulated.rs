//! A disk in memory that may lose its power at any call. Its rules:
//!
//! * What was synced stays. Of what was not, each sector of 512 bytes has its own fate: it has what it
//!   had at the last sync or at any time since, whatever other sectors of the same call have. Pages of 4 KB
//!   may be drawn as a whole, and all or nothing of a file.
//! * A file's length is one of those that it had since the last sync, whatever became of its bytes.
//! * Names made, changed and taken away since the last sync of the folder are there or not, each by itself;
//!   a renaming is done or not as a whole.
//! * A sync that fails leaves on the disk what a loss of power would, and what the system has in its memory
//!   is taken for synced: reads give it until the system is told to forget it.
//! * A bad sector cannot be read until it is written.
//!
//! Not here: sectors that are written in part, synced data that goes, and disks that do not sync when asked.
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};

use sardonyx_device::{Bytes, How, StoreFiles};

pub const SECTOR: usize = 512;
const PAGE: usize = 4096;

#[derive(Clone, Debug)]
pub struct FaultDraw(pub u64);

impl FaultDraw {
    pub fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((z ^ (z >> 31)) % end as u64) as usize
    }

    pub fn one_in(&mut self, many: usize) -> bool {
        self.below(many) == 0
    }
}

#[derive(Clone, Debug)]
enum DiskChange {
    Write(usize, Vec<u8>),
    Length(usize),
    Punch(usize, usize),
}

impl DiskChange {
    fn length_after(&self, before: usize) -> usize {
        match self {
            DiskChange::Write(at, bytes) => before.max(at + bytes.len()),
            DiskChange::Length(length) => *length,
            DiskChange::Punch(..) => before,
        }
    }

    /// The bytes that it touches, of a file with this length before it.
    fn range(&self, before: usize) -> (usize, usize) {
        match self {
            DiskChange::Write(at, bytes) => (*at, at + bytes.len()),
            DiskChange::Length(length) => (*length.min(&before), *length.max(&before)),
            DiskChange::Punch(at, length) => (*at, (at + length).min(before)),
        }
    }

    fn byte(&self, at: usize) -> u8 {
        match self {
            DiskChange::Write(from, bytes) => bytes[at - from],
            DiskChange::Length(_) | DiskChange::Punch(..) => 0,
        }
    }

    fn apply(&self, to: &mut Vec<u8>) {
        let before = to.len();
        to.resize(self.length_after(before).max(before), 0);
        let (from, end) = self.range(before);
        for (at, byte) in to.iter_mut().enumerate().take(end).skip(from) {
            *byte = self.byte(at);
        }
        to.truncate(self.length_after(before));
    }
}

#[derive(Clone, Debug, Default)]
struct Inode {
    durable: Vec<u8>,
    cached: Vec<u8>,
    /// Changes since the last sync.
    pending: Vec<DiskChange>,
    bad: BTreeSet<usize>,
}

/// The part of what was not synced that a cut keeps.
#[derive(Clone, Copy, Debug)]
enum Fate {
    None,
    All,
    Pages,
    Sectors,
    Most,
}

impl Inode {
    fn cut(&self, fate: Fate, draw: &mut FaultDraw) -> Vec<u8> {
        let mut lengths = vec![self.durable.len()];
        for change in &self.pending {
            lengths.push(change.length_after(*lengths.last().expect("one")));
        }
        let mut bytes = self.durable.clone();
        let longest = *lengths.iter().max().expect("one");
        bytes.resize(longest, 0);
        let all = self.pending.len();
        // By sector: so many of the changes are on the disk.
        let mut upto: BTreeMap<usize, usize> = BTreeMap::new();
        let unit = if matches!(fate, Fate::Pages) {
            PAGE
        } else {
            SECTOR
        };
        for (index, change) in self.pending.iter().enumerate() {
            let (from, end) = change.range(lengths[index]);
            for (at, byte) in bytes.iter_mut().enumerate().take(end).skip(from) {
                let upto = *upto.entry(at / unit).or_insert_with(|| match fate {
                    Fate::None => 0,
                    Fate::All => all,
                    Fate::Pages | Fate::Sectors => draw.below(all + 1),
                    Fate::Most if draw.one_in(8) => draw.below(all),
                    Fate::Most => all,
                });
                if index < upto {
                    *byte = change.byte(at);
                }
            }
        }
        let length = match fate {
            Fate::None => lengths[0],
            Fate::All => lengths[all],
            _ => lengths[draw.below(all + 1)],
        };
        bytes.truncate(length);
        bytes
    }

    fn sync(&mut self) {
        for change in std::mem::take(&mut self.pending) {
            change.apply(&mut self.durable);
        }
    }

    fn lose(&mut self, draw: &mut FaultDraw) {
        self.durable = self.cut(fate(draw), draw);
        self.pending.clear();
    }

    fn forget(&mut self) {
        self.cached = self.durable.clone();
        for change in &self.pending {
            change.apply(&mut self.cached);
        }
    }
}

fn fate(draw: &mut FaultDraw) -> Fate {
    [
        Fate::None,
        Fate::All,
        Fate::Pages,
        Fate::Sectors,
        Fate::Most,
    ][draw.below(5)]
}

#[derive(Clone, Debug)]
enum Naming {
    Link(String, usize),
    Rename(String, String, usize),
    Unlink(String),
}

impl Naming {
    fn apply(&self, names: &mut BTreeMap<String, usize>) {
        match self {
            Naming::Link(name, inode) => _ = names.insert(name.clone(), *inode),
            Naming::Unlink(name) => _ = names.remove(name),
            Naming::Rename(from, to, inode) => {
                names.remove(from);
                names.insert(to.clone(), *inode);
            }
        }
    }
}

/// All of a disk and of what the system remembers of it.
#[derive(Clone, Debug, Default)]
pub struct DiskState {
    inodes: Vec<Inode>,
    names: BTreeMap<String, usize>,
    durable_names: BTreeMap<String, usize>,
    pending_names: Vec<Naming>,
    pub calls: u64,
    pub punches: u64,
}

impl DiskState {
    pub fn cut(&self, draw: &mut FaultDraw) -> DiskState {
        let mut names = self.durable_names.clone();
        let folder = fate(draw);
        for naming in &self.pending_names {
            let is_kept = match folder {
                Fate::None => false,
                Fate::All => true,
                _ => draw.one_in(2),
            };
            if is_kept {
                naming.apply(&mut names);
            }
        }
        let one = fate(draw); // of all files, or of each its own
        let mix = draw.one_in(2);
        let cut = |inode: &Inode| {
            let fate = if mix { fate(draw) } else { one };
            let bytes = inode.cut(fate, draw);
            Inode {
                durable: bytes.clone(),
                cached: bytes,
                pending: Vec::new(),
                bad: inode.bad.clone(),
            }
        };
        DiskState {
            inodes: self.inodes.iter().map(cut).collect(),
            names: names.clone(),
            durable_names: names,
            pending_names: Vec::new(),
            calls: 0,
            punches: 0,
        }
    }

    /// Files and their bytes, as reads give them.
    pub fn files(&self) -> BTreeMap<String, Vec<u8>> {
        let bytes =
            |(name, &inode): (&String, &usize)| (name.clone(), self.inodes[inode].cached.clone());
        self.names.iter().map(bytes).collect()
    }

    /// A file's bytes are others from now on, on the disk as well.
    pub fn damage(&mut self, name: &str, change: impl Fn(&mut Vec<u8>)) {
        let inode = &mut self.inodes[self.names[name]];
        change(&mut inode.durable);
        change(&mut inode.cached);
    }

    pub fn spoil(&mut self, name: &str, sector: usize) {
        let inode = self.names[name];
        self.inodes[inode].bad.insert(sector);
    }
}

type Watch = Box<dyn FnMut(&DiskState) + Send>;

struct Inner {
    state: DiskState,
    draw: FaultDraw,
    watch: Option<Watch>,
    fails_in: Option<usize>,
    failed: bool,
}

#[derive(Clone)]
pub struct Simulated {
    inner: Arc<Mutex<Inner>>,
    folder: PathBuf,
}

impl Debug for Simulated {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a simulated disk")
    }
}

impl Simulated {
    pub fn new(state: DiskState, folder: &Path, seed: u64) -> Simulated {
        let inner = Inner {
            state,
            draw: FaultDraw(seed),
            watch: None,
            fails_in: None,
            failed: false,
        };
        Simulated {
            inner: Arc::new(Mutex::new(inner)),
            folder: folder.to_owned(),
        }
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(|error| error.into_inner())
    }

    pub fn state(&self) -> DiskState {
        self.inner().state.clone()
    }

    pub fn change(&self, change: impl FnOnce(&mut DiskState)) {
        change(&mut self.inner().state);
    }

    /// Sees the state after each call that changes something.
    pub fn watch(&self, watch: impl FnMut(&DiskState) + Send + 'static) {
        self.inner().watch = Some(Box::new(watch));
    }

    pub fn unwatch(&self) {
        self.inner().watch = None;
    }

    pub fn fail_in(&self, syncs: usize) {
        let mut inner = self.inner();
        (inner.fails_in, inner.failed) = (Some(syncs), false);
    }

    pub fn has_failed(&self) -> bool {
        self.inner().failed
    }
}

impl Inner {
    fn done(&mut self) {
        self.state.calls += 1;
        if let Some(watch) = &mut self.watch {
            watch(&self.state);
        }
    }

    fn sync_fails(&mut self) -> bool {
        match &mut self.fails_in {
            Some(0) => {
                (self.fails_in, self.failed) = (None, true);
                true
            }
            Some(more) => {
                *more -= 1;
                false
            }
            None => false,
        }
    }
}

impl StoreFiles for Simulated {
    fn folder(&self) -> &Path {
        &self.folder
    }

    fn names(&self) -> io::Result<Vec<String>> {
        Ok(self.inner().state.names.keys().cloned().collect())
    }

    fn open(&self, name: &str, how: How) -> io::Result<Arc<dyn Bytes>> {
        let mut inner = self.inner();
        let found = inner.state.names.get(name).copied();
        let inode = match (found, how) {
            (Some(inode), How::New) => {
                let file = &mut inner.state.inodes[inode];
                file.pending.push(DiskChange::Length(0));
                file.cached.clear();
                inner.done();
                inode
            }
            (Some(inode), _) => inode,
            (None, How::New) => {
                let inode = inner.state.inodes.len();
                inner.state.inodes.push(Inode::default());
                inner.state.names.insert(name.to_owned(), inode);
                let link = Naming::Link(name.to_owned(), inode);
                inner.state.pending_names.push(link);
                inner.done();
                inode
            }
            (None, _) => return Err(ErrorKind::NotFound.into()),
        };
        Ok(Arc::new(SimulatedFile {
            disk: self.clone(),
            inode,
            may_write: how != How::Read,
        }))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        let mut inner = self.inner();
        let inode = *inner.state.names.get(from).ok_or(ErrorKind::NotFound)?;
        let naming = Naming::Rename(from.to_owned(), to.to_owned(), inode);
        naming.apply(&mut inner.state.names);
        inner.state.pending_names.push(naming);
        inner.done();
        Ok(())
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        let mut inner = self.inner();
        inner.state.names.remove(name).ok_or(ErrorKind::NotFound)?;
        inner
            .state
            .pending_names
            .push(Naming::Unlink(name.to_owned()));
        inner.done();
        Ok(())
    }

    fn sync_names(&self) -> io::Result<()> {
        let mut inner = self.inner();
        let fails = inner.sync_fails();
        let Inner { state, draw, .. } = &mut *inner;
        for naming in std::mem::take(&mut state.pending_names) {
            if !fails || draw.one_in(2) {
                naming.apply(&mut state.durable_names);
            } // else it is in the system's memory alone
        }
        inner.done();
        if fails {
            return Err(io::Error::other("simulated"));
        }
        Ok(())
    }

    fn lock(&self, _: &str, _: bool) -> io::Result<Option<Box<dyn Debug + Send + Sync>>> {
        Ok(Some(Box::new(())))
    }
}

#[derive(Debug)]
struct SimulatedFile {
    disk: Simulated,
    inode: usize,
    may_write: bool,
}

impl SimulatedFile {
    fn change(&self, change: DiskChange) -> io::Result<()> {
        assert!(
            self.may_write,
            "a file that was opened to be read is changed"
        );
        let mut inner = self.disk.inner();
        let file = &mut inner.state.inodes[self.inode];
        if let DiskChange::Write(at, bytes) = &change {
            let touched = at / SECTOR..(at + bytes.len()).div_ceil(SECTOR);
            file.bad.retain(|sector| !touched.contains(sector));
        }
        change.apply(&mut file.cached);
        file.pending.push(change);
        inner.done();
        Ok(())
    }
}

impl Bytes for SimulatedFile {
    fn read_at(&self, into: &mut [u8], at: u64) -> io::Result<()> {
        let (inner, at) = (self.disk.inner(), at as usize);
        let file = &inner.state.inodes[self.inode];
        let sectors = at / SECTOR..(at + into.len()).div_ceil(SECTOR);
        if file.bad.range(sectors).next().is_some() {
            return Err(io::Error::from_raw_os_error(5));
        }
        let bytes = file.cached.get(at..at + into.len());
        into.copy_from_slice(bytes.ok_or(ErrorKind::UnexpectedEof)?);
        Ok(())
    }

    fn write_at(&self, bytes: &[u8], at: u64) -> io::Result<()> {
        self.change(DiskChange::Write(at as usize, bytes.to_vec()))
    }

    fn length(&self) -> io::Result<u64> {
        Ok(self.disk.inner().state.inodes[self.inode].cached.len() as u64)
    }

    fn set_length(&self, bytes: u64) -> io::Result<()> {
        self.change(DiskChange::Length(bytes as usize))
    }

    fn sync(&self) -> io::Result<()> {
        let mut inner = self.disk.inner();
        if inner.sync_fails() {
            let mut draw = inner.draw.clone();
            inner.state.inodes[self.inode].lose(&mut draw);
            inner.draw = draw;
            inner.done();
            return Err(io::Error::other("simulated"));
        }
        inner.state.inodes[self.inode].sync();
        inner.done();
        Ok(())
    }

    fn forget_cached(&self) -> io::Result<()> {
        self.disk.inner().state.inodes[self.inode].forget();
        Ok(())
    }

    fn punch(&self, at: u64, length: u64) -> io::Result<bool> {
        self.disk.inner().state.punches += 1;
        self.change(DiskChange::Punch(at as usize, length as usize))?;
        Ok(true)
    }
}
