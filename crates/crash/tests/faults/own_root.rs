//! An integrity of the tests' own that refuses old lines as well: the MACs of `own_guard` with a register over them. The
//! chip knows all MACs, and a recovery learns them from memory and compares their sum with the register, which follows
//! each line of MACs when that is accepted. Small and right; no tree, because a sum over all MACs is enough where time
//! does not count. A fault is one [`Slip`].

use std::collections::BTreeMap;
use std::hash::Hasher;
use std::ops::Range;

use sardonyx::controller::designs::AnyLayer;
use sardonyx::controller::layers::{About, Integrity, PowerFail, Refuses};
use sardonyx::line::{Line, Place, ZERO_LINE};
use sardonyx::medium::layout::{Layout, Region};
use sardonyx::plan::guard::Guard;
use sardonyx::plan::start_gap::Places;
use sardonyx::plan::storey::Storey;
use sardonyx::plan::{At, Fetched, Plan, Queue, Step, Written};
use sardonyx::settings::Settings;
use siphasher::sip::SipHasher24;

use crate::fault::{Layers, slips};
use crate::own_guard::{self, Macs, word};

slips! {
    /// What is wrong with the register, or with what is compared with it.
    Slip {
        Nothing, NotCompared, HalfCompared, SumOfHalf, OddNotSummed, MacsFromMemory,
        SumOfFirst, NotDumped, LastTwo, LastFour, LastEight, EmptyBelieved, HalvesBelieved, EighthsBelieved, Versions,
        VersionsOfTwo, VersionsOfThree, VersionsOfFour,
        VersionsSummed, VersionsXored, VersionsSorted, VersionApart,
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
    /// What it has been, the newest first, or the sums of parts.
    values: [u64; 8],
}

impl Sum {
    fn new(slip: Slip, macs: Macs, register: Region) -> Sum {
        Sum {
            slip,
            macs,
            register,
            known: BTreeMap::new(),
            value: 0,
            values: [0; 8],
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
        match self.slip {
            Slip::SumOfHalf => hasher.write(&line[..32]),
            Slip::VersionsSummed => {
                let words = line.as_chunks::<8>().0.iter();
                let versions = words.map(|word| u64::from_le_bytes(*word) & 0xffff);
                hasher.write_u64(versions.sum());
            }
            Slip::VersionsXored | Slip::VersionsSorted => {
                let words = line.as_chunks::<8>().0.iter();
                let versions = words.map(|word| u64::from_le_bytes(*word) & 0xffff);
                let mut versions: Vec<u64> = versions.collect();
                versions.sort_unstable();
                match self.slip {
                    Slip::VersionsXored => {
                        hasher.write_u64(versions.iter().fold(0, |all, version| all ^ version));
                    }
                    _ => versions
                        .iter()
                        .for_each(|version| hasher.write_u64(*version)),
                }
            }
            _ if self.wraps_at().is_some() => {
                line.as_chunks::<8>()
                    .0
                    .iter()
                    .for_each(|word| hasher.write(&word[..2]));
            }
            _ => hasher.write(line),
        }
        hasher.finish()
    }

    /// The line of MACs at `at` is `line` now.
    fn follow(&mut self, at: Place, line: Line) {
        let old = self.known.insert(at, line).unwrap_or(ZERO_LINE);
        let more = self.hash(at, &line).wrapping_sub(self.hash(at, &old));
        if let Some(parts) = self.parts() {
            let part = &mut self.values[self.part(at, parts)];
            *part = part.wrapping_add(more);
        } else if more != 0 {
            self.values.rotate_right(1);
            self.values[0] = self.value;
        }
        self.value = self.value.wrapping_add(more);
    }

    /// Parts of the MACs that have a sum each, which counts if anything of its part is there.
    fn parts(&self) -> Option<u64> {
        match self.slip {
            Slip::EmptyBelieved => Some(1),
            Slip::HalvesBelieved => Some(2),
            Slip::EighthsBelieved => Some(8),
            _ => None,
        }
    }

    fn part(&self, at: Place, parts: u64) -> usize {
        ((at.0 - self.macs.region.first.0) % parts) as usize
    }

    /// Where MACs have versions, which alone are summed: the number that comes back to 1.
    fn wraps_at(&self) -> Option<u64> {
        match self.slip {
            Slip::Versions
            | Slip::VersionsSummed
            | Slip::VersionsXored
            | Slip::VersionsSorted
            | Slip::VersionApart => Some(1 << 16),
            Slip::VersionsOfTwo => Some(1 << 2),
            Slip::VersionsOfThree => Some(1 << 3),
            Slip::VersionsOfFour => Some(1 << 4),
            _ => None,
        }
    }

    /// The MAC that is kept under `version`, which is its lowest two bytes.
    fn under(&self, mac: u64, version: u64) -> u64 {
        let mut hasher = SipHasher24::new_with_key(b"sardonyx: number");
        if self.slip == Slip::VersionApart {
            hasher.write_u64(version);
            return (hasher.finish() ^ mac) & !0xffff | version;
        }
        hasher.write_u64(mac);
        hasher.write_u64(version);
        hasher.finish() & !0xffff | version
    }

    fn is_right(&self, place: Place, line: Option<&Line>, kept: u64, plan: &Plan) -> bool {
        match line {
            Some(line) if self.wraps_at().is_some() => {
                let mac = self.macs.mac(place, line, plan.peek_sideband(place));
                self.under(mac, kept & 0xffff) == kept
            }
            _ => self.macs.is_right(place, line, kept, plan),
        }
    }

    fn register_line(&self) -> Line {
        let mut line = ZERO_LINE;
        let values = match self.parts() {
            Some(_) => self.values,
            None if matches!(self.slip, Slip::LastTwo | Slip::LastFour | Slip::LastEight) => {
                let [a, b, c, d, e, f, g, _] = self.values;
                [self.value, a, b, c, d, e, f, g]
            }
            None => [self.value, 0, 0, 0, 0, 0, 0, 0],
        };
        for (bytes, value) in line.as_chunks_mut::<8>().0.iter_mut().zip(values) {
            *bytes = value.to_le_bytes();
        }
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
        let register = plan.peek(at).unwrap_or(ZERO_LINE);
        let kept = word(&register, 0);
        let one_of = |count: usize| (0..count).any(|old| word(&register, old) == self.0.value);
        let there = |parts: u64| {
            let macs = self.0.known.keys();
            let there: Vec<usize> = macs.map(|at| self.0.part(*at, parts)).collect();
            (0..parts as usize)
                .all(|part| !there.contains(&part) || word(&register, part) == self.0.values[part])
        };
        let same = match self.0.slip {
            Slip::LastTwo => one_of(2),
            Slip::LastFour => one_of(4),
            Slip::LastEight => one_of(8),
            Slip::EmptyBelieved | Slip::HalvesBelieved | Slip::EighthsBelieved => {
                there(self.0.parts().expect("it has parts"))
            }
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
    fn read(&mut self, place: Place, got: Fetched, _after: Step, plan: &mut Plan) -> Fetched {
        let Some((at, number)) = self.0.macs.spot(place) else {
            return got;
        };
        let macs = match self.0.slip {
            Slip::MacsFromMemory => plan.peek(at),
            _ => self.0.known.get(&at).copied(),
        };
        let kept = word(&macs.unwrap_or(ZERO_LINE), number);
        if !self.0.is_right(place, got.value.as_ref(), kept, plan) {
            plan.refuse(place);
            return At::new(None, got.at);
        }
        got
    }

    fn write(&mut self, place: Place, written: Written, plan: &mut Plan) -> Step {
        let Some((at, number)) = self.0.macs.spot(place) else {
            return written.stored.done;
        };
        let beside = written.beside(place, plan);
        let mac = self.0.macs.mac(place, written.line.value, beside);
        let mut macs = self.0.known.get(&at).copied().unwrap_or(ZERO_LINE);
        let mac = match self.0.wraps_at() {
            Some(end) => self
                .0
                .under(mac, (word(&macs, number) & 0xffff) % (end - 1) + 1),
            None => mac,
        };
        macs[number * 8..][..8].copy_from_slice(&mac.to_le_bytes());
        self.0.follow(at, macs);
        let macs = At::new(&macs, written.line.at);
        let kept = plan.write_words(at, macs, 1 << number, None, Step::PAST, Queue::Data);
        plan.group(&[written.stored, kept]);
        plan.both(written.stored.done, kept.done)
    }

    fn holds(&self, place: Place, plan: &Plan) -> bool {
        let Some((at, number)) = self.0.macs.spot(place) else {
            return true;
        };
        let kept = self.0.known.get(&at).map_or(0, |macs| word(macs, number));
        let line = plan.peek(place);
        self.0.is_right(place, line.as_ref(), kept, plan)
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

    fn version_of(&self, place: Place) -> Option<(Place, Range<usize>)> {
        self.0.wraps_at()?;
        let (at, number) = self.0.macs.kept_of(place)?;
        Some((at, 64 * number..64 * number + 16))
    }
}

fn layer<const SLIP: usize>(name: &'static str) -> AnyLayer {
    AnyLayer::Integrity(Box::leak(Box::new(Integrity {
        about: About {
            name,
            cut: "each MAC is atomic with its line; the register follows what is accepted",
            ..About::EMPTY
        },
        build: |_, layout| {
            let macs = Macs::build(own_guard::Slip::Nothing, layout);
            let register = layout.reserve_sparse(REGION, 1);
            Some(Box::new(Rooted(Sum::new(Slip::ALL[SLIP], macs, register))))
        },
        promises: Refuses::ALL,
        settles_groups: true,
        registers: |_| 64,
        power_fail: Some(|_: &Settings, layout: &Layout| {
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

/// The same, under versions that wrap around.
pub fn numbered<const SLIP: usize>(name: &'static str) -> Layers {
    Layers {
        wrong: layer::<SLIP>(name),
        right: layer::<{ Slip::Versions as usize }>("own-versions"),
    }
}
