//! NVMain's traces, of both versions, read and written.

use proptest::prelude::*;
use sardonyx_trace::line::Virtual;
use sardonyx_trace::{Format, ImportOptions, Op, Record, Source, export};

use super::{Desk, in_short, plain, requests, short, write};

#[test]
fn nvmain_lines_mean_what_nvmain_takes_them_for() {
    let data = "0123456789abcdefFEDCBA9876543210".repeat(4);
    let old = "00".repeat(64);
    // With and without 0x, data, a final newline; the address is always hexadecimal.
    let text = format!("NVMV1\n10 R 0x1000\n15 W 40 {data} {old} 3\r\n\n4000000000 W fc0 {data}");
    let records = plain(&text, Format::NvMain).unwrap();
    assert_eq!(
        short(&records),
        [(10, false, 64), (5, true, 1), (3_999_999_985, true, 63)]
    );
    assert_eq!(records[1].thread, 3);
    assert_eq!(records[1].data.unwrap()[..4], [0x01, 0x23, 0x45, 0x67]);
    assert_eq!(records[2].data.unwrap()[60..], [0x76, 0x54, 0x32, 0x10]);
}

#[test]
fn nvmain_errors_name_line_and_remedy() {
    let case = |text: &str, expected: &str| {
        let error = plain(text, Format::NvMain).unwrap_err();
        assert!(error.contains(expected), "{text:?}: {error}");
    };
    case("NVMV2\n1 R 0x40\n", "line 1: `NVMV2` is no version");
    case("1 R 0x40 00 1 2\n", "CYCLE R|W ADDRESS [DATA THREAD]");
    case(
        "NVMV1\n1 R 0x40\n2 Q 0x40\n",
        "in.txt, line 3: operation `Q`",
    );
    case("NVMV1\n1 R\n", "line 2: has 2 words");
    case("NVMV1\n1 R 0xZZ\n", "line 2: address `0xZZ`");
    case("NVMV1\n1 R 0x\n", "line 2: address `0x`");
    case("NVMV1\n1 R 10000000000000000\n", "line 2: address");
    case("NVMV1\nx R 0x40\n", "line 2: cycle `x`");
    case("NVMV1\n+1 R 0x40\n", "line 2: cycle `+1`");
    case(
        "NVMV1\n9 R 0x40\n8 R 0x40\n",
        "line 3: cycle 8 is before the previous 9; sort",
    );
    case("NVMV1\n1 W 0x40 abcd\n", "line 2: data has 4 characters");
    case(
        &format!("NVMV1\n1 W 0x40 {}\n", "é".repeat(64)),
        "line 2: data has 128",
    );
    case(
        &format!("NVMV1\n1 R 0x40 {0} {0} 65536\n", "00".repeat(64)),
        "does not fit 16 bits",
    );
    case(
        &format!("NVMV1\n1 R 0x40 {0} {0} 1 1\n", "00".repeat(64)),
        "has 7 words",
    );
    case(
        "NVMV1\n4294967296 R 0x40\n",
        "line 2: 4294967296 cycles since",
    );
    case("NVMV1\n", "holds no request");
    case(
        &format!("NVMV1\n{}", "1".repeat(10_000)),
        "line 2: has over 4096 bytes",
    );
}

#[test]
fn nvmain_of_version_0_has_a_thread_where_old_data_would_be() {
    let data = "ab".repeat(64);
    let text = format!("10 R 0x1000 {data} 2\n# a comment\n15 W 0x40 {data} 3\n");
    let read = in_short(&text, Format::NvMain);
    assert_eq!(read, [(10, 2, false, 64), (5, 3, true, 1)]);
    let records = plain(&text, Format::NvMain).unwrap();
    assert_eq!(records[1].data, Some([0xab; 64]));
}

proptest! {
    #![proptest_config(sardonyx_property::cases(64))]
    #[test]
    fn to_nvmain_and_back_is_the_same(records in requests()) {
        let desk = Desk::new();
        write(&desk.at("a.parquet"), &records);
        let source = Source::open(desk.at("a.parquet")).unwrap();
        let exported = export(source, desk.at("a.nvt"), Format::NvMain, &mut |_, _| ()).unwrap();
        prop_assert_eq!((exported.requests, exported.left_out), (records.len() as u64, 0));
        let text = std::fs::read_to_string(desk.at("a.nvt")).unwrap();
        prop_assert_eq!(plain(&text, Format::NvMain).unwrap(), records);
    }
}

#[test]
fn nvmain_gets_old_data_and_no_fences() {
    let desk = Desk::new();
    let line = Virtual(1);
    let base = Record {
        gap: 2,
        thread: 1,
        op: Op::DirtyEviction,
        line,
        data: Some([0xAB; 64]),
    };
    let fence = Record {
        op: Op::Fence,
        data: None,
        ..base
    };
    let second = Record {
        op: Op::FlushWriteBack,
        data: Some([1; 64]),
        ..base
    };
    let read = Record {
        op: Op::ReadMiss,
        data: None,
        ..base
    };
    write(&desk.at("a.parquet"), &[base, fence, second, read]);
    let source = Source::open(desk.at("a.parquet")).unwrap();
    let exported = export(source, desk.at("a.nvt"), Format::NvMain, &mut |_, _| ()).unwrap();
    assert_eq!((exported.requests, exported.left_out), (3, 1));
    let (zero, ab, one) = ("00".repeat(64), "ab".repeat(64), "01".repeat(64));
    let expected =
        format!("NVMV1\n2 W 0x40 {ab} {zero} 1\n6 W 0x40 {one} {ab} 1\n8 R 0x40 {one} {one} 1\n");
    assert_eq!(std::fs::read_to_string(desk.at("a.nvt")).unwrap(), expected);
}

#[test]
fn nvmain_gets_cycles_of_its_own_clock() {
    let desk = Desk::new();
    let options = ImportOptions::default();
    let text = "40 READ 3\n40 READ 1200\n40 READ 2400\n";
    desk.import(text, Format::DramSim3, &options).unwrap();
    let source = Source::open(desk.at("out.parquet")).unwrap();
    export(source, desk.at("a.nvt"), Format::NvMain, &mut |_, _| ()).unwrap();
    let text = std::fs::read_to_string(desk.at("a.nvt")).unwrap();
    let cycles: Vec<&str> = text
        .lines()
        .skip(1)
        .map(|l| l.split_once(' ').unwrap().0)
        .collect();
    assert_eq!(cycles, ["5", "2000", "4000"]);
}
