//! The store on a disk that loses its power at every call, whose syncs fail and whose sectors go bad
//! ([`crate::simulated`] has the rules): every flushed block is judged. `SARDONYX_CUTS=100000` tries more than the 20,000 of every run.
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use sardonyx_device::{Device, DeviceError, Limits, SpareRoom, Volume, Wanted, check_on};
use sardonyx_store::Named;

use crate::simulated::{DiskState, FaultDraw, SECTOR, Simulated};

#[derive(Clone, Copy)]
pub struct BlockLoad {
    pub name: &'static str,
    pub blocks: u64,
    pub block_bytes: usize,
    /// Writes, deletions and flushes of 100 operations; the rest are damages that a write heals.
    pub mix: [usize; 3],
    pub contents: usize,
    pub in_order: bool,
    pub limits: Limits,
}

pub const LOADS: [BlockLoad; 4] = [
    BlockLoad {
        name: "small and mixed, the log turns over",
        blocks: 24,
        block_bytes: 512,
        mix: [65, 15, 20],
        contents: 12,
        in_order: false,
        limits: Limits {
            changes: 1 << 17,
            log_bytes: 40_000,
            free_slots: 6,
        },
    },
    BlockLoad {
        name: "growth, commits that nobody asked for",
        blocks: 160,
        block_bytes: 4096,
        mix: [97, 0, 3],
        contents: 1000,
        in_order: true,
        limits: Limits {
            changes: 16,
            log_bytes: 1 << 20,
            free_slots: 1 << 13,
        },
    },
    BlockLoad {
        name: "overwritten and deleted, room given back",
        blocks: 48,
        block_bytes: 1024,
        mix: [50, 35, 15],
        contents: 200,
        in_order: false,
        limits: Limits {
            changes: 24,
            log_bytes: 60_000,
            free_slots: 4,
        },
    },
    BlockLoad {
        name: "damaged and healed",
        blocks: 16,
        block_bytes: 1024,
        mix: [55, 5, 25],
        contents: 6,
        in_order: false,
        limits: Limits {
            changes: 1 << 17,
            log_bytes: 30_000,
            free_slots: 1 << 13,
        },
    },
];

impl BlockLoad {
    fn wanted(&self, design: &str) -> Wanted {
        Wanted {
            design: Some(Named::find(design).unwrap()),
            size_bytes: Some(self.blocks * self.block_bytes as u64),
            block_bytes: Some(self.block_bytes as u32),
        }
    }

    fn open(&self, disk: &Simulated, design: &str) -> Result<Volume, DeviceError> {
        Volume::open_on(Arc::new(disk.clone()), self.wanted(design), self.limits)
    }

    fn content(&self, number: usize) -> Vec<u8> {
        let byte = |at: usize| (number * 131 + at / 8 * (number % 7 + 1) + 1) as u8;
        let mut bytes: Vec<u8> = (0..self.block_bytes).map(byte).collect();
        bytes[..8].copy_from_slice(&(number as u64 + 1).to_le_bytes());
        bytes
    }
}

/// The allowed states of each block: a content's number, or `None` for zeros.
#[derive(Clone, Debug)]
pub struct Expected {
    pub now: Vec<Option<usize>>,
    pub may_be: Vec<BTreeSet<Option<usize>>>,
    /// Contents that were damaged, and not since written and flushed: an error is an answer.
    pub damaged: BTreeSet<usize>,
}

impl Expected {
    pub fn new(load: &BlockLoad) -> Expected {
        Expected {
            now: vec![None; load.blocks as usize],
            may_be: vec![BTreeSet::from([None]); load.blocks as usize],
            damaged: BTreeSet::new(),
        }
    }

    pub fn flushed(&mut self) {
        self.may_be = self.now.iter().map(|&now| BTreeSet::from([now])).collect();
    }
}

#[derive(Clone, Copy, Debug, Default)]
pub struct Tried {
    cuts: u64,
    cuts_while_opening: u64,
    devices: u64,
}

impl Tried {
    fn add(&mut self, more: Tried) {
        self.cuts += more.cuts;
        self.cuts_while_opening += more.cuts_while_opening;
        self.devices += more.devices;
    }
}

pub type What<'a> = &'a dyn Fn() -> String;

/// A content that cannot be read and may have been one of several.
const UNKNOWN: usize = usize::MAX;

/// A load on a design, and what has been tried of it.
pub struct Trial {
    pub load: BlockLoad,
    pub design: &'static str,
    pub contents: Vec<Vec<u8>>,
    /// For the rival's files, which are real.
    pub folder: tempfile::TempDir,
    pub tried: Mutex<Tried>,
}

impl Trial {
    pub fn new(load: BlockLoad, design: &'static str) -> Trial {
        Trial {
            contents: (0..load.contents)
                .map(|number| load.content(number))
                .collect(),
            load,
            design,
            folder: tempfile::tempdir().unwrap(),
            tried: Mutex::default(),
        }
    }

    pub fn disk(&self, state: DiskState, seed: u64) -> Simulated {
        Simulated::new(state, self.folder.path(), seed)
    }

    pub fn open(&self, disk: &Simulated) -> Result<Volume, DeviceError> {
        self.load.open(disk, self.design)
    }

    pub fn start(
        &self,
        state: DiskState,
        expected: &Expected,
        draw: &mut FaultDraw,
        what: What<'_>,
    ) -> Simulated {
        let disk = self.disk(state, draw.below(usize::MAX) as u64);
        if disk.state().files().contains_key("store.json") {
            let before = disk.state().calls;
            let looked = check_on(Arc::new(disk.clone()), &|_, _| true);
            let looked = looked.unwrap_or_else(|error| panic!("{}: {error}", what()));
            assert_eq!(disk.state().calls, before, "check changes nothing");
            if expected.damaged.is_empty() {
                assert_eq!(looked.unwrap().faults, Vec::<String>::new(), "{}", what());
            }
        }
        let again = Arc::new(Mutex::new(Vec::new()));
        if draw.one_in(12) {
            let (states, mut draw) = (again.clone(), draw.clone());
            disk.watch(move |state| states.lock().unwrap().push(state.cut(&mut draw)));
        }
        let volume = self
            .open(&disk)
            .unwrap_or_else(|error| panic!("{}: {error}", what()));
        disk.unwatch();
        self.judge(&volume, expected, what);
        let mut tried = Tried {
            cuts: 1,
            ..Tried::default()
        };
        if draw.one_in(60) {
            let mut device = Device::new(volume).unwrap();
            while !device.tell_design(64).unwrap() {}
            let mut bytes = vec![0; self.load.block_bytes];
            for block in 0..self.load.blocks {
                let _ = device.read(block * self.load.block_bytes as u64, &mut bytes);
            }
            tried.devices += 1;
        }
        for state in std::mem::take(&mut *again.lock().unwrap()) {
            let what = || format!("{}, cut while opening", what());
            let volume = self.open(&self.disk(state, 5));
            let volume = volume.unwrap_or_else(|error| panic!("{}: {error}", what()));
            self.judge(&volume, expected, &what);
            tried.cuts += 1;
            tried.cuts_while_opening += 1;
        }
        self.tried.lock().unwrap().add(tried);
        disk
    }

    /// Reads every block and says what it is; those that may not be what they are are a failure.
    pub fn judge(
        &self,
        volume: &Volume,
        expected: &Expected,
        what: What<'_>,
    ) -> Vec<Option<usize>> {
        let mut bytes = vec![0; self.load.block_bytes];
        let mut of = |block: usize| {
            let may_be = &expected.may_be[block];
            let found = match volume.read(block as u32, &mut bytes) {
                Err(error) => {
                    let lost = |number: &&usize| expected.damaged.contains(number);
                    let lost: Vec<usize> = may_be.iter().flatten().filter(lost).copied().collect();
                    assert!(
                        !lost.is_empty(),
                        "{}: block {block} may be {may_be:?}: {error}",
                        what()
                    );
                    return Some(if lost.len() == 1 { lost[0] } else { UNKNOWN });
                }
                Ok(_) if bytes.iter().all(|&byte| byte == 0) => None,
                Ok(_) => {
                    let number = u64::from_le_bytes(bytes[..8].try_into().unwrap()) as usize - 1;
                    let whole = self.contents[number] == bytes;
                    assert!(whole, "{}: block {block} is torn", what());
                    Some(number)
                }
            };
            assert!(
                may_be.contains(&found),
                "{}: block {block} is {found:?}, and may be {may_be:?}",
                what()
            );
            found
        };
        (0..self.load.blocks as usize).map(&mut of).collect()
    }

    /// Takes over what was found; blocks of which nobody knows are written and flushed.
    fn settle(&self, volume: &mut Volume, found: Vec<Option<usize>>, expected: &mut Expected) {
        expected.now = found;
        for block in 0..expected.now.len() {
            if expected.now[block] == Some(UNKNOWN) {
                volume.write(block as u32, &self.contents[0]).unwrap();
                volume.commit().unwrap();
                (expected.now[block], expected.may_be[block]) =
                    (Some(0), BTreeSet::from([Some(0)]));
            }
        }
    }

    /// Ends at an error of the disk.
    pub fn work(
        &self,
        volume: &mut Volume,
        disk: &Simulated,
        expected: &Mutex<Expected>,
        operations: usize,
        next: &mut usize,
        draw: &mut FaultDraw,
    ) -> Result<(), DeviceError> {
        let (load, contents) = (&self.load, &self.contents);
        // Contents that were written since they were last damaged.
        let mut healing = BTreeSet::new();
        let mut spare = None;
        for _ in 0..operations {
            // Room is on its way back to the disk while requests are served.
            spare = match spare {
                None => volume.spare_room(2),
                Some(room) if draw.one_in(3) => {
                    let done = SpareRoom::give_back(&room);
                    volume.given_back(room, done);
                    None
                }
                some => some,
            };
            let block = match load.in_order {
                true => *next % load.blocks as usize,
                false => draw.below(load.blocks as usize),
            };
            let [write, delete, flush] = load.mix;
            match draw.below(100) {
                kind if kind < write => {
                    let number = if load.in_order {
                        *next % load.contents
                    } else {
                        draw.below(load.contents)
                    };
                    *next += 1;
                    {
                        let mut expected = expected.lock().unwrap();
                        expected.may_be[block].insert(Some(number));
                        expected.now[block] = Some(number);
                    }
                    volume.write(block as u32, &contents[number])?;
                    healing.insert(number);
                }
                kind if kind < write + delete => {
                    {
                        let mut expected = expected.lock().unwrap();
                        expected.may_be[block].insert(None);
                        expected.now[block] = None;
                    }
                    volume.delete(block as u32)?;
                }
                kind if kind < write + delete + flush => {
                    volume.commit()?;
                    let mut expected = expected.lock().unwrap();
                    expected.flushed();
                    let healed = std::mem::take(&mut healing);
                    expected.damaged.retain(|number| !healed.contains(number));
                }
                _ => {
                    let Some(slot) = volume.slot(block as u32) else {
                        continue;
                    };
                    let number = expected.lock().unwrap().now[block].unwrap();
                    let at = slot as usize * load.block_bytes + draw.below(load.block_bytes);
                    let spoil = draw.one_in(2);
                    healing.remove(&number);
                    expected.lock().unwrap().damaged.insert(number);
                    disk.change(|state| match spoil {
                        true => state.spoil("blocks", at / SECTOR),
                        false => state.damage("blocks", |bytes| {
                            if let Some(byte) = bytes.get_mut(at) {
                                *byte ^= 1;
                            }
                        }),
                    });
                }
            }
        }
        Ok(())
    }
}

fn cuts_wanted() -> u64 {
    std::env::var("SARDONYX_CUTS").map_or(sardonyx_property::count(200, 20_000), |cuts| {
        cuts.parse().unwrap()
    })
}

fn cut_through(load: BlockLoad, design: &'static str, cuts: u64) -> Tried {
    let trial = Arc::new(Trial::new(load, design));
    let mut draw = FaultDraw(7);
    for seed in 0.. {
        let expected = Arc::new(Mutex::new(Expected::new(&load)));
        let mut disk = trial.disk(DiskState::default(), seed);
        let mut next = 0;
        for round in 0..4 {
            let (seen, within) = (expected.clone(), trial.clone());
            let mut draws = FaultDraw(seed * 1000 + round);
            let mut call = 0;
            disk.watch(move |state| {
                call += 1;
                for _ in 0..2 {
                    if draws.one_in(3) {
                        let expected = seen.lock().unwrap().clone();
                        let place = format!("seed {seed}, round {round}, call {call}");
                        let what = || format!("{} on {design}, {place}", load.name);
                        within.start(state.cut(&mut draws), &expected, &mut draws, &what);
                    }
                }
            });
            let mut volume = trial.open(&disk).unwrap();
            let done = trial.work(&mut volume, &disk, &expected, 60, &mut next, &mut draw);
            done.unwrap();
            if draw.one_in(3) {
                volume.end().unwrap();
                expected.lock().unwrap().flushed();
            }
            disk.unwatch();
            drop(volume);
            let what = || format!("{} on {design}, seed {seed}, between rounds", load.name);
            let state = match draw.below(3) {
                0 => disk.state(), // the process is killed
                _ => disk.state().cut(&mut draw),
            };
            let before = expected.lock().unwrap().clone();
            disk = trial.start(state, &before, &mut draw, &what);
            let mut volume = trial.open(&disk).unwrap();
            let found = trial.judge(&volume, &before, &what);
            let mut expected = expected.lock().unwrap();
            if expected.damaged.is_empty() {
                expected.may_be = found.iter().map(|&found| BTreeSet::from([found])).collect();
            }
            trial.settle(&mut volume, found, &mut expected);
        }
        let tried = *trial.tried.lock().unwrap();
        if tried.cuts >= cuts {
            return tried;
        }
    }
    unreachable!()
}

#[test]
fn a_cut_of_power_at_any_call_loses_nothing_that_was_flushed() {
    let each = cuts_wanted() / LOADS.len() as u64;
    let designs = [("recam", each), ("conventional", each / 10)];
    for load in sardonyx_property::some(&LOADS, 1) {
        for (design, cuts) in sardonyx_property::some(&designs, 1) {
            let tried = cut_through(load, design, cuts);
            println!("{} on {design}: {tried:?}", load.name);
        }
    }
}

/// Works until a sync fails, and goes on after it as an operator would.
fn after_a_failed_sync(load: BlockLoad, syncs: usize, seed: u64) -> bool {
    let trial = Trial::new(load, "recam");
    let disk = trial.disk(DiskState::default(), seed);
    let expected = Mutex::new(Expected::new(&load));
    let (mut draw, mut next) = (FaultDraw(seed), 0);
    let what = || format!("{}, sync {syncs} fails, seed {seed}", load.name);
    disk.fail_in(syncs);
    if let Ok(mut volume) = trial.open(&disk) {
        let done = trial.work(&mut volume, &disk, &expected, 60, &mut next, &mut draw);
        if done.and_then(|()| volume.end()).is_ok() {
            assert!(!disk.has_failed(), "{}: and nobody has said so", what());
            return false;
        }
        assert!(disk.has_failed(), "{}", what());
        volume.write(0, &trial.contents[0]).unwrap_err();
        volume.delete(load.blocks as u32 - 1).unwrap_err();
        let error = volume.commit().unwrap_err();
        assert!(matches!(error, DeviceError::Stopped(_)), "{error}");
        trial.judge(&volume, &expected.lock().unwrap(), &what);
    }
    let now = expected.lock().unwrap().clone();
    for _ in 0..4 {
        trial.start(disk.state().cut(&mut draw), &now, &mut draw, &what);
    }
    // The server is started again, on what the system remembers.
    let mut volume = trial.open(&disk).unwrap();
    let found = trial.judge(&volume, &now, &what);
    trial.settle(&mut volume, found, &mut expected.lock().unwrap());
    for operations in [0, 8, 30] {
        let done = trial.work(
            &mut volume,
            &disk,
            &expected,
            operations,
            &mut next,
            &mut draw,
        );
        done.unwrap();
        volume.commit().unwrap();
        expected.lock().unwrap().flushed();
        for _ in 0..3 {
            let now = expected.lock().unwrap().clone();
            trial.start(disk.state().cut(&mut draw), &now, &mut draw, &what);
        }
    }
    true
}

#[test]
fn a_sync_that_fails_stops_the_device_and_loses_nothing_that_was_flushed() {
    let mut tried = 0;
    for load in LOADS {
        for syncs in (0..).step_by(sardonyx_property::count(4, 1)) {
            let mut failed = false;
            for seed in 0..sardonyx_property::count(1, 6) {
                failed |= after_a_failed_sync(load, syncs, seed);
                tried += u64::from(failed);
            }
            if !failed {
                break;
            }
        }
    }
    println!("{tried} failed syncs");
    assert!(tried > sardonyx_property::count(15, 400), "{tried}");
}

/// A flush gives no room back, however much is free; that is done a piece at a time, and loses nothing.
#[test]
fn room_is_given_back_in_pieces_that_are_not_a_flushs() {
    let load = BlockLoad {
        blocks: 400,
        contents: 800,
        limits: Limits {
            free_slots: 4,
            ..Limits::default()
        },
        ..LOADS[2]
    };
    let trial = Trial::new(load, "recam");
    let disk = trial.disk(DiskState::default(), 1);
    let mut volume = trial.open(&disk).unwrap();
    let write = |volume: &mut Volume, blocks: &mut dyn Iterator<Item = u32>, from: usize| {
        for block in blocks {
            let content = &trial.contents[from + block as usize];
            volume.write(block, content).unwrap();
        }
        let before = disk.state().punches;
        volume.commit().unwrap();
        assert_eq!(disk.state().punches, before, "a flush gives room back");
    };
    write(&mut volume, &mut (0..400), 0);
    write(&mut volume, &mut (0..400).step_by(2), 400);
    let mut pieces = 0;
    while let Some(room) = volume.spare_room(16) {
        let before = disk.state().punches;
        let done = room.give_back();
        assert!((1..=16).contains(&(disk.state().punches - before)));
        volume.given_back(room, done);
        pieces += 1;
    }
    assert!(pieces > 5, "{pieces}");
    let mut expected = Expected::new(&load);
    for block in 0..400 {
        expected.now[block] = Some(block + 400 * usize::from(block % 2 == 0));
    }
    expected.flushed();
    trial.judge(&volume, &expected, &|| "in pieces".to_owned());
}
