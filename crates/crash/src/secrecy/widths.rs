//! How wide what an integrity writes is, from the bytes of a run: fewer bits than a word has show in it long before an
//! attacker meets two that are the same. A word counts as a hash if half of the bits that ever change in it do so at
//! each write of it, as those of a number that counts do not. Then all bits must change, each by itself: the differences
//! between what a word was and became span all of them (their rank over GF(2)). And no two places have one MAC. Left
//! out: registers, which are on chip.

use std::cell::RefCell;
use std::collections::BTreeMap;

use rustc_hash::FxHashMap;

use crate::history::History;
use crate::secrecy::numbers;
use crate::verdict::violation::{Kind, Violation};
use sardonyx::controller::integrity::MACS;
use sardonyx::controller::layers::{BESIDE, PowerFail};
use sardonyx::line::{LINE_BYTES, Line, Place, ZERO_LINE};

/// Changes of a word from which on a rank is no accident: one that lacks a bit is, with probability 2^-64.
const ENOUGH: usize = 128;
/// Versions that a line holds, at most.
const MOST_VERSIONS: u64 = 64;
/// Bits that change in a hash, at least: of a MAC, and of what may as well be an address.
const FEWEST: [u32; 2] = [12, 32];

/// Of each region that an integrity writes, how often the word changed that changed most.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Widths(BTreeMap<&'static str, usize>);

impl Widths {
    fn reach(&mut self, region: &'static str, changes: usize) {
        let most = self.0.entry(region).or_default();
        *most = changes.max(*most);
    }

    pub fn append(&mut self, other: &Widths) {
        for (region, changes) in &other.0 {
            self.reach(region, *changes);
        }
    }

    /// Regions in which no word has changed often enough to judge how wide it is.
    pub fn not_judged(&self) -> Vec<&'static str> {
        let few = self.0.iter().filter(|(_, changes)| **changes < ENOUGH);
        few.map(|(region, _)| *region).collect()
    }
}

/// The span of differences, by their highest bits.
#[derive(Default)]
struct Span {
    basis: BTreeMap<u32, u64>,
    changes: usize,
    /// Bits that have changed, in all.
    bits: u64,
    last: Option<Place>,
}

impl Span {
    fn take(&mut self, mut differs: u64, place: Place) {
        self.changes += 1;
        self.bits += u64::from(differs.count_ones());
        self.last = Some(place);
        while differs != 0 {
            match self.basis.get(&differs.leading_zeros()) {
                Some(known) => differs ^= known,
                None => {
                    self.basis.insert(differs.leading_zeros(), differs);
                    return;
                }
            }
        }
    }

    fn rank(&self) -> u32 {
        self.basis.len() as u32
    }

    /// Whether so many bits change at a time as of a hash.
    fn is_hash(&self, fewest: u32) -> bool {
        let rank = self.rank();
        self.changes >= ENOUGH
            && rank >= fewest
            && self.bits * 8 >= self.changes as u64 * u64::from(rank) * 3
    }
}

/// Where versions lie in the lines of their region: the bits of each word.
struct VersionBits {
    region: &'static str,
    words: [u64; LINE_BYTES / 8],
}

impl VersionBits {
    /// As they lie in the line that has the first place's version.
    fn of_first_line(kept: &dyn PowerFail, history: &History) -> VersionBits {
        let mut words = [0; LINE_BYTES / 8];
        let first = kept.version_of(Place(0)).map(|(line, _)| line);
        let places = (0..MOST_VERSIONS).filter_map(|place| kept.version_of(Place(place)));
        for (_, bits) in places.filter(|(line, _)| Some(*line) == first) {
            bits.for_each(|bit| words[bit / 64] |= 1 << (bit % 64));
        }
        let region = first.map_or("", |line| history.layout().name_of(line).0);
        VersionBits { region, words }
    }

    fn in_word(&self, region: &str, word: usize) -> u64 {
        match region == self.region {
            true => self.words[word],
            false => 0,
        }
    }
}

fn shares_its_mac(place: Place, at: u64, mac: u64) -> Violation {
    let what = format!("places that differ have one MAC, {mac:#x}");
    Violation {
        place: Some(place),
        ..Violation::new(Kind::Undetected, at, what)
    }
}

/// MACs, nodes and sums that are narrower than their words, or MACs that two places share.
pub(crate) fn of_macs(history: &History, widths: &RefCell<Widths>) -> Vec<Violation> {
    let Some((kept, at)) = history.power_fail().and_then(|kept| {
        let (at, _) = kept.kept_of(Place(0))?;
        Some((kept, at))
    }) else {
        return Vec::new();
    };
    // Versions are no hashes, wherever they lie: all of a page may go up together.
    let versions = VersionBits::of_first_line(&*kept, history);
    let lie_beside = at == Place(0);
    let macs = match lie_beside {
        true => MACS,
        false => history.layout().name_of(at).0,
    };
    let regions = history.layout().regions().iter();
    let on_chip = kept.on_chip().cloned();
    let kept = regions.skip_while(|region| region.name != macs);
    let kept: Vec<_> = kept
        .filter(|region| Some(*region) != on_chip.as_ref())
        .collect();
    let mut spans: BTreeMap<(&'static str, usize), Span> = BTreeMap::new();
    let mut beside: FxHashMap<Place, u64> = FxHashMap::default();
    let mut lines: FxHashMap<Place, Line> = FxHashMap::default();
    let mut owners: FxHashMap<u64, (Place, usize)> = FxHashMap::default();
    let mut found = Vec::new();
    for (at, write) in history.journal.accepted() {
        if let Some(mac) = write.sideband.filter(|_| lie_beside) {
            let mac = u64::from_le_bytes(mac);
            if let Some(old) = beside.insert(write.place, mac).filter(|old| *old != mac) {
                let span = spans.entry((macs, BESIDE)).or_default();
                span.take(old ^ mac, write.place);
            }
            let own = (write.place, BESIDE);
            let owner = *owners.entry(mac).or_insert(own);
            if owner != own && found.is_empty() {
                found.push(shares_its_mac(write.place, at, mac));
            }
        }
        let Some(region) = kept.iter().find(|region| region.contains(write.place)) else {
            continue;
        };
        let is_macs = region.name == macs;
        let old = lines.entry(write.place).or_insert(ZERO_LINE);
        let (before, new) = (numbers(old), numbers(&write.line));
        for word in (0..LINE_BYTES / 8).filter(|word| write.words >> word & 1 == 1) {
            if new[word] == 0 || new[word] == before[word] {
                continue;
            }
            if before[word] != 0 {
                let span = spans.entry((region.name, word)).or_default();
                let own = versions.in_word(region.name, word);
                span.take((before[word] ^ new[word]) & !own, write.place);
            }
            let own = (write.place, word);
            let owner = *owners.entry(new[word]).or_insert(own);
            if is_macs && owner != own && found.is_empty() {
                found.push(shares_its_mac(write.place, at, new[word]));
            }
            old[word * 8..][..8].copy_from_slice(&new[word].to_le_bytes());
        }
    }
    let mut widths = widths.borrow_mut();
    for region in &kept {
        widths.reach(region.name, 0);
    }
    for ((region, _), span) in &spans {
        widths.reach(region, span.changes);
    }
    let narrow = spans.iter().filter(|((region, word), span)| {
        let is_macs = *region == macs;
        let own = versions.in_word(region, *word).count_ones();
        span.is_hash(FEWEST[usize::from(!is_macs)]) && span.rank() < u64::BITS - own
    });
    found.extend(narrow.map(|((region, word), span)| {
        let (rank, changes) = (span.rank(), span.changes);
        let what = format!("word {word} of {region} has {rank} bits of 64, in {changes} changes");
        Violation {
            place: span.last,
            ..Violation::new(Kind::Undetected, 0, what)
        }
    }));
    found
}
