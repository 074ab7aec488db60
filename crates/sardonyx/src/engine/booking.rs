//! Requests in flight, and the booking of an answered request's latency. The booking follows the critical
//! path from the last step back to the admission; every picosecond goes under one purpose.

use super::{Answer, Engine, Request};
use crate::plan::performed::Part;
use crate::plan::steps::{Action, Critical, Step, Steps};
use crate::stats::{Cause, Direction, Ledger, Purpose};
use crate::units::Time;

#[derive(Clone, Copy, Debug)]
struct InFlight {
    request: Request,
    admitted: u64,
    first: Step,
    last: Step,
}

#[derive(Default)]
pub(crate) struct BookedRequests {
    table: Vec<InFlight>,
    free: Vec<u32>,
}

impl BookedRequests {
    pub fn add(&mut self, request: Request, admitted: u64, first: Step, last: Step) -> u32 {
        let entry = InFlight {
            request,
            admitted,
            first,
            last,
        };
        match self.free.pop() {
            Some(index) => {
                self.table[index as usize] = entry;
                index
            }
            None => {
                self.table.push(entry);
                self.table.len() as u32 - 1
            }
        }
    }

    pub fn upcoming(&self) -> u32 {
        let fresh = self.table.len() as u32;
        self.free.last().copied().unwrap_or(fresh)
    }

    #[inline]
    pub fn get(&self, index: u32) -> &Request {
        &self.table[index as usize].request
    }
}

impl Engine {
    /// Answers the request now. Of everything that it waited for, `critical` finished last.
    pub(super) fn answer(&mut self, index: u32, critical: Critical) {
        let entry = self.requests.table[index as usize];
        self.requests.free.push(index);
        if entry.first <= entry.last {
            self.plan.steps.get_mut(entry.first).kept = false;
        }
        self.read_answered |= entry.request.kind == Direction::Read;
        let answer = Answer {
            request: entry.request,
            admitted: Time::from_ps(entry.admitted),
            at: self.now(),
        };
        self.answers.push(answer);
        if self.plan.observers.any() {
            self.tell_answer(index, &answer, critical, &entry);
        }
        if entry.request.counted {
            let (kind, ledger) = (entry.request.kind, &mut self.ledger);
            let book = |purpose, latency, waited| book(ledger, purpose, kind, latency, waited);
            path(&self.plan.steps, self.now, critical, &entry, book);
        }
    }

    #[cold]
    fn tell_answer(&mut self, index: u32, answer: &Answer, critical: Critical, entry: &InFlight) {
        if self.plan.observers.of_steps() {
            let mut parts = Vec::new();
            let part = |purpose, latency, waited| {
                parts.push(Part {
                    purpose,
                    latency: Time::from_ps(latency),
                    waited: Time::from_ps(waited),
                });
            };
            path(&self.plan.steps, self.now, critical, entry, part);
            self.plan.observers.tell(|one| one.booked(index, &parts));
        }
        self.plan.observers.tell(|one| one.answered(index, answer));
    }
}

/// Walks the critical path of a request that is answered at `now`, from its last step back to its admission, and tells
/// for each part the purpose that it is booked under, its length and how much of it is waiting. The time before the
/// admission comes first.
#[inline]
fn path(
    steps: &Steps,
    now: u64,
    mut critical: Critical,
    entry: &InFlight,
    mut part: impl FnMut(Purpose, u64, u64),
) {
    let ingress = entry.admitted - entry.request.arrival.ps();
    part(Purpose::new(Cause::Ingress), ingress, ingress);
    let mut end = now;
    while critical.step != Step::PAST {
        if critical.step < entry.first || critical.step > entry.last {
            // The path leaves the request's own plan: an earlier request, or a kept promise.
            let waited = end - entry.admitted.min(end);
            part(critical.purpose, waited, waited);
            return;
        }
        let record = *steps.get(critical.step);
        let waited = match record.action {
            Action::Accept => end - record.ready,
            _ if record.begun == 0 => 0,
            _ => record.begun - record.ready,
        };
        part(record.purpose, end - record.ready, waited);
        end = record.ready;
        critical = record.critical;
        if critical.step == Step::PAST && record.action == Action::Join {
            // A promise that was kept late, with a step that was finished already.
            let waited = end - entry.admitted;
            part(record.purpose, waited, waited);
            end = entry.admitted;
        }
    }
    assert_eq!(end, entry.admitted, "the parts of a latency add up");
}

#[inline]
fn book(ledger: &mut Ledger, purpose: Purpose, kind: Direction, latency: u64, waited: u64) {
    let account = ledger.of(purpose);
    let latency = Time::from_ps(latency);
    match kind {
        Direction::Read => account.read_latency += latency,
        Direction::Write => account.write_latency += latency,
    }
    account.wait += Time::from_ps(waited);
}
