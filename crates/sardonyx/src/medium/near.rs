//! A second medium, near the processor and lost in a power cut: a cache before the persistent one, or memory beside it.
//! Its parameters are those of a medium under `near.`, from a machine that `near.extends` names. Parameters only; what
//! moves lines is `controller/near`.
//!
//! Source of the cache: Optane's memory mode, direct-mapped lines whose tags lie in the ECC bits (Izraelevitz et al.,
//! 2019; Hildebrand et al., ISPASS 2021); of blocks, caches of pages whose tags are on chip (as Jevdjic et al., ISCA 2013,
//! tell them apart). Left out: lines that were in the cache before the run, which begins cold. Others' clean lines would
//! cost what empty slots do; their dirty ones would be written home.

use super::parts::Part;
use crate::line::Place;
use crate::mechanisms::mechanisms;
use crate::settings::{Allowed, Needs, Row, Setting, Settings, Value, keys, words};

/// What the near medium is for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum NearForm {
    /// There is none.
    #[default]
    None,
    /// It holds copies of the persistent medium's lines.
    Cache,
    /// It holds lines of its own, whose numbers follow those of the persistent medium.
    Beside,
}

words!(NearForm { "none" => None, "cache" => Cache, "beside" => Beside });

/// What becomes of a line that is written to a memory with a cache before it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Writes {
    /// It stays in the cache until its place is needed; a line that the processor flushes goes on.
    #[default]
    Back,
    /// It goes to both.
    Through,
    /// It stays in the cache though it be flushed, as in Optane's memory mode: nothing outlives a power cut for sure.
    Stop,
}

words!(Writes { "back" => Back, "through" => Through, "stop" => Stop });

/// What a power cut leaves of the near medium.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Survives {
    /// Nothing.
    #[default]
    No,
    /// All that its queues and its array have: reserve power saves it, as in an NVDIMM-N.
    Yes,
    /// Nothing, though the machine counts on it: for the crash explorer to catch.
    Claimed,
}

words!(Survives { "no" => No, "yes" => Yes, "claimed" => Claimed });

/// Where the tags of a cache are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Tags {
    /// In the ECC bits of the lines, which come and go with them.
    #[default]
    Beside,
    /// In memory on chip, which a power cut loses.
    OnChip,
}

words!(Tags { "beside" => Beside, "on-chip" => OnChip });

/// The tables of the persistent medium's design that lie in the near medium.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum NearTables {
    /// None.
    #[default]
    None,
    /// Encryption counters.
    Counters,
    /// Mappings, fingerprints and counts of references.
    Mappings,
    /// All, that of a log in hardware too.
    All,
}

words!(NearTables { "none" => None, "counters" => Counters, "mappings" => Mappings, "all" => All });

/// Where pages of programs lie if there is memory of two kinds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Pages {
    /// In the near medium until it is full.
    #[default]
    First,
    /// In turns, by the weights of both.
    Weighted,
    /// In the near medium, but those of mapped files in the persistent one.
    Files,
}

words!(Pages { "first" => First, "weighted" => Weighted, "files" => Files });

/// Keys that do nothing without a near medium.
pub const NEAR: Needs = Needs {
    met: |settings| settings.get(&FORM) != NearForm::None,
    switches: &["near.form"],
    what: "near.form is cache or beside",
};

const CACHE: Needs = Needs {
    met: |settings| settings.get(&FORM) == NearForm::Cache,
    switches: &["near.form"],
    what: "near.form is cache",
};

const TAGS_BESIDE: Needs = Needs {
    met: |settings| (CACHE.met)(settings) && !on_chip(settings),
    switches: &["near.tags"],
    what: "near.form is cache and near.tags is beside",
};

const ON_CHIP: Needs = Needs {
    met: on_chip,
    switches: &["near.tags"],
    what: "near.form is cache and near.tags is on-chip",
};

const BESIDE: Needs = Needs {
    met: |settings| settings.get(&FORM) == NearForm::Beside,
    switches: &["near.form"],
    what: "near.form is beside",
};

const WEIGHTED: Needs = Needs {
    met: |settings| (BESIDE.met)(settings) && settings.get(&PAGES) == Pages::Weighted,
    switches: &["near.pages"],
    what: "near.form is beside and near.pages is weighted",
};

const MOST_LINES: u64 = 1 << 40;

keys! {
    FORM: NearForm = word("near.form", "none"),
        Source("the machines of the papers have one medium"),
        "A second medium that a power cut loses: none, a cache before the persistent one, or memory beside it";
    SURVIVES: Survives = word("near.survives", "no"),
        Source("DRAM; yes as NVDIMM-N, whose module saves all of it on reserve power (JEDEC JESD245)"),
        "Whether the near medium outlives a power cut; claimed: it does not, and the machine counts on it, which the \
         crash explorer catches" needs NEAR;
    TABLES: NearTables = word("near.tables", "none"),
        Source("ESD and SCA have their tables in the persistent medium"),
        "Tables of the persistent medium's design that lie in the near one, which has to survive a power cut" needs NEAR;
    LINES: u64 = int("near.lines", (0, MOST_LINES), 0),
        Source("all that the near medium has"),
        "Lines of the near medium that are used; 0 for all. A cache with ways has whole sets of them, and one at least"
        needs NEAR
        under |by| by.cache_lines;
    WRITES: Writes = word("near.writes", "back"),
        Assumed("memory mode writes back and persists nothing (stop); no machine sold has a cache before memory that persists"),
        "Where a line goes that is written: into the cache until its place is needed, and on if the processor flushes \
         it; through it; or stop there, which the crash explorer catches" needs CACHE;
    FILLS: bool = flag("near.fills_on_write", true),
        Source("Hildebrand et al., ISPASS 2021: a write that misses brings its line first, up to 5 accesses"),
        "Whether a write that misses the cache brings its line from the persistent medium first" needs CACHE;
    LOOKS: bool = flag("near.looks_before_write", true),
        Source("Hildebrand et al., ISPASS 2021: a write reads the tag first; NVMain's LO_Cache does not"),
        "Whether a write reads its slot first: its tag, and the line that may have to go" needs TAGS_BESIDE;
    TAGS: Tags = word("near.tags", "beside"),
        Source("Optane's memory mode: in the ECC bits (Hildebrand et al., ISPASS 2021); caches of pages: on chip"),
        "Where the cache's tags are: beside the lines, which a look-up reads, or on chip, without an access and in no \
         time (assumed)" needs CACHE;
    BLOCK_LINES: u64 = power_of_two("near.block_lines", (1, 64), 64),
        Source("pages of 4 KiB, as in caches of pages (Jevdjic et al., ISCA 2013) and Linux's tiering"),
        "Lines of a block of the cache, all of which are brought at once" needs ON_CHIP;
    WAYS: u64 = int("near.ways", (1, 64), 16),
        Assumed("caches of pages differ, and pages of a tier have no sets at all: as many ways as it has blocks, or 64"),
        "Ways of a set of the cache, of which the block that was used longest ago goes"
        in Between("1", "64", "a slot for each block, to nearly any") needs ON_CHIP;
    ADMIT_AFTER: u64 = int("near.admit_after", (1, 1 << 20), 1),
        Source("a cache brings what it misses; TPP promotes a page at the second fault that finds it in use (2)"),
        "Misses of a block, among those that are seen, until it is brought" needs ON_CHIP;
    ADMIT_SAMPLE: u64 = int("near.admit_sample", (1, 1 << 20), 1),
        Source("a cache sees all; Linux sees what it has unmapped since its last scan"),
        "Misses of which one is seen" needs ON_CHIP;
    ADMIT_EVERY: u64 = int("near.admit_every", (0, 1 << 40), 0),
        Source("a cache has no limit; Linux has one of bytes a second (numa_balancing_promote_rate_limit_MBps)"),
        "Requests between two blocks that are brought, at least" needs ON_CHIP;
    PAGES: Pages = word("near.pages", "first"),
        Source("Linux allocates from the node that the program runs on until that is full"),
        "Where a page lies that is touched first: in the near medium until that is full, in turns, or in the near one \
         unless a file is mapped there" needs BESIDE;
    NEAR_WEIGHT: u64 = int("near.weight", (0, 255), 1),
        Assumed("Linux's weighted interleave has weights of 1 unless told otherwise"),
        "Pages in turn that the near medium gets"
        in Between("1", "8", "as many as the other, to the ratio of DRAM's bandwidth to a slow medium's") needs WEIGHTED;
    FAR_WEIGHT: u64 = int("near.far_weight", (0, 255), 1),
        Assumed("Linux's weighted interleave has weights of 1 unless told otherwise"),
        "Pages in turn that the persistent medium gets"
        in Between("1", "8", "as many as the other, to eight times") needs WEIGHTED;
}

/// The design of the near medium's own stack, from those that need no table to find a line.
pub static DESIGN: crate::settings::Key<NearDesign> = crate::settings::Key::text(
    "near.design",
    Allowed::Text {
        known: known_design,
        range: "a design without deduplication, log and integrity, and with nothing beside a line: baseline, fca, no-encryption, sca",
        tried: &["no-encryption", "baseline"],
    },
    "no-encryption",
    crate::settings::Origin::Assumed(
        "no paper has two media; what is lost in a cut has least need of encryption",
    ),
    "The design under which the near medium's lines lie",
)
.needing(NEAR);

/// The name of a near medium's design.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NearDesign(pub &'static str);

impl Setting for NearDesign {
    fn from_value(value: Value) -> NearDesign {
        match value {
            Value::Word(name) => NearDesign(name),
            other => unreachable!("{other:?} where the key's kind is a name"),
        }
    }

    fn value(self) -> Value {
        Value::Word(self.0)
    }
}

fn known_design(name: &str) -> Option<&'static str> {
    ["no-encryption", "baseline", "fca", "sca"]
        .into_iter()
        .find(|known| *known == name)
}

mechanisms! {
    NEAR_HIT = "reads that the near cache answered", least 30;
    NEAR_VICTIM = "dirty lines that left the near cache", least 30,
        under |settings| settings.get(&WRITES) != Writes::Through;
    NEAR_FLUSHED = "flushes that went through the near cache", least 30,
        under |settings| settings.get(&WRITES) == Writes::Through || flushes_below(settings);
}

/// The crash explorer's knowledge of a cache before the persistent medium.
pub static PART: Part = Part {
    met: CACHE.met,
    keys: &[&LINES],
    tries: MECHANISMS,
    limits: &[],
};

/// Whether the machine counts on the near medium after a power cut.
pub fn counted_on(settings: &Settings) -> bool {
    (NEAR.met)(settings) && settings.get(&SURVIVES) != Survives::No
}

/// Whether the tags of a cache are on chip.
pub fn on_chip(settings: &Settings) -> bool {
    (CACHE.met)(settings) && settings.get(&TAGS) == Tags::OnChip
}

/// The bits of the near medium's places.
pub fn bits(settings: &Settings) -> u64 {
    match settings.get(&SURVIVES) {
        Survives::Yes => Place::NEAR_SAVED,
        Survives::No | Survives::Claimed => Place::NEAR,
    }
}

/// Whether a line that no cache of the processor has may be newer near than in the persistent medium.
pub fn flushes_below(settings: &Settings) -> bool {
    (CACHE.met)(settings) && settings.get(&WRITES) == Writes::Back && !counted_on(settings)
}

/// Lines of a near medium of so many that are used.
pub fn used(settings: &Settings, lines: u64) -> u64 {
    match settings.get(&LINES) {
        0 => lines,
        used => used.min(lines),
    }
}

/// The prefix of the near medium's own parameters.
pub const PREFIX: &str = "near.";

/// Rows of the near medium's parameters: those of a medium in `rows`, under [`PREFIX`]. They have no defaults, since a
/// machine gives them.
pub fn rows(rows: impl Iterator<Item = &'static Row>) -> Vec<Row> {
    let medium = rows.filter(|row| row.name.starts_with("medium."));
    let near = medium.map(|row| Row {
        name: format!("{PREFIX}{}", row.name).leak(), // once in the life of a program
        default: None,
        doubt: None,
        pressed: |_| None,
        needs: Some(NEAR),
        ..*row
    });
    near.collect()
}

/// Whether a key is one of the near medium's parameters.
pub fn is_of_medium(key: &str) -> bool {
    key.strip_prefix(PREFIX)
        .is_some_and(|rest| rest.starts_with("medium."))
}

/// Whether a near medium can have the part of a medium that this parameter is of: it has banks, and neither wears nor
/// keeps tables.
pub fn can_have(parameter: &str) -> bool {
    const NOT: [&str; 6] = [
        "buffer",
        "cells",
        "pausing",
        "levelling",
        "endurance",
        "regions_skew",
    ];
    let part = parameter.strip_prefix("medium.");
    part.is_some_and(|part| !NOT.iter().any(|not| part.starts_with(not)))
}

/// The settings of the near medium under the names that media have; `None` without one. Everything else, units and
/// layers, is the machine's own: both media hang on one controller.
pub fn settings(settings: &Settings) -> Option<Settings> {
    (NEAR.met)(settings).then(|| {
        let mut own =
            settings.without(|name| name.starts_with("medium.") || name.starts_with(PREFIX));
        for (name, value) in settings.iter().filter(|(name, _)| is_of_medium(name)) {
            own.put(&name[PREFIX.len()..], value);
        }
        own
    })
}
