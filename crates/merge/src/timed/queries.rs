//! A virtual machine's queries: when they come, how long they are, and what each does. All of it follows from a seed
//! and the order of the queries, so that it does not depend on what merges.

use std::collections::VecDeque;

use sardonyx_base::random::{SplitMix64, mix};

use super::applications::Demand;
use sardonyx::line::Virtual;
use sardonyx::machine::{Batch, OpKind, PAGE_LINES};
use sardonyx::units::Time;

/// A core is given this many accesses of a query at once.
const CHUNK: u64 = 48;
const SECOND: f64 = 1e12;

#[derive(Clone, Copy, Debug)]
pub struct QueryDraw(SplitMix64);

impl QueryDraw {
    pub fn new(seed: u64, purpose: u64) -> QueryDraw {
        QueryDraw(SplitMix64(mix(seed ^ mix(purpose))))
    }

    pub fn next(&mut self) -> u64 {
        self.0.draw()
    }

    pub fn below(&mut self, end: u64) -> u64 {
        self.0.below(end)
    }

    fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }

    fn exponential(&mut self) -> f64 {
        -(1.0 - self.unit()).ln()
    }

    fn normal(&mut self) -> f64 {
        let radius = (-2.0 * (1.0 - self.unit()).ln()).sqrt();
        radius * (std::f64::consts::TAU * self.unit()).cos()
    }
}

#[derive(Clone, Debug, Default)]
pub struct QueryPages {
    /// Pages that are used again and again: its own, and those that other machines have too.
    pub hot: [Vec<u32>; 2],
    pub cold: [Vec<u32>; 2],
}

/// A query under way. Times add up: `arrival` + waiting + thread + executing = end.
#[derive(Clone, Copy, Debug)]
struct Query {
    arrival: Time,
    began: Time,
    left: u64,
    /// Set if the query is to write a page that other machines have.
    copies: bool,
    executed: Time,
    thread: Time,
}

#[derive(Clone, Copy, Debug)]
pub struct Done {
    pub arrival: Time,
    pub sojourn: Time,
    /// The part of it that was spent waiting for queries before it and for the kernel's thread.
    pub waited: Time,
    pub thread: Time,
    pub executed: Time,
}

#[derive(Debug)]
pub struct Queries {
    demand: Demand,
    pages: QueryPages,
    arrivals: VecDeque<(Time, u64)>,
    served: u64,
    current: Option<Query>,
    draw: QueryDraw,
    pub done: Vec<Done>,
}

impl Queries {
    pub fn new(demand: Demand, pages: QueryPages, seed: u64, until: Time) -> Queries {
        let mut draw = QueryDraw::new(seed, 1);
        let mut arrivals = VecDeque::new();
        let mean = SECOND / demand.queries_per_second as f64;
        let spread = demand.spread_percent as f64 / 100.0;
        let sigma = (1.0 + spread * spread).ln().sqrt();
        let mut at = 0.0;
        loop {
            at += draw.exponential() * mean;
            let size = (sigma * draw.normal() - sigma * sigma / 2.0).exp();
            let instructions = (demand.instructions as f64 * size).max(1.0) as u64;
            let time = Time::from_ps(at as u64);
            if time >= until {
                break;
            }
            arrivals.push_back((time, instructions));
        }
        Queries {
            demand,
            pages,
            arrivals,
            served: 0,
            current: None,
            draw: QueryDraw::new(seed, 2),
            done: Vec::new(),
        }
    }

    pub fn is_busy(&self, now: Time) -> bool {
        self.current.is_some() || self.next_arrival().is_some_and(|at| at <= now)
    }

    /// The arrival of the query that waits for a core on which none is being executed.
    pub fn woken(&self, now: Time) -> Option<Time> {
        let waits = self.current.is_none();
        self.next_arrival().filter(|at| waits && *at <= now)
    }

    pub fn next_arrival(&self) -> Option<Time> {
        self.arrivals.front().map(|(at, _)| *at)
    }

    /// Notes that the core has executed the last chunk, in the time `took`. True if the query is complete.
    pub fn executed(&mut self, took: Time, now: Time) {
        let query = self.current.as_mut().expect("a query was worked on");
        query.executed += took;
        if query.left > 0 {
            return;
        }
        self.done.push(Done {
            arrival: query.arrival,
            sojourn: now.since(query.arrival),
            waited: query.began.since(query.arrival),
            thread: query.thread,
            executed: query.executed,
        });
        self.current = None;
    }

    pub fn interrupted(&mut self, took: Time) {
        if let Some(query) = &mut self.current {
            query.thread += took;
        }
    }

    /// Puts the next chunk into `batch`; false if there is no query at `now`.
    pub fn work(&mut self, now: Time, batch: &mut Batch) -> bool {
        if self.current.is_none() {
            match self.arrivals.front() {
                Some((arrival, instructions)) if *arrival <= now => {
                    let (arrival, left) = (*arrival, *instructions);
                    self.arrivals.pop_front();
                    self.served += 1;
                    self.current = Some(Query {
                        arrival,
                        began: now,
                        left,
                        copies: self.served.is_multiple_of(self.demand.queries_a_copy),
                        executed: Time::ZERO,
                        thread: Time::ZERO,
                    });
                }
                _ => return false,
            }
        }
        let mut query = self.current.expect("one is worked on");
        let mean = 100_000 / self.demand.accesses;
        for _ in 0..CHUNK {
            let gap = mean / 2 + self.draw.below(mean + 1);
            if query.left <= gap + 1 {
                batch.compute(query.left as u32);
                query.left = 0;
                break;
            }
            query.left -= gap + 1;
            batch.compute(gap as u32);
            self.access(batch, std::mem::take(&mut query.copies));
        }
        batch.push(OpKind::Depend, Virtual(0));
        self.current = Some(query);
        true
    }

    /// One load or store; with `copies` it is a store to a page that other machines have.
    fn access(&mut self, batch: &mut Batch, copies: bool) {
        let cold = self.draw.below(1_000) < self.demand.cold_permille;
        let store = self.draw.below(100) < self.demand.stores_percent || copies;
        let shared = self.draw.below(100) < self.demand.mergeable_percent;
        let of = if cold {
            &self.pages.cold
        } else {
            &self.pages.hot
        };
        // Pages that other machines have are only read, as a rule.
        let mergeable = copies || shared && !store;
        let of = match &of[usize::from(mergeable)] {
            pages if pages.is_empty() => &of[usize::from(!mergeable)],
            pages => pages,
        };
        let page = u64::from(of[self.draw.below(of.len() as u64) as usize]);
        let drawn = self.draw.next();
        let line = Virtual(page * PAGE_LINES + drawn % PAGE_LINES);
        let from = (drawn >> 8) as u8 % 8 * 8;
        if store {
            let bytes = self.draw.next().to_le_bytes();
            batch.store(line, from, &bytes, false);
            return;
        }
        batch.load(line, from, 8);
        if self.draw.below(100) < self.demand.depends_percent {
            batch.push(OpKind::Depend, Virtual(0));
        }
    }
}
