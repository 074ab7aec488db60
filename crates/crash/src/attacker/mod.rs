//! An attacker who reads and writes the medium. He changes what a cut left before the recovery, or while the recovery
//! runs; or he changes the medium between two requests of a controller that has recovered, with its caches warm. What
//! programs then read is compared with what they would have read without him. Left out: what is in flight, because
//! nothing here takes time.
//!
//! He does not reach what is on chip: caches, registers, and the lines to which reserve power dumps them. An attack
//! ends as soon as anything is refused: it has then been noticed.

pub(crate) mod changes;
pub(crate) mod enumerated;
pub(crate) mod knowledge;
pub(crate) mod outcome;
pub(crate) mod recovery;
pub(crate) mod run;

use std::collections::BTreeMap;
use std::rc::Rc;

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use sardonyx_base::random::mix;

use self::changes::Change;
use self::knowledge::{Knowledge, Now, Seen};
use self::recovery::Strike;
use self::run::AttackRequest;
use crate::attacker::outcome::{Attacked, UndetectedAttack};
use crate::history::History;
use crate::options::{Attack, Attacks, OneAttack, Options, When};
use crate::pads::{self, Pads};
use crate::panics::caught;
use crate::platform::{Changed, Survivors, write_drained};
use crate::violation::Kind;
use sardonyx::controller::Write;
use sardonyx::controller::integrity::{VERIFY, Verify};
use sardonyx::line::{Line, Logical};
use sardonyx::machine::write_untimed;
use sardonyx::plan::journal::Event;
use sardonyx::plan::untimed::Untimed;
use sardonyx::plan::{At, Queue, Step};
use sardonyx_workload::Workload;

/// The lines that programs read after an attack, each with its content or the reason that there is none.
#[derive(Default, PartialEq)]
struct Used {
    refused: bool,
    /// A pad that covers two contents, in words, whether the run had used it or a controller after the attack.
    pad: Option<String>,
    /// The number of reads that came before the final one of all lines.
    served: usize,
    read: Vec<(u64, Read)>,
}

type Read = Result<Line, String>;

/// The lines of at most this many changes of an attack are written afterwards.
const MOST_ABOUT: usize = 4;
/// The attacker also looks 1, 2, 4 .. acceptances before a cut, this many times.
const NEAR_LOOKS: u32 = 7;

/// Makes the attacks `asked` on `history`, at cuts that are made as `options` say.
pub fn attack(history: &History, options: &Options, asked: Attacks) -> Attacked {
    let mut attacker = Attacker::new(history, options, asked);
    let (mut found, last) = (Attacked::default(), history.positions() - 1);
    for look in 1..=asked.looks {
        attacker.walk(last * look / asked.looks);
        attacker.look(look, &mut found);
    }
    found
}

struct Attacker<'h> {
    history: &'h History,
    survivors: Survivors<'h>,
    knowledge: Knowledge<'h>,
    workloads: Vec<Workload>,
    /// Lines that the attack is about, which are written afterwards.
    touched: Vec<u64>,
    requests: Vec<AttackRequest>,
    asked: Attacks,
    /// Set if what is read is used before it is verified.
    speculates: bool,
}

impl<'h> Attacker<'h> {
    fn new(history: &'h History, options: &Options, asked: Attacks) -> Attacker<'h> {
        let image = history.image.copy();
        let survivors = Survivors::new(&history.journal, image, options.platform, history.seed);
        let mut survivors = survivors
            .levelled(history.levelling())
            .guarded(history.power_fail())
            .tearing(options.tear);
        let image = survivors.untimed.into_image();
        survivors.untimed = Untimed::tried_out(image);
        let programs = history.programs.iter();
        let programs = programs.map(|p| p.spec.build().expect("it has been run"));
        Attacker {
            history,
            knowledge: Knowledge::new(history, survivors.untimed.image()),
            workloads: programs.collect(),
            touched: Vec::new(),
            requests: Vec::new(),
            asked,
            survivors,
            speculates: history.machine.settings.get(&VERIFY) == Verify::Speculate,
        }
    }

    /// Goes on to `position`, and takes a look 1, 2, 4 .. acceptances before it.
    fn walk(&mut self, position: u64) {
        let events = &self.history.journal.events[..position as usize];
        let accepted = (0..)
            .zip(events)
            .filter(|(_, (_, event))| matches!(event, Event::Ready { .. }));
        let accepted: Vec<u64> = accepted.map(|(at, _)| at).collect();
        let back = (0..NEAR_LOOKS).map(|power| 1 << power);
        let back = back.filter_map(|back: usize| accepted.len().checked_sub(back));
        let stops: Vec<u64> = back.map(|index| accepted[index]).collect();
        self.knowledge.near.clear();
        let mut changed = Vec::new();
        while self.survivors.position() < position {
            if stops.contains(&self.survivors.position()) {
                let seen = self.see();
                self.knowledge.near.insert(0, seen);
            }
            changed.clear();
            self.survivors.advance(&mut changed);
            for change in &changed {
                if let Changed::Words(place, _) = change {
                    self.knowledge
                        .follow(*place, self.survivors.untimed.image());
                }
            }
        }
    }

    /// The source of chance for one attack, which does not depend on how many others there are.
    fn dice(&self, one: OneAttack) -> ChaCha8Rng {
        let kind = (one.when as u64) << 8 | one.kind as u64;
        let own = mix(one.number) ^ mix(kind << 32 | one.look << 40);
        ChaCha8Rng::seed_from_u64(mix(self.history.seed) ^ own)
    }

    fn see(&self) -> Rc<Seen> {
        let position = self.survivors.position();
        Rc::new(self.knowledge.see(position, self.survivors.untimed.image()))
    }

    fn look(&mut self, look: u64, found: &mut Attacked) {
        self.knowledge.looks_on();
        if self.asked.one.is_none_or(|one| one.look == look) {
            let torn = self.survivors.tear();
            found.cuts += 1;
            let seen = self.see();
            self.requests = self.drawn_requests(look);
            let mut strike = Strike::nobody(&seen);
            let mut honest = self.use_it(&mut strike, 0);
            honest.pad = self.pad_again();
            if honest.refused {
                found.honest_refused += 1;
            } else {
                self.with_power_off(look, &seen, &honest, found);
                self.recovering((look, strike.accesses), &seen, &honest, found);
                self.running(look, &seen, found);
            }
            self.survivors.mend(torn);
        }
        let now = self.see();
        self.knowledge.before.push(now);
    }

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

    fn with_power_off(&mut self, look: u64, seen: &Rc<Seen>, honest: &Used, found: &mut Attacked) {
        for one in self.at(look, When::Off) {
            let now = Now::at_rest(seen);
            let mut dice = self.dice(one);
            let Some(change) = self.knowledge.draw(one.kind, &now, &mut dice) else {
                continue;
            };
            let image = self.survivors.untimed.image_mut();
            for (place, content) in &change.lines {
                image.put(*place, content.as_ref());
            }
            let first = self.first_read(&change, &mut dice);
            self.touched = self.about(&change);
            let mut used = self.use_it(&mut Strike::nobody(seen), first);
            if !used.refused && used.read == honest.read {
                used.pad = self.pad_again();
            }
            let image = self.survivors.untimed.image_mut();
            for (place, _) in &change.lines {
                image.put(*place, now.get(*place));
            }
            self.touched.clear();
            self.count(one, &change, "", &used, honest, found);
        }
    }

    /// Lines of programs that a few of the changes are about: the lines themselves, or those whose counters they hold.
    fn about(&self, change: &Change) -> Vec<u64> {
        let few = change
            .lines
            .iter()
            .take(MOST_ABOUT)
            .map(|(place, _)| *place);
        let lines = few.flat_map(|place| match place.0 < self.history.data_lines() {
            true => vec![place],
            false => self.history.covered(place, 0xff),
        });
        let lines = lines
            .map(|place| place.0)
            .filter(|line| self.history.core_of(*line).is_some());
        lines.take(2 * MOST_ABOUT).collect()
    }

    /// The line that is read first afterwards: one time in two the line that the attack begins with, before anything
    /// else has warmed the caches.
    fn first_read(&self, change: &Change, dice: &mut ChaCha8Rng) -> u64 {
        match dice.next_u64() & 1 {
            0 => change.lines.first().map_or(0, |(place, _)| place.0),
            _ => 0,
        }
    }

    /// Counts an attack as refused, harmless or undetected.
    fn count(
        &self,
        one: OneAttack,
        change: &Change,
        before: &str,
        used: &Used,
        honest: &Used,
        found: &mut Attacked,
    ) {
        let wrong = self.wrong(used, honest);
        let came = &mut found.came[one.when as usize][one.kind as usize];
        came.tried += 1;
        *came.regions.entry(change.region).or_default() += 1;
        match wrong {
            None if used.refused => came.refused += 1,
            None => came.harmless += 1,
            Some(wrong) => {
                came.undetected += 1;
                if came.first.is_none() {
                    came.first = Some(self.first(one, change, (before, wrong)));
                }
            }
        }
    }

    /// Tells what is wrong after an attack: a line that should not have been read, before a refusal or without one, or
    /// a pad that covers two contents.
    fn wrong(&self, used: &Used, honest: &Used) -> Option<String> {
        let told = |line: &u64, got: &Read, right: &Read| {
            let (got, right) = (said(got), said(right));
            format!("line {line} reads as {got}, and would have read as {right}")
        };
        if !used.refused {
            let pairs = used.read.iter().zip(&honest.read);
            let mut differ = pairs.filter(|(one, other)| one != other).peekable();
            let first = differ
                .peek()
                .map(|((line, got), (_, right))| told(line, got, right));
            let pad = || used.pad.clone().filter(|_| honest.pad.is_none());
            return match first {
                Some(first) => Some(format!("{first}; so of {} lines", differ.count())),
                None if used.read.len() != honest.read.len() => {
                    Some("fewer lines are read: the run ended".to_owned())
                }
                None => pad(),
            };
        }
        // A design that speculates delivers lines before it has verified them, so only the refusal counts.
        if self.speculates {
            return None;
        }
        let (served, all) = used.read.split_at(used.served.min(used.read.len()));
        let known: BTreeMap<u64, &Read> = honest.read[honest.served..]
            .iter()
            .map(|(line, read)| (*line, read))
            .collect();
        let served = served.iter().zip(&honest.read[..honest.served]);
        let served = served.map(|((line, got), (_, right))| (line, got, right));
        let all = all
            .iter()
            .filter_map(|(line, got)| Some((line, got, *known.get(line)?)));
        let mut wrong = served
            .chain(all)
            .filter(|(_, got, right)| got.is_ok() && got != right);
        let (line, got, right) = wrong.next()?;
        Some(format!(
            "{}, before anything is refused",
            told(line, got, right)
        ))
    }

    fn first(
        &self,
        one: OneAttack,
        change: &Change,
        (before, wrong): (&str, String),
    ) -> UndetectedAttack {
        let position = self.survivors.position();
        let history = self.history;
        let when = match one.when {
            When::Off => "after the cut",
            When::Recovering => "in the recovery after the cut",
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
                self.knowledge.before.len()
            ),
        ];
        story.extend((!before.is_empty()).then(|| before.to_owned()));
        story.push(format!("  he changes: {}", change.what));
        story.push("  no recovery and no read refuses anything in time".to_owned());
        story.push(format!("  {wrong}"));
        UndetectedAttack {
            asked: self.asked,
            one,
            position,
            story,
            run: None,
        }
    }

    /// Recovers, has the programs recover, and reads their lines, from line `first` on and round again.
    fn use_it(&mut self, strike: &mut Strike, first: u64) -> Used {
        let mut used = Used::default();
        if let Some(mut controller) = self.begin(&mut used, strike) {
            self.read_all(&mut controller, &mut used, first);
        }
        self.end(used)
    }

    /// Looks for a pad that covers two contents after a recovery: the controller handles the requests of this look, and
    /// writes of the lines that an attack is about. The other content may lie in the medium, or be the controller's
    /// own. `None` if anything is refused.
    fn pad_again(&self) -> Option<String> {
        let (history, drained) = (self.history, self.survivors.drained());
        if !history.is_encrypted() {
            return None;
        }
        let mut untimed = Untimed::new(self.survivors.untimed.image().copy());
        let touched = self.touched.iter().map(|line| (*line, [0xa5; 64]));
        let asked = self.requests.iter().filter_map(|request| match request {
            AttackRequest::Write(line, data) => Some((*line, *data)),
            _ => None,
        });
        let writes: Vec<(u64, Line)> = touched.chain(asked).collect();
        caught(|| {
            let mut controller = history.recover(&mut untimed);
            write_drained(history, &mut controller, &mut untimed, &drained);
            untimed.plan(|plan| controller.undo(plan));
            for (line, data) in writes {
                let write = Write::new(Logical(line), At::past(&data));
                write_untimed(&mut controller, &mut untimed, write);
            }
        })
        .ok()?;
        if !untimed.refused().is_empty() {
            return None;
        }
        let position = self.survivors.position();
        let is_global = history.has_global_counter();
        let written = pads::written(&untimed, 0, history.held());
        let mut clashes = written.iter().filter_map(|new| {
            let is_known =
                |counter: &u64| is_global && history.pads.within_reach(*counter, position) > 0;
            let again = new.counter.filter(is_known);
            let again = again.map(|counter| format!("counter {counter} is drawn again"));
            history.pads.clash(new, position).or(again)
        });
        clashes.next().or_else(|| {
            let again = Pads::from_uses(written).within().into_iter();
            let mut again = again.filter(|violation| violation.kind == Kind::PadReused);
            Some(again.next()?.what)
        })
    }

    fn is_refused(&self) -> bool {
        !self.survivors.untimed.refused().is_empty()
    }

    /// Notes whether anything was refused, and forgets all that came after the cut.
    fn end(&mut self, mut used: Used) -> Used {
        used.refused = self.is_refused();
        self.survivors.untimed.forget();
        used
    }
}

/// Writes the changes of an attack past all guards, over what a controller at work has written.
fn write_past(untimed: &mut Untimed, change: &Change) {
    untimed.plan(|plan| {
        for (place, content) in &change.lines {
            if let Some((line, beside)) = content {
                let line = At::past(line);
                plan.write_words(*place, line, 0xff, *beside, Step::PAST, Queue::Data);
            }
        }
    });
}

fn said(read: &Result<Line, String>) -> String {
    match read {
        Err(what) => format!("nothing ({what})"),
        Ok(line) => {
            let bytes: Vec<String> = line[..8].iter().map(|byte| format!("{byte:02x}")).collect();
            format!("{}..", bytes.join(" "))
        }
    }
}
