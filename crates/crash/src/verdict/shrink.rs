//! Shortens a finding: fewer transactions, cores, evictions, delays and pauses, as long as the run still fails for the
//! same reason. The reason is the same if the kind of violation and the sort of line are the same, in the first life or
//! in a later one.

use serde::Serialize;

use crate::check::Checker;
use crate::check::later_lives;
use crate::check::whole_run::whole_run;
use crate::findings::ExploredCuts;
use crate::history::History;
use crate::one_run::OneRun;
use crate::violation::{Kind, Tally, Violation};
use sardonyx::line::Class;
use sardonyx::plan::script::{Script, Scripting};

const MOST_RUNS: u64 = 160;
/// After this many cuts, of later lives too, nothing more is tried.
const MOST_CUTS: u64 = 150_000;
/// A story names at most this many evictions, delays and pauses one by one.
const MOST_TOLD: usize = 12;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Size {
    pub cores: u64,
    pub transactions: u64,
    pub evictions: u64,
    pub delays: u64,
    pub pauses: u64,
    pub cut: u64,
}

pub(crate) struct Shrunk {
    pub question: OneRun,
    pub history: History,
    pub violation: Violation,
    pub from: Size,
    pub to: Size,
}

#[derive(Clone, Copy, PartialEq, Eq)]
struct Reason {
    kind: Kind,
    later: bool,
    class: Option<Class>,
}

impl Reason {
    fn from_violation(history: &History, violation: &Violation) -> Reason {
        Reason {
            kind: violation.kind,
            later: !violation.later_cuts.is_empty(),
            class: violation.line.map(|line| history.class_of(line)),
        }
    }
}

struct Spent {
    runs: u64,
    cuts: u64,
}

impl Spent {
    fn is_all(&self) -> bool {
        self.runs >= MOST_RUNS || self.cuts >= MOST_CUTS
    }
}

/// A shorter history than that of `question`, which has shown a violation of `kind`; `None` if it does not fail when it
/// is written down and made again.
pub(crate) fn reduce(question: &OneRun, kind: Kind) -> Option<Shrunk> {
    let mut spent = Spent { runs: 0, cuts: 0 };
    let told = question.script.clone().map(Scripting::follow);
    let (scripting, written) = told.unwrap_or_default().recorded();
    let history = question.recorded(scripting).ok()?;
    let script = std::mem::take(&mut *written.lock().expect("no thread panics"));
    let mut question = question.clone();
    let is_it = |reason: Reason| reason.kind == kind;
    let violation = first(&history, &question, kind, &is_it, &mut spent)?;
    let reason = Reason::from_violation(&history, &violation);
    if reason.later {
        question.options.recovery_cuts = 1;
    }
    question.script = Some(script);
    let from = size(&question, &violation);
    let mut best = (question, history, violation);
    // The second round may drop what only the first round's losses have made superfluous.
    for round in 0..2 {
        let before = best.0.clone();
        transactions(&mut best, reason, &mut spent);
        cores(&mut best, reason, &mut spent);
        for sort in 0..3 {
            entries(&mut best, sort, reason, &mut spent);
        }
        if spent.is_all() || round == 0 && best.0.script == before.script {
            break;
        }
    }
    let (question, history, violation) = best;
    let to = size(&question, &violation);
    Some(Shrunk {
        question,
        history,
        violation,
        from,
        to,
    })
}

type Best = (OneRun, History, Violation);

fn size(question: &OneRun, violation: &Violation) -> Size {
    let script = question.script.as_ref();
    let count = |sort: usize| script.map_or(0, |script| sort_of(script, sort).len() as u64);
    Size {
        cores: question.specs.len() as u64,
        transactions: question.specs[0].transactions,
        evictions: count(0),
        delays: count(1),
        pauses: count(2),
        cut: violation.position,
    }
}

fn sort_of(script: &Script, sort: usize) -> &Vec<[u64; 3]> {
    [&script.evictions, &script.delays, &script.pauses][sort]
}

fn sort_mut(script: &mut Script, sort: usize) -> &mut Vec<[u64; 3]> {
    match sort {
        0 => &mut script.evictions,
        1 => &mut script.delays,
        _ => &mut script.pauses,
    }
}

/// Takes `shorter` for the best if it fails for the same reason. Returns whether it does.
fn takes(best: &mut Best, shorter: OneRun, reason: Reason, spent: &mut Spent) -> bool {
    if spent.is_all() {
        return false;
    }
    spent.runs += 1;
    let told = shorter.script.clone().map(Scripting::follow);
    let (scripting, written) = told.unwrap_or_default().recorded();
    let Ok(history) = shorter.recorded(scripting) else {
        return false;
    };
    let same = |other: Reason| other == reason;
    let Some(violation) = first(&history, &shorter, reason.kind, &same, spent) else {
        return false;
    };
    // Entries of the script that the run did not come to are no part of it.
    let script = std::mem::take(&mut *written.lock().expect("no thread panics"));
    let shorter = OneRun {
        script: Some(script),
        ..shorter
    };
    *best = (shorter, history, violation);
    true
}

/// The first violation of `kind` that `is_it`; `None` if there is none, or it takes too long.
fn first(
    history: &History,
    question: &OneRun,
    kind: Kind,
    is_it: &dyn Fn(Reason) -> bool,
    spent: &mut Spent,
) -> Option<Violation> {
    let is_that = |tally: &Tally| {
        let found = tally.kinds.get(&kind).map(|(_, first)| first)?;
        is_it(Reason::from_violation(history, found)).then(|| found.clone())
    };
    let mut checker = Checker::new(history, &question.options, &later_lives::live);
    checker.unpaced();
    checker.look();
    let before = spent.cuts;
    for _ in 1..history.positions() {
        let covered = &checker.explored.covered;
        spent.cuts = before + covered.cuts + covered.recovery_cuts;
        if let Some(found) = is_that(&checker.explored.tally) {
            return Some(found);
        }
        // All positions of all later lives of one run may be millions.
        if spent.cuts >= MOST_CUTS {
            return None;
        }
        // Another violation of the kind came first. A tally keeps only the first, so it would hide ours.
        checker.explored.tally.kinds.remove(&kind);
        checker.step();
    }
    let covered = &checker.explored.covered;
    spent.cuts = before + covered.cuts + covered.recovery_cuts;
    is_that(&checker.explored.tally).or_else(|| {
        let mut explored = ExploredCuts::default();
        whole_run(history, &question.options).add_to(&mut explored);
        is_that(&explored.tally)
    })
}

fn transactions(best: &mut Best, reason: Reason, spent: &mut Spent) {
    let with = |question: &OneRun, count: u64| {
        let mut shorter = question.clone();
        shorter
            .specs
            .iter_mut()
            .for_each(|spec| spec.transactions = count);
        shorter
    };
    let (mut too_few, mut enough) = (0, best.0.specs[0].transactions);
    while enough - too_few > 1 && !spent.is_all() {
        // Most faults show early, so few transactions are tried first.
        let count = too_few + ((enough - too_few) / 4).max(1);
        match takes(best, with(&best.0, count), reason, spent) {
            true => enough = count,
            false => too_few = count,
        }
    }
}

fn cores(best: &mut Best, reason: Reason, spent: &mut Spent) {
    for count in 1..best.0.specs.len() {
        let mut shorter = best.0.clone();
        shorter.specs.truncate(count);
        if takes(best, shorter, reason, spent) {
            return;
        }
    }
}

/// Drops entries of one sort that are not needed: all of them, else halves, quarters and so on.
fn entries(best: &mut Best, sort: usize, reason: Reason, spent: &mut Spent) {
    let count = |best: &Best| sort_of(best.0.script.as_ref().expect("it has one"), sort).len();
    let mut chunk = count(best);
    while chunk > 0 && !spent.is_all() {
        let mut from = 0;
        while from < count(best) {
            let mut shorter = best.0.clone();
            let own = sort_mut(shorter.script.as_mut().expect("it has one"), sort);
            let to = (from + chunk).min(own.len());
            own.drain(from..to);
            let before = count(best);
            if !takes(best, shorter, reason, spent) || count(best) >= before {
                from += chunk;
            }
            if spent.is_all() {
                return;
            }
        }
        chunk /= 2;
    }
}

impl Shrunk {
    /// Tells in words how large the history was and is, and which evictions, delays and pauses are left.
    pub fn story(&self) -> Vec<String> {
        let (from, to) = (self.from, self.to);
        let of = |from: u64, to: u64, what: &str| format!("{what} {to} of {from}");
        let mut story = vec![format!(
            "  shortened: {}",
            [
                of(from.cores, to.cores, "cores"),
                of(from.transactions, to.transactions, "transactions"),
                of(from.evictions, to.evictions, "evictions"),
                of(from.delays, to.delays, "delays"),
                of(from.pauses, to.pauses, "pauses"),
            ]
            .join(", ")
        )];
        let script = self.question.script.as_ref().expect("it has one");
        let regions = self.history.layout();
        let place = |at: u64| match regions.name_of(sardonyx::line::Place(at)) {
            ("data", _) => format!("place {at}"),
            (region, number) => format!("line {number} of {region}"),
        };
        let evicted = script.evictions.iter().map(|[core, operation, line]| {
            format!("line {line} is evicted after operation {operation} of core {core}")
        });
        let held = script.delays.iter().map(|[at, number, ns]| {
            format!("write {number} of {} is held back for {ns} ns", place(*at))
        });
        let paused = script.pauses.iter().map(|[core, operation, long]| {
            format!("core {core} waits {long} instructions before operation {operation}")
        });
        for (each, what) in [
            (evicted.collect::<Vec<_>>(), "evictions"),
            (held.collect(), "delays"),
            (paused.collect(), "pauses"),
        ] {
            match each.len() {
                0 => {}
                count if count > MOST_TOLD => {
                    story.push(format!("  {count} {what}: the replay file has them"));
                }
                _ => story.extend(each.into_iter().map(|one| format!("  {one}"))),
            }
        }
        story
    }
}
