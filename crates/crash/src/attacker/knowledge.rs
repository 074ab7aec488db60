//! What the attacker knows: what the medium held at each look, by region, and what has changed since. Left out: what he
//! does with it.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use crate::history::History;
use sardonyx::controller::layers::PowerFail;
use sardonyx::line::Place;
use sardonyx::medium::image::{Content, Image};
use sardonyx::plan::untimed::Untimed;

pub type Held = BTreeMap<Place, Content>;

pub type Groups = Vec<(&'static str, Vec<Place>)>;

/// What the medium held at a look, without what is on chip.
pub struct Seen {
    pub position: u64,
    pub lines: Held,
    pub all: Groups,
    /// The lines that the layers above the integrity know.
    pub known: Groups,
}

/// The medium as it is: what was seen last, and over it what a run has written since.
pub struct Now {
    pub seen: Rc<Seen>,
    pub over: Held,
    /// The controller is at work: nothing becomes what it was before anybody wrote it.
    pub running: bool,
}

impl Now {
    /// The medium as it was seen, with nothing written over it.
    pub fn at_rest(seen: &Rc<Seen>) -> Now {
        Now {
            seen: seen.clone(),
            over: Held::new(),
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

/// All that he has seen of a run.
pub struct Knowledge<'h> {
    pub history: &'h History,
    pub kept: Option<Box<dyn PowerFail>>,
    pub levels: usize,
    /// The looks so far, the oldest first.
    pub before: Vec<Rc<Seen>>,
    differs: RefCell<BTreeMap<usize, Rc<Groups>>>,
}

impl<'h> Knowledge<'h> {
    /// His knowledge before the run, whose medium is `image`.
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
            differs: RefCell::default(),
        };
        let first = Rc::new(knowledge.see(0, image));
        knowledge.before.push(first);
        knowledge
    }

    /// Takes a look: what `image` holds at the cut at that position.
    pub fn see(&self, position: u64, image: &Image) -> Seen {
        let on_chip = self.kept.as_deref().and_then(|kept| kept.on_chip());
        let reached = |place: &Place| !on_chip.is_some_and(|region| region.contains(*place));
        let lines = image.written_lines().filter(|(place, _)| reached(place));
        let lines = lines.map(|(place, line)| (place, (line, image.sideband(place))));
        let lines: Held = lines.collect();
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

    pub fn is_known(&self, place: Place) -> bool {
        let kept = self.kept.as_deref();
        kept.is_none_or(|kept| kept.kept_of(place).is_some())
    }

    /// The line of `level` that authenticates the line at `place`.
    pub fn over(&self, place: Place, level: usize) -> Option<Place> {
        self.kept.as_deref()?.over(place, level)
    }

    /// The region of MACs, if there is one.
    pub fn macs(&self) -> Option<&'static str> {
        let (at, _) = self.kept.as_deref()?.kept_of(Place(0))?;
        Some(self.history.layout().name_of(at).0)
    }

    /// Places in order, by region.
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
        let old = &self.before[look].lines;
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
}
