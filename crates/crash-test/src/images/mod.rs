//! Images that a cut could leave, the most promising first.
//!
//! *n* pending lines have far too many combinations to try all. Faults in orders show when one line is early or late
//! against all others, so such images come first, at every kind of cut; then a line between two of its stores, pairs,
//! and subsets drawn from a seed. Where few lines are pending all combinations are tried.

pub mod copy;
pub mod grounds;

use std::fmt::Write;
use std::ops::ControlFlow;

use rustc_hash::{FxHashMap, FxHashSet};
use sardonyx_trace::line::Line;

use crate::recording::persistence::{Course, Cut, PendingState, Rise, Visit, replay};
use crate::recording::platform::Platform;
use crate::recording::versions::hash_of;
use crate::recording::{LINE, Recording};
use crate::{CrashTestError, Result};

pub const WHOLE: u8 = 0xFF;

/// A line that is beyond its floor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Over {
    pub slot: u32,
    pub version: u32,
    /// The words that have this version, a bit each; the others have the floor's.
    pub words: u8,
}

/// The contents of memory after a cut: each line's floor, and the lines that had persisted beyond theirs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Image {
    pub cut: u32,
    pub over: Vec<Over>,
    pub kind: Kind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Kind {
    None,
    All,
    Early,
    Late,
    Prefix,
    UpTo,
    Torn,
    Each,
    Pair,
    Drawn,
    Stale,
    Given,
}

impl Kind {
    pub fn name(self) -> &'static str {
        match self {
            Kind::None => "only what was fenced",
            Kind::All => "everything",
            Kind::Early => "one line early",
            Kind::Late => "one line late",
            Kind::Prefix => "a line between its stores",
            Kind::UpTo => "all stores up to one",
            Kind::Torn => "a torn line",
            Kind::Each => "a combination of few lines",
            Kind::Pair => "two lines",
            Kind::Drawn => "a drawn subset",
            Kind::Stale => "an unflushed line early",
            Kind::Given => "given",
        }
    }
}

/// The bytes of a line whose words in `over` are beyond the floor.
pub fn bytes(recording: &Recording, floor: u32, over: Over) -> Line {
    let versions = &recording.lines[over.slot as usize].versions;
    let mut data = versions.data(floor);
    let from = versions.data(over.version);
    for word in (0..8).filter(|word| over.words & 1 << word != 0) {
        data[word * 8..word * 8 + 8].copy_from_slice(&from[word * 8..word * 8 + 8]);
    }
    data
}

/// The floors of all lines, followed from cut to cut in both directions.
#[derive(Debug)]
pub struct Floors<'a> {
    recording: &'a Recording,
    course: &'a Course,
    pub floor: Vec<u32>,
    rises: u32,
    hash: Option<u64>,
}

impl<'a> Floors<'a> {
    /// The floors before the first event: every line as it was before the recording.
    pub fn new(recording: &'a Recording, course: &'a Course) -> Floors<'a> {
        Floors {
            recording,
            course,
            floor: vec![0; recording.lines.len()],
            rises: 0,
            hash: Some(0),
        }
    }

    pub fn without_hashes(recording: &'a Recording, course: &'a Course) -> Floors<'a> {
        Floors {
            hash: None,
            ..Floors::new(recording, course)
        }
    }

    fn version_hash(&self, slot: u32, version: u32) -> u64 {
        self.recording.lines[slot as usize].versions.hash(version)
    }

    /// Goes to a cut, and calls `changed` with each line whose floor has changed, and its version.
    pub fn go(&mut self, cut: u32, mut changed: impl FnMut(u32, u32)) {
        let to = self.course.cuts[cut as usize].rises;
        while self.rises != to {
            let forward = self.rises < to;
            self.rises -= u32::from(!forward);
            let Rise { slot, from, to } = self.course.rises[self.rises as usize];
            self.rises += u32::from(forward);
            let version = if forward { to } else { from };
            let old = std::mem::replace(&mut self.floor[slot as usize], version);
            // The hash is an XOR over all lines, so one line's change costs no walk over the others.
            if let Some(hash) = self.hash {
                let differ = self.version_hash(slot, old) ^ self.version_hash(slot, version);
                self.hash = Some(hash ^ differ);
            }
            changed(slot, version);
        }
    }

    /// A hash of an image at the present cut; equal contents have equal hashes.
    ///
    /// # Panics
    /// Hashes are not kept.
    pub fn hash(&self, over: &[Over]) -> u64 {
        let floors = self.hash.expect("hashes are kept");
        over.iter().fold(floors, |hash, over| {
            let floor = self.floor[over.slot as usize];
            let new = match over.words {
                WHOLE => self.version_hash(over.slot, over.version),
                _ => {
                    let slot = &self.recording.lines[over.slot as usize];
                    hash_of(slot.file, slot.line, &bytes(self.recording, floor, *over))
                }
            };
            hash ^ self.version_hash(over.slot, floor) ^ new
        })
    }
}

#[derive(Clone, Copy, Debug)]
pub struct ImagePass {
    pub name: &'static str,
    kinds: &'static [Kind],
    /// A pass visits the cuts of each kind from the `from`-th to before the `to`-th.
    from: u32,
    to: u32,
    /// Set if only the first image of each [class](Maker::class) is tried.
    classes: bool,
}

impl ImagePass {
    const fn new(name: &'static str, kinds: &'static [Kind], from: u32, to: u32) -> ImagePass {
        ImagePass {
            name,
            kinds,
            from,
            to,
            classes: false,
        }
    }
}

const ALWAYS: u32 = u32::MAX;
const SINGLE: &[Kind] = &[Kind::Early, Kind::Late];
const INNER: &[Kind] = &[Kind::Prefix, Kind::Torn, Kind::Each];
const MORE: &[Kind] = &[Kind::Pair, Kind::Drawn];

/// What presses one line.
const ONE: &[Kind] = &[
    Kind::None,
    Kind::All,
    Kind::Early,
    Kind::Late,
    Kind::Prefix,
    Kind::Torn,
];

/// All passes. Images that differ in what they press come first, because a program with thousands of kinds of moments
/// has few stores. Then comes the pass that finds most for its time: every kind of moment is tried before any a second
/// time.
pub const PASSES: [ImagePass; 18] = [
    ImagePass {
        classes: true,
        ..ImagePass::new("one image of each class", ONE, 0, 1)
    },
    ImagePass::new("only what was fenced", &[Kind::None], 0, 1),
    ImagePass::new("everything", &[Kind::All], 0, 1),
    ImagePass::new("one line early or late", SINGLE, 0, 1),
    ImagePass::new("a line between its stores", &[Kind::Prefix], 0, 1),
    ImagePass::new("stores up to one", &[Kind::UpTo], 0, 1),
    ImagePass::new("within lines", INNER, 0, 1),
    ImagePass::new(
        "fenced and everything, again",
        &[Kind::None, Kind::All],
        1,
        3,
    ),
    ImagePass::new("pairs and subsets", MORE, 0, 1),
    ImagePass::new("one line, again", SINGLE, 1, 3),
    ImagePass::new(
        "fenced and everything, everywhere",
        &[Kind::None, Kind::All],
        3,
        ALWAYS,
    ),
    ImagePass::new("within lines, again", INNER, 1, 3),
    ImagePass::new("stores up to one, again", &[Kind::UpTo], 1, 3),
    ImagePass::new("unflushed lines", &[Kind::Stale], 0, 1),
    ImagePass::new("pairs and subsets, again", MORE, 1, 3),
    ImagePass::new("one line, everywhere", SINGLE, 3, ALWAYS),
    ImagePass::new("within lines, everywhere", INNER, 3, ALWAYS),
    ImagePass::new("pairs and subsets, everywhere", MORE, 3, ALWAYS),
];

pub const EVERYTHING: ImagePass = ImagePass::new("everything", &[Kind::All], 0, ALWAYS);

const FEW: usize = 4;
const DRAWS: u64 = 4;
/// A line is tried with at most this many contents from the middle of its stores.
const MIDDLES: u32 = 6;
/// Images of all stores up to one are made for at most this many stores.
const UP_TO: u32 = 16;

/// Each kind of moment must have been through this many [`PASSES`] before a run without a violation says anything: a
/// missing flush or fence shows in one of these at the latest, and so does a wrong order of lines or within a line, as
/// far as one line decides. A report names the later passes that were not completed.
pub const FIRST: usize = 5;

#[derive(Clone, Copy, Debug)]
pub struct Scope {
    pub platform: Platform,
    pub tear: bool,
    pub start: u32,
    pub end: u32,
    pub seed: u64,
    /// Set if acknowledgements are part of an image: equal contents after other acknowledgements are tried again.
    pub acks: bool,
}

/// What becomes of an image that is offered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Given {
    Taken,
    /// The image may come again in a later pass.
    LeftOut,
    Enough,
}

#[derive(Debug, Default)]
pub struct Passed {
    /// The cuts that it visited, whether they had something new to try or not.
    pub cuts: Vec<u32>,
    pub finished: bool,
}

/// Makes the images of a pass and hands out those that are new.
struct Maker<'a, F> {
    recording: &'a Recording,
    floors: Floors<'a>,
    pass: ImagePass,
    scope: Scope,
    number: u32,
    seen_kinds: FxHashMap<u32, u32>,
    classes: FxHashSet<u64>,
    seen: &'a mut FxHashSet<u64>,
    give: F,
    go_on: &'a dyn Fn() -> bool,
    cuts: Vec<u32>,
    ended: bool,
}

fn mixed(a: u64, b: u64) -> u64 {
    let x = (a ^ b.wrapping_mul(0x9E37_79B9_7F4A_7C15)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    (x ^ x >> 29).wrapping_mul(0x94D0_49BB_1331_11EB) ^ x >> 32
}

impl<F: FnMut(Image) -> Given> Maker<'_, F> {
    /// What an image presses: its kind, and the stores that are there against the rest, or that are not.
    fn class(&self, over: &[Over], kind: Kind, moment: &Moment<'_>) -> u64 {
        let recording = self.recording;
        let program = |site: u32, other: u64| match recording.sites.get(site as usize) {
            Some(site) => site.pc,
            None => other,
        };
        let at = |over: &Over| {
            let versions = &recording.lines[over.slot as usize].versions;
            let event = versions.event(over.version) as usize;
            program(recording.events.site(event), u64::from(over.slot))
        };
        let there: FxHashSet<&Over> = over.iter().collect();
        let missing = moment.all.iter().filter(|over| !there.contains(over));
        let missing: Vec<u64> = missing.map(at).collect();
        let late = !missing.is_empty() && missing.len() < over.len();
        let mut pressed = match kind {
            Kind::None | Kind::All => {
                let event = moment.cut.event as usize;
                let known = event < recording.events.len();
                vec![if known {
                    program(recording.events.site(event), 0)
                } else {
                    0
                }]
            }
            _ if late => missing,
            _ => over.iter().map(at).collect(),
        };
        pressed.sort_unstable();
        pressed.dedup();
        let first = (kind as u64) << 1 | u64::from(late);
        pressed.into_iter().fold(first, mixed)
    }

    fn offer(&mut self, mut over: Vec<Over>, kind: Kind, moment: &Moment<'_>) {
        if self.ended {
            return;
        }
        over.sort_unstable();
        // The recovery sees only bytes, so equal bytes are one image wherever in the program they come from.
        // Acknowledgements before the cut decide whether its answer is right, so they count too.
        let hash = mixed(self.floors.hash(&over), moment.acked);
        if self.pass.classes && !self.classes.insert(self.class(&over, kind, moment)) {
            return;
        }
        if !self.seen.contains(&hash) {
            let image = Image {
                cut: moment.number,
                over,
                kind,
            };
            match (self.give)(image) {
                Given::Taken => {
                    self.seen.insert(hash);
                }
                Given::LeftOut => {}
                Given::Enough => self.ended = true,
            }
        }
    }
}

impl<F: FnMut(Image) -> Given> Visit for Maker<'_, F> {
    fn cut(&mut self, _: u32, _: u32, state: &PendingState) -> ControlFlow<()> {
        let number = self.number;
        self.number += 1;
        if (self.scope.start..self.scope.end).contains(&number) {
            let cut = self.floors.course.cuts[number as usize];
            let count = self.seen_kinds.entry(cut.signature).or_default();
            *count += 1;
            // A loop makes the same moment a thousand times, so a pass visits each kind of moment a few times, and
            // later passes the rest.
            let nth = *count - 1;
            if (self.pass.from..self.pass.to).contains(&nth) {
                self.floors.go(number, |_, _| ());
                self.at(number, &cut, state);
                // Of most cuts not all images are tried.
                if !self.pass.classes {
                    self.cuts.push(number);
                }
            }
            self.ended |= !(self.go_on)();
        }
        match self.ended || self.number >= self.scope.end {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    }
}

struct Moment<'s> {
    number: u32,
    cut: Cut,
    state: &'s PendingState,
    all: Vec<Over>,
    recent: &'s [u32],
    acked: u64,
}

impl Moment<'_> {
    fn whole(&self, slot: u32) -> Over {
        Over {
            slot,
            version: self.state.current[slot as usize],
            words: WHOLE,
        }
    }

    fn without(&self, gone: &[u32]) -> Vec<Over> {
        let kept = self.all.iter().filter(|over| !gone.contains(&over.slot));
        kept.copied().collect()
    }

    /// All pending lines, one of them with another content.
    fn but(&self, over: Over) -> Vec<Over> {
        let others = self.all.iter().filter(|other| other.slot != over.slot);
        others.copied().chain([over]).collect()
    }
}

impl<F: FnMut(Image) -> Given> Maker<'_, F> {
    fn at(&mut self, number: u32, cut: &Cut, state: &PendingState) {
        let whole = |&slot: &u32| Over {
            slot,
            version: state.current[slot as usize],
            words: WHOLE,
        };
        let moment = Moment {
            number,
            cut: *cut,
            state,
            all: state.pending.iter().map(whole).collect(),
            recent: &state.recent,
            acked: if self.scope.acks {
                u64::from(cut.acked)
            } else {
                0
            },
        };
        for &kind in self.pass.kinds {
            match kind {
                Kind::None => self.offer(Vec::new(), kind, &moment),
                Kind::All => self.offer(moment.all.clone(), kind, &moment),
                Kind::Early => {
                    for &slot in moment.recent {
                        self.offer(vec![moment.whole(slot)], kind, &moment);
                    }
                }
                Kind::Late => {
                    for &slot in moment.recent {
                        self.offer(moment.without(&[slot]), kind, &moment);
                    }
                }
                Kind::Prefix => self.prefixes(&moment),
                Kind::UpTo => self.up_to(&moment),
                Kind::Torn if self.scope.tear => self.torn(&moment),
                Kind::Each if moment.recent.len() <= FEW => self.combinations(&moment),
                Kind::Pair => self.pairs(&moment),
                Kind::Drawn if moment.recent.len() > FEW => self.drawn(&moment),
                Kind::Stale => self.stale(&moment),
                Kind::Torn | Kind::Each | Kind::Drawn | Kind::Given => {}
            }
        }
    }

    /// Offers a line that is beyond its floor, by itself and with all others.
    fn early_and_late(&mut self, over: Over, kind: Kind, moment: &Moment<'_>) {
        self.offer(vec![over], kind, moment);
        self.offer(moment.but(over), kind, moment);
    }

    fn prefixes(&mut self, moment: &Moment<'_>) {
        for &slot in moment.recent {
            let whole = moment.whole(slot);
            let from = moment.state.floor[slot as usize] + 1;
            for version in between(from, whole.version, MIDDLES) {
                let over = Over { version, ..whole };
                self.early_and_late(over, Kind::Prefix, moment);
            }
        }
    }

    /// Offers all stores up to one of the latest, as if every line had left the caches at once: a value that is stored
    /// over several lines is there by half.
    fn up_to(&mut self, moment: &Moment<'_>) {
        let versions = |slot: u32| &self.recording.lines[slot as usize].versions;
        let mut events: Vec<u32> = Vec::new();
        for &slot in moment.recent {
            let from = moment.state.floor[slot as usize] + 1;
            let made = from..=moment.state.current[slot as usize];
            events.extend(made.map(|version| versions(slot).event(version)));
        }
        events.sort_unstable();
        for at in between(0, events.len() as u32, UP_TO) {
            let event = events[at as usize];
            let there = moment.all.iter().filter_map(|over| {
                let floor = moment.state.floor[over.slot as usize];
                let before = versions(over.slot).made_by(floor + 1, over.version, event);
                (before > 0).then_some(Over {
                    version: floor + before,
                    ..*over
                })
            });
            let there = there.collect();
            self.offer(there, Kind::UpTo, moment);
        }
    }

    fn torn(&mut self, moment: &Moment<'_>) {
        for &slot in moment.recent {
            let whole = moment.whole(slot);
            let floor = moment.state.floor[slot as usize];
            for words in torn(self.recording, floor, whole) {
                let over = Over { words, ..whole };
                self.early_and_late(over, Kind::Torn, moment);
            }
        }
    }

    fn combinations(&mut self, moment: &Moment<'_>) {
        for set in 1..1u32 << moment.recent.len() {
            let chosen = (moment.recent.iter().enumerate())
                .filter(|(i, _)| set & 1 << i != 0)
                .map(|(_, &slot)| moment.whole(slot));
            self.offer(chosen.collect(), Kind::Each, moment);
        }
    }

    /// Offers pairs of lines. Two transactions that share a line, or that wait at the same time, differ in their
    /// threads or are apart in time.
    fn pairs(&mut self, moment: &Moment<'_>) {
        let of = |recording: &Recording, slot: u32| {
            let event = moment.state.changed[slot as usize];
            (event, recording.events.thread(event as usize))
        };
        for (i, &one) in moment.recent.iter().enumerate() {
            for &other in &moment.recent[i + 1..] {
                let ((late, a), (early, b)) = (of(self.recording, one), of(self.recording, other));
                // If there are many lines, neighbours of one thread are left out, because they usually belong to one
                // transaction.
                if a != b || late - early > 64 || moment.recent.len() <= 8 {
                    let both = vec![moment.whole(one), moment.whole(other)];
                    self.offer(both, Kind::Pair, moment);
                    self.offer(moment.without(&[one, other]), Kind::Pair, moment);
                }
            }
        }
    }

    /// Offers subsets drawn from the seed and the cut, of whole lines and of lines between their stores.
    fn drawn(&mut self, moment: &Moment<'_>) {
        for draw in 0..DRAWS {
            let seed = mixed(self.scope.seed, u64::from(moment.cut.event) << 8 | draw);
            let chosen = moment.all.iter().filter_map(|over| {
                let dice = mixed(seed, u64::from(over.slot));
                let floor = moment.state.floor[over.slot as usize];
                let version = match dice % 4 {
                    0 | 1 => return None,
                    2 => over.version,
                    _ => floor + 1 + (dice >> 8) as u32 % (over.version - floor),
                };
                Some(Over { version, ..*over })
            });
            self.offer(chosen.collect(), Kind::Drawn, moment);
        }
    }

    /// Offers lines that have not been flushed for long: two at each cut, and others at the next.
    fn stale(&mut self, moment: &Moment<'_>) {
        let stale = moment.without(moment.recent);
        let count = stale.len().max(1);
        for i in 0..count.min(2) {
            if let Some(&over) = stale.get((moment.number as usize * 2 + i) % count) {
                self.offer(vec![over], Kind::Stale, moment);
            }
        }
    }
}

/// At most this many numbers from `from` to before `to`, the first and the last among them.
fn between(from: u32, to: u32, most: u32) -> Vec<u32> {
    let count = to.saturating_sub(from);
    match count {
        0 => Vec::new(),
        _ if count <= most => (from..to).collect(),
        _ => (0..most)
            .map(|i| from + (u64::from(i) * u64::from(count - 1) / u64::from(most - 1)) as u32)
            .collect(),
    }
}

/// Ways to tear a line: each changed word early and late.
fn torn(recording: &Recording, floor: u32, over: Over) -> Vec<u8> {
    let versions = &recording.lines[over.slot as usize].versions;
    let (old, new) = (versions.data(floor), versions.data(over.version));
    let differs = |word: &usize| old[word * 8..word * 8 + 8] != new[word * 8..word * 8 + 8];
    let changed: Vec<u8> = (0..LINE / 8)
        .filter(differs)
        .map(|word| 1 << word)
        .collect();
    let all = changed.iter().fold(0, |all, word| all | word);
    match changed.len() {
        0 | 1 => Vec::new(),
        _ => changed
            .iter()
            .flat_map(|&word| [word, all & !word])
            .collect(),
    }
}

/// Calls `give` with each image of a pass that is not in `seen`, until it answers [`Given::Enough`] or `go_on` answers
/// false, which is asked at each cut.
pub fn each(
    recording: &Recording,
    course: &Course,
    scope: Scope,
    pass: ImagePass,
    seen: &mut FxHashSet<u64>,
    go_on: &dyn Fn() -> bool,
    give: impl FnMut(Image) -> Given,
) -> Passed {
    let mut maker = Maker {
        recording,
        floors: Floors::new(recording, course),
        pass,
        scope,
        number: 0,
        seen_kinds: FxHashMap::default(),
        classes: FxHashSet::default(),
        seen,
        give,
        go_on,
        cuts: Vec::new(),
        ended: false,
    };
    replay(recording, scope.platform, &mut maker);
    Passed {
        finished: !maker.ended,
        cuts: maker.cuts,
    }
}

impl Image {
    /// The image of a cut with nothing beyond the floors.
    pub fn fenced(cut: u32) -> Image {
        Image {
            cut,
            over: Vec::new(),
            kind: Kind::Given,
        }
    }

    /// The name of the image as `--replay` takes it: the cut, and lines with their versions; `2:` comes before a line
    /// of the second file.
    pub fn name(&self, recording: &Recording) -> String {
        let mut name = self.cut.to_string();
        for over in &self.over {
            let slot = &recording.lines[over.slot as usize];
            let _ = match slot.file {
                0 => write!(name, "+{:x}v{}", slot.line, over.version),
                file => write!(name, "+{}:{:x}v{}", file + 1, slot.line, over.version),
            };
            if over.words != WHOLE {
                let _ = write!(name, "w{:x}", over.words);
            }
        }
        name
    }

    pub fn named(name: &str, recording: &Recording, course: &Course) -> Result<Image> {
        let bad = || {
            CrashTestError::new(format!(
                "{name}: is not an image of this recording at these options; copy it from the report, with its \
                 --platform and the recording that it was made of"
            ))
        };
        let mut parts = name.split('+');
        let cut: u32 = parts
            .next()
            .and_then(|cut| cut.parse().ok())
            .ok_or_else(bad)?;
        if cut as usize >= course.cuts.len() {
            return Err(bad());
        }
        let slots: FxHashMap<(u16, u32), u32> = (recording.lines.iter().enumerate())
            .map(|(slot, line)| ((line.file, line.line), slot as u32))
            .collect();
        let over = parts.map(|part| {
            let (line, version) = part.split_once('v')?;
            let (version, words) = match version.split_once('w') {
                Some((version, words)) => (version, u8::from_str_radix(words, 16).ok()?),
                None => (version, WHOLE),
            };
            let (file, line) = match line.split_once(':') {
                Some((file, line)) => (file.parse::<u16>().ok()?.checked_sub(1)?, line),
                None => (0, line),
            };
            let slot = *slots.get(&(file, u32::from_str_radix(line, 16).ok()?))?;
            let version: u32 = version.parse().ok()?;
            let versions = recording.lines[slot as usize].versions.count();
            (version < versions).then_some(Over {
                slot,
                version,
                words,
            })
        });
        let mut over = over.collect::<Option<Vec<_>>>().ok_or_else(bad)?;
        over.sort_unstable();
        // A unit has one content, and one of several lines does not tear at words.
        let twice = over.windows(2).any(|pair| pair[0].slot == pair[1].slot);
        let torn = over.iter().any(|over| over.words != WHOLE);
        if twice || (torn && recording.platform.is_disk()) {
            return Err(bad());
        }
        Ok(Image {
            cut,
            over,
            kind: Kind::Given,
        })
    }
}
