//! Checks one cut after the other: a fresh controller recovers over what survived, then the program, and then the lines
//! that the cut can have changed are compared. The others were compared at an earlier cut.
//!
//! By induction every line is as it should be at every cut: a line's content after recovery can differ from the last
//! cut's only if its bytes or its counter changed, if recovery put it back then or now, or if another transaction is
//! the last visible one. Those lines are compared. Only a sample of cuts is checked in full, by reading all lines and
//! checking the structure.

pub(crate) mod evidence;
pub mod journal;
pub(crate) mod judge;
pub(crate) mod later_lives;
pub(crate) mod lines;
pub(crate) mod shared;
pub(crate) mod whole_run;

use std::collections::BTreeSet;

use rustc_hash::FxHashMap;
use sardonyx_base::random::mix;

use crate::findings::{Covered, ExploredCuts};
use crate::history::History;
use crate::history::golden::{Expected, Window};
use crate::options::Options;
use crate::panics::caught;
use crate::platform::places::Mapped;
use crate::platform::{Changed, Survivors, Tear, Whole};
use crate::violation::{Kind, Tally, Violation};
use sardonyx::controller::Controller;
use sardonyx::controller::layers::{Guarantee, Placement};
use sardonyx::controller::near::SavedSlots;
use sardonyx::line::Place;
use sardonyx::machine::UntimedMemory;
use sardonyx::mechanisms::RESTORING;
use sardonyx::plan::journal::{Event, Mark};
use sardonyx_workload::{Fault, Workload};

/// The number of recently written lines that are compared if it is not known which lines a place is about.
const LATE: usize = 48;

/// The lines that are compared at a cut.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Extent {
    /// Those that can have changed since the last state.
    Changed,
    /// Those that can have changed at any state that was checked, and those that were written.
    Life,
    /// All, and the structure's invariants.
    Everything,
}

/// One core's program, and what the last state has shown of it.
struct Core {
    workload: Workload,
    window: Window,
    visible: u64,
    restored: Vec<u64>,
    wrong: BTreeSet<u64>,
    /// Lines that may have changed while recovery gave up, and so were not compared.
    not_compared: BTreeSet<u64>,
    fault: Option<(Kind, Fault)>,
}

/// Lives and cuts the life that follows the cut at which the survivors stand, adds its findings to the tally, and
/// returns how much it covered.
pub type LiveLines<'l> =
    &'l dyn Fn(&History, &Survivors, &[&Workload], &Options, &mut Tally) -> Covered;

pub struct Checker<'h> {
    history: &'h History,
    options: Options,
    live: LiveLines<'h>,
    /// If set, later lives take no more cuts than the first life.
    paced: bool,
    survivors: Survivors<'h>,
    cores: Vec<Core>,
    /// The newest accepted write request of a line, and the request that it was last seen to be of.
    accepted: FxHashMap<u64, u32>,
    seen: FxHashMap<u64, Option<u32>>,
    /// Lines that read as no accepted write of them.
    lost: BTreeSet<u64>,
    /// Secrets given away by recovery at the last state.
    secrets: Vec<Violation>,
    /// Places that recovery or a reader after it could not believe at the last state.
    refused: Vec<Place>,
    /// Write requests that the controller may have begun to carry out, and those of them that are
    /// not accepted.
    handled: usize,
    pending: BTreeSet<u32>,
    /// The mapping table as the image has it; `None` if it cannot be read, or if lines tear or move.
    mapped: Option<Mapped>,
    /// The lines that the last event may have changed according to the table, or to a near cache.
    about: Vec<u64>,
    /// The slots of a cache that a power cut leaves, and the line last seen in each.
    slots: Option<SavedSlots>,
    held: FxHashMap<Place, u64>,
    changed: Vec<Changed>,
    /// The torn lines of this cut as they are whole, to mend them after the check.
    torn: Vec<Whole>,
    /// The reason why the last state could not be checked.
    ended: Option<String>,
    /// Set if the last state's recovery found no place for a line that it puts back; what programs read then is not
    /// compared.
    no_room: bool,
    put_back: Vec<u64>,
    /// The nodes that recoveries have restored so far.
    restorings: u64,
    /// The lines compared at the states since the beginning of a later life.
    compared: BTreeSet<u64>,
    /// Lines stored to since the last state, on platforms that drain caches.
    stored: Vec<u64>,
    pub explored: ExploredCuts,
}

impl<'h> Checker<'h> {
    pub fn new(history: &'h History, options: &Options, live: LiveLines<'h>) -> Checker<'h> {
        let platform = options.platform;
        let core = |(number, program): (usize, &Expected)| Core {
            workload: history.workload(number).expect("it has been run"),
            window: Window {
                required: program.first,
                allowed: program.first,
            },
            visible: program.first,
            restored: Vec::new(),
            wrong: BTreeSet::new(),
            not_compared: BTreeSet::new(),
            fault: None,
        };
        let image = history.image.copy();
        let slots = SavedSlots::saved(&history.machine.settings);
        let held = slots
            .as_ref()
            .map_or_else(FxHashMap::default, |slots| slots.all(&image));
        let is_torn = platform.tears() || options.tear == Tear::Words;
        let levelling = history.levelling();
        let is_moved = levelling.is_some();
        let mapped = (!is_torn && !is_moved)
            .then(|| Mapped::new(history, &image))
            .flatten();
        Checker {
            history,
            options: *options,
            survivors: Survivors::new(&history.journal, image, platform, history.seed)
                .levelled(levelling)
                .guarded(history.power_fail())
                .tearing(options.tear),
            cores: history.programs.iter().enumerate().map(core).collect(),
            accepted: FxHashMap::default(),
            seen: FxHashMap::default(),
            lost: BTreeSet::new(),
            secrets: Vec::new(),
            refused: Vec::new(),
            handled: 0,
            pending: BTreeSet::new(),
            mapped,
            about: Vec::new(),
            slots,
            held,
            changed: Vec::new(),
            torn: Vec::new(),
            ended: None,
            no_room: false,
            put_back: Vec::new(),
            restorings: 0,
            compared: BTreeSet::new(),
            stored: Vec::new(),
            live,
            paced: true,
            explored: ExploredCuts::default(),
        }
    }

    /// Makes a later life follow each state that asks for one, whatever that costs.
    pub fn unpaced(&mut self) {
        self.paced = false;
    }

    /// Checks the last `cuts` cuts of a later life: at first what recovery puts back, and at the last cut everything if
    /// `full`, else what the life may have changed. Returns whether it was everything.
    pub fn live(&mut self, cuts: u64, full: bool) -> bool {
        // Where a change may be about any line, nobody knows what the life has changed.
        let is_known = self.mapped.is_some() || matches!(self.history.placement, Placement::Home);
        let full = full || !is_known;
        self.verify(Extent::Changed);
        self.judge();
        let last = self.history.positions() - 1;
        let first = last.saturating_sub(cuts);
        if first > 0 {
            self.skip_to(first);
            self.look();
        }
        for _ in first + 1..last {
            self.step();
        }
        self.skip_to(last);
        self.look_at(if full {
            Extent::Everything
        } else {
            Extent::Life
        });
        full
    }

    /// Applies the events up to `position` without checking.
    pub fn skip_to(&mut self, position: u64) {
        self.seen.clear();
        while self.survivors.position() < position {
            self.happen();
        }
    }

    /// Checks the present cut in full, whatever was checked before.
    pub fn look(&mut self) {
        self.look_at(Extent::Everything);
    }

    fn look_at(&mut self, extent: Extent) {
        self.lost.clear();
        self.verify(extent);
        self.judge();
    }

    pub fn step(&mut self) {
        // The same bytes recover as they did at the cut before; only what has to be there may differ.
        self.happen();
        if !self.changed.is_empty() {
            let position = self.survivors.position();
            let full = position.is_multiple_of(self.options.full_one_in.max(1));
            self.verify(match full {
                true => Extent::Everything,
                false => Extent::Changed,
            });
        }
        self.judge();
    }

    fn happen(&mut self) {
        self.changed.clear();
        let event = self.survivors.advance(&mut self.changed);
        self.about.clear();
        if let Some(mapped) = &mut self.mapped {
            let image = self.survivors.untimed.image();
            mapped.follow(self.history, image, &self.changed, &mut self.about);
        }
        self.follow_slots();
        let journal = &self.history.journal;
        match event {
            Event::Accepted(index) => {
                // Acceptance is out of order: requests handled before this one may still wait for theirs.
                self.pending.extend(self.handled as u32..=index);
                self.handled = self.handled.max(index as usize + 1);
                self.pending.remove(&index);
                let line = journal.handled[index as usize].line.0;
                let newest = self.accepted.entry(line).or_insert(index);
                *newest = index.max(*newest);
                let older = |seen: &Option<u32>| seen.is_none_or(|seen| seen < index);
                // The line counts as lost until a recovery reads this write or a later one, even if the acceptance has
                // changed no byte that a cut leaves.
                if self.history.guarantee == Guarantee::EveryLine
                    && !self.options.platform.drains_nothing()
                    && self.seen.get(&line).is_some_and(older)
                {
                    self.lost.insert(line);
                }
            }
            Event::Ready { .. } => {
                // The writes of a request persist before the request is accepted as a whole, so its content may show from here on.
                let newest = journal.accepted_by(event).last();
                let until = newest.map_or(0, |newest| newest.order);
                while (journal.handled.get(self.handled)).is_some_and(|h| h.order <= until) {
                    self.pending.insert(self.handled as u32);
                    self.handled += 1;
                }
            }
            Event::Store(index) if self.options.platform.keeps_stores() => {
                let line = journal.stores[index as usize].line.0;
                self.seen.remove(&line);
                self.lost.remove(&line);
                self.stored.push(line);
            }
            Event::Mark { core, mark } => {
                self.cores[core as usize].window.follow(mark);
            }
            _ => {}
        }
        if self.options.platform.drains_caches() {
            self.allow_instant();
        }
    }

    /// Notes the lines that come into slots of a near cache, and those that were there.
    fn follow_slots(&mut self) {
        let Some(slots) = &self.slots else { return };
        let image = self.survivors.untimed.image();
        for change in &self.changed {
            let Changed::Words(place, _) = *change else {
                continue;
            };
            let held = slots.held(place, image.sideband(place));
            let before = match held {
                Some(line) => self.held.insert(place, line.0),
                None => self.held.remove(&place),
            };
            self.about
                .extend(held.map(|line| line.0).into_iter().chain(before));
        }
    }

    /// Allows the transactions that commit at this instant: what happens on chip at one instant is drained as one, and
    /// a log that is truncated here commits a transaction whose mark comes with it.
    fn allow_instant(&mut self) {
        let events = &self.history.journal.events[self.survivors.position() as usize - 1..];
        let now = events[0].0;
        for (_, event) in events.iter().take_while(|(at, _)| *at == now) {
            if let Event::Mark {
                core,
                mark: mark @ Mark::Committing(_),
            } = event
            {
                self.cores[*core as usize].window.follow(*mark);
            }
        }
    }

    /// Returns the lines that a change may make read otherwise; `None` if it may be any line, for example because a
    /// drained line has no place of its own.
    fn lines_of(&self, change: Changed) -> Option<Vec<u64>> {
        match change {
            Changed::Words(place, words) => self.history.lines_of(place, words),
            Changed::Drained(line) => self.history.lines_of(Place(line.0), 0xff),
        }
    }

    fn affected(&self) -> BTreeSet<u64> {
        let mut lines: BTreeSet<u64> = self.stored.iter().copied().collect();
        lines.extend(&self.about);
        if self.mapped.is_some() {
            return lines;
        }
        for change in &self.changed {
            let Some(about) = self.lines_of(*change) else {
                // A change of a table or a log may be about any line. Likely are those written last, those not accepted
                // yet, and those that a program's recovery has put back.
                let from = self.handled.saturating_sub(LATE);
                let late = &self.history.journal.handled[from..self.handled];
                lines.extend(late.iter().map(|handled| handled.line.0));
                let pending = self.pending.iter().map(|index| *index as usize);
                lines.extend(pending.map(|index| self.history.journal.handled[index].line.0));
                lines.extend(self.cores.iter().flat_map(|core| &core.restored).copied());
                continue;
            };
            lines.extend(about);
        }
        lines
    }

    /// Recovers over the present state and compares. After a state that could not be checked it compares everything.
    fn verify(&mut self, mut extent: Extent) {
        if self.ended.take().is_some() || std::mem::take(&mut self.no_room) {
            extent = Extent::Everything;
        }
        self.torn = self.survivors.tear();
        if let Err(what) = caught(|| self.recover_and_compare(extent)) {
            self.ended = Some(what);
            self.nothing_seen();
            self.secrets.clear();
            self.refused.clear();
            for core in &mut self.cores {
                core.fault = None;
                core.wrong.clear();
            }
        }
        // A later life recovers by itself, so it must not see what this recovery has written. Torn lines stay torn for
        // it.
        self.survivors.untimed.forget();
        if self.ended.is_none() {
            self.live_on();
        }
        self.settle();
    }

    /// Forgets what a recovery has done, and makes torn lines whole.
    fn settle(&mut self) {
        self.survivors.untimed.forget();
        self.survivors.mend(std::mem::take(&mut self.torn));
    }

    fn recover_and_compare(&mut self, extent: Extent) {
        let full = extent == Extent::Everything;
        self.explored.covered.states += 1;
        self.explored.covered.full += u64::from(full);
        let mut lines = self.affected();
        self.stored.clear();
        match extent {
            Extent::Changed => {}
            Extent::Life => {
                lines.append(&mut self.compared);
                lines.extend(self.history.requests.keys());
            }
            Extent::Everything => {
                let regions = self.history.programs.iter().map(|p| p.region.iter());
                lines.extend(regions.flatten());
            }
        }
        // A change of a mapping may be about a line of any core.
        let anybody = extent != Extent::Changed
            || self.survivors.position() == 0
            || (self.changed.iter()).any(|change| self.lines_of(*change).is_none());
        let (mut controller, restored) = self.survivors.recover_and_tell(self.history);
        // The count goes on from one recovery to the next.
        let restorings = self.survivors.untimed.asked().exercised.of(&RESTORING);
        self.explored.covered.restored += u64::from(restorings > self.restorings);
        self.restorings = restorings;
        if self.history.may_fill() && self.survivors.untimed.failure().is_some() {
            // Reserve power, or the controller's own recovery, has found no place for a line.
            self.no_room();
            return;
        }
        // A line that was put back at the last state and is not at this one reads otherwise too.
        lines.extend(self.put_back.drain(..));
        self.put_back.extend(restored.iter().map(|line| line.0));
        lines.extend(&self.put_back);
        if self.history.life > 1 && !full {
            self.compared.extend(&lines);
        }
        self.explored.covered.undone += u64::from(!restored.is_empty());
        let drained = self.survivors.untimed.next_order();
        if self.history.guarantee == Guarantee::EveryLine {
            self.every_line(&mut controller, &lines);
        }
        let shared = self.history.joint.is_some();
        for core in 0..if shared { 0 } else { self.cores.len() } {
            let region = &self.history.programs[core].region;
            if anybody || lines.iter().any(|line| region.contains(*line)) {
                self.program(core, &mut controller, &lines, full);
            }
        }
        if let Some(joint) = &self.history.joint
            && (anybody || lines.iter().any(|line| joint.region.contains(*line)))
        {
            self.together(joint, &mut controller, &lines, full);
        }
        self.overwritten(drained, &mut controller);
        self.secrets(extent != Extent::Changed);
        let failure = self.survivors.untimed.failure();
        self.no_room = failure.is_some() && self.history.may_fill();
        self.explored.covered.no_room += u64::from(self.no_room);
        self.ended = failure.filter(|_| !self.no_room).map(|why| why.to_string());
        self.refused = self.survivors.untimed.refused().to_vec();
    }

    /// Notes a state from which there is no way on without more room: nothing of it can be compared.
    fn no_room(&mut self) {
        self.no_room = true;
        self.explored.covered.no_room += 1;
        self.nothing_seen();
        self.secrets.clear();
        self.put_back.clear();
    }

    /// Runs the recovery of one core's program and compares its lines.
    fn program(
        &mut self,
        index: usize,
        controller: &mut Controller,
        affected: &BTreeSet<u64>,
        full: bool,
    ) {
        let golden = &self.history.programs[index];
        let (region, log) = (&golden.region, &golden.log);
        let own = || {
            affected
                .iter()
                .copied()
                .filter(|line| region.contains(*line))
        };
        let core = &mut self.cores[index];
        let untimed = &mut self.survivors.untimed;
        let mut view = UntimedMemory::new(untimed, controller, region, log);
        core.fault = None;
        let recovered = match core.workload.recover(&mut view) {
            Ok(recovered) => recovered,
            Err(fault) => {
                core.fault = Some((Kind::Unrecoverable, fault));
                core.not_compared
                    .append(&mut core.restored.drain(..).collect());
                core.not_compared.extend(own());
                return;
            }
        };
        let visible = recovered.visible;
        let stored = view.stored();
        let mut compared: BTreeSet<u64> = own().collect();
        compared.extend(&core.restored);
        compared.extend(&stored);
        compared.extend(&core.wrong);
        compared.append(&mut core.not_compared);
        compared.extend(golden.between(core.visible, visible));
        core.wrong.clear();
        for line in compared.into_iter().filter(|line| !log.contains(*line)) {
            if view.line(line) != *golden.content(line, visible) {
                core.wrong.insert(line);
            }
        }
        (core.visible, core.restored) = (visible, stored);
        if full && core.wrong.is_empty() {
            let broken = core.workload.check(&mut view).err();
            core.fault = broken.map(|fault| (Kind::Broken, fault));
        }
    }

    /// Follows one sound state in so many with a later life, which is cut itself.
    fn live_on(&mut self) {
        let dice = mix(self.survivors.position() ^ mix(self.history.seed));
        let is_sound = |core: &Core| {
            let visible = core.window.broken_by(core.visible).is_none();
            visible && core.fault.is_none() && core.wrong.is_empty()
        };
        let in_order = self.out_of_order().is_none();
        let drawn = dice.checked_rem(self.options.recovery_cuts) == Some(0);
        let covered = &self.explored.covered;
        // Later lives take no more cuts than the first. What follows a second life is rare anyway, and
        // must be there when a cut of the first is made again alone.
        let free = !self.paced || self.history.life > 1;
        let drawn = drawn && (free || covered.recovery_cuts <= covered.cuts);
        if !drawn
            || self.no_room
            || !in_order
            || !self.lost.is_empty()
            || !self.cores.iter().all(is_sound)
        {
            return;
        }
        let workloads: Vec<&Workload> = self.cores.iter().map(|core| &core.workload).collect();
        let tally = &mut self.explored.tally;
        let later = (self.live)(
            self.history,
            &self.survivors,
            &workloads,
            &self.options,
            tally,
        );
        self.explored.covered.add(later);
    }
}
