//! A cut within recovery: what recovery did is done again by a timed core over what survived, and
//! the power goes once more at every position of that, on the same platform.

use super::golden::Window;
use super::history::{History, adverse};
use super::platform::{Platform, Survivors, recover_over};
use super::secrecy::{self, Encrypted, Pads};
use super::violation::{Kind, Tally, Violation};
use crate::line::Lines;
use crate::machine::{Batch, OpSource, RunError, UntimedMemory};
use crate::medium::image::Image;
use crate::plan::untimed::Untimed;
use crate::units::Time;
use crate::workload::Workload;

/// Operations that are there already.
struct Once {
    batch: Option<Batch>,
    log: Lines,
}

impl OpSource for Once {
    fn name(&self) -> &str {
        "recovery"
    }

    fn refill(&mut self, _now: Time, batch: &mut Batch) -> Result<bool, RunError> {
        let Some(once) = self.batch.take() else {
            return Ok(false);
        };
        *batch = once;
        Ok(true)
    }

    fn log_lines(&self) -> Lines {
        self.log.clone()
    }
}

/// What recovery begins with after a cut: reserve power has written the processors' caches to it,
/// if it drains them, through the controller; and what was encrypted to that end.
pub fn drained(history: &History, survivors: &Survivors) -> (Image, Vec<Encrypted>) {
    let (image, lines) = (survivors.untimed.image().copy(), survivors.drained());
    if lines.is_empty() {
        return (image, Vec::new());
    }
    let mut untimed = Untimed::new(image);
    let mut controller = recover_over(history, &mut untimed, &lines);
    untimed.plan(|plan| controller.flush(plan));
    let encrypted = secrecy::written(&untimed, 0, history.data_lines());
    untimed.settle();
    (untimed.into_image(), encrypted)
}

/// The recovery of one core's program, to be cut itself.
pub struct Recovery<'a> {
    /// The run.
    pub history: &'a History,
    /// What reserve power drains at either cut.
    pub platform: Platform,
    /// Where the run was cut.
    pub position: u64,
    /// What recovery begins with.
    pub image: &'a Image,
    /// What was encrypted to that end.
    pub sealed: &'a [Encrypted],
    /// The core.
    pub core: usize,
    /// Its program.
    pub workload: &'a Workload,
    /// Transactions that must and may be visible.
    pub window: Window,
}

impl Recovery<'_> {
    /// Plays the operations of `batch`, which are the recovery's, and cuts it at each position.
    /// Returns how many cuts that were, and adds to `tally` at most one violation a cut.
    pub fn cut(&self, batch: Batch, tally: &mut Tally) -> u64 {
        let (history, image, position) = (self.history, self.image, self.position);
        let once = Once {
            batch: Some(batch),
            log: history.programs[self.core].log.clone(),
        };
        let seed = history.seed ^ position;
        let controller = (&*history.design, history.controller());
        let sources: Vec<Box<dyn OpSource>> = vec![Box::new(once)];
        let journal = adverse(&history.machine, controller, image.copy(), sources, seed)
            .expect("a recovery was run before, without time");
        let before = Some((history.pads.clone(), position));
        let data = history.data_lines();
        let pads = Pads::new(self.sealed.to_vec(), &journal, data, before);
        let mut survivors = Survivors::new(&journal, image.copy(), self.platform, seed);
        let mut changed = Vec::new();
        let mut standing: Option<Violation> = None;
        for _ in &journal.events {
            changed.clear();
            survivors.advance(&mut changed);
            let recovery_cut = survivors.position();
            if !changed.is_empty() {
                let torn = survivors.tear();
                let wrong = self.verify(&mut survivors);
                let written = secrecy::written(&survivors.untimed, 0, data);
                let encrypted = written.iter().filter(|_| history.is_encrypted());
                let reused = encrypted.into_iter().find_map(|new| {
                    let what = pads.clash(new, recovery_cut)?;
                    Some(Violation {
                        place: Some(new.place),
                        ..Violation::new(Kind::PadReused, position, what)
                    })
                });
                standing = wrong.or(reused).map(|found| Violation {
                    core: Some(self.core),
                    what: format!("after a cut within recovery: {}", found.what),
                    ..found
                });
                survivors.untimed.forget();
                survivors.mend(torn);
            }
            if let Some(violation) = &standing {
                tally.add(Violation {
                    recovery_cut: Some(recovery_cut),
                    ..violation.clone()
                });
            }
        }
        journal.events.len() as u64
    }

    /// Recovers once more, and compares the lines of every transaction in question.
    fn verify(&self, survivors: &mut Survivors) -> Option<Violation> {
        let golden = &self.history.programs[self.core];
        let (region, log) = (&golden.region, &golden.log);
        let wrong = |kind, line, what| {
            Some(Violation {
                line,
                ..Violation::new(kind, self.position, what)
            })
        };
        let mut controller = survivors.recover(self.history);
        let untimed = &mut survivors.untimed;
        let mut view = UntimedMemory::new(untimed, &mut controller, region, log);
        let visible = match self.workload.recover(&mut view) {
            Ok(recovered) => recovered.visible,
            Err(fault) => {
                let line = region.at(fault.at / 64);
                return wrong(Kind::Unrecoverable, Some(line), fault.what);
            }
        };
        let Window { required, allowed } = self.window;
        if let Some(kind) = self.window.broken_by(visible) {
            let what = format!("transaction {visible} is the last, of {required} to {allowed}");
            return wrong(kind, None, what);
        }
        // The lines that this recovery, or the one that was cut, may have touched.
        let mut lines = view.stored();
        lines.extend(golden.between(required, allowed + 1));
        let differs = |line: &u64| {
            !log.contains(*line) && view.line(*line) != *golden.content(*line, visible)
        };
        let line = lines.into_iter().find(differs)?;
        let what = format!("line {line} is not what transaction {visible} left");
        wrong(Kind::WrongLine, Some(line), what)
    }
}
