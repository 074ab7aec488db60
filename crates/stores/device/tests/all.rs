//! The device against an array of bytes, through ends of the process, faults and full disks.
mod damage;
mod operator;
mod power;
mod simulated;

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::Path;

use proptest::prelude::*;
use sardonyx_device::{Checked, Device, DeviceError, Wanted, check};
use sardonyx_store::{DESIGNS, Named};

const BLOCK: u64 = 512;
const BLOCKS: u64 = 24;
const SIZE: u64 = BLOCK * BLOCKS;

fn wanted(design: &str) -> Wanted {
    Wanted {
        design: Some(Named::find(design).unwrap()),
        size_bytes: Some(SIZE),
        block_bytes: Some(BLOCK as u32),
    }
}

fn open(folder: &Path, design: &str) -> Device {
    Device::open(folder, wanted(design), &mut |_, _| ()).unwrap()
}

fn checked(folder: &Path) -> Checked {
    check(folder, &|_, _| true).unwrap().unwrap()
}

#[derive(Clone, Debug)]
enum Operation {
    Write {
        offset: u64,
        length: u64,
        content: u8,
    },
    Read {
        offset: u64,
        length: u64,
    },
    Zero {
        offset: u64,
        length: u64,
        may_trim: bool,
    },
    Trim {
        offset: u64,
        length: u64,
    },
    Flush,
    End,
}

fn operations() -> impl Strategy<Value = Vec<Operation>> {
    use Operation::*;
    // Half of all ranges are whole blocks, so that contents meet again.
    let whole = (0..BLOCKS, 1..6_u64)
        .prop_map(|(first, blocks)| (first * BLOCK, blocks.min(BLOCKS - first) * BLOCK));
    let odd = (0..SIZE, 1..3 * BLOCK).prop_map(|(at, length)| (at, length.min(SIZE - at)));
    let range = || prop_oneof![whole.clone(), odd.clone()];
    let operation = prop_oneof![
        6 => (range(), 0..4_u8).prop_map(|((offset, length), content)| {
            Write { offset, length, content }
        }),
        3 => range().prop_map(|(offset, length)| Read { offset, length }),
        2 => (range(), any::<bool>()).prop_map(|((offset, length), may_trim)| {
            Zero { offset, length, may_trim }
        }),
        2 => range().prop_map(|(offset, length)| Trim { offset, length }),
        1 => Just(Flush),
        1 => Just(End),
    ];
    prop::collection::vec(operation, 1..60)
}

/// A block may hold what it held at the last flush, or anything written to it since.
struct FlushedBlocks {
    now: Vec<u8>,
    may_be: Vec<Vec<Vec<u8>>>,
}

impl FlushedBlocks {
    fn new() -> FlushedBlocks {
        let blocks = vec![vec![vec![0; BLOCK as usize]]; BLOCKS as usize];
        FlushedBlocks {
            now: vec![0; SIZE as usize],
            may_be: blocks,
        }
    }

    fn change(&mut self, offset: u64, length: u64, change: impl Fn(usize) -> u8) {
        for at in offset..offset + length {
            self.now[at as usize] = change((at - offset) as usize);
        }
        if length > 0 {
            for block in offset / BLOCK..=(offset + length - 1) / BLOCK {
                let now = self.block(block).to_vec();
                self.may_be[block as usize].push(now);
            }
        }
    }

    fn block(&self, block: u64) -> &[u8] {
        &self.now[(block * BLOCK) as usize..][..BLOCK as usize]
    }

    fn flushed(&mut self) {
        for block in 0..BLOCKS {
            self.may_be[block as usize] = vec![self.block(block).to_vec()];
        }
    }
}

fn agree(design: &str, operations: Vec<Operation>) {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path().join("store");
    let mut device = open(&folder, design);
    let mut plain = FlushedBlocks::new();
    for operation in operations {
        match operation {
            Operation::Write {
                offset,
                length,
                content,
            } => {
                let byte = |at: usize| content.wrapping_mul((at as u64 / BLOCK % 3) as u8 + 1);
                let bytes: Vec<u8> = (0..length as usize).map(byte).collect();
                device.write(offset, &bytes).unwrap();
                plain.change(offset, length, byte);
            }
            Operation::Read { offset, length } => {
                let mut bytes = vec![9; length as usize];
                device.read(offset, &mut bytes).unwrap();
                assert_eq!(bytes, plain.now[offset as usize..][..length as usize]);
            }
            Operation::Zero {
                offset,
                length,
                may_trim,
            } => {
                device.zero(offset, length, may_trim).unwrap();
                plain.change(offset, length, |_| 0);
            }
            Operation::Trim { offset, length } => {
                device.trim(offset, length).unwrap();
                let first = offset.div_ceil(BLOCK) * BLOCK;
                let end = (offset + length) / BLOCK * BLOCK;
                plain.change(first, end.saturating_sub(first), |_| 0);
            }
            Operation::Flush => {
                device.flush().unwrap();
                plain.flushed();
            }
            Operation::End => {
                drop(device);
                device = open(&folder, design);
                for block in 0..BLOCKS {
                    let mut bytes = vec![9; BLOCK as usize];
                    device.read(block * BLOCK, &mut bytes).unwrap();
                    assert!(
                        plain.may_be[block as usize].contains(&bytes),
                        "block {block}"
                    );
                    plain.now[(block * BLOCK) as usize..][..BLOCK as usize].copy_from_slice(&bytes);
                }
                plain.flushed();
            }
        }
        for extent in device.extents(0, SIZE).filter(|extent| !extent.has_content) {
            let from = u64::from(extent.first) * BLOCK;
            let bytes = &plain.now[from as usize..][..(u64::from(extent.blocks) * BLOCK) as usize];
            assert!(bytes.iter().all(|&byte| byte == 0));
        }
    }
    let mut bytes = vec![9; SIZE as usize];
    device.read(0, &mut bytes).unwrap();
    assert_eq!(bytes, plain.now);
    let totals = device.counters().totals;
    device.flush().unwrap();
    drop(device);
    let found = checked(&folder);
    assert_eq!(found.faults, Vec::<String>::new());
    assert_eq!(
        (found.live_blocks, found.stored_blocks),
        (totals.live_blocks, totals.stored_blocks)
    );
}

proptest! {
    #![proptest_config(sardonyx_property::cases(16))]

    #[test]
    fn reads_give_what_was_written_and_flushes_survive(operations in operations()) {
        for design in DESIGNS {
            agree(design.name, operations.clone());
        }
    }
}

#[test]
fn the_paper_s_counts_of_a_write_a_duplicate_and_a_read() {
    let folder = tempfile::tempdir().unwrap();
    let wanted = Wanted {
        size_bytes: Some(1 << 20),
        ..Wanted::default()
    };
    let mut device = Device::open(folder.path(), wanted, &mut |_, _| ()).unwrap();
    let block: Vec<u8> = (0..4096_u32).map(|at| (at / 7) as u8).collect();
    device.write(0, &block).unwrap();
    device.write(8192, &block).unwrap();
    device.read(0, &mut vec![0; 4096]).unwrap();
    let totals = device.counters().totals;
    assert_eq!(
        (totals.writes, totals.duplicate_writes, totals.reads),
        (2, 1, 1)
    );
    assert_eq!((totals.live_blocks, totals.stored_blocks), (2, 1));
    // 128 rows: compared and written once each, LBA and PA two cycles each; compared; read.
    assert_eq!(
        totals.cost.cycles,
        (128 + 128 + 4) + (128 + 4) + (2 + 1 + 128)
    );
}

#[test]
fn a_flipped_bit_is_an_error_to_the_reader_and_a_line_of_the_check() {
    let folder = tempfile::tempdir().unwrap();
    let mut device = open(folder.path(), "recam");
    device.write(0, &[1; 2 * BLOCK as usize]).unwrap();
    device.write(3 * BLOCK, &[2; BLOCK as usize]).unwrap();
    device.flush().unwrap();
    let bytes = File::options()
        .write(true)
        .open(folder.path().join("blocks"))
        .unwrap();
    bytes.write_all_at(&[7], 100).unwrap();
    let error = device.read(BLOCK, &mut [0; BLOCK as usize]).unwrap_err();
    assert!(matches!(error, DeviceError::Damaged(_)), "{error}");
    device.read(3 * BLOCK, &mut [0; BLOCK as usize]).unwrap();
    drop(device);
    let faults = checked(folder.path()).faults;
    let wanted = "slot 0: is not what its checksum says; block 0 and 1 more are lost";
    assert_eq!(faults, [wanted]);
    let mut device = open(folder.path(), "recam");
    device.read(0, &mut [0; BLOCK as usize]).unwrap_err();
    device.write(5 * BLOCK, &[1; BLOCK as usize]).unwrap();
    device.read(0, &mut [0; BLOCK as usize]).unwrap(); // the same content has come again
    drop(device);
    assert_eq!(checked(folder.path()).faults, Vec::<String>::new());
    fs::write(folder.path().join("blocks"), b"short").unwrap();
    assert_eq!(checked(folder.path()).faults.len(), 2);
}

#[test]
fn folders_that_do_not_fit_are_refused() {
    let made = tempfile::tempdir().unwrap();
    drop(open(made.path(), "recam"));
    let strange = tempfile::tempdir().unwrap();
    fs::write(strange.path().join("thesis.tex"), "..").unwrap();
    let empty = tempfile::tempdir().unwrap();
    let good = wanted("recam");
    let refused = |folder: &Path, said: &str, change: fn(&mut Wanted)| {
        let mut wanted = good;
        change(&mut wanted);
        let error = Device::open(folder, wanted, &mut |_, _| ()).err().unwrap();
        assert!(error.to_string().contains(said), "{error}");
    };
    let (made_in, empty_in) = (made.path(), empty.path());
    refused(made_in, "--size 12288", |w| w.size_bytes = Some(2 * SIZE));
    refused(made_in, "--design recam", |w| {
        w.design = Some(Named::find("conventional").unwrap());
    });
    refused(made_in, "--block 512", |w| w.block_bytes = Some(1024));
    refused(strange.path(), "holds thesis.tex and no store", |_| ());
    refused(empty_in, "--size: give one", |w| w.size_bytes = None);
    refused(empty_in, "less than one block", |w| {
        w.size_bytes = Some(100)
    });
    refused(empty_in, "whole blocks", |w| w.size_bytes = Some(1000));
    refused(empty_in, "a power of two", |w| w.block_bytes = Some(5));
    assert_eq!(
        fs::read_dir(empty.path()).unwrap().count(),
        0,
        "nothing was left behind"
    );
    let _device = open(made.path(), "recam");
    refused(made_in, "another server or check uses it", |_| ());
    let error = check(made.path(), &|_, _| true).unwrap_err().to_string();
    assert!(error.contains("another server or check uses it"), "{error}");
    let error = check(empty.path(), &|_, _| true).unwrap_err().to_string();
    assert!(error.contains("holds no store"), "{error}");
}
