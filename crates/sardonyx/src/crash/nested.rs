//! Life goes on: over what a cut has left each core recovers once more, timed, and goes on with some
//! transactions of its own. That is a history like the first, and is cut like it at every position.

use sardonyx_splitmix::mix;

use super::asked::{Cuts, Options};
use super::caught::caught;
use super::check::Checker;
use super::explain::explain;
use super::found::{Covered, Explored};
use super::golden::Golden;
use super::history::{History, Life};
use super::platform::{Survivors, drain_over};
use super::secrecy::{self, Encrypted};
use super::violation::{Kind, Tally, Violation};
use super::whole::whole_run;
use crate::controller::layers::Guarantee;
use crate::machine::{RunError, UntimedMemory, read_untimed};
use crate::medium::image::Image;
use crate::plan::untimed::Untimed;
use crate::workload::Workload;

/// Transactions of a core in a life after the first, at most.
const MOST_TRANSACTIONS: u64 = 3;
/// Lives that a run may have.
const MOST_LIVES: u32 = 3;
/// Cuts of a later life are followed by another so many times more rarely than cuts of the first.
const RARER: u64 = 16;

/// What recovery begins with after a cut: reserve power has written the processors' caches to it,
/// if it drains them, through the controller; and what was encrypted to that end.
fn drained(history: &History, survivors: &Survivors) -> (Image, Vec<Encrypted>) {
    let (image, lines) = (survivors.untimed.image().copy(), survivors.drained());
    if lines.is_empty() {
        return (image, Vec::new());
    }
    let mut untimed = Untimed::new(image);
    let mut controller = drain_over(history, &mut untimed, &lines);
    untimed.plan(|plan| controller.flush(plan));
    let encrypted = secrecy::written(&untimed, 0, history.held());
    untimed.settle();
    (untimed.into_image(), encrypted)
}

/// The life after the cut at which `survivors` stand; nothing if a program does not recover from it,
/// which is for others to say.
fn next(
    history: &History,
    survivors: &Survivors,
    workloads: &[&Workload],
) -> Result<Option<History>, RunError> {
    let position = survivors.position();
    let seed = mix(history.seed ^ mix(position));
    let (image, encrypted) = drained(history, survivors);
    let mut untimed = Untimed::new(image);
    let mut controller = history.recover(&mut untimed);
    untimed.plan(|plan| controller.undo(plan));
    let mut found = Vec::new();
    if history.guarantee == Guarantee::EveryLine {
        for program in &history.programs {
            let lines = program.region.iter();
            let lines = lines.map(|line| read_untimed(&mut controller, &mut untimed, line));
            found.push(lines.collect());
        }
    }
    let mut programs = Vec::new();
    for (core, program) in history.programs.iter().enumerate() {
        let (region, log) = (&program.region, &program.log);
        let mut view = UntimedMemory::new(&mut untimed, &mut controller, region, log);
        view.record();
        let Ok(recovered) = workloads[core].recover(&mut view) else {
            return Ok(None);
        };
        let recovery = view.take_record().expect("it is recorded");
        let transactions = 1 + mix(seed ^ core as u64) % MOST_TRANSACTIONS;
        let program = Golden::again(program, recovered.visible, recovery, transactions, seed);
        let Some(program) = program else {
            return Ok(None);
        };
        programs.push(program);
    }
    untimed.forget();
    let life = Life {
        image: untimed.into_image(),
        encrypted,
        found,
        programs,
        seed,
        before: Some((history.pads.clone(), position)),
    };
    history.next_life(life).map(Some)
}

/// Lives the life after the cut at which `survivors` stand, and cuts it at every position; says how many
/// cuts that were, as cuts of later lives.
pub fn live(
    history: &History,
    survivors: &Survivors,
    workloads: &[&Workload],
    options: &Options,
    tally: &mut Tally,
) -> Covered {
    let position = survivors.position();
    let ends = |kind, why: String| {
        let what = format!("the life after this cut ends early: {why}");
        Violation::new(kind, position, what)
    };
    let life = match caught(|| next(history, survivors, workloads)) {
        Ok(Ok(Some(life))) => life,
        Ok(Ok(None)) => return Covered::default(),
        Ok(Err(why)) => {
            let kind = match why {
                RunError::NotAuthentic { .. } => Kind::NotAuthentic,
                _ => Kind::RunEnded,
            };
            tally.add(ends(kind, why.to_string()));
            return Covered::default();
        }
        Err(why) => {
            tally.add(ends(Kind::RunEnded, why));
            return Covered::default();
        }
    };
    let options = Options {
        cuts: Cuts::All,
        recovery_cuts: match life.life {
            MOST_LIVES.. => 0,
            _ => options.recovery_cuts.saturating_mul(RARER),
        },
        ..*options
    };
    let mut checker = Checker::new(&life, &options, live);
    checker.live();
    let Explored {
        covered,
        tally: mut found,
    } = std::mem::take(&mut checker.explored);
    whole_run(&life, &options, &mut found);
    tally.lost.count += found.lost.count;
    tally.secret.count += found.secret.count;
    for (count, violation) in found.kinds.into_values() {
        let mut later_cuts = vec![violation.position];
        later_cuts.extend(&violation.later_cuts);
        let story = match tally.kinds.contains_key(&violation.kind) {
            true => Vec::new(),
            false => explain(&life, &violation),
        };
        let violation = Violation {
            position,
            later_cuts,
            evidence: Vec::new(),
            story,
            ..violation
        };
        tally.add_times(count, violation);
    }
    Covered {
        recovery_cuts: covered.cuts + covered.recovery_cuts,
        later_lives: 1 + covered.later_lives,
        ..Covered::default()
    }
}
