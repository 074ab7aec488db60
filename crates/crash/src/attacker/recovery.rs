//! Recoveries with the attacker in them: after the integrity has recovered and before the layers do, before the
//! programs recover, or between two accesses of a program's recovery. What he changes is drawn from what the medium
//! holds then. Left out: the recovery of the integrity itself, which reads each line once.

use std::rc::Rc;

use rand::Rng;
use rand_chacha::ChaCha8Rng;

use crate::attacker::changes::Change;
use crate::attacker::knowledge::{Knowledge, Now, Seen};
use crate::attacker::outcome::Attacked;
use crate::attacker::{Attacker, Used, write_past};
use crate::options::{Attack, When};
use crate::panics::caught;
use crate::platform::write_drained;
use sardonyx::controller::Controller;
use sardonyx::machine::{Bytes, PersistentMemory, UntimedMemory};
use sardonyx::plan::untimed::Untimed;

pub struct Strike<'s> {
    seen: &'s Rc<Seen>,
    /// The kind of the attack, its source of chance, and the number of the access before which it comes; access 0 is
    /// the layers' recovery, and 1 that of a hardware log.
    wanted: Option<(Attack, &'s mut ChaCha8Rng, u64)>,
    pub accesses: u64,
    pub made: Option<Change>,
}

impl<'s> Strike<'s> {
    pub fn nobody(seen: &'s Rc<Seen>) -> Strike<'s> {
        Strike {
            seen,
            wanted: None,
            accesses: 0,
            made: None,
        }
    }

    fn before_access(&mut self, knowledge: &Knowledge, untimed: &mut Untimed) {
        if let Some((kind, dice, at)) = &mut self.wanted
            && *at == self.accesses
        {
            let now = Now::look(self.seen, untimed);
            self.made = knowledge.draw(*kind, &now, dice);
            if let Some(change) = &self.made {
                write_past(untimed, change);
            }
        }
        self.accesses += 1;
    }
}

impl Attacker<'_> {
    /// Makes all attacks of this look on the recovery, which makes this many accesses.
    pub(crate) fn recovering(
        &mut self,
        (look, accesses): (u64, u64),
        seen: &Rc<Seen>,
        honest: &Used,
        found: &mut Attacked,
    ) {
        for one in self.at(look, When::Recovering) {
            let mut dice = self.dice(one);
            let at = dice.next_u64() % accesses.max(1);
            let mut strike = Strike {
                wanted: Some((one.kind, &mut dice, at)),
                ..Strike::nobody(seen)
            };
            let used = self.use_it(&mut strike, 0);
            if let Some(change) = strike.made {
                let story = format!("  the recovery has made {at} of {accesses} accesses");
                self.count(one, &change, &story, &used, honest, found);
            }
        }
    }

    /// Recovers and has the programs recover, before anybody asks for more. `None` if anything has been refused.
    pub(crate) fn begin(&mut self, used: &mut Used, strike: &mut Strike) -> Option<Controller> {
        let (history, knowledge) = (self.history, &self.knowledge);
        let drained = self.survivors.drained();
        let untimed = &mut self.survivors.untimed;
        let (read, workloads) = (&mut used.read, &self.workloads);
        let begun = caught(|| {
            let mut controller = history.controller();
            untimed.plan(|plan| controller.recover_integrity(plan));
            if !untimed.refused().is_empty() {
                return None;
            }
            strike.before_access(knowledge, untimed);
            untimed.plan(|plan| controller.recover_layers(plan));
            write_drained(history, &mut controller, untimed, &drained);
            strike.before_access(knowledge, untimed);
            untimed.plan(|plan| controller.undo(plan));
            for (program, workload) in history.programs.iter().zip(workloads) {
                if !untimed.refused().is_empty() {
                    return None;
                }
                let (region, log) = (&program.region, &program.log);
                let mut view = Watched {
                    view: UntimedMemory::new(untimed, &mut controller, region, log),
                    strike,
                    knowledge,
                };
                if let Err(fault) = workload.recover(&mut view) {
                    read.push((region.first, Err(fault.what)));
                }
            }
            Some(controller)
        });
        let controller = begun.map_err(|what| read.push((0, Err(what)))).ok()??;
        (!self.is_refused()).then_some(controller)
    }
}

/// A program's memory in its recovery, with the attacker who waits for the right moment.
struct Watched<'w, 's, 'v> {
    view: UntimedMemory<'v>,
    strike: &'w mut Strike<'s>,
    knowledge: &'w Knowledge<'w>,
}

impl Watched<'_, '_, '_> {
    fn accessed(&mut self) {
        let untimed = self.view.untimed_mut();
        self.strike.before_access(self.knowledge, untimed);
    }
}

impl Bytes for Watched<'_, '_, '_> {
    fn load(&mut self, at: u64, bytes: &mut [u8]) {
        self.accessed();
        self.view.load(at, bytes);
    }

    fn store(&mut self, at: u64, bytes: &[u8]) {
        self.view.store(at, bytes);
    }
}

impl PersistentMemory for Watched<'_, '_, '_> {
    fn store_counter_atomic(&mut self, at: u64, bytes: &[u8]) {
        self.view.store_counter_atomic(at, bytes);
    }

    fn flush(&mut self, at: u64) {
        self.accessed();
        self.view.flush(at);
    }

    fn fence(&mut self) {
        self.view.fence();
    }

    fn counter_cache_writeback(&mut self, at: u64) {
        self.view.counter_cache_writeback(at);
    }
}
