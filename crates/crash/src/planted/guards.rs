//! An integrity with something wrong around it: around the guard that looks at what is read, and around what works on
//! reserve power.

use std::collections::{BTreeSet, VecDeque};
use std::ops::Range;

use sardonyx::controller::Figures;
use sardonyx::controller::layers::PowerFail;
use sardonyx::line::{Line, Place};
use sardonyx::medium::layout::{Layout, Region};
use sardonyx::plan::guard::Guard;
use sardonyx::plan::start_gap::Places;
use sardonyx::plan::storey::Storey;
use sardonyx::plan::{At, Fetched, Plan, Step, Timer, Written};
use sardonyx::units::Time;

use super::{Slip, count_occasion};

/// Acceptances that a late register has not followed.
const LATE: usize = 8;

pub struct Believing {
    slip: Slip,
    data_lines: u64,
    written: BTreeSet<Place>,
    heard: u64,
    right: Box<dyn Guard>,
}

impl Believing {
    pub fn new(slip: Slip, right: Box<dyn Guard>, layout: &Layout) -> Believing {
        Believing {
            slip,
            data_lines: layout.data_lines(),
            written: BTreeSet::new(),
            heard: 0,
            right,
        }
    }

    fn believes(&self, place: Place, line: Option<&Line>) -> bool {
        let is_data = place.0 < self.data_lines;
        let believes = match self.slip {
            Slip::DataBelieved => is_data,
            Slip::TablesBelieved => !is_data,
            Slip::WrittenBelieved => self.written.contains(&place),
            Slip::GoneBelieved => line.is_none(),
            Slip::OddBelieved => place.0 % 2 == 1,
            _ => false,
        };
        if believes {
            count_occasion();
        }
        believes
    }
}

impl Storey for Believing {
    fn flush(&mut self, plan: &mut Plan) {
        self.right.flush(plan);
    }

    fn recover(&mut self, plan: &mut Plan) {
        match self.slip {
            Slip::RecoveryForgotten => count_occasion(),
            _ => self.right.recover(plan),
        }
    }

    fn wake(&mut self, timer: Timer, now: Time, plan: &mut Plan) -> bool {
        self.right.wake(timer, now, plan)
    }

    fn forget_figures(&mut self) {
        self.right.forget_figures();
    }

    fn figures(&self, out: &mut Figures) {
        self.right.figures(out);
    }
}

impl Guard for Believing {
    fn read(&mut self, place: Place, got: Fetched, after: Step, plan: &mut Plan) -> Fetched {
        match self.believes(place, got.value.as_ref()) {
            true => got,
            false => self.right.read(place, got, after, plan),
        }
    }

    fn opened(&mut self, place: Place, got: Fetched, counter: At<u64>, plan: &mut Plan) -> Fetched {
        match self.believes(place, got.value.as_ref()) {
            true => got,
            false => self.right.opened(place, got, counter, plan),
        }
    }

    fn sealed(&mut self, place: Place, counter: u64) {
        self.right.sealed(place, counter);
    }

    fn before_write(&mut self, place: Place, plan: &mut Plan) -> Step {
        self.right.before_write(place, plan)
    }

    fn write(&mut self, place: Place, written: Written, plan: &mut Plan) -> Step {
        self.written.insert(place);
        self.heard += 1;
        if self.slip == Slip::WriteUnheard && self.heard.is_multiple_of(64) {
            count_occasion();
            return written.stored.done;
        }
        self.right.write(place, written, plan)
    }

    fn holds(&self, place: Place, plan: &Plan) -> bool {
        let line = plan.peek(place);
        self.believes(place, line.as_ref()) || self.right.holds(place, plan)
    }

    fn finish(&mut self, plan: &mut Plan) {
        self.right.finish(plan);
    }
}

pub struct Following {
    slip: Slip,
    data_lines: u64,
    /// Lines that registers have not followed yet, and whether reserve power dumped them.
    late: VecDeque<(Place, bool)>,
    right: Box<dyn PowerFail>,
}

impl Following {
    pub fn new(slip: Slip, right: Box<dyn PowerFail>, layout: &Layout) -> Following {
        Following {
            slip,
            data_lines: layout.data_lines(),
            late: VecDeque::new(),
            right,
        }
    }

    fn hear(&mut self, place: Place, is_dump: bool, image: &mut Places) {
        let mut heard = Some((place, is_dump));
        match self.slip {
            Slip::RegisterSkipsTables if place.0 >= self.data_lines => {
                count_occasion();
                heard = None;
            }
            Slip::RegisterLate => {
                count_occasion();
                self.late.extend(heard.take());
                if self.late.len() > LATE {
                    heard = self.late.pop_front();
                }
            }
            _ => {}
        }
        match heard {
            Some((place, true)) => self.right.dumped(place, image),
            Some((place, false)) => self.right.accepted(place, image),
            None => {}
        }
    }
}

impl PowerFail for Following {
    fn begin(&mut self, image: &mut Places) {
        self.right.begin(image);
    }

    fn accepted(&mut self, place: Place, image: &mut Places) {
        self.hear(place, false, image);
    }

    fn dumped(&mut self, place: Place, image: &mut Places) {
        match self.slip {
            Slip::DumpsUnheard => count_occasion(),
            _ => self.hear(place, true, image),
        }
    }

    fn on_chip(&self) -> Option<&Region> {
        let on_chip = self.right.on_chip()?;
        match self.slip {
            Slip::RegisterInMemory => {
                count_occasion();
                None
            }
            _ => Some(on_chip),
        }
    }

    fn kept_of(&self, place: Place) -> Option<(Place, usize)> {
        self.right.kept_of(place)
    }

    fn version_of(&self, place: Place) -> Option<(Place, Range<usize>)> {
        self.right.version_of(place)
    }

    fn has_register(&self, place: Place) -> bool {
        self.right.has_register(place)
    }

    fn version_in_mac(&self) -> u64 {
        self.right.version_in_mac()
    }

    fn over(&self, place: Place, level: usize) -> Option<Place> {
        self.right.over(place, level)
    }
}
