//! All orders in which the writes of a small run can be accepted, all cuts of each order, and after each cut all orders
//! and cuts of the life that follows. The result is a proof within the bounds of the run, which `docs/crash/orders.md`
//! has.
//!
//! A run is repeated from its beginning for each order: the choices that lead to the point come first, and from there
//! the first write that can go is taken. A run has nothing new to show once it comes to a point that another order has
//! reached: what follows does not depend on how the point was reached.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::hash::{Hash, Hasher};
use std::ops::Range;
use std::time::Instant;

use rustc_hash::{FxHashSet, FxHasher};
use serde::Serialize;

use crate::check::later_lives;
use crate::check::whole_run::whole_run;
use crate::check::{Checker, LiveLines};
use crate::findings::Covered;
use crate::history::run::Run;
use crate::history::{History, HistoryError, Result, SetUp};
use crate::one_run::OneRun;
use crate::options::{Cuts, Options};
use crate::panics::caught;
use crate::platform::Survivors;
use crate::verdict::coverage::{by_name, exercised};
use crate::verdict::told::Told;
use crate::violation::{Kind, Tally};
use sardonyx::controller::layers::Guarantee;
use sardonyx::machine::RunError;
use sardonyx::mechanisms::Exercised;
use sardonyx::plan::Holding;
use sardonyx::plan::orders::Choice;
use sardonyx_workload::Workload;

const PROGRESS_EVERY: u64 = 16;

#[derive(Clone, Debug)]
pub struct Exhaustive {
    /// The run; only the platform of its options counts, and whether there are later lives.
    pub run: OneRun,
    /// Beyond this number of states the search gives up without a verdict.
    pub most_states: u64,
    /// If set, only this order is tried: at each choice, the number of the write that goes first.
    pub order: Option<Vec<u16>>,
}

#[derive(Clone, Debug, Serialize)]
pub struct Proof {
    #[serde(flatten)]
    pub run: Run,
    pub platform: &'static str,
    pub tear: &'static str,
    pub guarantee: &'static str,
    /// Runs of the first life, each in another order.
    pub orders: u64,
    /// Different states in which one of several writes could go first, and the final state.
    pub states: u64,
    /// Choices in the longest order.
    pub choices: u64,
    /// The most writes that could go at one choice.
    pub most_at_once: u64,
    pub cuts: u64,
    /// Different contents of the medium after a cut, each of which a second life began with.
    pub lives: u64,
    pub recovery_orders: u64,
    /// Different states of second lives, counted as those of the first life.
    pub recovery_states: u64,
    pub recovery_cuts: u64,
    pub lost_cuts: u64,
    pub secret_cuts: u64,
    #[serde(serialize_with = "by_name")]
    pub exercised: Exercised,
    pub complete: bool,
    pub verdict: ShownInAll,
    pub fails: bool,
    pub violations: Vec<InOrder>,
    pub seconds: f64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ShownInAll {
    /// No order, cut or cut after a cut breaks a promise, within the bounds of the run.
    Proven,
    /// No violation, but it gave up; or only one order was asked for.
    Unfinished,
    /// Violations of a design that promises nothing.
    Caught,
    /// Violations of what the design promises.
    Broken,
}

#[derive(Clone, Debug, Serialize)]
pub struct InOrder {
    #[serde(flatten)]
    pub told: Told,
    /// The choices that lead to it; after them the first write goes each time.
    pub order: Vec<u16>,
}

#[derive(Default)]
struct OrdersFound {
    orders: u64,
    choices: u64,
    most_at_once: u64,
    cuts: u64,
    lost_cuts: u64,
    secret_cuts: u64,
    exercised: Exercised,
    kinds: BTreeMap<Kind, (u64, InOrder)>,
}

/// The findings on second lives so far.
#[derive(Default)]
struct Later {
    begun: FxHashSet<u64>,
    orders: u64,
    states: u64,
    cuts: u64,
    incomplete: bool,
}

impl Exhaustive {
    /// Tries all orders. `progress` is told the runs made and those known to be left; if it answers false the trial
    /// ends and this returns `None`.
    ///
    /// # Errors
    /// The design or a program does not exist.
    pub fn answer(&self, progress: &dyn Fn(u64, u64) -> bool) -> Result<Option<Proof>> {
        let started = Instant::now();
        let OneRun {
            machine,
            design,
            specs,
            seed,
            options,
            ..
        } = &self.run;
        self.run.memory()?;
        let set_up = SetUp::new(machine, design, specs, *seed)?;
        let later = RefCell::new(Later::default());
        let live = |history: &History,
                    survivors: &Survivors,
                    workloads: &[&Workload],
                    options: &Options,
                    tally: &mut Tally| {
            let state = state_of(history, survivors);
            // What follows from the same bytes and the same promises is the same, in whatever order they came about.
            if !later.borrow_mut().begun.insert(state) {
                return Covered::default();
            }
            self.live(history, survivors, workloads, options, tally, &later)
        };
        let options = Options {
            cuts: Cuts::All,
            recovery_cuts: options.recovery_cuts.min(1),
            full_one_in: 1,
            ..*options
        };
        let mut walk = OrderWalk::new(self.most_states, self.order.clone());
        let mut found = OrdersFound::default();
        while let Some(chosen) = walk.next() {
            let (history, made) = match set_up.run(Holding::Chosen(chosen.clone())) {
                Ok(lived) => lived,
                // A run that panics is a finding of this order, and the others are tried all the same.
                Err(HistoryError::Broken(what)) => {
                    found.ended(self.run.run(), chosen, &what);
                    continue;
                }
                Err(error) => return Err(error),
            };
            let new = walk.follow(&chosen, &made, history.positions());
            found.look(&history, new, &chosen, &made, &options, &live);
            if found.orders.is_multiple_of(PROGRESS_EVERY)
                && !progress(found.orders, found.orders + walk.todo.len() as u64)
            {
                return Ok(None);
            }
        }
        let later = later.into_inner();
        let proof = self.proof(walk, found, later, set_up.guarantee());
        Ok(Some(Proof {
            seconds: started.elapsed().as_secs_f64(),
            ..proof
        }))
    }

    fn proof(
        &self,
        walk: OrderWalk,
        found: OrdersFound,
        later: Later,
        guarantee: Guarantee,
    ) -> Proof {
        let complete = walk.is_complete() && !later.incomplete && self.order.is_none();
        let verdict = match (found.kinds.is_empty(), guarantee, complete) {
            (false, Guarantee::Nothing, _) => ShownInAll::Caught,
            (false, ..) => ShownInAll::Broken,
            (true, _, true) => ShownInAll::Proven,
            (true, _, false) => ShownInAll::Unfinished,
        };
        let violations = found.kinds.into_values();
        let violations = violations.map(|(count, mut violation)| {
            violation.told.count = count;
            violation
        });
        Proof {
            run: self.run.run(),
            platform: self.run.options.platform.name(),
            tear: self.run.options.tear.name(),
            guarantee: guarantee.name(),
            orders: found.orders,
            states: walk.seen.len() as u64 + 1,
            choices: found.choices,
            most_at_once: found.most_at_once,
            cuts: found.cuts,
            lives: later.begun.len() as u64,
            recovery_orders: later.orders,
            recovery_states: later.states,
            recovery_cuts: later.cuts,
            lost_cuts: found.lost_cuts,
            secret_cuts: found.secret_cuts,
            exercised: found.exercised,
            complete,
            verdict,
            fails: matches!(verdict, ShownInAll::Broken | ShownInAll::Unfinished),
            violations: violations.collect(),
            seconds: 0.0,
        }
    }

    /// Lives the life after the cut at which `survivors` stand in all orders, and cuts each everywhere. Returns the
    /// number of cuts.
    fn live(
        &self,
        history: &History,
        survivors: &Survivors,
        workloads: &[&Workload],
        options: &Options,
        tally: &mut Tally,
        later: &RefCell<Later>,
    ) -> Covered {
        let position = survivors.position();
        let options = Options {
            recovery_cuts: 0,
            ..*options
        };
        let mut walk = OrderWalk::new(self.most_states, None);
        let mut covered = Covered::default();
        while let Some(chosen) = walk.next() {
            later.borrow_mut().orders += 1;
            let lived = || -> Result<_, RunError> {
                let life = later_lives::next(history, survivors, workloads, |_| 1);
                let life = life.map(|life| history.next_life_chosen(life, chosen.clone()));
                life.transpose()
            };
            let (life, made) = match caught(lived) {
                Ok(Ok(Some(lived))) => lived,
                Ok(Ok(None)) => return covered,
                Ok(Err(why)) => {
                    later_lives::ended(tally, position, &why);
                    return covered;
                }
                Err(why) => {
                    later_lives::broken(tally, position, &why);
                    return covered;
                }
            };
            let new = walk.follow(&chosen, &made, life.positions());
            covered.add(later_lives::look(
                &life,
                position,
                &options,
                tally,
                |checker| {
                    look_at(checker, new);
                },
            ));
        }
        let mut later = later.borrow_mut();
        later.states += walk.seen.len() as u64 + 1;
        later.cuts += covered.recovery_cuts;
        later.incomplete |= !walk.is_complete();
        covered
    }
}

/// Checks the cuts of `new`; the cuts before them are known already.
fn look_at(checker: &mut Checker, new: Range<u64>) {
    checker.skip_to(new.start);
    checker.look();
    for _ in new.start + 1..new.end {
        checker.step();
    }
}

impl OrdersFound {
    /// Checks the cuts of `new`; the cuts before them are known already.
    fn look(
        &mut self,
        history: &History,
        new: Range<u64>,
        chosen: &[u16],
        made: &[Choice],
        options: &Options,
        live: LiveLines,
    ) {
        let mut checker = Checker::new(history, options, live);
        checker.unpaced();
        look_at(&mut checker, new);
        let mut explored = std::mem::take(&mut checker.explored);
        whole_run(history, options).add_to(&mut explored);
        self.orders += 1;
        self.choices = self.choices.max(made.len() as u64);
        let at_once = made.iter().map(|choice| u64::from(choice.options)).max();
        self.most_at_once = self.most_at_once.max(at_once.unwrap_or_default());
        self.cuts += explored.covered.cuts;
        self.lost_cuts += explored.tally.lost.count;
        self.secret_cuts += explored.tally.secret.count;
        self.exercised.append(&exercised(history, &explored));
        for (kind, (count, first)) in &explored.tally.kinds {
            let told = || InOrder {
                told: Told::from_violation(history, *count, first),
                order: chosen.to_vec(),
            };
            self.kinds.entry(*kind).or_insert_with(|| (0, told())).0 += count;
        }
    }

    fn ended(&mut self, run: Run, chosen: Vec<u16>, what: &str) {
        self.orders += 1;
        self.lost_cuts += 1;
        let told = || InOrder {
            told: Told::ended(run, what),
            order: chosen,
        };
        let kind = self.kinds.entry(Kind::RunEnded);
        kind.or_insert_with(|| (0, told())).0 += 1;
    }
}

/// A depth-first walk over the orders that are left, with the points that have been reached.
struct OrderWalk {
    todo: Vec<Vec<u16>>,
    seen: FxHashSet<u64>,
    most: u64,
    /// Set if only one order is wanted.
    one: bool,
}

impl OrderWalk {
    fn new(most: u64, one: Option<Vec<u16>>) -> OrderWalk {
        OrderWalk {
            one: one.is_some(),
            todo: vec![one.unwrap_or_default()],
            seen: FxHashSet::default(),
            most,
        }
    }

    fn next(&mut self) -> Option<Vec<u16>> {
        if !self.is_complete() {
            return None;
        }
        self.todo.pop()
    }

    /// Whether the walk has covered everything by the time that no order is left.
    fn is_complete(&self) -> bool {
        self.seen.len() as u64 <= self.most
    }

    /// The run of `chosen` has `made` these choices and has this many positions. Returns the positions that no run
    /// before has shown.
    fn follow(&mut self, chosen: &[u16], made: &[Choice], positions: u64) -> Range<u64> {
        if self.one {
            return 0..positions;
        }
        let known = chosen.len();
        let from = known
            .checked_sub(1)
            .map_or(0, |last| made[last].position + 1);
        for (index, choice) in made.iter().enumerate().skip(known) {
            if !self.seen.insert(choice.key) {
                return from..choice.position + 1;
            }
            for other in (1..choice.options).rev() {
                let mut order = chosen.to_vec();
                order.resize(index, 0);
                order.push(other);
                self.todo.push(order);
            }
        }
        from..positions
    }
}

/// Condenses into a number what a cut at which `survivors` stand leaves, with all that was accepted before it.
fn state_of(history: &History, survivors: &Survivors) -> u64 {
    let mut hasher = FxHasher::default();
    let image = survivors.untimed.image();
    let mut sum = 0u64;
    for (place, line) in image.written_lines() {
        let mut one = FxHasher::default();
        (place.0, line, image.sideband(place)).hash(&mut one);
        sum = sum.wrapping_add(sardonyx_base::random::mix(one.finish()));
    }
    let events = &history.journal.events[..survivors.position() as usize];
    let mut accepted = 0u64;
    for write in events
        .iter()
        .flat_map(|(_, event)| history.journal.accepted_by(*event))
    {
        let mut one = FxHasher::default();
        (write.place.0, write.line, write.words, write.sideband).hash(&mut one);
        accepted = accepted.wrapping_add(sardonyx_base::random::mix(one.finish()));
    }
    (sum, accepted).hash(&mut hasher);
    for (line, data, _) in survivors.drained() {
        (line.0, data).hash(&mut hasher);
    }
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Platform;
    use sardonyx::config::Machine;
    use sardonyx::controller::designs::Stack;
    use sardonyx::plan::script::Scripting;
    use sardonyx_workload::{DurabilityKind, ProgramSpec};

    fn states(history: &History, into: &mut FxHashSet<u64>) {
        let (journal, image) = (&history.journal, history.image.copy());
        let mut survivors = Survivors::new(journal, image, Platform::Adr, history.seed);
        into.insert(state_of(history, &survivors));
        for _ in &journal.events {
            survivors.advance(&mut Vec::new());
            into.insert(state_of(history, &survivors));
        }
    }

    #[test]
    fn whatever_delays_are_drawn_a_cut_leaves_nothing_that_no_order_shows() {
        for design in [
            "no-encryption",
            "sca",
            "fca",
            "esd+sca",
            "dewrite-sound",
            "hw-log",
        ] {
            let stack = Stack::named(design).expect("a design");
            let spec = |core| ProgramSpec {
                name: "array-swap".into(),
                item_bytes: 64,
                footprint: 128,
                transactions: 2,
                seed: core,
                durability: DurabilityKind::on(&stack),
                ..ProgramSpec::default()
            };
            let machine = Machine::load("sca", &[] as &[(&str, &str)]).expect("a machine");
            let set_up = SetUp::new(&machine, design, &[spec(7)], 1).expect("a run");
            let mut shown = FxHashSet::default();
            let mut walk = OrderWalk::new(u64::MAX, None);
            while let Some(chosen) = walk.next() {
                let (history, made) = set_up.run(Holding::Chosen(chosen.clone())).expect("a run");
                walk.follow(&chosen, &made, history.positions());
                states(&history, &mut shown);
            }
            let mut drawn = FxHashSet::default();
            for seed in 0..100 {
                let (history, made) = set_up
                    .run(Holding::Drawn(seed, Scripting::default()))
                    .expect("a run");
                assert!(made.is_empty());
                states(&history, &mut drawn);
            }
            assert!(
                drawn.is_subset(&shown),
                "{design}: {} of {}",
                drawn.len(),
                shown.len()
            );
            assert!(drawn.len() > 8, "{design}: {}", drawn.len());
        }
    }

    /// The choices of a made-up run in which `n` writes may go in any order: a state is the set of writes that are
    /// left.
    fn run(n: u16, chosen: &[u16]) -> Vec<Choice> {
        let mut left: Vec<u16> = (0..n).collect();
        let mut made = Vec::new();
        while !left.is_empty() {
            let at = made.len();
            made.push(Choice {
                position: at as u64,
                options: left.len() as u16,
                key: left.iter().fold(0, |key, one| key | 1 << one),
            });
            left.remove(chosen.get(at).map_or(0, |choice| usize::from(*choice)));
        }
        made
    }

    #[test]
    fn every_subset_is_reached_and_every_step_between_two_is_looked_at_once() {
        for n in 1..9u16 {
            let mut walk = OrderWalk::new(u64::MAX, None);
            let mut cuts = 0;
            while let Some(chosen) = walk.next() {
                let made = run(n, &chosen);
                let new = walk.follow(&chosen, &made, u64::from(n) + 1);
                cuts += new.end - new.start;
            }
            assert_eq!(walk.seen.len(), (1 << n) - 1); // all but the empty set
            assert_eq!(cuts, 1 + u64::from(n) * (1 << (n - 1))); // the first, and each edge of the cube
        }
    }

    #[test]
    fn it_gives_up_where_it_was_told_to() {
        let mut walk = OrderWalk::new(10, None);
        while let Some(chosen) = walk.next() {
            let made = run(8, &chosen);
            walk.follow(&chosen, &made, 9);
        }
        assert!(!walk.is_complete());
    }
}
