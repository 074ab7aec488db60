//! A circular log, as the library's own but for one slip. The library's log controller ([`Fwb`]) decides what is logged,
//! when lines go to memory, and what is given up.

use sardonyx::controller::Top;
use sardonyx::controller::designs::{self, AnyLayer};
use sardonyx::controller::layers::{About, Guarantee, Logging};
use sardonyx::controller::logging::fwb::Fwb;
use sardonyx::controller::logging::morlog::{self, LogForm};
use sardonyx::controller::logging::ring::{Kind, Outlasting, Ring, RingEntry};
use sardonyx::line::Logical;
use sardonyx::medium::layout::Layout;
use sardonyx::plan::{At, Plan, Step};
use sardonyx::settings::Settings;

use crate::fault::{Layers, slips};

slips! {
    /// What is wrong with the log.
    Slip {
        Nothing, EntryNotAwaited, TailNotAwaited, NothingForced, NewUnread, OldUnread, NumberAgain,
    }
}

struct Slipping {
    slip: Slip,
    right: Ring,
}

impl Outlasting for Slipping {
    fn room(&self) -> u64 {
        self.right.room()
    }

    fn first(&self) -> u64 {
        self.right.first()
    }

    fn put(&mut self, number: u64, entry: At<&RingEntry>, gate: Step, plan: &mut Plan) -> Step {
        let accepted = self.right.put(number, entry, gate, plan);
        match self.slip {
            Slip::EntryNotAwaited => Step::PAST,
            _ => accepted,
        }
    }

    fn move_tail(&mut self, tail: u64, ripe: Step, plan: &mut Plan) -> Step {
        let ripe = match self.slip {
            Slip::TailNotAwaited => Step::PAST,
            _ => ripe,
        };
        self.right.move_tail(tail, ripe, plan)
    }

    fn unlock(&mut self, lines: &[Logical], ripe: Step, plan: &mut Plan) -> Step {
        self.right.unlock(lines, ripe, plan)
    }

    fn forces(&self) -> bool {
        self.slip != Slip::NothingForced
    }

    fn found_tail(&self, plan: &mut Plan) -> u64 {
        self.right.found_tail(plan)
    }

    fn found(&self, number: u64, plan: &mut Plan) -> Option<At<RingEntry>> {
        self.right.found(number, plan)
    }

    fn writes_again(&self, kind: Kind) -> bool {
        let unread = match self.slip {
            Slip::NewUnread => Some(Kind::New),
            Slip::OldUnread => Some(Kind::Old),
            _ => None,
        };
        self.right.writes_again(kind) && Some(kind) != unread
    }

    fn next_after(&self, tail: u64, head: u64) -> u64 {
        match self.slip {
            Slip::NumberAgain => head,
            _ => self.right.next_after(tail, head),
        }
    }

    fn restart(&mut self, tail: u64, gate: Step, plan: &mut Plan) -> Step {
        self.right.restart(tail, gate, plan)
    }
}

fn slipping<const SLIP: usize>(right: Ring) -> Slipping {
    Slipping {
        slip: Slip::ALL[SLIP],
        right,
    }
}

/// A log like `like` that slips.
fn layer<const SLIP: usize>(name: &'static str, like: &str) -> AnyLayer {
    let known = designs::loggings().find(|known| known.about.name == like);
    let known = known.expect("the log that it is like");
    let build = match like {
        "morlog" => |settings: &Settings, below, layout: &mut Layout| -> Top {
            let form = morlog::form(settings);
            Box::new(Fwb::new(settings, form, below, layout, slipping::<SLIP>))
        },
        _ => |settings: &Settings, below, layout: &mut Layout| -> Top {
            let form = LogForm::Eager;
            Box::new(Fwb::new(settings, form, below, layout, slipping::<SLIP>))
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

/// FWB's log with the slip of that number.
pub fn fwb<const SLIP: usize>(name: &'static str) -> Layers {
    Layers {
        wrong: layer::<SLIP>(name, "fwb"),
        right: layer::<{ Slip::Nothing as usize }>("own-fwb", "fwb"),
    }
}

/// MorLog's log with the slip of that number.
pub fn morlog<const SLIP: usize>(name: &'static str) -> Layers {
    Layers {
        wrong: layer::<SLIP>(name, "morlog"),
        right: layer::<{ Slip::Nothing as usize }>("own-morlog", "morlog"),
    }
}
