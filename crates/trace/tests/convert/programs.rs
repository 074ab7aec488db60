//! Accesses of programs as instrumentation writes them: Pin, Valgrind's Lackey, DynamoRIO.

use sardonyx_trace::{Format, ImportOptions, Op, Source, TraceReader, import};

use super::{Desk, in_short, plain};

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

/// The view tool names threads `T77`, `77` (from 2022 on) or, with the workload, `W0.T77`.
#[test]
fn threads_of_dynamorio_are_told_apart_in_every_year() {
    for [one, other] in [
        ["T77", "T78"],
        ["1 1: T77", "3 1: T78"],
        ["1 1: 77", "3 1: 78"],
        ["1 1: W0.T77", "3 1: W1.T77"],
    ] {
        let text = format!(
            "{one} ifetch 4 byte(s) @ 0x10 non-branch\n{one} write 8 byte(s) @ 0x1000 by PC 0x10\n\
             {other} read 8 byte(s) @ 0x1040 by PC 0x10\n{one} read 8 byte(s) @ 0x1080 by PC 0x10\n"
        );
        let wanted = [(1, 0, true, 0x40), (0, 1, false, 0x41), (0, 0, false, 0x42)];
        assert_eq!(in_short(&text, Format::DynamoRio), wanted, "{one}");
    }
}

const PLACED: &str = "1 0: 7 <marker: page size 4096>\n\
    2 1: 7 <marker: physical address for following virtual: 0xf52ace040>\n\
    3 1: 7 <marker: virtual address for prior physical: 0x7fed14de0040>\n\
    4 1: 7 write 8 byte(s) @ 0x00007fed14de0ffc by PC 0x10\n";

#[test]
fn markers_of_dynamorio_say_where_pages_are() {
    let desk = Desk::new();
    let convert = |text: &str| {
        let (from, to) = (desk.at("in.txt"), desk.at("out.parquet"));
        std::fs::write(&from, text).unwrap();
        let options = ImportOptions::default();
        let imported = import(&from, &to, Format::DynamoRio, &options, &mut |_, _| ()).unwrap();
        let physical = Source::open(&to).unwrap().provenance().is_physical();
        let lines: Vec<u64> = crate::common::read(&to).iter().map(|r| r.line.0).collect();
        (lines, imported.untranslated, physical)
    };
    // The second half of the write is in the next page, which has no place yet.
    let (line, beyond) = (0xf_52ac_efc0 / 64, 0x7fed_14de_1000 / 64);
    assert_eq!(convert(PLACED), (vec![line, beyond], Some(1), false));
    let next = "1 1: 7 <marker: physical address for following virtual: 0x3000>\n\
                2 1: 7 <marker: virtual address for prior physical: 0x7fed14de1000>\n";
    let whole = format!("{next}{PLACED}");
    assert_eq!(convert(&whole), (vec![line, 0x3000 / 64], Some(0), true));
    // A page that moves, one that is no longer known, and one of another workload.
    let read = "5 2: 7 read 4 byte(s) @ 0x00007fed14de0000 by PC 0x10\n";
    let moved = PLACED
        .replace("write 8", "write 4")
        .replace("0xf52ace", "0x4")
        + read;
    let gone = "4 1: 7 <marker: physical address not available for 0x7fed14de0040>\n";
    let [before, after] = [0x4fc0 / 64, 0x4000 / 64];
    assert_eq!(convert(&moved), (vec![before, after], Some(0), true));
    let virtual_line = 0x7fed_14de_0000 / 64;
    let forgotten = moved.replace(read, &format!("{gone}{read}"));
    assert_eq!(
        convert(&forgotten),
        (vec![before, virtual_line], Some(1), false)
    );
    let other = moved.replace("5 2: 7", "5 2: W1.T7");
    assert_eq!(
        convert(&other),
        (vec![before, virtual_line], Some(1), false)
    );
    let none = convert(read);
    assert_eq!(none, (vec![virtual_line], None, false));
    let alone = "1 1: 7 <marker: virtual address for prior physical: 0x7000>\n";
    let error = plain(alone, Format::DynamoRio).unwrap_err();
    assert!(
        error.contains("line 1") && error.contains("before it"),
        "{error}"
    );
}

/// The address of each record's instruction, as its site says.
fn pcs(bytes: &[u8], format: Format) -> Vec<Option<u64>> {
    let desk = Desk::new();
    let (from, to) = (desk.at("in"), desk.at("out.parquet"));
    std::fs::write(&from, bytes).unwrap();
    import(
        &from,
        &to,
        format,
        &ImportOptions::default(),
        &mut |_, _| (),
    )
    .unwrap();
    let mut reader = TraceReader::open(&to).unwrap();
    let sites = reader.provenance().more["sites"].clone();
    let (mut batch, mut numbers) = (Vec::new(), Vec::new());
    assert!(
        reader
            .next_batch_at(&mut batch, Some(&mut numbers))
            .unwrap()
    );
    let pc = |site: u32| sites[site as usize][1].as_u64().unwrap();
    numbers.iter().map(|site| site.map(pc)).collect()
}

#[test]
fn instructions_of_accesses_are_kept() {
    assert_eq!(
        pcs(PIN.as_bytes(), Format::Pinatrace),
        [Some(0x7f10), Some(0x7f12)]
    );
    let [first, second] = [Some(0x7f6f_dd3e_c363), Some(0x7f6f_dd3e_c368)];
    assert_eq!(
        pcs(VIEW.as_bytes(), Format::DynamoRio),
        [first, second, second]
    );
    let usimm = b"2 R 0x10040 0x400000\n0 W 0x10080\n5 R 0x20000 0x400000\n";
    let read = Some(0x40_0000);
    assert_eq!(pcs(usimm, Format::Usimm), [read, None, read]);
    let mut instruction = [0; 64];
    instruction[..8].copy_from_slice(&u64::MAX.to_le_bytes());
    instruction[32] = 64;
    instruction[16] = 128;
    assert_eq!(pcs(&instruction, Format::ChampSim), [Some(u64::MAX); 2]);
}

#[test]
fn a_recording_of_dynamorio_that_is_no_text_names_the_view_tool() {
    let desk = Desk::new();
    let bytes: [&[u8]; 3] = [
        b"PK\x03\x04\x14\0\0\0\x08\0\xff\xfe",
        &[0x80; 40],
        &[0; 9000],
    ];
    for bytes in bytes {
        let options = ImportOptions::default();
        let error = desk.import(bytes, Format::DynamoRio, &options).unwrap_err();
        assert!(
            error.contains("drrun -t drmemtrace -tool view -indir"),
            "{error}"
        );
    }
    let (folder, to) = (desk.at(""), desk.at("out.parquet"));
    let options = ImportOptions::default();
    let error = import(folder, to, Format::DynamoRio, &options, &mut |_, _| ()).unwrap_err();
    assert!(error.to_string().contains("-tool view"), "{error}");
}
