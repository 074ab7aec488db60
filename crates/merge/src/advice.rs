//! Advice for an operator: settings of the kernel for a time or a share of a core; the gain of each machine, net of the
//! kernel's own memory; merges that writes undo; huge pages that would split; and what a neighbour may learn.

use std::collections::{BTreeMap, BTreeSet};

use rustc_hash::FxHashMap;
use serde::Serialize;

use super::convergence::{FinishedRun, saved};
use super::images::{HUGE_PAGES, Images};
use super::ksm::settings::{Knobs, wakes};
use super::ksm::{ITEM_BYTES, KsmCounters, Maps, NODE_BYTES};
use super::owner::Owner;
use super::{PAGE_BYTES, Page};

/// The limits for the kernel's thread; the kernel's advisor has the same defaults.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Target {
    pub pass_seconds: u64,
    /// The most of a core, in percent; it has precedence over the time.
    pub core_percent: u64,
}

impl Default for Target {
    fn default() -> Target {
        Target {
            pass_seconds: 200,
            core_percent: 70,
        }
    }
}

/// Pages of zeros in images, which may never have been touched, and the savings if they were and if they were not.
#[derive(Clone, Debug, Serialize)]
pub struct Untouched {
    pub zero_pages: u64,
    pub holes: u64,
    /// The share of pages saved as asked: with zeros `held` they are pages.
    pub saving: f64,
    pub saved_bytes: u64,
    pub saving_if_untouched: f64,
    pub saved_bytes_if_untouched: u64,
}

/// The first doubt about a dump: whether its zeros are pages. `None` if there is no image with zeros.
pub(super) fn untouched(images: &Images, finished: &FinishedRun<'_>) -> Option<Untouched> {
    let dumps = images
        .machines
        .iter()
        .filter(|machine| machine.process.is_none());
    let pages = dumps
        .clone()
        .flat_map(|machine| machine.space.first..machine.space.end);
    let zeros: Vec<Page> = pages
        .filter(|page| images.zero.is_some() && images.last(*page) == images.zero)
        .collect();
    let holes: u64 = dumps.map(|machine| machine.holes).sum();
    if zeros.is_empty() && holes == 0 {
        return None;
    }
    let last = finished.passes.last().copied().unwrap_or_default();
    let run = &finished.run;
    let merged = zeros
        .iter()
        .filter(|page| matches!(run.maps(**page), Maps::Merged | Maps::Zero));
    let saved_zeros = (merged.count() as u64).saturating_sub(run.zero_nodes());
    let (all, kept) = (run.pages().pages, saved(&last));
    let without = kept.saturating_sub(saved_zeros);
    let share = |saved: u64, pages: u64| saved as f64 / pages.max(1) as f64;
    Some(Untouched {
        zero_pages: zeros.len() as u64,
        holes,
        saving: share(kept, all),
        saved_bytes: kept * PAGE_BYTES as u64,
        saving_if_untouched: share(without, all - zeros.len() as u64),
        saved_bytes_if_untouched: without * PAGE_BYTES as u64,
    })
}

#[derive(Clone, Debug, Serialize)]
pub struct Advice {
    /// Bytes saved less all that the kernel keeps for it.
    pub net_bytes: i64,
    /// Bytes that the kernel keeps: items of pages, and nodes of merged frames.
    pub kernel_bytes: i64,
    pub recommendation: Recommendation,
    pub profits: Vec<Profit>,
    pub breaks: Breaks,
    /// Exposures of each tenant; empty if there is one tenant only.
    pub tenants: Vec<Exposure>,
}

#[derive(Clone, Debug, Serialize)]
pub struct Profit {
    pub machine: String,
    pub merged_pages: u64,
    pub items: u64,
    /// The machine's part of the savings of each of its merged frames, less its items and its part of the nodes. The
    /// parts of all machines add up to the total.
    pub net_bytes: i64,
    /// The figure that `ksm_process_profit` in `/proc/PID/ksm_stat` would have: it counts each merged page as a whole
    /// one.
    pub ksm_process_profit: i64,
    /// `None` where huge pages are not known.
    pub huge_pages: Option<u64>,
    /// Huge pages that would split, because a page in them merges.
    pub huge_pages_split: Option<u64>,
    pub merged_in_huge: Option<u64>,
    /// Pages of zeros in huge pages that split: the kernel maps them to its zero page then, and its counters of merging
    /// do not have them (seen on Linux 6.18).
    pub zeros_in_split: Option<u64>,
}

#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct Breaks {
    /// Pages that were equal to another one in a snapshot that has a successor, counted in each snapshot.
    pub equal: u64,
    /// Kept pages that held something else in the successor, or were gone.
    pub broken: u64,
    pub in_run: u64,
}

/// The pages about which other tenants may learn by timing their own writes.
#[derive(Clone, Debug, Serialize)]
pub struct Exposure {
    pub tenant: String,
    pub pages: u64,
    pub shared_pages: u64,
    /// Different contents of these pages: a write to the frame tells that others hold the content.
    pub shared_contents: u64,
    pub with: Vec<String>,
    /// Pages that did not change between snapshots and are not zeros: whoever can guess all 4,096 bytes of one can find
    /// out whether the tenant holds it.
    pub guessable_pages: u64,
    /// Bytes that would no longer be saved if the tenant merged with itself only.
    pub apart_costs_bytes: i64,
    /// `nothing-shared`, `shares` or `shares-nothing-but-zeros`.
    pub verdict: &'static str,
}

pub(super) fn advice(
    images: &Images,
    finished: &FinishedRun<'_>,
    tenants: &[Owner],
    recommendation: Recommendation,
) -> Advice {
    let run = &finished.run;
    let last = finished.passes.last().copied().unwrap_or_default();
    let frames = run.pages().merged_frames + run.zero_nodes();
    let kernel_bytes = last.rmap_items as i64 * ITEM_BYTES + frames as i64 * NODE_BYTES;
    Advice {
        net_bytes: (saved(&last) * PAGE_BYTES as u64) as i64 - kernel_bytes,
        kernel_bytes,
        recommendation,
        profits: profits(images, finished),
        breaks: breaks(images, run.breaks()),
        tenants: exposures(images, finished, tenants),
    }
}

fn profits(images: &Images, finished: &FinishedRun<'_>) -> Vec<Profit> {
    let run = &finished.run;
    let each = images.machines.iter().map(|machine| {
        let known = machine.process.as_ref().filter(|about| about.frames_known);
        let huge = known.map(|about| &about.huge_at);
        let (mut merged, mut items, mut in_huge) = (0, 0, 0);
        let (mut parts, mut nodes) = (0.0, 0.0);
        let mut split = BTreeSet::new();
        for page in machine.space.first..machine.space.end {
            items += u64::from(run.has_item(page));
            match (run.maps(page), run.sharers(page)) {
                (Maps::Zero, _) => parts += 1.0,
                (Maps::Merged, Some((_, sharers))) => {
                    parts += 1.0 - 1.0 / f64::from(sharers);
                    nodes += 1.0 / f64::from(sharers);
                }
                _ => continue,
            }
            merged += 1;
            let at = machine.space.address_of(page) / HUGE_PAGES;
            if huge.is_some_and(|huge| huge.binary_search(&at).is_ok()) {
                split.insert(at);
                in_huge += 1;
            }
        }
        let items_bytes = items as i64 * ITEM_BYTES;
        let saved = parts * PAGE_BYTES as f64 - nodes * NODE_BYTES as f64;
        let in_split = |page: &Page| {
            images.zero.is_some()
                && images.last(*page) == images.zero
                && split.contains(&(machine.space.address_of(*page) / HUGE_PAGES))
        };
        let zeros = (machine.space.first..machine.space.end).filter(in_split);
        Profit {
            zeros_in_split: huge.map(|_| zeros.count() as u64),
            machine: machine.name.clone(),
            merged_pages: merged,
            items,
            net_bytes: saved.round() as i64 - items_bytes,
            ksm_process_profit: (merged * PAGE_BYTES as u64) as i64 - items_bytes,
            huge_pages: huge.map(|huge| huge.len() as u64),
            huge_pages_split: huge.map(|_| split.len() as u64),
            merged_in_huge: huge.map(|_| in_huge),
        }
    });
    each.collect()
}

fn breaks(images: &Images, in_run: u64) -> Breaks {
    let mut found = Breaks {
        in_run,
        ..Breaks::default()
    };
    for snapshot in 1..images.snapshots() {
        let mut holders = vec![0u32; images.contents()];
        for (_, content) in images.at(snapshot - 1) {
            holders[content as usize] += 1;
        }
        let mut next = images.at(snapshot).peekable();
        for (page, content) in images.at(snapshot - 1) {
            while next.peek().is_some_and(|(other, _)| *other < page) {
                next.next();
            }
            if holders[content as usize] > 1 {
                found.equal += 1;
                found.broken += u64::from(next.peek() != Some(&(page, content)));
            }
        }
    }
    found
}

type TenantPages = BTreeMap<u32, u32>;

/// The merged frames that several tenants map, without counts. Most frames have one tenant, for whom a number is
/// enough.
fn frames_of_several(
    finished: &FinishedRun<'_>,
    pages: impl Iterator<Item = (Page, u32)>,
) -> FxHashMap<u32, TenantPages> {
    let mut first: FxHashMap<u32, u32> = FxHashMap::default();
    let mut shared: FxHashMap<u32, TenantPages> = FxHashMap::default();
    for (page, tenant) in pages {
        if let Some((frame, _)) = finished.run.sharers(page)
            && *first.entry(frame).or_insert(tenant) != tenant
        {
            shared.entry(frame).or_default();
        }
    }
    shared
}

fn exposures(images: &Images, finished: &FinishedRun<'_>, tenants: &[Owner]) -> Vec<Exposure> {
    if tenants.len() < 2 {
        return Vec::new();
    }
    let run = &finished.run;
    let mut tenant_of = vec![0; images.machines.len()];
    for (number, tenant) in (0u32..).zip(tenants) {
        tenant
            .machines
            .iter()
            .for_each(|machine| tenant_of[*machine] = number);
    }
    let pages = || {
        let machines = images.machines.iter().zip(&tenant_of);
        machines.flat_map(|(machine, tenant)| {
            (machine.space.first..machine.space.end).map(move |page| (page, *tenant))
        })
    };
    let mut shared = frames_of_several(finished, pages());
    let mut content_of: FxHashMap<u32, u32> = FxHashMap::default();
    let mut found: Vec<Exposure> = tenants.iter().map(|of| Exposure::new(&of.name)).collect();
    for (page, tenant) in pages() {
        let Some(content) = images.last(page) else {
            continue;
        };
        let of = &mut found[tenant as usize];
        of.pages += 1;
        let still = images.changes_of(page) == 0 && Some(content) != images.zero;
        of.guessable_pages += u64::from(still);
        if let Some((frame, _)) = run.sharers(page)
            && let Some(mapped) = shared.get_mut(&frame)
        {
            *mapped.entry(tenant).or_default() += 1;
            content_of.insert(frame, content);
        }
    }
    let mut with: Vec<BTreeSet<u32>> = vec![BTreeSet::new(); tenants.len()];
    let mut contents: Vec<BTreeSet<u32>> = vec![BTreeSet::new(); tenants.len()];
    for (frame, mapped) in &shared {
        let zeros = content_of.get(frame).copied() == images.zero;
        for (tenant, count) in mapped {
            let of = &mut found[*tenant as usize];
            // The tenant alone would take one frame, and the others take one without it too.
            of.apart_costs_bytes += PAGE_BYTES as i64;
            if zeros {
                continue;
            }
            of.shared_pages += u64::from(*count);
            contents[*tenant as usize].extend(content_of.get(frame));
            with[*tenant as usize].extend(mapped.keys().filter(|other| *other != tenant));
        }
    }
    for (index, of) in found.iter_mut().enumerate() {
        of.shared_contents = contents[index].len() as u64;
        let names = with[index]
            .iter()
            .map(|other| &tenants[*other as usize].name);
        of.with = names.cloned().collect();
        of.verdict = match (of.shared_contents, of.apart_costs_bytes) {
            (0, 0) => "nothing-shared",
            (0, _) => "shares-nothing-but-zeros",
            _ => "shares",
        };
    }
    found
}

impl Exposure {
    fn new(tenant: &str) -> Exposure {
        Exposure {
            tenant: tenant.to_owned(),
            pages: 0,
            shared_pages: 0,
            shared_contents: 0,
            with: Vec::new(),
            guessable_pages: 0,
            apart_costs_bytes: 0,
            verdict: "nothing-shared",
        }
    }
}

/// Settings for a target, and what a run with them took.
#[derive(Clone, Debug, Serialize)]
pub struct Recommendation {
    pub target: Target,
    pub pages_to_scan: u64,
    pub sleep_millisecs: u64,
    /// A pass takes no longer than the target; if not, the share of a core prevents it.
    pub in_time: bool,
    /// Processor time in nanoseconds for each page scanned in the costliest pass, by the keys.
    pub ns_a_page: f64,
    /// Seconds of the longest pass of a run with these knobs.
    pub longest_pass_seconds: f64,
    /// The most of a core that a pass of that run took, in percent.
    pub most_core_percent: f64,
    pub lines: Vec<String>,
}

struct PassCost {
    pages: f64,
    cpu_s: f64,
    seconds: f64,
}

fn passes(finished: &FinishedRun<'_>) -> Vec<PassCost> {
    let (mut scanned, mut times) = (0, (0, 0));
    let each = finished.passes.iter().zip(&finished.times_ns);
    let each = each.map(|(counters, now): (&KsmCounters, &(u64, u64))| {
        let pass = PassCost {
            pages: (counters.pages_scanned - scanned) as f64,
            cpu_s: (now.0 - times.0) as f64 / 1e9,
            seconds: (now.1 - times.1) as f64 / 1e9,
        };
        (scanned, times) = (counters.pages_scanned, *now);
        pass
    });
    each.collect()
}

/// Batches of this many pages, each with its sleep, and the sleep at the pass's end last so many seconds.
fn pass_seconds(pages: f64, batch: f64, cost_s: f64, sleep: u64, tick: u64) -> f64 {
    let period = wakes((batch.min(pages) * cost_s * 1e9) as u64, sleep, tick) as f64 / 1e9;
    ((pages / batch).floor() + 1.0) * period
}

/// The fewest pages of a batch for which a pass lasts no longer than `limit`; infinity if there are none.
fn batch_for(pages: f64, limit: f64, cost_s: f64, sleep: u64, tick: u64) -> f64 {
    let mut batch = 1.0_f64;
    // The search goes up from a lower bound: a batch needs at least its share of the time by which a pass with smaller
    // batches is too long.
    while batch <= f64::from(u32::MAX) {
        let seconds = pass_seconds(pages, batch, cost_s, sleep, tick);
        if seconds <= limit {
            return batch;
        }
        batch = (batch * seconds / limit)
            .min(batch * 1.5)
            .max(batch + 1.0)
            .floor();
    }
    f64::INFINITY
}

/// The knobs for a target, from what the passes of a run took. A batch of n pages costs n times what a page costs, and
/// then comes a sleep; at most a share p of a core needs n < sleep * p / (1 - p) / cost, of the worst pass each.
pub(super) fn knobs(finished: &FinishedRun<'_>, target: Target, knobs: &Knobs) -> Recommendation {
    let passes: Vec<PassCost> = passes(finished);
    let mut sleep = match knobs.sleep_millisecs {
        0 => 20,
        sleep => sleep,
    };
    let costs = passes.iter().filter(|pass| pass.pages > 0.0);
    let cost_s = costs.clone().map(|pass| pass.cpu_s / pass.pages);
    let cost_s = cost_s.fold(1e-9, f64::max);
    let limit = target.pass_seconds as f64;
    let needed = costs.map(|pass| batch_for(pass.pages, limit, cost_s, sleep, knobs.tick));
    let needed = needed.fold(1.0, f64::max);
    let share = target.core_percent as f64 / 100.0;
    let sleeping = (1.0 - share) / share;
    let sleeps = wakes(0, sleep, knobs.tick) as f64 / 1e9;
    let most = match share < 1.0 {
        true => (sleeps / sleeping / cost_s).floor(),
        false => f64::from(u32::MAX),
    };
    if most < 1.0 {
        sleep = (cost_s * sleeping * 1e3).ceil() as u64;
    }
    let pages = needed.min(most).clamp(1.0, f64::from(u32::MAX)) as u64;
    Recommendation {
        target,
        pages_to_scan: pages,
        sleep_millisecs: sleep,
        in_time: false,
        ns_a_page: cost_s * 1e9,
        longest_pass_seconds: 0.0,
        most_core_percent: 0.0,
        lines: Vec::new(),
    }
}

impl Recommendation {
    pub fn keys(&self) -> [(&'static str, String); 3] {
        [
            ("ksm.advisor_mode", "none".to_owned()),
            ("ksm.pages_to_scan", self.pages_to_scan.to_string()),
            ("ksm.sleep_millisecs", self.sleep_millisecs.to_string()),
        ]
    }

    pub(super) fn tried(&mut self, finished: &FinishedRun<'_>) {
        for pass in passes(finished) {
            self.longest_pass_seconds = self.longest_pass_seconds.max(pass.seconds);
            let percent = 100.0 * pass.cpu_s / pass.seconds.max(1e-9);
            self.most_core_percent = self.most_core_percent.max(percent);
        }
        self.in_time = self.longest_pass_seconds <= self.target.pass_seconds as f64;
    }

    pub(super) fn say(&mut self, has_advisor: bool) {
        let line = |value: &dyn std::fmt::Display, knob: &str| {
            format!("echo {value} > /sys/kernel/mm/ksm/{knob}")
        };
        if has_advisor {
            self.lines.push(line(&"none", "advisor_mode"));
        }
        self.lines.push(line(&self.pages_to_scan, "pages_to_scan"));
        self.lines
            .push(line(&self.sleep_millisecs, "sleep_millisecs"));
        self.lines.push(line(&1, "run"));
    }
}
