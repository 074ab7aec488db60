//! Damage to the files of a store: flipped bits, sectors that cannot be read, writes that went elsewhere or never
//! came, several of them at once, and a cut of power beside them. Every block is judged: it is what was
//! written or an error, and where a block is lost the check is not green.
use std::collections::BTreeMap;
use std::fmt::{self, Debug, Formatter};
use std::sync::{Arc, Mutex};

use sardonyx_device::{Device, DeviceError, Limits, check_on};

use crate::power::{BlockLoad, Expected, LOADS, Trial};
use crate::simulated::{DiskState, FaultDraw, SECTOR};

#[test]
fn a_flip_of_any_bit_is_named_or_harmless() {
    let load = BlockLoad {
        blocks: 400,
        contents: 350,
        in_order: true,
        limits: Limits {
            log_bytes: 50_000,
            ..Limits::default()
        },
        ..LOADS[0]
    };
    let trial = Trial::new(load, "recam");
    let contents = &trial.contents;
    let disk = trial.disk(DiskState::default(), 1);
    let mut volume = trial.open(&disk).unwrap();
    let mut expected = Expected::new(&load);
    for block in 0..load.blocks as usize {
        let number = block % load.contents;
        volume.write(block as u32, &contents[number]).unwrap();
        expected.now[block] = Some(number);
        if block % 20 == 19 {
            volume.commit().unwrap();
            // Whichever copy of the mark is lost now, also where a new generation has just begun.
            let mut now = expected.clone();
            now.flushed();
            for copy in [100, 4196] {
                let mut state = disk.state();
                state.damage("mark", |bytes| bytes[copy] ^= 1);
                let what = || format!("copy at {copy} is lost after block {block}");
                trial.start(state, &now, &mut FaultDraw(block as u64), &what);
            }
        }
    }
    expected.flushed();
    drop(volume);
    let whole = disk.state();
    let mut flips: Vec<(String, usize, u8)> = Vec::new();
    let mut draw = FaultDraw(3);
    for (name, bytes) in whole.files() {
        let head = if name == "blocks" { 64 } else { 600 };
        let step = sardonyx_property::count(29, 1);
        for at in (0..bytes.len().min(head)).step_by(step) {
            flips.extend((0..8).map(|bit| (name.clone(), at, bit)));
        }
        let all = sardonyx_property::count(20, 700) * usize::from(!bytes.is_empty());
        flips
            .extend((0..all).map(|_| (name.clone(), draw.below(bytes.len()), draw.below(8) as u8)));
        if name == "mark" {
            flips.extend(
                (4096..4608)
                    .step_by(step)
                    .flat_map(|at| (0..8).map(move |bit| ("mark".into(), at, bit))),
            );
        }
    }
    let mut ends = Ends::default();
    for (name, at, bit) in &flips {
        let what = || format!("{name}, byte {at}, bit {bit}");
        let mut state = whole.clone();
        state.damage(name, |bytes| bytes[*at] ^= 1 << bit);
        trial.bear(state, &expected, &mut ends, &what);
    }
    println!("{} flips: {ends:?}", flips.len());
    assert!(flips.len() > sardonyx_property::count(250, 5000));
    assert!(ends.refused == 0 && ends.named > 0 && ends.harmless > 0);
}

/// The shape's own file may be damaged anywhere, or be lost: a table has it too.
#[test]
fn the_shape_is_known_without_its_file() {
    let load = LOADS[0];
    let trial = Trial::new(load, "recam");
    let disk = trial.disk(DiskState::default(), 1);
    let mut volume = trial.open(&disk).unwrap();
    let mut expected = Expected::new(&load);
    for block in 0..load.blocks as usize {
        let number = block % load.contents;
        volume.write(block as u32, &trial.contents[number]).unwrap();
        expected.now[block] = Some(number);
    }
    volume.commit().unwrap();
    expected.flushed();
    drop(volume);
    let whole = disk.state();
    let written = whole.files()["store.json"].clone();
    let mut damages: Vec<Vec<u8>> = vec![Vec::new(), b"{}".to_vec()];
    for at in 0..written.len() {
        let mut bytes = written.clone();
        bytes[at] ^= 1 << (at % 8);
        damages.push(bytes);
    }
    for (number, damage) in damages.iter().enumerate() {
        let mut state = whole.clone();
        state.damage("store.json", |bytes| bytes.clone_from(damage));
        let disk = trial.disk(state, 1);
        let looked = check_on(Arc::new(disk.clone()), &|_, _| true)
            .unwrap()
            .unwrap();
        assert!(
            looked.faults.is_empty()
                && looked
                    .notes
                    .iter()
                    .any(|note| note.starts_with("store.json"))
        );
        let volume = trial.open(&disk).unwrap();
        trial.judge(&volume, &expected, &|| format!("damage {number}"));
        assert_eq!(disk.state().files()["store.json"], written);
    }
}

#[test]
fn a_bad_sector_costs_its_block() {
    let load = LOADS[2];
    let trial = Trial::new(load, "recam");
    let contents = &trial.contents;
    let disk = trial.disk(DiskState::default(), 1);
    let mut volume = trial.open(&disk).unwrap();
    for (block, content) in contents.iter().take(load.blocks as usize).enumerate() {
        volume.write(block as u32, content).unwrap();
    }
    volume.commit().unwrap();
    drop(volume);
    disk.change(|state| state.spoil("blocks", 5 * load.block_bytes / SECTOR));
    let looked = check_on(Arc::new(disk.clone()), &|_, _| true)
        .unwrap()
        .unwrap();
    assert_eq!(looked.faults.len(), 1);
    assert!(
        looked.faults[0].ends_with("block 5 is lost"),
        "{:?}",
        looked.faults
    );
    let mut device = Device::new(trial.open(&disk).unwrap()).unwrap();
    while !device.tell_design(64).unwrap() {}
    let read = |device: &mut Device, block: usize| {
        let mut bytes = vec![0; load.block_bytes];
        let read = device.read((block * load.block_bytes) as u64, &mut bytes);
        read.map(|()| bytes)
    };
    for (block, content) in contents.iter().take(load.blocks as usize).enumerate() {
        match read(&mut device, block) {
            Ok(bytes) => assert!(bytes == *content && block != 5),
            Err(error) => assert!(block == 5 && matches!(error, DeviceError::Damaged(_))),
        }
    }
    // One goes bad under the model's eyes, and its block is written anew.
    disk.change(|state| state.spoil("blocks", 7 * load.block_bytes / SECTOR));
    for block in 0..load.blocks as usize {
        let at = (block * load.block_bytes) as u64;
        device.write(at, &contents[block + 50]).unwrap();
        device.flush().unwrap();
    }
    for block in 0..load.blocks as usize {
        assert!(read(&mut device, block).unwrap() == contents[block + 50]);
    }
}

/// A sector of the tables that cannot be read or holds something else costs no block; the check says what is there, and
/// the next start has mended it.
#[test]
fn a_bad_sector_of_the_tables_costs_nothing() {
    let load = LOADS[2];
    let trial = Trial::new(load, "recam");
    let disk = trial.disk(DiskState::default(), 1);
    let mut volume = trial.open(&disk).unwrap();
    let mut expected = Expected::new(&load);
    for block in 0..load.blocks as usize {
        volume.write(block as u32, &trial.contents[block]).unwrap();
        expected.now[block] = Some(block);
        if block % 8 == 7 {
            volume.commit().unwrap();
        }
    }
    volume.end().unwrap();
    expected.flushed();
    drop(volume);
    let whole = disk.state();
    let (mut tried, mut noted) = (0, 0);
    for (name, bytes) in whole.files() {
        if !["table.", "log.", "mark"]
            .iter()
            .any(|of| name.starts_with(of))
        {
            continue;
        }
        let page = |sector: usize| &bytes[sector / 8 * 8 * SECTOR..][..8 * SECTOR];
        let used = |sector: &usize| page(*sector).iter().any(|&byte| byte != 0);
        for sector in (0..bytes.len() / SECTOR).filter(used) {
            for can_be_read in [false, true] {
                let what = || format!("{name}, sector {sector}, can be read: {can_be_read}");
                let mut state = whole.clone();
                match can_be_read {
                    false => state.spoil(&name, sector),
                    true => state.damage(&name, |bytes| {
                        bytes[sector * SECTOR..][..SECTOR].fill(0xA5);
                    }),
                }
                let disk = trial.disk(state, 1);
                let look = || {
                    let looked = check_on(Arc::new(disk.clone()), &|_, _| true);
                    let looked = looked.unwrap_or_else(|error| panic!("{}: {error}", what()));
                    let looked = looked.unwrap();
                    assert_eq!(looked.faults, Vec::<String>::new(), "{}", what());
                    let lost = |note: &&String| note.contains("two copies");
                    looked.notes.iter().filter(lost).count()
                };
                noted += look();
                let volume = trial.open(&disk);
                let mut volume = volume.unwrap_or_else(|error| panic!("{}: {error}", what()));
                trial.judge(&volume, &expected, &what);
                volume.end().unwrap();
                assert_eq!(look(), 0, "{}: it was not mended", what());
                tried += 1;
            }
        }
    }
    println!("{tried} bad sectors of the tables, {noted} noted");
    assert!(tried > 200 && noted > tried / 2, "{noted} of {tried}");
}

#[derive(Clone)]
enum Fault {
    Flip(String, usize, u8),
    Unreadable(String, usize),
    /// The sector has these bytes instead of its own: noise, or those of another sector.
    Holds(String, usize, Vec<u8>),
    /// The sector, or the whole file, is as it was at an earlier flush: what was written since never came.
    Never(String, Option<usize>, Vec<u8>),
    Short(String, usize),
}

impl Debug for Fault {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Fault::Flip(name, at, bit) => write!(f, "{name}: bit {bit} of byte {at} flips"),
            Fault::Unreadable(name, sector) => write!(f, "{name}: sector {sector} is unreadable"),
            Fault::Holds(name, sector, _) => write!(f, "{name}: sector {sector} is another"),
            Fault::Never(name, Some(sector), _) => write!(f, "{name}: sector {sector} is old"),
            Fault::Never(name, None, _) => write!(f, "{name}: all of it is old"),
            Fault::Short(name, bytes) => write!(f, "{name}: ends after {bytes} bytes"),
        }
    }
}

impl Fault {
    fn draw(
        state: &DiskState,
        earlier: &[BTreeMap<String, Vec<u8>>],
        draw: &mut FaultDraw,
    ) -> Fault {
        let mut files = state.files();
        files.retain(|_, bytes| !bytes.is_empty());
        let names: Vec<String> = files.keys().cloned().collect();
        let name = names[draw.below(names.len())].clone();
        let bytes = &files[&name];
        let sectors = bytes.len().div_ceil(SECTOR);
        let sector = draw.below(sectors);
        let sector_of = |bytes: &[u8], sector: usize| {
            let end = bytes.len().min((sector + 1) * SECTOR);
            bytes.get(sector * SECTOR..end).unwrap_or(&[]).to_vec()
        };
        match draw.below(7) {
            0 => Fault::Flip(name, draw.below(bytes.len()), draw.below(8) as u8),
            1 => Fault::Flip(name, draw.below(bytes.len().min(600)), draw.below(8) as u8),
            2 => Fault::Unreadable(name, sector),
            3 => Fault::Holds(name, sector, vec![draw.below(256) as u8; SECTOR]),
            4 => {
                let other = &files[&names[draw.below(names.len())]];
                let from = draw.below(other.len().div_ceil(SECTOR));
                Fault::Holds(name, sector, sector_of(other, from))
            }
            5 => {
                let then = &earlier[draw.below(earlier.len())];
                let old = then.get(&name).cloned().unwrap_or_default();
                match draw.one_in(2) {
                    true => Fault::Never(name, None, old),
                    false => Fault::Never(name, Some(sector), sector_of(&old, sector)),
                }
            }
            _ => Fault::Short(name.clone(), draw.below(bytes.len())),
        }
    }

    fn file(&self) -> &str {
        match self {
            Fault::Flip(name, ..)
            | Fault::Unreadable(name, _)
            | Fault::Holds(name, ..)
            | Fault::Never(name, ..)
            | Fault::Short(name, _) => name,
        }
    }

    fn apply(&self, state: &mut DiskState) {
        let put = |state: &mut DiskState, name: &str, sector: usize, with: &[u8]| {
            state.damage(name, |bytes| {
                for (byte, with) in bytes.iter_mut().skip(sector * SECTOR).zip(with) {
                    *byte = *with;
                }
            });
        };
        match self {
            Fault::Flip(name, at, bit) => state.damage(name, |bytes| {
                if let Some(byte) = bytes.get_mut(*at) {
                    *byte ^= 1 << bit;
                }
            }),
            Fault::Unreadable(name, sector) => state.spoil(name, *sector),
            Fault::Holds(name, sector, with) => put(state, name, *sector, with),
            Fault::Never(name, Some(sector), with) => put(state, name, *sector, with),
            Fault::Never(name, None, old) => state.damage(name, |bytes| bytes.clone_from(old)),
            Fault::Short(name, length) => state.damage(name, |bytes| bytes.truncate(*length)),
        }
    }
}

#[derive(Clone, Copy, Debug, Default)]
struct Ends {
    refused: u32,
    named: u32,
    harmless: u32,
}

impl Trial {
    /// Starts on it and reads all; fails on a wrong block, and where one is lost that the check does not know.
    fn bear(
        &self,
        state: DiskState,
        expected: &Expected,
        ends: &mut Ends,
        what: &dyn Fn() -> String,
    ) {
        let disk = self.disk(state, 1);
        let looked = check_on(Arc::new(disk.clone()), &|_, _| true);
        let is_sound = looked.is_ok_and(|found| found.unwrap().faults.is_empty());
        let Ok(volume) = self.open(&disk) else {
            assert!(!is_sound, "{}: refused, and the check is green", what());
            ends.refused += 1;
            return;
        };
        let mut bytes = vec![0; self.load.block_bytes];
        let mut lost = 0;
        for (block, may_be) in expected.may_be.iter().enumerate() {
            if volume.read(block as u32, &mut bytes).is_err() {
                lost += 1;
                continue;
            }
            let is_right = may_be.iter().any(|number| match number {
                Some(number) => bytes == self.contents[*number],
                None => bytes.iter().all(|&byte| byte == 0),
            });
            assert!(is_right, "{}: block {block} is wrong", what());
        }
        assert!(
            lost == 0 || !is_sound,
            "{}: {lost} are lost, and the check is green",
            what()
        );
        *(if lost == 0 {
            &mut ends.harmless
        } else {
            &mut ends.named
        }) += 1;
    }
}

/// Up to four faults at once, on a store that ended well and on what a cut of power has left.
#[test]
fn several_faults_at_once_are_refused_named_or_harmless() {
    let seeds = std::env::var("SARDONYX_FAULTS").map_or(sardonyx_property::count(2, 40), |seeds| {
        seeds.parse().unwrap()
    });
    let mut ends = [Ends::default(); 2];
    for seed in 0..seeds {
        for load in [LOADS[0], LOADS[2]] {
            let trial = Trial::new(load, "recam");
            let disk = trial.disk(DiskState::default(), seed);
            let (mut draw, mut next) = (FaultDraw(seed), 0);
            let expected = Mutex::new(Expected::new(&load));
            let mut volume = trial.open(&disk).unwrap();
            let mut earlier = Vec::new();
            for _ in 0..6 {
                let done = trial.work(&mut volume, &disk, &expected, 20, &mut next, &mut draw);
                done.unwrap();
                volume.commit().unwrap();
                expected.lock().unwrap().flushed();
                earlier.push(disk.state().files());
            }
            let mut now = expected.lock().unwrap().clone();
            let more = draw.below(12);
            let done = trial.work(&mut volume, &disk, &expected, more, &mut next, &mut draw);
            done.unwrap();
            let in_flight = (disk.state(), expected.lock().unwrap().clone());
            volume.end().unwrap();
            expected.lock().unwrap().flushed();
            drop(volume);
            let at_rest = disk.state();
            now.clone_from(&expected.lock().unwrap());
            for case in 0..60 {
                let is_cut = case % 2 == 1;
                let (mut state, expected) = match is_cut {
                    false => (at_rest.clone(), &now),
                    true => (in_flight.0.cut(&mut draw), &in_flight.1),
                };
                let mut faults: Vec<Fault> = Vec::new();
                for _ in 0..1 + draw.below(4) {
                    faults.push(Fault::draw(&state, &earlier, &mut draw));
                }
                // Without what was written last of the mark, and of the log, a disk is as it was: nothing on
                // it knows better. One copy of the mark is enough.
                let marks = faults.iter().filter(|fault| fault.file() == "mark");
                let old: usize = marks
                    .map(|fault| match fault {
                        Fault::Never(_, None, _) => 2,
                        _ => 1,
                    })
                    .sum();
                if old > 1 && faults.iter().any(|fault| fault.file().starts_with("log.")) {
                    continue;
                }
                for fault in &faults {
                    fault.apply(&mut state);
                }
                let what = || format!("{}, seed {seed}, case {case}: {faults:?}", load.name);
                trial.bear(state, expected, &mut ends[usize::from(is_cut)], &what);
            }
        }
    }
    println!("at rest {:?}, after a cut {:?}", ends[0], ends[1]);
    for ends in ends {
        assert!(ends.refused > 0 && ends.named > 0 && ends.harmless > 0);
    }
}
