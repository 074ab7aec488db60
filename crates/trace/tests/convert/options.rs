//! What whoever converts can ask for, and what the trace says of it.

use sardonyx_trace::{Arrivals, Fill, Format, GapUnit, ImportOptions, Provenance, Source};

use super::Desk;

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

#[test]
fn a_limit_stops_before_a_bad_line() {
    let options = ImportOptions {
        limit: 2,
        ..ImportOptions::default()
    };
    let records = Desk::new().import("LD 0\nLD 64\nLD x\n", Format::RamulatorLoadStore, &options);
    assert_eq!(records.unwrap().len(), 2);
}
