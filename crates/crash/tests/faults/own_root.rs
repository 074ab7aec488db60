//! An integrity of the tests' own that refuses old lines as well: the MACs of `own_guard` with a register over them. The
//! chip knows all MACs, and a recovery learns them from memory and compares their sum with the register, which follows
//! each line of MACs when that is accepted. Small and right; no tree, because a sum over all MACs is enough where time
//! does not count. A fault is one [`Slip`].

use std::collections::BTreeMap;
use std::hash::Hasher;

use sardonyx::controller::designs::AnyLayer;
use sardonyx::controller::layers::{About, Integrity, PowerFail, Refuses};
use sardonyx::line::{Line, Place, ZERO_LINE};
use sardonyx::medium::layout::{Layout, Region};
use sardonyx::plan::guard::Guard;
use sardonyx::plan::start_gap::Places;
use sardonyx::plan::storey::Storey;
use sardonyx::plan::{At, Plan, Queue, Step, Stored};
use siphasher::sip::SipHasher24;

use crate::fault::{Layers, slips};
use crate::own_guard::{self, Macs, word};

slips! {
    /// What is wrong with the register, or with what is compared with it.
    Slip {
        Nothing, NotCompared, HalfCompared, SumOfHalf, OddNotSummed, MacsFromMemory,
        SumOfFirst, NotDumped,
    }
}

const REGION: &str = "own-register";

#[derive(Clone)]
struct Sum {
    slip: Slip,
    macs: Macs,
    register: Region,
    known: BTreeMap<Place, Line>,
    value: u64,
}

impl Sum {
    fn new(slip: Slip, macs: Macs, register: Region) -> Sum {
        Sum {
            slip,
            macs,
            register,
            known: BTreeMap::new(),
            value: 0,
        }
    }

    fn hash(&self, at: Place, line: &Line) -> u64 {
        let skipped = match self.slip {
            Slip::OddNotSummed => at.0 % 2 == 1,
            Slip::SumOfFirst => at != self.macs.region.first,
            _ => false,
        };
        if skipped || *line == ZERO_LINE {
            return 0;
        }
        let mut hasher = SipHasher24::new_with_key(b"sardonyx: a sum.");
        hasher.write_u64(at.0);
        hasher.write(if self.slip == Slip::SumOfHalf {
            &line[..32]
        } else {
            line
        });
        hasher.finish()
    }

    /// The line of MACs at `at` is `line` now.
    fn follow(&mut self, at: Place, line: Line) {
        let old = self.known.insert(at, line).unwrap_or(ZERO_LINE);
        self.value = self.value.wrapping_sub(self.hash(at, &old));
        self.value = self.value.wrapping_add(self.hash(at, &line));
    }

    fn register_line(&self) -> Line {
        let mut line = ZERO_LINE;
        line[..8].copy_from_slice(&self.value.to_le_bytes());
        line
    }
}

struct Rooted(Sum);

impl Storey for Rooted {
    fn flush(&mut self, plan: &mut Plan) {
        let (at, line) = (self.0.register.line(0), self.0.register_line());
        plan.write(at, At::past(&line), Step::PAST);
    }

    fn recover(&mut self, plan: &mut Plan) {
        for at in plan.written(&self.0.macs.region) {
            self.0.follow(at, plan.peek(at).unwrap_or(ZERO_LINE));
        }
        let at = self.0.register.line(0);
        let kept = word(&plan.peek(at).unwrap_or(ZERO_LINE), 0);
        let same = match self.0.slip {
            Slip::NotCompared => true,
            Slip::HalfCompared => kept as u8 & 0xf == self.0.value as u8 & 0xf,
            _ => kept == self.0.value,
        };
        if !same {
            plan.refuse(at);
        }
    }
}

impl Guard for Rooted {
    fn read(
        &mut self,
        place: Place,
        got: At<Option<Line>>,
        _after: Step,
        plan: &mut Plan,
    ) -> At<Option<Line>> {
        let Some((at, number)) = self.0.macs.spot(place) else {
            return got;
        };
        let macs = match self.0.slip {
            Slip::MacsFromMemory => plan.peek(at),
            _ => self.0.known.get(&at).copied(),
        };
        let kept = word(&macs.unwrap_or(ZERO_LINE), number);
        if !self.0.macs.is_right(place, got.value.as_ref(), kept, plan) {
            plan.refuse(place);
            return At::new(None, got.at);
        }
        got
    }

    fn write(
        &mut self,
        place: Place,
        line: At<&Line>,
        sideband: Option<[u8; 8]>,
        stored: Stored,
        plan: &mut Plan,
    ) -> Step {
        let Some((at, number)) = self.0.macs.spot(place) else {
            return stored.done;
        };
        let beside = sideband.or_else(|| plan.peek_sideband(place));
        let mac = self.0.macs.mac(place, line.value, beside);
        let mut macs = self.0.known.get(&at).copied().unwrap_or(ZERO_LINE);
        macs[number * 8..][..8].copy_from_slice(&mac.to_le_bytes());
        self.0.follow(at, macs);
        let macs = At::new(&macs, line.at);
        let kept = plan.write_words(at, macs, 1 << number, None, Step::PAST, Queue::Data);
        plan.group(&[stored, kept]);
        plan.both(stored.done, kept.done)
    }

    fn holds(&self, place: Place, plan: &Plan) -> bool {
        let Some((at, number)) = self.0.macs.spot(place) else {
            return true;
        };
        let kept = self.0.known.get(&at).map_or(0, |macs| word(macs, number));
        let line = plan.peek(place);
        self.0.macs.is_right(place, line.as_ref(), kept, plan)
    }
}

struct Register(Sum);

impl Register {
    fn follow(&mut self, at: Place, image: &mut Places) {
        self.0.follow(at, image.read(at).unwrap_or(ZERO_LINE));
        image.write(self.0.register.line(0), &self.0.register_line(), 0xff, None);
    }
}

impl PowerFail for Register {
    fn begin(&mut self, image: &mut Places) {
        for at in image.written_in(&self.0.macs.region) {
            self.0.follow(at, image.read(at).unwrap_or(ZERO_LINE));
        }
    }

    fn accepted(&mut self, place: Place, image: &mut Places) {
        if self.0.macs.region.contains(place) {
            self.follow(place, image);
        }
    }

    fn dumped(&mut self, place: Place, image: &mut Places) {
        self.0.macs.dumped(place, image);
        if let Some((at, _)) = self.0.macs.spot(place)
            && self.0.slip != Slip::NotDumped
        {
            self.follow(at, image);
        }
    }

    fn on_chip(&self) -> Option<&Region> {
        Some(&self.0.register)
    }

    fn kept_of(&self, place: Place) -> Option<(Place, usize)> {
        self.0.macs.kept_of(place)
    }
}

fn layer<const SLIP: usize>(name: &'static str) -> AnyLayer {
    AnyLayer::Integrity(Box::leak(Box::new(Integrity {
        about: About {
            name,
            keys: &[],
            units: &[],
            figures: &[],
            cut: "each MAC is atomic with its line; the register follows what is accepted",
            tries: &[],
            limits: &[],
        },
        build: |_, layout| {
            let macs = Macs::build(own_guard::Slip::Nothing, layout);
            let register = layout.reserve_sparse(REGION, 1);
            Some(Box::new(Rooted(Sum::new(Slip::ALL[SLIP], macs, register))))
        },
        promises: Refuses::ALL,
        registers: |_| 64,
        power_fail: Some(|layout: &Layout| {
            let macs = Macs::from_layout(own_guard::Slip::Nothing, layout);
            let register = layout.region(REGION).expect("it has been reserved");
            Box::new(Register(Sum::new(Slip::ALL[SLIP], macs, register.clone())))
        }),
    })))
}

/// The register with the slip of that number.
pub fn rooted<const SLIP: usize>(name: &'static str) -> Layers {
    Layers {
        wrong: layer::<SLIP>(name),
        right: layer::<{ Slip::Nothing as usize }>("own-root"),
    }
}
