//! What a layer declares about itself: a value in its own file. `mapping`, `encryption`, `logging` and `integrity` list
//! the files, `designs` makes stacks of them. Left out: what a layer does.

use std::ops::Range;

use super::{Encryption, Top};
use crate::figures::Figure;
use crate::line::{LINE_BYTES, Line, Logical, Place};
use crate::mechanisms::Mechanism;
use crate::medium::layout::{Layout, Region};
use crate::medium::params::Unit;
use crate::plan::guard::Guard;
use crate::plan::start_gap::Places;
use crate::settings::{AnyKey, Key, Settings};
pub use crate::settings::{HIGH, Limit, Reached};

/// A named stack of layers.
#[derive(Debug)]
pub struct Design {
    /// Its name on the command line.
    pub name: &'static str,
    /// The paper that it comes from, or who thought of it.
    pub source: &'static str,
    /// What the design does, in a line.
    pub line: &'static str,
    /// `LOGGING/MAPPING+POLICY@INTEGRITY`.
    pub stack: &'static str,
}

/// What a file of layers exports.
pub struct File<L: 'static> {
    /// Its layers.
    pub layers: &'static [L],
    /// The designs that use them.
    pub designs: &'static [Design],
}

/// Lists the files of a kind of layer: each exports one `FILE`.
macro_rules! files {
    ($layer:ident: $($file:ident)*) => {
        $(pub mod $file;)*

        /// What they export.
        pub static FILES: &[&$crate::controller::layers::File<$layer>] = &[$(&$file::FILE),*];
    };
}
pub(super) use files;

/// What a design promises of the lines that a power cut leaves behind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Guarantee {
    /// Every line reads as the last write of it that was accepted, or a later one.
    EveryLine,
    /// Every line that the program's recovery relies on reads so: lines that were written counter-atomically, or
    /// flushed and their metadata written back, before a fence.
    AfterProgramRecovery,
    /// Nothing, though programs need `AfterProgramRecovery`.
    Nothing,
}

impl Guarantee {
    /// Its name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Guarantee::EveryLine => "every line",
            Guarantee::AfterProgramRecovery => "after program recovery",
            Guarantee::Nothing => "nothing",
        }
    }

    /// The promise that remains above a layer that persists on demand.
    pub fn on_demand(self) -> Guarantee {
        match self {
            Guarantee::Nothing => Guarantee::Nothing,
            _ => Guarantee::AfterProgramRecovery,
        }
    }
}

/// What every layer declares about itself.
pub struct About {
    /// Its name in a stack.
    pub name: &'static str,
    /// The parameters that it declares, or shares with those of its file.
    pub keys: &'static [&'static dyn AnyKey],
    /// The on-chip units that it uses and that not every layer of its kind uses.
    pub units: &'static [Unit],
    /// The figures that it counts: its own, and those that it shares.
    pub figures: &'static [&'static [&'static Figure]],
    /// What a power cut does to its state, and what a recovery rebuilds.
    pub cut: &'static str,
    /// The mechanisms that it has and that not every stack has, its own and shared ones: a run that has not used them
    /// proves nothing about them.
    pub tries: &'static [&'static [&'static Mechanism]],
    /// The limits of its counters and tables.
    pub limits: &'static [Limit],
}

impl About {
    /// A layer without a name that declares nothing.
    pub const EMPTY: About = About {
        name: "",
        keys: &[],
        units: &[],
        figures: &[],
        cut: "",
        tries: &[],
        limits: &[],
    };
}

/// A hardware log of old or new lines, over a mapping.
pub struct Logging {
    /// What every layer says.
    pub about: About,
    /// The number of lines that it keeps for itself, after those of the programs.
    pub lines: fn(&Settings) -> u64,
    /// Builds the layer; a logging that does nothing returns the mapping.
    pub build: fn(&Settings, Top, &mut Layout) -> Top,
    /// What the design promises if the stack below promises this.
    pub guarantee: fn(Guarantee) -> Guarantee,
    /// Where its unpredictable initial vectors lie, in a layout in which it has been built.
    pub vectors: fn(&Settings, &Layout) -> Option<Vectors>,
}

/// Where initial vectors lie in the medium: in the first line of each run of lines.
#[derive(Clone, Debug)]
pub struct Vectors {
    /// The region.
    pub region: Region,
    /// The number of lines in a run.
    pub pitch: u64,
    /// The 8-byte words of the line that are vectors.
    pub words: Range<usize>,
}

impl Vectors {
    /// Whether `place` is a line with vectors.
    pub fn is_at(&self, place: Place) -> bool {
        let contains = self.region.contains(place);
        contains && (place.0 - self.region.first.0).is_multiple_of(self.pitch)
    }
}

/// Where logical lines lie, and which of them share a place.
pub struct Mapping {
    /// What every layer says.
    pub about: About,
    /// Builds it.
    pub build: fn(&Settings, Encryption, &mut Layout) -> Top,
    /// What the design promises if the policy below promises this.
    pub guarantee: fn(Guarantee) -> Guarantee,
    /// Where its lines lie, for readers of the medium's bytes.
    pub placement: fn(&Settings, &Layout) -> Placement,
    /// Regions in which it shows digests of contents under no key, because the design is built on them.
    pub shows: &'static [&'static str],
    /// Whether it treats lines of zeros apart.
    pub zeros_apart: bool,
    /// What it needs the eight bytes beside each line for.
    pub beside: Option<&'static str>,
}

/// What an attacker who reads and writes the medium cannot do without being noticed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refuses {
    /// Change bits of a line.
    pub tamper: bool,
    /// Put a line, with all that is kept of it, where another was.
    pub splice: bool,
    /// Put back what a line was once, with all that is kept of it.
    pub replay: bool,
    /// Put back the whole medium as it once was.
    pub rollback: bool,
}

impl Refuses {
    /// The attacker can do all of it unnoticed.
    pub const NOTHING: Refuses = Refuses {
        tamper: false,
        splice: false,
        replay: false,
        rollback: false,
    };
    /// The attacker can do none of it unnoticed.
    pub const ALL: Refuses = Refuses {
        tamper: true,
        splice: true,
        replay: true,
        rollback: true,
    };
}

/// The number of the word that lies beside a line, behind the eight of the line itself.
pub const BESIDE: usize = LINE_BYTES / 8;

/// What the controller does on reserve power to what lies in the medium. Its time is not modelled, and an attacker sees
/// what it changes.
pub trait PowerFail {
    /// Begins with a medium at rest.
    fn begin(&mut self, image: &mut Places);

    /// The line at `place` has come into the persistence domain.
    fn accepted(&mut self, place: Place, image: &mut Places);

    /// Reserve power has dumped a line to `place` past the guard.
    fn dumped(&mut self, place: Place, image: &mut Places);

    /// Lines that hold what is in registers on chip, where no attacker comes.
    fn on_chip(&self) -> Option<&Region>;

    /// The places that have what is kept of the line at `place`: the word of one that is about it, or [`BESIDE`] where
    /// it lies beside that line.
    fn kept_of(&self, place: Place) -> Option<(Place, usize)>;

    /// The line that has the version of the line at `place`, and the bits of it that are this version; none where
    /// nothing counts.
    fn version_of(&self, _place: Place) -> Option<(Place, Range<usize>)> {
        None
    }

    /// The line of the tree's `level` (0 is the lowest) that vouches for the line at `place`, or is that line: of
    /// data, of tables, of MACs or of the tree's own. None above the highest, and where nothing does.
    fn over(&self, _place: Place, _level: usize) -> Option<Place> {
        None
    }
}

/// Makes what an integrity keeps over a power cut, in a layout in which it has been built.
pub type MakePowerFail = fn(&Settings, &Layout) -> Box<dyn PowerFail>;

/// What refuses lines of the medium that are not what was last written there.
pub struct Integrity {
    /// What every layer says.
    pub about: About,
    /// Builds the guard when all other regions of the layout are reserved; an integrity that does nothing returns
    /// `None`.
    pub build: fn(&Settings, &mut Layout) -> Option<Box<dyn Guard>>,
    /// What it refuses, in a run and after a cut.
    pub promises: Refuses,
    /// Whether it writes each line of MACs and nodes once a group, however many lines of data the group has.
    pub settles_groups: bool,
    /// Bytes of the on-chip registers that survive a power cut, without caches.
    pub registers: fn(&Settings) -> u64,
    /// What its registers and its reserve power keep, in a layout in which it has been built; nothing if none.
    pub power_fail: Option<MakePowerFail>,
}

impl Integrity {
    /// Bytes that it takes in a medium with this many lines of data and of other layers' tables, by region; registers
    /// are left out.
    pub fn in_memory(&self, settings: &Settings, lines: u64) -> Vec<(&'static str, u64)> {
        let mut layout = Layout::new(lines);
        (self.build)(settings, &mut layout);
        let kept = self.power_fail.map(|make| make(settings, &layout));
        let on_chip = kept.as_ref().and_then(|kept| kept.on_chip());
        let regions = layout
            .regions()
            .iter()
            .filter(|region| Some(*region) != on_chip);
        regions
            .map(|region| (region.name, region.lines * LINE_BYTES as u64))
            .collect()
    }
}

/// Where the lines of a mapping lie in a layout in which it has been built.
#[derive(Clone, Debug)]
pub enum Placement {
    /// Each at its own place.
    Home,
    /// Where a table in the medium says.
    Table(Entries),
}

/// A table in the medium that says where lines lie; a line of it that has never been written holds
/// zeros.
#[derive(Clone, Debug)]
pub struct Entries {
    /// The lines of the table.
    pub region: Region,
    /// Entries of a line of it.
    pub per_line: u64,
    /// The number of places; an entry beyond them is not a mapping (a power cut may have torn it).
    pub places: u64,
    /// The place of a logical line, from its line of the table and the number of its entry in that line.
    pub place: fn(&Line, Logical, usize) -> Option<Place>,
}

impl Entries {
    /// The logical lines of which the table's line `bytes` at `place` tells, and their places.
    pub fn read(
        &self,
        place: Place,
        bytes: &Line,
    ) -> impl Iterator<Item = (Logical, Option<Place>)> {
        let first = (place.0 - self.region.first.0) * self.per_line;
        (0..self.per_line).map(move |slot| {
            let line = Logical(first + slot);
            let place = (self.place)(bytes, line, slot as usize);
            (line, place.filter(|place| place.0 < self.places))
        })
    }
}

/// An encryption, and the policy of when its counters persist.
pub struct Policy {
    /// What every layer says.
    pub about: About,
    /// Builds it.
    pub build: fn(&Settings, &mut Layout) -> Encryption,
    /// What it promises.
    pub guarantee: Guarantee,
    /// How its counters count.
    pub counters: Counters,
    /// If words of a line that do not change may keep their ciphertext: the bytes of a word.
    pub keeps: Option<&'static Key<u64>>,
}

/// The counters of an encryption.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counters {
    /// It does not encrypt.
    None,
    /// Each line counts its own writes.
    PerLine,
    /// All lines draw from one counter.
    Global,
}
