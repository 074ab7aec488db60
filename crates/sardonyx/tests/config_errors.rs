//! What a machine file may get wrong: each fault is an error that names the key, and nothing that
//! anybody can write makes the reader panic.
use proptest::prelude::*;
use sardonyx::config::{ConfigError, Machine, fuzz_entry, keys, presets};

fn set(key: &str, value: &str) -> ConfigError {
    match Machine::load("esd", &[(key, value)]) {
        Ok(_) => panic!("{key} = {value} was accepted"),
        Err(error) => error,
    }
}

fn file(text: &str) -> ConfigError {
    match Machine::parse(text, "mine.toml") {
        Ok(_) => panic!("accepted: {text}"),
        Err(error) => error,
    }
}

#[test]
fn every_bad_value_is_an_error_that_names_its_key() {
    let bad = [
        ("medium.geometry.banks", &["0", "6", "-8", "128", "8.0"][..]),
        ("medium.geometry.ranks", &["3", "0", "128"]),
        ("medium.geometry.channels", &["0", "-1"]),
        ("medium.geometry.columns", &["63", "0"]),
        (
            "medium.geometry.rows",
            &["0", "9223372036854775808", "68719476736", "1.5", "", "1e3"],
        ),
        (
            "medium.geometry.rows",
            &["99999999999999999999999999999999999999999999999"],
        ),
        ("medium.timing.tRCD", &["-5", "30.5", "4000000000", "75ns"]),
        (
            "medium.timing.tRCD_ns",
            &["-0.1", "nan", "inf", "1000000001"],
        ),
        ("medium.timing.tBURST", &["0"]),
        ("medium.timing.tCCD", &["0"]),
        ("medium.timing.tCWD", &["50"]),
        (
            "medium.timing.clock_ns",
            &["0", "0.0001", "-1", "nan", "1e9"],
        ),
        ("medium.queues.reads", &["0"]),
        ("medium.queues.high_watermark", &["33"]),
        ("medium.queues.low_watermark", &["32"]),
        ("medium.queues.starvation", &["0"]),
        ("medium.queues.scheduler", &["fifo"]),
        ("medium.queues.idle_writes", &["yes", "1"]),
        ("medium.energy.read_nj", &["-1", "NaN"]),
        ("medium.energy.write_nj", &["inf", "1e300"]),
        ("medium.endurance", &["0"]),
        ("units.aes.latency_ns", &["1e10", "fast"]),
        ("units.sha1.energy_nj", &["-inf"]),
        ("core.clock_ns", &["0"]),
        ("core.width", &["0"]),
        ("core.mshrs", &["0"]),
        ("cores", &["0", "100000"]),
        ("engine.ingress", &["0"]),
        ("encryption.counter_cache.bytes", &["64", "1000"]),
        ("encryption.counter_cache.ways", &["0"]),
        ("esd.efit_bytes", &["111", "0"]),
        ("esd.refer_max", &["256", "0"]),
        ("esd.collision", &["maybe"]),
        ("esd.matrix", &["hamming"]),
        ("full_dedup.digest_bytes", &["21"]),
        ("dewrite.history", &["0"]),
    ];
    for (key, values) in bad {
        for value in values {
            let error = set(key, value);
            assert_eq!(error.key.as_deref(), Some(key), "{key} = {value}: {error}");
            assert!(
                !error.remedy.is_empty(),
                "{key} = {value}: no remedy in {error}"
            );
        }
    }
}

#[test]
fn too_many_banks_in_all_names_the_geometry() {
    let overrides = [
        ("medium.geometry.ranks", "8"),
        ("medium.geometry.banks", "16"),
    ];
    let error = Machine::load("esd", &overrides).unwrap_err();
    assert_eq!(error.key.as_deref(), Some("medium.geometry.banks"));
    assert!(error.problem.contains("64"), "{error}");
}

#[test]
fn an_impossible_combination_names_what_the_user_wrote() {
    let error = file("extends = \"esd\"\n[medium.queues]\nwrites = 8\n");
    assert_eq!(
        (error.line, error.key.as_deref()),
        (Some(3), Some("medium.queues.writes"))
    );
    let error = set("esd.amt_ways", "1000");
    assert!(error.file.contains("--set"), "{error}");
}

#[test]
fn a_refresh_must_fit_its_period() {
    let error = Machine::load("ddr4-2400", &[("medium.timing.tRFC", "0")]).unwrap_err();
    assert_eq!(error.key.as_deref(), Some("medium.timing.tRFC"));
}

#[test]
fn an_unknown_key_names_its_line_and_the_nearest() {
    let error = file("extends = \"esd\"\n\n[esd]\nefit_byte = 4096\n");
    assert!(
        error
            .to_string()
            .starts_with("mine.toml, line 4, esd.efit_byte: "),
        "{error}"
    );
    assert!(error.remedy.contains("esd.efit_bytes"), "{error}");
    assert!(set("efit_bytes", "1").remedy.contains("esd.efit_bytes"));
    assert!(
        set("medium.timing.trcd", "1")
            .remedy
            .contains("medium.timing.tRCD")
    );
}

#[test]
fn sections_and_values_are_not_each_other() {
    assert_eq!(
        file("extends = \"esd\"\nmedium = 3\n").key.as_deref(),
        Some("medium")
    );
    let inside = file("extends = \"esd\"\nesd.efit_bytes.kb = 512\n");
    assert_eq!(inside.key.as_deref(), Some("esd.efit_bytes"));
    assert_eq!(
        file("extends = \"esd\"\n[mediun]\n").key.as_deref(),
        Some("mediun")
    );
}

#[test]
fn cycles_and_nanoseconds_of_one_timing_exclude_each_other() {
    let error = file("extends = \"esd\"\n[medium.timing]\ntRCD = 30\ntRCD_ns = 75\n");
    assert!(error.problem.contains("twice"), "{error}");
    assert!(
        error
            .key
            .is_some_and(|key| key.starts_with("medium.timing.tRCD"))
    );
}

#[test]
fn types_are_not_bent() {
    for value in [
        "\"8\"",
        "8.0",
        "true",
        "[8]",
        "1979-05-27",
        "{ a = 1 }",
        "nan",
        "-8",
    ] {
        let error = file(&format!(
            "extends = \"esd\"\n[medium.geometry]\nbanks = {value}\n"
        ));
        let key = error.key.as_deref().unwrap_or_default();
        assert!(key.starts_with("medium.geometry.banks"), "{value}: {error}");
        assert_eq!(error.line, Some(3), "{value}: {error}");
    }
}

#[test]
fn a_file_that_extends_nothing_must_be_whole() {
    let error = file("name = \"mine\"\ncores = 1\n");
    assert_eq!(error.key.as_deref(), Some("core.clock_ns"));
    assert!(
        error.problem.contains("more") && error.remedy.contains("extends"),
        "{error}"
    );
}

#[test]
fn extends_names_a_preset() {
    let error = file("extends = \"esb\"\n");
    assert_eq!(
        (error.line, error.key.as_deref()),
        (Some(1), Some("extends"))
    );
    assert!(error.remedy.contains("\"esd\""), "{error}");
}

#[test]
fn an_assumption_needs_a_known_key_and_a_reason() {
    let unknown = file("extends = \"esd\"\n[assumed]\n\"esd.efit\" = \"why\"\n");
    assert_eq!(
        (unknown.line, unknown.key.as_deref()),
        (Some(3), Some("esd.efit"))
    );
    let silent = file("extends = \"esd\"\n[assumed]\n\"esd.efit_bytes\" = \"\"\n");
    assert_eq!(silent.key.as_deref(), Some("esd.efit_bytes"));
}

#[test]
fn broken_toml_names_its_line() {
    let error = file("extends = \"esd\"\n[medium\n");
    assert!(
        error.to_string().starts_with("mine.toml, line 2"),
        "{error}"
    );
}

#[test]
fn a_machine_that_is_not_there_names_those_that_are() {
    let error = Machine::load::<&str, &str>("edsd", &[])
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("did you mean \"esd\"?") && error.contains("nvmain-a"),
        "{error}"
    );
    let error = Machine::load::<&str, &str>("no/such.toml", &[])
        .unwrap_err()
        .to_string();
    assert!(error.starts_with("no/such.toml: "), "{error}");
}

#[test]
fn a_directory_and_bytes_that_are_not_text_are_errors() {
    let dir = tempfile::tempdir().unwrap();
    assert!(Machine::load::<&str, &str>(dir.path().to_str().unwrap(), &[]).is_err());
    let path = dir.path().join("bytes.toml");
    std::fs::write(&path, [0xff, 0xfe, 0x00]).unwrap();
    let error = Machine::load::<&str, &str>(path.to_str().unwrap(), &[]).unwrap_err();
    assert!(error.remedy.contains("UTF-8"), "{error}");
}

/// Values that a careless or hostile hand might write.
fn values() -> impl Strategy<Value = String> {
    prop_oneof![
        any::<i64>().prop_map(|n| n.to_string()),
        any::<f64>().prop_map(|n| format!("{n:?}")),
        any::<u128>().prop_map(|n| n.to_string()),
        (0u32..64).prop_map(|bit| (1u64 << bit).to_string()),
        "[a-z-]{0,12}",
        Just("true".to_owned()),
        Just("0x7fffffffffffffff".to_owned()),
        Just("[]".to_owned()),
    ]
}

/// An override is in the machine that is written out and read again, or the error names its key and a remedy.
fn applied_or_named(name: &str, value: &str) {
    match Machine::load("esd", &[(name, value)]) {
        Ok(machine) => {
            let again = Machine::parse(&machine.to_toml(), "again.toml");
            assert_eq!(again, Ok(machine), "{name}={value}");
        }
        Err(error) => assert!(!error.remedy.is_empty() && error.key.is_some(), "{error}"),
    }
}

#[test]
fn minus_zero_is_applied_or_named() {
    for key in keys() {
        applied_or_named(key.name, "-0.0");
    }
}

proptest! {
    #![proptest_config(sardonyx_property::cases(256))]

    #[test]
    fn byte_soup_never_panics(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        fuzz_entry(&bytes);
    }

    #[test]
    fn a_mutated_preset_never_panics(
        preset in 0..presets().len(),
        edits in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
    ) {
        let mut bytes = presets()[preset].text.as_bytes().to_vec();
        for (at, byte) in edits {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        fuzz_entry(&bytes);
    }

    #[test]
    fn a_shuffled_preset_never_panics(
        preset in 0..presets().len(),
        lines in prop::collection::vec(any::<prop::sample::Index>(), 0..60),
    ) {
        let all: Vec<&str> = presets()[preset].text.lines().collect();
        let text: Vec<&str> = lines.iter().map(|at| all[at.index(all.len())]).collect();
        fuzz_entry(format!("extends = \"esd\"\n{}", text.join("\n")).as_bytes());
    }

    #[test]
    fn any_override_is_applied_or_named(key in any::<prop::sample::Index>(), value in values()) {
        let names: Vec<&str> = keys().map(|key| key.name).collect();
        applied_or_named(names[key.index(names.len())], &value);
    }
}

#[test]
fn a_range_that_cannot_be_one_is_an_error() {
    let assumed = |entry: &str| file(&format!("extends = \"esd\"\n[assumed]\n{entry}\n"));
    for (entry, problem) in [
        (
            "\"core.width\" = { low = 1, high = 8, range = \"x\" }",
            "without a why",
        ),
        ("\"core.width\" = { why = \"x\", low = 1 }", "half a range"),
        (
            "\"core.width\" = { why = \"x\", low = 1, high = 8 }",
            "half a range",
        ),
        (
            "\"core.width\" = { why = \"x\", low = 1, high = 8, range = \"x\", inert = \"x\" }",
            "half a range",
        ),
        ("\"core.width\" = { why = \"x\", least = 1 }", "\"least\""),
        (
            "\"core.width\" = { why = \"x\", low = 5, high = 8, range = \"x\" }",
            "4, is not between 5 and 8",
        ),
        (
            "\"core.width\" = { why = \"x\", low = 0, high = 8, range = \"x\" }",
            "its low: 0 is out of range",
        ),
        (
            "\"core.width\" = { why = \"x\", low = \"a\", high = 8, range = \"x\" }",
            "its low",
        ),
        (
            "\"places.reuse\" = { why = \"x\", low = \"fifo\", high = \"lifo\", range = \"x\" }",
            "takes words",
        ),
    ] {
        let error = assumed(entry);
        assert!(error.to_string().contains(problem), "{entry}: {error}");
        assert!(error.to_string().contains("mine.toml"), "{error}");
        assert_eq!(error.line, Some(3), "{error}");
    }
}

/// A key that does nothing is an error if a user has set it, and its own business if a preset has.
#[test]
fn what_does_nothing_is_an_error_where_a_user_says_it() {
    for (machine, key, value, switch) in [
        (
            "esd",
            "medium.pausing.iterations",
            "8",
            "medium.pausing.policy",
        ),
        ("esd", "medium.pausing.times", "2", "medium.pausing.policy"),
        (
            "esd",
            "medium.levelling.region_lines",
            "16",
            "medium.levelling.scheme",
        ),
        (
            "esd",
            "medium.levelling.registers",
            "group",
            "medium.levelling.scheme",
        ),
        ("esd", "medium.cells.group", "16", "medium.cells.coding"),
        (
            "esd",
            "medium.cells.sets_per_reset",
            "3",
            "medium.cells.budget",
        ),
        (
            "esd",
            "medium.buffer.victim",
            "oldest",
            "medium.buffer.blocks",
        ),
        ("esd", "medium.buffer.hit_ns", "5", "medium.buffer.blocks"),
        ("esd", "link.first", "oldest", "a time of link"),
        ("esd", "think.bytes", "64", "think.loads"),
    ] {
        let told = Machine::load(machine, &[(key, value)])
            .unwrap_err()
            .to_string();
        let said = told.starts_with(&format!(
            "--set {key}={value}, {key}: does nothing unless {switch}"
        ));
        assert!(said && told.contains("; set "), "{told}");
        let text = |value: &str| match value.parse::<u64>() {
            Ok(_) => format!("extends = \"{machine}\"\n{key} = {value}\n"),
            Err(_) => format!("extends = \"{machine}\"\n{key} = \"{value}\"\n"),
        };
        // In a file as well, but for what it is anyway.
        let same = Machine::load(machine, &[("", ""); 0]).unwrap().parameters()[key].to_string();
        let other = if same == value { "9" } else { value };
        let told = Machine::parse(&text(other), "my.toml")
            .unwrap_err()
            .to_string();
        assert!(
            told.starts_with("my.toml, line 2") && told.contains("does nothing"),
            "{told}"
        );
        let same = same.to_string().trim_matches('"').replace(".0", "");
        let whole = Machine::parse(&text(&same), "my.toml").unwrap();
        assert_eq!(Machine::parse(&whole.to_toml(), "again.toml"), Ok(whole));
    }
    for (on, key) in [
        (
            ("medium.pausing.policy", "pause"),
            "medium.pausing.threshold",
        ),
        (
            ("medium.pausing.policy", "cancel"),
            "medium.pausing.iterations",
        ),
        (("medium.cells.coding", "changed"), "medium.cells.group"),
        (
            ("encryption.global_counter", "paper"),
            "encryption.mark_stride",
        ),
        (
            ("encryption.deuce.epoch", "1"),
            "encryption.deuce.word_bytes",
        ),
    ] {
        let told = Machine::load("esd", &[on, (key, "8")])
            .unwrap_err()
            .to_string();
        assert!(told.contains("does nothing unless"), "{told}");
    }
    // What a preset has more to say of may be switched off.
    let off = Machine::load("optane", &[("medium.buffer.blocks", "0")]).unwrap();
    assert_eq!(Machine::parse(&off.to_toml(), "again.toml"), Ok(off));
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("mine.toml");
    let text =
        "extends = \"esd\"\nmedium.pausing.policy = \"pause\"\nmedium.pausing.iterations = 5\n";
    std::fs::write(&file, text).unwrap();
    let off = Machine::load(file.to_str().unwrap(), &[("medium.pausing.policy", "none")]).unwrap();
    assert_eq!(off.parameters()["medium.pausing.iterations"], 8);
}
