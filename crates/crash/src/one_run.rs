//! One run and its cuts, as they are asked for: a machine, a design, programs, a seed and options.

use crate::explore::explore;
use crate::findings::ExploredCuts;
use crate::history::machine::may_fill;
use crate::history::run::Run;
use crate::history::{History, Result};
use crate::memory::needed;
use crate::options::Options;
use sardonyx::config::Machine;
use sardonyx::plan::script::{Script, Scripting};
use sardonyx_workload::ProgramSpec;

#[derive(Clone, Debug)]
pub struct OneRun {
    pub machine: Machine,
    pub design: String,
    pub specs: Vec<ProgramSpec>,
    /// The seed from which evictions, delays and sampled cuts are drawn.
    pub seed: u64,
    pub options: Options,
    /// The evictions, delays and pauses, if the seed does not draw them.
    pub script: Option<Script>,
}

impl OneRun {
    pub fn run(&self) -> Run {
        Run::new(&self.design, &self.specs[0], self.specs.len(), self.seed)
    }

    /// Estimates the bytes of host memory of the run from above.
    ///
    /// # Errors
    /// They are not free, or there is no such design.
    pub fn memory(&self) -> Result<u64> {
        needed(&self.design, &self.specs)
    }

    pub(crate) fn recorded(&self, scripting: Scripting) -> Result<History> {
        History::scripted(
            &self.machine,
            &self.design,
            &self.specs,
            self.seed,
            scripting,
        )
    }

    /// Runs the programs and cuts the power. `progress` is told the cuts done and in all; if it answers false this
    /// returns `None`.
    ///
    /// # Errors
    /// The design or a program does not exist, the run has no such cuts, or does not fit in memory.
    pub fn look(
        &self,
        progress: &(dyn Fn(u64, u64) -> bool + Sync),
    ) -> Result<Option<(History, ExploredCuts)>> {
        self.memory()?;
        let script = self.script.clone().map(Scripting::follow);
        let history = self.recorded(script.unwrap_or_default())?;
        let mut options = self.options;
        if may_fill(&self.machine.settings) {
            // The run may end before it has as many positions as it was asked for.
            options.cuts = options.cuts.at_most(history.positions());
        }
        options.cuts.check(&history)?;
        let cuts = options.cuts.count(&history);
        let tell = |done| progress(done, cuts);
        let explored = explore(&history, &options, &tell);
        Ok(explored.map(|explored| (history, explored)))
    }
}
