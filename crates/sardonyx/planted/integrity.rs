//! Faults of integrity: in MACs, in the trees above them, their caches, registers and recoveries.

use sardonyx::config::Machine;
use sardonyx::crash::{Cuts, OneRun};

use super::*;

/// In MACs, the tree above them, its cache, its register and its recovery: each is caught with the first seed.
#[test]
fn integrity() {
    let macs = [
        MacWithoutPlace,
        MacHalfLine,
        MacOneByte,
        MacXorWords,
        MacTablesUnverified,
        MacDataUnverified,
    ];
    let tree = [
        LeafUnverified,
        HashHalfLine,
        OddLeavesUnhashed,
        RebuildUnchecked,
    ];
    let register = [RootOneBehind, RebuildKeepsNodes];
    let dumped = [MacDumpForgotten, RootIgnoresDumps];
    all_caught_by(
        1..=1,
        &[
            (&macs, MACS, UNDETECTED),
            (&[MacWithoutBeside], MACS_BESIDE, UNDETECTED),
            (&tree, TREE, UNDETECTED),
            (&[MacNotGrouped], MACS, REFUSED),
            (&[MacOldBeside], MACS_BESIDE, REFUSED),
            (&register, TREE, REFUSED),
            (&dumped, TREE_OVER_LOG, REFUSED),
        ],
    );
}

/// One attack in 256 passes such a hash: a small run has too few.
#[test]
fn a_hash_of_one_byte() {
    all_caught_by(1..=1, &[(&[HashOneByte], BONSAI, UNDETECTED)]);
}

/// Boundaries and rare paths, by a reader of the code: each is caught with the first seed.
#[test]
fn what_a_reader_of_integrity_thinks_of() {
    let unnoticed = [
        BmtMacVersion16,
        RegisterComparesFirst,
        UnderWayOfEight,
        BmtMajor32,
    ];
    all_caught_by(
        1..=1,
        &[
            (&[MacSkipsLastByte], MACS, UNDETECTED),
            (&[MacDumpWholeLine], MACS_OVER_LOG, REFUSED),
            (&[MerkleComparesFirst], TREE, UNDETECTED),
            (&unnoticed, BONSAI, UNDETECTED),
            (&[HashSkipsLastByte, HashOfHalfZero], STRICT, UNDETECTED),
            (&[SgxNodeMacUnchecked], COUNTERS, UNDETECTED),
            (&[SgxCounter48], COUNTERS, REFUSED),
            (&[SgxDumpRegisterStays], COUNTERS_OVER_LOG, REFUSED),
            (&[RegisterLooksAtSeven], TRIED, REFUSED),
        ],
    );
}

/// The same, of faults that take a plan longer; and two that look like faults and are none.
#[test]
#[ignore = "it takes minutes"]
fn what_a_reader_of_integrity_thinks_of_in_minutes() {
    all_caught_by(
        1..=1,
        &[
            (&[OverflowWakesUnwritten], BONSAI, REFUSED),
            (&[OverflowBesideForgotten], BONSAI_BESIDE, REFUSED),
        ],
    );
    for (fault, places) in [(TriesFromNext, TRIED), (AsitEntryUnchecked, NAMED)] {
        assert_eq!(catch(1..=1, &[fault], places, &any()), [fault.name()]);
    }
}

/// Faults of trees of counters and of Bonsai trees: a design that each group is one of, and what shows it.
const TREES: &[(&[Fault], &[Tried], &[&str])] = &[
    (
        &[
            SgxMacWithoutPlace,
            SgxMacWithoutVersion,
            SgxVersionStays,
            SgxVersionsUnverified,
            SgxCountersUnverified,
            SgxSumsUnchecked,
        ],
        COUNTERS,
        UNDETECTED,
    ),
    (
        &[
            SgxSumSkipsLast,
            SgxVersionNotGrouped,
            SgxRegisterOneBehind,
            SgxNodesKept,
        ],
        COUNTERS,
        REFUSED,
    ),
    (&[SgxDumpForgotten], COUNTERS_OVER_LOG, REFUSED),
    (&[AsitSumsUnchecked, AsitNodesUnverified], NAMED, UNDETECTED),
    (
        &[
            AsitEntryOnce,
            AsitTwoOfLine,
            AsitNodesUnnamed,
            AsitNotGated,
            AsitEntryNotGrouped,
            AsitOlderWins,
            AsitRemakeSkipsLast,
            AsitRegisterSkipsTable,
        ],
        NAMED,
        REFUSED,
    ),
    (&[AsitDumpForgotten], NAMED_OVER_LOG, REFUSED),
    (
        &[
            PhoenixNeverDue,
            PhoenixDueOfSeven,
            PhoenixDueNotGrouped,
            PhoenixTriesOneFewer,
            PhoenixLeavesUnnamed,
            PhoenixRegisterSkipsMacs,
        ],
        PHOENIX,
        REFUSED,
    ),
    (
        &[
            BmtMacWithoutPlace,
            BmtMacWithoutVersion,
            BmtMacWithoutMajor,
            BmtMacWithoutLastWord,
            HashSkipsMajor,
            HashOfLastConstant,
            HashOneByte,
            VersionStays,
            ZeroMacBelieved,
            GoneLineBelieved,
            OverflowUnverified,
            UnderWayForEver,
            BmtRebuildUnchecked,
        ],
        BONSAI,
        UNDETECTED,
    ),
    (&[BmtMacWithoutBeside], BONSAI_BESIDE, UNDETECTED),
    (
        &[
            HashSkipsLastSlot,
            NodesUnverified,
            VersionsUnverified,
            TopUnverified,
            OddNodesUnverified,
            VerifiedIfCold,
            StrictBelievesMemory,
        ],
        STRICT,
        UNDETECTED,
    ),
    (&[OsirisUnchecked], TRIED, UNDETECTED),
    (&[AnubisUnchecked], SHADOWED, UNDETECTED),
    (
        &[
            VersionOfNeighbour,
            OverflowKeepsMajor,
            OverflowForgetsLast,
            PathStopsBelowTop,
            PathForgetsLevel,
            BmtMacNotGrouped,
            BmtVersionNotGrouped,
            CachedMacStale,
            CachedNodeStale,
            LazyNodeClean,
            DirtyNodeFirstWord,
            BmtNodesNotRewritten,
            RewriteSkipsLast,
            RegisterOneBehind,
        ],
        BONSAI,
        REFUSED,
    ),
    (&[NodeNotGrouped], STRICT, REFUSED),
    (
        &[
            OverflowNotThrough,
            TriesOneFew,
            TriedUnchecked,
            StopLossOneLate,
            RestoreNotWritten,
            RestoreSkipsLast,
            RegisterLooksAtFirst,
        ],
        TRIED,
        REFUSED,
    ),
    (&[TriadTrustsOneMore, TriadWritesOneLess], LEVELS, REFUSED),
    (&[CoalescedFirstOnly], MERGED, REFUSED),
    (
        &[
            ShadowNotGrouped,
            ShadowForgetsVersions,
            ShadowForgetsNodes,
            ShadowWrongSlot,
            ShadowNotGated,
            ShadowReadsSeven,
            ShadowTopFirst,
            ShadowNamedUnwaited,
            ShadowTwoOfSlot,
            RemakeSkipsLast,
        ],
        SHADOWED,
        REFUSED,
    ),
    (
        &[DumpNotCounted, DumpWithoutOverflow, DumpMacsStay],
        BONSAI_OVER_LOG,
        REFUSED,
    ),
];

/// Each is caught by the plan with the first seed.
#[test]
#[ignore = "it takes minutes: the plan once for each of seventy faults"]
fn trees_by_the_plan() {
    all_caught_by(1..=1, TREES);
}

/// Those that small runs do not show.
const BY_PLAN_ALONE: &[Fault] = &[
    HashOneByte,
    HashSkipsLastSlot,
    DirtyNodeFirstWord,
    RestoreSkipsLast,
    ShadowNotGated,
    DumpWithoutOverflow,
    DumpMacsStay,
];

/// Settings like those of the plan's tighter passes, and of its first.
const TIGHT: &[(&str, &str)] = &[
    ("integrity.cache.bytes", "128"),
    ("integrity.cache.ways", "2"),
    ("integrity.minor_bits", "2"),
    ("integrity.triad.levels", "1"),
    ("medium.queues.writes", "4"),
    ("medium.queues.counter_writes", "4"),
    ("medium.queues.high_watermark", "3"),
    ("medium.queues.low_watermark", "1"),
];
const RELAXED: &[(&str, &str)] = &[("integrity.cache.bytes", "1024")];

/// A run with some of the plan's cuts and attacks.
fn small(design: &str, settings: &[(&str, &str)], seed: u64) -> Value {
    let spec = ProgramSpec {
        name: "btree".into(),
        item_bytes: 64,
        footprint: 8192,
        transactions: 24,
        seed,
        durability: DurabilityKind::on(&Stack::named(design).expect("a design")),
        sharing: Sharing::Apart,
    };
    let run = OneRun {
        machine: Machine::load("sca", settings).expect("a machine"),
        design: design.into(),
        specs: vec![spec],
        seed,
        options: Options {
            cuts: Cuts::Sample(150),
            recovery_cuts: 16,
            threads: 1,
            attacks: Some(Attacks {
                looks: 8,
                each: 24,
                one: None,
            }),
            ..Options::default()
        },
        script: None,
    };
    match run.answer(&|_, _| true) {
        Err(error) => json!({"violations": [{"kind": "run-ended", "what": error.to_string()}]}),
        Ok(answer) => serde_json::to_value(answer.expect("nobody ends it")).expect("JSON"),
    }
}

/// Each is caught by a few runs as well, of which the plan has many; without a fault these hold.
#[test]
fn trees() {
    let kinds = |answer: &Value| -> Vec<String> {
        let found = answer["violations"].as_array().expect("a list").iter();
        found
            .map(|v| v["kind"].as_str().expect("a name").to_owned())
            .collect()
    };
    let mut missed = Vec::new();
    for (faults, places, wanted) in TREES {
        for tried in *places {
            let _turn = turn();
            let runs = [(TIGHT, 1), (RELAXED, 2)];
            let shown = |fault| {
                plant(fault);
                let mut runs = runs.iter();
                let found = runs.find_map(|(settings, seed)| {
                    let found = kinds(&small(tried.design, settings, *seed));
                    let wanted = |kind: &String| fault.is_none() || wanted.contains(&&**kind);
                    found.into_iter().find(wanted)
                });
                plant(None);
                found
            };
            assert_eq!(shown(None), None, "{}", tried.design);
            let caught = |fault: &&Fault| shown(Some(**fault)).is_some();
            let by_runs = faults.iter().filter(|fault| !BY_PLAN_ALONE.contains(fault));
            missed.extend(by_runs.filter(|fault| !caught(fault)).map(|f| f.name()));
        }
    }
    assert!(missed.is_empty(), "not caught: {missed:?}");
}
