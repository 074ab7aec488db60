//! An attacker who reads and writes the medium while the power is off. At a cut he changes what it left, a recovery
//! follows, and what the programs then read is held against what they would have read without him. Nothing is said
//! of reads in a run (the seam's tests flip those), nor of who attacks while a recovery runs.
//!
//! What he does not reach is on chip: registers, and the lines that reserve power dumps them to.

use std::collections::BTreeMap;

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::caught::caught;
use super::history::History;
use super::platform::{Platform, Survivors, Whole};
use crate::controller::layers::{PowerFail, Refuses};
use crate::line::{LINE_BYTES, Line, Place, ZERO_LINE};
use crate::machine::UntimedMemory;
use crate::medium::image::Image;
use crate::plan::untimed::Untimed;
use crate::workload::Workload;

crate::names::named! {
    /// What the attacker does.
    Attack {
        /// He inverts one bit of a line, or of what lies beside it.
        Tamper = "tamper",
        /// He lets two lines change places, each with its MAC.
        Splice = "splice",
        /// He puts back what a line was at an earlier cut, with its MAC, its counter's line and that one's MAC, and all nodes.
        Replay = "replay",
        /// He puts back all that the medium held at an earlier cut.
        Rollback = "rollback",
    }
}

impl Attack {
    /// Whether `promises` say that it is noticed.
    pub fn is_refused_by(self, promises: Refuses) -> bool {
        match self {
            Attack::Tamper => promises.tamper,
            Attack::Splice => promises.splice,
            Attack::Replay => promises.replay,
            Attack::Rollback => promises.rollback,
        }
    }
}

/// What came of attacks of one kind.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Came {
    /// Attacks that changed the medium.
    pub tried: u64,
    /// Of them, those that a recovery or a read refused.
    pub refused: u64,
    /// Those after which programs read what they would have read anyway.
    pub harmless: u64,
    /// Those after which they read something else, and nothing was refused.
    pub undetected: u64,
    /// The first of these: at which position, and what was done.
    pub first: Option<(u64, String)>,
}

/// What came of all attacks on a history.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Attacked {
    /// Cuts at which there were attacks.
    pub cuts: u64,
    /// Cuts whose honest recovery was refused.
    pub honest_refused: u64,
    /// What came of each kind, in the order of [`Attack::ALL`].
    pub came: [Came; Attack::ALL.len()],
}

impl Attacked {
    /// What came of `attack`.
    pub fn of(&self, attack: Attack) -> &Came {
        &self.came[attack as usize]
    }

    /// Attacks in all.
    pub fn tried(&self) -> u64 {
        self.came.iter().map(|came| came.tried).sum()
    }
}

/// What the medium held at a cut.
type Held = BTreeMap<Place, Content>;

/// A line, and what lies beside it.
type Content = (Line, Option<[u8; 8]>);

/// What programs read after a recovery; the text says why one reads nothing.
#[derive(PartialEq)]
struct Used {
    refused: bool,
    read: Vec<Result<Line, String>>,
}

/// Attacks at `cuts` positions of `history`, spread evenly, `each` of every kind at each. The same seed draws the
/// same attacks.
pub fn attack(history: &History, platform: Platform, cuts: u64, each: u64, seed: u64) -> Attacked {
    let mut attacker = Attacker::new(history, platform, seed);
    let (mut found, last) = (Attacked::default(), history.positions() - 1);
    for cut in 1..=cuts {
        while attacker.survivors.position() < last * cut / cuts {
            attacker.survivors.advance(&mut Vec::new());
        }
        attacker.look(each, &mut found);
    }
    found
}

struct Attacker<'h> {
    history: &'h History,
    survivors: Survivors<'h>,
    kept: Option<Box<dyn PowerFail>>,
    workloads: Vec<Workload>,
    /// What the medium held at earlier cuts, the oldest first.
    before: Vec<Held>,
    random: ChaCha8Rng,
}

impl<'h> Attacker<'h> {
    fn new(history: &'h History, platform: Platform, seed: u64) -> Attacker<'h> {
        let image = history.image.copy();
        let survivors = Survivors::new(&history.journal, image, platform, history.seed);
        let survivors = survivors.guarded(history.power_fail());
        let programs = history.programs.iter();
        let programs = programs.map(|p| p.spec.build().expect("it has been run"));
        Attacker {
            history,
            kept: history.power_fail(),
            workloads: programs.collect(),
            before: vec![held(survivors.untimed.image())],
            survivors,
            random: ChaCha8Rng::seed_from_u64(seed),
        }
    }

    /// All attacks at the present position.
    fn look(&mut self, each: u64, found: &mut Attacked) {
        found.cuts += 1;
        let honest = self.use_it();
        found.honest_refused += u64::from(honest.refused);
        let now = held(self.survivors.untimed.image());
        for kind in Attack::ALL {
            for _ in 0..each {
                let (used, what) = match kind {
                    Attack::Rollback => match self.rollback() {
                        Some(told) => told,
                        None => continue,
                    },
                    _ => match self.changes(kind, &now) {
                        Some((changes, what)) => (self.changed(&now, &changes), what),
                        None => continue,
                    },
                };
                let came = &mut found.came[kind as usize];
                came.tried += 1;
                if used.refused {
                    came.refused += 1;
                } else if used.read == honest.read {
                    came.harmless += 1;
                } else {
                    came.undetected += 1;
                    let at = self.survivors.position();
                    came.first.get_or_insert((at, what));
                }
            }
        }
        self.before.push(now);
    }

    /// Recovers, has the programs recover, and gives what their lines read as.
    fn use_it(&mut self) -> Used {
        let (history, survivors) = (self.history, &mut self.survivors);
        let mut read = Vec::new();
        let done = caught(|| {
            let mut controller = survivors.recover(history);
            for (program, workload) in history.programs.iter().zip(&self.workloads) {
                let (region, log) = (&program.region, &program.log);
                let untimed = &mut survivors.untimed;
                let mut view = UntimedMemory::new(untimed, &mut controller, region, log);
                if let Err(fault) = workload.recover(&mut view) {
                    read.push(Err(fault.what));
                    continue;
                }
                let lines = region.iter().filter(|line| !log.contains(*line));
                read.extend(lines.map(|line| Ok(view.line(line))));
            }
        });
        read.extend(done.err().map(Err));
        let refused = !survivors.untimed.refused().is_empty();
        survivors.untimed.forget();
        Used { refused, read }
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

    /// The same over what the medium held at an earlier cut, with the registers of now.
    fn rollback(&mut self) -> Option<(Used, String)> {
        let earlier = self.draw(self.before.len() as u64) as usize;
        let now = self.survivors.untimed.image();
        let register = self.kept.as_ref().and_then(|kept| kept.on_chip());
        let register = register.map(|region| region.line(0));
        let mut old = Image::sparse();
        for (place, (line, beside)) in &self.before[earlier] {
            old.write(*place, line, 0xff, *beside);
        }
        if let Some((at, line)) = register.and_then(|at| Some((at, now.read(at)?))) {
            old.write(at, &line, 0xff, None);
        }
        if held(&old) == held(now) {
            return None;
        }
        let now = std::mem::replace(&mut self.survivors.untimed, Untimed::new(old));
        let used = self.use_it();
        self.survivors.untimed = now;
        let what = format!("the whole medium is as at the attacker's look number {earlier}");
        Some((used, what))
    }

    /// The changes of one attack, and what it is; nothing if what was drawn changes nothing.
    fn changes(&mut self, kind: Attack, now: &Held) -> Option<(Vec<Whole>, String)> {
        let (changes, what) = match kind {
            Attack::Tamper => {
                let (place, (mut line, mut beside)) = self.any(now, false)?;
                let bit =
                    self.draw(8 * LINE_BYTES as u64 + 64 * u64::from(beside.is_some())) as usize;
                match (bit / 8).checked_sub(LINE_BYTES) {
                    None => line[bit / 8] ^= 1 << (bit % 8),
                    Some(byte) => beside.as_mut()?[byte] ^= 1 << (bit % 8),
                }
                let what = format!("bit {bit} of {} is inverted", self.name(place));
                (vec![(place, line, beside)], what)
            }
            Attack::Splice => {
                let (one, other) = (self.any(now, true)?, self.any(now, true)?);
                let mut changes = Changes::new(now);
                changes.put(one.0, other.1.0, other.1.1);
                changes.put(other.0, one.1.0, one.1.1);
                if let Some(kept) = &self.kept {
                    let at = [kept.kept_of(one.0)?, kept.kept_of(other.0)?];
                    let words = at.map(|(at, number)| word_of(now, at, number));
                    changes.put_word(at[0], words[1]);
                    changes.put_word(at[1], words[0]);
                }
                let what = format!(
                    "{} and {} change places",
                    self.name(one.0),
                    self.name(other.0)
                );
                (changes.done(), what)
            }
            Attack::Replay => {
                let earlier = self.draw(self.before.len() as u64) as usize;
                let place = self.other_at(earlier, now)?;
                let old = &self.before[earlier];
                let mut changes = Changes::new(now);
                let counter = self.history.counter_place(place);
                for place in [Some(place), counter].into_iter().flatten() {
                    let Some((line, beside)) = old.get(&place) else {
                        continue;
                    };
                    changes.put(place, *line, *beside);
                    if let Some(kept) = &self.kept {
                        let at = kept.kept_of(place)?;
                        changes.put_word(at, word_of(old, at.0, at.1));
                    }
                }
                for (place, (line, beside)) in old.iter().filter(|(at, _)| self.is_node(**at)) {
                    changes.put(*place, *line, *beside);
                }
                let what = format!("{} is as at look number {earlier}", self.name(place));
                (changes.done(), what)
            }
            Attack::Rollback => unreachable!("it is no change of some lines"),
        };
        let differs = |(place, line, beside): &Whole| now.get(place) != Some(&(*line, *beside));
        let changes: Vec<Whole> = changes.into_iter().filter(differs).collect();
        // What lies beside a line cannot be taken away again: such an attack would change what comes after it.
        let stays = |(place, _, beside): &Whole| {
            let now = now.get(place).and_then(|(_, beside)| *beside);
            now.is_some() == beside.is_some()
        };
        (!changes.is_empty() && changes.iter().all(stays)).then_some((changes, what))
    }

    /// Any line that the attacker reaches; with `protected` one that the layers above the integrity know.
    fn any(&mut self, now: &Held, protected: bool) -> Option<(Place, Content)> {
        let within = |place: &Place| match &self.kept {
            None => true,
            Some(kept) => {
                let on_chip = kept.on_chip().is_some_and(|region| region.contains(*place));
                !on_chip && (!protected || kept.kept_of(*place).is_some())
            }
        };
        let lines: Vec<&Place> = now.keys().filter(|place| within(place)).collect();
        let count = lines.len() as u64;
        let place = *lines[self.random.next_u64().checked_rem(count)? as usize];
        Some((place, now[&place]))
    }

    /// Any line that the layers above the integrity know and that was another at look number `earlier`.
    fn other_at(&mut self, earlier: usize, now: &Held) -> Option<Place> {
        let old = self.before[earlier].iter();
        let known = |place: &Place| match &self.kept {
            None => true,
            Some(kept) => kept.kept_of(*place).is_some(),
        };
        let other = old.filter(|(place, held)| known(place) && now.get(place) != Some(*held));
        let places: Vec<Place> = other.map(|(place, _)| *place).collect();
        let drawn = self.random.next_u64().checked_rem(places.len() as u64)?;
        Some(places[drawn as usize])
    }

    fn is_node(&self, place: Place) -> bool {
        self.history.layout().name_of(place).0.starts_with("nodes-")
    }

    fn name(&self, place: Place) -> String {
        let (region, line) = self.history.layout().name_of(place);
        format!("line {line} of {region}")
    }

    fn draw(&mut self, below: u64) -> u64 {
        self.random.next_u64() % below
    }
}

/// Lines that are about to be changed.
struct Changes<'n> {
    now: &'n Held,
    lines: Held,
}

impl<'n> Changes<'n> {
    fn new(now: &'n Held) -> Changes<'n> {
        let lines = Held::new();
        Changes { now, lines }
    }

    fn put(&mut self, place: Place, line: Line, beside: Option<[u8; 8]>) {
        self.lines.insert(place, (line, beside));
    }

    fn put_word(&mut self, (place, number): (Place, usize), word: [u8; 8]) {
        let now = self.now.get(&place).copied().unwrap_or((ZERO_LINE, None));
        let (line, _) = self.lines.entry(place).or_insert(now);
        line[number * 8..][..8].copy_from_slice(&word);
    }

    fn done(self) -> Vec<Whole> {
        let lines = self.lines.into_iter();
        lines
            .map(|(place, (line, beside))| (place, line, beside))
            .collect()
    }
}

/// Word `number` of the line at `place`.
fn word_of(held: &Held, place: Place, number: usize) -> [u8; 8] {
    let line = held.get(&place).map_or(ZERO_LINE, |(line, _)| *line);
    line.as_chunks().0[number]
}

fn held(image: &Image) -> Held {
    let lines = image.written_lines();
    lines
        .map(|(place, line)| (place, (line, image.sideband(place))))
        .collect()
}
