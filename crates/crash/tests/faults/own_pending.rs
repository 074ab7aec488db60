//! Entries of a hardware log that wait on chip, as the library's own do but for one slip. The library's log managers
//! ([`Proteus`], [`Silo`], [`Lad`]) decide which entry waits, leaves or is dropped, and when.

use std::ops::Range;

use sardonyx::controller::Top;
use sardonyx::controller::designs::{self, AnyLayer};
use sardonyx::controller::layers::{About, Guarantee, Logging};
use sardonyx::controller::logging::lad::Lad;
use sardonyx::controller::logging::pending::{
    Dumped, EntryPlaces, HalfLine, Outliving, Queued, Which,
};
use sardonyx::controller::logging::proteus::Proteus;
use sardonyx::controller::logging::silo::Silo;
use sardonyx::line::{Logical, Place};
use sardonyx::medium::layout::Layout;
use sardonyx::plan::{At, Plan, Step, Stored};
use sardonyx::settings::Settings;

use crate::fault::{Layers, slips};

slips! {
    /// What is wrong with the entries.
    Slip {
        Nothing, LeftUnwritten, SlotNotAwaited, EntryNotAwaited, QueueUnread, LeftUnread, NumberAgain,
    }
}

struct Slipping {
    slip: Slip,
    right: EntryPlaces,
}

impl Outliving for Slipping {
    fn wait(&mut self, entry: &Queued, ripe: Step, unlocked: &[Logical], plan: &mut Plan) -> Step {
        let kept = self.right.wait(entry, ripe, unlocked, plan);
        match self.slip {
            Slip::EntryNotAwaited => Step::PAST,
            _ => kept,
        }
    }

    fn leave(&mut self, entry: &Queued, plan: &mut Plan) -> Stored {
        if self.slip == Slip::LeftUnwritten {
            return Stored::at(Step::PAST);
        }
        let stored = self.right.leave(entry, plan);
        match self.slip {
            Slip::SlotNotAwaited => Stored::at(Step::PAST),
            _ => stored,
        }
    }

    fn void(&mut self, slots: Range<u64>, ripe: Step, plan: &mut Plan) -> Step {
        self.right.void(slots, ripe, plan)
    }

    fn dumped(&self, plan: &mut Plan) -> Dumped {
        let dumped = self.right.dumped(plan);
        match self.slip {
            Slip::QueueUnread => Dumped::default(),
            _ => dumped,
        }
    }

    fn read(
        &self,
        place: Place,
        which: Which,
        dumped: &Dumped,
        plan: &mut Plan,
    ) -> Option<At<HalfLine>> {
        let waits = dumped.contains_key(&(place, which.number));
        let read = self.right.read(place, which, dumped, plan);
        read.filter(|_| waits || self.slip != Slip::LeftUnread)
    }

    fn next_number(&self, last: u64) -> u64 {
        match self.slip {
            Slip::NumberAgain => 1,
            _ => self.right.next_number(last),
        }
    }
}

/// A log like `like` whose entries slip.
fn layer<const SLIP: usize>(name: &'static str, like: &str) -> AnyLayer {
    let known = designs::loggings().find(|known| known.about.name == like);
    let known = known.expect("the log that it is like");
    let build = match like {
        "silo" => |settings: &Settings, below, layout: &mut Layout| -> Top {
            Box::new(Silo::new(settings, below, layout, slipping::<SLIP>))
        },
        "lad" => |settings: &Settings, below, layout: &mut Layout| -> Top {
            Box::new(Lad::new(settings, below, layout, slipping::<SLIP>))
        },
        _ => |settings: &Settings, below, layout: &mut Layout| -> Top {
            Box::new(Proteus::new(settings, below, layout, slipping::<SLIP>))
        },
    };
    AnyLayer::Logging(Box::leak(Box::new(Logging {
        about: About {
            name,
            ..known.about
        },
        keeps_log: true,
        lines: |_| 0,
        build,
        guarantee: Guarantee::on_demand,
        vectors: |_, _| None,
    })))
}

fn slipping<const SLIP: usize>(right: EntryPlaces) -> Slipping {
    Slipping {
        slip: Slip::ALL[SLIP],
        right,
    }
}

/// Proteus's log with the slip of that number.
pub fn own<const SLIP: usize>(name: &'static str) -> Layers {
    Layers {
        wrong: layer::<SLIP>(name, "proteus"),
        right: layer::<{ Slip::Nothing as usize }>("own-proteus", "proteus"),
    }
}

/// Silo's log with the slip of that number.
pub fn silo<const SLIP: usize>(name: &'static str) -> Layers {
    Layers {
        wrong: layer::<SLIP>(name, "silo"),
        right: layer::<{ Slip::Nothing as usize }>("own-silo", "silo"),
    }
}

/// LAD's queue with the slip of that number.
pub fn lad<const SLIP: usize>(name: &'static str) -> Layers {
    Layers {
        wrong: layer::<SLIP>(name, "lad"),
        right: layer::<{ Slip::Nothing as usize }>("own-lad", "lad"),
    }
}
