//! The engine of a search: workers that try images, and one that leads them. What an image is, and what is done with
//! it, is the searcher's.
//!
//! The leader makes images and hands them out, so that their order does not depend on the workers' turns; a queue of a
//! few jobs keeps every worker busy while it takes their answers.

use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, SyncSender, channel, sync_channel};
use std::sync::{Arc, Mutex};

use crate::images::Given;
use crate::recovery::bench::{Tell, Trial};
use crate::{CrashTestError, Result};

pub(crate) const QUEUE: usize = 16;

/// The leader's part in a pass over images.
pub trait Lead {
    type Image;
    type Job;
    type Answer;

    /// Whether the pass ends here, after this many seconds. It is asked before every image.
    fn is_enough(&mut self, passed: f64) -> bool;
    /// The job that tries an image; `None` leaves it out.
    fn job(&mut self, image: Self::Image) -> Option<Self::Job>;
    fn take(&mut self, answer: Self::Answer);
}

pub struct Crew<J, A> {
    jobs: SyncSender<J>,
    answers: Receiver<Result<A>>,
    pub(crate) waiting: usize,
}

/// Has this many workers do the jobs that `lead` gives, each on a bench of its own.
///
/// # Errors
/// Those of the leader, and of workers as far as it takes their answers. All workers stop then.
pub fn with_workers<B, J: Send, A: Send, T>(
    trial: &Trial,
    workers: usize,
    bench: impl Fn(usize) -> Result<B> + Sync,
    work: impl Fn(&mut B, J) -> Result<A> + Sync,
    lead: impl FnOnce(&mut Crew<J, A>) -> Result<T>,
) -> Result<T> {
    let (jobs, queue) = sync_channel(QUEUE);
    let queue = Arc::new(Mutex::new(queue));
    let (answers, answered) = channel();
    std::thread::scope(|scope| {
        for number in 0..workers {
            let (queue, answers) = (queue.clone(), answers.clone());
            let (bench, work) = (&bench, &work);
            scope.spawn(move || {
                let mut bench = match bench(number) {
                    Ok(bench) => bench,
                    Err(e) => return drop(answers.send(Err(e))),
                };
                loop {
                    let job = queue.lock().expect("nobody panics with it").recv();
                    let Ok(job) = job else { return };
                    let answer = match trial.stop.load(Ordering::Relaxed) {
                        true => Err(CrashTestError::Cancelled),
                        false => work(&mut bench, job),
                    };
                    if answers.send(answer).is_err() {
                        return;
                    }
                }
            });
        }
        // Only the workers hold their ends: if none of them has a bench, nobody waits for them.
        drop((queue, answers));
        let mut crew = Crew {
            jobs,
            answers: answered,
            waiting: 0,
        };
        let outcome = lead(&mut crew);
        if outcome.is_err() {
            trial.stop.store(true, Ordering::Relaxed);
        }
        outcome // the crew is dropped, and with it the queue: the workers go
    })
}

impl<J, A> Crew<J, A> {
    pub(crate) fn give(&mut self, job: J) {
        self.waiting += 1;
        let _ = self.jobs.send(job);
    }

    /// Waits for the next answer; `None` if no job is under way.
    pub(crate) fn next(&mut self) -> Option<Result<A>> {
        if self.waiting == 0 {
            return None;
        }
        self.waiting -= 1;
        self.answers.recv().ok()
    }

    /// Makes one pass over the images that `each` offers until it is told that there are enough. Returns whether all
    /// were tried.
    ///
    /// Before each image the answers that are there are taken, and the user is told how far the search is. The pass ends
    /// with the budget, with a worker's error, or as the leader wants.
    pub fn pass<L: Lead<Job = J, Answer = A>>(
        &mut self,
        (trial, tell): (&Trial, Tell<'_>),
        lead: &mut L,
        each: impl FnOnce(&mut dyn FnMut(L::Image) -> Given) -> bool,
    ) -> Result<bool> {
        let mut taken = Taken::default();
        let finished = each(&mut |image| {
            while let Ok(answer) = self.answers.try_recv() {
                self.waiting = self.waiting.saturating_sub(1);
                taken.take(lead, answer);
            }
            let passed = trial.listen(tell);
            if taken.problem.is_some() || passed.is_none_or(|passed| lead.is_enough(passed)) {
                return Given::Enough;
            }
            let Some(job) = lead.job(image) else {
                return Given::LeftOut;
            };
            self.waiting += 1;
            let _ = self.jobs.send(job);
            Given::Taken
        });
        trial.enough.store(!finished, Ordering::Relaxed);
        while let Some(answer) = self.next() {
            taken.take(lead, answer);
        }
        match taken.problem {
            Some(problem) => Err(problem),
            None => Ok(finished && !taken.late),
        }
    }
}

/// What became of the jobs of a pass.
#[derive(Default)]
struct Taken {
    /// Whether an image came too late for the budget, which is no error.
    late: bool,
    problem: Option<CrashTestError>,
}

impl Taken {
    fn take<L: Lead>(&mut self, lead: &mut L, answer: Result<L::Answer>) {
        match answer {
            Ok(answer) => lead.take(answer),
            Err(CrashTestError::Late) => self.late = true,
            Err(e) => self.problem = Some(e),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::shared;

    /// Hands out numbers, and adds up the answers.
    #[derive(Default)]
    struct Sum(u32);

    impl Lead for Sum {
        type Image = u32;
        type Job = u32;
        type Answer = u32;

        fn is_enough(&mut self, _: f64) -> bool {
            false
        }

        fn job(&mut self, image: u32) -> Option<u32> {
            (image != 7).then_some(image)
        }

        fn take(&mut self, answer: u32) {
            self.0 += answer;
        }
    }

    /// Offers numbers, and returns whether the pass came to its end, and the sum.
    fn passed(
        bench: impl Fn(usize) -> Result<()> + Sync,
        work: impl Fn(u32) -> Result<u32> + Sync,
    ) -> Result<(bool, u32)> {
        let state = shared(&[], &["true"]);
        let work = |(): &mut (), job| work(job);
        with_workers(&state.trial, 3, bench, work, |crew| {
            let mut sum = Sum::default();
            let each = |give: &mut dyn FnMut(u32) -> Given| {
                (0..100).all(|image| give(image) != Given::Enough)
            };
            let ended = crew.pass((&state.trial, &|_, _| true), &mut sum, each)?;
            Ok((ended, sum.0))
        })
    }

    #[test]
    fn every_image_is_tried_that_is_not_left_out() {
        let all = (0..100).sum::<u32>() - 7;
        assert_eq!(passed(|_| Ok(()), Ok).unwrap(), (true, all));
    }

    #[test]
    fn an_image_that_came_too_late_is_no_error_and_the_pass_has_no_end() {
        let late = |job| match job {
            50.. => Err(CrashTestError::Late),
            job => Ok(job),
        };
        let all = (0..50).sum::<u32>() - 7;
        assert_eq!(passed(|_| Ok(()), late).unwrap(), (false, all));
    }

    /// Nobody would take the jobs, and the leader must not wait for room in the queue.
    #[test]
    fn workers_without_a_bench_end_the_search() {
        let full = |_| Err(CrashTestError::new("no room"));
        assert_eq!(passed(full, Ok).unwrap_err().to_string(), "no room");
        let fails = |job| match job {
            3 => Err(CrashTestError::new("it failed")),
            job => Ok(job),
        };
        assert_eq!(
            passed(|_| Ok(()), fails).unwrap_err().to_string(),
            "it failed"
        );
    }
}
