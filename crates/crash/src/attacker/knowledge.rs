//! The attacker's knowledge: what the medium held at each look, by region, and what has changed since. Left out: how he
//! uses it.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ops::Range;
use std::rc::Rc;

use rand::Rng;
use rand_chacha::ChaCha8Rng;
use rustc_hash::FxHashMap;

use crate::history::History;
use crate::words::{number_of, word_of};
use sardonyx::controller::layers::PowerFail;
use sardonyx::line::{Line, Place};
use sardonyx::medium::image::{Content, Image};
use sardonyx::plan::untimed::Untimed;

/// Versions that share a line are those of as many lines around each other.
const AROUND: u64 = 64;
/// The bits of a major number, before all minor ones.
const MAJOR: Range<usize> = 0..64;

pub type Contents = BTreeMap<Place, Content>;

pub type Kept = (Line, [u8; 8]);

pub type Groups = Vec<(&'static str, Vec<Place>)>;

/// The contents of the medium at a look, without what is on chip.
pub struct Seen {
    pub position: u64,
    pub lines: Contents,
    pub all: Groups,
    /// The lines that the layers above the integrity know.
    pub known: Groups,
}

/// The medium as it is: the last look, and over it what a run has written since.
pub struct Now {
    pub seen: Rc<Seen>,
    pub over: Contents,
    /// Set while a controller is at work: then no line becomes unwritten.
    pub running: bool,
}

impl Now {
    pub fn at_rest(seen: &Rc<Seen>) -> Now {
        Now {
            seen: seen.clone(),
            over: Contents::new(),
            running: false,
        }
    }

    /// The medium as it was seen, and over it what a controller at work has written.
    pub fn look(seen: &Rc<Seen>, untimed: &Untimed) -> Now {
        let over = untimed.overlaid();
        Now {
            seen: seen.clone(),
            over: over
                .map(|(at, line, beside)| (at, (line, beside)))
                .collect(),
            running: true,
        }
    }

    pub fn get(&self, place: Place) -> Option<&Content> {
        self.over
            .get(&place)
            .or_else(|| self.seen.lines.get(&place))
    }
}

pub struct Knowledge<'h> {
    pub history: &'h History,
    pub kept: Option<Box<dyn PowerFail>>,
    pub levels: usize,
    /// The looks so far, the oldest first.
    pub before: Vec<Rc<Seen>>,
    /// The medium as it was 1, 2, 4 .. acceptances ago, the newest first: registers that lag are that far behind.
    pub near: Vec<Rc<Seen>>,
    pub empty: Rc<Seen>,
    /// All contents that a line has had under each of its versions, with their MACs.
    under: FxHashMap<(Place, u64), Vec<Kept>>,
    differs: RefCell<BTreeMap<usize, Rc<Groups>>>,
}

impl<'h> Knowledge<'h> {
    pub fn new(history: &'h History, image: &Image) -> Knowledge<'h> {
        let kept = history.power_fail();
        let level = |level: &usize| {
            let kept = kept.as_deref();
            kept.is_some_and(|kept| kept.over(Place(0), *level).is_some())
        };
        let mut knowledge = Knowledge {
            history,
            levels: (0..).take_while(level).count(),
            kept,
            before: Vec::new(),
            near: Vec::new(),
            empty: Rc::new(Seen {
                position: 0,
                lines: Contents::new(),
                all: Groups::new(),
                known: Groups::new(),
            }),
            under: FxHashMap::default(),
            differs: RefCell::default(),
        };
        let first = Rc::new(knowledge.see(0, image));
        knowledge.before.push(first);
        knowledge
    }

    pub fn see(&self, position: u64, image: &Image) -> Seen {
        let on_chip = self.kept.as_deref().and_then(|kept| kept.on_chip());
        let reached = |place: &Place| !on_chip.is_some_and(|region| region.contains(*place));
        let lines = image.written_lines().filter(|(place, _)| reached(place));
        let lines = lines.map(|(place, line)| (place, (line, image.sideband(place))));
        let lines: Contents = lines.collect();
        let all = self.grouped(lines.keys().copied());
        let known = all.iter().filter(|(_, places)| self.is_known(places[0]));
        Seen {
            position,
            known: known.cloned().collect(),
            all,
            lines,
        }
    }

    pub fn looks_on(&self) {
        self.differs.borrow_mut().clear();
    }

    /// Returns the earlier look with that number: those of the run come first, then those that are near, and last the
    /// empty medium.
    pub fn earlier(&self, look: usize) -> Option<&Rc<Seen>> {
        let all = self.before.iter().chain(&self.near);
        all.chain([&self.empty]).nth(look)
    }

    /// Notes the content, the MAC and the version that the line at `place` has in `image`.
    pub fn follow(&mut self, place: Place, image: &Image) {
        let Some((kept, version)) = self.kept_under(place, |at| image.content(at)) else {
            return;
        };
        let known = self.under.entry((place, version)).or_default();
        if !known.contains(&kept) {
            known.push(kept);
        }
    }

    fn kept_under(
        &self,
        place: Place,
        read: impl Fn(Place) -> Option<Content>,
    ) -> Option<(Kept, u64)> {
        let kept = self.kept.as_deref()?;
        let (node, bits) = kept.version_of(place)?;
        let (at, number) = kept.kept_of(place)?;
        let mac = word_of(Some(&read(at)?), number);
        let version = read(node).map_or(0, |(line, _)| number_of(&line, &bits));
        Some(((read(place)?.0, mac), version))
    }

    /// Lines that have had another content under the version that they have `now`: each other content, with its MAC.
    pub fn same_version(&self, now: &Now) -> Vec<(Place, Kept)> {
        let read = |at: Place| now.get(at).copied();
        let mut found = Vec::new();
        for ((place, version), known) in &self.under {
            if known.len() < 2 {
                continue;
            }
            if let Some((is, version_now)) = self.kept_under(*place, read)
                && version_now == *version
            {
                let others = known.iter().filter(|other| **other != is);
                found.extend(others.map(|other| (*place, *other)));
            }
        }
        found.sort_unstable_by_key(|(place, _)| *place);
        found
    }

    pub fn is_known(&self, place: Place) -> bool {
        let kept = self.kept.as_deref();
        kept.is_none_or(|kept| kept.kept_of(place).is_some())
    }

    /// The line of `level` that authenticates the line at `place`.
    pub fn over(&self, place: Place, level: usize) -> Option<Place> {
        self.kept.as_deref()?.over(place, level)
    }

    pub fn macs(&self) -> Option<&'static str> {
        let (at, _) = self.kept.as_deref()?.kept_of(Place(0))?;
        Some(self.history.layout().name_of(at).0)
    }

    /// Groups places that are in order by their regions.
    fn grouped(&self, places: impl Iterator<Item = Place>) -> Groups {
        let layout = self.history.layout();
        let mut groups = Groups::new();
        let mut of = None;
        for place in places {
            let own = layout.regions().iter().find(|r| r.contains(place));
            let name = own.map_or("data", |region| region.name);
            if of != Some(name) {
                of = Some(name);
                groups.push((name, Vec::new()));
            }
            groups.last_mut().expect("just begun").1.push(place);
        }
        groups
    }

    /// Lines whose contents at look number `look` differ from those in `now`, by region.
    pub fn differing(&self, look: usize, now: &Seen) -> Rc<Groups> {
        if let Some(known) = self.differs.borrow().get(&look) {
            return known.clone();
        }
        let old = &self.earlier(look).expect("a look that was drawn").lines;
        let mut places: Vec<Place> = Vec::new();
        let changed = |(place, content): &(&Place, &Content)| old.get(place) != Some(content);
        places.extend(now.lines.iter().filter(changed).map(|(place, _)| *place));
        let gone = |place: &&Place| !now.lines.contains_key(place);
        places.extend(old.keys().filter(gone));
        places.sort_unstable();
        let groups = Rc::new(self.grouped(places.into_iter()));
        self.differs.borrow_mut().insert(look, groups.clone());
        groups
    }

    pub fn region_of(&self, place: Place) -> &'static str {
        self.history.layout().name_of(place).0
    }

    pub fn name(&self, place: Place) -> String {
        let (region, line) = self.history.layout().name_of(place);
        format!("line {line} of {region}")
    }

    /// Draws an earlier look: of the run, of a few acceptances ago, of the empty medium, or, in a run, of its
    /// beginning. It comes with the places that have changed since.
    pub fn look_back(&self, now: &Now, dice: &mut ChaCha8Rng) -> Option<Past> {
        let (far, near) = (self.before.len(), self.near.len());
        let look = match dice.next_u64() % 16 {
            // While a controller is at work no line becomes unwritten.
            0 if !now.running => far + near,
            0..6 if near > 0 => far + dice.next_u64() as usize % near,
            _ => match dice.next_u64() as usize % (far + usize::from(now.running)) {
                look if look == far => usize::MAX,
                look => look,
            },
        };
        let (old, groups) = match self.earlier(look) {
            Some(old) => (old.clone(), self.differing(look, &now.seen)),
            // No look has this number: the look is the one at which the run began, and only what the run has written
            // differs.
            None => (now.seen.clone(), Rc::default()),
        };
        let differs = |at: &&Place| now.get(**at) != old.lines.get(at);
        let since: Vec<Place> = now.over.keys().filter(differs).copied().collect();
        Some(Past { old, groups, since })
    }
}

/// The bits of the other versions in the line with the version of the line at `place`, and those of a major number.
pub fn fields_beside(kept: &dyn PowerFail, place: Place) -> Vec<Range<usize>> {
    let Some((node, own)) = kept.version_of(place) else {
        return Vec::new();
    };
    let around = place.0.saturating_sub(AROUND)..place.0 + AROUND;
    let fields = around.filter_map(|at| kept.version_of(Place(at)));
    let fields = fields.filter(|(line, bits)| *line == node && *bits != own);
    let mut fields: Vec<_> = fields.map(|(_, bits)| bits).collect();
    if own.start >= MAJOR.end && own.len() < MAJOR.len() {
        fields.push(MAJOR);
    }
    fields.sort_unstable_by_key(|bits| bits.start);
    fields.dedup();
    fields
}

/// An earlier look, with the places that have changed since.
pub struct Past {
    pub old: Rc<Seen>,
    pub groups: Rc<Groups>,
    pub since: Vec<Place>,
}

impl Past {
    pub fn places(&self) -> impl Iterator<Item = Place> + '_ {
        let groups = self.groups.iter().flat_map(|(_, places)| places);
        groups.chain(&self.since).copied()
    }

    /// Draws one of the places, of any region; two times in three one that the run has written. `known` leaves out what
    /// the layers above the integrity do not know.
    pub fn drawn(&self, known: bool, of: &Knowledge, dice: &mut ChaCha8Rng) -> Option<Place> {
        let fits = |place: &Place| !known || of.is_known(*place);
        if !self.since.is_empty() && !dice.next_u64().is_multiple_of(3) {
            let since: Vec<Place> = self.since.iter().copied().filter(fits).collect();
            if let Some(at) = dice.next_u64().checked_rem(since.len() as u64) {
                return Some(since[at as usize]);
            }
        }
        let groups = self.groups.iter().filter(|(_, places)| fits(&places[0]));
        let groups: Vec<&(&str, Vec<Place>)> = groups.collect();
        let number = dice.next_u64().checked_rem(groups.len() as u64)?;
        let (_, places) = groups[number as usize];
        Some(one_of(places, dice))
    }
}

/// Draws one of `places`. The first and the last come oftener, because faults lie at ends.
pub fn one_of(places: &[Place], dice: &mut ChaCha8Rng) -> Place {
    let number = match dice.next_u64() % 8 {
        0 => 0,
        1 => places.len() - 1,
        _ => (dice.next_u64() % places.len() as u64) as usize,
    };
    places[number]
}
