//! What is asked of a merge, and the whole answer: runs pass by pass, what other knobs would do, what
//! owners lose who do not share with each other, and why pages did not merge.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use serde::Deserialize;
use serde_json::{Value, json};

use super::algorithms::{self, Algorithm, Merges};
use super::images::{self, ImageError, Images, Machine, Process, Snapshot};
use super::keys::{assumed, rows, said};
use super::ksm::Counters;
use super::ksm::settings::{self, Knobs, Preset};
use super::run::{Pages, Runner};
use super::{PAGE_BYTES, Page, why};
use crate::settings::Settings;

/// Savings that are the same for so many passes have settled.
const SETTLED: usize = 10;
/// Passes after which a run that has not settled is ended.
const MOST_PASSES: usize = 200;

/// Where a machine comes from.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Source {
    /// An image, or a folder of snapshots.
    Path(PathBuf),
    /// A live process.
    Pid(u32),
}

/// Some machines of one owner.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Owner {
    /// Who.
    pub name: String,
    /// Numbers among the question's machines.
    pub machines: Vec<usize>,
}

/// A question, as `python/sardonyx/runs/merging.py` states it.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Question {
    /// The machines, in the order in which they are scanned.
    pub machines: Vec<Source>,
    /// Of live processes: only mappings whose name contains one of these.
    pub mappings: Vec<String>,
    /// Of live processes: how many snapshots.
    pub snapshots: u32,
    /// Of live processes: milliseconds between two.
    pub every_ms: u64,
    /// Merging algorithms.
    pub designs: Vec<String>,
    /// The preset.
    pub kernel: String,
    /// How many passes; without it until the savings have settled.
    pub passes: Option<usize>,
    /// Keys and values.
    pub sets: Vec<(String, String)>,
    /// Who owns what; nobody for no such question.
    pub owners: Vec<Owner>,
    /// Whether other knobs are tried.
    pub what_if: bool,
    /// Whether reasons are looked for.
    pub why: bool,
}

/// What is said while it goes on: done and total pages, 0 for an unknown total. False ends it.
pub type Tell<'t> = &'t mut dyn FnMut(u64, u64) -> bool;

/// A question that has been understood.
struct Asked {
    algorithms: Vec<&'static Algorithm>,
    settings: Settings,
    preset: Preset,
}

/// A finished run.
struct Finished<'i> {
    run: Box<dyn Runner + 'i>,
    passes: Vec<Counters>,
    /// The pass after which the savings stayed the same.
    settled: Option<usize>,
    /// Time and processor time until then.
    settled_ns: (u64, u64),
}

fn saved(counters: &Counters) -> u64 {
    counters.pages_sharing + counters.ksm_zero_pages
}

fn finish<'i>(
    mut run: Box<dyn Runner + 'i>,
    passes: Option<usize>,
    snapshots: usize,
    tell: Tell<'_>,
) -> Option<Finished<'i>> {
    let mut counters: Vec<Counters> = Vec::new();
    let (mut since, mut settled_ns) = (0, (0, 0));
    let most = passes.unwrap_or(MOST_PASSES.max(snapshots + SETTLED));
    let pages = run.size();
    while counters.len() < most {
        let (before, total) = (
            counters.len() as u64 * pages,
            passes.unwrap_or(0) as u64 * pages,
        );
        if !run.pass(&mut |done| tell(before + done, total)) {
            return None;
        }
        counters.push(run.counters());
        let now = counters.len();
        if now == 1 || saved(&counters[now - 1]) != saved(&counters[now - 2]) || now <= snapshots {
            (since, settled_ns) = (now, run.times_ns());
        }
        // The first pass only remembers checksums.
        if passes.is_none() && now >= since.max(2) + SETTLED {
            break;
        }
    }
    let settled = (counters.len() >= since + SETTLED).then_some(since);
    Some(Finished {
        run,
        passes: counters,
        settled,
        settled_ns,
    })
}

impl Question {
    /// The answer: `runs`, `machines`, `settings`, `assumed`, and what else was asked for. `None` if
    /// `tell` ended it.
    ///
    /// # Errors
    /// If an image cannot be read, or a key or a name is unknown.
    pub fn answer(&self, tell: Tell<'_>) -> Result<Option<Value>, ImageError> {
        let asked = self.understood()?;
        let machines = self.open(tell)?;
        let Some(machines) = machines else {
            return Ok(None);
        };
        let Some(images) = Images::read(machines, &mut |done, total| tell(done, total))? else {
            return Ok(None);
        };
        Ok(self.runs(&images, &asked, tell))
    }

    /// What is asked for, checked before any work.
    fn understood(&self) -> Result<Asked, ImageError> {
        let preset = Preset::named(&self.kernel).map_err(ImageError)?;
        let mut settings = preset.settings();
        for (key, value) in &self.sets {
            settings::set(&mut settings, &rows(), key, value).map_err(ImageError)?;
        }
        let named = |name: &String| Algorithm::named(name).map_err(ImageError);
        let algorithms = self.designs.iter().map(named);
        let algorithms = algorithms.collect::<Result<Vec<_>, _>>()?;
        if !self.owners.is_empty() && algorithms.iter().all(|known| known.merges.is_none()) {
            return Err(ImageError(format!(
                "--owner: none of --designs merges; add {}",
                algorithms::that_merge().join(" or ")
            )));
        }
        Ok(Asked {
            algorithms,
            settings,
            preset,
        })
    }

    /// The machines. Processes are looked at together, snapshot by snapshot; one that has exited has no pages
    /// from then on.
    fn open(&self, tell: Tell<'_>) -> Result<Option<Vec<Machine>>, ImageError> {
        let (mut machines, mut live) = (Vec::new(), Vec::new());
        for source in &self.machines {
            match source {
                Source::Path(path) => machines.push(images::open(path)?),
                Source::Pid(pid) => {
                    let process = Process::open(*pid)?;
                    let name = process.name();
                    if machines
                        .iter()
                        .any(|machine: &Machine| machine.name == name)
                    {
                        return Err(ImageError(format!(
                            "--pid {pid}: is given twice; its pages would merge with themselves"
                        )));
                    }
                    live.push((machines.len(), process));
                    machines.push(Machine {
                        name,
                        snapshots: Vec::new(),
                        process: None,
                        ended: None,
                    });
                }
            }
        }
        let count = self.snapshots.max(1);
        for pass in 1..=count {
            if live.is_empty() {
                break;
            }
            if pass > 1 && !self.wait(&mut || tell(u64::from(pass - 1), u64::from(count))) {
                return Ok(None);
            }
            let mut left = Vec::new();
            for (index, process) in live {
                if !tell(u64::from(pass - 1), u64::from(count)) {
                    return Ok(None);
                }
                let machine: &mut Machine = &mut machines[index];
                let Some((snapshot, about)) = process.snapshot(&self.mappings)? else {
                    machine.snapshots.push(Snapshot::empty());
                    machine.ended = Some(pass);
                    continue;
                };
                if pass == 1 && snapshot.extents.is_empty() {
                    return Err(process.without_pages(&self.mappings));
                }
                machine.snapshots.push(snapshot);
                machine.process = Some(about);
                left.push((index, process));
            }
            live = left;
        }
        let ended = machines.iter().map(|machine| {
            let pass = machine.ended?;
            Some(format!(
                "{} before snapshot {pass} of {count}",
                machine.name
            ))
        });
        if let Some(ended) = ended.collect::<Option<Vec<_>>>() {
            return Err(ImageError(format!(
                "nothing is left to merge: exited meanwhile: {}; ask for fewer (--snapshots), or for processes \
                 that live longer",
                ended.join(", ")
            )));
        }
        Ok(Some(machines))
    }

    /// Until the next snapshot. False if `tell` ended it.
    fn wait(&self, tell: &mut dyn FnMut() -> bool) -> bool {
        let until = Instant::now() + Duration::from_millis(self.every_ms);
        while tell() {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return true;
            }
            std::thread::sleep(left.min(Duration::from_millis(100)));
        }
        false
    }

    fn runs(&self, images: &Images, asked: &Asked, tell: Tell<'_>) -> Option<Value> {
        let settings = &asked.settings;
        let everyone = vec![true; images.machines.len()];
        let snapshots = images.snapshots();
        let mut runs = Vec::new();
        let mut first = None;
        for algorithm in &asked.algorithms {
            let Some(merges) = &algorithm.merges else {
                runs.push(self.unmerged(algorithm.name, images));
                continue;
            };
            let run = (merges.on_images)(images, everyone.clone(), settings);
            let finished = finish(run, self.passes, snapshots, tell)?;
            runs.push(json!({
                "design": algorithm.name,
                "metrics": metrics(images, &finished),
                "passes": finished.passes,
            }));
            first = first.or(Some((merges, finished)));
        }
        let mut answer = json!({
            "kernel": self.kernel,
            "machines": images.machines.iter().map(|machine| json!({
                "name": machine.name,
                "pages": machine.space.pages(),
                "not_in_image": machine.missing,
                "process": machine.process,
                "ended_at_pass": machine.ended,
                "gone": machine.gone(),
            })).collect::<Vec<_>>(),
            "snapshots": snapshots,
            "settings": rows().iter().map(|row| said(settings, row)).collect::<serde_json::Map<_, _>>(),
            "assumed": rows().iter().filter_map(|row| assumed(settings, row)).collect::<Vec<_>>(),
            "runs": runs,
        });
        if let Some((merges, finished)) = first {
            if self.why {
                answer["why_not"] = json!(why::why_not(images, &*finished.run));
            }
            drop(finished);
            if !self.owners.is_empty() {
                answer["owners"] = self.owners(merges, images, settings, tell)?;
            }
            if self.what_if {
                answer["what_if"] = self.what_if(merges, images, asked, tell)?;
            }
        }
        Some(answer)
    }

    /// A run without merging.
    fn unmerged(&self, name: &str, images: &Images) -> Value {
        let last = (0..images.pages() as Page).filter(|page| images.last(*page).is_some());
        let pages = last.count() as u64;
        let all = Pages {
            pages,
            frames: pages,
            unmerged: pages,
            ..Pages::default()
        };
        json!({
            "design": name,
            "metrics": {"pages": all, "saved_pages": 0, "saved_zero_pages": 0, "saving": 0.0},
            "passes": vec![Counters::default(); self.passes.unwrap_or(1)],
        })
    }

    /// Each owner's machines alone; a machine of nobody is an owner's of its own.
    fn owners(
        &self,
        merges: &Merges,
        images: &Images,
        settings: &Settings,
        tell: Tell<'_>,
    ) -> Option<Value> {
        let mut owners = self.owners.clone();
        let owned: Vec<usize> = owners
            .iter()
            .flat_map(|owner| owner.machines.clone())
            .collect();
        for (index, machine) in images.machines.iter().enumerate() {
            if !owned.contains(&index) {
                let name = machine.name.clone();
                owners.push(Owner {
                    name,
                    machines: vec![index],
                });
            }
        }
        let mut rows = Vec::new();
        let (mut pages, mut kept) = (0, 0);
        for owner in owners {
            let mut chosen = vec![false; images.machines.len()];
            owner
                .machines
                .iter()
                .for_each(|index| chosen[*index] = true);
            let run = (merges.on_images)(images, chosen, settings);
            let finished = finish(run, self.passes, images.snapshots(), tell)?;
            let of = finished.run.pages();
            pages += of.pages;
            kept += saved(finished.passes.last().unwrap_or(&Counters::default()));
            rows.push(json!({
                "owner": owner.name,
                "machines": owner.machines.len(),
                "metrics": metrics(images, &finished),
            }));
        }
        let saving = kept as f64 / (pages.max(1)) as f64;
        Some(json!({"owners": rows, "pages": pages, "saved_pages": kept, "saving": saving}))
    }

    /// One knob turned at a time, the others as they were.
    fn what_if(
        &self,
        merges: &Merges,
        images: &Images,
        asked: &Asked,
        tell: Tell<'_>,
    ) -> Option<Value> {
        let base = Knobs::of(&asked.settings);
        let flip = |on: bool| if on { "false" } else { "true" }.to_owned();
        let mut tries: Vec<Vec<(&str, String)>> = vec![
            vec![("ksm.smart_scan", flip(base.smart_scan))],
            vec![("ksm.use_zero_pages", flip(base.use_zero_pages))],
        ];
        for sharing in ["16", "256", "4294967295"] {
            if sharing != base.max_page_sharing.to_string() {
                tries.push(vec![("ksm.max_page_sharing", sharing.to_owned())]);
            }
        }
        let pages = base.pages_to_scan;
        tries.push(vec![(
            "ksm.pages_to_scan",
            (pages * 10).min(u64::from(u32::MAX)).to_string(),
        )]);
        tries.push(vec![("ksm.pages_to_scan", (pages / 10).max(1).to_string())]);
        let sleep = base.sleep_millisecs;
        tries.push(vec![("ksm.sleep_millisecs", (sleep / 4).to_string())]);
        tries.push(vec![("ksm.advisor_mode", "scan-time".to_owned())]);
        if asked.preset == Preset::Linux6 {
            tries.push(vec![
                ("ksm.checksum", "jhash2".to_owned()),
                ("ksm.order", "stable-first".to_owned()),
                ("ksm.smart_scan", "false".to_owned()),
            ]);
        }
        let everyone = vec![true; images.machines.len()];
        let mut found = Vec::new();
        let mut wanted = vec![Vec::new()];
        wanted.extend(tries);
        for sets in wanted {
            let mut settings = asked.settings.clone();
            for (key, value) in &sets {
                settings::set(&mut settings, &rows(), key, value).expect("a knob within its range");
            }
            let run = (merges.on_images)(images, everyone.clone(), &settings);
            let finished = finish(run, self.passes, images.snapshots(), tell)?;
            found.push(json!({"set": sets, "metrics": metrics(images, &finished)}));
        }
        Some(Value::Array(found))
    }
}

/// The figures of a finished run.
fn metrics(images: &Images, finished: &Finished<'_>) -> Value {
    let pages = finished.run.pages();
    let last = finished.passes.last().copied().unwrap_or_default();
    let zero = pages.merged_zero - finished.run.zero_nodes();
    let (cpu_ns, elapsed_ns) = finished.run.times_ns();
    let seconds = |ns: u64| ns as f64 / 1e9;
    let mut metrics = json!({
        "machines": images.machines.len(),
        "pages": pages,
        "saved_pages": saved(&last),
        "saved_zero_pages": zero,
        "saved_bytes": saved(&last) * PAGE_BYTES as u64,
        "saving": saved(&last) as f64 / pages.pages.max(1) as f64,
        "frames_saving": 1.0 - pages.frames as f64 / pages.pages.max(1) as f64,
        "settled_after_passes": finished.settled,
        "settled_after_seconds": finished.settled.map(|_| seconds(finished.settled_ns.1)),
        "settled_cpu_seconds": finished.settled.map(|_| seconds(finished.settled_ns.0)),
        "cpu_seconds": seconds(cpu_ns),
        "seconds": seconds(elapsed_ns),
        "cpu_share": cpu_ns as f64 / (elapsed_ns.max(1)) as f64,
        "keys": finished.run.keys(),
    });
    if let Some(work) = finished.run.hardware() {
        metrics["hardware"] = json!(work);
    }
    metrics
}
