//! The width of what an integrity writes, from the bytes of a run: a word with fewer bits than it should have shows so
//! long before an attacker meets two equal ones. A word counts as a hash if a large share of the bits that ever change
//! in it do so at each write, as those of a number that counts do not; nor does one that is written rarely, and so in
//! large steps, but it never goes down. Then all bits must change, each by itself: the
//! differences between what a word was and became span all of them (their rank over GF(2)). A value that some word has
//! had before says nothing: contents come back, and their hash with them. And no two places have one MAC. Left out:
//! registers, which are on chip.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::collections::hash_map::Entry;

use rustc_hash::FxHashMap;

use crate::history::History;
use crate::violation::{Kind, Violation};
use crate::words::numbers;
use sardonyx::controller::integrity::MACS;
use sardonyx::controller::layers::{BESIDE, PowerFail};
use sardonyx::line::{LINE_BYTES, Line, Place, ZERO_LINE};

/// After this many changes of a word, each to a new value, a rank is no accident: random values lack a bit with
/// probability 2^-64.
const ENOUGH: usize = 128;
const MOST_VERSIONS: u64 = 64;
/// A number that goes up at so many changes, and never down, counts: a hash would do that with probability 2^-40.
const UPWARD: usize = 40;
/// The changes of a word that are kept to see whether it counts.
const KEPT: usize = 512;
/// A hash has at least this many bits that change: one of a MAC or a node, and one of a word that may as well be an
/// address.
const FEWEST: [u32; 2] = [12, 32];

/// The most changes of a word in each region that an integrity writes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Widths(BTreeMap<&'static str, usize>);

impl Widths {
    fn reach(&mut self, region: &'static str, changes: usize) {
        let most = self.0.entry(region).or_default();
        *most = changes.max(*most);
    }

    fn follow(&mut self, words: &Words) {
        for ((region, _), span) in &words.spans {
            self.reach(region, span.changes);
        }
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

/// The span of differences, each basis vector under its number of leading zeros.
#[derive(Default)]
struct Span {
    basis: BTreeMap<u32, u64>,
    changes: usize,
    /// The number of bits that have changed, over all changes.
    bits: u64,
    last: Option<Place>,
    /// The first changes: what the word was and became.
    kept: Vec<[u64; 2]>,
}

impl Span {
    fn take(&mut self, change: [u64; 2], place: Place) {
        let mut differs = change[0] ^ change[1];
        if self.kept.len() < KEPT {
            self.kept.push(change);
        }
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

    /// Whether some of the bits that change, which lie side by side, are a number that only goes up.
    fn counts(&self) -> bool {
        let ever = self.kept.iter().fold(0, |ever, [was, is]| ever | was ^ is);
        let mut left: u64 = ever;
        while left != 0 {
            let from = left.trailing_zeros();
            let wide = (left >> from).trailing_ones();
            let run = (u64::MAX >> (u64::BITS - wide)) << from;
            let number = self.kept.iter().map(|change| change.map(|word| word & run));
            let mut steps = number.filter(|[was, is]| was != is);
            if steps.clone().count() >= UPWARD && steps.all(|[was, is]| was < is) {
                return true;
            }
            left &= !run;
        }
        false
    }

    fn is_hash(&self, fewest: u32) -> bool {
        // Half of a hash's bits change at each write; three eighths leave room for chance. A number that counts changes
        // far fewer.
        let rank = self.rank();
        self.changes >= ENOUGH
            && rank >= fewest
            && self.bits * 8 >= self.changes as u64 * u64::from(rank) * 3
            && !self.counts()
    }
}

#[derive(Default)]
struct Words {
    spans: BTreeMap<(&'static str, usize), Span>,
    owners: FxHashMap<u64, (Place, usize)>,
}

impl Words {
    /// Notes that a word of a place has become `new` from `before`, 0 if it had no value; the bits `judged` belong to
    /// no version. Returns whether another word has had this value before.
    fn becomes(
        &mut self,
        region: &'static str,
        (place, word): (Place, usize),
        (before, new): (u64, u64),
        judged: u64,
    ) -> bool {
        let own = (place, word);
        match self.owners.entry(new) {
            Entry::Occupied(owner) => *owner.get() != own,
            Entry::Vacant(entry) => {
                entry.insert(own);
                if before != 0 {
                    let span = self.spans.entry((region, word)).or_default();
                    span.take([before, new].map(|word| word & judged), place);
                }
                false
            }
        }
    }
}

/// The bits of each word that belong to versions, in the lines of the versions' region and of the MACs'.
struct VersionBits {
    region: &'static str,
    words: [u64; LINE_BYTES / 8],
    macs: &'static str,
    in_macs: u64,
}

impl VersionBits {
    /// Takes them from the line that has the first place's version.
    fn of_first_line(kept: &dyn PowerFail, macs: &'static str, history: &History) -> VersionBits {
        let mut words = [0; LINE_BYTES / 8];
        let first = kept.version_of(Place(0)).map(|(line, _)| line);
        let places = (0..MOST_VERSIONS).filter_map(|place| kept.version_of(Place(place)));
        for (_, bits) in places.filter(|(line, _)| Some(*line) == first) {
            bits.for_each(|bit| words[bit / 64] |= 1 << (bit % 64));
        }
        let region = first.map_or("", |line| history.layout().name_of(line).0);
        VersionBits {
            region,
            words,
            macs,
            in_macs: (1 << kept.version_in_mac()) - 1,
        }
    }

    fn in_word(&self, region: &str, word: usize) -> u64 {
        let of_line = if region == self.region {
            self.words[word]
        } else {
            0
        };
        let of_mac = if region == self.macs { self.in_macs } else { 0 };
        of_line | of_mac
    }
}

/// The regions of a tree's nodes, which hold no addresses.
fn node_regions(kept: &dyn PowerFail, history: &History) -> Vec<&'static str> {
    let nodes = (0..).map_while(|level| kept.over(Place(0), level));
    nodes.map(|at| history.layout().name_of(at).0).collect()
}

fn shares_its_mac(place: Place, at: u64, mac: u64) -> Violation {
    let what = format!("places that differ have one MAC, {mac:#x}");
    Violation {
        place: Some(place),
        ..Violation::new(Kind::Undetected, at, what)
    }
}

/// Looks for MACs, nodes and sums that are narrower than their words, and for MACs that two places share.
pub(crate) fn of_macs(history: &History, widths: &RefCell<Widths>) -> Vec<Violation> {
    let kept = history.power_fail();
    let Some(((at, _), kept)) = kept.and_then(|kept| Some((kept.kept_of(Place(0))?, kept))) else {
        return Vec::new();
    };
    let lie_beside = at == Place(0);
    let macs = match lie_beside {
        true => MACS,
        false => history.layout().name_of(at).0,
    };
    // Versions are no hashes, and all of a page may go up together.
    let versions = VersionBits::of_first_line(&*kept, macs, history);
    // The regions of an integrity follow that of its MACs.
    let regions = history.layout().regions().iter();
    let regions = regions.skip_while(|region| region.name != macs);
    let regions: Vec<_> = regions.filter(|r| Some(*r) != kept.on_chip()).collect();
    let mut words = Words::default();
    let mut beside: FxHashMap<Place, u64> = FxHashMap::default();
    let mut lines: FxHashMap<Place, Line> = FxHashMap::default();
    let mut found = Vec::new();
    for (at, write) in history.journal.accepted() {
        if let Some(mac) = write.sideband.filter(|_| lie_beside) {
            let mac = u64::from_le_bytes(mac);
            let old = beside.insert(write.place, mac).unwrap_or(0);
            let judged = !versions.in_macs;
            let shared = words.becomes(macs, (write.place, BESIDE), (old, mac), judged);
            if shared && found.is_empty() {
                found.push(shares_its_mac(write.place, at, mac));
            }
        }
        let Some(region) = regions.iter().find(|region| region.contains(write.place)) else {
            continue;
        };
        let is_macs = region.name == macs;
        let old = lines.entry(write.place).or_insert(ZERO_LINE);
        let (before, new) = (numbers(old), numbers(&write.line));
        for word in (0..LINE_BYTES / 8).filter(|word| write.words >> word & 1 == 1) {
            if new[word] == 0 || new[word] == before[word] {
                continue;
            }
            let judged = !versions.in_word(region.name, word);
            let (at_word, became) = ((write.place, word), (before[word], new[word]));
            let shared = words.becomes(region.name, at_word, became, judged);
            if is_macs && shared && found.is_empty() {
                found.push(shares_its_mac(write.place, at, new[word]));
            }
            old[word * 8..][..8].copy_from_slice(&new[word].to_le_bytes());
        }
    }
    let mut widths = widths.borrow_mut();
    regions
        .iter()
        .for_each(|region| widths.reach(region.name, 0));
    widths.follow(&words);
    let nodes = node_regions(&*kept, history);
    let narrow = words.spans.iter().filter(|((region, word), span)| {
        let has_addresses = *region != macs && !nodes.contains(region);
        let own = versions.in_word(region, *word).count_ones();
        span.is_hash(FEWEST[usize::from(has_addresses)]) && span.rank() < u64::BITS - own
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

#[cfg(test)]
mod tests {
    use sardonyx_base::random::SplitMix64;

    use super::*;

    /// The span of a word that becomes what `values` draws, this many times.
    fn span(changes: usize, mut values: impl FnMut() -> u64) -> Span {
        let (mut words, mut before) = (Words::default(), 0);
        for _ in 0..=changes {
            let new = values();
            words.becomes("nodes-1", (Place(7), 3), (before, new), u64::MAX);
            before = new;
        }
        words.spans.remove(&("nodes-1", 3)).unwrap_or_default()
    }

    #[test]
    fn a_word_whose_values_come_back_is_not_judged() {
        let mut random = SplitMix64(1);
        let few: Vec<u64> = (0..57).map(|_| random.draw()).collect();
        let word = span(1_000, || few[random.below(57) as usize]);
        assert!(word.rank() <= 56 && !word.is_hash(32));
    }

    #[test]
    fn a_counter_that_goes_up_in_large_steps_is_no_hash_beside_the_low_bits_of_another() {
        let mut random = SplitMix64(3);
        let mut span = |goes_up: bool| {
            let mut span = Span::default();
            for _ in 0..400 {
                let mut first = [random.below(1024), random.below(1024)];
                if goes_up {
                    first.sort_unstable();
                }
                let second = [random.draw(), random.draw()];
                let change = [0, 1].map(|at| first[at] | second[at] << 56);
                span.take(change, Place(7));
            }
            span
        };
        assert!(!span(true).is_hash(12));
        let narrow = span(false);
        assert!(narrow.is_hash(12) && narrow.rank() == 18);
    }

    #[test]
    fn a_word_that_lacks_a_bit_is_narrow() {
        let mut random = SplitMix64(2);
        let whole = span(ENOUGH, || random.draw());
        assert!(whole.is_hash(32) && whole.rank() == 64);
        let narrow = span(ENOUGH, || random.draw() | 1 << 40);
        assert!(narrow.is_hash(32) && narrow.rank() == 63);
    }
}
