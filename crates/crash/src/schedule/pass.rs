//! The passes of a plan: the settings of each, which bring its run to what a power cut could find a fault in.

use std::collections::BTreeMap;

use sardonyx::controller::designs::Stack;
use sardonyx::controller::layers::Limit;
use sardonyx::medium::params::{CRASH_CACHED, CRASH_ENDURED, CRASH_SHORT, Geometry, Queues};
use sardonyx::medium::parts;
use sardonyx::settings::{Pressure, Settings};

/// The workload of duplicates and collisions, which the plan of every mapping includes.
const DUPLICATES: &str = "duplicates";
/// Workloads whose structures all cores share, which every plan of several cores includes.
const ACCOUNTS: &str = "shared-accounts";
const QUEUE: &str = "shared-queue";
/// The workload that takes no place after its first transactions, which the plan of every mapping includes.
pub(crate) const SWAPS: &str = "array-swap";
/// The workload that stores outside of transactions, which the plan of every hardware log includes.
const STORES: &str = "swap-and-store";
/// The number of items of a shared structure, so few that cores meet.
pub(crate) const MEETING: u64 = 6;

pub(crate) const LONG_ITEM: u64 = 4096;

/// Writes between two counter marks in a pass that does not have them as near as can be. The number is odd, so half of
/// it is rounded.
const ODD: u64 = 7;

/// Writes of a life without a clock: so many that one line's are more than 16 bits count.
const ENDURED: u64 = 80_000;

pub(crate) struct Pass {
    pub program: String,
    pub several_cores: bool,
    pub packed: bool,
    pub pressure: Pressure,
    pub item_bytes: u64,
    pub footprint: u64,
    pub transactions: u64,
    /// The index of the limits in each layer's list that the pass comes to.
    pub limits: Option<usize>,
    pub full: bool,
    /// The medium has several channels and ranks.
    pub wide: bool,
    /// The medium has this many places fewer than the programs take, or the log this many buckets; the run may end
    /// because something is full.
    pub short: Option<u64>,
    /// The processor's caches hold this many lines for each core.
    pub cached: Option<u64>,
    /// The writes of a life without a clock beside the run.
    pub endured: Option<u64>,
    pub meeting: bool,
    /// The program flushes nothing, because reserve power drains the caches.
    pub unflushed: bool,
    /// The number of cores of a pass with several, if the user has not set it.
    pub cores: usize,
}

impl Pass {
    pub(crate) fn for_program(program: &str) -> Pass {
        Pass {
            program: program.to_owned(),
            several_cores: false,
            packed: true,
            pressure: Pressure {
                cache_lines: Some(2),
                short: true,
                stride: Some(2),
                collisions: program == DUPLICATES,
                long_transactions: program == DUPLICATES,
                limits: false,
            },
            item_bytes: 64,
            footprint: 4096,
            transactions: 40,
            limits: None,
            full: false,
            wide: false,
            short: None,
            cached: None,
            endured: None,
            meeting: false,
            unflushed: false,
            cores: 2,
        }
    }

    /// A pass that leaves the machine's caches, queues and marks as they are.
    fn relaxed(program: &str) -> Pass {
        let mut pass = Pass::for_program(program);
        pass.pressure.cache_lines = None;
        pass.pressure.short = false;
        pass.pressure.stride = None;
        pass
    }

    fn cache_lines(mut self, lines: u64) -> Pass {
        self.pressure.cache_lines = Some(lines);
        self
    }

    fn stride(mut self, writes: u64) -> Pass {
        self.pressure.stride = Some(writes);
        self
    }

    fn limited(mut self) -> Pass {
        self.pressure.limits = true;
        self
    }

    fn at_limits(mut self, number: usize) -> Pass {
        self.limits = Some(number);
        self.limited()
    }

    /// Makes items so long that more writes are outstanding than queues have entries, and that a transaction takes most
    /// of the buckets that a hardware log can name.
    fn long(self) -> Pass {
        Pass {
            item_bytes: LONG_ITEM,
            footprint: 4 * LONG_ITEM,
            transactions: 6,
            ..self
        }
    }

    /// Takes a medium that has exactly one place for each line of the programs.
    fn full(mut self) -> Pass {
        self.full = true;
        self
    }

    fn cached(mut self, lines: u64) -> Pass {
        self.cached = Some(lines);
        self
    }

    /// Has something get full: the medium has this many places fewer than the programs take, or the log is too small.
    pub(crate) fn short_of(mut self, places: u64) -> Pass {
        self.short = Some(places);
        self.full()
    }

    /// The settings that make the pass over `stack` on a machine with the settings `machine`, in the form of `--set`.
    pub fn settings(&self, stack: &Stack, machine: &Settings) -> Vec<(String, String)> {
        let keys = stack
            .layers()
            .into_iter()
            .flat_map(|layer| layer.about().keys);
        let keys = keys.chain(parts::in_use(machine).flat_map(|part| part.keys));
        let queues = Queues::SHORT.into_iter().filter(|_| self.pressure.short);
        let pressed = keys.flat_map(|key| key.pressed(&self.pressure));
        let limits = self.limits.into_iter();
        let limits =
            limits.flat_map(|number| limits_of(stack, machine).flat_map(move |l| l.at(number)));
        let full = Geometry::FULL.into_iter().filter(|_| self.full);
        let wide = Geometry::WIDE.into_iter().filter(|_| self.wide);
        let short = self.short.map(|places| (CRASH_SHORT.name(), places));
        let cached = self.cached.map(|lines| (CRASH_CACHED.name(), lines));
        let endured = self.endured.map(|writes| (CRASH_ENDURED.name(), writes));
        let settings = pressed
            .chain(queues)
            .chain(limits)
            .chain(full)
            .chain(wide)
            .chain(short)
            .chain(cached)
            .chain(endured);
        let settings: BTreeMap<&str, u64> = settings.collect();
        let settings = settings.into_iter();
        let settings = settings.map(|(key, value)| (key.to_owned(), value.to_string()));
        settings.collect()
    }
}

pub(crate) fn limits_of(stack: &Stack, machine: &Settings) -> impl Iterator<Item = &'static Limit> {
    let layers = stack.layers().into_iter();
    let layers = layers.flat_map(|layer| layer.about().limits);
    layers.chain(parts::in_use(machine).flat_map(|part| part.limits))
}

pub(crate) fn most_limits(stack: &Stack, machine: &Settings) -> usize {
    let passes = limits_of(stack, machine).map(|limit| limit.passes());
    passes.max().unwrap_or(0)
}

/// What a mapping does with places.
#[derive(Clone, Copy)]
pub(crate) struct Mapping {
    /// It finds lines whose content memory has.
    pub finds_duplicates: bool,
    /// It gives lines places, which a run can use up.
    pub gives_places: bool,
}

/// Passes in which a program flushes nothing, as it may where reserve power drains the caches.
pub(crate) fn unflushed(program: &str) -> [Pass; 2] {
    let pass = Pass {
        unflushed: true,
        ..Pass::for_program(program)
    };
    let relaxed = Pass {
        unflushed: true,
        packed: false,
        transactions: 120,
        ..several(Pass::relaxed(program))
    };
    [pass, relaxed]
}

/// The passes of a plan for `program`. A mapping that finds duplicates has the workload of duplicates as well, a program
/// that is `logged` by hardware fills the log, and `limits` of them come to the layers' limits.
pub(crate) fn passes(
    program: &str,
    logged: bool,
    cores: Option<usize>,
    mapping: Mapping,
    limits: usize,
) -> Vec<Pass> {
    // An item has more lines of counters than the cache has room for.
    let large = |pass: Pass| Pass {
        item_bytes: 256,
        footprint: 8192,
        ..pass
    };
    let mut passes = vec![
        Pass {
            packed: false,
            footprint: 16_384,
            transactions: 120,
            endured: Some(ENDURED),
            ..Pass::relaxed(program)
        },
        large(Pass::for_program(program).stride(ODD)),
        several(Pass::for_program(program)),
        Pass {
            transactions: 24,
            ..several(large(Pass::relaxed(program).cache_lines(8).stride(ODD)))
        },
        Pass {
            packed: false,
            ..several(Pass::for_program(program).cache_lines(8))
        },
    ];
    if mapping.finds_duplicates {
        passes.extend([
            Pass {
                footprint: 32_768, // so that counts of eight bits saturate
                transactions: 60,
                ..Pass::relaxed(DUPLICATES).stride(ODD)
            },
            Pass {
                transactions: 60,
                ..Pass::for_program(DUPLICATES).cache_lines(8).limited()
            },
            several(Pass::for_program(DUPLICATES)),
        ]);
    }
    // The tightest settings come once more with marks further apart: some faults show in no other pass.
    passes.extend([
        Pass::for_program(program).stride(ODD).cached(16),
        several(Pass::for_program(program).stride(ODD)),
        Pass {
            wide: true,
            ..several(large(Pass::for_program(program)))
        },
    ]);
    let at_limits = |number| match number {
        0 => Pass::for_program(program).long(),
        1 => several(Pass {
            transactions: 24,
            ..Pass::for_program(program)
        }),
        _ => Pass::relaxed(program).long(),
    };
    passes.extend((0..limits).map(|number| at_limits(number).at_limits(number)));
    if mapping.gives_places {
        passes.push(Pass::for_program(program).stride(ODD).full());
    }
    if logged {
        passes.push(Pass::for_program(STORES).stride(ODD));
        passes.push(several(Pass::relaxed(STORES).cache_lines(8)));
    }
    if cores != Some(1) {
        passes.extend(together());
    }
    passes.extend(used_up(
        program,
        mapping.gives_places,
        logged,
        cores == Some(1),
    ));
    passes
}

/// Passes in which all cores share one structure.
fn together() -> [Pass; 2] {
    let passes = [
        Pass {
            transactions: 80,
            ..Pass::for_program(ACCOUNTS)
        },
        Pass {
            transactions: 24,
            cores: 4,
            ..Pass::relaxed(QUEUE).cache_lines(8).stride(ODD)
        },
    ];
    passes.map(|pass| Pass {
        meeting: true,
        ..several(pass)
    })
}

/// Passes in which there is too little of something: of places, of buckets of a log, of the processor's caches.
fn used_up(program: &str, gives_places: bool, logged: bool, alone: bool) -> Vec<Pass> {
    let mut passes = Vec::new();
    if gives_places {
        // With caches of one line each lookup drops the one before. Most of a log's 64 buckets are free, and their
        // places are too, so more places have to lack.
        let lacking = if logged { 40 } else { 1 };
        passes.push(Pass::for_program(SWAPS).cache_lines(1).short_of(lacking));
        passes.push(several(
            Pass::for_program(DUPLICATES).cache_lines(1).short_of(4),
        ));
    }
    if logged {
        let short = |buckets| {
            let mut short = several(Pass::for_program(program).short_of(buckets));
            short.transactions = 24;
            // A single core fills a log only if a transaction takes several buckets.
            short.pressure.long_transactions = false;
            short
        };
        // Buckets have one record, and then two, which a single core does not fill.
        passes.push(short(1));
        passes.push(if alone { short(3) } else { short(2).limited() });
        if gives_places && !alone {
            // Less is lacking here, so that runs get to where no place is left.
            passes.push(short(3).limited());
        }
    }
    let mut cached = Pass {
        packed: false, // so that lines of several cores want one set
        transactions: 120,
        ..several(Pass::for_program(program).cached(2))
    };
    // A line that has left the caches is logged again, so there are more entries than buckets of one record have room
    // for.
    cached.pressure.long_transactions = true;
    passes.push(cached);
    passes
}

fn several(pass: Pass) -> Pass {
    Pass {
        several_cores: true,
        ..pass
    }
}
