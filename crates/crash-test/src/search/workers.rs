//! The workers and their queues.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, SyncSender};
use std::time::Duration;

use crate::images::Image;
use crate::recovery::Reason;
use crate::recovery::ending::Ended;
use crate::search::bench::{Bench, SearchState};
use crate::search::known_causes;
use crate::search::reduce::{self, Reduced};
use crate::{CrashTestError, Result};

pub(crate) const QUEUE: usize = 16;

pub(crate) enum SearchJob {
    Try(Image, Duration),
    Reduce(usize, Image, Reason),
}

pub(crate) enum WorkerAnswer {
    Tried(Image, Result<(Ended, String)>),
    Reduced(usize, Result<Reduced>),
}

pub(crate) struct Crew {
    pub(crate) jobs: SyncSender<SearchJob>,
    pub(crate) answers: Receiver<WorkerAnswer>,
    pub(crate) waiting: usize,
}

impl Crew {
    pub(crate) fn give(&mut self, job: SearchJob) {
        self.waiting += 1;
        let _ = self.jobs.send(job);
    }

    pub(crate) fn next(&mut self) -> Option<WorkerAnswer> {
        if self.waiting == 0 {
            return None;
        }
        self.waiting -= 1;
        self.answers.recv().ok()
    }

    pub(crate) fn ready(&mut self) -> Option<WorkerAnswer> {
        let answer = self.answers.try_recv().ok()?;
        self.waiting -= 1;
        Some(answer)
    }
}

fn reduced(bench: &mut Bench<'_>, image: &Image, reason: &Reason, start: u32) -> Result<Reduced> {
    let known = bench
        .shared
        .known
        .lock()
        .expect("nobody panics with it")
        .clone();
    for sites in &known {
        match known_causes::explains(bench, sites, image) {
            Ok(true) => return Ok(known_causes::explained(image)),
            Ok(false) | Err(CrashTestError::Late) => {}
            Err(e) => return Err(e),
        }
    }
    reduce::reduce(bench, image, reason, start)
}

pub(crate) fn work(
    shared: &SearchState,
    bench: Result<Bench<'_>>,
    jobs: &Mutex<Receiver<SearchJob>>,
    answers: &Sender<WorkerAnswer>,
    start: &AtomicU64,
) {
    let mut bench = match bench {
        Ok(bench) => bench,
        Err(e) => {
            let _ = answers.send(WorkerAnswer::Tried(Image::fenced(0), Err(e)));
            return;
        }
    };
    loop {
        let job = jobs.lock().expect("nobody panics with it").recv();
        let answer = match job {
            Err(_) => return,
            Ok(SearchJob::Try(image, time)) => {
                let acked = bench.acked(image.cut);
                let set = |flag: &AtomicBool| flag.load(Ordering::Relaxed);
                let enough = set(&shared.enough) || shared.clock.is_spent();
                let result = match (set(&shared.stop), enough) {
                    (true, _) => Err(CrashTestError::Cancelled),
                    (_, true) => Err(CrashTestError::Late),
                    _ => bench.run_surely(&image, acked, time).map(|ended| {
                        let said = match shared.recovery.fails(ended) {
                            true => bench.said(),
                            false => {
                                bench.repaired(&image);
                                String::new()
                            }
                        };
                        (ended, said)
                    }),
                };
                WorkerAnswer::Tried(image, result)
            }
            Ok(SearchJob::Reduce(number, image, reason)) => {
                let start = start.load(Ordering::Relaxed) as u32;
                WorkerAnswer::Reduced(number, reduced(&mut bench, &image, &reason, start))
            }
        };
        if answers.send(answer).is_err() {
            return;
        }
    }
}
