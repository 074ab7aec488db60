//! The link's time: which messages wait, and when a message has crossed.

use super::Engine;
use crate::medium::link::{LinkParams, MESSAGE_WAITED, Message, ServedFirst};
use crate::medium::params::Unit;
use crate::plan::steps::Step;

pub(super) struct Link {
    params: LinkParams,
    reads: u64,
    writes: u64,
    up: u64,
}

impl Link {
    pub fn new(params: LinkParams) -> Link {
        Link {
            params,
            reads: 0,
            writes: 0,
            up: 0,
        }
    }

    /// Sends a message that is ready at `now`; returns when it begins to cross and when it has arrived. Messages of one
    /// kind do not overtake each other.
    fn cross(&mut self, message: Message, now: u64) -> (u64, u64) {
        let time = self.params.message[message as usize].ps();
        let free = match message {
            Message::Read if self.params.first == ServedFirst::Reads => {
                // Writes that wait do so for this much longer.
                self.writes = self.writes.max(now) + time;
                &mut self.reads
            }
            Message::Read | Message::Write => &mut self.writes,
            Message::Line | Message::Done => &mut self.up,
        };
        let begun = now.max(*free);
        *free = begun + time;
        let latency = self.params.latency[usize::from(!message.is_down())].ps();
        (begun, begun + time + latency)
    }
}

impl Engine {
    pub(super) fn cross(&mut self, step: Step, message: Message) {
        let link = self.link.as_mut().expect("there is a link");
        let (begun, done) = link.cross(message, self.now);
        self.plan.steps.get_mut(step).begun = begun;
        if begun > self.now {
            self.plan.exercise(&MESSAGE_WAITED);
        }
        let source = self.channels.len() * 2 + Unit::ALL.len() + message as usize;
        if done == self.now {
            self.end(step);
        } else {
            self.result(source, done, step);
        }
    }
}
