//! Lines of a hardware log in a region of their own, in chains of cipher feedback, as EASY-PM has them; small and right.
//! A bucket is a line of two initial vectors, a chain of headers and a chain of old lines. A fault is one [`Slip`] in
//! what vectors and chains are made of.

use sardonyx::controller::Top;
use sardonyx::controller::designs::{self, AnyLayer};
use sardonyx::controller::encryption::cfb::{BLOCKS, Block, Feedback};
use sardonyx::controller::layers::{About, Guarantee, Logging, Vectors};
use sardonyx::controller::logging::LOG_REGION;
use sardonyx::controller::logging::easy_pm::FIRST_NONCE;
use sardonyx::controller::logging::undo::{
    BUCKETS, LogEntry, PER_RECORD, RECORDS, Sealing, Spot, TRANSACTIONS, UndoLog, addresses,
};
use sardonyx::line::{Line, Place, ZERO_LINE};
use sardonyx::medium::layout::{Layout, Region};
use sardonyx::plan::{At, Plan, Step, Stored};
use sardonyx::settings::Settings;

use crate::fault::{Layers, slips};

slips! {
    /// What is wrong with vectors and chains.
    Slip {
        Nothing, Plain, KeyOfZeros, VectorReused, OneVector, VectorIsNumber, VectorStepsOn, NumberShort,
        NumberForgotten, NumberOneLow, ChainOfPlaintext, ChainOfFirstBlock,
        VectorsNotAwaited,
    }
}

/// Words of a bucket's line: the number that its vectors are made of, and both vectors.
const NUMBER: usize = 1;
const VECTORS: [usize; 2] = [2, 4];

/// The chains of the bucket that a transaction fills.
#[derive(Clone, Copy, Default)]
struct Filling {
    recent: [Block; 2],
    lines: u64,
    vectors: Step,
}

struct Chains {
    slip: Slip,
    feedback: Feedback,
    region: Region,
    records: u64,
    buckets: u64,
    number: u64,
    filling: Vec<Filling>,
}

fn pitch(settings: &Settings) -> u64 {
    1 + settings.get(&RECORDS) * (1 + PER_RECORD as u64)
}

impl Chains {
    fn new(slip: Slip, settings: &Settings, layout: &mut Layout) -> Chains {
        let keyless = Settings::default();
        let of_key = if slip == Slip::KeyOfZeros {
            &keyless
        } else {
            settings
        };
        let buckets = settings.get(&BUCKETS);
        Chains {
            slip,
            feedback: Feedback::new(of_key),
            region: layout.reserve(LOG_REGION, buckets * pitch(settings)),
            records: settings.get(&RECORDS),
            buckets,
            number: settings.get(&FIRST_NONCE) - 1,
            filling: vec![Filling::default(); settings.get(&TRANSACTIONS) as usize],
        }
    }

    /// Line `index` of `bucket`, of which the first is its own.
    fn line(&self, bucket: u16, index: u64) -> Place {
        let pitch = 1 + self.records * (1 + PER_RECORD as u64);
        self.region.line(u64::from(bucket) * pitch + index)
    }

    fn vector(&self, chain: u8) -> Block {
        let chain = if self.slip == Slip::OneVector {
            0
        } else {
            chain
        };
        let mut plain = [chain; 16];
        plain[..8].copy_from_slice(&self.number.to_be_bytes());
        let number = match self.slip {
            Slip::VectorIsNumber => return plain,
            Slip::VectorStepsOn => {
                let first = u128::from_be_bytes(self.feedback.initial_vector(0, chain));
                return (first + u128::from(self.number)).to_be_bytes();
            }
            Slip::VectorReused => self.number & !1,
            Slip::NumberShort => self.number & 0xffff,
            _ => self.number,
        };
        self.feedback.initial_vector(number, chain)
    }

    fn encrypt(&self, recent: &mut Block, line: &Line) -> Line {
        if self.slip == Slip::Plain {
            return *line;
        }
        let secret = self.feedback.encrypt(recent, line);
        self.chain_on(recent, line, &secret);
        secret
    }

    fn decrypt(&self, recent: &mut Block, secret: &Line) -> Line {
        if self.slip == Slip::Plain {
            return *secret;
        }
        let line = self.feedback.decrypt(recent, secret);
        self.chain_on(recent, &line, secret);
        line
    }

    fn chain_on(&self, recent: &mut Block, line: &Line, secret: &Line) {
        match self.slip {
            Slip::ChainOfPlaintext => *recent = line.as_chunks().0[BLOCKS - 1],
            Slip::ChainOfFirstBlock => *recent = secret.as_chunks().0[0],
            _ => {}
        }
    }

    fn put(
        &mut self,
        (spot, chain, index): (Spot, usize, u64),
        data: At<&Line>,
        plan: &mut Plan,
    ) -> Stored {
        let mut filling = self.filling[spot.slot];
        let gate = match self.slip {
            Slip::VectorsNotAwaited => spot.gate,
            _ => plan.both(spot.gate, filling.vectors),
        };
        let line = self.encrypt(&mut filling.recent[chain], data.value);
        self.filling[spot.slot] = filling;
        plan.write(self.line(spot.bucket, index), At::new(&line, data.at), gate)
    }
}

impl Sealing for Chains {
    fn open(&mut self, spot: Spot, plan: &mut Plan) {
        self.number += 1;
        let recent = [self.vector(0), self.vector(1)];
        let mut line = ZERO_LINE;
        line[NUMBER * 8..][..8].copy_from_slice(&self.number.to_le_bytes());
        for (word, vector) in VECTORS.into_iter().zip(&recent) {
            line[word * 8..][..16].copy_from_slice(vector);
        }
        let stored = plan.write(self.line(spot.bucket, 0), At::past(&line), spot.gate);
        self.filling[spot.slot] = Filling {
            recent,
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
        let index = 1 + self.records + self.filling[spot.slot].lines;
        self.filling[spot.slot].lines += 1;
        self.put((spot, 1, index), data, plan)
    }

    fn header(
        &mut self,
        spot: Spot,
        data: At<&Line>,
        _valid: Step,
        _below: &mut Top,
        plan: &mut Plan,
    ) -> Stored {
        self.put((spot, 0, 1 + spot.record), data, plan)
    }

    fn read(
        &mut self,
        bucket: u16,
        headers: u64,
        _below: &mut Top,
        plan: &mut Plan,
    ) -> Vec<LogEntry> {
        let own = plan.read(self.line(bucket, 0), Step::PAST);
        let bytes = own.value.unwrap_or(ZERO_LINE);
        let vector = |word: usize| -> Block { bytes[word * 8..][..16].try_into().expect("16") };
        let mut recent = VECTORS.map(vector);
        let mut read = |chain: usize, index: u64, plan: &mut Plan| {
            let read = plan.read(self.line(bucket, index), own.at);
            let secret = read.value.unwrap_or(ZERO_LINE);
            At::new(self.decrypt(&mut recent[chain], &secret), read.at)
        };
        let headers = (0..headers).map(|record| read(0, 1 + record, plan));
        let headers: Vec<At<Line>> = headers.collect();
        let lines = headers.iter().flat_map(|header| addresses(&header.value));
        let old = lines.zip(1 + self.records..);
        old.map(|(line, index)| LogEntry {
            line,
            old: read(1, index, plan),
        })
        .collect()
    }

    fn recover(&mut self, plan: &mut Plan) {
        if self.slip == Slip::NumberForgotten {
            return;
        }
        for bucket in 0..self.buckets as u16 {
            let line = plan.scan(self.line(bucket, 0)).unwrap_or(ZERO_LINE);
            let number = u64::from_le_bytes(line.as_chunks().0[NUMBER]);
            self.number = self.number.max(number);
        }
        self.number -= u64::from(self.slip == Slip::NumberOneLow && self.number > 0);
    }
}

fn layer<const SLIP: usize>(name: &'static str) -> AnyLayer {
    let like = designs::loggings().find(|known| known.about.name == "easy-pm");
    let like = like.expect("the log that it is like");
    AnyLayer::Logging(Box::leak(Box::new(Logging {
        about: About { name, ..like.about },
        keeps_log: true,
        lines: |_| 0,
        build: |settings, below, layout| {
            let sealing = Chains::new(Slip::ALL[SLIP], settings, layout);
            let lines = layout.data_lines();
            Box::new(UndoLog::new(sealing, settings, below, lines, layout))
        },
        guarantee: Guarantee::on_demand,
        vectors: |settings, layout| {
            Some(Vectors {
                region: layout.region(LOG_REGION)?.clone(),
                pitch: pitch(settings),
                words: VECTORS[0]..VECTORS[1] + 2,
            })
        },
    })))
}

/// The log with the slip of that number.
pub fn own<const SLIP: usize>(name: &'static str) -> Layers {
    Layers {
        wrong: layer::<SLIP>(name),
        right: layer::<{ Slip::Nothing as usize }>("own-chains"),
    }
}
