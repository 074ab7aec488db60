//! All cuts of a history on several threads, and the run as a whole on one of them. The cuts are divided into pieces of
//! fixed size, so that any number of threads finds the same.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::check::Checker;
use crate::check::later_lives;
use crate::check::whole_run::{WholeRun, whole_run};
use crate::findings::ExploredCuts;
use crate::history::History;
use crate::options::{Cuts, Options};

const PIECE: u64 = 4096;

/// Cuts `history` as `options` say. `progress` is told the cuts done; if it answers false the exploration ends and this
/// returns `None`.
pub fn explore(
    history: &History,
    options: &Options,
    progress: &(dyn Fn(u64) -> bool + Sync),
) -> Option<ExploredCuts> {
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
    let found: Mutex<BTreeMap<u64, ExploredCuts>> = Mutex::default();
    let whole: Mutex<Option<WholeRun>> = Mutex::default();
    let work = || {
        // Images only move forward, and pieces are taken in order, so one checker serves all of a thread.
        let mut checker = Checker::new(history, options, &later_lives::live);
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            if number > pieces || cancelled.load(Ordering::Relaxed) {
                return;
            }
            // The run as a whole comes before the pieces, because it takes longer than any of them.
            let Some(piece) = number.checked_sub(1) else {
                *whole.lock().expect("no thread panics") = Some(whole_run(history, options));
                continue;
            };
            cut_piece(history, options, &sample, piece, &mut checker);
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
        for _ in 1..threads.min(pieces as usize + 1) {
            scope.spawn(work);
        }
        work();
    });
    if cancelled.into_inner() {
        return None;
    }
    let found = found.into_inner().expect("no thread panics");
    // In the order of pieces and not of threads, so that the first violation of a kind is always the same one.
    let mut all = ExploredCuts::default();
    for piece in found.into_values() {
        all.covered.add(piece.covered);
        all.tally.append(piece.tally);
    }
    let whole = whole.into_inner().expect("no thread panics");
    whole.expect("a thread took it").add_to(&mut all);
    Some(all)
}

/// Cuts at each position of a piece; of a sample, at each of the positions that the piece has of it.
fn cut_piece(
    history: &History,
    options: &Options,
    sample: &[u64],
    piece: u64,
    checker: &mut Checker,
) {
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
}

/// Draws `count` positions from the history's seed, and sorts them.
fn drawn(history: &History, count: u64) -> Vec<u64> {
    let mut random = ChaCha8Rng::seed_from_u64(history.seed);
    let mut drawn: Vec<u64> = (0..count)
        .map(|_| random.next_u64() % history.positions())
        .collect();
    drawn.sort_unstable();
    drawn
}
