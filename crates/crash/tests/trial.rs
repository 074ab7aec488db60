//! The explorer's plan: sound designs hold under it, and it says so only if it has tried what could
//! break them.

use sardonyx::config::Machine;
use sardonyx::controller::designs::{self, AnyLayer, Stack};
use sardonyx::controller::layers::{About, Mapping};
use sardonyx::mechanisms::mechanisms;
use sardonyx::plan::script::{Script, Scripting};
use sardonyx_crash::{Cuts, History, OneRun, Options, Platform, Trial};
use sardonyx_property as property;
use sardonyx_workload::{self as workload, DurabilityKind, ProgramSpec, Sharing};
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
        design: design.into(),
        program: program.into(),
        seed,
        shorten: true,
        only_first: false,
        ..Trial::default()
    }
}

fn answer(trial: &Trial) -> Value {
    let answer = trial.answer(&|_, _| true).expect("a design and a program");
    serde_json::to_value(answer.expect("nobody cancels")).expect("JSON")
}

/// One recovery in so many is cut where each is a pass over memory.
const REBUILDS: u64 = 1024;

/// A trial finds nothing. In a whole run it is the plan, and the verdict `holds`; in a quick one all of its passes with
/// a few cuts each. Returns the number of cuts.
fn finds_nothing(trial: &Trial) -> u64 {
    let mut trial = trial.clone();
    let (program, design) = (trial.program.clone(), trial.design.clone());
    if property::seed().is_none() {
        trial.options.cuts = Cuts::Sample(8);
        trial.options.recovery_cuts = trial.options.recovery_cuts.max(64);
    }
    let told = answer(&trial);
    let cuts = told["cuts"].as_u64().unwrap();
    assert_eq!(
        told["violations"],
        serde_json::json!([]),
        "{program} {design}: {told:#}"
    );
    match property::seed() {
        None => assert!(cuts > 50, "{program} {design}: {cuts}"),
        Some(_) => assert_eq!(told["verdict"], "holds", "{program} {design}: {told:#}"),
    }
    cuts
}

/// Each design, and every second one on the other platform too under another program: over 200,000 cuts.
#[test]
fn sound_designs_hold_on_both_platforms_and_are_exercised() {
    let programs = workload::all();
    let mut cuts = 0;
    let designs: Vec<_> = SOUND.iter().enumerate().collect();
    for (number, design) in property::some(&designs, 3) {
        let platforms = [Platform::Adr, Platform::Eadr].into_iter().enumerate();
        for (turn, platform) in platforms.take(1 + number % 2) {
            let program = programs[(number + 3 * turn) % programs.len()].name;
            let mut trial = trial(program, design, 1 + number as u64);
            trial.options.platform = platform;
            if design.starts_with("de") {
                trial.options.recovery_cuts = REBUILDS;
            }
            trial.cores = (number % 4 == 1).then_some(4);
            cuts += finds_nothing(&trial);
        }
    }
    assert!(cuts > property::count(300, 200_000), "{cuts}");
}

/// Two transactions a core exercise little: the plan goes on without that bound.
#[test]
fn a_plan_that_lacks_something_goes_on_without_what_keeps_it_from_it() {
    let few = Trial {
        transactions: Some(2),
        options: Options {
            cuts: Cuts::Sample(8),
            ..Options::default()
        },
        ..trial("queue", "no-encryption", 1)
    };
    let told = answer(&few);
    assert_eq!(told["verdict"], "not exercised", "{told:#}");
    assert_eq!(told["further"], Value::Null);
    let told = answer(&Trial {
        until_exercised: true,
        ..few
    });
    assert_eq!(told["verdict"], "holds", "{told:#}");
    let further = &told["further"];
    assert_eq!(further["programs"][0], "queue");
    let without = further["without"].as_array().expect("a list");
    assert!(without.contains(&"--transactions 2".into()), "{further:#}");
    assert!(further["rounds"].as_u64() < Some(8), "{further:#}");
}

/// The programs have no log of their own; `alc` leaves the counters of the hardware's behind.
#[test]
fn the_hardware_log_undoes_what_programs_leave_at_every_cut() {
    let programs: Vec<_> = workload::all().iter().map(|program| program.name).collect();
    for program in property::some(&programs, 1) {
        for cores in property::some(&[Some(4), Some(1)], 1) {
            finds_nothing(&logged(program, "hw-log", cores));
        }
    }
}

/// A trial of a program that leaves the log to the hardware.
fn logged(program: &str, design: &str, cores: Option<usize>) -> Trial {
    Trial {
        durability: DurabilityKind::Hardware,
        cores,
        shorten: property::seed().is_some(),
        ..trial(program, design, 1)
    }
}

/// Below a tree records are written before they are full, so a transaction takes more buckets.
#[test]
fn the_plans_longest_transactions_fit_a_hardware_log_below_a_tree() {
    let mut trial = Trial {
        seed: 3,
        shorten: false,
        ..logged("array-swap", "hw-log@merkle", None)
    };
    trial.options.cuts = Cuts::Sample(1);
    let told = answer(&trial);
    assert_eq!(told["violations"], serde_json::json!([]), "{told:#}");
}

#[test]
fn a_hardware_log_without_its_counters_is_caught_and_none_is_broken() {
    let alc = answer(&logged("btree", "alc", None));
    assert_eq!(alc["verdict"], "caught");
    let violations = alc["violations"].as_array().unwrap();
    let wrong = violations.iter().find(|v| v["kind"] == "wrong-line");
    let story = wrong.expect("lines are lost")["history"].to_string();
    for part in [
        "the hardware log, registers 0: transaction ",
        "headers name",
        "put back: nothing", // nobody can read the headers
    ] {
        assert!(story.contains(part), "{part}: {story}");
    }
    // Without a log nothing is undone.
    assert_eq!(answer(&logged("btree", "sca", None))["verdict"], "broken");
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
    let cases: Vec<_> = cases.into_iter().enumerate().collect();
    for (number, (design, settings)) in property::some(&cases, 4) {
        let mut trial = trial(["btree", "queue"][number % 2], design, 1 + number as u64);
        if ["hw-log", "easy-pm"].contains(&design) {
            trial.durability = DurabilityKind::Hardware;
        }
        let said = |(key, value): &(&str, &str)| (key.to_string(), value.to_string());
        trial.overrides = settings.iter().map(said).collect();
        println!("{design} {settings:?}");
        finds_nothing(&trial);
    }
}

/// Nothing was found, and the answer says of what there was too little, and that `option` may keep it so.
fn assert_not_exercised(told: &Value, option: &str) {
    assert_eq!(told["verdict"], "not exercised", "{option}: {told:#}");
    assert_eq!(told["fails"], true);
    let lacks = told["lacks"].as_array().unwrap();
    let names: Vec<&Value> = lacks.iter().map(|lack| &lack["what"]).collect();
    assert!(!names.is_empty());
    assert_eq!(
        names,
        told["not_exercised"]
            .as_array()
            .unwrap()
            .iter()
            .collect::<Vec<_>>()
    );
    for lack in lacks {
        let what = lack["what"].as_str().unwrap();
        let of = [&told["exercised"][what], &told["reached"][what]];
        assert!(of.contains(&&lack["had"]), "{lack}");
        assert!(lack["had"].as_u64() < lack["least"].as_u64(), "{lack}");
    }
    let kept = lacks
        .iter()
        .flat_map(|lack| lack["kept_by"].as_array().unwrap());
    assert!(
        kept.into_iter().any(|by| by == option),
        "{option}: {lacks:#?}"
    );
}

#[test]
fn a_plan_that_tries_too_little_says_so_and_fails() {
    let mut trial = trial("array-swap", "sca", 1);
    trial.transactions = Some(1);
    trial.options.recovery_cuts = 1 << 40; // next to none
    assert_not_exercised(&answer(&trial), "--transactions 1");
    trial.transactions = None;
    let told = answer(&trial);
    assert_not_exercised(&told, &format!("--recovery-cuts {}", 1u64 << 40));
    assert_eq!(told["runs"], 14, "it does not go on in vain");
}

mechanisms! {
    NEVER_MET = "lines that nobody writes", least 1, by &[("medium.queues.writes", 4)];
}

/// A mapping with a path of its own that no run takes.
fn with_a_path() -> Mapping {
    let known = designs::mappings().find(|known| known.about.name == "identity");
    let right = known.expect("a mapping");
    Mapping {
        about: About {
            name: "never-met",
            tries: &[MECHANISMS],
            ..right.about
        },
        ..*right
    }
}

/// A name is counted once, and every mapping or log that does something names what that is.
#[test]
fn mechanisms_have_names_of_their_own_and_layers_have_mechanisms() {
    let layers: Vec<AnyLayer> = designs::built_in().collect();
    let of = |layer: &AnyLayer| layer.about().tries.iter().copied().flatten().copied();
    let mechanisms: Vec<_> = layers.iter().flat_map(of).collect();
    for one in &mechanisms {
        let same = mechanisms.iter().filter(|other| other.name == one.name);
        assert!(
            same.into_iter().all(|other| std::ptr::eq(*one, *other)),
            "{}",
            one.name
        );
    }
    for layer in &layers {
        let name = layer.about().name;
        let keeps = match layer {
            AnyLayer::Logging(logging) => logging.keeps_log,
            layer => matches!(layer, AnyLayer::Mapping(_)),
        };
        let is_bare = name == "identity";
        assert!(!keeps || is_bare || of(layer).count() > 3, "{name}");
    }
}

#[test]
fn a_path_of_a_layer_that_no_run_takes_is_not_exercised() {
    designs::register(AnyLayer::Mapping(Box::leak(Box::new(with_a_path()))));
    let mut trial = trial("array-swap", "never-met+no-encryption", 1);
    trial.options.cuts = Cuts::Sample(8);
    let told = answer(&trial);
    assert_eq!(told["verdict"], "not exercised");
    let mut lacks = told["lacks"].as_array().unwrap().iter();
    let own = lacks.find(|lack| lack["what"] == NEVER_MET.name);
    let own = own.expect("it is required");
    assert_eq!((&own["had"], &own["least"]), (&0.into(), &1.into()));
    assert_eq!(own["reached_by"][0], "--set medium.queues.writes=4");
    assert_eq!(told["exercised"][NEVER_MET.name], 0);
}

/// Neither few transactions nor few cuts nor caches of one size are enough, whatever the design promises.
#[test]
#[ignore = "slow: twelve whole plans"]
fn an_option_that_bounds_the_runs_leaves_no_bare_holds() {
    let caches = [
        "encryption.counter_cache.bytes",
        "encryption.counter_cache.ways",
    ];
    for (design, platform) in [
        ("sca", Platform::Adr),
        ("fca", Platform::Adr),
        ("no-atomicity", Platform::Eadr),
        ("easy-pm", Platform::Adr),
    ] {
        let mut trial = trial("btree", design, 1);
        trial.options.platform = platform;
        if design == "easy-pm" {
            trial.durability = DurabilityKind::Hardware;
        }
        let few = Trial {
            transactions: Some(1),
            ..trial.clone()
        };
        assert_not_exercised(&answer(&few), "--transactions 1");
        let mut one = trial.clone();
        one.options.cuts = Cuts::Sample(1);
        assert_not_exercised(&answer(&one), "--cuts 1");
        for (bytes, ways) in [("64", "1"), ("67108864", "16")] {
            let sizes = caches.into_iter().zip([bytes, ways]);
            let sizes = sizes.map(|(key, value)| (key.to_owned(), value.to_owned()));
            let pinned = Trial {
                overrides: sizes.collect(),
                ..trial.clone()
            };
            assert_not_exercised(&answer(&pinned), &format!("--set {}={bytes}", caches[0]));
        }
    }
}

#[test]
fn one_run_and_one_cut_are_not_enough() {
    let spec = |core| ProgramSpec {
        name: "btree".into(),
        item_bytes: 64,
        footprint: 16_384,
        transactions: 200,
        seed: core,
        sharing: Sharing::Interleaved { cores: 2 },
        ..ProgramSpec::default()
    };
    for cuts in [Cuts::All, Cuts::One(70)] {
        let run = OneRun {
            machine: Machine::load("sca", &[] as &[(&str, &str)]).expect("a machine"),
            design: "sca".into(),
            specs: (0..2).map(spec).collect(),
            seed: 1,
            options: Options {
                cuts,
                ..Options::default()
            },
            script: None,
        };
        let told = run.answer(&|_, _| true).expect("a design and a program");
        let told = serde_json::to_value(told.expect("nobody cancels")).expect("JSON");
        assert_not_exercised(&told, "crash once");
        assert_eq!(told["reached"]["transactions"], 400);
    }
}

/// Contents are changed by masks, headers of a log are not: which of a mapping's sets are full may hang on that, and
/// the counters on which places are taken. That is not a digest. A run in which it does, of one accused once.
#[test]
fn what_hangs_on_places_is_no_digest_of_contents() {
    let design = "hw-log/esd-sound+fca";
    let run = OneRun {
        machine: Machine::load("sca", &[("log.buckets", "64")]).expect("a machine"),
        design: design.into(),
        specs: vec![ProgramSpec {
            name: "queue".into(),
            item_bytes: 128,
            footprint: 16_384,
            transactions: 25,
            seed: 100 * 1024,
            durability: DurabilityKind::on(&Stack::named(design).expect("a design")),
            ..ProgramSpec::default()
        }],
        seed: 100,
        options: Options {
            cuts: Cuts::One(0),
            ..Options::default()
        },
        script: Some(Script {
            cached_lines: 256,
            ..Script::default()
        }),
    };
    let told = run.answer(&|_, _| true).expect("a design and a program");
    let told = serde_json::to_value(told.expect("nobody cancels")).expect("JSON");
    assert_eq!(told["violations"], serde_json::json!([]));
    assert_eq!(told["verdict"], "not exercised");
}

/// A log takes places of its own, as many as it has buckets, and the plan still comes to a medium that is full.
#[test]
#[ignore = "slow: a plan over media that are full"]
fn a_medium_over_a_log_is_full_as_well() {
    let design = "hw-log/esd-sound+sca";
    let mut trial = trial("queue", design, 1);
    trial.durability = DurabilityKind::on(&Stack::named(design).unwrap());
    trial.options.cuts = Cuts::Sample(64);
    trial.options.recovery_cuts = 0;
    let told = answer(&trial);
    assert_eq!(told["violations"], serde_json::json!([]));
    let full = &told["exercised"]["writes to a full medium"];
    assert!(full.as_u64().is_some_and(|full| full >= 30), "{full}");
}

/// What a machine or a stack has beyond others is needed where it is, and nowhere else.
#[test]
fn a_verdict_needs_what_its_machine_and_stack_have() {
    let required = |design: &str, machine: &str, sets: &[(&str, &str)]| {
        let mut trial = trial("btree", design, 1);
        let own = |(key, value): &(&str, &str)| ((*key).to_owned(), (*value).to_owned());
        (trial.machine, trial.overrides) = (machine.into(), sets.iter().map(own).collect());
        trial.transactions = Some(2);
        let told = answer(&trial);
        let required = told["required"].as_array().expect("a list");
        let names = [
            "interrupted array writes",
            "moved lines",
            "runs with other contents",
        ];
        names.map(|name| required.iter().any(|one| one == name))
    };
    let interrupts = [("medium.pausing.policy", "both")];
    let moves = [("medium.levelling.scheme", "start-gap")];
    assert_eq!(required("sca", "sca", &[]), [false, false, true]);
    assert_eq!(required("sca", "easy-pm", &interrupts), [true, false, true]);
    assert_eq!(
        required("no-encryption", "sca", &moves),
        [false, true, false]
    );
}

/// Without counters a plan has eleven passes, in which too little may happen: a second round brings the rest, on any
/// number of threads.
#[test]
#[ignore = "slow: whole plans of several seeds"]
fn a_plan_goes_on_by_itself_until_it_has_what_its_verdict_needs() {
    let mut seeds = (1..=20).map(|seed| {
        let trial = trial("shared-queue", "no-encryption", seed);
        let told = answer(&trial);
        (trial, told)
    });
    let goes_on = |(_, told): &(Trial, Value)| told["runs"].as_u64() > Some(11);
    let (mut trial, told) = seeds
        .find(goes_on)
        .expect("a seed of which one round is too little");
    assert_eq!(told["verdict"], "holds", "{told:#}");
    let rounds = told["runs"].as_u64().unwrap();
    assert!([22, 33, 44].contains(&rounds), "{rounds}");
    let reached = &told["reached"];
    assert_eq!(reached["runs"], told["runs"]);
    assert_eq!(reached["states"], told["distinct_states"]);
    assert_eq!(
        (&reached["lives"], &reached["cores"]),
        (&3.into(), &4.into())
    );
    assert_eq!(reached["transactions of a core"], 240);
    trial.options.threads = 1;
    let mut alone = answer(&trial);
    alone["seconds"] = told["seconds"].clone();
    assert_eq!(alone, told);
}

#[test]
#[ignore = "slow: two whole plans"]
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

/// Media and logs get full, runs end for it, and what is cut until then holds; lines leave tiny caches.
#[test]
#[ignore = "slow: four whole plans"]
fn what_can_be_full_is_and_runs_that_end_for_it_are_cut() {
    for (design, program) in [
        ("esd+sca", "btree"),
        ("esd-sound", "queue"),
        ("hw-log", "btree"),
        ("easy-pm", "queue"),
    ] {
        let durability = DurabilityKind::on(&Stack::named(design).unwrap());
        let trial = Trial {
            durability,
            ..trial(program, design, 1)
        };
        let told = answer(&trial);
        assert_eq!(told["verdict"], "holds", "{design}: {told:#}");
        let used = |name: &str| told["exercised"][name].as_u64().unwrap();
        assert!(used("runs ended by what is full") > 0, "{design}");
        assert!(used("evictions by capacity") >= 30, "{design}");
        let full = used("writes to a full medium");
        assert_eq!(full >= 30, design.starts_with("esd"), "{design}: {full}");
        // The pass in which the run ended has cuts, and all of them have been looked at.
        let passes = told["passes"].as_array().unwrap().iter();
        let mut ended = passes.filter(|pass| pass["exercised"]["runs ended by what is full"] != 0);
        assert!(
            ended.all(|pass| pass["cuts"].as_u64().unwrap() > 0 && pass["lost_cuts"] == 0),
            "{design}: {told:#}"
        );
    }
}

/// A key of those passes that is held by the user keeps the plan from what they are for.
#[test]
#[ignore = "slow: two whole plans"]
fn a_plan_kept_from_a_full_medium_and_from_tiny_caches_says_so() {
    for (key, lacking) in [
        ("pages.crash_short", "writes to a full medium"),
        ("pages.crash_short", "runs ended by what is full"),
    ] {
        let trial = Trial {
            overrides: vec![(key.into(), "0".into())],
            ..trial("queue", "esd-sound", 1)
        };
        let told = answer(&trial);
        assert_eq!(told["verdict"], "not exercised", "{told:#}");
        let lacks = told["lacks"].as_array().unwrap().iter();
        let mut of = lacks.filter(|lack| lack["what"] == lacking);
        let by = &of.next().expect("it lacks that")["kept_by"];
        assert_eq!(by[0], "--set pages.crash_short=0", "{told:#}");
    }
}

#[test]
#[ignore = "slow: a whole plan twice"]
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
#[ignore = "slow: as long as it is told"]
fn a_thorough_trial_goes_on_with_other_seeds() {
    let mut trial = trial("hash", "fca", 1);
    trial.thorough = Some(std::time::Duration::from_secs(3));
    let told = answer(&trial);
    assert!(
        told["runs"].as_u64().unwrap() > 5,
        "more than the plan's own"
    );
    assert_eq!(told["verdict"], "holds", "{told:#}");
}

/// A find is made short, says how short, and is a run that can be made again.
#[test]
fn a_find_is_made_short_and_replays() {
    let mutant = workload::Mutant::named("no-fence-after-log");
    let told = answer(&Trial {
        durability: DurabilityKind::SoftwareUndo { mutant },
        ..trial("btree", "sca", 1)
    });
    assert_eq!(told["verdict"], "broken");
    for violation in told["violations"].as_array().expect("a list") {
        let [from, to] = [0, 1].map(|of| violation["shortened"][of].clone());
        let of = |size: &Value, what: &str| size[what].as_u64().expect("a number");
        assert!(
            of(&to, "transactions") < of(&from, "transactions"),
            "{violation:#}"
        );
        for what in ["evictions", "delays", "pauses", "cores"] {
            assert!(of(&to, what) <= of(&from, what), "{what}: {violation:#}");
        }
        let story = violation["history"].to_string();
        assert!(story.contains("shortened: cores 1 of "), "{story}");
        let run = &violation["run"];
        assert_eq!(run["transactions"], to["transactions"]);
        let script = &violation["script"];
        assert_eq!(
            script["evictions"].as_array().map(Vec::len),
            Some(of(&to, "evictions") as usize)
        );
    }
}

/// A replay file has them beside what the user has set, and what is set has to do something.
#[test]
fn the_settings_that_a_pass_names_all_do_something() {
    let mut trial = trial("array-swap", "sca", 1);
    trial.overrides = vec![("encryption.global_counter".into(), "paper".into())];
    trial.transactions = Some(1);
    let told = answer(&trial);
    let passes = told["passes"].as_array().unwrap();
    let settings = passes.iter().map(|pass| {
        let settings = pass["settings"].as_array().unwrap().iter();
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        settings.map(move |pair| (text(&pair[0]), text(&pair[1])))
    });
    let settings: Vec<Vec<(String, String)>> = settings.map(Iterator::collect).collect();
    assert!(settings.iter().any(|settings| !settings.is_empty()));
    for pass in settings {
        let all = [trial.overrides.clone(), pass].concat();
        Machine::load("sca", &all).expect("settings that do something");
    }
}

/// What a run has written down is that run, event by event.
#[test]
fn a_run_by_its_script_is_that_run() {
    let spec = |core: u64| ProgramSpec {
        name: "btree".into(),
        item_bytes: 64,
        footprint: 4096,
        transactions: 20,
        seed: 7 + core,
        sharing: Sharing::Interleaved { cores: 2 },
        ..ProgramSpec::default()
    };
    let machine = Machine::load("sca", &[] as &[(&str, &str)]).expect("a machine");
    let specs: Vec<ProgramSpec> = (0..2).map(spec).collect();
    let run = |scripting| {
        let run = History::scripted(&machine, "sca", &specs, 5, scripting);
        run.expect("it runs")
    };
    let drawn = History::record(&machine, "sca", &specs, 5).expect("it runs");
    let (scripting, written) = Scripting::default().recorded();
    let recorded = run(scripting);
    let script = written.lock().expect("one thread").clone();
    assert!(script.evictions.len() > 10 && script.delays.len() > 10 && script.pauses.len() > 10);
    assert_eq!(recorded.journal.events, drawn.journal.events);
    assert_eq!(
        run(Scripting::follow(script.clone())).journal.events,
        drawn.journal.events
    );
    let mut less = script;
    less.delays.clear();
    assert_ne!(
        run(Scripting::follow(less)).journal.events,
        drawn.journal.events
    );
}
