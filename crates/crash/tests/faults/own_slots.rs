//! Slots of a queue that is safe before it is secure, as the library's own do but for one slip. The library's [`Dolos`]
//! decides which line waits in which slot, and when.

use sardonyx::controller::designs::{self, AnyLayer};
use sardonyx::controller::layers::{About, Logging};
use sardonyx::controller::logging::dolos::{Dolos, DumpedSlots, WaitingLine, WaitingSlots};
use sardonyx::line::Line;
use sardonyx::plan::{At, Plan, Step};

use crate::fault::{Layers, slips};

slips! {
    /// What is wrong with the slots.
    Slip {
        Nothing, NotAwaited, FreedEarly, Unread, NewestFirst, Unforgotten, NumberAgain,
    }
}

struct Slipping {
    slip: Slip,
    right: DumpedSlots,
}

impl WaitingSlots for Slipping {
    fn keep(
        &mut self,
        slot: u64,
        waiting: WaitingLine,
        content: At<&Line>,
        ripe: Step,
        plan: &mut Plan,
    ) -> Step {
        let kept = self.right.keep(slot, waiting, content, ripe, plan);
        match self.slip {
            Slip::NotAwaited => Step::PAST,
            _ => kept,
        }
    }

    fn free(&mut self, slot: u64, number: u64, ripe: Step, plan: &mut Plan) -> Step {
        let ripe = match self.slip {
            Slip::FreedEarly => Step::PAST,
            _ => ripe,
        };
        self.right.free(slot, number, ripe, plan)
    }

    fn found(&self, plan: &mut Plan) -> Vec<(u64, WaitingLine, At<Line>)> {
        let mut found = self.right.found(plan);
        match self.slip {
            Slip::Unread => found.clear(),
            Slip::NewestFirst => found.reverse(),
            _ => {}
        }
        found
    }

    fn forget(&self, slot: u64, gate: Step, plan: &mut Plan) -> Step {
        match self.slip {
            Slip::Unforgotten => gate,
            _ => self.right.forget(slot, gate, plan),
        }
    }

    fn last(&self, plan: &mut Plan) -> Option<u64> {
        match self.slip {
            Slip::NumberAgain => None,
            _ => self.right.last(plan),
        }
    }
}

fn layer<const SLIP: usize>(name: &'static str) -> AnyLayer {
    let known = designs::loggings().find(|known| known.about.name == "dolos");
    let known = known.expect("the queue that it is like");
    AnyLayer::Logging(Box::leak(Box::new(Logging {
        about: About {
            name,
            ..known.about
        },
        keeps_log: false,
        lines: |_| 0,
        build: |settings, below, layout| {
            Box::new(Dolos::new(settings, below, layout, |right| Slipping {
                slip: Slip::ALL[SLIP],
                right,
            }))
        },
        guarantee: |below| below,
        vectors: |_, _| None,
    })))
}

/// Dolos's queue with the slip of that number.
pub fn own<const SLIP: usize>(name: &'static str) -> Layers {
    Layers {
        wrong: layer::<SLIP>(name),
        right: layer::<{ Slip::Nothing as usize }>("own-dolos"),
    }
}
