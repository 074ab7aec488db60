//! Ramulator's traces, of instructions and of memory requests.

use sardonyx_trace::{Format, ImportOptions};

use super::{Desk, all_refused, in_short, plain, short};

#[test]
fn instruction_traces_of_ramulator_have_bubbles_before_what_is_read() {
    let text = "3 20734016\n1 0x13c6040 20734080\n// a comment\n0 64 R\n2 128 W\n";
    let read = in_short(text, Format::RamulatorInstructions);
    let line = 20_734_016 / 64;
    let wanted = [
        (4, 0, false, line),
        (2, 0, false, line),
        (0, 0, true, line + 1),
        (1, 0, false, 1),
        (3, 0, true, 2),
    ];
    assert_eq!(read, wanted);
    all_refused(
        Format::RamulatorInstructions,
        &[
            ("3\n", "has 1 words"),
            ("x 64\n", "count of other instructions `x`"),
            ("1 64 W 3\n", "has 4 words"),
            ("1 64 Q\n", "address `Q`"),
            ("18446744073709551615 64\n", "does not fit 64 bits"),
        ],
    );
}

#[test]
fn memory_traces_of_ramulator_are_hexadecimal_and_read_without_a_word() {
    let read = in_short("0x12340 R\n12380 W\n0x40\n", Format::RamulatorMemory);
    let wanted = [(0, 0, false, 0x48d), (0, 0, true, 0x48e), (0, 0, false, 1)];
    assert_eq!(read, wanted);
    assert!(plain("0x40 X\n", Format::RamulatorMemory).is_err());
}

#[test]
fn ramulator_load_store() {
    let records = plain("LD 0x13c6000\nST 128\n", Format::RamulatorLoadStore).unwrap();
    assert_eq!(short(&records), [(0, false, 0x13c6000 / 64), (0, true, 2)]);
    all_refused(
        Format::RamulatorLoadStore,
        &[
            ("LD 0x40\nLOAD 0x40\n", "line 2: operation `LOAD`"),
            ("LD 13c6000\n", "line 1: address `13c6000` is not a decimal"),
            ("LD 0x40 0x80\n", "line 1: has 3 words"),
            ("# comment\n", "holds no request"),
            ("", "holds no request"),
        ],
    );
}

#[test]
fn ramulator_read_write() {
    // Row by row: a column is a line, a row 128 of them.
    let text = "R 0,0,0,0,0,5\nW 0,0,0,0,1,0\nW 0,1,3,3,65535,127\n";
    let records = plain(text, Format::RamulatorReadWrite).unwrap();
    let last = 2 * 4 * 4 * 65_536 * 128 - 1;
    assert_eq!(
        short(&records),
        [(0, false, 5), (0, true, 128), (0, true, last)]
    );
    all_refused(
        Format::RamulatorReadWrite,
        &[
            ("R 0,0,0,0,0\n", "has 5 parts"),
            ("R 0,2,0,0,0,0\n", "rank 2 is not below 2; give the levels"),
            ("R 0,0,0,0,0,x\n", "address part `x`"),
            ("R 0, 0,0,0,0,0\n", "has 3 words"),
            ("X 0,0,0,0,0,0\n", "operation `X`"),
        ],
    );
    let options = ImportOptions {
        levels: vec![2, 8],
        ..ImportOptions::default()
    };
    let records = Desk::new()
        .import("R 1,7\n", Format::RamulatorReadWrite, &options)
        .unwrap();
    assert_eq!(short(&records), [(0, false, 15)]);
    for levels in [vec![], vec![4, 0], vec![1 << 40, 1 << 40]] {
        let options = ImportOptions {
            levels,
            ..ImportOptions::default()
        };
        let error = Desk::new().import("R 1,7\n", Format::RamulatorReadWrite, &options);
        assert!(error.unwrap_err().contains("levels"));
    }
}

#[test]
fn usimm_has_gaps_of_instructions_and_a_program_counter_at_reads() {
    let text = "2 R 0x10040 0x400000\n0 W 0x10080\n5 R 0x20000 0x400004\n";
    let wanted = [
        (3, 0, false, 0x401),
        (1, 0, true, 0x402),
        (6, 0, false, 0x800),
    ];
    assert_eq!(in_short(text, Format::Usimm), wanted);
    let bad = [
        ("2 R 0x40\n", "has 3 words"),
        ("2 Q 0x40\n", "has 3 words"),
        ("2 R 0x40 main\n", "`main` is not"),
        ("18446744073709551615 W 0x40\n", "does not fit 64 bits"),
    ];
    all_refused(Format::Usimm, &bad);
}
