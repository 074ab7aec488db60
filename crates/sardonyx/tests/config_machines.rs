//! The machines that come with the program: each is valid, says where its values come from,
//! survives a round trip and has the capacity that its source states.
use sardonyx::config::{Machine, Range, keys, presets};
use sardonyx::controller::encryption::ENABLED;
use sardonyx::controller::mapping::efit::{EFIT, POLICY};
use sardonyx::controller::mapping::esd::{
    AMT_CACHE, COLLISION, Collision, MATRIX, RECLAIM, Reclaim,
};
use sardonyx::controller::metadata_cache::Replacement;
use sardonyx::ecc::Matrix;
use sardonyx::medium::params::{Scheduler, Unit};
use sardonyx::units::{Energy, Time};

const GIB: u64 = 1 << 30;

fn load(name: &str) -> Machine {
    Machine::load::<&str, &str>(name, &[]).unwrap_or_else(|error| panic!("{error}"))
}

fn ns(ns: f64) -> Time {
    Time::from_ns(ns)
}

#[test]
fn every_preset_is_valid_and_survives_a_round_trip() {
    for preset in presets() {
        let machine = load(preset.name);
        assert_eq!(machine.name, preset.name);
        assert!(!machine.source.is_empty());
        assert_eq!(machine.source, preset.source());
        let again = Machine::parse(&machine.to_toml(), "again.toml").unwrap();
        assert_eq!(again, machine);
        assert_eq!(again.to_toml(), machine.to_toml());
    }
}

#[test]
fn capacities_are_those_of_the_sources() {
    let capacities = [
        ("esd", 16),
        ("nvmain-a", 16),
        ("sca", 8),
        ("easy-pm", 8),
        ("pageforge", 16),
        ("pcm-isscc-2012", 4),
        ("nvm-2400", 512),
        ("ddr4-2400", 16),
    ];
    for (name, gib) in capacities {
        assert_eq!(load(name).capacity_bytes(), gib * GIB, "{name}");
    }
}

#[test]
fn esd_has_the_values_of_its_table() {
    let machine = load("esd");
    let timing = &machine.engine.medium.timing;
    assert_eq!(
        (timing.clock * timing.tRCD, timing.clock * timing.tWP),
        (ns(75.0), ns(150.0))
    );
    let energy = &machine.engine.medium.energy;
    assert_eq!(
        (energy.read, energy.write),
        (Energy::from_nj(1.49), Energy::from_nj(6.75))
    );
    assert_eq!(machine.core.clock, ns(0.5));
    assert_eq!(machine.engine.units[Unit::Aes as usize].latency, ns(40.0));
    assert_eq!(machine.engine.units[Unit::Sha1 as usize].latency, ns(321.0));
    let esd = &machine.settings;
    for table in [&EFIT, &AMT_CACHE] {
        assert_eq!(esd.cache(table).bytes, 512 << 10);
    }
    assert_eq!(esd.get(&POLICY), Replacement::Lrcu);
    assert_eq!(esd.get(&COLLISION), Collision::Keep);
    assert_eq!(esd.get(&RECLAIM), Reclaim::Counted);
    assert_eq!(esd.get(&MATRIX), Matrix::TruncatedHamming);
    assert!(esd.get(&ENABLED));
}

#[test]
fn nvmain_a_differs_from_esd_only_where_nvmain_does() {
    let nvmain = load("nvmain-a");
    let esd = load("esd");
    assert_eq!(nvmain.engine.medium.timing, esd.engine.medium.timing);
    assert_eq!(nvmain.engine.medium.energy, esd.engine.medium.energy);
    assert_eq!(nvmain.engine.medium.geometry, esd.engine.medium.geometry);
    let queues = &nvmain.engine.medium.queues;
    assert!(!queues.idle_writes && !queues.forwarding && !queues.coalescing);
    assert_eq!(queues.scheduler, Scheduler::FrFcfsCap { starvation: 4 });
    assert_eq!((queues.high_watermark, queues.low_watermark), (32, 16));
    assert!(!nvmain.settings.get(&ENABLED));
    assert!(
        !nvmain
            .assumed
            .iter()
            .any(|a| a.parameter.starts_with("medium.queues"))
    );
}

#[test]
fn nanoseconds_round_up_to_cycles() {
    // SCA Table 2 in cycles of 1.876 ns: 48, 15, 13, 50, 7.5 and 300 ns.
    let machine = load("sca");
    let t = &machine.engine.medium.timing;
    assert_eq!(
        (t.tRCD, t.tCL, t.tCWD, t.tFAW, t.tWTR, t.tWR),
        (26, 8, 7, 27, 4, 160)
    );
}

#[test]
fn ddr4_has_its_speed_bin_and_refreshes() {
    let machine = load("ddr4-2400");
    let t = &machine.engine.medium.timing;
    assert_eq!((t.tCL, t.tRCD, t.tRP, t.tWP), (17, 17, 17, 0));
    assert!(t.tREFI > t.tRFC && t.tRFC > 0);
}

#[test]
fn what_is_assumed_is_marked_with_its_value() {
    let machine = load("esd");
    let crc = machine
        .assumed
        .iter()
        .find(|a| a.parameter == "units.crc32.latency_ns")
        .unwrap();
    assert_eq!(crc.value, "15");
    assert!(!crc.why.is_empty());
    assert!(
        !machine
            .assumed
            .iter()
            .any(|a| a.parameter == "medium.timing.tRCD")
    );
}

#[test]
fn setting_a_value_anew_drops_its_assumption() {
    let machine = Machine::load("esd", &[("units.crc32.latency_ns", "12")]).unwrap();
    assert!(
        !machine
            .assumed
            .iter()
            .any(|a| a.parameter == "units.crc32.latency_ns")
    );
    assert_eq!(machine.engine.units[Unit::Crc32 as usize].latency, ns(12.0));
    assert!(
        machine
            .assumed
            .iter()
            .any(|a| a.parameter == "units.crc32.energy_nj")
    );
}

#[test]
fn overrides_take_the_type_of_their_key() {
    let overrides = [
        ("esd.efit_bytes", "65_536"),
        ("esd.amt_bytes", "64K"),
        ("esd.policy", "lru"),
        ("medium.timing.tRCD_ns", "76"),
        ("medium.queues.forwarding", "false"),
        ("medium.queues.scheduler", "fcfs"),
        ("cores", "8"),
    ];
    let machine = Machine::load("esd", &overrides).unwrap();
    assert_eq!(machine.settings.cache(&EFIT).bytes, 65_536);
    assert_eq!(machine.settings.named::<u64>("esd.amt_bytes"), 65_536);
    assert_eq!(machine.settings.get(&POLICY), Replacement::Lru);
    assert_eq!(machine.engine.medium.timing.tRCD, 31);
    assert!(!machine.engine.medium.queues.forwarding);
    assert_eq!(machine.engine.medium.queues.scheduler, Scheduler::Fcfs);
    assert_eq!(machine.cores, 8);
    assert_eq!(
        Machine::parse(&machine.to_toml(), "again.toml").unwrap(),
        machine
    );
}

#[test]
fn a_file_extends_a_preset() {
    let text = "extends = \"esd\"\n[medium.timing]\ntRCD_ns = 60\n";
    let machine = Machine::parse(text, "mine/fast.toml").unwrap();
    assert_eq!(machine.name, "fast");
    assert!(
        machine.source.contains("extending esd"),
        "{}",
        machine.source
    );
    assert_eq!(
        (
            machine.engine.medium.timing.tRCD,
            machine.engine.medium.timing.tWP
        ),
        (24, 60)
    );
}

#[test]
fn a_changed_clock_rounds_inherited_nanoseconds_anew() {
    let machine = Machine::load("esd", &[("medium.timing.clock_ns", "1.25")]).unwrap();
    assert_eq!(
        (
            machine.engine.medium.timing.tRCD,
            machine.engine.medium.timing.tCL
        ),
        (60, 1)
    );
}

#[test]
fn the_flat_map_has_every_key() {
    let parameters = load("esd").parameters();
    let two = Machine::load("esd", &[("near.extends", "hbm2")]).unwrap();
    let both = two.parameters();
    for key in keys() {
        let near = key.name.starts_with("near.medium.");
        assert_eq!(parameters.contains_key(key.name), !near, "{}", key.name);
        // A threshold of a scheduler that hbm2 has not.
        let none = key.name == "near.medium.queues.starvation";
        assert_eq!(both.contains_key(key.name), !none, "{}", key.name);
    }
    assert_eq!(both["near.medium.geometry.channels"], 16);
    assert_eq!(two, Machine::parse(&two.to_toml(), "again").unwrap());
    assert_eq!(parameters["units.aes.latency_ns"], 40.0);
    assert_eq!(parameters["esd.collision"], "keep");
    assert_eq!(parameters["cores"], 1);
}

/// What may be tried beside an assumed value.
fn ends(range: &Range) -> Vec<&str> {
    match range {
        Range::Between { low, high, .. } => vec![low, high],
        Range::Others(words) => words.iter().map(String::as_str).collect(),
        Range::Inert(_) => Vec::new(),
    }
}

#[test]
fn every_assumed_value_says_what_else_it_may_be_or_why_that_cannot_matter() {
    for preset in presets() {
        let machine = load(preset.name);
        let assumed = machine.assumed.iter();
        for assumed in assumed.filter(|assumed| machine.matters(&assumed.parameter)) {
            let place = format!("{} {}", preset.name, assumed.parameter);
            let range = assumed.range.clone().unwrap_or_else(|| {
                panic!(
                    "{place}: give it a range where its value is assumed, or say why it is inert"
                )
            });
            if let Range::Between { low, high, why, .. } = &range {
                let [low, value, high] =
                    [low, &assumed.value, high].map(|text| text.parse::<f64>().unwrap());
                assert!(low <= value && value <= high && low < high, "{place}");
                assert!(!why.is_empty(), "{place}");
            }
            for end in ends(&range) {
                Machine::load(preset.name, &[(&assumed.parameter, end)])
                    .unwrap_or_else(|error| panic!("{place}: {error}"));
            }
        }
    }
}

#[test]
fn the_papers_machines_have_ranges_of_their_own_for_what_decides_their_figures() {
    for (name, at_least) in [("esd", 12), ("sca", 10), ("easy-pm", 10), ("pageforge", 8)] {
        let machine = load(name);
        let varied = machine.assumed.iter().filter(|assumed| {
            matches!(
                &assumed.range,
                Some(Range::Between { .. } | Range::Others(_))
            )
        });
        assert!(varied.count() >= at_least, "{name}");
    }
}

#[test]
fn a_range_belongs_to_a_value_as_its_mark_does() {
    let range = |machine: &Machine, key: &str| {
        let mut assumed = machine.assumed.iter();
        let found = assumed.find(|assumed| assumed.parameter == key);
        found.and_then(|assumed| assumed.range.clone())
    };
    let machine = load("esd");
    assert_eq!(
        range(&machine, "places.reuse"),
        Some(Range::Others(vec!["lifo".to_owned(), "nearest".to_owned()]))
    );
    let set = Machine::load("esd", &[("core.width", "2")]).unwrap();
    assert_eq!(range(&set, "core.width"), None);
    let text = "extends = \"esd\"\n[core]\nwidth = 6\n[assumed]\n\
                \"core.width\" = { why = \"ours\", low = 5, high = 7, range = \"near\" }\n";
    let own = Machine::parse(text, "mine.toml").unwrap();
    let Some(Range::Between { low, high, why, .. }) = range(&own, "core.width") else {
        panic!("no range");
    };
    assert_eq!((&*low, &*high, &*why), ("5", "7", "near"));
    assert_eq!(Machine::parse(&own.to_toml(), "mine.toml").unwrap(), own);
}
