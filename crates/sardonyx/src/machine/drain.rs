//! What a power cut after the run costs, where reserve power drains the processor's caches: their lines are written
//! through the controller, and then what its metadata caches hold, in time. Or lines go into a vault past the design, as
//! Horus (MICRO 2022) has it. Left out: the energy of cores and caches, and what a restart reads.

use super::outcome::{self, Finished, time, traffic};
use super::system::{Before, System};
use super::{CoreFigures, Outcome, RunError, TraceUse};
use crate::controller::designs::Stack;
use crate::figures::Amount;
use crate::line::{LINE_BYTES, Line, Logical};
use crate::medium::params::drain::{BY, DRAINS, DrainedBy, DrainedLines, LINES};
use crate::settings::Settings;
use crate::trace::{Level, Source};

crate::figures::figures! { "What a cut costs";
    LINES_DRAINED: Count Neither "drained_lines",
        "`drain.lines`: lines of the processor's caches that reserve power drains at a cut after the run";
    SHARE: Ratio Neither "drained_share", "share of the last level's lines that these are";
    READS: Count Less "drain_reads", "reads of the medium that this takes";
    WRITES: Count Less "drain_writes", "writes, those of what the metadata caches hold included";
    TIME: Nanoseconds Less "drain_ns", "the time until all is in the medium's array";
    ENERGY: Nanojoules Less "drain_energy_nj", "the medium's energy and that of the controller's units for that time";
}

/// Checks that there are caches if they are to be drained.
///
/// # Errors
/// `source` was taken below them.
pub(super) fn check(settings: &Settings, source: &Source) -> Result<(), TraceUse> {
    if !(DRAINS.met)(settings) || source.provenance().level == Level::Cpu {
        return Ok(());
    }
    Err(TraceUse {
        trace: source.name().to_owned(),
        problem: "drain.lines asks about the processor's caches, and it was taken below them"
            .to_owned(),
        remedy: "leave that out, or simulate a program whole, such as btree",
    })
}

impl System<'_> {
    /// Cuts the power at the end of the run, if the machine asks what that costs, and adds it to the run's figures.
    pub(super) fn drain(&mut self, outcome: &mut Outcome) -> Result<(), RunError> {
        let settings = &self.machine.settings;
        let asked = settings.get(&LINES);
        if asked == DrainedLines::None {
            return Ok(());
        }
        let lines = match asked {
            DrainedLines::All => self.port.caches.all_lines(),
            _ => self.port.caches.dirty_lines(),
        };
        let lines = lines.into_iter().map(|line| (line.line, line.data));
        let mut lines: Vec<(Logical, Line)> = lines.collect();
        if asked == DrainedLines::All {
            for (_, data) in &mut lines {
                let word = data.first_chunk_mut::<8>().expect("a line has words");
                *word = u64::from_le_bytes(*word).wrapping_add(1).to_le_bytes();
            }
        }
        let begin = self.port.memory.now();
        self.port.memory.forget_figures();
        let stack = Stack::named(self.port.memory.design())?;
        self.port.memory.unheard(|memory| match settings.get(&BY) {
            DrainedBy::Controller => memory.drain_through(&lines),
            DrainedBy::Vault => memory.drain_into_vault(&lines, &stack, settings),
        });
        self.goes_on()?;
        self.port.last_answer = self.port.memory.now();
        let drained = outcome::figures(&Finished {
            machine: &self.machine,
            port: &self.port,
            figures: vec![CoreFigures::default(); self.agents.len()],
            before: &Before {
                time: begin,
                committed: self.port.committed.iter().sum(),
                figures: vec![CoreFigures::default(); self.agents.len()],
            },
        });
        let figures = &mut outcome.figures;
        figures.put(&LINES_DRAINED, lines.len() as f64);
        let room = self.machine.caches.llc.bytes / LINE_BYTES as u64;
        figures.put(&SHARE, Amount::share(lines.len() as f64, room as f64));
        figures.put(&READS, drained.of(&traffic::MEDIUM_READS));
        figures.put(&WRITES, drained.of(&traffic::MEDIUM_WRITES));
        figures.put(&TIME, drained.of(&time::SIMULATED));
        figures.put(&ENERGY, drained.of(&time::ENERGY));
        Ok(())
    }
}
