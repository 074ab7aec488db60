//! Other orders of threads than the recorded one, within what the recorded dependencies allow.
//!
//! One thread is held back where it is about to fence, as if it were not scheduled there, and the others go on until
//! they meet what it has not done yet: a line that it stores to from there on, a line that it loads and they store to,
//! or a system call after one of its. Up to there the others do the same whatever the held thread does, so the program
//! could have made the recording with their records first, with the same loads and stores; that recording is cut. A
//! thread that depends on a held thread is held from there on as well.
//!
//! A record comes after its access and before the thread's next access, so an access may be anywhere between its
//! thread's previous access and its own record. Where two threads' accesses to a line may have been in the other order
//! than recorded, both are left out. Left out: holding two threads that do not depend on each other, and programs that
//! fork, whose memory is not recorded completely.

use rustc_hash::{FxHashMap, FxHashSet};
use sardonyx_trace::{Op, TraceReader};

use crate::recording::platform::Platform;
use crate::recording::{Act, Event, Recording};
use crate::{CrashTestError, Result};

/// The line that stands for the state that all system calls share; `sardonyx_recorder::maps::SYSTEM` puts it there.
const SYSTEM: u64 = (1 << 58) - 1;
/// The search for one order reads at most this many records.
const WINDOW: usize = 1 << 16;
/// For each wanted order at most this many fences are tried.
const LOOKS: usize = 64;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum AccessKind {
    Load,
    Store,
    /// A store past the caches, which is recorded some time after it was made.
    Past,
    Other,
    Nothing,
}

#[derive(Clone, Copy, Debug)]
struct OrderRow {
    line: u64,
    thread: u16,
    what: AccessKind,
}

struct ThreadRows {
    rows: Vec<OrderRow>,
    of: FxHashMap<u16, Vec<u32>>,
}

impl ThreadRows {
    fn read(recording: &Recording) -> Result<ThreadRows> {
        let mut reader = TraceReader::open(&recording.path)?;
        let (mut batch, mut rows) = (Vec::new(), Vec::new());
        while reader.next_batch(&mut batch)? {
            recording.interrupt.check()?;
            rows.extend(batch.iter().map(|record| OrderRow {
                line: record.line.0,
                thread: record.thread,
                what: match record.op {
                    // Any two system calls may depend on each other.
                    Op::Load if record.line.0 == SYSTEM => AccessKind::Store,
                    Op::Load => AccessKind::Load,
                    Op::Store => AccessKind::Store,
                    Op::NonTemporalWrite => AccessKind::Past,
                    Op::Changed => AccessKind::Nothing,
                    _ => AccessKind::Other,
                },
            }));
        }
        Ok(ThreadRows::new(rows))
    }

    fn new(rows: Vec<OrderRow>) -> ThreadRows {
        let mut of: FxHashMap<u16, Vec<u32>> = FxHashMap::default();
        for (number, row) in rows.iter().enumerate() {
            if row.what != AccessKind::Nothing {
                of.entry(row.thread).or_default().push(number as u32);
            }
        }
        ThreadRows { rows, of }
    }

    /// The row of the thread's last record before a row.
    fn before(&self, thread: u16, row: u32) -> Option<u32> {
        let of = self.of.get(&thread)?;
        of[..of.partition_point(|&r| r < row)].last().copied()
    }

    fn next_access(&self, thread: u16, row: u32) -> Option<OrderRow> {
        let of = self.of.get(&thread)?;
        let later = of[of.partition_point(|&r| r <= row)..].iter();
        let mut rows = later.map(|&r| self.rows[r as usize]);
        rows.find(|row| matches!(row.what, AccessKind::Load | AccessKind::Store))
    }

    fn last_access(&self, thread: u16, row: u32) -> Option<u32> {
        let of = self.of.get(&thread)?;
        let mut earlier = of[..of.partition_point(|&r| r <= row)].iter().rev();
        let access = |r: &&u32| {
            matches!(
                self.rows[**r as usize].what,
                AccessKind::Load | AccessKind::Store
            )
        };
        earlier.find(access).copied()
    }
}

/// A thread that is held back, and the threads that are held with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeldThreads {
    pub thread: u16,
    pub row: u64,
    end: u64,
    from: FxHashMap<u16, u64>,
}

impl HeldThreads {
    pub fn name(&self) -> String {
        format!("{}@{}", self.thread, self.row)
    }

    fn holds(&self, event: &Event) -> bool {
        let from = self.from.get(&event.thread);
        from.is_some_and(|&from| from <= event.row) && event.row < self.end
    }
}

/// The state of a search: what the held threads have yet to do.
struct Look<'a> {
    rows: &'a ThreadRows,
    from: FxHashMap<u16, u64>,
    /// Lines that the held threads have yet to access, and whether they store to them.
    owed: FxHashMap<u64, bool>,
    /// Accesses of the others to each line since the first thread was held, and whether they stored.
    done: FxHashMap<u64, Vec<(u32, bool)>>,
}

impl Look<'_> {
    fn owes(&mut self, row: OrderRow) {
        let stores = row.what != AccessKind::Load;
        *self.owed.entry(row.line).or_default() |= stores;
    }

    /// Holds the thread after a row: its next access may have happened at any time since its last one.
    fn holds(&mut self, thread: u16, row: u32) {
        if let Some(next) = self.rows.next_access(thread, row) {
            self.owes(next);
        }
    }

    /// Whether an access depends on what the held threads have yet to do.
    fn needs(&self, row: OrderRow) -> bool {
        let owed = self.owed.get(&row.line);
        owed.is_some_and(|&stores| stores || row.what != AccessKind::Load)
    }

    /// The others' first access since a row that may have come after this one, if there is one.
    fn overtaken(&self, row: OrderRow, since: u32) -> Option<u32> {
        let done = self.done.get(&row.line)?;
        let mut later = done[done.partition_point(|(at, _)| *at <= since)..].iter();
        let first = later.find(|(_, store)| *store || row.what != AccessKind::Load);
        first.map(|(at, _)| *at)
    }
}

/// Holds the thread from its row on, and finds which threads follow it, and until when. The order is empty if `end`
/// comes at once.
///
/// Row by row: what is no access is passed over; an access of a thread that is held, that is not yet alive, or that needs
/// what a held thread has yet to do is held as well; any other is done. The order ends where something that is held may
/// already have come before what was done, or where every thread is held.
fn hold(rows: &ThreadRows, thread: u16, row: u32, end: u32) -> HeldThreads {
    let mut look = Look {
        rows,
        from: FxHashMap::from_iter([(thread, u64::from(row) + 1)]),
        owed: FxHashMap::default(),
        done: FxHashMap::default(),
    };
    // The thread is held from its last access on, which may be before this row.
    let mut last = rows.last_access(thread, row).unwrap_or(row);
    look.holds(thread, last);
    last = last.min(row);
    let mut alive: FxHashSet<u16> = FxHashSet::default();
    for (&other, of) in &rows.of {
        if of.first().is_some_and(|&first| first <= row) && of.last().is_some_and(|&l| l > row) {
            alive.insert(other);
        }
    }
    let most = end.min((row as usize + WINDOW).min(rows.rows.len()) as u32);
    let mut at = row + 1;
    // Accesses of others between the thread's last access and this row happened before it was held, whether they need
    // it or not.
    let early = (last + 1..=row).any(|r| {
        let other = rows.rows[r as usize];
        other.thread != thread
            && matches!(
                other.what,
                AccessKind::Load | AccessKind::Store | AccessKind::Past
            )
            && look.needs(other)
    });
    let mut stop = if early { at } else { most };
    while at < stop && alive.iter().any(|thread| !look.from.contains_key(thread)) {
        let one = rows.rows[at as usize];
        if one.what == AccessKind::Nothing {
            at += 1;
            continue;
        }
        let access = one.what != AccessKind::Other;
        let held = look.from.contains_key(&one.thread);
        let born = !alive.contains(&one.thread);
        let stays = held || born || access && look.needs(one);
        if !stays {
            if access {
                let done = look.done.entry(one.line).or_default();
                done.push((at, one.what != AccessKind::Load));
            }
        } else {
            look.from.entry(one.thread).or_insert(u64::from(at));
            if access {
                look.owes(one);
                let since = match one.what {
                    // A store past the caches has no last access that it waited for.
                    AccessKind::Past => row,
                    _ if born => row,
                    _ => (rows.before(one.thread, at))
                        .and_then(|before| rows.last_access(one.thread, before))
                        .unwrap_or(row),
                };
                if let Some(other) = look.overtaken(one, since) {
                    stop = other.min(stop);
                    break;
                }
            }
            look.holds(one.thread, at);
        }
        at += 1;
    }
    HeldThreads {
        thread,
        row: u64::from(row),
        end: u64::from(at.min(stop)),
        from: look.from,
    }
}

/// Refuses a recording whose threads cannot be put into another order.
fn check(recording: &Recording) -> Result<()> {
    let refuse = |problem: &str| {
        let path = recording.path.display();
        Err(CrashTestError::new(format!("{path}: {problem}")))
    };
    if recording.processes > 1 {
        return refuse(
            "the program forked, and of its children's memory only mapped files are recorded, so that it is not known what their order \
             depends on; leave it out",
        );
    }
    if recording.platform.is_disk() {
        return refuse(
            "is tested as a file on a disk, where a page's contents are of the recorded order; leave it out, or --platform adr",
        );
    }
    if recording.rows > u64::from(u32::MAX) {
        return refuse("has more than 2^32 records; record less");
    }
    if !recording.calls {
        return refuse(
            "does not say when the program called the system, by which threads wait for each other; record it again with --pc",
        );
    }
    Ok(())
}

/// Finds at most `most` promising orders from a row on: in each, one thread is about to fence, and another fences
/// meanwhile; each kind of moment comes before any a second time. With `acks`, nothing is printed meanwhile.
pub fn orders(
    recording: &Recording,
    from: u64,
    most: usize,
    acks: bool,
) -> Result<Vec<HeldThreads>> {
    check(recording)?;
    let mut waits: FxHashMap<u16, bool> = FxHashMap::default();
    let mut times: FxHashMap<(u16, u32), u32> = FxHashMap::default();
    let (mut fences, mut candidates) = (Vec::new(), Vec::new());
    for (number, event) in recording.walk().enumerate() {
        match event.act {
            Act::Store { .. } | Act::Flush { .. } => {
                waits.insert(event.thread, true);
            }
            Act::Fence if waits.insert(event.thread, false) == Some(true) => {
                fences.push(number);
                if event.row >= from {
                    let time = times.entry((event.thread, event.site)).or_default();
                    candidates.push((*time, number));
                    *time += 1;
                }
            }
            _ => {}
        }
    }
    if waits.len() < 2 {
        return Ok(Vec::new());
    }
    candidates.sort_unstable();
    let rows = ThreadRows::read(recording)?;
    let (mut kinds, mut new, mut again) = (FxHashSet::default(), Vec::new(), Vec::new());
    for (_, number) in candidates.into_iter().take(LOOKS * most) {
        if new.len() == most {
            break;
        }
        let event = recording.event(number as u32);
        let Some(row) = rows.before(event.thread, event.row as u32) else {
            continue;
        };
        let end = end(recording, u64::from(row), acks);
        let held = hold(&rows, event.thread, row, end);
        if let Some(other) = meanwhile(recording, &held, &fences) {
            // The kind of an order: the site where the thread is held, and the site where another makes sure of
            // something.
            match kinds.insert((event.site, other.site)) {
                true => new.push(held),
                false => again.push(held),
            }
        }
    }
    new.extend(again);
    new.truncate(most);
    Ok(new)
}

/// The first of some fences at which a thread that is not held makes something sure meanwhile.
fn meanwhile(recording: &Recording, held: &HeldThreads, fences: &[usize]) -> Option<Event> {
    let event = |number: &usize| recording.event(*number as u32);
    let later = &fences[fences.partition_point(|number| event(number).row <= held.row)..];
    let mut within = later.iter().map(event);
    within
        .find(|event| event.row >= held.end || !held.holds(event))
        .filter(|event| event.row < held.end)
}

/// The row before which something is first printed after a row, if acknowledgements matter.
fn end(recording: &Recording, row: u64, acks: bool) -> u32 {
    let first = acks.then(|| recording.acks.next_after(row)).flatten();
    first.unwrap_or(recording.rows) as u32
}

/// Puts a recording's events into the order of that name, and limits its scope to the events whose order has changed.
///
/// # Errors
/// There is no order of that name.
pub fn apply(recording: &mut Recording, name: &str, acks: bool) -> Result<()> {
    check(recording)?;
    let bad = || {
        CrashTestError::new(format!(
            "--thread-order {name}: is not an order of this recording's threads; copy it from the report, with its recording"
        ))
    };
    let (thread, row) = name.split_once('@').ok_or_else(bad)?;
    let (thread, row): (u16, u32) = (
        thread.parse().map_err(|_| bad())?,
        row.parse().map_err(|_| bad())?,
    );
    let rows = ThreadRows::read(recording)?;
    let is_its = |of: &Vec<u32>| of.binary_search(&row).is_ok();
    if !rows.of.get(&thread).is_some_and(is_its) {
        return Err(bad());
    }
    let held = hold(&rows, thread, row, end(recording, u64::from(row), acks));
    reorder(recording, &held);
    match recording.scope {
        Some(_) => Ok(()),
        None => Err(bad()),
    }
}

fn reorder(recording: &mut Recording, held: &HeldThreads) {
    let first = recording.events.before(held.row + 1);
    let end = recording.events.before(held.end).max(first);
    let event = |number: &usize| recording.event(*number as u32);
    let (late, soon): (Vec<usize>, Vec<usize>) =
        (first..end).partition(|number| held.holds(&event(number)));
    if late.is_empty() || soon.is_empty() {
        return;
    }
    let its = late
        .iter()
        .position(|number| event(number).thread == held.thread);
    recording.held = its.map(|at| (first + soon.len() + at) as u32);
    let ordered = [soon, late].concat();
    let mut numbers: Vec<u32> = (0..recording.events.len() as u32).collect();
    for (number, old) in ordered.iter().enumerate() {
        numbers[*old] = (first + number) as u32;
    }
    recording.events.reorder(first, &ordered);
    for slot in &mut recording.lines {
        slot.versions.renumber(&numbers);
    }
    recording.scope = Some((first as u32, end as u32));
    debug_assert!(recording.platform == Platform::Adr || recording.platform == Platform::Eadr);
}

#[cfg(test)]
mod tests {
    use super::AccessKind::{Load, Other, Past, Store};
    use super::*;
    use crate::recording::persistence::Course;
    use crate::testing::Do::{Clwb, Fence, Store as Stores};
    use crate::testing::recording;

    fn rows(all: &[(u16, AccessKind, u64)]) -> ThreadRows {
        let row = |&(thread, what, line): &(u16, AccessKind, u64)| OrderRow { line, thread, what };
        ThreadRows::new(all.iter().map(row).collect())
    }

    /// Holds thread 0 after a row, where threads 1 and 2 have begun. Returns the row from which on each other thread is
    /// held, and the row at which all continue.
    fn held(all: &[(u16, AccessKind, u64)], row: u32) -> (Vec<(u16, u64)>, u64) {
        let all = [&[(1, Load, 98), (2, Load, 99)], all].concat();
        let mut held = hold(&rows(&all), 0, row + 2, all.len() as u32);
        assert_eq!(held.from.remove(&0), Some(u64::from(row) + 3));
        let from = held
            .from
            .into_iter()
            .map(|(thread, from)| (thread, from - 2));
        let mut from: Vec<(u16, u64)> = from.collect();
        from.sort_unstable();
        (from, held.end - 2)
    }

    #[test]
    fn a_thread_goes_on_until_it_needs_what_is_held() {
        let start = [(0, Store, 1), (1, Load, 9)];
        let with = |more: &[(u16, AccessKind, u64)]| held(&[&start[..], more].concat(), 0);
        // Other accesses do not depend on it, and neither does the load of the same line.
        let free = [
            (0, Other, 0),
            (0, Load, 2),
            (1, Load, 2),
            (1, Store, 3),
            (0, Store, 4),
        ];
        assert_eq!(with(&free), (vec![], 7));
        let loads = [
            (0, Other, 0),
            (0, Store, 2),
            (1, Store, 3),
            (1, Load, 2),
            (1, Store, 5),
        ];
        assert_eq!(with(&loads), (vec![(1, 5)], 6));
        let stores = [(0, Load, 2), (1, Store, 3), (1, Store, 2), (1, Store, 5)];
        assert_eq!(with(&stores), (vec![(1, 4)], 5));
        let calls = [
            (0, Store, SYSTEM),
            (1, Store, 3),
            (1, Store, SYSTEM),
            (1, Store, 5),
        ];
        assert_eq!(with(&calls), (vec![(1, 4)], 5));
    }

    #[test]
    fn who_needs_a_thread_that_is_held_is_held_too() {
        let all = [
            (0, Load, 9),
            (1, Load, 9),
            (2, Load, 9),
            (0, Store, 1),
            (1, Load, 1),
            (2, Store, 7),
            (1, Store, 2),
            (2, Load, 2),
            (2, Store, 8),
        ];
        assert_eq!(held(&all, 0), (vec![(1, 4), (2, 7)], 8));
    }

    /// The store of row 2 may have come before the load of row 1, because only that record came before its own.
    #[test]
    fn what_may_have_come_first_came_first() {
        let all = [
            (0, Load, 9),
            (1, Load, 8),
            (1, Load, 5),
            (0, Store, 5),
            (1, Store, 3),
        ];
        assert_eq!(held(&all, 0), (vec![(1, 2)], 3));
        // The held thread's last access is before its last record here.
        let all = [
            (1, Load, 8),
            (0, Load, 9),
            (1, Load, 5),
            (0, Other, 0),
            (0, Store, 5),
            (1, Store, 3),
        ];
        assert_eq!(held(&all, 3).1, 4);
        // Row 3 is held for the load of row 4, and may have come before the load of row 2.
        let all = [
            (0, Load, 9),
            (1, Load, 8),
            (2, Load, 5),
            (1, Store, 5),
            (0, Load, 5),
            (2, Store, 3),
        ];
        assert_eq!(held(&[&[(2, Load, 8)], &all[..]].concat(), 1).1, 3);
    }

    #[test]
    fn a_thread_that_begins_meanwhile_is_held_and_a_store_past_the_caches_may_be_old() {
        let all = [
            (0, Load, 9),
            (1, Load, 9),
            (1, Store, 3),
            (3, Store, 4),
            (1, Store, 5),
            (0, Store, 6),
        ];
        assert_eq!(held(&all, 0), (vec![(3, 3)], 6));
        let all = [
            (0, Load, 9),
            (1, Load, 9),
            (1, Store, 3),
            (1, Load, 7),
            (0, Store, 6),
            (0, Past, 7),
        ];
        assert_eq!(held(&all, 0).1, 3);
    }

    #[test]
    fn nothing_that_goes_on_needs_what_is_held() {
        let mut seed = 5u64;
        let mut draw = |below: u64| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (seed >> 33) % below
        };
        let (mut went_on, mut checked) = (0, 0);
        for _ in 0..4000 {
            let all: Vec<(u16, AccessKind, u64)> = (0..40)
                .map(|_| {
                    let what = [Load, Load, Store, Other][draw(4) as usize];
                    (draw(3) as u16, what, draw(9))
                })
                .collect();
            let rows = rows(&all);
            let (thread, row) = (all[8].0, 8);
            let held = hold(&rows, thread, row, 40);
            let is_held = |at: usize| {
                held.from
                    .get(&all[at].0)
                    .is_some_and(|&from| from <= at as u64)
            };
            for y in 9..held.end as usize {
                if is_held(y) || all[y].1 == Other {
                    continue;
                }
                went_on += 1;
                let others = (9..40).filter(|&x| is_held(x) && all[x].0 != all[y].0);
                let same = |x: &usize| all[*x].2 == all[y].2 && all[*x].1 != Other;
                for x in others.filter(same) {
                    if all[x].1 == Load && all[y].1 == Load {
                        continue;
                    }
                    let before = rows.before(all[x].0, x as u32);
                    let since = before
                        .and_then(|b| rows.last_access(all[x].0, b))
                        .unwrap_or(0);
                    checked += 1;
                    assert!(
                        since as usize > y,
                        "{all:?}: row {x} is held and row {y} is not"
                    );
                }
            }
        }
        assert!(went_on > 10_000 && checked > 1000, "{went_on} {checked}");
    }

    #[test]
    fn what_is_held_comes_later_and_lines_keep_their_contents() {
        let program = [
            (0, Stores(0, 1)),
            (0, Clwb(0)),
            (1, Stores(1, 2)),
            (0, Fence),
            (0, Stores(2, 3)),
            (1, Clwb(1)),
            (1, Fence),
        ];
        let mut made = recording(&program);
        let held = HeldThreads {
            thread: 0,
            row: 1,
            end: 7,
            from: FxHashMap::from_iter([(0, 2)]),
        };
        let sure = |recording: &Recording| -> Vec<u32> {
            let course = Course::from_recording(recording, Platform::Adr);
            course.rises.iter().map(|rise| rise.slot).collect()
        };
        assert_eq!(sure(&made), [0, 1]);
        reorder(&mut made, &held);
        assert_eq!(sure(&made), [1, 0]);
        assert_eq!(made.scope, Some((2, 7)));
        let order: Vec<u64> = made.walk().map(|event| event.row).collect();
        assert_eq!(order, [0, 1, 2, 5, 6, 3, 4]);
        let at = |slot: usize| made.lines[slot].versions.event(1);
        assert_eq!([at(0), at(1), at(2)], [0, 2, 6]);
        assert_eq!(
            meanwhile(&recording(&program), &held, &[3, 6]).unwrap().row,
            6
        );
    }
}
