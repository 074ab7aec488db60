//! Opens a recording: checks what it says of itself, and reads its records, of which it keeps stores to the files that
//! are cut, flushes of their lines, and fences.

use std::path::{Path, PathBuf};

use rustc_hash::FxHashMap;
use sardonyx_trace::line::Line;
use sardonyx_trace::{Level, Op, Provenance, Record, TraceReader};

use crate::interrupt::Interrupt;
use crate::recording::platform::Platform;
use crate::recording::pools::{FileEntry, Pool, chosen, is_within, number, within};
use crate::recording::provenance::{acks, ended, entry, files, modules, ran, sites};
use crate::recording::versions::Versions;
use crate::recording::{Acks, Act, Event, LINE, NOWHERE, PersistenceUnit, Recording};
use crate::{CrashTestError, Result};

/// Refuses a recording that lacks stores: one taken below the caches, a part, a mix, or one whose beginning was
/// skipped.
fn check_whole(provenance: &Provenance, again: &str) -> Result<(), String> {
    if provenance.level != Level::Cpu {
        return Err(format!(
            "is of level memory, below the caches, and a crash test needs every store; record it again: {again}"
        ));
    }
    if provenance.more.contains_key("cut") || provenance.more.contains_key("mixed") {
        return Err("is a part or a mix of recordings; give the whole one".to_owned());
    }
    let window = provenance.more.get("window");
    let skipped = |key: &str| window.is_some_and(|w| w[key].as_u64().unwrap_or(0) > 0);
    if skipped("skip") || skipped("skip_instructions") {
        return Err(format!(
            "leaves out the beginning, and with it stores; record all of it: {again}"
        ));
    }
    Ok(())
}

impl Recording {
    /// Reads the recording at `path`, reduced to `pools`: files, or folders for all files in them.
    ///
    /// # Errors
    /// It is not of level `cpu`, does not hold one of the files, or not from its beginning.
    pub fn open(path: &Path, pools: &[PathBuf], interrupt: &Interrupt) -> Result<Recording> {
        Recording::open_on(path, pools, Platform::Adr, interrupt)
    }

    /// Reads the recording in the units that persist on a platform. For a file on a disk the flushes and fences of the
    /// processor are left out, because they do nothing.
    pub fn open_on(
        path: &Path,
        pools: &[PathBuf],
        platform: Platform,
        interrupt: &Interrupt,
    ) -> Result<Recording> {
        let mut reader = TraceReader::open(path)?;
        let provenance = reader.provenance().clone();
        let again = format!(
            "sardonyx trace record --level cpu --pc -- {}",
            match &provenance.description {
                words if words.is_empty() => "PROGRAM",
                words => words,
            }
        );
        let refused = |problem| CrashTestError::Request(format!("{}: {problem}", path.display()));
        check_whole(&provenance, &again).map_err(refused)?;
        let files = files(&provenance).map_err(refused)?;
        let named = chosen(&files, pools).map_err(refused)?;
        let found = named
            .iter()
            .map(|file| Pool::from_entry(file, path, &again, interrupt));
        let found = found.collect::<Result<Vec<_>, _>>()?;
        let mut recording = Recording {
            path: path.to_owned(),
            interrupt: interrupt.clone(),
            pools: found,
            sites: sites(&provenance).map_err(refused)?,
            modules: modules(&provenance).map_err(refused)?,
            marks: entry(&provenance, "marks").map_err(refused)?,
            has_acks: provenance.more.contains_key("acks"),
            acks: Acks::from_parts(acks(&provenance).map_err(refused)?),
            promises: Vec::new(),
            program: provenance.program.clone(),
            platform,
            processes: entry::<Vec<serde_json::Value>>(&provenance, "processes")
                .map_err(refused)?
                .len()
                .max(1),
            calls: provenance.more.contains_key("calls"),
            cut_short: provenance.more.get("complete") == Some(&false.into()),
            ended: ended(&provenance).map_err(refused)?,
            ran: match provenance.more.contains_key("ran") {
                true => Some(ran(&provenance).map_err(refused)?),
                false => None,
            },
            ..Recording::default()
        };
        let syncs = entry(&provenance, "syncs").map_err(refused)?;
        Reading::of_files(&recording, &files, &named, syncs)?.read(&mut recording, &mut reader)?;
        recording.look_back(&provenance)?;
        Ok(recording)
    }

    /// Adds the warnings for a reader, now that all stores are known.
    fn look_back(&mut self, provenance: &Provenance) -> Result<()> {
        if self.cut_short {
            let note = "the program was ended while it was recorded; what follows is not tested";
            self.notes.push(note.to_owned());
        }
        if self.processes > 1 {
            self.notes.push(format!(
                "the program forked: its {} processes are cut in one order",
                self.processes
            ));
        }
        let recorder: Vec<String> = entry(provenance, "notes").map_err(|problem| {
            CrashTestError::new(format!("{}: {problem}", self.path.display()))
        })?;
        let told = recorder.iter().map(|note| format!("recorded: {note}"));
        self.notes.extend(told);
        for number in 0..self.pools.len() {
            let slots = self.lines.iter();
            let slots = slots.filter(|slot| usize::from(slot.file) == number);
            let note = self.pools[number].compare(slots, &self.interrupt)?;
            self.notes.extend(note);
        }
        for (path, stores) in &self.unnamed {
            self.notes.push(format!(
                "the program also stored to {} ({stores} stores), which no --pool names: nothing of it is cut, and the recovery gets no \
                 copy of it; if it is \
                 persistent, name it with another --pool, so that both have one order",
                path.display()
            ));
        }
        for pool in &self.pools {
            if let Some((address, count)) = self.addresses_of(pool) {
                self.notes.push(format!(
                    "{} holds {count} address{} of its own, of where it lay while it was recorded ({address:#x}): the recovery must \
                     map it there as well (mmap with that address; for libpmem PMEM_MMAP_HINT={address:x} in the environment of both)",
                    pool.path.display(),
                    if count > 1 { "es" } else { "" },
                ));
            }
        }
        Ok(())
    }
}

/// The numbers of a file's units, in pages, because a recording of millions of stores looks one up for each.
#[derive(Default)]
struct UnitNumbers {
    /// The number plus one, or 0.
    pages: Vec<Option<Box<[u32; UnitNumbers::PAGE]>>>,
}

impl UnitNumbers {
    const PAGE: usize = 1024;

    fn get(&self, unit: u32) -> Option<u32> {
        let unit = unit as usize;
        let page = self.pages.get(unit / UnitNumbers::PAGE)?.as_ref()?;
        page[unit % UnitNumbers::PAGE].checked_sub(1)
    }

    fn set(&mut self, unit: u32, number: u32) {
        let unit = unit as usize;
        if self.pages.len() <= unit / UnitNumbers::PAGE {
            self.pages
                .resize_with(unit / UnitNumbers::PAGE + 1, || None);
        }
        let page = &mut self.pages[unit / UnitNumbers::PAGE];
        page.get_or_insert_with(|| Box::new([0; UnitNumbers::PAGE]))[unit % UnitNumbers::PAGE] =
            number + 1;
    }
}

/// The state of reading a recording's records. `G` gives a line of a file as it was before the program.
pub(crate) struct Reading<G> {
    files: FxHashMap<u64, u16>,
    grounds: Vec<G>,
    slots: Vec<UnitNumbers>,
    /// The current contents of each unit that is one line.
    held: Vec<Line>,
    /// The files that are not cut, by number, with the number of their stores.
    others: FxHashMap<u64, (PathBuf, u64)>,
    /// The rows of each system call that made lines sure, from the first to before the second.
    syncs: Vec<(u64, u64)>,
    sync: usize,
    /// Set if the present call has made a line of the cut files persistent.
    synced: bool,
    unit: u32,
    on_disk: bool,
    /// Events of stores that a thread saw at its flush, by unit, until the thread that made them records its own.
    seen: FxHashMap<u32, usize>,
}

impl Reading<()> {
    /// Begins to read for the files that are cut, among all that were mapped.
    pub(crate) fn of_files(
        recording: &Recording,
        files: &[FileEntry],
        named: &[&FileEntry],
        syncs: Vec<(u64, u64)>,
    ) -> Result<Reading<impl Fn(u32) -> Line + use<>>> {
        let numbers = named.iter().enumerate();
        let grounds = recording.pools.iter().map(Pool::lines);
        let lasting = files.iter().filter(|file| file.lasts());
        Ok(Reading {
            files: (numbers.filter_map(|(at, file)| Some((file.number()?, at as u16)))).collect(),
            grounds: grounds.collect::<Result<Vec<_>, _>>()?,
            slots: named.iter().map(|_| UnitNumbers::default()).collect(),
            held: Vec::new(),
            others: (lasting.filter_map(|file| Some((file.number()?, (file.path.clone(), 0)))))
                .collect(),
            syncs,
            sync: 0,
            synced: false,
            unit: recording.platform.unit() / LINE as u32,
            on_disk: recording.platform.is_disk(),
            seen: FxHashMap::default(),
        })
    }
}

impl<G: Fn(u32) -> Line> Reading<G> {
    pub(crate) fn read(
        mut self,
        recording: &mut Recording,
        reader: &mut TraceReader,
    ) -> Result<()> {
        let (mut batch, mut at) = (Vec::new(), Vec::new());
        while reader.next_batch_at(&mut batch, Some(&mut at))? {
            recording.interrupt.check()?;
            for (record, site) in batch.iter().zip(&at) {
                let row = recording.rows;
                recording.rows += 1;
                if self.is_cut(record) && !is_within(record.line.0) {
                    return Err(CrashTestError::new(format!(
                        "{}: row {row} is beyond the last line that a file may have; record it again",
                        recording.path.display()
                    )));
                }
                let calls = self.syncs[self.sync..].iter();
                self.sync += calls.take_while(|(_, end)| *end <= row).count();
                let by_sync = (self.syncs.get(self.sync)).is_some_and(|(from, _)| *from <= row);
                let seen = record.op == Op::Store && site.is_none() && !recording.sites.is_empty();
                if seen && self.is_clean(record) {
                    continue;
                }
                if let Some((act, changed)) = self.act(recording, record, by_sync) {
                    if let Act::Store { slot, .. } = act {
                        self.credit(
                            recording,
                            slot,
                            seen,
                            site.map(|site| (site, record.thread)),
                        );
                    }
                    let event = Event {
                        row,
                        thread: record.thread,
                        site: site.unwrap_or(NOWHERE),
                        act,
                    };
                    recording.events.push(event, changed);
                }
            }
        }
        recording.events.shrink();
        for slot in &recording.lines {
            let pool = &mut recording.pools[usize::from(slot.file)];
            let lines = slot.versions.lines(0);
            let last = lines.map(|(line, _)| (u64::from(line) + 1) * LINE as u64);
            pool.bytes = pool.bytes.max(last.max().unwrap_or(0));
        }
        let others = self.others.into_values().filter(|(_, stores)| *stores > 0);
        recording.unnamed = others.collect();
        recording.unnamed.sort();
        Ok(())
    }

    /// What a record is to the files that are cut, and whether a store changed its line; `None` if it is nothing to them.
    ///
    /// Stores and flushes of their lines count, and every fence. A store to another file is counted for a note.
    fn act(
        &mut self,
        recording: &mut Recording,
        record: &Record,
        by_sync: bool,
    ) -> Option<(Act, bool)> {
        let number = number(record.line.0);
        let file = number.and_then(|number| self.files.get(&number).copied());
        let line = within(record.line.0);
        let sure = &mut recording.sure;
        let act = match (record.op, file) {
            // On a disk only a system call that waits makes something sure.
            (Op::Fence | Op::Clwb | Op::ClflushOpt | Op::Clflush, _)
                if self.on_disk && !by_sync =>
            {
                sure.flushes += u64::from(record.op != Op::Fence && file.is_some());
                return None;
            }
            (Op::Fence, _) => {
                let synced = std::mem::take(&mut self.synced);
                sure.syncs += u64::from(by_sync && synced);
                Act::Fence
            }
            (Op::Store | Op::NonTemporalWrite, Some(file)) => {
                let past = record.op == Op::NonTemporalWrite;
                recording.sure.flushes += u64::from(past);
                let (slot, version, changed) = self.store(recording, file, record);
                let past = past && !self.on_disk;
                return Some((
                    Act::Store {
                        slot,
                        version,
                        past,
                    },
                    changed,
                ));
            }
            (Op::Clwb | Op::ClflushOpt | Op::Clflush, Some(file)) => {
                sure.flushes += u64::from(!by_sync);
                self.synced |= by_sync;
                match self.slots[usize::from(file)].get(line / self.unit) {
                    Some(slot) => Act::Flush {
                        slot,
                        ordered: record.op == Op::Clflush,
                    },
                    None => Act::FlushClean,
                }
            }
            (Op::Store, None) => {
                self.stored_elsewhere(number);
                return None;
            }
            (Op::NonTemporalWrite, None) => {
                self.stored_elsewhere(number);
                Act::Foreign
            }
            (Op::Clwb | Op::ClflushOpt, None) => Act::Foreign,
            _ => return None,
        };
        Some((act, false))
    }

    /// Adds a store to its unit's versions. Returns the unit, the version, and whether the store changed anything.
    fn store(&mut self, recording: &mut Recording, file: u16, record: &Record) -> (u32, u32, bool) {
        let line = within(record.line.0);
        let (lines, unit) = (&mut recording.lines, self.unit);
        let data = (record.data).expect("the reader checks that a store has data");
        let ground = || self.grounds[usize::from(file)](line);
        let numbers = &mut self.slots[usize::from(file)];
        let slot = numbers.get(line / unit).unwrap_or_else(|| {
            lines.push(PersistenceUnit {
                file,
                line: line / unit * unit,
                versions: Versions::new(file, unit == 1),
            });
            if unit == 1 {
                self.held.push(ground());
            }
            let slot = lines.len() as u32 - 1;
            numbers.set(line / unit, slot);
            slot
        });
        let versions = &mut lines[slot as usize].versions;
        let event = recording.events.len() as u32;
        let before = versions.count().saturating_sub(1);
        let held = self.held.get_mut(slot as usize);
        let version = versions.push_over(held.as_deref(), line, &data, event, ground);
        if let Some(held) = held {
            *held = data;
        }
        (slot, version, version > before)
    }

    fn is_cut(&self, record: &Record) -> bool {
        number(record.line.0).is_some_and(|number| self.files.contains_key(&number))
    }

    /// Whether the line of a store that was seen at a flush is as it was before the program.
    fn is_clean(&self, record: &Record) -> bool {
        let number = number(record.line.0);
        let file = number.and_then(|number| self.files.get(&number).copied());
        let line = within(record.line.0);
        file.is_some_and(|file| {
            let slot = self.slots[usize::from(file)].get(line / self.unit);
            slot.is_none() && record.data == Some(self.grounds[usize::from(file)](line))
        })
    }

    /// A store that was seen at another thread's flush belongs to the thread that records the next one to its line.
    fn credit(&mut self, recording: &mut Recording, slot: u32, seen: bool, by: Option<(u32, u16)>) {
        if seen {
            self.seen.insert(slot, recording.events.len());
        } else if let Some(event) = self.seen.remove(&slot)
            && let Some((site, thread)) = by
        {
            recording.events.credit(event, site, thread);
        }
    }

    fn stored_elsewhere(&mut self, number: Option<u64>) {
        if let Some((_, stores)) = number.and_then(|number| self.others.get_mut(&number)) {
            *stores += 1;
        }
    }
}
