//! Requests in flight, and the booking of an answered request's latency. The booking follows the critical
//! path from the last step back to the admission; every picosecond goes under one purpose.

use super::{Answer, Engine, Request};
use crate::plan::steps::{Action, Critical, Step};
use crate::stats::{Cause, Direction, Purpose};
use crate::units::Time;

#[derive(Clone, Copy, Debug)]
struct InFlight {
    request: Request,
    admitted: u64,
    first: Step,
    last: Step,
}

/// The table of requests in flight.
#[derive(Default)]
pub(crate) struct Requests {
    table: Vec<InFlight>,
    free: Vec<u32>,
}

impl Requests {
    /// A request whose plan's steps are `first..=last`.
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

    /// The number that the next request gets.
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
    /// The request is answered now; of all that it waited for, `critical` finished last.
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
            self.plan.observers.tell(|one| one.answered(index, &answer));
        }
        if entry.request.counted {
            self.book(critical, &entry);
        }
    }

    fn book(&mut self, mut critical: Critical, entry: &InFlight) {
        let kind = entry.request.kind;
        let ingress = entry.admitted - entry.request.arrival.ps();
        self.book_under(Purpose::of(Cause::Ingress), kind, ingress, ingress);
        let mut end = self.now;
        while critical.step != Step::PAST {
            if critical.step < entry.first || critical.step > entry.last {
                // The path leaves the request's own plan: an earlier request, or a kept promise.
                let waited = end - entry.admitted.min(end);
                self.book_under(critical.purpose, kind, waited, waited);
                return;
            }
            let record = *self.plan.steps.get(critical.step);
            let waited = match record.action {
                Action::Accept => end - record.ready,
                _ if record.begun == 0 => 0,
                _ => record.begun - record.ready,
            };
            self.book_under(record.purpose, kind, end - record.ready, waited);
            end = record.ready;
            critical = record.critical;
            if critical.step == Step::PAST && record.action == Action::Join {
                // A promise that was kept late, with a step that was finished already.
                let waited = end - entry.admitted;
                self.book_under(record.purpose, kind, waited, waited);
                end = entry.admitted;
            }
        }
        assert_eq!(end, entry.admitted, "the parts of a latency add up");
    }

    fn book_under(&mut self, purpose: Purpose, kind: Direction, latency: u64, waited: u64) {
        let account = self.ledger.of(purpose);
        let latency = Time::from_ps(latency);
        match kind {
            Direction::Read => account.read_latency += latency,
            Direction::Write => account.write_latency += latency,
        }
        account.wait += Time::from_ps(waited);
    }
}
