//! All cuts of a history, on as many threads as there are: the work is cut into pieces of fixed
//! size, so that the same is found whoever does which.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::audit;
use super::caught::caught;
use super::check::{Checker, Covered};
use super::history::{History, HistoryError};
use super::platform::{Platform, Tear};
use super::secrecy;
use super::violation::{Kind, Tally, Violation};

/// Positions of a piece.
const PIECE: u64 = 4096;

/// At which positions of a history the power is cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cuts {
    /// At every position.
    All,
    /// At so many positions, drawn from the seed.
    Sample(u64),
    /// At this position alone.
    One(u64),
}

impl Cuts {
    /// An error, with the remedy, unless `history` has such cuts.
    ///
    /// # Errors
    /// A position beyond its last, or more cuts to draw than it has positions.
    pub fn check(self, history: &History) -> Result<(), HistoryError> {
        let there = history.positions();
        let last = there - 1;
        match self {
            Cuts::One(position) if position > last => Err(HistoryError::Cuts(format!(
                "cut {position}: the run has positions 0 to {last}; give one of them"
            ))),
            Cuts::Sample(count) if count > there => Err(HistoryError::Cuts(format!(
                "{count} cuts: the run has {there} positions; ask for fewer, or for all"
            ))),
            _ => Ok(()),
        }
    }

    /// How many positions of `history` are cut.
    pub fn count(self, history: &History) -> u64 {
        match self {
            Cuts::All => history.positions(),
            Cuts::Sample(count) => count,
            Cuts::One(_) => 1,
        }
    }
}

/// How to explore.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// What reserve power drains.
    pub platform: Platform,
    /// Which cuts.
    pub cuts: Cuts,
    /// From one state in so many life goes on, and is cut at every position as well; 0: from none.
    pub recovery_cuts: u64,
    /// One position in so many is looked at in full, whatever the cut has changed; 1 for each.
    pub full_one_in: u64,
    /// What of a line that is being accepted is atomic.
    pub tear: Tear,
    /// Threads; 0 for one a processor.
    pub threads: usize,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            platform: Platform::Adr,
            cuts: Cuts::All,
            recovery_cuts: 256,
            full_one_in: 509,
            tear: Tear::Lines,
            threads: 0,
        }
    }
}

/// What exploring has shown.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Explored {
    /// What has been looked at.
    pub covered: Covered,
    /// Violations by kind, with the first of each.
    pub tally: Tally,
}

/// Cuts `history` as `options` say; `progress` is told the cuts done and may end it by answering
/// false, which gives nothing.
pub fn explore(
    history: &History,
    options: &Options,
    progress: &(dyn Fn(u64) -> bool + Sync),
) -> Option<Explored> {
    let pieces = options.cuts.count(history).div_ceil(PIECE);
    let sample = match options.cuts {
        Cuts::All => Vec::new(),
        Cuts::Sample(count) => drawn(history, count),
        Cuts::One(position) => vec![position],
    };
    let threads = match options.threads {
        0 => std::thread::available_parallelism().map_or(1, usize::from),
        threads => threads,
    };
    let (next, done) = (AtomicU64::new(0), AtomicU64::new(0));
    let cancelled = AtomicBool::new(false);
    let found: Mutex<BTreeMap<u64, Explored>> = Mutex::default();
    let work = || {
        let mut checker = Checker::new(history, options);
        loop {
            let piece = next.fetch_add(1, Ordering::Relaxed);
            if piece >= pieces || cancelled.load(Ordering::Relaxed) {
                return;
            }
            let (from, to) = (piece * PIECE, (piece + 1) * PIECE);
            match options.cuts {
                Cuts::All => {
                    checker.skip_to(from);
                    checker.look();
                    for _ in from + 1..to.min(history.positions()) {
                        checker.step();
                    }
                }
                Cuts::Sample(_) | Cuts::One(_) => {
                    for position in sample.iter().take(to as usize).skip(from as usize) {
                        checker.skip_to(*position);
                        checker.look();
                    }
                }
            }
            let explored = std::mem::take(&mut checker.explored);
            let cuts = explored.covered.cuts;
            let mut found = found.lock().expect("no thread panics");
            found.insert(piece, explored);
            drop(found);
            if !progress(done.fetch_add(cuts, Ordering::Relaxed) + cuts) {
                cancelled.store(true, Ordering::Relaxed);
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 1..threads.min(pieces as usize) {
            scope.spawn(work);
        }
        work();
    });
    if cancelled.into_inner() {
        return None;
    }
    let found = found.into_inner().expect("no thread panics");
    let mut all = Explored::default();
    for piece in found.into_values() {
        all.covered.add(piece.covered);
        all.tally.append(piece.tally);
    }
    whole_run(history, options, &mut all.tally);
    Some(all)
}

/// What the run as a whole shows, without any cut; of one cut, what is first seen there.
pub fn whole_run(history: &History, options: &Options, tally: &mut Tally) {
    let audits: [&dyn Fn() -> Vec<Violation>; 3] = [
        &|| audit::array_writes(history),
        &|| audit::pairs(history, options.platform),
        &|| secrecy::within(history),
    ];
    for audit in audits {
        let found = caught(audit).unwrap_or_else(|what| {
            let at = history.positions() - 1;
            vec![Violation::new(Kind::RunEnded, at, what)]
        });
        for violation in found {
            match options.cuts {
                Cuts::One(position) if position != violation.position => {}
                _ => tally.add(violation),
            }
        }
    }
}

/// `count` positions in order, drawn from the history's seed.
fn drawn(history: &History, count: u64) -> Vec<u64> {
    let mut random = ChaCha8Rng::seed_from_u64(history.seed);
    let mut drawn: Vec<u64> = (0..count)
        .map(|_| random.next_u64() % history.positions())
        .collect();
    drawn.sort_unstable();
    drawn
}
