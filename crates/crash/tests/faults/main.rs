//! Faults that tell a good crash explorer from a weak one. Each is a value: a layer that does one thing wrong, a small
//! plan, and the kinds of violations that must report it. `docs/inside/planted-faults.md` says how to add one.
//!
//! Three things must hold of each: its checks report it, the same layer without the fault holds under the same plan, and
//! it is missed when its checks are switched off. Left out: what has no seam, which mutation testing covers.

mod around;
mod around_guard;
mod beside;
mod contents;
mod counters;
mod dedup;
mod fault;
mod indexed;
mod log;
mod macs;
mod own_beside;
mod own_chain;
mod own_counters;
mod own_dedup;
mod own_guard;
mod own_index;
mod own_log;
mod own_pending;
mod own_ring;
mod own_root;
mod own_slots;
mod pads;
mod pending;
mod plans;
mod programs;
mod ring;
mod roots;
mod slots;
mod table;
mod trees;
mod vectors;
mod wrappers;

use std::collections::BTreeSet;

use sardonyx_crash::{Kind, Verdict};

use fault::{Check, Fault};
use plans::Plan;

struct Group {
    name: &'static str,
    pub faults: &'static [&'static [Fault]],
    /// Faults that so few schedules show that a small plan does not come to them.
    pub rare: &'static [&'static [Fault]],
}

impl Group {
    fn faults(&self) -> impl Iterator<Item = &'static Fault> {
        self.faults.iter().copied().flatten()
    }

    fn rare(&self) -> impl Iterator<Item = &'static Fault> {
        self.rare.iter().copied().flatten()
    }
}

/// Seeds that are tried, so that a change of timing somewhere else does not hide a fault from the first.
const SEEDS: u64 = 3;

/// Whether `fault` is found under `plan` by its own checks and by no others, or why not.
fn is_found(fault: &Fault, plan: Plan) -> Result<(), String> {
    let outcome = plan.outcome(&fault.wrong());
    if outcome.cuts != plan.cuts {
        return Err(format!("{} cuts were made: {outcome:?}", outcome.cuts));
    }
    let reported = |(check, kinds): &(Check, &[Kind])| {
        let by = outcome.by(*check);
        kinds.iter().all(|kind| by.contains(kind))
    };
    if !fault.by.iter().all(reported) {
        return Err(format!("not reported by {:?}: {outcome:?}", fault.by));
    }
    let without = outcome.without(&fault.checks());
    if !without.is_empty() {
        return Err(format!("not missed without its checks: {without:?}"));
    }
    if fault.checks().contains(&Check::Lives) {
        let plan = Plan {
            recovery_cuts: 0,
            ..plan
        };
        let without = plan.outcome(&fault.wrong());
        if !without.found.is_empty() {
            return Err(format!("not missed without later lives: {without:?}"));
        }
    }
    Ok(())
}

/// Each fault is found with one of a few seeds, and nothing is without it.
fn judge<'f>(faults: impl Iterator<Item = &'f Fault>) {
    let mut wrong: Vec<String> = Vec::new();
    let mut controls: Vec<(String, Plan)> = Vec::new();
    for fault in faults {
        let mut reasons = Vec::new();
        for seed in fault.plan.seed..fault.plan.seed + SEEDS {
            let plan = Plan { seed, ..fault.plan };
            let control = (fault.right(), plan);
            if !controls.contains(&control) {
                controls.push(control);
            }
            match is_found(fault, plan) {
                Ok(()) => {
                    reasons.clear();
                    break;
                }
                Err(reason) => reasons.push(format!("{}, seed {seed}: {reason}", fault.name)),
            }
        }
        wrong.extend(reasons);
    }
    for (stack, plan) in controls {
        let outcome = plan.outcome(&stack);
        if outcome.cuts != plan.cuts || !outcome.found.is_empty() {
            wrong.push(format!("without a fault: {stack}, {plan:?}: {outcome:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

macro_rules! groups {
    ($($group:ident: $faults:expr, $rare:expr;)+) => {
        /// All faults.
        static GROUPS: &[Group] = &[$(Group {
            name: stringify!($group),
            faults: $faults,
            rare: $rare,
        }),+];

        mod found {
            $(
                #[test]
                #[cfg_attr(
                    debug_assertions,
                    ignore = "by hand: the simulator's own assertions report many faults before the explorer does"
                )]
                fn $group() {
                    let group = super::GROUPS.iter().find(|group| group.name == stringify!($group));
                    super::judge(group.expect("it is one of them").faults());
                }
            )+
        }
    };
}

groups! {
    pads: &[pads::FAULTS], &[];
    counters: &[counters::FAULTS, counters::GREAT, counters::GREATEST, counters::LATE], &[];
    contents: &[contents::FAULTS], &[];
    beside: &[beside::FAULTS, beside::WORDWISE, beside::WORDWISE_GREAT], &[];
    dedup: &[dedup::SOUND, dedup::ON_DEMAND, dedup::KEEPING], &[dedup::RARE];
    dedup_in_few_places: &[dedup::LOGGED, dedup::WITHOUT_PLACES], &[];
    dedup_in_a_full_medium: &[dedup::FULL_AND_SHARED], &[];
    indexed: &[indexed::FAULTS], &[];
    log: &[log::OWN], &[log::RARE];
    log_with_counters: &[log::WITH_COUNTERS], &[];
    log_on_chip: &[pending::FAULTS, pending::SILO, pending::LAD, slots::FAULTS], &[];
    log_in_a_ring: &[ring::FWB, ring::MORLOG], &[];
    vectors: &[vectors::FAULTS], &[];
    macs: &[macs::UNNOTICED, macs::BESIDE], &[];
    macs_narrow: &[macs::WIDTHS, macs::LATE], &[];
    macs_refused: &[macs::REFUSED, macs::DUMPED], &[];
    macs_attacked_often: &[macs::ATTACKED_OFTEN], &[];
    enumerated: &[macs::LISTED, macs::LISTED_PLAIN, macs::LISTED_BESIDE, roots::LISTED, roots::LISTED_PLAIN], &[];
    roots: &[roots::FAULTS], &[];
    roots_dumped: &[roots::DUMPED], &[];
    roots_numbered: &[roots::NUMBERED], &[];
    trees: &[trees::FAULTS.split_at(7).0], &[];
    trees_more: &[trees::FAULTS.split_at(7).1.split_at(4).0], &[];
    trees_and_more: &[trees::FAULTS.split_at(7).1.split_at(4).1], &[];
    marks: &[trees::MARKS], &[];
    trees_dumped: &[trees::DUMPED.split_at(2).0], &[];
    trees_dumped_more: &[trees::DUMPED.split_at(2).1], &[];
    between_layers: &[wrappers::BARE], &[];
    zeros: &[wrappers::ZEROS, wrappers::BELOW_ZEROS, wrappers::BESIDE_ZEROS, wrappers::ZEROS_LOGGED], &[];
    between_log_and_layers: &[
        wrappers::BELOW_LOG,
        wrappers::LOG,
        wrappers::LOG_OF_MANY,
        wrappers::LOG_OF_FEW,
    ], &[wrappers::LOG_OF_LONG_LIVES];
}

#[test]
#[ignore = "slow: a few cuts in thousands show these faults"]
fn rare_faults_are_found() {
    judge(GROUPS.iter().flat_map(Group::rare));
}

/// Faults that a full check at the end of each short later life finds and one at the end of one in eight does not, among
/// what the cuts and lives of so many seeds show.
fn missed_by_the_end_of_a_life<'f>(
    faults: impl Iterator<Item = &'f Fault>,
    seeds: u64,
) -> Vec<String> {
    let mut missed = Vec::new();
    for fault in faults.filter(|fault| fault.plan.recovery_cuts > 0) {
        let found = |full_life_in| {
            let found = (fault.plan.seed..fault.plan.seed + seeds).flat_map(|seed| {
                let plan = Plan {
                    full_life_in,
                    seed,
                    ..fault.plan
                };
                plan.outcome(&fault.wrong()).by(Check::Cuts)
            });
            found.collect::<BTreeSet<Kind>>()
        };
        let (all, some) = (found(1), found(fault.plan.full_life_in));
        if all != some {
            missed.push(format!("{}: {all:?}, {some:?}", fault.name));
        }
    }
    missed
}

/// What a short later life has changed is enough to find the faults that only lives show.
#[test]
#[cfg_attr(debug_assertions, ignore = "by hand: as those that are found")]
fn the_end_of_a_short_life_hides_no_fault_of_lives() {
    let faults = GROUPS.iter().flat_map(Group::faults);
    let of_lives = faults.filter(|fault| fault.checks().contains(&Check::Lives));
    let of_lives: Vec<&Fault> = of_lives.step_by(2).collect(); // the two that begin alike are one
    assert!(!of_lives.is_empty());
    assert_eq!(
        missed_by_the_end_of_a_life(of_lives.into_iter(), 1),
        [""; 0]
    );
}

#[test]
#[ignore = "slow: all faults twice, with three seeds"]
fn the_end_of_a_short_life_hides_no_fault() {
    let faults = GROUPS
        .iter()
        .flat_map(|group| group.faults().chain(group.rare()));
    assert_eq!(missed_by_the_end_of_a_life(faults, SEEDS), [""; 0]);
}

/// Each fault has a name of its own, and each slip of a layer of the tests' own is a fault.
#[test]
fn no_fault_is_named_twice_and_no_slip_is_left_out() {
    let all = || {
        GROUPS
            .iter()
            .flat_map(|group| group.faults().chain(group.rare()))
    };
    let names: BTreeSet<&str> = all().map(|fault| fault.name).collect();
    assert_eq!(names.len(), all().count());
    fn are_rows(slips: &[impl std::fmt::Debug], rows: &str) {
        for slip in &slips[1..] {
            assert!(rows.contains(&format!("({slip:?})")), "{slip:?}");
        }
    }
    let counters = concat!(include_str!("pads.rs"), include_str!("counters.rs"));
    are_rows(own_counters::Slip::ALL, counters);
    are_rows(own_beside::Slip::ALL, include_str!("beside.rs"));
    are_rows(own_dedup::Slip::ALL, include_str!("dedup.rs"));
    are_rows(own_index::Slip::ALL, include_str!("indexed.rs"));
    are_rows(own_root::Slip::ALL, include_str!("roots.rs"));
    are_rows(own_log::Slip::ALL, include_str!("log.rs"));
    are_rows(own_pending::Slip::ALL, include_str!("pending.rs"));
    are_rows(own_ring::Slip::ALL, include_str!("ring.rs"));
    are_rows(own_slots::Slip::ALL, include_str!("slots.rs"));
    are_rows(own_chain::Slip::ALL, include_str!("vectors.rs"));
    are_rows(own_guard::Slip::ALL, include_str!("macs.rs"));
}

/// Three faults and more of each kind that an earlier explorer missed, or that later designs have brought.
const KINDS: [(&str, &[&str]); 14] = [
    (
        "pads again after an attack",
        &[
            "mark-believed",
            "bonsai-mark-believed",
            "counters-mark-believed",
        ],
    ),
    (
        "old roots",
        &[
            "last-two-accepted",
            "last-four-accepted",
            "last-eight-accepted",
        ],
    ),
    (
        "versions that wrap",
        &[
            "version-of-two-bits",
            "version-of-three-bits",
            "version-of-four-bits",
        ],
    ),
    (
        "widths of places",
        &["mac-place-16", "mac-place-20", "mac-place-32"],
    ),
    (
        "widths of hashes",
        &[
            "mac-16-bits",
            "mac-32-bits",
            "mac-63-bits",
            "mac-32-bits-twice",
        ],
    ),
    (
        "erasure",
        &["empty-believed", "halves-believed", "eighths-believed"],
    ),
    (
        "delivered before refused",
        &[
            "verified-one-late",
            "verified-four-late",
            "verified-eight-late",
        ],
    ),
    (
        "near zero, unwritten",
        &["three-bits", "small-number", "unwritten-shown"],
    ),
    (
        "later lives",
        &["log-forgets-later", "recount-of-4-bits", "count-of-4-bits"],
    ),
    (
        "lines kept for comparisons",
        &["kept-beyond-write", "kept-uncompared", "kept-of-write"],
    ),
    (
        "parts that a MAC does not cover",
        &[
            "mac-without-bit",
            "mac-without-byte",
            "mac-without-place-bit",
        ],
    ),
    ("sums and differences", &["mac-linear", "versions-summed"]),
    (
        "entries on chip",
        &[
            "left-unwritten",
            "slot-not-awaited",
            "number-again",
            "buffer-left-unwritten",
            "buffer-not-awaited",
            "buffer-unread",
            "gone-unlogged",
            "hold-not-awaited",
            "held-unread",
        ],
    ),
    (
        "a log that comes round",
        &[
            "ring-nothing-forced",
            "ring-not-awaited",
            "ring-number-again",
            "morph-nothing-forced",
            "morph-not-awaited",
            "morph-new-unread",
        ],
    ),
];

/// The default plan finds each with seed 1; `FAULT` tries those alone whose name has it.
#[test]
#[ignore = "slow: a whole plan each"]
fn the_default_plan_finds_each_of_these_kinds() {
    let all = || {
        GROUPS
            .iter()
            .flat_map(|group| group.faults().chain(group.rare()))
    };
    let asked = std::env::var("FAULT").unwrap_or_default();
    let (mut missed, mut tried) = (Vec::new(), 0);
    for (kind, names) in KINDS {
        for name in names.iter().filter(|name| name.contains(&asked)) {
            tried += 1;
            let fault = all().find(|fault| fault.name == *name);
            let fault = fault.unwrap_or_else(|| panic!("there is no {name}"));
            let verdict = fault.under_the_default_plan();
            println!("{kind}: {name}: {verdict:?}");
            if verdict != Verdict::Broken {
                missed.push(name);
            }
        }
    }
    assert!(missed.is_empty() && tried > 0, "{missed:?} of {tried}");
}

/// For a new fault: prints what reports each fault whose name has `FAULT` in it, and what its control comes to.
#[test]
#[ignore = "by hand: it prints what the environment names"]
fn show() {
    let Ok(asked) = std::env::var("FAULT") else {
        return;
    };
    let number = |name: &str, or: u64| {
        std::env::var(name).map_or(or, |value| value.parse().expect("a number"))
    };
    let all = GROUPS
        .iter()
        .flat_map(|group| group.faults().chain(group.rare()));
    for fault in all.filter(|fault| fault.name.contains(&asked)) {
        let plan = Plan {
            cuts: number("CUTS", fault.plan.cuts),
            seed: number("SEED", fault.plan.seed),
            recovery_cuts: number("RECOVERY_CUTS", fault.plan.recovery_cuts),
            transactions: number("TRANSACTIONS", fault.plan.transactions),
            ..fault.plan
        };
        let found = plan.outcome(&fault.wrong());
        let control = plan.outcome(&fault.right());
        let pieces = Check::ALL
            .iter()
            .filter(|check| !found.by(**check).is_empty());
        let pieces = pieces.map(|check| {
            let kinds: Vec<String> = found
                .by(*check)
                .iter()
                .map(|kind| format!("{kind:?}"))
                .collect();
            format!("{check:?}: {}", kinds.join(" "))
        });
        let pieces: Vec<String> = pieces.collect();
        println!(
            "{}: {} cuts, [{}] {:?}; without the fault {} cuts, {:?}",
            fault.name,
            found.cuts,
            pieces.join(", "),
            found.ended,
            control.cuts,
            control.found,
        );
    }
}
