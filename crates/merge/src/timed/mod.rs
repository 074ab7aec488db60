//! The cost of merging for the applications of a machine: PageForge's ten cores (Table 2), a virtual machine on each,
//! and KSM's thread among them or PageForge's module beside the memory controller.
//!
//! Merging settles functionally, over all pages; then a window of some hundred milliseconds is simulated from the cores
//! down, in the middle of a pass. Left out: instructions' own lines, TLBs, prefetchers, the guests' schedulers, and the
//! host's except for the thread's moves.

pub mod applications;
pub mod figures;
mod frames;
mod host;
mod initial_memory;
mod jobs;
mod live;
mod module;
mod queries;
mod run;
mod scan;
pub mod settings;
#[cfg(test)]
mod tests;
mod thread;
mod vms;
mod warm_up;

use std::path::PathBuf;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::algorithms::{self, Algorithm};
use crate::images::{self, ImageError, Images, Zeros};
use crate::keys as merge_keys;
use crate::ksm::settings::{self as ksm_settings, Preset};
use crate::{Checksum, PAGE_BYTES};
use applications::{Application, Demand};
pub use jobs::{ModuleCosts, instructions};
use run::TimedRun;
use sardonyx::config::Machine;
use sardonyx::controller::designs::Stack;
use sardonyx::controller::encryption::ENABLED;
use sardonyx::controller::layers::Counters;
use sardonyx::machine::RunError;
use sardonyx::medium::params::drain::DRAINS;
use sardonyx::settings::{Row, Settings};
pub use scan::Merging;
use settings as keys;
pub use warm_up::{Settled, Start};

/// One application under one design.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "TimedQuestion")]
pub struct Question {
    pub application: String,
    /// What merges.
    pub design: String,
    /// The design of the memory under the applications: its name, or `LOGGING/MAPPING+POLICY@INTEGRITY`.
    #[serde(default = "plain")]
    pub memory: String,
    #[serde(default = "pageforge")]
    pub machine: String,
    /// Keys and values, of the machine and of the merge.
    #[serde(default)]
    pub sets: Vec<(String, String)>,
    /// Images of the virtual machines, in turn; without any they are generated.
    #[serde(default)]
    pub images: Vec<PathBuf>,
    #[serde(default)]
    pub seed: u64,
}

fn plain() -> String {
    "no-encryption".to_owned()
}

fn pageforge() -> String {
    "pageforge".to_owned()
}

#[derive(Debug, thiserror::Error)]
pub enum TimedError {
    #[error(transparent)]
    Machine(#[from] sardonyx::config::ConfigError),
    #[error(transparent)]
    Image(#[from] ImageError),
    #[error(transparent)]
    Run(#[from] RunError),
}

pub fn rows() -> Vec<&'static Row> {
    // Processors run the work here, so its times follow from instructions.
    let times = ksm_settings::times();
    let mut rows = merge_keys::rows();
    rows.retain(|row| !times.contains(&row.name));
    rows.extend(own_rows());
    rows.extend(applications::rows());
    rows
}

fn own_rows() -> Vec<&'static Row> {
    let mut rows: Vec<&Row> = algorithms::built_in()
        .flat_map(|known| (known.timed_keys)())
        .collect();
    rows.extend(keys::of_window());
    rows
}

/// The keys as tables with tabs between the cells, `docs/tables/pageforge-*.tsv`: those of the machine, and the load of
/// each application.
pub fn tables() -> [String; 2] {
    let mut text = "application".to_owned();
    let rows = applications::rows();
    let own = rows.len() / applications::ALL.len();
    for row in &rows[..own] {
        text += &format!("\t{}", row.split().1.replace('_', " "));
    }
    text += "\n";
    for (application, rows) in applications::ALL.iter().zip(rows.chunks(own)) {
        text += &format!("`{}`", application.name);
        for row in rows {
            text += &format!("\t{}", merge_keys::said(&Settings::default(), row).1);
        }
        text += "\n";
    }
    [merge_keys::table_of(own_rows()), text]
}

struct TimedPlan {
    algorithm: &'static Algorithm,
    memory: String,
    machine: Machine,
    settings: Settings,
    application: &'static Application,
    demand: Demand,
    /// The factor by which the application's queries were shortened and made more frequent.
    factor: u64,
}

impl TimedPlan {
    fn said(&self) -> Map<String, Value> {
        let each = rows().into_iter();
        each.map(|row| merge_keys::said(&self.settings, row))
            .collect()
    }

    /// Keys whose values no source gives, with their other values; of the applications' keys only this application's.
    fn assumed(&self) -> Vec<Value> {
        let of_another = |name: &str| {
            let others = applications::ALL.iter().map(|other| other.name);
            let mut others = others.filter(|other| *other != self.application.name);
            name.split_once('.')
                .is_some_and(|(section, _)| others.any(|other| other == section))
        };
        let own = rows().into_iter().filter(|row| !of_another(row.name));
        own.filter_map(|row| merge_keys::assumed(&self.settings, row))
            .collect()
    }
}

impl TimedPlan {
    /// Merges until the window begins; `None` if `go_on` ended it.
    fn settle<'i>(
        &self,
        images: &'i Images,
        seed: u64,
        go_on: &mut dyn FnMut() -> bool,
    ) -> Option<Settled<'i>> {
        let Some(merges) = &self.algorithm.merges else {
            return Some(Settled::default());
        };
        (merges.in_time)(Start {
            images,
            settings: &self.settings,
            seed,
            go_on,
        })
    }
}

impl Question {
    /// The keys that do not belong to the machine: `settings` has their values, `assumed` those that no source gives.
    pub fn keys(&self) -> Result<Value, TimedError> {
        let plan = self.plan()?;
        Ok(json!({"settings": plan.said(), "assumed": plan.assumed()}))
    }

    /// # Errors
    /// An unknown name or key, with the nearest, or a value that a key does not take.
    fn plan(&self) -> Result<TimedPlan, TimedError> {
        let bad = |text: String| TimedError::Image(ImageError(text));
        let algorithm = Algorithm::named(&self.design).map_err(bad)?;
        let rows = rows();
        let mut settings = Preset::Paper.settings();
        // The host is Ubuntu 16.04 (Table 2), whose kernel hashes whole pages.
        settings.set(&ksm_settings::CHECKSUM, Checksum::Jhash2);
        let mut overrides = Vec::new();
        for (key, value) in &self.sets {
            let section = key.split('.').next().unwrap_or_default();
            let ours = |row: &&Row| row.name.split('.').next() == Some(section);
            if rows.iter().any(ours) {
                ksm_settings::set(&mut settings, &rows, key, value).map_err(bad)?;
            } else {
                overrides.push((key.clone(), value.clone()));
            }
        }
        if settings.get(&ksm_settings::ADVISOR_MODE) != ksm_settings::Advisor::None {
            return Err(bad("ksm.advisor_mode: the advisor goes by passes, of which a window has none; leave it out".to_owned()));
        }
        let stack = Stack::named(&self.memory).map_err(RunError::from)?;
        let says = |key: &str| overrides.iter().any(|(said, _)| said == key);
        if stack.policy.counters != Counters::None && !says(ENABLED.row.name) {
            // A machine whose memory does not encrypt is overruled if the design is one that does.
            overrides.push((ENABLED.row.name.to_owned(), "true".to_owned()));
        }
        let machine = Machine::load(&self.machine, &overrides)?;
        if (DRAINS.met)(&machine.settings) {
            let why = "drain.lines: asks what a cut after a run costs, and a window is none; leave it out";
            return Err(bad(why.to_owned()));
        }
        let application = Application::named(&self.application).map_err(bad)?;
        let demand = application.demand(&settings);
        let window = settings.get(&keys::WINDOW_MS);
        let expected = demand.queries_per_second * machine.cores as u64 * window / 1_000;
        let factor = settings.get(&keys::LEAST_QUERIES).div_ceil(expected.max(1));
        let factor = match expected {
            0 => {
                let a_window = demand.queries_per_second * machine.cores as u64 * window;
                (settings.get(&keys::LEAST_QUERIES) * 1_000).div_ceil(a_window.max(1))
            }
            _ => factor.max(1),
        };
        Ok(TimedPlan {
            algorithm,
            memory: self.memory.clone(),
            demand: Demand {
                queries_per_second: demand.queries_per_second * factor,
                instructions: (demand.instructions / factor).max(1),
                ..demand
            },
            machine,
            settings,
            application,
            factor,
        })
    }

    pub fn check(&self) -> Result<(), TimedError> {
        self.plan()?;
        self.images.iter().try_for_each(|path| {
            images::open(path, Zeros::Held)?;
            Ok(())
        })
    }

    /// The figures of the run. `tell` is told the nanoseconds simulated and in all; if it answers false this returns
    /// `None`.
    ///
    /// # Errors
    /// An unknown name or key, an image that cannot be read, or a run that the machine cannot make.
    pub fn answer(
        &self,
        tell: &mut dyn FnMut(u64, u64) -> bool,
    ) -> Result<Option<Value>, TimedError> {
        let plan = self.plan()?;
        let (settings, machine) = (&plan.settings, &plan.machine);
        let window_ns = |ms: u64| ms * 1_000_000;
        let total = window_ns(settings.get(&keys::WINDOW_MS) + settings.get(&keys::WARMUP_MS));
        if !tell(0, total) {
            return Ok(None);
        }
        let count = machine.cores as u64;
        let machines = match &self.images[..] {
            [] => {
                let pages = settings.get(&keys::VM_MIB) * 256;
                vms::machines(settings, count, pages, self.seed)
            }
            paths => {
                let paths = paths.iter().cycle().take(count as usize);
                paths
                    .map(|path| images::open(path, Zeros::Held))
                    .collect::<Result<_, _>>()?
            }
        };
        let Some(images) = Images::read(machines, &mut |_, _| tell(0, total))? else {
            return Ok(None);
        };
        let room = machine.capacity_bytes() / PAGE_BYTES as u64 / 2;
        let empty = |machine: &images::MachineImage| {
            let mut pages = machine.space.first..machine.space.end;
            !pages.any(|page| images.last(page).is_some())
        };
        if images.pages() as u64 > room || images.machines.iter().any(empty) {
            let pages = images.pages();
            return Err(TimedError::Image(ImageError(format!(
                "the machines have {pages} pages in all, but the memory takes {room}, beside as many for copies and \
                 the kernel, and each machine needs one at least; give other images, or the memory more rows"
            ))));
        }
        let images = Arc::new(images);
        let settled = plan.settle(&images, self.seed, &mut || tell(0, total));
        let Some(settled) = settled else {
            return Ok(None);
        };
        let run = TimedRun::new(&plan, &images, settled, self.seed);
        let answer = run.answer(&plan, &images, &mut |done| tell(done, total))?;
        Ok(Some(answer))
    }
}
