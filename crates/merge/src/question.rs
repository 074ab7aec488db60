//! The question of a merge, and the whole answer: runs pass by pass, the effect of other knobs, the loss of owners who
//! do not share with each other, and the reasons why pages did not merge.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use schemars::JsonSchema;
use serde::Deserialize;

use super::advice::{self, Target};
use super::algorithms::{self, Algorithm, Merges};
use super::answer::{Alone, Answer, Apart, Merged, Ran, WhatIf};
use super::convergence::{Metrics, finish, saved};
use super::images::{
    self, ContentPool, ImageError, ImageMachine, Images, Keep, Process, Snapshot, Zeros,
};
use super::keys::{assumed, rows, said};
use super::ksm::settings::{self, Knobs, Preset};
use super::ksm::{self, KsmCounters};
use super::owner::{Owner, Tell};
use super::run::PageCounts;
use super::{Page, unmerged};
use sardonyx::settings::Settings;

#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(untagged)]
#[schemars(inline)]
pub enum MemorySource {
    /// A live process.
    Pid(u32),
    /// An image, or a folder of snapshots.
    Path(PathBuf),
}

/// Machines (an image, a folder of snapshots, or the number of a live process), designs and knobs.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "MergeQuestion")]
pub struct Question {
    /// The machines, in the order in which they are scanned.
    pub machines: Vec<MemorySource>,
    /// For live processes: only mappings whose name contains one of these.
    #[serde(default)]
    pub mappings: Vec<String>,
    #[serde(default = "one")]
    pub snapshots: u32,
    #[serde(default)]
    pub every_ms: u64,
    /// For live processes: the most memory in bytes for copies of their pages; beyond it a page is known by its digest.
    #[serde(default = "gibibyte")]
    pub memory: u64,
    /// For images: what pages of zeros count as.
    #[serde(default)]
    pub zeros: Zeros,
    #[serde(default)]
    pub advice: bool,
    pub target: Option<Target>,
    #[serde(default = "ksm")]
    pub designs: Vec<String>,
    #[serde(default = "linux")]
    pub kernel: String,
    /// The number of passes; `None`: until the savings no longer change.
    pub passes: Option<usize>,
    #[serde(default)]
    pub sets: Vec<(String, String)>,
    /// Owners and their machines; empty if that is not asked.
    #[serde(default)]
    pub owners: Vec<Owner>,
    #[serde(default)]
    pub what_if: bool,
    /// Whether to look for the reasons why pages did not merge.
    #[serde(default)]
    pub why: bool,
}

fn one() -> u32 {
    1
}

fn gibibyte() -> u64 {
    1 << 30
}

fn ksm() -> Vec<String> {
    vec!["ksm".to_owned()]
}

fn linux() -> String {
    "linux-6".to_owned()
}

struct CheckedQuestion {
    algorithms: Vec<&'static Algorithm>,
    settings: Settings,
    preset: Preset,
}

impl Question {
    /// The answer: `runs`, `machines`, `settings`, `assumed`, and the parts that were asked for. `None` if `tell` ended
    /// it.
    ///
    /// # Errors
    /// If an image cannot be read, or a key or a name is unknown.
    pub fn answer(&self, tell: Tell<'_>) -> Result<Option<Answer>, ImageError> {
        let asked = self.understood()?;
        let looks = settings::looks_into_pages(&asked.settings)
            || asked.algorithms.iter().any(|known| {
                let merges = known.merges.as_ref();
                merges.is_some_and(|merges| merges.looks_into_pages)
            });
        let live = self
            .machines
            .iter()
            .any(|source| matches!(source, MemorySource::Pid(_)));
        let mut pool = ContentPool::new(live.then_some(Keep {
            bytes: self.memory,
            needed: looks,
        }));
        let Some(machines) = self.open(&mut pool, tell)? else {
            return Ok(None);
        };
        let read = Images::read_into(pool, machines, &mut |done, total| tell(done, total))?;
        let Some(mut images) = read else {
            return Ok(None);
        };
        if self.zeros == Zeros::None {
            images.leave_zeros_out();
        }
        images::enough((images.pages() * ksm::BYTES_A_PAGE) as u64)?;
        Ok(self.runs(&images, &asked, tell))
    }

    fn understood(&self) -> Result<CheckedQuestion, ImageError> {
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
        Ok(CheckedQuestion {
            algorithms,
            settings,
            preset,
        })
    }

    /// Opens the machines. Processes are looked at together, snapshot by snapshot; one that has exited has no pages
    /// from then on.
    fn open(
        &self,
        pool: &mut ContentPool,
        tell: Tell<'_>,
    ) -> Result<Option<Vec<ImageMachine>>, ImageError> {
        let (mut machines, mut live) = (Vec::new(), Vec::new());
        for source in &self.machines {
            match source {
                MemorySource::Path(path) => machines.push(images::open(path, self.zeros)?),
                MemorySource::Pid(pid) => {
                    let process = Process::open(*pid)?;
                    let name = process.name();
                    if machines
                        .iter()
                        .any(|machine: &ImageMachine| machine.name == name)
                    {
                        return Err(ImageError(format!(
                            "--pid {pid}: is given twice; its pages would merge with themselves"
                        )));
                    }
                    live.push((machines.len(), process));
                    machines.push(ImageMachine {
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
                let machine: &mut ImageMachine = &mut machines[index];
                let Some((snapshot, about)) = process.snapshot(&self.mappings, pool)? else {
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
        check_alive(&machines, count)?;
        Ok(Some(machines))
    }

    /// Waits for the next snapshot. False if `tell` ended it.
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

    fn runs(&self, images: &Images, asked: &CheckedQuestion, tell: Tell<'_>) -> Option<Answer> {
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
                metrics: Metrics::count(images, &finished),
                passes: finished.passes.clone(),
            });
            first = first.or(Some((merges, finished)));
        }
        let mut answer = self.bare_answer(images, settings, runs);
        if let Some((merges, finished)) = first {
            let mut found = None;
            if self.advice {
                answer.untouched = advice::untouched(images, &finished);
                found = Some(advice::advice(
                    images,
                    &finished,
                    &self.owned(images),
                    advice::knobs(
                        &finished,
                        self.target.unwrap_or_default(),
                        &Knobs::from_settings(settings),
                    ),
                ));
            }
            if self.why {
                answer.why_not = Some(unmerged::why_not(images, &*finished.run));
            }
            drop(finished);
            if let Some(found) = &mut found {
                let sought = &mut found.recommendation;
                let mut tried = settings.clone();
                for (key, value) in sought.keys() {
                    settings::set(&mut tried, &rows(), key, &value).expect("within its range");
                }
                let run = (merges.on_images)(images, everyone, &tried);
                sought.tried(&finish(run, self.passes, snapshots, tell)?);
                sought.say(asked.preset == Preset::Linux6);
            }
            answer.advice = found;
            if !self.owners.is_empty() {
                answer.owners = Some(self.owners(merges, images, settings, tell)?);
            }
            if self.what_if {
                answer.what_if = Some(self.what_if(merges, images, asked, tell)?);
            }
        }
        Some(answer)
    }

    /// The runs, without the parts that may also be asked of the first algorithm that merges.
    fn bare_answer(&self, images: &Images, settings: &Settings, runs: Vec<Ran>) -> Answer {
        let machines = images.machines.iter().map(|machine| Merged {
            name: machine.name.clone(),
            pages: machine.space.pages(),
            not_in_image: machine.missing,
            holes: machine.holes,
            process: machine.process.clone(),
            ended_at_pass: machine.ended,
            gone: machine.gone(),
        });
        Answer {
            kernel: self.kernel.clone(),
            machines: machines.collect(),
            snapshots: images.snapshots(),
            settings: rows().iter().map(|row| said(settings, row)).collect(),
            assumed: (rows().iter())
                .filter_map(|row| assumed(settings, row))
                .collect(),
            runs,
            why_not: None,
            owners: None,
            what_if: None,
            untouched: None,
            advice: None,
        }
    }

    fn unmerged(&self, design: &'static str, images: &Images) -> Ran {
        let last = (0..images.pages() as Page).filter(|page| images.last(*page).is_some());
        let pages = last.count() as u64;
        Ran {
            design,
            metrics: Metrics {
                pages: PageCounts {
                    pages,
                    frames: pages,
                    unmerged: pages,
                    ..PageCounts::default()
                },
                saved_pages: 0,
                saved_zero_pages: 0,
                saving: 0.0,
                merging: None,
            },
            passes: vec![KsmCounters::default(); self.passes.unwrap_or(1)],
        }
    }

    /// All owners; a machine that nobody owns gets an owner of its own.
    fn owned(&self, images: &Images) -> Vec<Owner> {
        let mut owners = self.owners.clone();
        for (index, machine) in images.machines.iter().enumerate() {
            if !self
                .owners
                .iter()
                .any(|owner| owner.machines.contains(&index))
            {
                let name = machine.name.clone();
                owners.push(Owner {
                    name,
                    machines: vec![index],
                });
            }
        }
        owners
    }

    fn owners(
        &self,
        merges: &Merges,
        images: &Images,
        settings: &Settings,
        tell: Tell<'_>,
    ) -> Option<Apart> {
        let mut rows = Vec::new();
        let (mut pages, mut kept) = (0, 0);
        for owner in self.owned(images) {
            let mut chosen = vec![false; images.machines.len()];
            owner
                .machines
                .iter()
                .for_each(|index| chosen[*index] = true);
            let run = (merges.on_images)(images, chosen, settings);
            let finished = finish(run, self.passes, images.snapshots(), tell)?;
            let of = finished.run.pages();
            pages += of.pages;
            kept += saved(finished.passes.last().unwrap_or(&KsmCounters::default()));
            rows.push(Alone {
                owner: owner.name.clone(),
                machines: owner.machines.len(),
                metrics: Metrics::count(images, &finished),
            });
        }
        Some(Apart {
            owners: rows,
            pages,
            saved_pages: kept,
            saving: kept as f64 / (pages.max(1)) as f64,
        })
    }

    /// Runs with one knob changed at a time, the others as they were.
    fn what_if(
        &self,
        merges: &Merges,
        images: &Images,
        asked: &CheckedQuestion,
        tell: Tell<'_>,
    ) -> Option<Vec<WhatIf>> {
        let base = Knobs::from_settings(&asked.settings);
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
            let metrics = Metrics::count(images, &finished);
            found.push(WhatIf { set: sets, metrics });
        }
        Some(found)
    }
}

/// Refuses a question all of whose machines are processes that exited before the last snapshot.
fn check_alive(machines: &[ImageMachine], count: u32) -> Result<(), ImageError> {
    let ended = machines.iter().map(|machine| {
        let pass = machine.ended?;
        Some(format!(
            "{} before snapshot {pass} of {count}",
            machine.name
        ))
    });
    match ended.collect::<Option<Vec<_>>>() {
        None => Ok(()),
        Some(ended) => Err(ImageError(format!(
            "nothing is left to merge: exited meanwhile: {}; ask for fewer (--snapshots), or for processes \
             that live longer",
            ended.join(", ")
        ))),
    }
}
