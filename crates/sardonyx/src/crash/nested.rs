//! A cut within recovery: what recovery did is done again by a timed core over what survived, and
//! the power goes once more at every position of that, on the same platform.

use super::history::{History, adverse};
use super::platform::{Platform, Survivors, recover_over};
use super::secrecy::Pads;
use super::violation::{Kind, Violation};
use crate::machine::{Batch, OpSource, RunError, UntimedMemory};
use crate::medium::image::Image;
use crate::plan::journal::Sealed;
use crate::plan::untimed::Untimed;
use crate::units::Time;
use crate::workload::Workload;

/// What cutting one recovery has shown.
pub struct Found {
    /// Cuts.
    pub cuts: u64,
    /// What was wrong, at most one thing a cut.
    pub violations: Vec<Violation>,
}

/// Operations that are there already.
struct Once {
    batch: Option<Batch>,
    log: std::ops::Range<u64>,
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

    fn log_lines(&self) -> std::ops::Range<u64> {
        self.log.clone()
    }
}

/// What recovery begins with after a cut: reserve power has written the processors' caches to it,
/// if it drains them, through the controller; and what was encrypted to that end.
pub fn drained(history: &History, survivors: &Survivors) -> (Image, Vec<Sealed>) {
    let (image, lines) = (survivors.untimed.image().copy(), survivors.drained());
    if lines.is_empty() {
        return (image, Vec::new());
    }
    let mut untimed = Untimed::new(image);
    let mut controller = recover_over(history, &mut untimed, &lines);
    untimed.plan(|plan| controller.flush(plan));
    let sealed = untimed.settle();
    (untimed.into_image(), sealed)
}

/// Cuts the recovery `batch` of core `core`'s program on `platform`, which began with `image` after
/// a cut at `position`, for which `sealed` had been encrypted; transactions `window.0` to
/// `window.1` must or may be visible.
pub fn cut(
    (history, core, platform): (&History, usize, Platform),
    (position, image, sealed): (u64, &Image, &[Sealed]),
    (workload, window): (&Workload, (u64, u64)),
    batch: Batch,
) -> Found {
    let golden = &history.programs[core];
    let once = Once {
        batch: Some(batch),
        log: golden.log(),
    };
    let seed = history.seed ^ position;
    let controller = (&*history.design, history.controller());
    let sources: Vec<Box<dyn OpSource>> = vec![Box::new(once)];
    let journal = adverse(&history.machine, controller, image.copy(), sources, seed)
        .expect("a recovery was run before, without time");
    let pads = Pads::new(sealed, &journal, false);
    let mut survivors = Survivors::new(&journal, image.copy(), platform, seed);
    let (mut changed, mut found) = (
        Vec::new(),
        Found {
            cuts: 0,
            violations: Vec::new(),
        },
    );
    let mut standing: Option<Violation> = None;
    for (index, _) in journal.events.iter().enumerate() {
        changed.clear();
        survivors.advance(&mut changed);
        found.cuts += 1;
        let recovery_cut = index as u64 + 1;
        if !changed.is_empty() {
            let torn = match platform {
                Platform::None => survivors.tear(),
                _ => Vec::new(),
            };
            let wrong = verify((history, core), &mut survivors, (workload, window));
            let sealed = survivors.untimed.sealed();
            let reused = sealed
                .iter()
                .find(|s| history.pads.is_reused(s, position) || pads.is_reused(s, recovery_cut));
            let reused = reused.map(|s| {
                let what = format!(
                    "a second recovery encrypts place {} under counter {}, used before",
                    s.place.0, s.counter
                );
                (Kind::PadReused, None, Some(s.place), what)
            });
            let wrong = wrong.map(|(kind, line, what)| (kind, line, None, what));
            standing = wrong.or(reused).map(|(kind, line, place, what)| Violation {
                kind,
                position,
                recovery_cut: None,
                core: Some(core),
                line,
                place,
                what: format!("after a cut within recovery: {what}"),
            });
            survivors.untimed.forget();
            survivors.mend(torn);
        }
        if let Some(violation) = &mut standing {
            violation.recovery_cut = Some(recovery_cut);
            found.violations.push(violation.clone());
        }
    }
    found
}

/// Recovers once more, and compares the lines of every transaction in question.
fn verify(
    (history, core): (&History, usize),
    survivors: &mut Survivors,
    (workload, (required, allowed)): (&Workload, (u64, u64)),
) -> Option<(Kind, Option<u64>, String)> {
    let golden = &history.programs[core];
    let (region, log) = (golden.region(), golden.log());
    let mut controller = survivors.recover(history);
    let untimed = &mut survivors.untimed;
    let mut view = UntimedMemory::new(untimed, &mut controller, region.start, log.clone());
    let visible = match workload.recover(&mut view) {
        Ok(recovered) => recovered.visible,
        Err(fault) => {
            let line = region.start + fault.at / 64;
            return Some((Kind::Unrecoverable, Some(line), fault.what));
        }
    };
    if visible < required || visible > allowed {
        let kind = if visible < required {
            Kind::Lost
        } else {
            Kind::Early
        };
        let what = format!("transaction {visible} is the last, of {required} to {allowed}");
        return Some((kind, None, what));
    }
    // The lines that this recovery, or the one that was cut, may have touched.
    let mut lines = view.stored();
    lines.extend(golden.between(required, allowed + 1));
    let differs =
        |line: &u64| !log.contains(line) && view.line(*line) != *golden.content(*line, visible);
    let wrong = lines.into_iter().find(differs)?;
    let what = format!("line {wrong} is not what transaction {visible} left");
    Some((Kind::WrongLine, Some(wrong), what))
}
