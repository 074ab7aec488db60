//! What is asked of a merge, and the whole answer: runs pass by pass, what other knobs would do, what
//! owners lose who do not share with each other, and why pages did not merge.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::algorithms::{self, Algorithm, Merges};
use super::images::{self, ImageError, Images, Machine, Process, ProcessPages, Snapshot};
use super::keys::{assumed, rows, said};
use super::ksm::settings::{self, Knobs, Preset};
use super::ksm::{Counters, Keys, Work};
use super::run::{Pages, Runner};
use super::why::{self, WhyNot};
use super::{PAGE_BYTES, Page};
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
    pub fn answer(&self, tell: Tell<'_>) -> Result<Option<Answer>, ImageError> {
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

    fn runs(&self, images: &Images, asked: &Asked, tell: Tell<'_>) -> Option<Answer> {
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
            runs.push(Ran {
                design: algorithm.name,
                metrics: Metrics::of(images, &finished),
                passes: finished.passes.clone(),
            });
            first = first.or(Some((merges, finished)));
        }
        let machines = images.machines.iter().map(|machine| Merged {
            name: machine.name.clone(),
            pages: machine.space.pages(),
            not_in_image: machine.missing,
            process: machine.process.clone(),
            ended_at_pass: machine.ended,
            gone: machine.gone(),
        });
        let mut answer = Answer {
            kernel: self.kernel.clone(),
            machines: machines.collect(),
            snapshots,
            settings: rows().iter().map(|row| said(settings, row)).collect(),
            assumed: (rows().iter())
                .filter_map(|row| assumed(settings, row))
                .collect(),
            runs,
            why_not: None,
            owners: None,
            what_if: None,
        };
        if let Some((merges, finished)) = first {
            if self.why {
                answer.why_not = Some(why::why_not(images, &*finished.run));
            }
            drop(finished);
            if !self.owners.is_empty() {
                answer.owners = Some(self.owners(merges, images, settings, tell)?);
            }
            if self.what_if {
                answer.what_if = Some(self.what_if(merges, images, asked, tell)?);
            }
        }
        Some(answer)
    }

    /// A run without merging.
    fn unmerged(&self, design: &'static str, images: &Images) -> Ran {
        let last = (0..images.pages() as Page).filter(|page| images.last(*page).is_some());
        let pages = last.count() as u64;
        Ran {
            design,
            metrics: Metrics {
                pages: Pages {
                    pages,
                    frames: pages,
                    unmerged: pages,
                    ..Pages::default()
                },
                saved_pages: 0,
                saved_zero_pages: 0,
                saving: 0.0,
                merging: None,
            },
            passes: vec![Counters::default(); self.passes.unwrap_or(1)],
        }
    }

    /// Each owner's machines alone; a machine of nobody is an owner's of its own.
    fn owners(
        &self,
        merges: &Merges,
        images: &Images,
        settings: &Settings,
        tell: Tell<'_>,
    ) -> Option<Apart> {
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
            rows.push(Alone {
                owner: owner.name.clone(),
                machines: owner.machines.len(),
                metrics: Metrics::of(images, &finished),
            });
        }
        Some(Apart {
            owners: rows,
            pages,
            saved_pages: kept,
            saving: kept as f64 / (pages.max(1)) as f64,
        })
    }

    /// One knob turned at a time, the others as they were.
    fn what_if(
        &self,
        merges: &Merges,
        images: &Images,
        asked: &Asked,
        tell: Tell<'_>,
    ) -> Option<Vec<WhatIf>> {
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
            let metrics = Metrics::of(images, &finished);
            found.push(WhatIf { set: sets, metrics });
        }
        Some(found)
    }
}

/// A whole answer; the names of the fields are those of `sardonyx merge --json`.
#[derive(Clone, Debug, Serialize)]
pub struct Answer {
    /// The kernel whose knobs are the defaults.
    pub kernel: String,
    /// What is merged.
    pub machines: Vec<Merged>,
    /// Snapshots of each machine, at most.
    pub snapshots: usize,
    /// Values of all keys.
    pub settings: Map<String, Value>,
    /// Those that no source gives, with why, and what else they may be.
    pub assumed: Vec<Value>,
    /// A run for each algorithm.
    pub runs: Vec<Ran>,
    /// Why pages did not merge.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why_not: Option<WhyNot>,
    /// What owners lose who do not share with each other.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub owners: Option<Apart>,
    /// What other knobs would do.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub what_if: Option<Vec<WhatIf>>,
}

/// One machine of an answer.
#[derive(Clone, Debug, Serialize)]
pub struct Merged {
    /// Its name.
    pub name: String,
    /// Its pages.
    pub pages: usize,
    /// Pages that its image does not hold.
    pub not_in_image: u64,
    /// What is known of a live process.
    pub process: Option<ProcessPages>,
    /// The snapshot before which it had ended.
    pub ended_at_pass: Option<u32>,
    /// Pages of the first snapshot that the last does not have.
    pub gone: usize,
}

/// A run of one algorithm.
#[derive(Clone, Debug, Serialize)]
pub struct Ran {
    /// The algorithm's name.
    pub design: &'static str,
    /// Its figures at the end.
    pub metrics: Metrics,
    /// Its counters after each pass.
    pub passes: Vec<Counters>,
}

/// What owners who do not share with each other save in all.
#[derive(Clone, Debug, Serialize)]
pub struct Apart {
    /// Each of them.
    pub owners: Vec<Alone>,
    /// Pages of all.
    pub pages: u64,
    /// Pages that need no frame of their own.
    pub saved_pages: u64,
    /// The same as a share.
    pub saving: f64,
}

/// One owner's machines alone.
#[derive(Clone, Debug, Serialize)]
pub struct Alone {
    /// The owner's name.
    pub owner: String,
    /// Machines.
    pub machines: usize,
    /// Their figures.
    pub metrics: Metrics,
}

/// A run with one knob turned.
#[derive(Clone, Debug, Serialize)]
pub struct WhatIf {
    /// Keys and values.
    pub set: Vec<(&'static str, String)>,
    /// Its figures.
    pub metrics: Metrics,
}

/// The figures of a finished run.
#[derive(Clone, Debug, Serialize)]
pub struct Metrics {
    /// Pages by what became of them.
    pub pages: Pages,
    /// Pages that need no frame of their own.
    pub saved_pages: u64,
    /// Of them, those of zeros.
    pub saved_zero_pages: u64,
    /// The first as a share of all pages.
    pub saving: f64,
    /// What only a run has that merges.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub merging: Option<Merging>,
}

/// Figures of a run that merges; times are of the kernel's thread, in seconds.
#[derive(Clone, Debug, Serialize)]
pub struct Merging {
    /// Machines that it may see.
    pub machines: usize,
    /// Bytes of the pages that need no frame of their own.
    pub saved_bytes: u64,
    /// Frames that are not needed, as a share of all pages.
    pub frames_saving: f64,
    /// Passes after which savings stayed as they were.
    pub settled_after_passes: Option<usize>,
    /// The same in time.
    pub settled_after_seconds: Option<f64>,
    /// The same in time of a processor.
    pub settled_cpu_seconds: Option<f64>,
    /// Time of a processor.
    pub cpu_seconds: f64,
    /// Time.
    pub seconds: f64,
    /// The share of a core that the thread takes.
    pub cpu_share: f64,
    /// Checksums compared.
    pub keys: Keys,
    /// What a module did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hardware: Option<Work>,
}

impl Metrics {
    fn of(images: &Images, finished: &Finished<'_>) -> Metrics {
        let pages = finished.run.pages();
        let last = finished.passes.last().copied().unwrap_or_default();
        let all = pages.pages.max(1) as f64;
        let (cpu_ns, elapsed_ns) = finished.run.times_ns();
        let seconds = |ns: u64| ns as f64 / 1e9;
        let settled = |ns: u64| finished.settled.map(|_| seconds(ns));
        Metrics {
            saved_pages: saved(&last),
            saved_zero_pages: pages.merged_zero - finished.run.zero_nodes(),
            saving: saved(&last) as f64 / all,
            merging: Some(Merging {
                machines: images.machines.len(),
                saved_bytes: saved(&last) * PAGE_BYTES as u64,
                frames_saving: 1.0 - pages.frames as f64 / all,
                settled_after_passes: finished.settled,
                settled_after_seconds: settled(finished.settled_ns.1),
                settled_cpu_seconds: settled(finished.settled_ns.0),
                cpu_seconds: seconds(cpu_ns),
                seconds: seconds(elapsed_ns),
                cpu_share: cpu_ns as f64 / (elapsed_ns.max(1)) as f64,
                keys: finished.run.keys(),
                hardware: finished.run.hardware(),
            }),
            pages,
        }
    }
}
