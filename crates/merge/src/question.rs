//! The question of a merge, and the whole answer: runs pass by pass, the effect of other knobs, the loss of owners who
//! do not share with each other, and the reasons why pages did not merge.

use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use glob::Pattern;
use sardonyx_question::{Bytes, Given, Names, Pairs, Place, question};

use super::advice::{self, Target};
use super::algorithms::{self, Algorithm, Merges};
use super::answer::{Alone, Answer, Apart, Merged, Ran, WhatIf};
use super::convergence::{Metrics, finish, saved};
use super::host;
use super::images::{
    self, ContentPool, ImageError, ImageMachine, Images, Keep, Process, Snapshot, Wanted, Zeros,
};
use super::keys::{assumed, rows, said};
use super::ksm::settings::{self, Knobs, Preset};
use super::ksm::{self, KsmCounters};
use super::owner::{Owner, Tell};
use super::run::PageCounts;
use super::{Page, unmerged};
use sardonyx::settings::Settings;

question! {
    /// Say what same-page merging saves on page images, pass by pass, and why not more.
    ///
    /// Example: sardonyx merge dumps/vm0.raw dumps/vm1.raw
    ///
    /// Example: sardonyx merge snapshots/web snapshots/db --designs ksm,pageforge --kernel paper --out merged
    ///
    /// Example: sardonyx merge --pid 1234 --pid 1235 --set ksm.use_zero_pages=true
    pub struct Question {
        /// Images (raw dumps, ELF cores), or folders of snapshots: the k-th is what pass k sees, the last one stays.
        #[schemars(extend("argument" = "MACHINE.."))]
        machines: Vec<PathBuf>,
        /// A live process; repeatable.
        #[schemars(inner(range(min = 1)))]
        pid: Vec<u32>,
        /// Live processes: mappings whose name contains this.
        #[schemars(extend("requires" = "pid"))]
        mapping: Vec<String>,
        /// Live processes: only mappings offered for merging.
        #[schemars(extend("requires" = "pid"))]
        offered: bool,
        /// Live processes: the number of snapshots.
        #[schemars(range(min = 1, max = 1000), extend("requires" = "pid"))]
        snapshots: u32 = 2,
        /// Seconds between snapshots.
        #[schemars(range(min = 0, max = 86400), extend("requires" = "pid"))]
        every: f64 = 1.0,
        #[schemars(description = algorithms::listed(), extend("short" = "d"))]
        designs: Names = Names::of("ksm"),
        /// Whose KSM: linux-6, linux-4.4, paper, or host: linux-6 with the settings here.
        kernel: String = "linux-6".into(),
        /// Live processes: memory for copies of their pages. Beyond it pages are known by digests, and near matches are not
        /// looked for.
        #[schemars(extend("requires" = "pid"))]
        memory: Bytes = Bytes(1 << 30),
        /// Images: whether pages of zeros count: held: yes; no-holes: except holes of the file; none: no.
        #[schemars(extend("requires" = "machines"))]
        zeros: Zeros,
        /// Recommend settings for a pass within N seconds.
        #[schemars(range(min = 1, max = 1_000_000))]
        pass_in: u64 = Target::default().pass_seconds,
        /// Recommend settings for at most N % of a core; goes before --pass-in.
        #[schemars(range(min = 1, max = 100))]
        at_most: u64 = Target::default().core_percent,
        /// Number of passes; default: until the savings stay the same for ten.
        #[schemars(range(min = 1, max = 1_000_000))]
        passes: Option<usize>,
        /// Set a key of the merge; repeatable.
        #[schemars(extend("short" = "s", "value" = "KEY=VALUE"))]
        set: Pairs,
        /// Machines of one owner, who may merge with each other only; repeatable.
        #[schemars(extend("value" = "NAME=GLOB"))]
        owner: Vec<String>,
        /// Recommend settings.
        advice: bool = true,
        /// Try each knob at another value.
        what_if: bool = true,
        /// Say why pages did not merge.
        why: bool = true,
        /// Directory for report.html and merge.json.
        #[schemars(extend("short" = "o"))]
        out: Option<Place>,
    }
}

impl sardonyx_question::Question for Question {
    fn check(&self, given: &Given) -> Result<(), String> {
        if self.snapshots == 1 {
            given.idle(&["every"], "with one snapshot")?;
        }
        self.understood()
            .map(|_| ())
            .map_err(|error| error.to_string())
    }
}

struct CheckedQuestion {
    owners: Vec<Owner>,
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
        let mut pool = ContentPool::new((!self.pid.is_empty()).then_some(Keep {
            bytes: self.memory.0,
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
        if self.machines.is_empty() && self.pid.is_empty() {
            return Err(ImageError(
                "no machine: give images, folders of snapshots, or --pid N".to_owned(),
            ));
        }
        if let Some(missing) = self.machines.iter().find(|path| !path.exists()) {
            return Err(ImageError(format!(
                "{}: there is no such file; name an image, a folder of snapshots, or --pid N",
                missing.display()
            )));
        }
        let of_the_host = if self.kernel == "host" {
            host::knobs()?
        } else {
            Vec::new()
        };
        let preset = Preset::named(self.kernel_modelled()).map_err(ImageError)?;
        let mut settings = preset.settings();
        for (key, value) in of_the_host.iter().chain(&self.set.0) {
            settings::set(&mut settings, &rows(), key, value).map_err(ImageError)?;
        }
        let named = |name: &String| Algorithm::named(name).map_err(ImageError);
        let algorithms = self.designs.0.iter().map(named);
        let algorithms = algorithms.collect::<Result<Vec<_>, _>>()?;
        if !self.owner.is_empty() && algorithms.iter().all(|known| known.merges.is_none()) {
            return Err(ImageError(format!(
                "--owner: none of --designs merges; add {}",
                algorithms::that_merge().join(" or ")
            )));
        }
        Ok(CheckedQuestion {
            owners: owners(&self.owner, &self.names())?,
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
        for path in &self.machines {
            machines.push(images::open(path, self.zeros)?);
        }
        for pid in &self.pid {
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
                let Some((snapshot, about)) = process.snapshot(&self.wanted(), pool)? else {
                    machine.snapshots.push(Snapshot::empty());
                    machine.ended = Some(pass);
                    continue;
                };
                if pass == 1 && snapshot.extents.is_empty() {
                    return Err(process.without_pages(&self.wanted()));
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

    fn wanted(&self) -> Wanted<'_> {
        Wanted {
            named: &self.mapping,
            offered: self.offered,
        }
    }

    /// Waits for the next snapshot. False if `tell` ended it.
    fn wait(&self, tell: &mut dyn FnMut() -> bool) -> bool {
        let until = Instant::now() + Duration::try_from_secs_f64(self.every).unwrap_or_default();
        while tell() {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return true;
            }
            std::thread::sleep(left.min(Duration::from_millis(100)));
        }
        false
    }

    /// The kernel whose KSM is modelled.
    fn kernel_modelled(&self) -> &str {
        if self.kernel == "host" {
            "linux-6"
        } else {
            &self.kernel
        }
    }

    /// The machines' names, before they are opened.
    fn names(&self) -> Vec<String> {
        let paths = self.machines.iter().map(|path| path.display().to_string());
        let live = self.pid.iter().map(|pid| {
            let command = fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
            format!("pid {pid} ({})", command.trim())
        });
        paths.chain(live).collect()
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
                    &owned(&asked.owners, images),
                    advice::knobs(
                        &finished,
                        Target {
                            pass_seconds: self.pass_in,
                            core_percent: self.at_most,
                        },
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
            if !asked.owners.is_empty() {
                answer.owners = Some(self.owners(merges, images, asked, tell)?);
            }
            if self.what_if {
                answer.what_if = Some(self.what_if(merges, images, asked, tell)?);
            }
        }
        if !self.pid.is_empty() {
            answer.host = Some(host::beside(&answer.settings));
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
            kernel: self.kernel_modelled().to_owned(),
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
            host: None,
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

    fn owners(
        &self,
        merges: &Merges,
        images: &Images,
        asked: &CheckedQuestion,
        tell: Tell<'_>,
    ) -> Option<Apart> {
        let mut rows = Vec::new();
        let (mut pages, mut kept) = (0, 0);
        for owner in owned(&asked.owners, images) {
            let mut chosen = vec![false; images.machines.len()];
            owner
                .machines
                .iter()
                .for_each(|index| chosen[*index] = true);
            let run = (merges.on_images)(images, chosen, &asked.settings);
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

/// Owners by pairs NAME=GLOB over the machines' names. A machine is its first owner's.
fn owners(pairs: &[String], names: &[String]) -> Result<Vec<Owner>, ImageError> {
    let mut owners: Vec<Owner> = Vec::new();
    let mut taken: Vec<Option<&str>> = vec![None; names.len()];
    for pair in pairs {
        let parts = pair.split_once('=');
        let parts = parts.filter(|(name, glob)| !name.is_empty() && !glob.is_empty());
        let Some((owner, pattern)) =
            parts.and_then(|(name, glob)| Some((name, Pattern::new(glob).ok()?)))
        else {
            return Err(ImageError(format!(
                "--owner {pair}: not of the form NAME=GLOB; for example --owner web='dumps/web*'"
            )));
        };
        let is_called = |name: &String| {
            let last = name.rsplit('/').next().unwrap_or(name);
            pattern.matches(name) || pattern.matches(last)
        };
        let called: Vec<usize> = (0..names.len())
            .filter(|at| is_called(&names[*at]))
            .collect();
        let Some(first) = called.first() else {
            return Err(ImageError(format!(
                "--owner {pair}: no machine is called so; they are {}",
                names.join(", ")
            )));
        };
        let own: Vec<usize> = called
            .iter()
            .copied()
            .filter(|at| taken[*at].is_none())
            .collect();
        if let (true, Some(other)) = (own.is_empty(), taken[*first]) {
            return Err(ImageError(format!(
                "--owner {pair}: {} is {other}'s already; a machine is its first owner's, so give the narrower glob \
                 first",
                names[*first]
            )));
        }
        own.iter().for_each(|at| taken[*at] = Some(owner));
        match owners.iter_mut().find(|known| known.name == owner) {
            Some(known) => known.machines.extend(own),
            None => owners.push(Owner {
                name: owner.to_owned(),
                machines: own,
            }),
        }
    }
    Ok(owners)
}

/// All owners; a machine that nobody owns gets an owner of its own.
fn owned(known: &[Owner], images: &Images) -> Vec<Owner> {
    let mut owners = known.to_vec();
    for (index, machine) in images.machines.iter().enumerate() {
        if !known.iter().any(|owner| owner.machines.contains(&index)) {
            owners.push(Owner {
                name: machine.name.clone(),
                machines: vec![index],
            });
        }
    }
    owners
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
