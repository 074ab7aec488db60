//! What the schemes share: a keyed MAC of 8 bytes of each line of the medium, eight to a line of the region
//! `macs`. It covers the place, the line and the eight bytes beside it. Which word of the region is a line's
//! follows from the place alone.
//! Left out: that a line is the newest ([`super::tree`]).

use super::keyed::SipHasher24;

use crate::controller::encryption::pad;
use crate::controller::layers::BESIDE;
use crate::line::{Line, Place};
use crate::mechanisms::mechanisms;
use crate::medium::layout::{CounterLines, Layout, Region};
use crate::medium::params::Unit;
use crate::plan::{At, Fetched, Plan, Step};
use crate::settings::{Settings, keys, words};

/// The name of the region of MACs.
pub const REGION: &str = "macs";
/// MACs in a line.
pub const PER_LINE: u64 = 8;
/// The key of MACs, public as the encryption's key is: a simulator keeps no secrets, and its attacker does not look.
const KEY: [u8; 16] = *b"sardonyx: a MAC!";

/// The key of MACs under versions. It differs, so that no MAC under a version is one without.
const VERSION_KEY: [u8; 16] = *b"sardonyx: newest";

/// The moment when bytes that have been read may be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verify {
    /// They are used once they have been verified.
    Wait,
    /// They are used at once, and verified at the same time.
    Speculate,
}

words!(Verify { "wait" => Wait, "speculate" => Speculate });

keys! {
    VERIFY: Verify = word("integrity.verify", "wait"),
        Assumed("the sound reading; papers mostly speculate, which hides the latency"),
        "When a line that was read may be used: after it is verified, or at once";
}

/// The place of MACs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MacPlace {
    /// Eight to a line of a region of their own.
    Region,
    /// In the eight bytes beside the line, which a memory with 72-bit lines reads and writes with it.
    Beside,
}

words!(MacPlace { "region" => Region, "beside" => Beside });

keys! {
    MAC_PLACE: MacPlace = word("integrity.mac_place", "region"),
        Assumed("papers put the MAC where the ECC is; policies here may have their counters there"),
        "Where the MAC of a line lies: in a line of eight, or beside the line, where nothing else lies then";
}

keys! {
    CACHE = cache("integrity.cache.", crate::line::LINE_BYTES, 65_536),
        Assumed("no source; a quarter to once of what papers give counters"), "Cache of MACs and nodes", "Its ways"
        in Between("16384", "524288", "a quarter and eight times");
}

keys! {
    LOW_BITS: u64 = int("star.low_bits", (1, 32), 10),
        Source("STAR (HPCA 2021), from memory: a MAC of 54 bits leaves ten"),
        "Low bits of a line's version that are in one word with its MAC (star)"
        in Between("4", "16", "nodes are written 64 times as often, or hardly ever")
        under |by| by.stride.map(|stride| u64::from(stride.ilog2().max(1)));
}

mechanisms! {
    VERIFIED = "verified lines", least 30;
    VERIFIED_NODE = "verified nodes", least 30;
}

/// What vouches for a line: its version and its MAC.
#[derive(Clone, Copy, Debug)]
pub struct Vouched {
    /// The number of times that the line was written.
    pub version: u64,
    /// The line's kept MAC; 0 if it was never written.
    pub mac: u64,
}

/// Ends a verification: returns the line read at `place`, or nothing if it is not `right`. The metadata that decide it
/// are known after `kept`; `verify` says when the line may be used.
pub fn verified(
    place: Place,
    got: Fetched,
    (is_right, kept): (bool, Step),
    verify: Verify,
    plan: &mut Plan,
) -> Fetched {
    let both = plan.both(got.at, kept);
    let checked = plan.unit(Unit::Mac, both);
    plan.exercise(&VERIFIED);
    let usable = match verify {
        Verify::Wait => checked,
        Verify::Speculate => got.at,
    };
    if !is_right {
        plan.refuse(place);
        return At::new(None, usable);
    }
    At::new(got.value, usable)
}

/// The places of MACs, and their computation.
#[derive(Clone, Debug)]
pub struct Where {
    /// Each protected region, with the number of its first MAC.
    regions: Vec<(Region, u64)>,
    /// The number of protected lines, with numbers left out so that regions begin where they should.
    pub count: u64,
    /// The lines of MACs; empty if MACs lie beside their lines.
    pub region: Region,
    /// Whether MACs lie beside their lines.
    pub beside: bool,
    /// So many low bits of a line's version are the lowest of its MAC's word.
    pub low_bits: u64,
    keys: [[u8; 16]; 2],
}

impl Where {
    /// Reserves room for a MAC of each line that `layout` has so far, except lines of `counters`. The first line of
    /// each region has a number that `by` divides, which itself is a multiple of [`PER_LINE`].
    pub fn reserve(
        (by, at): (u64, MacPlace),
        counters: Option<&CounterLines>,
        settings: &Settings,
        layout: &mut Layout,
    ) -> Where {
        let (regions, count) = protected(layout, layout.regions(), counters, by);
        let lines = match at {
            MacPlace::Region => count.div_ceil(PER_LINE),
            MacPlace::Beside => 0,
        };
        let region = layout.reserve_sparse(REGION, lines);
        Where::new(regions, count, (region, at), settings)
    }

    /// Finds the MACs again in a layout in which they are reserved.
    pub fn from_layout(
        (by, at): (u64, MacPlace),
        counters: Option<&CounterLines>,
        settings: &Settings,
        layout: &Layout,
    ) -> Where {
        let all = layout.regions();
        let own = all.iter().position(|region| region.name == REGION);
        let own = own.expect("it has been reserved");
        let (regions, count) = protected(layout, &all[..own], counters, by);
        Where::new(regions, count, (all[own].clone(), at), settings)
    }

    fn new(
        regions: Vec<(Region, u64)>,
        count: u64,
        (region, at): (Region, MacPlace),
        settings: &Settings,
    ) -> Where {
        Where {
            regions,
            count,
            region,
            beside: at == MacPlace::Beside,
            low_bits: 0,
            keys: [KEY, VERSION_KEY].map(|key| pad::other(key, settings)),
        }
    }

    /// The MAC of `line` at `place` with its sideband. It is never 0, which means that nothing was written.
    pub fn mac(&self, place: Place, line: &Line, sideband: Option<[u8; 8]>) -> u64 {
        let mut hasher = SipHasher24::new_with_key(&self.keys[0]);
        let sideband = sideband.filter(|_| !self.beside); // what lies there is the MAC
        hasher.write(&place.0.to_le_bytes());
        hasher.write(line);
        hasher.write(&[u8::from(sideband.is_some())]);
        hasher.write(&sideband.unwrap_or_default());
        hasher.finish().max(1)
    }

    /// The MAC of a line under its version, which counts its writes.
    pub fn mac_of_version(
        &self,
        place: Place,
        version: u64,
        line: &Line,
        sideband: Option<[u8; 8]>,
    ) -> u64 {
        let mut hasher = SipHasher24::new_with_key(&self.keys[1]);
        let sideband = sideband.filter(|_| !self.beside); // what lies there is the MAC
        hasher.write(&place.0.to_le_bytes());
        hasher.write(&version.to_le_bytes());
        hasher.write(line);
        hasher.write(&[u8::from(sideband.is_some())]);
        hasher.write(&sideband.unwrap_or_default());
        match self.low_bits {
            0 => hasher.finish().max(1),
            bits => (hasher.finish() >> bits).max(1) << bits | version & ((1 << bits) - 1),
        }
    }

    /// Whether `by` vouches for the line at `place`. A line that was never written has version 0, so nobody can take
    /// away the bytes of a written line.
    pub fn vouches(
        &self,
        by: Vouched,
        place: Place,
        line: Option<&Line>,
        sideband: Option<[u8; 8]>,
    ) -> bool {
        match line {
            None => by.version == 0 && by.mac == 0,
            Some(line) => {
                by.version != 0 && self.mac_of_version(place, by.version, line, sideband) == by.mac
            }
        }
    }

    /// The number of the line at `place` among the protected ones; `None` for MACs and nodes.
    #[inline]
    pub fn number(&self, place: Place) -> Option<u64> {
        let (region, first) = self.regions.iter().find(|(r, _)| r.contains(place))?;
        Some(first + place.0 - region.first.0)
    }

    /// The place of line `number`, if there is such a line.
    pub fn place(&self, number: u64) -> Option<Place> {
        let has =
            |(region, first): &&(Region, u64)| (*first..first + region.lines).contains(&number);
        let (region, first) = self.regions.iter().find(has)?;
        Some(Place(region.first.0 + number - first))
    }

    /// Iterates over the protected regions.
    pub fn regions(&self) -> impl Iterator<Item = &Region> {
        self.regions.iter().map(|(region, _)| region)
    }

    /// The line with the MAC of the line at `place`, and the MAC's word in it; `None` for MACs and nodes.
    pub fn of_line(&self, place: Place) -> Option<(Place, usize)> {
        let number = self.number(place)?;
        if self.beside {
            return Some((place, BESIDE));
        }
        let word = (number % PER_LINE) as usize;
        Some((self.region.line(number / PER_LINE), word))
    }
}

/// Numbers data and `regions`: the number of each region's first MAC, and how many numbers there are. Each region
/// begins a line of MACs, so that two lines which are written as one, such as data and their counters, have separate
/// lines of MACs.
fn protected(
    layout: &Layout,
    regions: &[Region],
    counters: Option<&CounterLines>,
    by: u64,
) -> (Vec<(Region, u64)>, u64) {
    let data = Region {
        name: "data",
        first: Place(0),
        lines: layout.data_lines(),
    };
    let mut count = 0;
    let is_leaf = |region: &&Region| counters.is_some_and(|lines| lines.region == **region);
    let regions = regions.iter().filter(|region| !is_leaf(region));
    let all = std::iter::once(&data).chain(regions);
    let numbered = all.map(|region| {
        let first = count;
        count += region.lines.next_multiple_of(by);
        (region.clone(), first)
    });
    (numbered.collect(), count)
}

/// The MAC that lies beside a line, 0 if there is none.
pub fn beside(sideband: Option<[u8; 8]>) -> u64 {
    sideband.map_or(0, u64::from_le_bytes)
}

/// Word `number` of `line`.
pub fn word(line: &Line, number: usize) -> u64 {
    u64::from_le_bytes(line.as_chunks().0[number])
}
