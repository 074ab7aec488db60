//! Other simulators' traces: what their lines mean, and a clear error where their readers fail.

use std::path::{Path, PathBuf};

use proptest::prelude::*;
use sardonyx_trace::line::Virtual;
use sardonyx_trace::{
    Arrivals, Fill, Format, GapUnit, ImportOptions, Op, Provenance, Record, Source, TraceWriter,
    export, export_nvmain, import,
};
use tempfile::TempDir;

struct Desk(TempDir);

impl Desk {
    fn new() -> Desk {
        Desk(tempfile::tempdir().unwrap())
    }

    fn at(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// The records of a text, or of bytes, or the error.
    fn import(
        &self,
        text: impl AsRef<[u8]>,
        format: Format,
        options: &ImportOptions,
    ) -> Result<Vec<Record>, String> {
        let (from, to) = (self.at("in.txt"), self.at("out.parquet"));
        std::fs::write(&from, text).unwrap();
        let _ = std::fs::remove_file(&to);
        match import(&from, &to, format, options, &mut |_, _| ()) {
            Ok(n) => {
                let records = read(&to);
                assert_eq!(n, records.len() as u64);
                Ok(records)
            }
            Err(e) => {
                assert!(!to.exists(), "a failed conversion leaves no file");
                Err(e.to_string().replace(&from.display().to_string(), "in.txt"))
            }
        }
    }
}

fn read(path: &Path) -> Vec<Record> {
    let mut source = Source::open(path).unwrap();
    let (mut all, mut batch) = (Vec::new(), Vec::new());
    while source.next_batch(&mut batch).unwrap() {
        all.append(&mut batch);
    }
    all
}

fn plain(text: &str, format: Format) -> Result<Vec<Record>, String> {
    Desk::new().import(text, format, &ImportOptions::default())
}

fn short(records: &[Record]) -> Vec<(u32, bool, u64)> {
    records
        .iter()
        .map(|r| (r.gap, r.op.is_write(), r.line.0))
        .collect()
}

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

/// Gap, thread, whether it writes, and the line of each record.
fn in_short(text: &str, format: Format) -> Vec<(u32, u16, bool, u64)> {
    let records = plain(text, format).unwrap_or_else(|error| panic!("{error}"));
    let writes = |op| matches!(op, Op::Store | Op::DirtyEviction);
    let one = |r: &Record| (r.gap, r.thread, writes(r.op), r.line.0);
    records.iter().map(one).collect()
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
    for (text, expected) in [
        ("3\n", "has 1 words"),
        ("x 64\n", "count of other instructions `x`"),
        ("1 64 W 3\n", "has 4 words"),
        ("1 64 Q\n", "address `Q`"),
    ] {
        let error = plain(text, Format::RamulatorInstructions).unwrap_err();
        assert!(error.contains(expected), "{text:?}: {error}");
    }
}

#[test]
fn memory_traces_of_ramulator_are_hexadecimal_and_read_without_a_word() {
    let read = in_short("0x12340 R\n12380 W\n0x40\n", Format::RamulatorMemory);
    let wanted = [(0, 0, false, 0x48d), (0, 0, true, 0x48e), (0, 0, false, 1)];
    assert_eq!(read, wanted);
    assert!(plain("0x40 X\n", Format::RamulatorMemory).is_err());
}

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
    for (text, expected) in [
        ("1: (4) write 0x0 0x0102\n", "data has 2 bytes"),
        ("1: move 0x0\n", "operation `move`"),
        ("1: (0) read 0x0\n", "an access of 0 bytes"),
        ("1: write 0x0 0x123\n", "is not pairs"),
    ] {
        let error = plain(text, Format::DramSys).unwrap_err();
        assert!(error.contains(expected), "{text:?}: {error}");
    }
}

const PIN: &str = "0x7f10: R 0x1000\n0x7f12: W 0x1040\n#eof\n";
const LACKEY: &str = "==12== Lackey, an example Valgrind tool\n==12==\nI  04001000,3\n L 1ffeffe7e0,8\n\
                      I  04001003,5\nI  04001008,2\n S 103c,8\n M 2000,4\n";
const VIEW: &str = "Output format:\n<--record#-> <--instr#->: <---tid---> <record details>\n\
                    ------------------------------------------------------------\n\
                    1 0: W0.T92937 <marker: version 3>\n\
                    2 1: W0.T92937 ifetch 3 byte(s) @ 0x00007f6fdd3ec360 48 89 e7 mov %rsp -> %rdi\n\
                    3 1: W0.T92937 write 8 byte(s) @ 0x0000000000001038 by PC 0x00007f6fdd3ec363\n\
                    4 2: W0.T7 ifetch 5 byte(s) @ 0x00007f6fdd3ec363 e8 non-branch\n\
                    5 2: W0.T7 read 16 byte(s) @ 0x0000000000001038 by PC 0x00007f6fdd3ec368\n\
                    View tool results:\n 2 : total instructions\n";

#[test]
fn accesses_of_pin_lackey_and_dynamorio_are_a_programs_own() {
    let wanted = [(1, 0, false, 64), (1, 0, true, 65)];
    assert_eq!(in_short(PIN, Format::Pinatrace), wanted);

    let wanted = [
        (1, 0, false, 0x1f_feff_e7e0 / 64),
        (2, 0, true, 0x40),
        (0, 0, true, 0x41),
        (0, 0, false, 0x80),
        (0, 0, true, 0x80),
    ];
    assert_eq!(in_short(LACKEY, Format::Lackey), wanted);
    let error = plain(" L 10\n", Format::Lackey).unwrap_err();
    assert!(error.contains("ADDRESS,SIZE"), "{error}");

    // An access of eight bytes at the end of a line is within it; one of sixteen is not.
    let wanted = [(1, 0, true, 0x40), (1, 1, false, 0x40), (0, 1, false, 0x41)];
    assert_eq!(in_short(VIEW, Format::DynamoRio), wanted);
    assert!(plain("LD 64\n", Format::DynamoRio).is_err());

    for (format, text) in [
        (Format::Pinatrace, PIN),
        (Format::Lackey, LACKEY),
        (Format::DynamoRio, VIEW),
    ] {
        let first = &plain(text, format).unwrap()[0];
        assert!(matches!(first.op, Op::Load | Op::Store), "{format}");
    }
}

#[test]
fn what_is_compressed_is_read_as_what_it_was() {
    let text = b"LD 0x40\nST 128\n";
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    std::io::Write::write_all(&mut gzip, text).unwrap();
    let gzip = gzip.finish().unwrap();
    let zstd = zstd::encode_all(&text[..], 3).unwrap();
    // Made by liblzma.
    let xz = "fd377a585a000004e6d6b4460200210116000000742fe5a301000e4c4420307834300a5354203132380a0000e3926215a6d4b7630001270fdf1afc6a1fb6f37d010000000004595a";
    let xz: Vec<u8> = (0..xz.len() / 2)
        .map(|i| u8::from_str_radix(&xz[2 * i..2 * i + 2], 16).unwrap())
        .collect();
    let options = ImportOptions::default();
    for packed in [&gzip, &zstd, &xz] {
        let records = Desk::new().import(packed, Format::RamulatorLoadStore, &options);
        let lines: Vec<u64> = records.unwrap().iter().map(|r| r.line.0).collect();
        assert_eq!(lines, [1, 2]);
        // A file that was cut off is refused wherever it ends.
        for end in 1..packed.len() {
            let records = Desk::new().import(&packed[..end], Format::RamulatorLoadStore, &options);
            assert!(records.is_err(), "{end} of {} bytes", packed.len());
        }
    }
}

#[test]
fn what_is_written_under_a_compressed_name_is_compressed() {
    let desk = Desk::new();
    let ours = desk.at("a.parquet");
    let options = ImportOptions::default();
    std::fs::write(desk.at("in"), "LD 0x40\nST 128\n".repeat(500)).unwrap();
    let from = Format::RamulatorLoadStore;
    import(desk.at("in"), &ours, from, &options, &mut |_, _| ()).unwrap();
    for format in [Format::RamulatorLoadStore, Format::ChampSim] {
        let mut sizes = Vec::new();
        for name in ["out", "out.gz", "out.xz", "out.zst"] {
            let theirs = desk.at(name);
            let source = Source::open(&ours).unwrap();
            export(source, &theirs, format, &mut |_, _| ()).unwrap();
            let bytes = std::fs::read(&theirs).unwrap();
            sizes.push(bytes.len());
            let read = desk.import(bytes, format, &options).unwrap();
            assert_eq!(read.len(), 1000, "{format} {name}");
            assert_eq!((read[0].line.0, read[999].line.0), (1, 2));
        }
        assert!(
            sizes[1..].iter().all(|size| size * 10 < sizes[0]),
            "{sizes:?}"
        );
    }
}

#[test]
fn text_that_is_none_is_refused() {
    let desk = Desk::new();
    let bad = desk.at("bad");
    let options = ImportOptions::default();
    let error = |path: &Path| {
        let to = desk.at("out");
        import(path, to, Format::NvMain, &options, &mut |_, _| ())
            .unwrap_err()
            .to_string()
    };
    std::fs::write(&bad, b"NVMV1\n\xFF\xFE 1\n").unwrap();
    assert!(error(&bad).contains("line 2: is not text"));
    std::fs::write(&bad, b"").unwrap();
    assert!(error(&bad).contains("holds no request"));
    assert!(error(&desk.at("none")).contains("No such file"));
    assert!(error(desk.0.path()).contains("is a directory"));
}

#[test]
fn ramulator_load_store() {
    let records = plain("LD 0x13c6000\nST 128\n", Format::RamulatorLoadStore).unwrap();
    assert_eq!(short(&records), [(0, false, 0x13c6000 / 64), (0, true, 2)]);
    for (text, expected) in [
        ("LD 0x40\nLOAD 0x40\n", "line 2: operation `LOAD`"),
        ("LD 13c6000\n", "line 1: address `13c6000` is not a decimal"),
        ("LD 0x40 0x80\n", "line 1: has 3 words"),
        ("# comment\n", "holds no request"),
        ("", "holds no request"),
    ] {
        let error = plain(text, Format::RamulatorLoadStore).unwrap_err();
        assert!(error.contains(expected), "{text:?}: {error}");
    }
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
    for (text, expected) in [
        ("R 0,0,0,0,0\n", "has 5 parts"),
        ("R 0,2,0,0,0,0\n", "rank 2 is not below 2; give the levels"),
        ("R 0,0,0,0,0,x\n", "address part `x`"),
        ("R 0, 0,0,0,0,0\n", "has 3 words"),
        ("X 0,0,0,0,0,0\n", "operation `X`"),
    ] {
        let error = plain(text, Format::RamulatorReadWrite).unwrap_err();
        assert!(error.contains(expected), "{text:?}: {error}");
    }
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
    for (text, expected) in [
        ("40 WRIET 1\n", "line 1: operation `WRIET`"),
        ("40 READ\n", "line 1: has 2 words"),
        ("40 READ 1.5\n", "cycle `1.5`"),
        ("40 READ 5\n40 READ 4\n", "line 2: cycle 4 is before"),
    ] {
        let error = plain(text, Format::DramSim3).unwrap_err();
        assert!(error.contains(expected), "{text:?}: {error}");
    }
}

#[test]
fn writes_without_data_are_filled_as_asked() {
    let text = "ST 0\nST 0\nST 64\n".repeat(2000);
    let distinct = |fill, seed| {
        let options = ImportOptions {
            fill,
            seed,
            ..ImportOptions::default()
        };
        let records = Desk::new()
            .import(&text, Format::RamulatorLoadStore, &options)
            .unwrap();
        let data: Vec<_> = records.iter().map(|r| r.data.unwrap()).collect();
        let distinct = data.iter().collect::<std::collections::HashSet<_>>().len();
        (distinct, data)
    };
    assert_eq!(distinct(Fill::Zero, 0).0, 1);
    assert_eq!(distinct(Fill::Unique, 0).0, 6000);
    assert!((1000..=1024).contains(&distinct(Fill::Random, 0).0));
    assert!(distinct(Fill::Unique, 1) == distinct(Fill::Unique, 1));
    assert!(distinct(Fill::Unique, 1) != distinct(Fill::Unique, 2));
}

#[test]
fn provenance_says_how_it_was_converted() {
    let desk = Desk::new();
    let provenance = |text: &str, format, options: &ImportOptions| {
        desk.import(text, format, options).unwrap();
        Source::open(desk.at("out.parquet")).unwrap().provenance()
    };
    let options = ImportOptions::default();
    let nvmain = provenance("NVMV1\n1 R 0x40\n", Format::NvMain, &options);
    assert_eq!(
        (nvmain.gap_unit, nvmain.more["clock_mhz"].as_f64()),
        (GapUnit::Cycles, Some(2000.0))
    );
    assert_eq!(nvmain.more["converted"]["format"], "nvmain");
    assert_eq!(nvmain.more["converted"]["data_of_writes_without"], "unique");
    let slow = ImportOptions {
        clock_mhz: Some(800.0),
        ..options.clone()
    };
    let dramsim3 = provenance("40 READ 1\n", Format::DramSim3, &slow);
    assert_eq!(dramsim3.more["clock_mhz"], 800.0);
    let ramulator = provenance("LD 0\n", Format::RamulatorLoadStore, &options);
    assert_eq!(ramulator.gap_unit, GapUnit::Instructions);
    // Whose addresses, and what the moments are: a bus's own, or a core's.
    let bus = (true, Arrivals::Open);
    let said = |one: &Provenance| (one.is_physical(), one.arrivals);
    assert_eq!([said(&nvmain), said(&dramsim3)], [bus, bus]);
    assert_eq!(dramsim3.more["highest_line"], 1);
    assert_eq!(said(&ramulator), (true, Arrivals::Closed));
    let core = (false, Arrivals::Closed);
    let instructions = provenance("3 0x40\n", Format::RamulatorInstructions, &options);
    let pin = provenance("0x1: R 0x40\n", Format::Pinatrace, &options);
    assert_eq!([said(&instructions), said(&pin)], [core, core]);
}

#[test]
fn names_are_read_back() {
    for format in Format::ALL {
        assert_eq!(format.to_string().parse(), Ok(format));
        assert_eq!(serde_json::to_value(format).unwrap(), format.name());
    }
    assert!("gem5".parse::<Format>().unwrap_err().contains("nvmain"));
    assert!("ones".parse::<Fill>().unwrap_err().contains("unique"));
}

fn requests() -> impl Strategy<Value = Vec<Record>> {
    let record = (
        any::<u32>(),
        any::<u16>(),
        any::<bool>(),
        0u64..8,
        any::<u8>(),
    );
    let record = record.prop_map(|(gap, thread, write, line, byte)| {
        let (op, data) = if write {
            (Op::DirtyEviction, Some([byte; 64]))
        } else {
            (Op::ReadMiss, None)
        };
        Record {
            gap,
            thread,
            op,
            line: Virtual(line << 40 | 5),
            data,
        }
    });
    prop::collection::vec(record, 1..100)
}

fn write(path: &Path, records: &[Record]) {
    let mut writer = TraceWriter::create(path, Provenance::default()).unwrap();
    records.iter().for_each(|r| writer.push(r).unwrap());
    writer.finish().unwrap();
}

proptest! {
    #![proptest_config(sardonyx_property::cases(64))]
    #[test]
    fn to_nvmain_and_back_is_the_same(records in requests()) {
        let desk = Desk::new();
        write(&desk.at("a.parquet"), &records);
        let source = Source::open(desk.at("a.parquet")).unwrap();
        let exported = export_nvmain(source, desk.at("a.nvt"), &mut |_, _| ()).unwrap();
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
    let exported = export_nvmain(source, desk.at("a.nvt"), &mut |_, _| ()).unwrap();
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
    export_nvmain(source, desk.at("a.nvt"), &mut |_, _| ()).unwrap();
    let text = std::fs::read_to_string(desk.at("a.nvt")).unwrap();
    let cycles: Vec<&str> = text
        .lines()
        .skip(1)
        .map(|l| l.split_once(' ').unwrap().0)
        .collect();
    assert_eq!(cycles, ["5", "2000", "4000"]);
}

/// Words that some format knows, and some that none does.
fn word() -> impl Strategy<Value = String> {
    prop_oneof![
        prop::sample::select(vec![
            "NVMV1",
            "R",
            "W",
            "LD",
            "ST",
            "READ",
            "WRITE",
            "0x40",
            "7",
            "0,0,0,0,0,0"
        ])
        .prop_map(str::to_owned),
        "[0-9a-fx]{1,20}",
        Just("00".repeat(64)),
        any::<String>(),
    ]
}

proptest! {
    #![proptest_config(sardonyx_property::cases(256))]
    #[test]
    fn any_text_is_converted_or_refused_in_words(
        lines in prop::collection::vec(prop::collection::vec(word(), 0..5), 0..6),
        header: bool,
    ) {
        let lines: Vec<String> = lines.iter().map(|words| words.join(" ")).collect();
        let text = format!("{}{}", if header { "NVMV1\n" } else { "" }, lines.join("\n"));
        for format in Format::ALL {
            if let Err(error) = plain(&text, format) {
                prop_assert!(error.contains("in.txt"), "{}", error);
            }
        }
    }
}

#[test]
fn a_limit_stops_before_a_bad_line() {
    let options = ImportOptions {
        limit: 2,
        ..ImportOptions::default()
    };
    let records = Desk::new().import("LD 0\nLD 64\nLD x\n", Format::RamulatorLoadStore, &options);
    assert_eq!(records.unwrap().len(), 2);
}

/// Requests as other simulators have them: which moment, whether a write, which line.
fn asked(records: &[Record]) -> Vec<(u64, bool, u64)> {
    let mut moment = 0;
    let told = records.iter().map(|record| {
        moment += u64::from(record.gap);
        let write = record.op.is_write() || record.op == Op::Store;
        (moment, write, record.line.0)
    });
    told.collect()
}

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

fn varint(mut value: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    while value > 127 {
        bytes.push(value as u8 | 128);
        value >>= 7;
    }
    bytes.push(value as u8);
    bytes
}

fn message(fields: &[(u64, u64)]) -> Vec<u8> {
    let body: Vec<u8> = fields
        .iter()
        .flat_map(|&(field, value)| [varint(field << 3), varint(value)].concat())
        .collect();
    [varint(body.len() as u64), body].concat()
}

#[test]
fn gem5s_packets_are_requests_of_their_lines() {
    let desk = Desk::new();
    let head = [b"gem5".to_vec(), message(&[(2, 0), (3, 1_000_000_000_000)])].concat();
    let packets = [
        message(&[(1, 5_000), (2, 1), (3, 0x1000), (4, 64)]),
        message(&[(1, 6_500), (2, 17), (3, 0x1000), (4, 64)]), // an upgrade moves no bytes
        message(&[(1, 9_000), (2, 7), (3, 0x2000), (4, 64), (5, 300)]),
        message(&[(1, 11_000), (2, 4), (3, 0x303c), (4, 8)]), // two lines
    ];
    let trace = [head.clone(), packets.concat()].concat();
    let options = ImportOptions::default();
    let records = desk.import(&trace, Format::Gem5Packets, &options).unwrap();
    let lines = [
        (0, false, 0x40),
        (4, true, 0x80),
        (6, true, 0xc0),
        (6, true, 0xc1),
    ];
    assert_eq!(asked(&records), lines);
    let twice = ImportOptions {
        clock_mhz: Some(2000.0),
        ..options.clone()
    };
    let records = desk.import(&trace, Format::Gem5Packets, &twice).unwrap();
    assert_eq!(asked(&records)[1].0, 8);

    let fail = |trace: &[u8]| {
        desk.import(trace, Format::Gem5Packets, &options)
            .unwrap_err()
    };
    assert!(fail(&trace[..trace.len() - 1]).contains("ends in the middle"));
    assert!(fail(b"\x1f\x8b\x08\0").contains("in the middle"));
    assert!(fail(b"NVMV1").contains("gem5's mark"));
    assert!(fail(&head).contains("holds no request"));
    let back = [head.clone(), packets[3].clone(), packets[0].clone()].concat();
    assert!(
        fail(&back).contains("packet 2: time goes back"),
        "{}",
        fail(&back)
    );
    let strange = [head.clone(), message(&[(1, 5)])].concat();
    assert!(fail(&strange).contains("packet 1: has no tick, command or address"));
    let huge = [head, message(&[(1, 5), (2, 1), (3, 0), (4, 1 << 40)])].concat();
    assert!(
        fail(&huge).contains("packet 1: 1099511627776 bytes"),
        "{}",
        fail(&huge)
    );
}

proptest! {
    #![proptest_config(sardonyx_property::cases(64))]
    #[test]
    fn bytes_of_any_kind_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        let desk = Desk::new();
        let marked = [&b"gem5"[..], &bytes].concat();
        for (format, bytes) in [(Format::ChampSim, &bytes), (Format::Gem5Packets, &marked)] {
            let _ = desk.import(bytes, format, &ImportOptions::default());
        }
    }

    #[test]
    fn what_is_written_for_others_is_read_back(mut records in requests()) {
        let desk = Desk::new();
        let (ours, theirs) = (desk.at("a.parquet"), desk.at("theirs"));
        records.iter_mut().for_each(|record| record.gap %= 300);
        write(&ours, &records);
        let wanted = asked(&records);
        for format in [Format::RamulatorLoadStore, Format::DramSim3, Format::ChampSim] {
            let source = Source::open(&ours).unwrap();
            let exported = export(source, &theirs, format, &mut |_, _| ()).unwrap();
            prop_assert_eq!(exported.requests, records.len() as u64);
            let bytes = std::fs::read(&theirs).unwrap();
            let read = desk.import(bytes, format, &ImportOptions::default()).unwrap();
            let told = asked(&read);
            for (told, wanted) in told.iter().zip(&wanted) {
                prop_assert_eq!((told.1, told.2), (wanted.1, wanted.2));
            }
            if format == Format::DramSim3 {
                prop_assert_eq!(&told, &wanted);
            }
            prop_assert_eq!(told.len(), wanted.len());
        }
        let source = Source::open(&ours).unwrap();
        prop_assert!(export(source, &theirs, Format::RamulatorReadWrite, &mut |_, _| ()).is_err());
    }
}
