//! The attacker in a run: between two requests of a controller that has recovered and has filled its caches. The
//! requests are drawn at each look: reads, writes of new contents, write-backs of counters. Then everything is read.
//! Left out: time, and so what is in flight.

use std::rc::Rc;

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use sardonyx_base::random::mix;

use crate::attacker::changes::Change;
use crate::attacker::knowledge::{Now, Seen};
use crate::attacker::outcome::Attacked;
use crate::attacker::recovery::Strike;
use crate::attacker::{Attacker, Used, write_past};
use crate::options::{Attack, When};
use crate::panics::caught;
use sardonyx::controller::{Class, Controller, Write};
use sardonyx::line::{Line, Logical};
use sardonyx::machine::{read_untimed, write_untimed};
use sardonyx::plan::{At, Step};

const REQUESTS: usize = 24;

#[derive(Clone, Copy)]
pub(crate) enum AttackRequest {
    Read(u64),
    Write(u64, Line),
    /// Writes the metadata of a line back to the medium.
    Persist(u64),
}

impl Attacker<'_> {
    pub(crate) fn running(&mut self, look: u64, seen: &Rc<Seen>, found: &mut Attacked) {
        if self.at(look, When::Running).next().is_none() {
            return;
        }
        let requests = std::mem::take(&mut self.requests);
        let (honest, _) = self.run(&requests, seen, None);
        if honest.refused {
            found.honest_refused += 1;
            return;
        }
        for one in self.at(look, When::Running) {
            let mut dice = self.dice(one);
            let point = (dice.next_u64() % REQUESTS as u64) as usize;
            let (used, change) = self.run(&requests, seen, Some((one.kind, point, &mut dice)));
            if let Some(change) = change {
                let story = format!(
                    "  {point} of {REQUESTS} requests have been handled since the recovery"
                );
                self.count(one, &change, &story, &used, &honest, found);
            }
        }
    }

    pub(crate) fn drawn_requests(&self, look: u64) -> Vec<AttackRequest> {
        let mut dice = ChaCha8Rng::seed_from_u64(mix(self.history.seed) ^ mix(!look));
        let programs = self.history.programs.iter();
        let regions: Vec<_> = programs.map(|p| (&p.region, &p.log)).collect();
        let mut lines = Vec::new();
        for (region, log) in regions {
            lines.extend(region.iter().filter(|line| !log.contains(*line)));
        }
        let requests = (0..REQUESTS).map(|_| {
            let line = lines[(dice.next_u64() % lines.len() as u64) as usize];
            match dice.next_u64() % 8 {
                0..3 => AttackRequest::Read(line),
                3 => AttackRequest::Persist(line),
                drawn => {
                    // Some contents are duplicates, so that mappings share places.
                    let byte = match drawn {
                        4 => 0,
                        5 => dice.next_u64() as u8 & 1,
                        _ => dice.next_u64() as u8,
                    };
                    AttackRequest::Write(line, [byte; 64])
                }
            }
        });
        requests.collect()
    }

    /// Runs `requests` after a recovery, attacked before the one with that number. Returns what was read, and the
    /// change if there was one.
    fn run(
        &mut self,
        requests: &[AttackRequest],
        seen: &Rc<Seen>,
        attack: Option<(Attack, usize, &mut ChaCha8Rng)>,
    ) -> (Used, Option<Change>) {
        let mut used = Used::default();
        let Some(mut controller) = self.begin(&mut used, &mut Strike::nobody(seen)) else {
            return (self.end(used), None);
        };
        let point = attack.as_ref().map_or(0, |(_, point, _)| *point);
        self.serve(&mut controller, &requests[..point], &mut used);
        let (mut first, mut change) = (0, None);
        if let Some((kind, _, dice)) = attack {
            let now = Now::look(seen, &self.survivors.untimed);
            change = self.knowledge.draw(kind, &now, dice);
            // A change of nothing is no attack.
            let Some(change) = &change else {
                return (self.end(used), None);
            };
            write_past(&mut self.survivors.untimed, change);
            first = self.first_read(change, dice);
        }
        self.serve(&mut controller, &requests[point..], &mut used);
        used.served = used.read.len();
        self.read_all(&mut controller, &mut used, first);
        (self.end(used), change)
    }

    fn serve(&mut self, controller: &mut Controller, requests: &[AttackRequest], used: &mut Used) {
        let untimed = &mut self.survivors.untimed;
        let read = &mut used.read;
        let served = caught(|| {
            for request in requests {
                match request {
                    AttackRequest::Read(line) => {
                        let got = read_untimed(controller, untimed, *line);
                        // A line that is refused is not delivered.
                        if untimed.refused().is_empty() {
                            read.push((*line, Ok(got)));
                        }
                    }
                    AttackRequest::Write(line, data) => {
                        let write = Write::new(Logical(*line), At::past(data));
                        let class = Class::Data;
                        write_untimed(controller, untimed, Write { class, ..write });
                    }
                    AttackRequest::Persist(line) => untimed.plan(|plan| {
                        controller.persist_metadata(Logical(*line), Step::PAST, plan);
                    }),
                }
                if !untimed.refused().is_empty() {
                    return;
                }
            }
        });
        read.extend(served.err().map(|what| (0, Err(what))));
    }

    /// Reads all lines of the programs, from line `first` on and round again, until one is refused. They are listed in
    /// the programs' order.
    pub(crate) fn read_all(&mut self, controller: &mut Controller, used: &mut Used, first: u64) {
        if self.is_refused() {
            return;
        }
        let (history, untimed) = (self.history, &mut self.survivors.untimed);
        let mut lines: Vec<u64> = Vec::new();
        for program in &history.programs {
            let region = program.region.iter();
            lines.extend(region.filter(|line| !program.log.contains(*line)));
        }
        let start = lines.iter().position(|line| *line == first).unwrap_or(0);
        let mut read = Vec::with_capacity(lines.len());
        let all = caught(|| {
            for line in lines[start..].iter().chain(&lines[..start]) {
                let got = read_untimed(controller, untimed, *line);
                if untimed.refused().is_empty() {
                    read.push((*line, Ok(got)));
                }
                if !untimed.refused().is_empty() {
                    return;
                }
            }
        });
        if read.len() == lines.len() {
            read.rotate_right(start);
        }
        used.read.append(&mut read);
        used.read.extend(all.err().map(|what| (0, Err(what))));
    }
}
