//! Causes that are already known during a search, and the violations that they explain.
//!
//! A store that came too late is left out of later rounds by counting it as persistent at once
//! ([`Recording::assumed`]): the machine may leave every image made so, and therefore a failure of one of them is
//! another fault. A store that came too early cannot be left out so: a violation is instead tested with the latest such
//! stores held back.

use rustc_hash::{FxHashMap, FxHashSet};

use crate::images::{Image, Kind, Over, WHOLE};
use crate::recording::source::{Frame, Sources};
use crate::recording::{Act, NOWHERE, Recording};
use crate::search::judge::Judge;
use crate::{CrashTestError, Result};

/// Stores that came too early are looked for among this many events before a cut.
const BACK: usize = 20_000;
/// The numbers of stores that are held back in turn: the latest one, the latest few, the latest many.
const HELD: [usize; 3] = [1, 4, 16];

/// The line of code that each site's stores count for, and the sites of each line.
#[derive(Debug, Default)]
pub struct StorePlaces {
    of: FxHashMap<u32, String>,
    sites: FxHashMap<String, FxHashSet<u32>>,
}

/// The user's own line for which a site's stores count, or else a description of the innermost call.
fn place(stack: &[Frame]) -> Option<String> {
    let own = stack.iter().find(|frame| frame.own()).or(stack.first());
    own.map(Frame::place)
}

impl StorePlaces {
    pub fn from_recording(recording: &Recording, source: bool) -> StorePlaces {
        let mut places = StorePlaces::default();
        let mut sources = (source && !recording.sites.is_empty()).then(|| Sources::new(recording));
        for number in 0..recording.events.len() {
            let at = recording.events.site(number);
            if !recording.events.is_store(number) || at == NOWHERE || places.of.contains_key(&at) {
                continue;
            }
            let stack = sources.as_mut().map(|sources| sources.stack(at));
            let named = stack.as_deref().and_then(place).unwrap_or_else(|| {
                let site = recording.sites.get(at as usize);
                format!("{:#x}", site.map_or(0, |site| site.pc))
            });
            let sites = places.sites.entry(named.clone()).or_default();
            sites.insert(at);
            places.of.insert(at, named);
        }
        places
    }

    /// The lines of code whose stores are in `overs`.
    pub fn names<'p>(
        &'p self,
        recording: &'p Recording,
        overs: &'p [Over],
    ) -> impl Iterator<Item = &'p String> {
        let site = |over: &Over| {
            let versions = &recording.lines[over.slot as usize].versions;
            recording.events.site(versions.event(over.version) as usize)
        };
        overs
            .iter()
            .filter_map(move |over| self.of.get(&site(over)))
    }

    /// The sites of these lines.
    pub fn sites(&self, recording: &Recording, overs: &[Over]) -> FxHashSet<u32> {
        let names = self.names(recording, overs);
        names
            .flat_map(|place| &self.sites[place])
            .copied()
            .collect()
    }

    pub fn named(&self, named: &str) -> Result<FxHashSet<u32>> {
        let name = named.rsplit('/').next().unwrap_or(named);
        self.sites.get(name).cloned().ok_or_else(|| {
            let mut near: Vec<&str> = self.sites.keys().map(String::as_str).collect();
            let file = name.split(':').next().unwrap_or(name);
            near.retain(|place| place.split(':').next() == Some(file));
            near.sort_unstable();
            let there = match near.is_empty() {
                true => "the recording has no store of that file".to_owned(),
                false => format!("stores of that file are at {}", near.join(", ")),
            };
            CrashTestError::new(format!(
                "--assume-persisted {named}: no store to the pool is there; {there}"
            ))
        })
    }
}

/// Whether a cause explains a violation: the image passes once the latest stores of the cause's sites are held back.
pub fn explains(judge: &mut Judge<'_>, sites: &FxHashSet<u32>, image: &Image) -> Result<bool> {
    let shared = judge.shared;
    let recording = &shared.recording;
    let at = shared.course.cuts[image.cut as usize].event as usize;
    let floors = judge.floors(image.cut);
    let mut there: FxHashMap<u32, u32> = image.over.iter().map(|o| (o.slot, o.version)).collect();
    let mut held: Vec<Over> = Vec::new();
    let (mut count, mut asked) = (0, 0);
    let before = (at.saturating_sub(BACK)..at).rev();
    let of_site = before.filter(|&event| sites.contains(&recording.events.site(event)));
    let mut stores = of_site.map(|event| recording.event(event as u32));
    for most in HELD {
        while count < most {
            let Some(event) = stores.next() else { break };
            let Act::Store { slot, version, .. } = event.act else {
                continue;
            };
            let there = there.entry(slot).or_insert_with(|| floors[slot as usize]);
            if *there < version || version == 0 {
                continue; // it is not there as it is
            }
            *there = version - 1;
            held.retain(|over| over.slot != slot);
            held.push(Over {
                slot,
                version: version - 1,
                words: WHOLE,
            });
            count += 1;
        }
        if count == asked {
            break;
        }
        asked = count;
        let others = image
            .over
            .iter()
            .filter(|o| held.iter().all(|h| h.slot != o.slot));
        let mut over: Vec<Over> = others.copied().chain(held.iter().copied()).collect();
        over.sort_unstable();
        let tried = Image {
            cut: image.cut,
            over,
            kind: Kind::Given,
        };
        let acked = judge.acked(image.cut);
        if judge
            .fails(&tried, acked, shared.trial.recovery.time)?
            .is_none()
        {
            return Ok(true);
        }
    }
    Ok(false)
}
