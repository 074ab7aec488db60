//! Pairs of threads of which one used what the other had stored and not yet made persistent, and then made something
//! persistent, or printed something, before it was.
//!
//! Loads of the files have their bytes and their place in a recording with `--pc`, from the second thread on. After a
//! crash between, the second thread's work is there and what it was made from is not. Left out: stores that never become
//! persistent, which [`lint`](super::lint) names as such, loads of locked instructions, which are mostly of locks, and what
//! a thread learns through other memory than the files.

use std::ops::ControlFlow;

use rustc_hash::FxHashMap;
use sardonyx_trace::{Op, TraceReader};

use crate::recording::persistence::{PendingState, Rise, Visit, replay};
use crate::recording::pools::{FileEntry, number, within};
use crate::recording::provenance::files;
use crate::recording::{Recording, Site};
use crate::{CrashTestError, Result};

/// The line that stands for the state that all system calls share; `sardonyx_recorder::maps::SYSTEM` puts it there.
const SYSTEM: u64 = (1 << 58) - 1;
/// A load is compared with at most this many earlier contents of its line.
const BACK: usize = 64;
const NEVER: u32 = u32::MAX;

/// The effect of the second thread before the first thread's store was persistent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// The event at which its own store became persistent.
    Persisted(u32),
    Printed,
}

/// A pair of places, with the first of its cases.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RacePair {
    /// The event of the store.
    pub store: u32,
    pub load_row: u64,
    pub load_site: u32,
    pub effect: Effect,
    pub count: u64,
}

/// A load of a line of the files that are cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Load {
    pub row: u64,
    pub thread: u16,
    pub slot: u32,
    /// A bit for each byte of the line.
    pub bytes: u64,
    pub site: u32,
}

/// A row at which something was printed, and the thread that printed it.
type Printing = (u64, u16);

/// Decodes the bytes that a site says, and the site of the instruction: the recorder puts a site below an instruction's
/// for each of the parts of a line that it loads, whose address is the first byte times 64 plus the length less 1.
fn loaded(sites: &[Site], site: u32) -> Option<(u64, u32)> {
    let Site { parent, pc, .. } = *sites.get(site as usize)?;
    let instruction = parent.checked_sub(1)?;
    let locked = sites.get(instruction as usize)?.locked;
    let (first, length) = (pc / 64, pc % 64 + 1);
    (pc < 64 * 64 && !locked).then(|| ((u64::MAX >> (64 - length)) << first, instruction))
}

/// The event at which each store is sure to persist.
struct Sure<'a> {
    recording: &'a Recording,
    at: Vec<u32>,
}

impl Visit for Sure<'_> {
    fn cut(&mut self, _: u32, _: u32, _: &PendingState) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }

    fn rise(&mut self, event: u32, rise: Rise) {
        let versions = &self.recording.lines[rise.slot as usize].versions;
        for version in rise.from + 1..=rise.to {
            self.at[versions.event(version) as usize] = event;
        }
    }
}

/// Stores of each thread that become persistent, in their order, each with the first event at which it or a later one
/// is persistent.
fn effects(recording: &Recording, sure: &[u32]) -> FxHashMap<u16, Vec<(u32, u32)>> {
    let mut of: FxHashMap<u16, Vec<(u32, u32)>> = FxHashMap::default();
    for (event, &at) in sure.iter().enumerate().rev() {
        if at != NEVER {
            let of = of.entry(recording.events.thread(event)).or_default();
            let first = of.last().map_or(at, |&(_, later)| at.min(later));
            of.push((event as u32, first));
        }
    }
    of.values_mut().for_each(|of| of.reverse());
    of
}

/// The bytes that a content changed, a bit each.
fn changed(recording: &Recording, slot: u32, version: u32) -> u64 {
    let (_, before, after) = recording.lines[slot as usize].versions.change(version);
    let differ = before.iter().zip(&after).enumerate();
    differ.fold(0, |bytes, (at, (a, b))| bytes | u64::from(a != b) << at)
}

/// Reads the loads of the files, and the thread of each row at which something was printed.
fn read(recording: &Recording) -> Result<(Vec<Load>, Vec<Printing>)> {
    let mut reader = TraceReader::open(&recording.path)?;
    let files = files(reader.provenance()).map_err(|problem| {
        CrashTestError::new(format!("{}: {problem}", recording.path.display()))
    })?;
    let of_pool = |file: &FileEntry| {
        let at = recording
            .pools
            .iter()
            .position(|pool| pool.path == file.path)?;
        Some((file.number()?, at as u16))
    };
    let files: FxHashMap<u64, u16> = files.iter().filter_map(of_pool).collect();
    let slots: FxHashMap<(u16, u32), u32> = (recording.lines.iter().enumerate())
        .map(|(slot, unit)| ((unit.file, unit.line), slot as u32))
        .collect();
    let mut printed = recording.acks.rows().peekable();
    let (mut loads, mut threads) = (Vec::new(), Vec::new());
    let (mut batch, mut at, mut row) = (Vec::new(), Vec::new(), 0);
    while reader.next_batch_at(&mut batch, Some(&mut at))? {
        recording.interrupt.check()?;
        for (record, site) in batch.iter().zip(&at) {
            // A call that prints is recorded first, and its return after it.
            while let Some(before) = printed.next_if(|before| *before <= row) {
                if record.line.0 == SYSTEM && before == row {
                    threads.push((row, record.thread));
                }
            }
            let load = || {
                let file = files.get(&number(record.line.0)?)?;
                let slot = *slots.get(&(*file, within(record.line.0)))?;
                let (bytes, site) = loaded(&recording.sites, (*site)?)?;
                Some(Load {
                    row,
                    thread: record.thread,
                    slot,
                    bytes,
                    site,
                })
            };
            if record.op == Op::Load {
                loads.extend(load());
            }
            row += 1;
        }
    }
    Ok((loads, threads))
}

pub fn races(recording: &Recording) -> Result<Vec<RacePair>> {
    if recording.threads() < 2 || recording.platform.unit() != 64 {
        return Ok(Vec::new());
    }
    let (loads, printed) = read(recording)?;
    Ok(pairs(recording, &loads, &printed))
}

/// Finds loads of another thread's store that was not persistent yet, after which the loading thread made something
/// persistent or printed something.
///
/// For each load in turn: its newest pending store must be another thread's and become sure some time; and the thread's
/// own next store, or else its next output, must come before that.
pub(crate) fn pairs(
    recording: &Recording,
    loads: &[Load],
    printed: &[(u64, u16)],
) -> Vec<RacePair> {
    let mut sure = Sure {
        recording,
        at: vec![NEVER; recording.events.len()],
    };
    replay(recording, recording.platform, &mut sure);
    let sure = sure.at;
    let effects = effects(recording, &sure);
    let mut bytes: FxHashMap<(u32, u32), u64> = FxHashMap::default();
    let mut numbers: FxHashMap<(u32, u32), usize> = FxHashMap::default();
    let mut found: Vec<RacePair> = Vec::new();
    for load in loads {
        let now = recording.events.before(load.row) as u32;
        let Some(last) = now.checked_sub(1) else {
            continue;
        };
        let versions = &recording.lines[load.slot as usize].versions;
        // The newest store to these bytes that is not persistent yet counts.
        let stores = (1..=versions.at(last)).rev().take(BACK);
        let mut pending =
            stores.take_while(|&version| sure[versions.event(version) as usize] >= now);
        let newest = pending.find(|&version| {
            let key = (load.slot, version);
            let of = bytes
                .entry(key)
                .or_insert_with(|| changed(recording, key.0, key.1));
            *of & load.bytes != 0
        });
        let Some(store) = newest.map(|version| versions.event(version)) else {
            continue;
        };
        let until = sure[store as usize];
        if recording.events.thread(store as usize) == load.thread || until == NEVER {
            continue;
        }
        let own = effects.get(&load.thread).map_or(&[][..], Vec::as_slice);
        let own = own.get(own.partition_point(|&(store, _)| store < now));
        let mut acks = printed[printed.partition_point(|(row, _)| *row <= load.row)..].iter();
        let ack = acks.find(|(_, thread)| *thread == load.thread);
        let effect = match (own, ack) {
            (Some(&(_, at)), _) if at < until => Effect::Persisted(at),
            (_, Some(&(row, _))) if recording.events.before(row) as u32 <= until => Effect::Printed,
            _ => continue,
        };
        let key = (recording.events.site(store as usize), load.site);
        let number = *numbers.entry(key).or_insert(found.len());
        match found.get_mut(number) {
            Some(pair) => pair.count += 1,
            None => found.push(RacePair {
                store,
                load_row: load.row,
                load_site: load.site,
                effect,
                count: 1,
            }),
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Do::{self, Clflush, Clwb, Fence, Store};
    use crate::testing::recording;

    /// A load of a line before a row; lines are numbered by their first stores.
    fn load(row: u64, thread: u16, slot: u32) -> Load {
        Load {
            row,
            thread,
            slot,
            bytes: 0xFF,
            site: 7,
        }
    }

    fn found(program: &[(u16, Do)], loads: &[Load], printed: &[(u64, u16)]) -> Vec<(u32, Effect)> {
        let pairs = pairs(&recording(program), loads, printed);
        pairs.iter().map(|pair| (pair.store, pair.effect)).collect()
    }

    #[test]
    fn what_was_used_and_outlasted_is_a_pair() {
        let program = [
            (0, Store(0, 1)),
            (1, Store(1, 2)),
            (1, Clwb(1)),
            (1, Fence), // row 3
            (0, Clwb(0)),
            (0, Fence),
        ];
        let pair = [(0, Effect::Persisted(3))];
        assert_eq!(found(&program, &[load(1, 1, 0)], &[]), pair);
        // A load after its own store, one before anything was stored, and one of other bytes are no pair.
        assert_eq!(found(&program, &[load(2, 1, 0)], &[]), []);
        assert_eq!(found(&program, &[load(0, 1, 0)], &[]), []);
        assert_eq!(found(&program, &[load(1, 0, 0)], &[]), []);
        let other = Load {
            bytes: 0,
            ..load(1, 1, 0)
        };
        assert_eq!(found(&program, &[other], &[]), []);
        // Something is printed before the store was persistent, and after.
        assert_eq!(
            found(&program, &[load(4, 2, 0)], &[(5, 2)]),
            [(0, Effect::Printed)]
        );
        assert_eq!(found(&program, &[load(4, 2, 0)], &[(6, 2)]), []);
        assert_eq!(found(&program, &[load(4, 2, 0)], &[(5, 1)]), []);
    }

    /// A thread that makes what it used persistent first, or together with its own, is right.
    #[test]
    fn what_is_persistent_by_then_is_no_pair() {
        let helps = [
            (0, Store(0, 1)),
            (1, Clflush(0)),
            (1, Store(1, 2)),
            (1, Clwb(1)),
            (1, Fence),
            (0, Clwb(0)),
            (0, Fence),
        ];
        assert_eq!(found(&helps, &[load(1, 1, 0)], &[]), []);
        let together = [
            (0, Store(0, 1)),
            (1, Store(1, 2)),
            (1, Clwb(1)),
            (1, Clwb(0)),
            (1, Fence),
        ];
        assert_eq!(found(&together, &[load(1, 1, 0)], &[]), []);
        let never = &together[..3];
        let never = [never, &[(1, Fence)]].concat();
        assert_eq!(found(&never, &[load(1, 1, 0)], &[]), []);
    }

    #[test]
    fn a_site_says_which_bytes_were_loaded() {
        let site = |parent, pc| Site {
            parent,
            pc,
            locked: false,
            program: 0,
        };
        let sites = [
            site(0, 0x40_0000),
            site(1, 8 * 64 + 3),
            site(1, 63),
            site(0, 0),
        ];
        let locked = Site {
            locked: true,
            ..sites[0]
        };
        assert_eq!(loaded(&[locked, sites[1]], 1), None);
        assert_eq!(loaded(&sites, 1), Some((0xF00, 0)));
        assert_eq!(loaded(&sites, 2), Some((u64::MAX, 0)));
        assert_eq!(
            (loaded(&sites, 0), loaded(&sites, 3), loaded(&sites, 9)),
            (None, None, None)
        );
    }
}
