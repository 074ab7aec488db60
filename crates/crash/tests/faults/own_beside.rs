//! Two encryption policies of the tests' own that keep counters in the eight bytes beside each line, small and right: one
//! draws from a global counter (co-located counters), the other counts each line's writes and keeps the ciphertext of
//! words that stay (DEUCE, with words of eight bytes and epochs of eight writes). A fault is one [`Slip`].

use sardonyx::controller::designs::{self, AnyLayer};
use sardonyx::controller::encryption::global_counter::{FIRST_COUNTER, GlobalCounter};
use sardonyx::controller::encryption::pad::Pads;
use sardonyx::controller::layers::{About, Policy};
use sardonyx::controller::{Class, Encryption, Layer, Storey, Write};
use sardonyx::line::{Line, Place};
use sardonyx::medium::layout::Layout;
use sardonyx::plan::{At, Fetched, Plan, Queue, Step, Stored};
use sardonyx::settings::Settings;

use crate::fault::{Layers, slips};

slips! {
    /// What the policy does wrong.
    Slip {
        Nothing, CounterKeptInFlight, CounterShort, ShowsDigest, CounterNotRecovered, BitNotSet,
        BitNotStored, BitsCleared, LowBitUnseen, EpochKeeps, Counter16,
    }
}

/// Counters of all lines are drawn from one.
struct CoLocated {
    slip: Slip,
    pads: Pads,
    global: GlobalCounter,
}

impl Storey for CoLocated {
    fn recover(&mut self, plan: &mut Plan) {
        if self.slip != Slip::CounterNotRecovered {
            self.global.recover(|_| 0, plan);
        }
    }
}

impl Layer for CoLocated {
    type Addr = Place;

    fn read(&mut self, a: Place, _class: Class, after: Step, plan: &mut Plan) -> Fetched {
        let stored = plan.read(a, after);
        let mut counter = plan.peek_sideband(a).map_or(0, u64::from_le_bytes);
        if self.slip == Slip::ShowsDigest {
            counter &= 0xffff_ffff;
        }
        let line = stored.value.filter(|_| counter != 0);
        At::new(
            line.map(|line| self.pads.crypt(a, counter, &line)),
            stored.at,
        )
    }

    fn write(&mut self, write: Write<Place>, plan: &mut Plan) -> Stored {
        let a = write.at;
        let mut next = self.global.next(plan);
        let in_flight = plan.under_way(a) != Stored::at(Step::PAST);
        if self.slip == Slip::CounterKeptInFlight && in_flight {
            next.value = plan.peek_sideband(a).map_or(next.value, u64::from_le_bytes);
        }
        let gate = plan.both(write.gate, next.at);
        let line = self.pads.crypt(a, next.value, write.data.value);
        let mut beside = next.value.to_le_bytes();
        match self.slip {
            Slip::CounterShort => beside[4..].fill(0),
            Slip::ShowsDigest => {
                let digest = crc32fast::hash(write.data.value);
                beside[4..].copy_from_slice(&digest.to_le_bytes());
            }
            _ => {}
        }
        let line = At::new(&line, write.data.at);
        let stored = plan.write_words(a, line, 0xff, Some(beside), gate, Queue::Data);
        plan.sealed(stored, a, next.value, None);
        stored
    }

    fn persist_metadata(&mut self, _a: Place, after: Step, _plan: &mut Plan) -> Stored {
        Stored::at(after)
    }
}

/// Writes of a line before all of its words are encrypted anew.
const EPOCH: u64 = 8;
const WORD: usize = 8;

/// A line's counter, and the words that have changed since its epoch began.
#[derive(Clone, Copy)]
struct Beside {
    counter: u32,
    changed: u32,
}

impl Beside {
    fn from_bytes(bytes: [u8; 8]) -> Beside {
        let both = u64::from_le_bytes(bytes);
        Beside {
            counter: both as u32,
            changed: (both >> 32) as u32,
        }
    }

    fn bytes(self) -> [u8; 8] {
        (u64::from(self.counter) | u64::from(self.changed) << 32).to_le_bytes()
    }
}

struct Words {
    slip: Slip,
    pads: Pads,
    first: u64,
}

impl Words {
    /// Words that have changed lie under the line's counter, others under the first of the epoch.
    fn crypt(&self, a: Place, beside: Beside, line: &Line) -> Line {
        let counter = u64::from(beside.counter);
        let newer = self.pads.crypt(a, counter, line);
        let mut out = self.pads.crypt(a, counter & !(EPOCH - 1), line);
        for word in (0..8).filter(|word| beside.changed >> word & 1 == 1) {
            let bytes = word * WORD..(word + 1) * WORD;
            out[bytes.clone()].copy_from_slice(&newer[bytes]);
        }
        out
    }

    fn changed(&self, old: &Line, new: &Line) -> u32 {
        let words = old.chunks(WORD).zip(new.chunks(WORD)).enumerate();
        let differ = words.filter(|(_, (old, new))| match self.slip {
            Slip::LowBitUnseen => old.iter().zip(*new).any(|(old, new)| old >> 1 != new >> 1),
            _ => old != new,
        });
        differ.fold(0, |bits, (word, _)| bits | 1 << word)
    }
}

impl Storey for Words {}

impl Layer for Words {
    type Addr = Place;

    fn read(&mut self, a: Place, _class: Class, after: Step, plan: &mut Plan) -> Fetched {
        let stored = plan.read(a, after);
        let beside = plan.peek_sideband(a).map(Beside::from_bytes);
        let line = stored.value.zip(beside);
        At::new(
            line.map(|(line, beside)| self.crypt(a, beside, &line)),
            stored.at,
        )
    }

    fn write(&mut self, write: Write<Place>, plan: &mut Plan) -> Stored {
        let (a, new) = (write.at, write.data.value);
        let found = plan.read(a, write.data.at);
        let old = found
            .value
            .zip(plan.peek_sideband(a).map(Beside::from_bytes));
        let last = old.map_or(0, |(_, beside)| u64::from(beside.counter));
        let next = (last + 1).max(self.first);
        let begins = last == 0 || next / EPOCH != last / EPOCH;
        let counter = if begins {
            next.next_multiple_of(EPOCH)
        } else {
            next
        };
        let mut changed = match old {
            Some((line, beside)) if !begins || self.slip == Slip::EpochKeeps => {
                let differ = self.changed(&self.crypt(a, beside, &line), new);
                let kept = if self.slip == Slip::BitsCleared || begins {
                    0
                } else {
                    beside.changed
                };
                kept | differ
            }
            _ => 0,
        };
        if self.slip == Slip::BitNotSet {
            changed &= !2;
        }
        let mut beside = Beside {
            counter: counter as u32,
            changed,
        };
        let mut line = self.crypt(a, beside, new);
        match (self.slip, old) {
            (Slip::BitNotStored, _) => beside.changed &= !2,
            (Slip::Counter16, _) => beside.counter &= 0xffff,
            (Slip::EpochKeeps, Some((kept, _))) if begins => {
                for word in (0..8).filter(|word| changed >> word & 1 == 0) {
                    let bytes = word * WORD..(word + 1) * WORD;
                    line[bytes.clone()].copy_from_slice(&kept[bytes]);
                }
            }
            _ => {}
        }
        let line = At::new(&line, found.at);
        let spare = Some(beside.bytes());
        let stored = plan.write_words(a, line, 0xff, spare, write.gate, Queue::Data);
        plan.sealed(stored, a, counter, None);
        stored
    }

    fn persist_metadata(&mut self, _a: Place, after: Step, _plan: &mut Plan) -> Stored {
        Stored::at(after)
    }
}

fn like(
    like: &str,
    name: &'static str,
    build: fn(&Settings, &mut Layout) -> Encryption,
) -> AnyLayer {
    let like = designs::policies().find(|known| known.about.name == like);
    let like = like.expect("the policy that it is like");
    AnyLayer::Policy(Box::leak(Box::new(Policy {
        about: About { name, ..like.about },
        build,
        ..*like
    })))
}

fn co_located_layer<const SLIP: usize>(name: &'static str) -> AnyLayer {
    like("co-located", name, |settings, layout| {
        Box::new(CoLocated {
            slip: Slip::ALL[SLIP],
            pads: Pads::new(settings),
            global: GlobalCounter::new(settings, layout),
        })
    })
}

/// The counter beside each line, with the slip of that number.
pub fn co_located<const SLIP: usize>(name: &'static str) -> Layers {
    Layers {
        wrong: co_located_layer::<SLIP>(name),
        right: co_located_layer::<{ Slip::Nothing as usize }>("own-co-located"),
    }
}

fn words_layer<const SLIP: usize>(name: &'static str) -> AnyLayer {
    like("deuce", name, |settings, _| {
        Box::new(Words {
            slip: Slip::ALL[SLIP],
            pads: Pads::new(settings),
            first: settings.get(&FIRST_COUNTER),
        })
    })
}

/// Words that keep their ciphertext, with the slip of that number.
pub fn words<const SLIP: usize>(name: &'static str) -> Layers {
    Layers {
        wrong: words_layer::<SLIP>(name),
        right: words_layer::<{ Slip::Nothing as usize }>("own-words"),
    }
}
