//! The image that a power cut leaves at each position: the array, and what the platform's reserve power drains into it.
//! The image only moves forward, one event at a time.

pub(crate) mod cut;
pub(crate) mod places;

use std::collections::BTreeMap;

use rustc_hash::{FxHashMap, FxHashSet};
use sardonyx_base::random::mix;

use crate::history::History;
use sardonyx::controller::layers::PowerFail;
use sardonyx::controller::{Controller, Persist, Write};
use sardonyx::line::{LINE_BYTES, Line, Logical, Place, ZERO_LINE};
use sardonyx::machine::write_untimed;
use sardonyx::medium::image::Image;
use sardonyx::plan::At;
use sardonyx::plan::journal::{self, Domain, Event, Journal};
use sardonyx::plan::start_gap::{Places, StartGap};
use sardonyx::plan::untimed::Untimed;
use sardonyx::units::Time;

sardonyx::names::named! {
    /// What reserve power drains.
    #[derive(Default)]
    Platform {
        /// The write queues' ready entries, and the controller's registers that have reserve power.
        #[default]
        Adr = "adr",
        /// Those, the processors' caches and the controller's metadata caches.
        Eadr = "eadr",
        /// Those of `adr`, and battery-backed buffers beside the cores' caches that keep each store until the line is
        /// accepted (BBB, HPCA 2021), but no metadata caches. The buffers take no time and hold any number of lines.
        Bbb = "bbb",
        /// Nothing; a line that is being programmed is torn at 8-byte granularity.
        None = "none",
        /// A CXL global persistent flush that succeeds: processors' caches, then the devices' queues, caches and registers.
        Gpf = "gpf",
        /// The flush fails as a whole: nothing is drained.
        GpfFailed = "gpf-failed",
        /// It fails on the first of two devices, over which pages of 4 KB alternate, and no cache is flushed.
        GpfDevice = "gpf-device",
        /// It ends part way: registers, and all queued writes but the newest, one to eight by the seed; no cache.
        GpfPart = "gpf-part",
    }
}

sardonyx::names::named! {
    /// What of a line survives whole if the power goes while it is being accepted.
    #[derive(Default)]
    Tear {
        /// All of it: a line is accepted or not.
        #[default]
        Lines = "lines",
        /// Each of its 8-byte words, and what lies beside it, by itself.
        Words = "words",
    }
}

impl Platform {
    /// Whether a store outlives a cut, accepted or not.
    pub fn keeps_stores(self) -> bool {
        self.drains_caches() || self == Platform::Bbb
    }

    /// Whether the metadata caches do.
    pub fn drains_caches(self) -> bool {
        matches!(self, Platform::Eadr | Platform::Gpf)
    }

    pub fn drains_nothing(self) -> bool {
        matches!(self, Platform::None | Platform::GpfFailed)
    }

    pub fn tears(self) -> bool {
        self.drains_nothing() || self == Platform::GpfDevice
    }

    fn loses(self, place: Place) -> bool {
        self.drains_nothing()
            || self == Platform::GpfDevice && (place.0 / PAGE_LINES).is_multiple_of(2)
    }
}

/// The number of lines of a page, which lies in one device.
const PAGE_LINES: u64 = 64;

/// A torn line as it is whole, with the bytes beside it.
pub type Whole = (Place, Line, Option<[u8; 8]>);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Changed {
    /// Some words of a place of the medium.
    Words(Place, u8),
    /// A line that reserve power drains from a processor's cache.
    Drained(Logical),
}

/// The image that a cut at the present position would leave.
pub struct Survivors<'h> {
    journal: &'h Journal,
    seed: u64,
    platform: Platform,
    position: u64,
    /// The image, with the means to recover over it.
    pub untimed: Untimed,
    /// Events up to this one are in the image already, on platforms that drain caches.
    drained_until: usize,
    /// Set if what is on chip is drained: its bytes may be newer than those of a write that comes later.
    drains_chip: bool,
    /// The orders of the writes that left a line's bytes, kept if what is on chip is drained.
    versions: FxHashMap<u64, Box<[u64; LINE_BYTES]>>,
    cached: BTreeMap<Logical, (Line, Persist)>,
    /// Lines that a hardware log holds back, so that they are not drained.
    locked: FxHashSet<Logical>,
    /// The number of the newest accepted writes that a flush that ends part way does not drain.
    unflushed: usize,
    /// Array writes that have begun, where they may be torn.
    programming: Vec<u32>,
    tear: Tear,
    /// The writes that the last event accepts, with what was there before, where words are torn.
    accepting: Vec<(u32, Whole)>,
    /// The behaviour of the integrity's registers and reserve power, if there is any.
    power_fail: Option<Box<dyn PowerFail>>,
    /// The positions of lines, if wear levelling moves them.
    levelling: Option<StartGap>,
    /// The bytes of each place that were drained from the chip since the array write, kept if lines move.
    drained_bytes: FxHashMap<u64, u64>,
}

impl<'h> Survivors<'h> {
    /// The survivors of a cut before the first event of `journal`, which began with `image`; `seed` decides how lines
    /// tear.
    pub fn new(
        journal: &'h Journal,
        mut image: Image,
        platform: Platform,
        seed: u64,
    ) -> Survivors<'h> {
        image.lose_near();
        Survivors {
            journal,
            seed,
            platform,
            position: 0,
            untimed: Untimed::new(image),
            drained_until: 0,
            drains_chip: match platform {
                Platform::Adr | Platform::Bbb | Platform::GpfDevice => {
                    journal.on_chip.iter().any(is_register)
                }
                // An array write that is done may be newer than what the flush gets to.
                Platform::Eadr | Platform::Gpf | Platform::GpfPart => true,
                Platform::None | Platform::GpfFailed => false,
            },
            unflushed: match platform {
                Platform::GpfPart => 1 + (mix(seed) % 8) as usize,
                _ => 0,
            },
            versions: FxHashMap::default(),
            cached: BTreeMap::new(),
            locked: FxHashSet::default(),
            programming: Vec::new(),
            tear: Tear::Lines,
            accepting: Vec::new(),
            power_fail: None,
            levelling: None,
            drained_bytes: FxHashMap::default(),
        }
    }

    /// Adds wear levelling, in a medium in which no line has moved.
    #[must_use]
    pub fn levelled(mut self, levelling: Option<StartGap>) -> Survivors<'h> {
        self.levelling = levelling;
        if let Some(levelling) = &mut self.levelling {
            let image = self.untimed.image();
            let registers = image.written_in(levelling.registers()).into_iter();
            let registers = registers.filter_map(|place| Some((place, image.read(place)?)));
            let registers: Vec<_> = registers.collect();
            levelling.recover(registers);
        }
        self.look_for_dumps();
        self
    }

    /// Finds out whether reserve power dumps lines. Registers that say how lines lie, and the integrity's own, hold none,
    /// so they alone need no order of bytes, and nothing that the integrity would have to hear of.
    fn look_for_dumps(&mut self) {
        if !matches!(self.platform, Platform::Adr | Platform::GpfDevice) {
            return;
        }
        let (levelling, integrity) = (self.levelling.as_ref(), self.power_fail.as_ref());
        let holds_line = |place: Place| {
            !levelling.is_some_and(|levelling| levelling.registers().contains(place))
                && !integrity.is_some_and(|integrity| integrity.has_register(place))
        };
        let mut registers = self.journal.on_chip.iter().filter(|one| is_register(one));
        self.drains_chip = registers.any(|register| holds_line(register.write.place));
    }

    fn at(&self, place: Place) -> Place {
        let levelling = self.levelling.as_ref();
        levelling.map_or(place, |levelling| levelling.at(place))
    }

    /// Adds the behaviour of an integrity's registers and reserve power.
    #[must_use]
    pub fn guarded(mut self, power_fail: Option<Box<dyn PowerFail>>) -> Survivors<'h> {
        self.power_fail = power_fail;
        if let Some(integrity) = &mut self.power_fail {
            let image = self.untimed.image_mut();
            integrity.begin(&mut Places::new(image, self.levelling.as_ref()));
        }
        self.look_for_dumps();
        self
    }

    /// Has the medium tear lines as `tear` says, on a platform that drains queues and not caches.
    #[must_use]
    pub fn tearing(mut self, tear: Tear) -> Survivors<'h> {
        if self.platform == Platform::Adr {
            self.tear = tear;
        }
        self
    }

    pub fn position(&self) -> u64 {
        self.position
    }

    /// Applies the next event, and appends what it changed in the image that a cut would leave.
    pub fn advance(&mut self, changed: &mut Vec<Changed>) -> Event {
        let first = changed.len();
        let event = self.happen(changed);
        if let Some(integrity) = &mut self.power_fail {
            let image = self.untimed.image_mut();
            let places = &mut Places::new(image, self.levelling.as_ref());
            for change in &changed[first..] {
                // A line in a processor's cache has no place yet: the controller that drains it finds one, and writes
                // its MAC.
                let Changed::Words(place, _) = *change else {
                    continue;
                };
                if place.is_near() {
                    continue; // no integrity there
                }
                if self.drains_chip {
                    integrity.dumped(place, places);
                }
                integrity.accepted(place, places);
            }
        }
        event
    }

    fn happen(&mut self, changed: &mut Vec<Changed>) -> Event {
        let journal = self.journal;
        let (now, event) = journal.events[self.position as usize];
        self.position += 1;
        self.accept(event, changed);
        if self.platform.drains_caches() {
            self.drain_instant(now, changed);
        }
        match (event, self.platform) {
            (Event::Ready { .. }, Platform::Adr | Platform::Bbb | Platform::GpfDevice) => {
                let drained = |write: &&journal::MediumWrite| !self.platform.loses(write.at);
                let writes: Vec<_> = journal.accepted_by(event).iter().filter(drained).collect();
                for write in writes {
                    self.apply(write, changed);
                }
            }
            (Event::Ready { from, count }, Platform::GpfPart) => {
                // A flush drains in the order of acceptance, so it is the newest entries that it does not reach.
                let flushed = |end: u32| (end as usize).saturating_sub(self.unflushed);
                for write in &journal.writes[flushed(from)..flushed(from + count)] {
                    self.apply(write, changed);
                }
            }
            // An entry that the flush does not reach may be in the array already, where nothing can be lost.
            (Event::Done(index), Platform::GpfPart) => {
                self.apply(&journal.array[index as usize], changed);
            }
            (Event::Store(index), platform) if platform.keeps_stores() => {
                let stored = &journal.stores[index as usize];
                let kept = (stored.data, stored.persist);
                self.cached.insert(stored.line, kept);
                changed.push(Changed::Drained(stored.line));
            }
            (Event::Accepted(index), platform) if platform.keeps_stores() => {
                let handled = &journal.handled[index as usize];
                // The cache's line is drained until the request that writes the same bytes back is accepted.
                let same = |(line, _): &(Line, Persist)| *line == handled.data;
                if self.cached.get(&handled.line).is_some_and(same) {
                    self.cached.remove(&handled.line);
                }
            }
            (
                Event::OnChip(index),
                Platform::Adr | Platform::Bbb | Platform::GpfDevice | Platform::GpfPart,
            ) => {
                let change = &journal.on_chip[index as usize];
                if is_register(change) {
                    self.drain(&change.write, change.bytes, changed);
                }
            }
            // The cells change from here on, so a cut finds the line torn.
            (Event::Begun(index), _) if self.loses(index) => {
                self.programming.push(index);
                let write = &journal.array[index as usize];
                changed.push(Changed::Words(write.place, write.words));
            }
            (Event::Done(index), _) if self.loses(index) => {
                self.programming.retain(|other| *other != index);
                self.apply(&journal.array[index as usize], changed);
            }
            _ => {}
        }
        event
    }

    /// Notes the writes that `event` accepts, where words are torn. Those of the event before are whole from now on, so
    /// what a cut leaves of them changes.
    fn accept(&mut self, event: Event, changed: &mut Vec<Changed>) {
        let journal = self.journal;
        for (index, _) in self.accepting.drain(..) {
            let write = &journal.writes[index as usize];
            changed.push(Changed::Words(write.place, write.words));
        }
        if let (Event::Ready { from, count }, Tear::Words) = (event, self.tear) {
            let image = self.untimed.image();
            let old = |index: u32| {
                let place = journal.writes[index as usize].at;
                let line = image.read(place).unwrap_or(ZERO_LINE);
                (index, (place, line, image.sideband(place)))
            };
            self.accepting.extend((from..from + count).map(old));
        }
    }

    fn loses(&self, index: u32) -> bool {
        self.platform.loses(self.journal.array[index as usize].at)
    }

    /// Drains what is accepted and what changes on chip at one instant as one, because the acceptance of a line is what
    /// releases its counter and its mapping.
    fn drain_instant(&mut self, now: Time, changed: &mut Vec<Changed>) {
        let journal = self.journal;
        while let Some((at, event)) = journal.events.get(self.drained_until)
            && *at <= now
        {
            self.drained_until += 1;
            for write in journal.accepted_by(*event) {
                self.apply(write, changed);
            }
            match event {
                Event::OnChip(index) => {
                    let change = &journal.on_chip[*index as usize];
                    self.drain(&change.write, change.bytes, changed);
                    for line in &change.unlocked {
                        self.locked.remove(line);
                        changed.push(Changed::Drained(*line));
                    }
                }
                Event::Locked(line) => {
                    self.locked.insert(*line);
                    changed.push(Changed::Drained(*line));
                }
                _ => {}
            }
        }
    }

    /// Writes the write's words into the image.
    fn apply(&mut self, write: &journal::MediumWrite, changed: &mut Vec<Changed>) {
        let bytes = (0..8).filter(|word| write.words >> word & 1 == 1);
        let bytes = bytes.fold(0, |all, word| all | 0xff << (word * 8));
        if self.levelling.is_some() && write.moved.whole && write.is_move() {
            self.move_line(write, bytes);
            changed.push(Changed::Words(write.place, write.words));
        } else if self.drains_chip {
            if let Some(drained) = self.drained_bytes.get_mut(&write.at.0) {
                *drained &= !bytes;
            }
            self.apply_newest(write.at, write, bytes, changed);
            if write.moved.unknown {
                self.untimed.image_mut().unwrite(write.at);
            }
        } else {
            let image = self.untimed.image_mut();
            image.write(write.at, &write.line, write.words, write.sideband);
            write.moved.settle(write.at, write.sideband, image);
            changed.push(Changed::Words(write.place, write.words));
        }
        self.learn(write, changed);
    }

    /// Writes those bytes of a line on chip into the image, wherever the line lies now.
    fn drain(&mut self, write: &journal::MediumWrite, bytes: u64, changed: &mut Vec<Changed>) {
        let at = self.at(write.place);
        if self.levelling.is_some() {
            *self.drained_bytes.entry(at.0).or_default() |= bytes;
        }
        self.apply_newest(at, write, bytes, changed);
        self.learn(write, changed);
    }

    /// Follows a write of a register that says how lines lie; the line that has moved reads otherwise from now on.
    fn learn(&mut self, write: &journal::MediumWrite, changed: &mut Vec<Changed>) {
        if let Some(levelling) = &mut self.levelling
            && let Some(moved) = levelling.learn(write.place, &write.line)
        {
            changed.push(Changed::Words(moved, 0xff));
        }
    }

    /// Moves those of the line's words that `write` has to where it puts them. Bytes that were drained into its old place
    /// go with them, because reserve power would dump them where the line lies then.
    fn move_line(&mut self, write: &journal::MediumWrite, bytes: u64) {
        let (from, to) = (self.at(write.place), write.at);
        let drained = self.drained_bytes.get(&from.0).copied().unwrap_or(0) & bytes;
        let image = self.untimed.image_mut();
        let (mut line, newer) = (write.line, image.read(from).unwrap_or(ZERO_LINE));
        let moved = |all: u64| (0..LINE_BYTES).filter(move |byte| all >> byte & 1 == 1);
        for byte in moved(drained) {
            line[byte] = newer[byte];
        }
        image.write(to, &line, write.words, write.sideband);
        let unknown = write.moved.unknown && drained == 0;
        let settled = journal::Moved {
            unknown,
            ..write.moved
        };
        settled.settle(to, write.sideband, image);
        let versions = self.versions.get(&from.0).cloned();
        if versions.is_some() || self.versions.contains_key(&to.0) {
            let into = self.versions.entry(to.0);
            let into = into.or_insert_with(|| Box::new([0; LINE_BYTES]));
            for byte in moved(bytes) {
                into[byte] = versions.as_ref().map_or(0, |versions| versions[byte]);
            }
        }
        let before = self.drained_bytes.entry(to.0).or_default();
        *before = *before & !bytes | drained;
    }

    /// Writes those of the write's `bytes` into the image at `at` that are newer than what is there.
    fn apply_newest(
        &mut self,
        at: Place,
        write: &journal::MediumWrite,
        bytes: u64,
        changed: &mut Vec<Changed>,
    ) {
        let versions = self.versions.entry(at.0);
        let versions = versions.or_insert_with(|| Box::new([0; LINE_BYTES]));
        let image = self.untimed.image_mut();
        let mut line = image.read(at).unwrap_or(ZERO_LINE);
        let mut words = 0;
        for (byte, version) in versions.iter_mut().enumerate() {
            if bytes >> byte & 1 == 1 && write.order >= *version {
                *version = write.order;
                line[byte] = write.line[byte];
                words |= 1 << (byte / 8);
            }
        }
        image.write(at, &line, words, write.sideband);
        changed.push(Changed::Words(write.place, words));
    }

    pub fn is_cached(&self, line: u64) -> bool {
        let line = Logical(line);
        self.cached.contains_key(&line) && !self.locked.contains(&line)
    }

    /// Lines of the processors' caches that are drained, in order.
    pub fn drained(&self) -> Vec<(Logical, Line, Persist)> {
        let lines = self.cached.iter();
        let free = lines.filter(|(line, _)| !self.locked.contains(line));
        free.map(|(line, (data, persist))| (*line, *data, *persist))
            .collect()
    }

    /// Recovers a fresh controller over the image, writes the drained lines, and then puts back what unfinished
    /// transactions changed.
    pub fn recover(&mut self, history: &History) -> Controller {
        self.recover_and_tell(history).0
    }

    /// Recovers as [`Survivors::recover`] does, and returns the lines that the controller has put back.
    pub fn recover_and_tell(&mut self, history: &History) -> (Controller, Vec<Logical>) {
        let drained = self.drained();
        let mut controller = drain_over(history, &mut self.untimed, &drained);
        let restored = self.untimed.plan(|plan| controller.undo(plan));
        (controller, restored)
    }

    /// Whether the last event accepts a write of `line` that is torn.
    pub fn is_torn(&self, line: u64) -> bool {
        self.accepting.iter().any(|(index, _)| {
            let order = self.journal.writes[*index as usize].order;
            let request = self.journal.request_of(order);
            request.is_some_and(|request| self.journal.handled[request].line.0 == line)
        })
    }

    /// Tears the lines that are being programmed or accepted. Returns what [`Survivors::mend`] needs.
    pub fn tear(&mut self) -> Vec<Whole> {
        let mut whole = Vec::new();
        for (index, (place, old, beside)) in &self.accepting {
            let write = &self.journal.writes[*index as usize];
            let image = self.untimed.image_mut();
            let new = image.read(*place).unwrap_or(ZERO_LINE);
            whole.push((*place, new, image.sideband(*place)));
            let dice = mix(self.seed ^ mix(self.position) ^ u64::from(*index) << 40);
            let lost = write.words & dice as u8;
            // If nothing lay beside the line, a lost counter leaves zeros there.
            let lost_beside = write.sideband.filter(|_| dice >> 8 & 1 == 1);
            let beside = lost_beside.map(|_| beside.unwrap_or_default());
            image.write(*place, old, lost, beside);
        }
        for index in &self.programming {
            let write = &self.journal.array[*index as usize];
            let image = self.untimed.image_mut();
            let old = image.read(write.at).unwrap_or([0; 64]);
            whole.push((write.at, old, image.sideband(write.at)));
            let dice = mix(self.seed ^ mix(self.position) ^ u64::from(*index) << 40);
            let beside = write.sideband.filter(|_| dice >> 8 & 1 == 1);
            image.write(write.at, &write.line, write.words & dice as u8, beside);
        }
        whole
    }

    pub fn mend(&mut self, whole: Vec<Whole>) {
        for (place, line, beside) in whole.into_iter().rev() {
            self.untimed.image_mut().write(place, &line, 0xff, beside);
        }
    }
}

fn is_register(change: &journal::OnChip) -> bool {
    change.domain == Domain::Registers
}

pub fn drain_over(
    history: &History,
    untimed: &mut Untimed,
    drained: &[(Logical, Line, Persist)],
) -> Controller {
    let mut controller = history.recover(untimed);
    write_drained(history, &mut controller, untimed, drained);
    controller
}

pub fn write_drained(
    history: &History,
    controller: &mut Controller,
    untimed: &mut Untimed,
    drained: &[(Logical, Line, Persist)],
) {
    for (line, data, order) in drained {
        let (data, class) = (At::past(data), history.class_of(line.0));
        let write = Write {
            class,
            order: *order,
            ..Write::new(*line, data)
        };
        write_untimed(controller, untimed, write);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sardonyx::config::Machine;
    use sardonyx::medium::layout::Layout;

    /// A counter in a cache and a log entry in a register change; then the register's line is written.
    #[test]
    fn registers_are_dumped_under_adr_and_caches_are_drained_under_eadr_only() {
        let mut journal = Journal::default();
        let (cache, register) = (Place(1), Place(2));
        let write = |order, place, byte| journal::MediumWrite {
            order,
            place,
            at: place,
            moved: journal::Moved::default(),
            line: [byte; 64],
            words: 0xff,
            sideband: None,
            merged_into: None,
        };
        for (domain, place) in [(Domain::Cache, cache), (Domain::Registers, register)] {
            let event = Event::OnChip(journal.on_chip.len() as u32);
            journal.events.push((Time::from_ps(1), event));
            let write = write(10, place, 7);
            let bytes = u64::MAX;
            journal.on_chip.push(journal::OnChip {
                domain,
                write,
                bytes,
                unlocked: Vec::new(),
            });
        }
        journal.writes.push(write(9, register, 6)); // older, and accepted later
        let ready = Event::Ready { from: 0, count: 1 };
        journal.events.push((Time::from_ps(2), ready));
        for (platform, drained) in [
            (Platform::Adr, [false, true]),
            (Platform::Eadr, [true, true]),
            (Platform::Bbb, [false, true]),
            (Platform::None, [false, false]),
            (Platform::Gpf, [true, true]),
            (Platform::GpfFailed, [false, false]),
            (Platform::GpfDevice, [false, true]),
            (Platform::GpfPart, [false, true]),
        ] {
            let mut survivors = Survivors::new(&journal, Image::new(), platform, 0);
            for _ in &journal.events {
                survivors.advance(&mut Vec::new());
            }
            let image = survivors.untimed.image();
            let kept = [cache, register].map(|place| image.read(place) == Some([7; 64]));
            assert_eq!(kept, drained, "{platform:?}");
        }
    }

    struct ToldPlaces(std::rc::Rc<std::cell::RefCell<Vec<Place>>>);

    impl PowerFail for ToldPlaces {
        fn begin(&mut self, _image: &mut Places) {}

        fn accepted(&mut self, place: Place, _image: &mut Places) {
            self.0.borrow_mut().push(place);
        }

        fn dumped(&mut self, place: Place, _image: &mut Places) {
            self.0.borrow_mut().push(place);
        }

        fn on_chip(&self) -> Option<&sardonyx::medium::layout::Region> {
            None
        }

        fn kept_of(&self, _place: Place) -> Option<(Place, usize)> {
            None
        }
    }

    /// A store waits in a cache while a line is accepted: integrity hears only of that line's place.
    #[test]
    fn a_line_that_a_cache_has_is_no_place() {
        let mut journal = Journal::default();
        journal.stores.push(journal::CacheStore {
            line: Logical(3),
            data: [1; 64],
            persist: Persist::Relaxed,
        });
        journal.events.push((Time::from_ps(1), Event::Store(0)));
        journal.writes.push(journal::MediumWrite {
            order: 1,
            place: Place(9),
            at: Place(9),
            moved: journal::Moved::default(),
            line: [2; 64],
            words: 0xff,
            sideband: None,
            merged_into: None,
        });
        let ready = Event::Ready { from: 0, count: 1 };
        journal.events.push((Time::from_ps(2), ready));
        let told = std::rc::Rc::default();
        let mut survivors = Survivors::new(&journal, Image::new(), Platform::Eadr, 0)
            .guarded(Some(Box::new(ToldPlaces(std::rc::Rc::clone(&told)))));
        let mut changed = Vec::new();
        for _ in &journal.events {
            survivors.advance(&mut changed);
        }
        assert!(changed.contains(&Changed::Drained(Logical(3))));
        let mut places = told.borrow().clone();
        places.dedup();
        assert_eq!(places, [Place(9)]);
    }

    /// A move of the lower half of a line leaves the upper half of its new place as it was, on every platform.
    #[test]
    fn a_move_moves_the_words_that_it_writes() {
        let machine = Machine::load("sca", &[("medium.levelling.scheme", "start-gap")]);
        let settings = machine.expect("a machine").settings;
        for platform in [Platform::Adr, Platform::Eadr] {
            let mut journal = Journal::default();
            let write = journal::MediumWrite {
                order: 1,
                place: Place(7),
                at: Place(8),
                moved: journal::Moved {
                    only: true,
                    whole: true,
                    unknown: false,
                },
                line: [2; LINE_BYTES],
                words: 0x0f,
                sideband: None,
                merged_into: None,
            };
            journal.writes.push(write);
            let ready = Event::Ready { from: 0, count: 1 };
            journal.events.push((Time::from_ps(1), ready));
            let mut image = Image::new();
            image.write(Place(8), &[1; LINE_BYTES], 0xff, None);
            let levelling = StartGap::from_settings(&settings, &mut Layout::new(1024));
            let mut survivors = Survivors::new(&journal, image, platform, 0).levelled(levelling);
            survivors.advance(&mut Vec::new());
            let line = survivors
                .untimed
                .image()
                .read(Place(8))
                .expect("it is there");
            assert_eq!(line[..32], [2; 32], "{platform:?}");
            assert_eq!(line[32..], [1; 32], "{platform:?}");
        }
    }

    /// Twenty lines are accepted, of pages of both devices, and the first five reach the array.
    #[test]
    fn a_flush_that_fails_leaves_what_its_failure_says() {
        let mut journal = Journal::default();
        let place = |line: u32| Place(u64::from(line) * 40);
        for line in 0..20 {
            let write = journal::MediumWrite {
                order: u64::from(line) + 1,
                place: place(line),
                at: place(line),
                moved: journal::Moved::default(),
                line: [line as u8 + 1; 64],
                words: 0xff,
                sideband: None,
                merged_into: None,
            };
            journal.writes.push(write);
            let ready = Event::Ready {
                from: line,
                count: 1,
            };
            journal.events.push((Time::from_ps(u64::from(line)), ready));
            if line >= 15 {
                journal
                    .array
                    .push(journal.writes[line as usize - 15].clone());
                journal
                    .events
                    .push((Time::from_ps(u64::from(line)), Event::Begun(line - 15)));
                journal
                    .events
                    .push((Time::from_ps(u64::from(line)), Event::Done(line - 15)));
            }
        }
        for seed in 0..16 {
            let kept = |platform| {
                let mut survivors = Survivors::new(&journal, Image::new(), platform, seed);
                for _ in &journal.events {
                    survivors.advance(&mut Vec::new());
                }
                let image = survivors.untimed.image();
                let kept = |line: &u32| image.read(place(*line)) == Some([*line as u8 + 1; 64]);
                (0..20).filter(kept).collect::<Vec<u32>>()
            };
            let all: Vec<u32> = (0..20).collect();
            assert_eq!(kept(Platform::Gpf), all);
            assert_eq!(kept(Platform::GpfFailed), all[..5]);
            let second = |line: &u32| *line < 5 || place(*line).0 / 64 % 2 == 1;
            assert_eq!(
                kept(Platform::GpfDevice),
                all.iter().copied().filter(second).collect::<Vec<_>>()
            );
            let unflushed = 1 + (mix(seed) % 8) as usize;
            assert_eq!(kept(Platform::GpfPart), all[..20 - unflushed]);
        }
    }
}
