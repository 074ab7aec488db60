//! ChampSim's instructions.

use std::path::Path;

use sardonyx_trace::line::Virtual;
use sardonyx_trace::{Format, ImportOptions, Op, Record, Source, export};

use super::{Desk, asked, write};

fn champsim(accesses: &[([u64; 2], [u64; 4])]) -> Vec<u8> {
    let instructions = accesses.iter().flat_map(|(written, read)| {
        let head = [0x40_0000_u64.to_le_bytes(), [0, 0, 1, 0, 2, 0, 0, 0]].concat();
        let words = written
            .iter()
            .chain(read)
            .flat_map(|word| word.to_le_bytes());
        head.into_iter().chain(words).collect::<Vec<u8>>()
    });
    instructions.collect()
}

#[test]
fn champsim_gets_no_gap_without_end_and_no_line_that_it_cannot_name() {
    let desk = Desk::new();
    let read = |gap, line| Record {
        gap,
        thread: 0,
        op: Op::ReadMiss,
        line: Virtual(line),
        data: None,
    };
    let (ours, theirs) = (desk.at("a.parquet"), desk.at("theirs"));
    write(&ours, &[read(3, 0), read(2, 7)]);
    let export = |desk: &Path| {
        export(
            Source::open(&ours).unwrap(),
            desk,
            Format::ChampSim,
            &mut |_, _| (),
        )
    };
    let done = export(&theirs).unwrap();
    assert_eq!((done.requests, done.left_out), (1, 1));
    let bytes = std::fs::read(&theirs).unwrap();
    let records = desk
        .import(bytes, Format::ChampSim, &ImportOptions::default())
        .unwrap();
    assert_eq!(asked(&records), [(5, false, 7)]);
    write(&ours, &[read(1 << 30, 7)]);
    std::fs::remove_file(&theirs).unwrap();
    let refused = export(&theirs).unwrap_err().to_string();
    assert!(
        refused.contains("1073741824 instructions without an access"),
        "{refused}"
    );
    assert!(!theirs.exists());
}

#[test]
fn champsims_instructions_are_loads_and_stores_at_the_core() {
    let desk = Desk::new();
    let none = [0; 4];
    let trace = champsim(&[
        ([0, 0], none),
        ([0x1040, 0], [0x2000, 0, 0x2080, 0]),
        ([0, 0], none),
        ([0, 0], [0x3000, 0, 0, 0]),
    ]);
    let options = ImportOptions::default();
    let records = desk.import(&trace, Format::ChampSim, &options).unwrap();
    let ops: Vec<Op> = records.iter().map(|record| record.op).collect();
    assert_eq!(ops, [Op::Load, Op::Load, Op::Store, Op::Load]);
    let lines = [
        (2, false, 0x80),
        (2, false, 0x82),
        (2, true, 0x41),
        (4, false, 0xc0),
    ];
    assert_eq!(asked(&records), lines);
    let cut = desk
        .import(&trace[..100], Format::ChampSim, &options)
        .unwrap_err();
    assert!(cut.contains("in.txt: ends in the middle"), "{cut}");
    let text = desk
        .import("LD 0x40\n".repeat(20), Format::ChampSim, &options)
        .unwrap_err();
    assert!(text.contains("instruction 1: branch flags"), "{text}");
    let mut packed = b"\xfd7zXZ\0".to_vec();
    packed.resize(200, 7);
    let packed = desk.import(packed, Format::ChampSim, &options).unwrap_err();
    assert!(packed.contains("in.txt: is damaged"), "{packed}");
}
