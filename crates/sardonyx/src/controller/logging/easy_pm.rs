//! EASY-PM's log: lines in a region of their own, encrypted by cipher feedback, so that none of them needs a
//! counter. Source: EASY-PM Sec. III-C and III-D. Left out: the log manager itself, which is ATOM's.
//!
//! A bucket is a line of its own, a chain of headers and a chain of old lines, each with an initial vector.
//! The bucket's line holds both vectors, written once when a transaction takes the bucket, and the number
//! of valid headers (VHN), written with each header or left to the registers. A chain's recent ciphertext (RC) is in a register.
//! The old lines of a record follow those of the record before; a record that is not full has no empty ones.

use super::LOG_REGION;
use super::undo::{self, LogEntry, PER_RECORD, Sealing, Spot, UndoLog, addresses};
use crate::controller::Top;
use crate::controller::encryption::cfb::{BLOCKS, Block, Feedback};
use crate::controller::layers::{About, Design, File, Guarantee, Limit, Logging, Reached, Vectors};
use crate::line::{Line, Place, ZERO_LINE};
use crate::mechanisms::{ENDED_FULL, mechanisms};
use crate::medium::layout::{Layout, Region};
use crate::medium::params::Unit;
use crate::plan::{At, Plan, Queue, Step, Stored};
use crate::settings::{AnyKey, Settings, keys, words};
use crate::stats::Cause;

/// The place of the number of valid headers of the bucket that is being filled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Valid {
    /// The transaction's registers have it, which reserve power dumps.
    Registers,
    /// The bucket's line has it, which is written once for each header.
    Medium,
    /// Both have it; a recovery believes the bucket's.
    Both,
}

words!(Valid { "registers" => Registers, "medium" => Medium, "both" => Both });

keys! {
    FIRST_NONCE: u64 = int("easy_pm.first_nonce", (1, 1 << 62), 1),
        Source("for the crash explorer: a machine that has run for long"),
        "The first number that vectors are made of where the medium shows no greater";
    CFB_SERIAL: bool = flag("easy_pm.cfb_serial", false),
        Source("EASY-PM Table I has 40 ns whatever is encrypted; the chain of CFB is serial"),
        "A log line takes the AES unit for its four blocks one after the other, not for one latency";
    VALID_HEADERS: Valid = word("easy_pm.valid_headers", "both"),
        Assumed("EASY-PM III-D has VHN in the bucket and ATOM's registers; it does not say when it is written"),
        "Where the number of a bucket's valid headers is: in registers that reserve power dumps, in the \
         bucket's line (a write a header), or in both";
}

static KEYS: [&dyn AnyKey; 10] = [
    &undo::TRANSACTIONS,
    &undo::RECORDS,
    &undo::BUCKETS,
    &undo::FIRST_BUCKET,
    &FIRST_NONCE,
    &undo::REUSE,
    &undo::PLACEMENT,
    &undo::TIMEOUT,
    &CFB_SERIAL,
    &VALID_HEADERS,
];

mechanisms! {
    VECTORS_MADE = "vectors made", least 30;
    HEADER_COUNTED = "headers counted in the medium", least 30,
        under |settings| settings.get(&VALID_HEADERS) != Valid::Registers;
}

/// The layers and designs of this file.
pub static FILE: File<Logging> = File {
    layers: &[Logging {
        about: About {
            name: "easy-pm",
            keys: &KEYS,
            units: &[Unit::Aes],
            figures: &[undo::FIGURES],
            cut: undo::CUT,
            tries: &[undo::MECHANISMS, &[&ENDED_FULL], MECHANISMS],
            limits: LIMITS,
        },
        keeps_log: true,
        lines: |_| 0,
        build: |settings, below, layout| {
            let sealing = Chained::new(settings, layout);
            let programs = layout.data_lines();
            Box::new(UndoLog::new(sealing, settings, below, programs, layout))
        },
        guarantee: Guarantee::on_demand,
        vectors: |settings, layout| {
            Some(Vectors {
                region: layout.region(LOG_REGION)?.clone(),
                pitch: pitch(settings),
                words: HEADER_IV..DATA_IV + size_of::<Block>() / 8,
            })
        },
    }],
    designs: &[Design {
        name: "easy-pm",
        source: "EASY-PM",
        line: "a hardware undo log in cipher-feedback mode over data in counter mode",
        stack: "easy-pm/identity+sca",
    }],
};

const LIMITS: &[Limit] = &[
    undo::BUCKETS_NAMED,
    undo::BUCKET_NUMBERS,
    Limit {
        name: "numbers that vectors are made of",
        bits: 64,
        begins: Some(&FIRST_NONCE),
        pads: true,
        reached: Reached::Near {
            bits: &[16, 32, 56],
            below: 8,
        },
    },
    Limit::unreached(
        "the last number that vectors are made of",
        64,
        "it takes 2^64 buckets",
    ),
];

fn pitch(settings: &Settings) -> u64 {
    undo::pitch(
        settings,
        1 + settings.get(&undo::RECORDS) * (1 + PER_RECORD as u64),
    )
}

const VALID: usize = 0;
const NONCE: usize = 1;
const HEADER_IV: usize = 2;
const DATA_IV: usize = 4;

#[derive(Clone, Copy, Default)]
struct Chain {
    recent: Block,
    known: Step,
}

#[derive(Clone, Copy, Default)]
struct LastBucket {
    headers: Chain,
    data: Chain,
    lines: u64,
    vectors: Step,
}

struct Chained {
    feedback: Feedback,
    serial: bool,
    valid: Valid,
    region: Region,
    pitch: u64,
    records: u64,
    buckets: u64,
    nonce: u64,
    filling: Vec<LastBucket>,
}

impl Chained {
    fn new(settings: &Settings, layout: &mut Layout) -> Chained {
        let (records, buckets) = (settings.get(&undo::RECORDS), settings.get(&undo::BUCKETS));
        let pitch = pitch(settings);
        Chained {
            feedback: Feedback::new(settings),
            serial: settings.get(&CFB_SERIAL),
            valid: settings.get(&VALID_HEADERS),
            region: layout.reserve(LOG_REGION, buckets * pitch),
            pitch,
            records,
            buckets,
            nonce: settings.get(&FIRST_NONCE) - 1,
            filling: vec![LastBucket::default(); settings.get(&undo::TRANSACTIONS) as usize],
        }
    }

    fn bucket(&self, bucket: u16) -> Place {
        self.region.line(u64::from(bucket) * self.pitch)
    }

    fn header_at(&self, bucket: u16, record: u64) -> Place {
        Place(self.bucket(bucket).0 + 1 + record)
    }

    fn data_at(&self, bucket: u16, index: u64) -> Place {
        Place(self.bucket(bucket).0 + 1 + self.records + index)
    }

    /// Uses the AES unit for a line whose first block can begin after `after`.
    fn aes(&self, after: Step, plan: &mut Plan) -> Step {
        let mut plan = plan.because(Cause::Encryption);
        let mut done = plan.unit(Unit::Aes, after);
        for _ in 1..BLOCKS {
            if self.serial {
                done = plan.unit_again(Unit::Aes, done);
            }
        }
        done
    }

    /// Encrypts the next line of one of the chains of `slot`, and writes it.
    fn put(
        &mut self,
        spot: Spot,
        chain: fn(&mut LastBucket) -> &mut Chain,
        place: Place,
        data: At<&Line>,
        plan: &mut Plan,
    ) -> Stored {
        let gate = plan.both(spot.gate, self.filling[spot.slot].vectors);
        let before = chain(&mut self.filling[spot.slot]).known;
        let begun = plan.both(data.at, before);
        let known = self.aes(begun, plan);
        let chain = chain(&mut self.filling[spot.slot]);
        chain.known = known;
        let line = self.feedback.encrypt(&mut chain.recent, data.value);
        plan.write(place, At::new(&line, known), gate)
    }
}

impl Sealing for Chained {
    fn counts_in_registers(&self) -> bool {
        self.valid != Valid::Medium
    }

    fn open(&mut self, spot: Spot, plan: &mut Plan) {
        self.nonce += 1;
        plan.exercise(&VECTORS_MADE);
        let vector = |chain| self.feedback.initial_vector(self.nonce, chain);
        let (headers, data) = (vector(0), vector(1));
        let mut line = ZERO_LINE;
        let words = line.as_chunks_mut::<8>().0;
        words[NONCE] = self.nonce.to_le_bytes();
        line[HEADER_IV * 8..][..16].copy_from_slice(&headers);
        line[DATA_IV * 8..][..16].copy_from_slice(&data);
        let made = plan.because(Cause::Encryption).unit(Unit::Aes, Step::PAST);
        let stored = plan.write(self.bucket(spot.bucket), At::new(&line, made), spot.gate);
        let chain = |recent| Chain {
            recent,
            known: made,
        };
        self.filling[spot.slot] = LastBucket {
            headers: chain(headers),
            data: chain(data),
            lines: 0,
            vectors: stored.accepted,
        };
    }

    fn old(
        &mut self,
        spot: Spot,
        _entry: usize,
        data: At<&Line>,
        _below: &mut Top,
        plan: &mut Plan,
    ) -> Stored {
        let filling = &mut self.filling[spot.slot];
        let index = filling.lines;
        filling.lines += 1;
        let place = self.data_at(spot.bucket, index);
        self.put(spot, |filling| &mut filling.data, place, data, plan)
    }

    fn header(
        &mut self,
        spot: Spot,
        data: At<&Line>,
        valid: Step,
        _below: &mut Top,
        plan: &mut Plan,
    ) -> Stored {
        let place = self.header_at(spot.bucket, spot.record);
        let stored = self.put(spot, |filling| &mut filling.headers, place, data, plan);
        if self.valid == Valid::Registers {
            return stored;
        }
        let mut line = ZERO_LINE;
        line[VALID * 8..][..8].copy_from_slice(&(spot.record + 1).to_le_bytes());
        plan.exercise(&HEADER_COUNTED);
        let after = plan.both(stored.accepted, valid);
        let counted = plan.write_words(
            self.bucket(spot.bucket),
            At::past(&line),
            1 << VALID,
            None,
            after,
            Queue::Data,
        );
        stored.and(counted, plan)
    }

    fn read(
        &mut self,
        bucket: u16,
        headers: u64,
        _below: &mut Top,
        plan: &mut Plan,
    ) -> Vec<LogEntry> {
        let own = plan.read(self.bucket(bucket), Step::PAST);
        let bytes = own.value.unwrap_or(ZERO_LINE);
        let (words, _) = bytes.as_chunks::<8>();
        let valid = match self.valid {
            Valid::Registers => headers,
            Valid::Medium | Valid::Both => u64::from_le_bytes(words[VALID]).min(self.records),
        };
        let vector =
            |word: usize| -> Block { bytes[word * 8..][..16].try_into().expect("16 bytes") };
        let (mut recent, mut known) = (vector(HEADER_IV), own.at);
        let next = |place, recent: &mut Block, known: &mut Step, plan: &mut Plan| {
            let read = plan.read(place, own.at);
            let line = self
                .feedback
                .decrypt(recent, &read.value.unwrap_or(ZERO_LINE));
            // The ciphertext before it is all that its pad hangs on, and that of its own first blocks.
            let pad = plan.both(*known, read.at);
            *known = read.at;
            At::new(line, plan.because(Cause::Encryption).unit(Unit::Aes, pad))
        };
        let headers: Vec<At<Line>> = (0..valid)
            .map(|record| {
                next(
                    self.header_at(bucket, record),
                    &mut recent,
                    &mut known,
                    plan,
                )
            })
            .collect();
        (recent, known) = (vector(DATA_IV), own.at);
        let lines = headers.iter().flat_map(|header| addresses(&header.value));
        let places = (0..self.records * PER_RECORD as u64).map(|index| self.data_at(bucket, index));
        lines
            .zip(places)
            .map(|(line, place)| LogEntry {
                line,
                old: next(place, &mut recent, &mut known, plan),
            })
            .collect()
    }

    fn recover(&mut self, plan: &mut Plan) {
        let nonce = |bucket| {
            let line = plan.scan(self.bucket(bucket)).unwrap_or(ZERO_LINE);
            u64::from_le_bytes(line.as_chunks().0[NONCE])
        };
        let greatest = (0..self.buckets as u16).map(nonce).max();
        self.nonce = self.nonce.max(greatest.unwrap_or(0));
    }

    fn register_bytes(&self) -> u64 {
        (self.filling.len() * 2 * size_of::<Block>()) as u64
    }
}
