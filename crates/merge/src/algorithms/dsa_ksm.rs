//! Kernel same-page merging whose comparisons and checksums a data-movement accelerator on the processor's chip makes, one
//! at a time. Source: Ji et al., "Para-ksm: Parallelized Memory Deduplication with Data Streaming Accelerator", ATC 2025,
//! and "Cooperative Memory Deduplication With Intel Data Streaming Accelerator", CAL 2025; their abstracts were read.
//! Left out: batches of several pages (Para-ksm).

use super::{Algorithm, Merges};
use crate::ksm::settings::Knobs;
use crate::ksm::{PageSearch, Software, TreeWalk, Walkable};
use crate::run::PassRun;
use crate::timed::ModuleCosts;
use crate::{Page, PageFrame, PageStore};
use sardonyx::config::Machine;
use sardonyx::line::LINE_BYTES;
use sardonyx::settings::{Row, Settings, keys};
use sardonyx::units::Time;

pub(super) static ALGORITHM: Algorithm = Algorithm {
    name: "dsa-ksm",
    line: "as ksm, but an accelerator on the chip compares pages and hashes them",
    source: "Ji et al., ATC 2025",
    keys: || vec![&CALL_NS.row], // and ksm's
    timed_keys,
    merges: Some(Merges {
        looks_into_pages: false,
        on_images: |images, chosen, settings| {
            Box::new(PassRun::new(images, chosen, search(settings), settings))
        },
        in_time: |start| {
            let search = search(start.settings);
            start.settle(search)
        },
        modules: |machine, settings| Some(modules(machine, settings)),
    }),
};

const MANY: u64 = 1_000_000;

keys! {
    CALL_NS: u64 = int("dsa.call_ns", (0, MANY), 225),
        Assumed("no source: dsa.submit_instructions and one look, at 2 GHz"),
        "processor time of a comparison or a checksum that the accelerator makes"
        in Between("50", "1000", "a quarter, and four times as long");
    SUBMIT: u32 = int("dsa.submit_instructions", (0, MANY), 400),
        Assumed("no source: a descriptor is filled and enqueued"),
        "instructions that give the accelerator a comparison or a checksum"
        in Between("100", "1600", "a quarter, and four times as many");
    LOOK: u32 = int("dsa.look_instructions", (1, MANY), 50),
        Assumed("no source: a record of completion is read"),
        "instructions that look whether it has finished"
        in Between("10", "200", "a fifth, and four times as many");
    POLL_CYCLES: u64 = int("dsa.poll_cycles", (1, 1_000_000_000), 1_000),
        Assumed("no source: about what a page takes"),
        "core cycles between two looks"
        in Between("250", "12000", "a quarter, and as PageForge's");
    START_NS: u64 = int("dsa.start_ns", (0, MANY), 500),
        Assumed("ATC 2025: offloading through on-chip PCIe takes long; no number"),
        "nanoseconds from the bell until it asks for the first line"
        in Between("100", "2000", "a fifth, and four times as long");
    AHEAD: u64 = int("dsa.lines_ahead", (1, 64), 16),
        Assumed("no source: enough for its bandwidth at memory's latency"),
        "lines of a page that it asks for at once"
        in Between("4", "64", "a quarter, and a page");
    GBPS: u64 = int("dsa.gbps", (1, 1_000), 30),
        Source("Kuper et al., arXiv 2305.02480, from memory: about 30 GB/s a device"),
        "gigabytes a second that it reads at most";
}

fn timed_keys() -> Vec<&'static Row> {
    vec![
        &SUBMIT.row,
        &LOOK.row,
        &POLL_CYCLES.row,
        &START_NS.row,
        &AHEAD.row,
        &GBPS.row,
    ]
}

fn modules(machine: &Machine, settings: &Settings) -> ModuleCosts {
    let ns = |key| Time::from_ps(settings.get(key) * 1_000);
    let line = LINE_BYTES as u64 * 1_000 / settings.get(&GBPS);
    ModuleCosts {
        name: "accelerator",
        count: 1,
        poll: machine.core.clock * settings.get(&POLL_CYCLES),
        call: settings.get(&LOOK),
        entry: settings.get(&SUBMIT),
        start: ns(&START_NS),
        network: Time::ZERO,
        compare: Time::from_ps(2 * line),
        key_line: Time::from_ps(line),
        ahead: settings.get(&AHEAD) as u8,
        keeps: false,
        outside: true,
        offloads: true,
    }
}

fn search(settings: &Settings) -> Offloaded {
    Offloaded {
        kernel: Software::new(Knobs::from_settings(settings).checksum),
        call_ns: settings.get(&CALL_NS),
    }
}

/// The kernel's own search, whose comparisons and checksums take the processor a call each.
struct Offloaded {
    kernel: Software,
    call_ns: u64,
}

impl PageSearch for Offloaded {
    fn walk(
        &mut self,
        contents: &mut impl PageStore,
        tree: &mut impl Walkable,
        frame: PageFrame,
    ) -> TreeWalk {
        self.kernel.walk(contents, tree, frame)
    }

    fn key(&mut self, contents: &mut impl PageStore, page: Page) -> u32 {
        self.kernel.key(contents, page)
    }

    fn begin(&mut self, page: Page) {
        self.kernel.begin(page);
    }

    fn cpu_ns(&self, _checksum_ns: u64, _compare_ns: u64) -> u64 {
        self.kernel.cpu_ns(self.call_ns, self.call_ns)
    }
}
