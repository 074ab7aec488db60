//! Who listens to the engine: listeners come and go, and hear of the commands of the channels so far before they go.
//! Left out: what is told, which is told where it happens.

use super::Engine;
use crate::plan::observe::{Observer, Observers};

impl Engine {
    /// Adds a listener.
    pub fn observe(&mut self, observer: impl Observer) {
        self.plan.observers.add(Box::new(observer));
        if self.plan.observers.of_commands() {
            for channel in &mut self.channels {
                channel.issued.get_or_insert_default();
            }
        }
    }

    /// The listeners, if there are any.
    #[inline]
    pub fn observers(&mut self) -> Option<&mut Observers> {
        Some(&mut self.plan.observers).filter(|observers| observers.any())
    }

    /// Removes a listener and returns it, after it has been told of all commands so far.
    pub fn take<T: Observer>(&mut self) -> Option<Box<T>> {
        self.tell_all_commands();
        let taken = self.plan.observers.take();
        self.keep_commands();
        taken
    }

    /// Has other listeners from now on, and returns those of before, which have been told of all so far.
    pub fn exchange_observers(&mut self, observers: Observers) -> Observers {
        self.tell_all_commands();
        let before = std::mem::replace(&mut self.plan.observers, observers);
        self.keep_commands();
        before
    }

    fn tell_all_commands(&mut self) {
        for index in 0..self.channels.len() {
            let cycle = self.now / self.clocks[self.tier(index)].period;
            self.channels[index].refresh(cycle); // an idle channel has not yet made up for its refreshes
            self.tell_commands(index);
        }
    }

    /// Has channels keep their commands for listeners, if there are any.
    fn keep_commands(&mut self) {
        let of_commands = self.plan.observers.of_commands();
        for channel in &mut self.channels {
            channel.issued = of_commands.then(Default::default);
        }
    }
}
