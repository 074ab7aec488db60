//! An attacker who reads and writes the medium. At a cut he changes what it left, and a recovery follows; or he
//! changes it between two requests of a controller that has recovered, with its caches warm. What programs then read
//! is held against what they would have read without him. Left out: who attacks while a recovery goes on.
//!
//! What he does not reach is on chip: caches, registers, and the lines that reserve power dumps them to.

mod changes;
mod running;

use std::collections::BTreeMap;

use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use sardonyx_splitmix::mix;

use self::changes::{Change, Held, held};
use super::asked::Options;
use super::attacked::{Attack, Attacked, Attacks, First, OneAttack, When};
use super::caught::caught;
use super::history::History;
use super::platform::{Survivors, Whole};
use crate::controller::Controller;
use crate::controller::layers::PowerFail;
use crate::line::{Line, ZERO_LINE};
use crate::machine::UntimedMemory;
use crate::medium::image::Image;
use crate::plan::untimed::Untimed;
use crate::workload::Workload;

/// What programs read after an attack, and which lines; the text says why one reads nothing.
#[derive(Default, PartialEq)]
struct Used {
    refused: bool,
    read: Vec<(u64, Result<Line, String>)>,
}

/// Attacks on `history`, `asked` of them, at cuts that are made as `options` say.
pub fn attack(history: &History, options: &Options, asked: Attacks) -> Attacked {
    let mut attacker = Attacker::new(history, options, asked);
    let (mut found, last) = (Attacked::default(), history.positions() - 1);
    for look in 1..=asked.looks {
        while attacker.survivors.position() < last * look / asked.looks {
            attacker.survivors.advance(&mut Vec::new());
        }
        attacker.look(look, &mut found);
    }
    found
}

struct Attacker<'h> {
    history: &'h History,
    survivors: Survivors<'h>,
    kept: Option<Box<dyn PowerFail>>,
    workloads: Vec<Workload>,
    asked: Attacks,
    /// What the medium held at earlier looks, and their positions, the oldest first.
    before: Vec<(u64, Held)>,
}

impl<'h> Attacker<'h> {
    fn new(history: &'h History, options: &Options, asked: Attacks) -> Attacker<'h> {
        let image = history.image.copy();
        let survivors = Survivors::new(&history.journal, image, options.platform, history.seed);
        let survivors = survivors
            .guarded(history.power_fail())
            .tearing(options.tear);
        let programs = history.programs.iter();
        let programs = programs.map(|p| p.spec.build().expect("it has been run"));
        Attacker {
            history,
            kept: history.power_fail(),
            workloads: programs.collect(),
            asked,
            before: vec![(0, held(survivors.untimed.image()))],
            survivors,
        }
    }

    /// What chance draws one attack from: the same however many others there are.
    fn dice(&self, one: OneAttack) -> ChaCha8Rng {
        let kind = (one.when as u64) << 8 | one.kind as u64;
        let own = mix(one.number) ^ mix(kind << 32 | one.look << 40);
        ChaCha8Rng::seed_from_u64(mix(self.history.seed) ^ own)
    }

    /// All attacks at the present position.
    fn look(&mut self, look: u64, found: &mut Attacked) {
        if self.asked.one.is_none_or(|one| one.look == look) {
            let torn = self.survivors.tear();
            found.cuts += 1;
            let now = held(self.survivors.untimed.image());
            let honest = self.use_it();
            if honest.refused {
                found.honest_refused += 1;
            } else {
                self.with_power_off(look, &now, &honest, found);
                self.running(look, found);
            }
            self.survivors.mend(torn);
        }
        let now = held(self.survivors.untimed.image());
        self.before.push((self.survivors.position(), now));
    }

    /// The attacks of this look at that time.
    fn at(&self, look: u64, when: When) -> impl Iterator<Item = OneAttack> + use<> {
        let (each, wanted) = (self.asked.each, self.asked.one);
        let kinds = Attack::ALL.into_iter();
        let all = kinds.flat_map(move |kind| (0..each).map(move |number| (kind, number)));
        let all = all.map(move |(kind, number)| OneAttack {
            look,
            when,
            kind,
            number,
        });
        all.filter(move |one| wanted.is_none_or(|wanted| wanted == *one))
    }

    fn with_power_off(&mut self, look: u64, now: &Held, honest: &Used, found: &mut Attacked) {
        for one in self.at(look, When::Off) {
            let Some(change) = self.draw(one.kind, now, &mut self.dice(one)) else {
                continue;
            };
            let used = match one.kind {
                Attack::Rollback => self.rolled_back(&change, now),
                _ => self.changed(now, &change.lines),
            };
            self.count(one, &change, "", &used, honest, found);
        }
    }

    /// What came of an attack: how it was noticed, or what it has changed of what is read.
    fn count(
        &self,
        one: OneAttack,
        change: &Change,
        before: &str,
        used: &Used,
        honest: &Used,
        found: &mut Attacked,
    ) {
        let came = &mut found.came[one.when as usize][one.kind as usize];
        came.tried += 1;
        *came.regions.entry(change.region).or_default() += 1;
        if used.refused {
            came.refused += 1;
        } else if used.read == honest.read {
            came.harmless += 1;
        } else {
            came.undetected += 1;
            if came.first.is_none() {
                came.first = Some(self.first(one, change, before, (used, honest)));
            }
        }
    }

    fn first(
        &self,
        one: OneAttack,
        change: &Change,
        before: &str,
        (used, honest): (&Used, &Used),
    ) -> First {
        let position = self.survivors.position();
        let history = self.history;
        let when = match one.when {
            When::Off => "after the cut",
            When::Running => "in the run after the cut",
        };
        let head = format!(
            "undetected-attack: {} {when} at position {position} of a run on {}: {}",
            one.kind.name(),
            history.design,
            change.what
        );
        let mut story = vec![
            head,
            format!(
                "  the attacker looked {} times before, the first time before the run",
                self.before.len()
            ),
        ];
        story.extend((!before.is_empty()).then(|| before.to_owned()));
        story.push(format!("  he changes: {}", change.what));
        story.push("  no recovery and no read refuses anything".to_owned());
        let pairs = used.read.iter().zip(&honest.read);
        let differ = pairs.filter(|(one, other)| one != other);
        story.push(match differ.clone().next() {
            None => "  fewer lines are read: the run ended".to_owned(),
            Some(((line, got), (_, right))) => format!(
                "  line {line} reads as {}, and would have read as {}; so of {} lines",
                said(got),
                said(right),
                differ.count()
            ),
        });
        First {
            asked: self.asked,
            one,
            position,
            story,
            run: None,
        }
    }

    /// Recovers and has the programs recover, before anybody asks for more.
    fn begin(&mut self, used: &mut Used) -> Option<Controller> {
        let (history, survivors, workloads) = (self.history, &mut self.survivors, &self.workloads);
        let read = &mut used.read;
        let begun = caught(|| {
            let mut controller = survivors.recover(history);
            for (program, workload) in history.programs.iter().zip(workloads) {
                let (region, log) = (&program.region, &program.log);
                let untimed = &mut survivors.untimed;
                let mut view = UntimedMemory::new(untimed, &mut controller, region, log);
                if let Err(fault) = workload.recover(&mut view) {
                    read.push((region.first, Err(fault.what)));
                }
            }
            controller
        });
        begun.map_err(|what| read.push((0, Err(what)))).ok()
    }

    /// Recovers, has the programs recover, and gives what their lines read as.
    fn use_it(&mut self) -> Used {
        let mut used = Used::default();
        if let Some(mut controller) = self.begin(&mut used) {
            self.read_all(&mut controller, &mut used);
        }
        self.end(used)
    }

    /// Says whether anything was refused, and forgets all that came after the cut.
    fn end(&mut self, mut used: Used) -> Used {
        used.refused = !self.survivors.untimed.refused().is_empty();
        self.survivors.untimed.forget();
        used
    }

    /// The same after the medium was changed; it is made what it was again.
    fn changed(&mut self, now: &Held, changes: &[Whole]) -> Used {
        let image = self.survivors.untimed.image_mut();
        for (place, line, beside) in changes {
            image.write(*place, line, 0xff, *beside);
        }
        let used = self.use_it();
        let back = changes.iter().map(|(place, ..)| {
            let (line, beside) = now.get(place).copied().unwrap_or((ZERO_LINE, None));
            (*place, line, beside)
        });
        self.survivors.mend(back.collect());
        used
    }

    /// The same over what the medium held at an earlier look, with the registers of now: lines that were not
    /// written then have never been.
    fn rolled_back(&mut self, change: &Change, now: &Held) -> Used {
        let mut old = Image::sparse();
        for (place, (line, beside)) in &self.before[change.look].1 {
            if !self.is_on_chip(*place) {
                old.write(*place, line, 0xff, *beside);
            }
        }
        for (place, (line, beside)) in now.iter().filter(|(at, _)| self.is_on_chip(**at)) {
            old.write(*place, line, 0xff, *beside);
        }
        let now = std::mem::replace(&mut self.survivors.untimed, Untimed::new(old));
        let used = self.use_it();
        self.survivors.untimed = now;
        used
    }
}

/// What was read, in a few bytes.
fn said(read: &Result<Line, String>) -> String {
    match read {
        Err(what) => format!("nothing ({what})"),
        Ok(line) => {
            let bytes: Vec<String> = line[..8].iter().map(|byte| format!("{byte:02x}")).collect();
            format!("{}..", bytes.join(" "))
        }
    }
}

/// Lines of a layout's region, or of data, that are wanted.
type Groups = BTreeMap<&'static str, Vec<crate::line::Place>>;
