//! The explorer's plan: sound designs hold under it, and it says so only if it has tried what could
//! break them.

use sardonyx::crash::{Options, Platform, Trial};
use sardonyx::workload::{self, DurabilityKind};
use serde_json::Value;

/// The designs that promise to recover and to keep their pads secret.
const SOUND: [&str; 10] = [
    "fca",
    "sca",
    "co-located",
    "co-located-cc",
    "no-encryption",
    "ideal",
    "esd-sound",
    "dedup-sha1-sound",
    "dewrite-sound",
    "esd+sca",
];

fn trial(program: &str, design: &str, seed: u64) -> Trial {
    Trial {
        machine: "sca".into(),
        overrides: Vec::new(),
        design: design.into(),
        program: program.into(),
        durability: DurabilityKind::default(),
        seed,
        cores: None,
        transactions: None,
        item_bytes: None,
        footprint: None,
        options: Options::default(),
        thorough: None,
    }
}

fn answer(trial: &Trial) -> Value {
    let answer = trial.answer(&|_, _| true).expect("a design and a program");
    serde_json::to_value(answer.expect("nobody cancels")).expect("JSON")
}

/// Each design on two platforms, each time under another program: over 200,000 cuts.
#[test]
fn sound_designs_hold_on_both_platforms_and_are_exercised() {
    let programs = workload::all();
    let mut cuts = 0;
    for (number, design) in SOUND.iter().enumerate() {
        for (turn, platform) in [Platform::Adr, Platform::Eadr].into_iter().enumerate() {
            let program = programs[(number + 3 * turn) % programs.len()].name;
            let mut trial = trial(program, design, 1 + number as u64);
            trial.options.platform = platform;
            trial.cores = (number % 4 == 1).then_some(4);
            let told = answer(&trial);
            assert_eq!(told["verdict"], "holds", "{program} {design}: {told:#}");
            cuts += told["cuts"].as_u64().unwrap();
        }
    }
    assert!(cuts > 200_000, "{cuts}");
}

/// The programs have no log of their own; `alc` leaves the counters of the hardware's behind.
#[test]
fn the_hardware_log_undoes_what_programs_leave_at_every_cut() {
    let told = |program, design, cores| {
        let durability = DurabilityKind::Hardware;
        let trial = trial(program, design, 1);
        answer(&Trial {
            durability,
            cores,
            ..trial
        })
    };
    for program in workload::all() {
        for cores in [Some(1), Some(4)] {
            let told = told(program.name, "hw-log", cores);
            assert_eq!(told["verdict"], "holds", "{}: {told:#}", program.name);
        }
    }
    assert_eq!(told("btree", "alc", None)["verdict"], "caught");
    // Without a log nothing is undone.
    assert_eq!(told("btree", "sca", None)["verdict"], "broken");
}

/// What no paper says must not be what a design's promise hangs on: how groups merge, where a log's buckets
/// lie and in which order they come back, where their headers are counted, how addresses are cut up.
#[test]
fn designs_hold_whatever_is_chosen_where_no_paper_says() {
    let merging = ("medium.queues.group_merging", "member");
    let again = ("medium.queues.remerging", "true");
    let cases: [(&str, &[(&str, &str)]); 11] = [
        ("sca", &[merging]),
        ("sca", &[merging, again]),
        ("co-located", &[again]),
        ("fca", &[merging, ("medium.mapping", "dramsim2-2")]),
        ("esd-sound", &[merging, ("medium.regions_skew", "192")]),
        ("hw-log", &[merging]),
        (
            "hw-log",
            &[("log.reuse", "lifo"), ("log.placement", "packed")],
        ),
        ("easy-pm", &[merging, again]),
        (
            "easy-pm",
            &[("log.reuse", "lifo"), ("log.placement", "packed")],
        ),
        ("easy-pm", &[("easy_pm.valid_headers", "registers")]),
        ("easy-pm", &[("easy_pm.valid_headers", "medium"), merging]),
    ];
    for (number, (design, settings)) in cases.into_iter().enumerate() {
        let mut trial = trial(["btree", "queue"][number % 2], design, 1 + number as u64);
        if ["hw-log", "easy-pm"].contains(&design) {
            trial.durability = DurabilityKind::Hardware;
        }
        let said = |(key, value): &(&str, &str)| (key.to_string(), value.to_string());
        trial.overrides = settings.iter().map(said).collect();
        let told = answer(&trial);
        assert_eq!(told["verdict"], "holds", "{design} {settings:?}: {told:#}");
    }
}

#[test]
fn a_plan_that_tries_too_little_says_so_and_fails() {
    let mut trial = trial("array-swap", "sca", 1);
    trial.transactions = Some(1);
    trial.options.recovery_cuts = 1 << 40; // next to none
    let told = answer(&trial);
    assert_eq!(told["verdict"], "not exercised");
    assert_eq!(told["fails"], true);
    let missing = told["not_exercised"].as_array().unwrap();
    assert!(!missing.is_empty());
    for mechanism in missing {
        assert_eq!(told["exercised"][mechanism.as_str().unwrap()], 0);
    }
}

#[test]
fn a_mappings_plan_has_duplicates_collisions_and_places_used_again() {
    let told = answer(&trial("queue", "esd+sca", 3));
    for mechanism in ["duplicates", "collisions", "freed places", "reused places"] {
        assert!(
            told["exercised"][mechanism].as_u64().unwrap() > 100,
            "{mechanism}"
        );
    }
    let identity = answer(&trial("queue", "sca", 3));
    assert_eq!(identity["exercised"]["duplicates"], 0);
    assert!(
        identity["required"]
            .as_array()
            .unwrap()
            .iter()
            .all(|m| m != "duplicates")
    );
}

#[test]
fn any_number_of_threads_finds_the_same() {
    let told = |threads| {
        let mut trial = trial("rbtree", "esd", 2); // breaks its pads
        trial.options.threads = threads;
        let mut told = answer(&trial);
        told["seconds"] = Value::Null;
        told
    };
    let alone = told(1);
    assert_eq!(alone["verdict"], "broken");
    assert_eq!(alone, told(3));
}

#[test]
fn a_thorough_trial_goes_on_with_other_seeds() {
    let mut trial = trial("hash", "fca", 1);
    trial.thorough = Some(std::time::Duration::from_secs(3));
    let told = answer(&trial);
    assert!(
        told["runs"].as_u64().unwrap() > 5,
        "more than the plan's own"
    );
    assert_eq!(told["verdict"], "holds");
}
