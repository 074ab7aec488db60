//! An integrity of the tests' own, small and right: a MAC of each line of the medium in a line of its own, in one group
//! with the line, and made on reserve power of what that dumps. It promises to refuse what was changed or moved, not
//! what is old. A fault is one [`Slip`].

use std::collections::VecDeque;
use std::hash::Hasher;

use sardonyx::controller::designs::AnyLayer;
use sardonyx::controller::layers::{About, Integrity, PowerFail, Refuses};
use sardonyx::line::{Line, Place, ZERO_LINE};
use sardonyx::medium::layout::{Layout, Region};
use sardonyx::plan::guard::Guard;
use sardonyx::plan::start_gap::Places;
use sardonyx::plan::storey::Storey;
use sardonyx::plan::{At, Fetched, Plan, Queue, Step, Written};
use sardonyx_base::random::mix;
use siphasher::sip::SipHasher24;

use crate::fault::{Layers, slips};

slips! {
    /// What the MACs do wrong.
    Slip {
        Nothing, WithoutPlace, HalfLine, SkipsLastByte, OneByte, XorOfWords, WithoutBeside, TablesUnverified,
        DataUnverified, NotGrouped, DumpForgotten, DumpWholeLine, GoneBelieved, Place16, Place20, Place32, Bits16,
        Bits32, Bits63, BitsTwice, LateByOne, LateByFour, LateByEight,
        WithoutBit, WithoutByte, Linear, PlaceBit, SortedWords, HalvesAdded, PlaceApart,
    }
}

const PER_LINE: u64 = 8;
const REGION: &str = "own-macs";

#[derive(Clone)]
pub struct Macs {
    slip: Slip,
    /// Each region that is protected, with the number of its first MAC.
    regions: Vec<(Region, u64)>,
    data_lines: u64,
    pub region: Region,
    /// What has been read and is not verified yet.
    pending: VecDeque<Place>,
}

impl Macs {
    /// MACs of all lines of `layout` before the region of MACs, which `reserved` gives.
    fn new(slip: Slip, layout: &Layout, reserved: impl FnOnce(u64) -> Region) -> Macs {
        let data = Region {
            name: "data",
            first: Place(0),
            lines: layout.data_lines(),
        };
        let others = layout
            .regions()
            .iter()
            .take_while(|region| region.name != REGION);
        let (mut regions, mut count) = (Vec::new(), 0);
        for region in std::iter::once(&data).chain(others) {
            regions.push((region.clone(), count));
            count += region.lines.next_multiple_of(PER_LINE);
        }
        Macs {
            slip,
            regions,
            data_lines: layout.data_lines(),
            pending: VecDeque::new(),
            region: reserved(count.div_ceil(PER_LINE)),
        }
    }

    pub fn build(slip: Slip, layout: &mut Layout) -> Macs {
        let mut macs = Macs::new(slip, layout, |lines| Region {
            name: REGION,
            first: Place(0),
            lines,
        });
        macs.region = layout.reserve_sparse(REGION, macs.region.lines);
        macs
    }

    pub fn from_layout(slip: Slip, layout: &Layout) -> Macs {
        let region = layout.region(REGION).expect("it has been reserved").clone();
        Macs::new(slip, layout, |_| region)
    }

    /// The line with the MAC of the line at `place`, and which of its words that is.
    pub fn spot(&self, place: Place) -> Option<(Place, usize)> {
        let (region, first) = self
            .regions
            .iter()
            .find(|(region, _)| region.contains(place))?;
        let number = first + place.0 - region.first.0;
        Some((
            self.region.line(number / PER_LINE),
            (number % PER_LINE) as usize,
        ))
    }

    pub fn mac(&self, place: Place, line: &Line, beside: Option<[u8; 8]>) -> u64 {
        let mut hasher = SipHasher24::new_with_key(b"sardonyx: tests.");
        let bits = match self.slip {
            Slip::WithoutPlace => 0,
            Slip::Place16 => 16,
            Slip::Place20 => 20,
            Slip::Place32 => 32,
            _ => 63,
        };
        let bit = if self.slip == Slip::PlaceBit {
            1 << 29
        } else {
            0
        };
        if self.slip != Slip::PlaceApart {
            hasher.write_u64((place.0 % (1 << bits)) & !bit);
        }
        match self.slip {
            Slip::WithoutBit => {
                let mut line = *line;
                line[37] &= !(1 << 7);
                hasher.write(&line);
            }
            Slip::WithoutByte => {
                let mut line = *line;
                line[41] = 0;
                hasher.write(&line);
            }
            Slip::Linear => {}
            Slip::SortedWords => {
                let mut words: [[u8; 8]; 8] = line.as_chunks().0.try_into().expect("a line");
                words.sort_unstable();
                hasher.write(words.as_flattened());
            }
            Slip::HalvesAdded => {
                let words: Vec<u64> = (0..8).map(|at| word(line, at)).collect();
                (0..4).for_each(|at| hasher.write_u64(words[at].wrapping_add(words[at + 4])));
            }
            Slip::HalfLine => hasher.write(&line[..32]),
            Slip::SkipsLastByte => hasher.write(&line[..63]),
            Slip::XorOfWords => {
                let words = line.as_chunks::<8>().0.iter();
                hasher.write_u64(words.fold(0, |all, word| all ^ u64::from_le_bytes(*word)));
            }
            _ => hasher.write(line),
        }
        if self.slip != Slip::WithoutBeside {
            hasher.write(&beside.unwrap_or_default());
        }
        let mac = hasher.finish().max(1);
        match self.slip {
            Slip::OneByte => mac & 0xff | 1,
            Slip::PlaceApart => mac ^ mix(place.0),
            Slip::Linear => {
                let words = line.as_chunks::<8>().0.iter().zip(0..);
                let words = words.map(|(word, at)| u64::from_le_bytes(*word).rotate_left(7 * at));
                words.fold(mac, |all, word| all ^ word)
            }
            Slip::Bits16 => mix(mac & 0xffff) | 1,
            Slip::Bits32 => mac & 0xffff_ffff | 1,
            Slip::Bits63 => mac | 1 << 63,
            Slip::BitsTwice => mac << 32 | mac & 0xffff_ffff | 1,
            _ => mac,
        }
    }

    fn is_verified(&self, place: Place) -> bool {
        match self.slip {
            Slip::TablesUnverified => place.0 < self.data_lines,
            Slip::DataUnverified => place.0 >= self.data_lines,
            _ => true,
        }
    }

    /// Reads that are not verified at once.
    fn late(&self) -> usize {
        match self.slip {
            Slip::LateByOne => 1,
            Slip::LateByFour => 4,
            Slip::LateByEight => 8,
            _ => 0,
        }
    }

    pub fn is_right(&self, place: Place, line: Option<&Line>, kept: u64, plan: &Plan) -> bool {
        match line {
            None => self.slip == Slip::GoneBelieved || kept == 0,
            Some(line) => self.mac(place, line, plan.peek_sideband(place)) == kept,
        }
    }
}

pub fn word(line: &Line, number: usize) -> u64 {
    u64::from_le_bytes(line.as_chunks().0[number])
}

impl Storey for Macs {}

impl Guard for Macs {
    fn read(&mut self, place: Place, got: Fetched, after: Step, plan: &mut Plan) -> Fetched {
        let Some((at, number)) = self.spot(place).filter(|_| self.is_verified(place)) else {
            return got;
        };
        if self.late() > 0 {
            self.pending.push_back(place);
            while self.pending.len() > self.late() {
                let place = self.pending.pop_front().expect("one more than may wait");
                if !self.holds(place, plan) {
                    plan.refuse(place);
                }
            }
            return got;
        }
        let macs = plan.read(at, after);
        let at = plan.both(got.at, macs.at);
        let kept = word(&macs.value.unwrap_or(ZERO_LINE), number);
        if !self.is_right(place, got.value.as_ref(), kept, plan) {
            plan.refuse(place);
            return At::new(None, at);
        }
        At::new(got.value, at)
    }

    fn write(&mut self, place: Place, written: Written, plan: &mut Plan) -> Step {
        let Some((at, number)) = self.spot(place) else {
            return written.stored.done;
        };
        let beside = written.beside(place, plan);
        let mut macs = ZERO_LINE;
        let mac = self.mac(place, written.line.value, beside);
        macs[number * 8..][..8].copy_from_slice(&mac.to_le_bytes());
        let macs = At::new(&macs, written.line.at);
        let kept = plan.write_words(at, macs, 1 << number, None, Step::PAST, Queue::Data);
        if self.slip != Slip::NotGrouped {
            plan.group(&[written.stored, kept]);
        }
        plan.both(written.stored.done, kept.done)
    }

    fn holds(&self, place: Place, plan: &Plan) -> bool {
        let Some((at, number)) = self.spot(place) else {
            return true;
        };
        let kept = word(&plan.peek(at).unwrap_or(ZERO_LINE), number);
        self.is_right(place, plan.peek(place).as_ref(), kept, plan)
    }
}

impl PowerFail for Macs {
    fn begin(&mut self, _image: &mut Places) {}

    fn accepted(&mut self, _place: Place, _image: &mut Places) {}

    fn dumped(&mut self, place: Place, image: &mut Places) {
        let spot = self
            .spot(place)
            .filter(|_| self.slip != Slip::DumpForgotten);
        let (Some((at, number)), Some(line)) = (spot, image.read(place)) else {
            return;
        };
        let mut macs = ZERO_LINE;
        let mac = self.mac(place, &line, image.sideband(place));
        macs[number * 8..][..8].copy_from_slice(&mac.to_le_bytes());
        let words = if self.slip == Slip::DumpWholeLine {
            0xff
        } else {
            1 << number
        };
        image.write(at, &macs, words, None);
    }

    fn on_chip(&self) -> Option<&Region> {
        None
    }

    fn kept_of(&self, place: Place) -> Option<(Place, usize)> {
        self.spot(place)
    }
}

fn layer<const SLIP: usize>(name: &'static str) -> AnyLayer {
    AnyLayer::Integrity(Box::leak(Box::new(Integrity {
        about: About {
            name,
            cut: "each MAC is atomic with its line",
            ..About::EMPTY
        },
        build: |_, layout| Some(Box::new(Macs::build(Slip::ALL[SLIP], layout))),
        settles_groups: false,
        promises: Refuses {
            tamper: true,
            splice: true,
            ..Refuses::NOTHING
        },
        registers: |_| 0,
        power_fail: Some(|_, layout| Box::new(Macs::from_layout(Slip::ALL[SLIP], layout))),
    })))
}

/// The MACs with the slip of that number.
pub fn own<const SLIP: usize>(name: &'static str) -> Layers {
    Layers {
        wrong: layer::<SLIP>(name),
        right: layer::<{ Slip::Nothing as usize }>("own-macs"),
    }
}
