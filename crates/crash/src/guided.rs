//! Guided schedules: runs that come to a new pair (an event, and a write in flight at that moment) are kept and changed
//! a little, over and over. A run is cut where it comes to a new pair and for a while after it; a run that comes to
//! none is not cut at all, so many can be tried. A generation is complete before its results are used, so any number of
//! threads gives the same.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rustc_hash::FxHashSet;
use sardonyx_base::random::mix;

use super::asked::Options;
use super::caught::caught;
use super::check::Checker;
use super::found::Explored;
use super::history::{History, HistoryError};
use super::nested;
use super::pairs::pairs;
use super::report::OneRun;
use super::whole::whole_run;
use sardonyx::plan::script::{Script, Scripting};

/// Runs of a generation.
const GENERATION: u64 = 8;
/// Positions that are cut from that of a new pair on, and before it.
const AFTER: u64 = 48;
const BEFORE: u64 = 4;
/// The longest that a changed schedule holds a write, and makes a core pause.
const LONGEST_NS: u64 = 6000;
const LONGEST_PAUSE: u64 = 2048;
/// Changes of a schedule at most, and neighbours that one concerns.
const CHANGES: u64 = 6;
const NEIGHBOURS: u64 = 12;

/// A run that came to a pair that was new.
struct Kept {
    /// The number of its pass.
    pass: usize,
    question: OneRun,
    script: Script,
}

/// What one changed run has shown.
pub(super) struct Changed {
    /// The number of the run's pass.
    pub pass: usize,
    /// The run, with its script.
    pub question: OneRun,
    /// What the cuts at new pairs have found, or why there is no run.
    pub answer: Result<(History, Explored), HistoryError>,
}

/// What runs have come to.
pub(super) struct Guide {
    seed: u64,
    threads: usize,
    seen: FxHashSet<u64>,
    kept: Vec<Kept>,
    /// Runs made.
    pub runs: u64,
}

/// What came of a run: new pairs and where, its script, and what cuts there have found.
struct Made {
    question: OneRun,
    pass: usize,
    pairs: Vec<(u64, u64)>,
    script: Script,
    answer: Result<(History, Explored), HistoryError>,
}

impl Guide {
    /// A search that knows no pairs yet; `seed` is a plan's first.
    pub fn new(seed: u64, threads: usize) -> Guide {
        Guide {
            seed,
            threads,
            seen: FxHashSet::default(),
            kept: Vec::new(),
            runs: 0,
        }
    }

    /// The number of pairs seen.
    pub fn pairs(&self) -> u64 {
        self.seen.len() as u64
    }

    /// Begins with the runs of a plan's passes, which have been cut. Returns false if `going` has ended it by answering
    /// false.
    pub fn begin(
        &mut self,
        passes: Vec<(usize, OneRun)>,
        going: &(dyn Fn() -> bool + Sync),
    ) -> bool {
        let Some(made) = self.make(passes, false, going) else {
            return false;
        };
        for made in made {
            self.take(made);
        }
        true
    }

    /// One generation of at most `most` changed runs: those that came to a new pair. `None` if `going` has ended it.
    pub fn generation(
        &mut self,
        most: u64,
        going: &(dyn Fn() -> bool + Sync),
    ) -> Option<Vec<Changed>> {
        if self.kept.is_empty() {
            self.runs += most;
            return Some(Vec::new());
        }
        let first = self.runs;
        let numbers = first..first + most.min(GENERATION);
        let asked = numbers.map(|number| {
            let mut random = ChaCha8Rng::seed_from_u64(mix(self.seed ^ mix(number)));
            // Every second time one of those kept last.
            let all = self.kept.len() as u64;
            let among = if number % 2 == 0 {
                all
            } else {
                all.min(GENERATION)
            };
            let parent = &self.kept[(all - 1 - random.next_u64() % among) as usize];
            let mut question = parent.question.clone();
            question.script = Some(changed(&parent.script, &mut random));
            (parent.pass, question)
        });
        let asked: Vec<(usize, OneRun)> = asked.collect();
        self.runs += asked.len() as u64;
        let made = self.make(asked, true, going)?;
        Some(
            made.into_iter()
                .filter_map(|made| self.take(made))
                .collect(),
        )
    }

    /// Keeps a run that came to something new; it is given if so, or if there is none.
    fn take(&mut self, made: Made) -> Option<Changed> {
        let before = self.seen.len();
        self.seen.extend(made.pairs.iter().map(|(pair, _)| *pair));
        let is_new = self.seen.len() > before;
        let (pass, question) = (made.pass, made.question);
        if is_new {
            self.kept.push(Kept {
                pass,
                question: question.clone(),
                script: made.script,
            });
        }
        (is_new || made.answer.is_err()).then_some(Changed {
            pass,
            question,
            answer: made.answer,
        })
    }

    /// Makes the runs `asked`, cut where they come to something new if they are to be.
    fn make(
        &self,
        asked: Vec<(usize, OneRun)>,
        cuts: bool,
        going: &(dyn Fn() -> bool + Sync),
    ) -> Option<Vec<Made>> {
        let next = AtomicUsize::new(0);
        let ended = AtomicBool::new(false);
        let all: Mutex<Vec<Option<Made>>> = Mutex::new(asked.iter().map(|_| None).collect());
        let work = || {
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                if number >= asked.len() || ended.load(Ordering::Relaxed) {
                    return;
                }
                let (pass, question) = &asked[number];
                let made = self.one(*pass, question, cuts);
                all.lock().expect("no thread panics")[number] = Some(made);
                if !going() {
                    ended.store(true, Ordering::Relaxed);
                }
            }
        };
        std::thread::scope(|scope| {
            for _ in 1..self.threads {
                scope.spawn(work);
            }
            work();
        });
        all.into_inner()
            .expect("no thread panics")
            .into_iter()
            .collect()
    }

    fn one(&self, pass: usize, question: &OneRun, cuts: bool) -> Made {
        let told = question.script.clone().map(Scripting::of);
        let (scripting, written) = told.unwrap_or_default().recorded();
        let answer = question.recorded(scripting);
        let script = std::mem::take(&mut *written.lock().expect("no thread panics"));
        let mut made = Made {
            question: OneRun {
                script: Some(script.clone()),
                ..question.clone()
            },
            pass,
            pairs: Vec::new(),
            script,
            answer: Err(HistoryError::Broken(String::new())),
        };
        made.answer = answer.and_then(|history| {
            let found = pairs(&history).into_iter();
            made.pairs = found
                .filter(|(pair, _)| !self.seen.contains(pair))
                .collect();
            made.pairs.sort_unstable_by_key(|(pair, at)| (*at, *pair));
            let explored = match cuts && !made.pairs.is_empty() {
                true => caught(|| cut_at(&history, &made.pairs, &question.options)),
                false => Ok(Explored::default()),
            };
            Ok((history, explored.map_err(HistoryError::Broken)?))
        });
        made
    }
}

/// Cuts `history` where new `pairs` are, in order of position, and for a while after.
fn cut_at(history: &History, pairs: &[(u64, u64)], options: &Options) -> Explored {
    let last = history.positions() - 1;
    let mut checker = Checker::new(history, options, &nested::live);
    checker.unpaced();
    let mut next = 0;
    for (_, position) in pairs {
        let from = position.saturating_sub(BEFORE).max(next);
        let to = (position + AFTER).min(last);
        for at in from..=to {
            if at == from && (at > next || at == 0) {
                checker.skip_to(at);
                checker.look();
            } else {
                checker.step();
            }
        }
        next = next.max(to + 1);
    }
    let mut explored = std::mem::take(&mut checker.explored);
    whole_run(history, options, &mut explored);
    explored
}

/// `script` with a few changes, each of things that happen near each other.
fn changed(script: &Script, random: &mut ChaCha8Rng) -> Script {
    let mut script = script.clone();
    let below = |random: &mut ChaCha8Rng, end: u64| random.next_u64() % end.max(1);
    for _ in 0..=below(random, CHANGES) {
        let kind = below(random, 10);
        let own = match kind {
            0..4 => &mut script.delays,
            4..7 => &mut script.evictions,
            _ => &mut script.pauses,
        };
        if own.is_empty() {
            continue;
        }
        let from = below(random, own.len() as u64) as usize;
        let count = 1 + below(random, NEIGHBOURS) as usize;
        let to = (from + count).min(own.len());
        match kind {
            0 | 4 => drop(own.drain(from..to)),
            1 => own[from..to]
                .iter_mut()
                .for_each(|one| one[2] = 1 + below(random, LONGEST_NS)),
            2 => {
                let long = LONGEST_NS / 2 + below(random, LONGEST_NS / 2);
                own[from][2] = long;
            }
            3 => {
                // Writes beside those that were held.
                let more = own[from..to].iter();
                let more = more.map(|one| [one[0], one[1] + 1 + below(random, 2), one[2]]);
                let more: Vec<[u64; 3]> = more.collect();
                let known: FxHashSet<[u64; 2]> = own.iter().map(|one| [one[0], one[1]]).collect();
                own.extend(more.into_iter().filter(|m| !known.contains(&[m[0], m[1]])));
            }
            5 => {
                // The same lines a little earlier or later.
                let by = below(random, 2 * NEIGHBOURS) as i64 - NEIGHBOURS as i64;
                let moved = own[from..to].iter_mut();
                moved.for_each(|one| one[1] = one[1].saturating_add_signed(by));
            }
            6 => {
                // Again and again, within a few operations.
                let [core, at, line] = own[from];
                let every = 1 + below(random, 4);
                own.extend((1..=count as u64).map(|n| [core, at + n * every, line]));
            }
            7 => own[from..to].iter_mut().for_each(|one| one[2] = 0),
            8 => own[from][2] = below(random, LONGEST_PAUSE),
            _ => own[from..to]
                .iter_mut()
                .for_each(|one| one[2] = below(random, LONGEST_PAUSE / 16)),
        }
    }
    script
}
