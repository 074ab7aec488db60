//! Applications in the manner of TailBench (Kasture and Sanchez, IISWC 2016), as streams: how often queries come, how
//! long they are, how often they go past the first two caches, and where to. PageForge's Table 3 gives the rates. The
//! shares of cold accesses are chosen so that the last-level cache without merging misses about as often as in Table 4:
//! they describe what runs, not what merging does. All else is assumed.

use sardonyx::names::did_you_mean;
use sardonyx::settings::{Key, Row, Settings, keys};

#[derive(Debug)]
pub struct Application {
    pub name: &'static str,
    queries: &'static Key<u64>,
    instructions: &'static Key<u64>,
    spread: &'static Key<u64>,
    accesses: &'static Key<u64>,
    stores: &'static Key<u64>,
    depends: &'static Key<u64>,
    hot: &'static Key<u64>,
    cold: &'static Key<u64>,
    cold_share: &'static Key<u64>,
    mergeable: &'static Key<u64>,
    copies: &'static Key<u64>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Demand {
    pub queries_per_second: u64,
    pub instructions: u64,
    /// Standard deviation of their number over its mean, in percent.
    pub spread_percent: u64,
    /// Accesses past the first cache in 100,000 instructions.
    pub accesses: u64,
    /// The share of stores in accesses.
    pub stores_percent: u64,
    /// The share of loads whose value the next access needs.
    pub depends_percent: u64,
    /// Memory that is used again and again, in KiB.
    pub hot_kib: u64,
    pub cold_kib: u64,
    /// The share of accesses to the memory that is used occasionally.
    pub cold_permille: u64,
    /// The share of this memory's pages that other machines have too.
    pub mergeable_percent: u64,
    /// One query in this many writes a page that other machines have too.
    pub queries_a_copy: u64,
}

impl Application {
    pub fn demand(&self, settings: &Settings) -> Demand {
        Demand {
            queries_per_second: settings.get(self.queries),
            instructions: settings.get(self.instructions),
            spread_percent: settings.get(self.spread),
            accesses: settings.get(self.accesses),
            stores_percent: settings.get(self.stores),
            depends_percent: settings.get(self.depends),
            hot_kib: settings.get(self.hot),
            cold_kib: settings.get(self.cold),
            cold_permille: settings.get(self.cold_share),
            mergeable_percent: settings.get(self.mergeable),
            queries_a_copy: settings.get(self.copies),
        }
    }

    pub fn named(name: &str) -> Result<&'static Application, String> {
        let found = ALL.iter().find(|application| application.name == name);
        found.ok_or_else(|| {
            let names: Vec<&str> = ALL.iter().map(|application| application.name).collect();
            let near = did_you_mean(name, &names);
            format!(
                "{name}: no such application; {near}they are {}",
                names.join(", ")
            )
        })
    }

    fn rows(&self) -> [&'static Row; 11] {
        [
            &self.queries.row,
            &self.instructions.row,
            &self.spread.row,
            &self.accesses.row,
            &self.stores.row,
            &self.depends.row,
            &self.hot.row,
            &self.cold.row,
            &self.cold_share.row,
            &self.mergeable.row,
            &self.copies.row,
        ]
    }
}

pub fn rows() -> Vec<&'static Row> {
    ALL.iter().flat_map(Application::rows).collect()
}

const MANY: u64 = 1 << 40;

/// Declares an application: its module of keys, its name and its values.
macro_rules! application {
    ($module:ident, $name:literal: $qps:literal queries, $instructions:literal instructions, spread $spread:literal,
     $accesses:literal accesses, $stores:literal stores, $depends:literal depend, $hot:literal hot, $cold:literal cold,
     $share:literal cold of 1000, $mergeable:literal mergeable) => {
        mod $module {
            use super::*;
            keys! {
                QUERIES: u64 = int(concat!($name, ".queries_per_second"), (1, 10_000_000), $qps),
                    Source("PageForge Table 3"), "queries a second of each virtual machine";
                INSTRUCTIONS: u64 = int(concat!($name, ".instructions"), (1, MANY), $instructions),
                    Assumed("a core is about half busy without merging: TailBench's middle load"),
                    "instructions of a query, on average";
                SPREAD: u64 = int(concat!($name, ".spread_percent"), (0, 1_000), $spread),
                    Assumed("no source; log-normal"), "standard deviation of the instructions, in percent of their mean"
                    in Between("0", "150", "from queries that are all alike to a deviation above the mean");
                ACCESSES: u64 = int(concat!($name, ".accesses"), (1, 100_000), $accesses),
                    Assumed("no source"), "accesses past the first cache in 100,000 instructions"
                    in Between("400", "3600", "a third, and three times as many");
                STORES: u64 = int(concat!($name, ".stores_percent"), (0, 100), $stores),
                    Assumed("no source"), "of 100 accesses, stores"
                    in Between("5", "60", "a quarter, and three times as many");
                DEPENDS: u64 = int(concat!($name, ".depends_percent"), (0, 100), $depends),
                    Assumed("no source"), "of 100 loads, those that the next access waits for"
                    in Between("0", "90", "none, and nearly all");
                HOT: u64 = int(concat!($name, ".hot_kib"), (4, 1 << 22), $hot),
                    Assumed("no source; all machines' fit in the last-level cache"), "memory used again and again, in KiB";
                COLD: u64 = int(concat!($name, ".cold_kib"), (4, 1 << 22), $cold),
                    Assumed("no source; none fits in the last-level cache"), "memory used now and then, in KiB";
                SHARE: u64 = int(concat!($name, ".cold_permille"), (0, 1_000), $share),
                    Assumed("so that the last-level cache without merging misses about as often as in Table 4, once it is full"),
                    "of 1,000 accesses, those to memory used now and then";
                MERGEABLE: u64 = int(concat!($name, ".mergeable_percent"), (0, 100), $mergeable),
                    Assumed("the paper: most merged pages are the operating system's"),
                    "of 100 pages used, those that other machines have too"
                    in Between("0", "60", "none, and three times as many");
                COPIES: u64 = int(concat!($name, ".queries_a_copy"), (1, MANY), 100),
                    Assumed("no source"), "one query in so many writes a page that other machines have too"
                    in Between("10", "1000", "ten times as often, and a tenth");
            }
        }
    };
}

macro_rules! listed {
    ($($module:ident $name:literal),+) => {
        /// All, in the order of PageForge's Table 3.
        pub static ALL: [Application; [$($name),+].len()] = [$(Application {
            name: $name,
            queries: &$module::QUERIES,
            instructions: &$module::INSTRUCTIONS,
            spread: &$module::SPREAD,
            accesses: &$module::ACCESSES,
            stores: &$module::STORES,
            depends: &$module::DEPENDS,
            hot: &$module::HOT,
            cold: &$module::COLD,
            cold_share: &$module::SHARE,
            mergeable: &$module::MERGEABLE,
            copies: &$module::COPIES,
        }),+];
    };
}

application!(img_dnn, "img_dnn": 500 queries, 1_600_000 instructions, spread 20,
    1_200 accesses, 20 stores, 10 depend, 2_048 hot, 12_288 cold, 345 cold of 1000, 20 mergeable);
application!(masstree, "masstree": 500 queries, 1_600_000 instructions, spread 50,
    1_200 accesses, 35 stores, 60 depend, 2_048 hot, 12_288 cold, 197 cold of 1000, 20 mergeable);
application!(moses, "moses": 100 queries, 8_000_000 instructions, spread 80,
    1_200 accesses, 20 stores, 40 depend, 2_048 hot, 12_288 cold, 280 cold of 1000, 20 mergeable);
application!(silo, "silo": 2_000 queries, 400_000 instructions, spread 80,
    1_200 accesses, 40 stores, 50 depend, 2_048 hot, 12_288 cold, 195 cold of 1000, 20 mergeable);
application!(sphinx, "sphinx": 1 queries, 800_000_000 instructions, spread 60,
    1_200 accesses, 15 stores, 30 depend, 2_048 hot, 12_288 cold, 405 cold of 1000, 20 mergeable);

listed!(img_dnn "img_dnn", masstree "masstree", moses "moses", silo "silo", sphinx "sphinx");
