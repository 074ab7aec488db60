//! The figures that a host may ask for.

use std::time::Duration;

use super::{Hosted, HostedError};
use crate::latency::Latencies;
use crate::line::LINE_BYTES;
use crate::machine::agent::CoreFigures;
use crate::machine::outcome::{self, Finished, Outcome};
use crate::machine::page_table::{AddressSpace, PAGE_LINES, PageTable};
use crate::machine::system::Before;
use crate::units::Time;

impl Hosted {
    /// Sets the work of the host's core `source` so far, for the figures about instructions.
    ///
    /// # Errors
    /// There is no such source.
    pub fn core_has(&mut self, source: u32, figures: CoreFigures) -> Result<(), HostedError> {
        self.check_source(source)?;
        self.cores[source as usize] = figures;
        Ok(())
    }

    /// Counts from zero again. State stays, and requests in flight are counted.
    pub fn forget_figures(&mut self) {
        (self.port.reads, self.port.writes) = (Latencies::new(), Latencies::new());
        self.begin_counting(self.now());
    }

    pub(super) fn begin_counting(&mut self, time: Time) {
        self.before = Some(Before {
            time,
            committed: 0,
            figures: self.cores.clone(),
        });
        self.port.counted = true;
        self.port.fences = 0;
        self.port.memory.forget_figures();
    }

    /// The figures so far.
    ///
    /// # Errors
    /// Nothing was counted yet.
    pub fn outcome(&mut self) -> Result<Outcome, HostedError> {
        let Some(before) = &self.before else {
            let remedy = "nothing was counted yet; host.warmup is longer than the run";
            return Err(HostedError::NotNow(remedy));
        };
        if !self.port.pages.takes_frames() {
            let used = match self.port.memory.contents() {
                Some(contents) => contents.pages(),
                None => self.pages.len() as u64,
            };
            let pages = |source| if source == 0 { used } else { 0 };
            let spaces = (0..self.options.sources).map(pages);
            let spaces = spaces.map(|pages| AddressSpace::Identity { pages });
            self.port.pages = PageTable::new(spaces.collect());
        }
        let took: Duration = self.started.elapsed();
        let finished = Finished {
            machine: &self.machine,
            port: &self.port,
            figures: self.cores.clone(),
            before,
        };
        Ok(outcome::conclude(&finished, took))
    }

    /// The size of the address space in bytes.
    pub fn capacity(&self) -> u64 {
        self.capacity / (PAGE_LINES * LINE_BYTES as u64) * (PAGE_LINES * LINE_BYTES as u64)
    }
}
