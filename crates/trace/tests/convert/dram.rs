//! Traces of DRAM simulators: DRAMSim2, DRAMsim3 and DRAMSys.

use sardonyx_trace::Format;

use super::{all_refused, in_short, plain, short};

#[test]
fn dramsim2_has_words_of_three_kinds_of_traces() {
    let text = "0x40 P_MEM_RD 3\n0x80 P_MEM_WR 5\n0xc0 BOFF 5\n0x100 P_FETCH 6\n0x140 P_LOCK_RD 7\n\
                0x180 P_LOCK_WR 8\n0x1c0 IFETCH 9\n0x200 READ 10\n0x240 WRITE 12 deadbeef\n";
    let read = in_short(text, Format::DramSim2);
    let writes: Vec<u64> = read.iter().filter(|r| r.2).map(|r| r.3).collect();
    assert_eq!((read.len(), writes), (9, vec![2, 3, 9]));
    assert_eq!(read.iter().map(|r| u64::from(r.0)).sum::<u64>(), 12);
    assert!(plain("0x40 P_IO_RD 3\n", Format::DramSim2).is_err());
}

#[test]
fn dramsim3() {
    let text = "0x40 READ 5\n80 WRITE 5\nC0 P_MEM_WR 9\n100 BOFF 9\n140 P_FETCH 10\n";
    let records = plain(text, Format::DramSim3).unwrap();
    let expected = [
        (5, false, 1),
        (0, true, 2),
        (4, true, 3),
        (0, true, 4),
        (1, false, 5),
    ];
    assert_eq!(short(&records), expected);
    all_refused(
        Format::DramSim3,
        &[
            ("40 WRIET 1\n", "line 1: operation `WRIET`"),
            ("40 READ\n", "line 1: has 2 words"),
            ("40 READ 1.5\n", "cycle `1.5`"),
            ("40 READ 5\n40 READ 4\n", "line 2: cycle 4 is before"),
        ],
    );
}

#[test]
fn dramsys_has_lengths_and_bytes() {
    let whole = "cd".repeat(64);
    let text = format!(
        "# clocks\n31: read 0x400140\n33:\twrite\t0x80 0x{whole}\n40 (8) write 0x88 0x0102030405060708\n\
         41 (128) read 0x20\n"
    );
    let records = plain(&text, Format::DramSys).unwrap();
    let lines: Vec<u64> = records.iter().map(|r| r.line.0).collect();
    assert_eq!(lines, [0x0040_0140 / 64, 2, 2, 0, 1, 2]);
    assert_eq!(records[1].data, Some([0xcd; 64]));
    // Eight bytes from byte 8 on, over what the line held.
    let mut over = [0xcd; 64];
    over[8..16].copy_from_slice(&[1, 2, 3, 4, 5, 6, 7, 8]);
    assert_eq!(records[2].data, Some(over));
    let gaps: Vec<u32> = records.iter().map(|r| r.gap).collect();
    assert_eq!(gaps, [31, 2, 7, 1, 0, 0]);
    let relative = in_short("5: read 0x0\n5: read 0x40\n", Format::DramSysRelative);
    assert_eq!(relative, [(5, 0, false, 0), (5, 0, false, 1)]);
    all_refused(
        Format::DramSys,
        &[
            ("1: (4) write 0x0 0x0102\n", "data has 2 bytes"),
            ("1: move 0x0\n", "operation `move`"),
            ("1: (0) read 0x0\n", "an access of 0 bytes"),
            ("1: write 0x0 0x123\n", "is not pairs"),
        ],
    );
}
