//! Which writes are held back, and until when: for the crash explorer.

use super::delays::Delays;
use super::orders::{Choice, Orders};
use super::script::Scripting;
use super::{Plan, Promise, Step, Timer};
use crate::line::Place;

/// The way in which writes are held back, for the crash explorer.
#[derive(Clone, Debug)]
pub enum Holding {
    /// Some writes are held for a while, drawn from this seed or as a script says.
    Drawn(u64, Scripting),
    /// All writes are held until nothing else can happen. Then one of those that can go does, the one whose number is
    /// next here; after the last number, the first write. See [`Choice`].
    Chosen(Vec<u16>),
}

#[derive(Default)]
pub(crate) enum Schedule {
    /// Writes go as soon as there is room.
    #[default]
    Prompt,
    Drawn(Box<Delays>),
    Chosen(Box<Orders>),
}

impl Plan {
    pub(crate) fn hold(&mut self, holding: Holding) {
        self.schedule = match holding {
            Holding::Drawn(seed, scripting) => {
                Schedule::Drawn(Box::new(Delays::new(seed, scripting)))
            }
            Holding::Chosen(chosen) => Schedule::Chosen(Box::new(Orders::new(chosen))),
        };
    }

    /// The additional promise that the next write has to wait for, if it is held back.
    pub(super) fn hold_back(&mut self, place: Place) -> Option<Promise> {
        match &mut self.schedule {
            Schedule::Prompt => None,
            Schedule::Chosen(_) => Some(self.promise()),
            Schedule::Drawn(delays) => {
                let wait = delays.draw(place)?;
                let (timer, promise) = (self.wake_at(self.now + wait), self.promise());
                if let Schedule::Drawn(delays) = &mut self.schedule {
                    delays.hold(timer, promise);
                }
                Some(promise)
            }
        }
    }

    /// Releases the write that is held back until `timer` runs out; returns whether there was one.
    pub(crate) fn release(&mut self, timer: Timer) -> bool {
        let Schedule::Drawn(delays) = &mut self.schedule else {
            return false;
        };
        let released = delays.release(timer);
        if let Some(promise) = released {
            self.keep(promise, Step::PAST);
        }
        released.is_some()
    }

    /// Releases the writes that are chosen to be next, if writes are chosen; returns whether there were any.
    pub(crate) fn release_chosen(&mut self) -> bool {
        let Schedule::Chosen(orders) = &mut self.schedule else {
            return false;
        };
        let journal = self.observers.find().expect("who chooses keeps a journal");
        let going = orders.choose(&self.steps, &self.groups, journal);
        for promise in &going {
            self.keep(*promise, Step::PAST);
        }
        !going.is_empty()
    }

    pub(crate) fn take_choices(&mut self) -> Vec<Choice> {
        match std::mem::take(&mut self.schedule) {
            Schedule::Chosen(orders) => orders.into_made(),
            Schedule::Prompt | Schedule::Drawn(_) => Vec::new(),
        }
    }
}
