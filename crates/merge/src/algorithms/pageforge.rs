//! PageForge (Skarlatos, Kim and Torrellas, MICRO 2017): the kernel's thread walks KSM's trees, and a module in
//! the memory controller compares pages and takes keys.

use super::{Algorithm, Merges};
use crate::pageforge::{self, CALL_NS, PageForge};
use crate::run::PassRun;
use crate::timed::{ModuleCosts, instructions};
use sardonyx::config::Machine;
use sardonyx::settings::{Row, Settings, keys, words};
use sardonyx::units::Time;

pub(super) static ALGORITHM: Algorithm = Algorithm {
    name: "pageforge",
    line: "a module in the memory controller compares pages and takes keys from its check bits",
    source: "Skarlatos, Kim and Torrellas, MICRO 2017",
    keys: pageforge::rows,
    timed_keys,
    merges: Some(Merges {
        looks_into_pages: true,
        on_images: |images, chosen, settings| {
            Box::new(PassRun::new(
                images,
                chosen,
                PageForge::new(settings),
                settings,
            ))
        },
        in_time: |start| {
            let search = PageForge::new(start.settings);
            start.settle(search)
        },
        modules: |machine, settings| Some(modules(machine, settings)),
    }),
};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Site {
    Controller,
    /// At the on-chip network (4.1).
    Network,
}

words!(Site { "controller" => Controller, "network" => Network });

const MANY: u64 = 1_000_000;

keys! {
    MODULES: usize = int("pageforge.modules", (1, 8), 1),
        Source("PageForge Table 2"), "modules, each of which compares a candidate page (4.1)";
    MODULE: Site = word("pageforge.module", "controller"),
        Source("PageForge 4.1"), "whether they are in the memory controllers or at the on-chip network";
    CANDIDATE_CACHE: bool = flag("pageforge.candidate_cache", false),
        Source("PageForge 3.5"), "a module keeps the candidate's lines that it has read";
    POLL_CYCLES: u64 = int("pageforge.poll_cycles", (1, 1_000_000_000), 12_000),
        Source("PageForge Table 5"), "core cycles between two looks of the system at the Scan Table";
    NETWORK_NS: u64 = int("pageforge.network_ns", (0, 10_000), 10),
        Assumed("the last-level cache's 20 cycles: nobody says how long a request takes through the network"),
        "a module's request through the on-chip network, and an answer from another controller"
        in Between("5", "40", "half, and four times as long");
    COMPARE_CYCLES: u64 = int("pageforge.compare_cycles", (0, 10_000), 2),
        Assumed("no source: an embedded ALU compares two lines"),
        "core cycles that a pair of lines takes when both are there"
        in Between("1", "8", "half, and four times as long");
    ENTRY: u32 = int("pageforge.entry_instructions", (0, MANY), 50),
        Assumed("no source: a node of the tree and its page number"),
        "instructions for each entry of the Scan Table, without the call"
        in Between("12", "200", "a quarter, and four times as many");
}

fn timed_keys() -> Vec<&'static Row> {
    vec![
        &MODULES.row,
        &MODULE.row,
        &CANDIDATE_CACHE.row,
        &POLL_CYCLES.row,
        &NETWORK_NS.row,
        &COMPARE_CYCLES.row,
        &ENTRY.row,
    ]
}

fn modules(machine: &Machine, settings: &Settings) -> ModuleCosts {
    let clock = machine.core.clock;
    ModuleCosts {
        name: "PageForge module",
        count: settings.get(&MODULES),
        poll: clock * settings.get(&POLL_CYCLES),
        call: instructions(machine, settings.get(&CALL_NS)),
        entry: settings.get(&ENTRY),
        start: Time::ZERO,
        network: Time::from_ps(settings.get(&NETWORK_NS) * 1_000),
        compare: clock * settings.get(&COMPARE_CYCLES),
        key_line: clock * settings.get(&COMPARE_CYCLES),
        ahead: 1,
        keeps: settings.get(&CANDIDATE_CACHE),
        outside: settings.get(&MODULE) == Site::Network,
        offloads: false,
    }
}
