//! Later lives: over what a cut has left each core recovers once more, timed, and goes on with some transactions of its
//! own. That is a history like the first, and is cut at every position too.

use sardonyx_base::random::mix;

use crate::check::Checker;
use crate::check::whole_run::whole_run;
use crate::explanation::explain;
use crate::findings::{Covered, ExploredCuts};
use crate::history::golden::Golden;
use crate::history::{History, Life};
use crate::options::{Cuts, Options};
use crate::pads::{self, Encrypted};
use crate::panics::caught;
use crate::platform::{Survivors, drain_over};
use crate::violation::{Kind, Tally, Violation};
use sardonyx::controller::layers::Guarantee;
use sardonyx::machine::{RunError, UntimedMemory, read_untimed};
use sardonyx::medium::image::Image;
use sardonyx::plan::script::Scripting;
use sardonyx::plan::untimed::Untimed;
use sardonyx_workload::{Fault, Recovered, Workload};

/// A core makes at most this many transactions in a later life.
const MOST_TRANSACTIONS: u64 = 3;
/// A long life makes all transactions that are left, and only its last cuts are checked, because what the first life
/// has filled is full by then.
const ALL_LEFT: u64 = 1 << 32;
/// One later life in this many is a long one.
const LONG: u64 = 8;
/// Bounds the number of long lives of a run, even if a life follows each of its cuts, because each takes as long as the
/// run.
const MOST_LONG: u64 = 4096;
/// The number of a long life's last cuts that are checked.
const LAST_CUTS: u64 = 512;
const MOST_LIVES: u32 = 3;
/// Lives follow the cuts of a later life this many times more rarely than those of the first.
const RARER: u64 = 16;

/// Returns the image that a recovery begins with, after reserve power has written the processors' caches through the
/// controller where it drains them, and what was encrypted for that.
fn drained(history: &History, survivors: &Survivors) -> (Image, Vec<Encrypted>) {
    let (image, lines) = (survivors.untimed.image().copy(), survivors.drained());
    if lines.is_empty() {
        return (image, Vec::new());
    }
    let mut untimed = Untimed::new(image);
    let mut controller = drain_over(history, &mut untimed, &lines);
    untimed.plan(|plan| controller.flush(plan));
    let encrypted = pads::written(&untimed, 0, history.held());
    untimed.settle();
    (untimed.into_image(), encrypted)
}

/// Returns the life after the cut at which `survivors` stand, in which each core makes as many further transactions as
/// `transactions` draws from a number; `None` if a program does not recover, which the checker reports.
pub(crate) fn next(
    history: &History,
    survivors: &Survivors,
    workloads: &[&Workload],
    transactions: impl Fn(u64) -> u64,
) -> Option<Life> {
    let position = survivors.position();
    let seed = mix(history.seed ^ mix(position));
    let (image, encrypted) = drained(history, survivors);
    let mut untimed = Untimed::new(image);
    let mut controller = history.recover(&mut untimed);
    untimed.plan(|plan| controller.undo(plan));
    let mut found = Vec::new();
    if history.guarantee == Guarantee::EveryLine {
        let joint = history.joint.is_some();
        let count = if joint { 1 } else { history.programs.len() };
        for program in &history.programs[..count] {
            let lines = program.region.iter();
            let lines = lines.map(|line| read_untimed(&mut controller, &mut untimed, line));
            found.push(lines.collect());
        }
    }
    let mut programs = Vec::new();
    if let Some(joint) = &history.joint {
        let mut view =
            UntimedMemory::new(&mut untimed, &mut controller, &joint.region, &joint.logs);
        view.record();
        let recovered = workloads.iter().map(|one| one.recover(&mut view));
        let recovered: Result<Vec<Recovered>, Fault> = recovered.collect();
        let visible: Vec<u64> = recovered.ok()?.iter().map(|one| one.visible).collect();
        let recovery = view.take_record().expect("it is recorded");
        let more = (0..visible.len()).map(|core| transactions(mix(seed ^ core as u64)));
        let more: Vec<u64> = more.collect();
        let before = &history.programs;
        programs = Golden::together_again(before, joint, &visible, recovery, &more, seed)?;
    }
    let own = if history.joint.is_some() {
        0
    } else {
        history.programs.len()
    };
    for (core, program) in history.programs[..own].iter().enumerate() {
        let (region, log) = (&program.region, &program.log);
        let mut view = UntimedMemory::new(&mut untimed, &mut controller, region, log);
        view.record();
        let Ok(recovered) = workloads[core].recover(&mut view) else {
            return None;
        };
        let recovery = view.take_record().expect("it is recorded");
        let transactions = transactions(mix(seed ^ core as u64));
        let program = Golden::again(program, recovered.visible, recovery, transactions, seed);
        programs.push(program?);
    }
    untimed.forget();
    Some(Life {
        image: untimed.into_image(),
        encrypted,
        found,
        programs,
        seed,
        before: Some((history.pads.clone(), position)),
        scripting: Scripting::default(),
    })
}

/// Reports that the life after the cut at `position` could not go on.
pub(crate) fn ended(tally: &mut Tally, position: u64, why: &RunError) {
    let kind = match why {
        RunError::NotAuthentic { .. } => Kind::NotAuthentic,
        _ => Kind::RunEnded,
    };
    early(tally, kind, position, &why.to_string());
}

/// Reports an assertion that failed in the life after the cut at `position`.
pub(crate) fn broken(tally: &mut Tally, position: u64, why: &str) {
    early(tally, Kind::RunEnded, position, why);
}

fn early(tally: &mut Tally, kind: Kind, position: u64, why: &str) {
    let what = format!("the life after this cut ends early: {why}");
    tally.add(Violation::new(kind, position, what));
}

/// Whether the life after a cut of a run is long. It follows from the run and the cut alone, so a cut that is made again
/// by itself has the same life.
fn is_long(positions: u64, seed: u64, cut: u64) -> bool {
    let one_in = LONG.max(positions / MOST_LONG);
    mix(cut ^ seed).is_multiple_of(one_in)
}

/// Whether everything is checked at the end of a short life after a cut of a run. The numbers are drawn apart from those
/// of long lives.
fn is_full(options: &Options, seed: u64, cut: u64) -> bool {
    let drawn = mix(mix(cut ^ seed)).is_multiple_of(options.full_life_in.max(1));
    drawn || options.full_one_in <= 1
}

/// Lives the life after the cut at which `survivors` stand and cuts it at every position. Returns how much was covered.
pub fn live(
    history: &History,
    survivors: &Survivors,
    workloads: &[&Workload],
    options: &Options,
    tally: &mut Tally,
) -> Covered {
    let position = survivors.position();
    let is_long = history.life == 1 && is_long(history.positions(), history.seed, position);
    let drawn = |number| match is_long {
        true => ALL_LEFT,
        false => 1 + number % MOST_TRANSACTIONS,
    };
    let lived = || {
        let life = next(history, survivors, workloads, drawn);
        life.map(|life| history.next_life(life)).transpose()
    };
    let life = match caught(lived) {
        Ok(Ok(Some(life))) => life,
        Ok(Ok(None)) => return Covered::default(),
        // The plan may press harder than this life's programs allow, which is no fault of the design.
        Ok(Err(RunError::Exhausted { why, .. })) if why.key.is_some() => return Covered::default(),
        Ok(Err(why)) => {
            ended(tally, position, &why);
            return Covered::default();
        }
        Err(why) => {
            broken(tally, position, &why);
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
    let cuts = if is_long { LAST_CUTS } else { u64::MAX };
    let full = is_long || is_full(&options, history.seed, position);
    let mut lived_full = false;
    let mut covered = look(&life, position, &options, tally, |checker| {
        lived_full = checker.live(cuts, full);
    });
    covered.later_run = covered.later_run.max(life.longest_run());
    covered.lived_full += u64::from(lived_full);
    covered
}

/// Has `at` check cuts of `life`, which begins with the cut at `position`, and adds what is found to `tally`. Returns
/// how much was covered, with the lives after it.
pub(crate) fn look(
    life: &History,
    position: u64,
    options: &Options,
    tally: &mut Tally,
    at: impl FnOnce(&mut Checker),
) -> Covered {
    let mut checker = Checker::new(life, options, &live);
    at(&mut checker);
    let mut explored = std::mem::take(&mut checker.explored);
    whole_run(life, options).add_to(&mut explored);
    let ExploredCuts {
        covered,
        tally: found,
        ..
    } = explored;
    tally.lost.count += found.lost.count;
    tally.secret.count += found.secret.count;
    for (count, violation) in found.kinds.into_values() {
        // A violation is named by the cut of the first life, followed by the cuts of the lives after it.
        let mut later_cuts = vec![violation.position];
        later_cuts.extend(&violation.later_cuts);
        let story = match tally.kinds.contains_key(&violation.kind) {
            true => Vec::new(),
            false => explain(life, &violation),
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
        lived: 1 + covered.lived,
        lived_full: covered.lived_full,
        later_run: covered.later_run,
        ..Covered::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_lives_do_not_multiply_with_the_length_of_a_run() {
        let long = |positions| {
            let cuts = 0..positions;
            cuts.filter(|cut| is_long(positions, 7, *cut)).count() as u64
        };
        assert!((1_700..2_100).contains(&long(15_000)), "one in eight");
        for positions in [1 << 16, 1 << 18, 1 << 20] {
            assert!((3_600..4_600).contains(&long(positions)), "{positions}");
        }
    }
}
