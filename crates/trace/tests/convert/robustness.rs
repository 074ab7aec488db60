//! Texts and bytes of any kind: they are converted, or refused in words.

use std::path::Path;

use proptest::prelude::*;
use sardonyx_trace::{Format, ImportOptions, Source, export, import};

use super::{Desk, asked, plain, requests, write};

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
