//! Handles a history's first requests again with fresh controllers; and handles requests of no history that reach what
//! runs are too short for: many sharers of a content, transactions of many lines. Left out: what is concluded from the
//! results.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use rustc_hash::{FxHashMap, FxHashSet};
use sardonyx_base::random::mix;

use crate::attacker::changes::word_of;
use crate::history::History;
use crate::secrecy::{self, Encrypted, Held, Looked};
use sardonyx::controller::designs::Stack;
use sardonyx::controller::encryption::pad::OTHER_KEY;
use sardonyx::controller::layers::BESIDE;
use sardonyx::controller::logging::undo::{
    BUCKETS, MOST_BUCKETS, PER_RECORD, RECORDS, TRANSACTIONS,
};
use sardonyx::controller::mapping::DUPLICATE;
use sardonyx::controller::mapping::places::RETIRED;
use sardonyx::controller::{Class, Controller, Persist, Write};
use sardonyx::exhausted::Exhausted;
use sardonyx::line::{Line, Logical, Place, ZERO_LINE};
use sardonyx::machine::write_untimed;
use sardonyx::medium::image::Image;
use sardonyx::medium::layout::Layout;
use sardonyx::plan::journal::MediumWrite;
use sardonyx::plan::untimed::Untimed;
use sardonyx::plan::{At, Plan, Step};
use sardonyx::settings::{Pressure, Settings, Value};
use sardonyx::workload::Class as Contents;

/// Two lines whose places a splice exchanges, each.
type LinePairs = Vec<(u64, u64)>;

/// Lines of each class of contents: all bytes, all places.
const CONTENTS: [(Contents, u64); Contents::ALL.len()] = [
    (Contents::Zeros, 1),
    (Contents::Ones, 1),
    (Contents::OneByte, 256),
    (Contents::OneOther, 128),
    (Contents::Bases, 8),
    (Contents::Pointers, 8),
    (Contents::Text, 8),
    (Contents::Low, 14),
    (Contents::Near, 48),
    (Contents::High, 8),
];
/// Lines near zero beside them.
const NEAR_ZERO: u64 = 48;
/// Where the next line's content begins.
const SHIFT: usize = 131;
/// Lines with one content: more than a count of eight bits has room for.
const SHARERS: u64 = 300;
/// Records of a bucket up to which the longest transaction is undone that a hardware log has room for.
const FEW_RECORDS: u64 = 8;
/// Lines of a medium that is full, and how often they change in a life and in all.
const CROWD: u64 = 96;
const CHANGES: u64 = 400;
const LIVES: u64 = 4;
/// Bits of places that lines differ in which change places, each with its MAC.
const SPLICED_BITS: [u32; 5] = [16, 20, 24, 32, 36];
/// Lines that change places where their versions differ.
const NEIGHBOURS: u64 = 6;
/// How often a line is written.
type Writes = fn(u64) -> u64;
/// Old lines in a record of a hardware log.
const RECORD: u64 = PER_RECORD as u64;
/// Requests of a transaction when requests are handled again.
const TOGETHER: usize = 12;
/// A line's number has fewer bits where requests are handled again.
const MOST_BITS: u32 = 38;

/// How the requests are handled again.
#[derive(Clone, Copy)]
pub struct Handling<'h> {
    /// The number of the key's byte that differs, the first being 1; 0: the processor's own key.
    pub other_key: u64,
    /// The function from the line's number to the line in its place.
    pub moved: &'h dyn Fn(u64) -> u64,
    /// The bit that the numbers of the medium's lines have.
    pub high: u32,
    /// The mask that contents are XORed with; lines of zeros stay zeros where a mapping treats them apart.
    pub mask: Option<Line>,
    /// Each request is made twice: the second time for the line whose number differs in this bit, with other contents.
    pub twin: Option<(u32, Line)>,
    pub begin: Option<(&'static str, u64)>,
}

impl Default for Handling<'_> {
    fn default() -> Self {
        Handling {
            other_key: 0,
            moved: &|line| line,
            high: 0,
            mask: None,
            twin: None,
            begin: None,
        }
    }
}

/// What is wrong where a medium or a log has just enough room.
pub enum Crowded {
    /// This line does not read as it should.
    Misread(Logical),
    /// There is said to be no room.
    Full(Exhausted),
}

pub struct Again {
    /// Encrypted lines, in the order of handling.
    pub covered: Vec<Encrypted>,
    /// Writes of the medium that are not encrypted.
    pub beside: Vec<MediumWrite>,
    /// The bytes beside lines, whatever they hold.
    pub sidebands: Vec<(Place, [u8; 8])>,
    pub layout: Layout,
    held: Held,
    /// The first line that a recovered controller reads otherwise than it was last written, if any; checked where lines
    /// have twins, or counters begin elsewhere.
    pub misread: Option<Logical>,
    /// The first place, if there is one, that such a controller has refused.
    pub refused: Option<Place>,
}

impl Again {
    fn new(untimed: &Untimed, layout: Layout, held: Held) -> Again {
        let mut again = Again {
            covered: secrecy::written(untimed, 0, &held),
            beside: Vec::new(),
            sidebands: Vec::new(),
            layout,
            held,
            misread: None,
            refused: None,
        };
        again.and_beside(untimed);
        again
    }

    /// What `untimed` has written under no pad as well, as recovery does from what was left.
    fn and_beside(&mut self, untimed: &Untimed) {
        // What reserve power would dump at any time, nobody encrypts.
        let registers = untimed.asked().registers().into_iter();
        self.beside.extend(registers.cloned());
        for write in untimed.writes(0).filter(|write| !write.is_move()) {
            let beside = write.sideband.map(|beside| (write.place, beside));
            self.sidebands.extend(beside);
            let is_clear = untimed.asked().handled.is_empty() && !self.held.covers(write.place)
                || Encrypted::from_write(&write, untimed.asked(), &self.held).is_none();
            if is_clear {
                self.beside.push(write);
            }
        }
    }
}

impl History {
    /// Handles `count` write requests of the history, from the first on and round again, as `how` says in an empty
    /// medium, and returns what they left; `None` if the medium has no such line. A hardware log gets what lines held
    /// before, in transactions of some requests each.
    pub fn again(&self, how: &Handling, count: usize) -> Option<Again> {
        let mut settings = Settings::clone(&self.small);
        settings.set(&OTHER_KEY, how.other_key);
        if let Some((key, value)) = how.begin {
            settings.put(key, Value::Int(value));
        }
        let high = how.twin.map_or(how.high, |(bit, _)| bit);
        let lines = match high {
            0..MOST_BITS => self.data_lines().max(2 << high),
            _ => return None,
        };
        let mut layout = Layout::new(lines);
        let mut controller = self.stack.build(&settings, &mut layout);
        let mut untimed = Untimed::new(Image::sparse());
        untimed.plan(|plan| controller.recover(plan));
        let logs = self.stack.keeps_log();
        let (mut held, mut logged) = (FxHashMap::default(), FxHashSet::default());
        let mut begun = usize::MAX;
        for (index, handled) in (0..count).zip(self.journal.handled.iter().cycle()) {
            let line = Logical((how.moved)(handled.line.0));
            if line.0 >= lines {
                return None;
            }
            let masked = |mask: Option<Line>| {
                let mut data = handled.data;
                let is_apart = self.stack.mapping.zeros_apart && data == ZERO_LINE;
                let mask = mask.filter(|_| !is_apart).unwrap_or(ZERO_LINE);
                data.iter_mut()
                    .zip(mask)
                    .for_each(|(byte, mask)| *byte ^= mask);
                data
            };
            let twin = how
                .twin
                .map(|(bit, mask)| (Logical(line.0 ^ 1 << bit), masked(Some(mask))));
            for (line, data) in [(line, masked(how.mask))].into_iter().chain(twin) {
                let old = held.insert(line, data);
                if logs {
                    untimed.plan(|plan| {
                        if index % TOGETHER == 0 && begun != index {
                            begun = index;
                            controller.commit(0, plan);
                            controller.begin(0, (index / TOGETHER) as u64 + 1, plan);
                            logged.clear();
                        }
                        if let Some(old) = old.filter(|_| logged.insert(line)) {
                            controller.log_old(0, line, At::past(&old), plan);
                        }
                    });
                }
                let write = Write {
                    class: handled.class,
                    order: handled.persist,
                    ..Write::new(line, At::past(&data))
                };
                write_untimed(&mut controller, &mut untimed, write);
            }
        }
        untimed.plan(|plan| controller.flush(plan));
        let under_pads = Held::from_stack(&layout, &self.stack, &settings);
        let mut again = Again::new(&untimed, layout, under_pads);
        untimed.settle();
        let mut recovered = self.stack.build(&settings, &mut Layout::new(lines));
        untimed.plan(|plan| {
            recovered.recover(plan);
            recovered.undo(plan);
            recovered.flush(plan);
        });
        again.and_beside(&untimed);
        again.refused = untimed.refused().first().copied();
        let asks = how.twin.is_some() || how.begin.is_some();
        if asks && untimed.failure().is_none() && untimed.refused().is_empty() {
            let mut written: Vec<(Logical, Line)> = held.into_iter().collect();
            written.sort_unstable_by_key(|(line, _)| *line);
            let wrong = |(line, data): &(Logical, Line)| {
                let read = |plan: &mut Plan| recovered.read(*line, Class::Data, Step::PAST, plan);
                untimed.plan(read).value != Some(*data)
            };
            again.misread = written.into_iter().find(wrong).map(|(line, _)| line);
        }
        Some(again)
    }

    pub fn keeps_log(&self) -> bool {
        self.stack.keeps_log()
    }

    /// Whether fingerprints are as short as the plan has them so that they collide.
    pub fn collides(&self) -> bool {
        let pressure = Pressure {
            collisions: true,
            ..Pressure::default()
        };
        let pressed = self.pressed(&pressure).into_iter();
        let mut pressed = pressed.map(|(name, value)| (name, Some(Value::Int(value))));
        pressed.any(|(name, value)| self.small.find(name) == value)
    }

    fn pressed(&self, pressure: &Pressure) -> Vec<(&'static str, u64)> {
        let layers = self.stack.layers().into_iter();
        let keys = layers.flat_map(|layer| layer.about().keys);
        keys.flat_map(|key| key.pressed(pressure)).collect()
    }

    /// Settings of a medium that has a place for each of its lines, where the run's own may have fewer.
    fn with_room(&self) -> Settings {
        let mut settings = Settings::clone(&self.small);
        settings.set(&RETIRED, 0);
        settings
    }

    /// Has a hardware log undo transactions, by controllers that find what a cut leaves: one transaction that takes all
    /// buckets which registers can name, and short ones with the given `numbers`. Returns the first line that does not
    /// read as before, with its transaction and the number of lines that were logged by then.
    pub fn undone(&self, numbers: &[u64]) -> Option<(Logical, u64, u64)> {
        // What reserve power dumps past an integrity gets its MACs from logic that is not asked here.
        if !self.stack.keeps_log() || self.stack.integrity.power_fail.is_some() {
            return None;
        }
        let settings = &self.with_room();
        let (records, long) = (settings.get(&RECORDS), numbers.first().copied()?);
        // Lines that no transaction changes lie behind those that one does.
        let most = RECORD * (records.min(FEW_RECORDS) * MOST_BUCKETS).max(records + 1) + RECORD;
        let build = || self.stack.build(settings, &mut Layout::new(2 * most));
        let mut controller = build();
        let mut untimed = Untimed::new(Image::sparse());
        untimed.plan(|plan| controller.recover(plan));
        for line in (0..most).map(Logical) {
            let data = content(line.0, 0);
            let write = Write::new(line, At::past(&data));
            write_untimed(&mut controller, &mut untimed, write);
        }
        untimed.plan(|plan| controller.flush(plan));
        if untimed.failure().is_some() {
            return None;
        }
        untimed.settle();
        for number in numbers.iter().copied() {
            untimed.plan(|plan| controller.begin(0, number, plan));
            let chunks = match number == long {
                true if records <= FEW_RECORDS => records * MOST_BUCKETS,
                true => records + 1,
                false => 1,
            };
            for chunk in 0..chunks {
                let of_chunk = || (chunk * RECORD..(chunk + 1) * RECORD).map(Logical);
                for line in of_chunk() {
                    let old = content(line.0, 0);
                    untimed.plan(|plan| controller.log_old(0, line, At::past(&old), plan));
                }
                if untimed.failure().is_some() {
                    return None;
                }
                for line in of_chunk() {
                    let data = content(line.0, number);
                    let write = Write::new(line, At::past(&data));
                    write_untimed(&mut controller, &mut untimed, write);
                }
                // At the ends of the first bucket, and of the last.
                let ends = [
                    0,
                    records - 1,
                    records,
                    chunks - records.min(chunks),
                    chunks - 1,
                ];
                if !ends.contains(&chunk) {
                    continue;
                }
                let mut left = Untimed::new(untimed.left());
                let mut recovered = build();
                left.plan(|plan| {
                    recovered.recover(plan);
                    recovered.undo(plan);
                });
                let changed = (chunk + 1) * RECORD;
                let mut wrong = (0..most.min(changed + RECORD)).map(Logical).filter(|line| {
                    let read =
                        |plan: &mut Plan| recovered.read(*line, Class::Data, Step::PAST, plan);
                    left.plan(read).value != Some(content(line.0, 0))
                });
                if let Some(line) = wrong.next() {
                    return Some((line, number, changed));
                }
            }
            // What the transaction has changed is put back, for the next.
            untimed.plan(|plan| controller.commit(0, plan));
            for line in (0..chunks * RECORD).map(Logical) {
                let data = content(line.0, 0);
                let write = Write::new(line, At::past(&data));
                write_untimed(&mut controller, &mut untimed, write);
            }
            untimed.plan(|plan| controller.flush(plan));
            untimed.settle();
        }
        self.overlong()
    }

    /// The same of a transaction that changes more lines than registers can name buckets for: it is refused, or it is
    /// undone.
    fn overlong(&self) -> Option<(Logical, u64, u64)> {
        let records = self.small.get(&RECORDS);
        if records > FEW_RECORDS {
            return None;
        }
        let changed = RECORD * (records * MOST_BUCKETS + 1);
        let mut log = Undoing::new(self, 2 * changed, 0..changed).ok()?;
        log.transaction(0, 1);
        for line in 0..changed {
            log.log(0, line);
        }
        log.change().ok()?;
        Some((log.wrong_after_a_cut()?, 1, changed))
    }

    /// Has the hardware log undo as many transactions at once as it has registers or buckets for, one a core, of which half
    /// have committed. They take all buckets if these are small, and change lines up to the last of memory. Returns what is
    /// wrong, if anything is, with the number of transactions.
    pub fn undone_together(&self) -> Option<(Crowded, u64)> {
        if !self.stack.keeps_log() || self.stack.integrity.power_fail.is_some() {
            return None;
        }
        let settings = &*self.small;
        let (records, buckets) = (settings.get(&RECORDS), settings.get(&BUCKETS));
        let cores = settings.get(&TRANSACTIONS).min(buckets);
        let each = match records <= FEW_RECORDS {
            true => (buckets / cores).min(MOST_BUCKETS) * records * RECORD,
            false => 2,
        };
        let (lines, changed) = (2 * cores * each, |core: u64| core * each..(core + 1) * each);
        let first = lines - cores * each;
        let undo = || -> Result<Option<Logical>, Exhausted> {
            let mut log = Undoing::new(self, lines, first..lines)?;
            for core in 0..cores {
                log.transaction(core as u32, core + 1);
            }
            for line in 0..each {
                for core in 0..cores {
                    log.log(core as u32, first + changed(core).start + line);
                }
            }
            log.change()?;
            for core in 0..cores / 2 {
                let changed = changed(core);
                log.commit(core as u32, first + changed.start..first + changed.end);
            }
            Ok(log.wrong_after_a_cut())
        };
        let wrong = match undo() {
            Ok(line) => Crowded::Misread(line?),
            Err(why) => Crowded::Full(why),
        };
        Some((wrong, cores))
    }

    /// Has a controller write lines of all classes of contents, and read them; then each line becomes what another was,
    /// what it was, and the same once more; and other controllers read them after recoveries. Returns the first line
    /// that reads otherwise, and its class.
    pub fn of_all_contents(&self, looked: &Looked) -> Option<(Logical, &'static str)> {
        let all = || {
            let classes = CONTENTS.iter().flat_map(|(class, count)| {
                (0..*count).map(|number| (class.name(), class.line(number)))
            });
            classes.chain((0..NEAR_ZERO).map(|number| ("near zero", near_zero(number))))
        };
        let lines = all().count() as u64;
        let settings = self.with_room();
        let build = || self.stack.build(&settings, &mut Layout::new(2 * lines));
        let written = |shift: usize| -> Vec<(Logical, Line)> {
            let contents = all().cycle().skip(shift).take(lines as usize);
            (0..)
                .map(Logical)
                .zip(contents.map(|(_, line)| line))
                .collect()
        };
        let mut untimed = Untimed::new(Image::sparse());
        let mut controller = build();
        untimed.plan(|plan| controller.recover(plan));
        // Which class the neighbours are of differs each time.
        for (round, shift) in [0, SHIFT, 0, 0].into_iter().enumerate() {
            let held: BTreeMap<Logical, Line> = written(shift).into_iter().collect();
            for (line, data) in &held {
                let write = Write::new(*line, At::past(data));
                write_untimed(&mut controller, &mut untimed, write);
            }
            if untimed.failure().is_some() {
                return None;
            }
            let class = |line: Logical| {
                let (class, _) = all()
                    .cycle()
                    .nth(line.0 as usize + shift)
                    .expect("it goes round");
                (line, class)
            };
            let near_zero = held.values().filter(|data| is_near_zero(data)).count();
            looked.near_zero.update(|all| all + near_zero as u64);
            let wrong = misread(&held, &mut controller, &mut untimed);
            if wrong.is_some() {
                return wrong.map(class);
            }
            if round >= 2 {
                untimed.plan(|plan| controller.flush(plan));
                untimed.settle();
                controller = build();
                untimed.plan(|plan| controller.recover(plan));
                let wrong = misread(&held, &mut controller, &mut untimed);
                if wrong.is_some() {
                    return wrong.map(class);
                }
            }
            let wrong = written_by_nobody(&held, 2 * lines, looked, &mut controller, &mut untimed);
            if wrong.is_some() {
                return wrong.map(|line| (line, "none, as nobody has written it"));
            }
        }
        None
    }

    /// Has the integrity alone guard lines that are few bits apart, and others whose versions go up as their places go
    /// down; copies each over others with its MAC, and reads it after a recovery. Returns the first place that reads as
    /// what was copied there, and whence that was.
    pub fn spliced(&self) -> Option<(Place, Place)> {
        if !self.stack.integrity.promises.splice || self.stack.integrity.power_fail.is_none() {
            return None;
        }
        let bare = Stack::named("no-encryption").expect("a design");
        let stack = Stack {
            integrity: self.stack.integrity,
            ..bare
        };
        let bit = |bit: u32| move |line: u64| line ^ 1 << bit;
        let far = SPLICED_BITS.map(|number| {
            (
                2 << number,
                (0..4).map(|line| (line, bit(number)(line))).collect(),
            )
        });
        let all = (0..NEIGHBOURS).flat_map(|one| (0..NEIGHBOURS).map(move |other| (one, other)));
        let near: Vec<(u64, u64)> = all.filter(|(one, other)| one != other).collect();
        let mut cases: Vec<(u64, LinePairs, Writes)> = vec![
            (64, near.clone(), |line| NEIGHBOURS - line),
            (64, near, |line| line + 1),
            // A byte that carries into the place.
            (64, vec![(0, 1)], |line| if line == 0 { 257 } else { 1 }),
        ];
        cases.extend(
            far.into_iter()
                .map(|(lines, pairs)| (lines, pairs, (|_| 1) as Writes)),
        );
        cases
            .iter()
            .find_map(|(lines, pairs, writes)| self.reads_spliced(&stack, *lines, pairs, *writes))
    }

    fn reads_spliced(
        &self,
        stack: &Stack,
        lines: u64,
        pairs: &[(u64, u64)],
        writes: Writes,
    ) -> Option<(Place, Place)> {
        let mut layout = Layout::new(lines);
        let mut controller = stack.build(&self.small, &mut layout);
        let kept = (stack.integrity.power_fail?)(&self.small, &layout);
        let mut untimed = Untimed::new(Image::sparse());
        untimed.plan(|plan| controller.recover(plan));
        let written: BTreeSet<u64> = pairs
            .iter()
            .flat_map(|(one, other)| [*one, *other])
            .collect();
        for line in &written {
            for number in 0..writes(*line) {
                let data = content(*line, number);
                let write = Write::new(Logical(*line), At::past(&data));
                write_untimed(&mut controller, &mut untimed, write);
            }
        }
        untimed.plan(|plan| controller.flush(plan));
        if untimed.failure().is_some() {
            return None;
        }
        untimed.settle();
        let image = untimed.image();
        pairs
            .iter()
            .map(|(one, other)| (Place(*one), Place(*other)))
            .find(|(place, other)| {
                let mut image = image.copy();
                let line = image.read(*other);
                let word =
                    |(at, number): (Place, usize)| word_of(image.content(at).as_ref(), number);
                let mac = kept.kept_of(*other).map(word);
                let beside = mac.filter(|_| kept.kept_of(*place) == Some((*place, BESIDE)));
                if let (Some((at, number)), Some(mac), None) = (kept.kept_of(*place), mac, beside) {
                    let mut macs = image.read(at).unwrap_or(ZERO_LINE);
                    macs[number * 8..][..8].copy_from_slice(&mac);
                    image.put(at, Some(&(macs, None)));
                }
                image.put(*place, line.map(|line| (line, beside)).as_ref());
                let mut untimed = Untimed::new(image);
                let mut recovered = stack.build(&self.small, &mut Layout::new(lines));
                untimed.plan(|plan| recovered.recover(plan));
                if !untimed.refused().is_empty() {
                    return false;
                }
                let read = |plan: &mut Plan| {
                    recovered.read(Logical(place.0), Class::Data, Step::PAST, plan)
                };
                let got = untimed.plan(read).value;
                untimed.refused().is_empty() && got == line
            })
    }

    /// Has lines change again and again, half of them to what others hold, in a medium that has a place for each and
    /// no more, where fingerprints collide and counts are full soon; over some lives.
    pub fn churned(&self) -> Option<Crowded> {
        if !self.stack.tries().any(|one| *one == DUPLICATE) {
            return None;
        }
        let mut settings = self.with_room();
        let pressure = Pressure {
            collisions: true,
            limits: true,
            ..Pressure::default()
        };
        for (name, value) in self.pressed(&pressure) {
            settings.put(name, Value::Int(value));
        }
        let build = || self.stack.build(&settings, &mut Layout::new(CROWD));
        let mut held: BTreeMap<Logical, Line> = BTreeMap::new();
        let mut untimed = Untimed::new(Image::sparse());
        for life in 0..LIVES {
            let mut controller = build();
            untimed.plan(|plan| controller.recover(plan));
            for change in life * CHANGES..(life + 1) * CHANGES {
                let dice = mix(change ^ mix(self.seed));
                let line = match change {
                    0..CROWD => change,
                    _ => dice % CROWD,
                };
                let shared = dice >> 32 & 1 == 1;
                let number = if shared { dice >> 40 & 7 } else { 8 + change };
                let (line, data) = (Logical(line), content(0, number));
                held.insert(line, data);
                let write = Write::new(line, At::past(&data));
                write_untimed(&mut controller, &mut untimed, write);
                if let Some(why) = untimed.failure() {
                    return Some(Crowded::Full(why));
                }
            }
            untimed.plan(|plan| controller.flush(plan));
            untimed.settle();
            let mut recovered = build();
            untimed.plan(|plan| recovered.recover(plan));
            let wrong = misread(&held, &mut recovered, &mut untimed);
            if wrong.is_some() {
                return wrong.map(Crowded::Misread);
            }
            untimed.forget();
        }
        None
    }

    /// Has more lines share a content than an 8-bit count has room for; then they change, and others take what is free.
    /// Returns the first line that does not read as it was last written.
    pub fn shared(&self, looked: &Looked) -> Option<Logical> {
        if !self.stack.tries().any(|one| *one == DUPLICATE) {
            return None;
        }
        let each = |first: u64| (0..SHARERS).map(move |line| (line, first + line));
        let share = (0..SHARERS).map(|line| (line, 0));
        let others = |first: u64| (first..first + SHARERS).map(|line| (line, line));
        // One line keeps the content; the first, at whose place it lies, would be the first to take that back.
        let last = SHARERS as usize - 1;
        let all_but_one = each(SHARERS).take(last).chain([(0, 2 * SHARERS)]);
        let one_left = share.clone().chain(all_but_one).chain(others(3 * SHARERS));
        // Nobody keeps it, some have it again, and all places that are free are taken.
        let again = (2 * SHARERS..2 * SHARERS + 3).map(|line| (line, 0));
        let none_left = share
            .chain(each(SHARERS))
            .chain(again)
            .chain(each(2 * SHARERS));
        // After a power cut counts are as a recovery finds them.
        let later = each(5 * SHARERS).chain(others(SHARERS));
        let kept = self.keeps([one_left.collect(), later.clone().collect()], looked);
        kept.or_else(|| self.keeps([none_left.collect(), later.collect()], looked))
    }

    /// Has a controller write contents by number, and after a recovery another the second list; the first line that
    /// one which has recovered does not read as it was written last, if there is one.
    fn keeps(&self, lives: [Vec<(u64, u64)>; 2], looked: &Looked) -> Option<Logical> {
        let settings = self.with_room();
        let build = || {
            let mut layout = Layout::new(4 * SHARERS);
            self.stack.build(&settings, &mut layout)
        };
        let mut held: BTreeMap<Logical, Line> = BTreeMap::new();
        let (mut controller, mut untimed) = (build(), Untimed::new(Image::sparse()));
        untimed.plan(|plan| controller.recover(plan));
        for life in lives {
            for (line, number) in life {
                let (line, data) = (Logical(line), content(0, number));
                held.insert(line, data);
                let write = Write::new(line, At::past(&data));
                write_untimed(&mut controller, &mut untimed, write);
            }
            if untimed.failure().is_some() {
                return None;
            }
            untimed.plan(|plan| controller.flush(plan));
            untimed.settle();
            controller = build();
            untimed.plan(|plan| controller.recover(plan));
            let wrong = misread(&held, &mut controller, &mut untimed).or_else(|| {
                written_by_nobody(&held, 4 * SHARERS, looked, &mut controller, &mut untimed)
            });
            if wrong.is_some() {
                return wrong;
            }
        }
        None
    }
}

struct Undoing<'h> {
    history: &'h History,
    settings: Settings,
    lines: u64,
    controller: Controller,
    untimed: Untimed,
    /// Lines that are to be put back, and those that are not.
    logged: Vec<u64>,
    kept: Vec<u64>,
}

impl<'h> Undoing<'h> {
    /// In a medium of so many lines, of which those `held` have something in them.
    fn new(history: &'h History, lines: u64, held: Range<u64>) -> Result<Undoing<'h>, Exhausted> {
        let settings = history.with_room();
        let mut undoing = Undoing {
            history,
            lines,
            controller: history.stack.build(&settings, &mut Layout::new(lines)),
            settings,
            untimed: Untimed::new(Image::sparse()),
            logged: Vec::new(),
            kept: Vec::new(),
        };
        undoing.ask(|controller, plan| controller.recover(plan));
        held.for_each(|line| undoing.write(line, 0));
        undoing.ask(|controller, plan| controller.flush(plan));
        undoing.fits()?;
        undoing.untimed.settle();
        Ok(undoing)
    }

    /// An error if there was no room for something.
    fn fits(&self) -> Result<(), Exhausted> {
        self.untimed.failure().map_or(Ok(()), Err)
    }

    fn ask(&mut self, ask: impl FnOnce(&mut Controller, &mut Plan)) {
        self.untimed.plan(|plan| ask(&mut self.controller, plan));
    }

    fn write(&mut self, line: u64, number: u64) {
        let data = content(line, number);
        let write = Write {
            order: Persist::CounterAtomic, // whoever commits has seen to it
            ..Write::new(Logical(line), At::past(&data))
        };
        write_untimed(&mut self.controller, &mut self.untimed, write);
    }

    fn transaction(&mut self, core: u32, number: u64) {
        self.ask(|controller, plan| controller.begin(core, number, plan));
    }

    fn log(&mut self, core: u32, line: u64) {
        let old = content(line, 0);
        self.ask(|controller, plan| controller.log_old(core, Logical(line), At::past(&old), plan));
        self.logged.push(line);
    }

    /// All that was logged changes; an error where the log has refused something.
    fn change(&mut self) -> Result<(), Exhausted> {
        for line in self.logged.clone() {
            self.fits()?;
            self.write(line, 1);
        }
        self.fits()
    }

    fn commit(&mut self, core: u32, lines: Range<u64>) {
        self.ask(|controller, plan| {
            controller.commit(core, plan);
        });
        self.logged.retain(|line| !lines.contains(line));
        self.kept.extend(lines);
    }

    /// The power is cut. The first line that does not read as it was before, or as who has committed left it, if there
    /// is one.
    fn wrong_after_a_cut(self) -> Option<Logical> {
        let mut left = Untimed::new(self.untimed.left());
        let stack = &self.history.stack;
        let mut recovered = stack.build(&self.settings, &mut Layout::new(self.lines));
        left.plan(|plan| {
            recovered.recover(plan);
            recovered.undo(plan);
        });
        let old = self.logged.iter().map(|line| (*line, 0));
        let lines = old.chain(self.kept.iter().map(|line| (*line, 1)));
        let lines = lines.map(|(line, number)| (Logical(line), content(line, number)));
        misread(&lines.collect(), &mut recovered, &mut left)
    }
}

/// The first of the lines that does not read as `held` says.
fn misread(
    held: &BTreeMap<Logical, Line>,
    controller: &mut Controller,
    untimed: &mut Untimed,
) -> Option<Logical> {
    let mut wrong = held.iter().filter(|(line, data)| {
        let read = |plan: &mut Plan| controller.read(**line, Class::Data, Step::PAST, plan);
        untimed.plan(read).value != Some(**data)
    });
    wrong.next().map(|(line, _)| *line)
}

/// The first of `lines` lines that nobody has written and that reads as something: it shows what lies where it would.
fn written_by_nobody(
    held: &BTreeMap<Logical, Line>,
    lines: u64,
    looked: &Looked,
    controller: &mut Controller,
    untimed: &mut Untimed,
) -> Option<Logical> {
    let unwritten = (0..lines).map(Logical);
    let mut unwritten = unwritten.filter(|line| !held.contains_key(line));
    unwritten.find(|line| {
        looked.unwritten.update(|all| all + 1);
        let read = |plan: &mut Plan| controller.read(*line, Class::Data, Step::PAST, plan);
        untimed.plan(read).value.is_some()
    })
}

/// A line of a few bits, or of one number of at most four bytes.
fn near_zero(number: u64) -> Line {
    let dice = |of: u64| mix(mix(number) ^ of);
    let mut line = ZERO_LINE;
    if number.is_multiple_of(2) {
        for bit in (0..2 + number / 2 % 7).map(dice) {
            line[(bit % 64) as usize] |= 1 << (bit / 64 % 8);
        }
    } else {
        let word = (dice(0) % 8) as usize * 8;
        line[word..][..8].copy_from_slice(&(dice(1) >> (32 + number / 2 % 24)).to_le_bytes());
    }
    line
}

/// Whether a line has a few bits and no more.
fn is_near_zero(line: &Line) -> bool {
    let bits: u32 = line.iter().map(|byte| byte.count_ones()).sum();
    (1..=8).contains(&bits)
}

/// A content that has nothing in common with that of another line or number.
fn content(line: u64, number: u64) -> Line {
    let mut content = ZERO_LINE;
    for (at, word) in (0..).zip(content.as_chunks_mut::<8>().0) {
        *word = mix(mix(mix(line) ^ number) ^ at).to_le_bytes();
    }
    content
}
