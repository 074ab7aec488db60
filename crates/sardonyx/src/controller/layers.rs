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
    /// The design's idea, in a line.
    pub line: &'static str,
    /// `LOGGING/MAPPING+POLICY@INTEGRITY`.
    pub stack: &'static str,
}

/// The export of a file of layers.
pub struct File<L: 'static> {
    /// The layers of the file.
    pub layers: &'static [L],
    /// The designs that use these layers.
    pub designs: &'static [Design],
}

/// Lists the files of a kind of layer. Each file exports one `FILE`.
macro_rules! files {
    ($layer:ident: $($file:ident)*) => {
        $(pub mod $file;)*

        /// What they export.
        pub static FILES: &[&$crate::controller::layers::File<$layer>] = &[$(&$file::FILE),*];
    };
}
pub(super) use files;

/// The promise of a design for the lines that a power cut leaves behind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Guarantee {
    /// Every line reads as the last write of it that was accepted, or a later one.
    EveryLine,
    /// Every line that the program's recovery relies on reads as the last accepted write of it, or a later one. These
    /// are lines that were written counter-atomically, or flushed and their metadata written back, before a fence.
    AfterProgramRecovery,
    /// The design promises nothing, though programs need `AfterProgramRecovery`.
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

    /// The promise that remains above a layer which persists on demand.
    pub fn on_demand(self) -> Guarantee {
        match self {
            Guarantee::Nothing => Guarantee::Nothing,
            _ => Guarantee::AfterProgramRecovery,
        }
    }
}

/// The declarations of every layer.
pub struct About {
    /// The layer's name in a stack.
    pub name: &'static str,
    /// The layer's parameters, its own and those that it shares with other layers of its file.
    pub keys: &'static [&'static dyn AnyKey],
    /// On-chip units that this layer uses and others of its kind may not.
    pub units: &'static [Unit],
    /// The figures that the layer counts, its own and shared ones.
    pub figures: &'static [&'static [&'static Figure]],
    /// The effect of a power cut on the layer's state, and what a recovery rebuilds.
    pub cut: &'static str,
    /// The mechanisms of this layer that not every stack has, its own and shared ones. A run that has not used them
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

/// A hardware log of old or new lines, or a queue before everything else, over a mapping.
pub struct Logging {
    /// The declarations that every layer makes.
    pub about: About,
    /// Whether it makes transactions atomic, so that programs need no log of their own.
    pub keeps_log: bool,
    /// The number of lines that the log keeps for itself, after those of the programs.
    pub lines: fn(&Settings) -> u64,
    /// Builds the layer; a logging that does nothing returns the mapping.
    pub build: fn(&Settings, Top, &mut Layout) -> Top,
    /// The promise of the design, given that of the stack below.
    pub guarantee: fn(Guarantee) -> Guarantee,
    /// The place of unpredictable initial vectors in a layout in which the layer has been built, if it has any.
    pub vectors: fn(&Settings, &Layout) -> Option<Vectors>,
}

/// The place of initial vectors in the medium: in the first line of each run of lines.
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

/// A layer that decides where logical lines lie and which of them share a place.
pub struct Mapping {
    /// The declarations that every layer makes.
    pub about: About,
    /// Builds the mapping.
    pub build: fn(&Settings, Encryption, &mut Layout) -> Top,
    /// The promise of the design, given that of the policy below.
    pub guarantee: fn(Guarantee) -> Guarantee,
    /// The placement of lines, for readers of the medium's bytes.
    pub placement: fn(&Settings, &Layout) -> Placement,
    /// Regions in which the mapping shows digests of contents under no key, because the design is built on them.
    pub shows: &'static [&'static str],
    /// Whether it treats lines of zeros apart.
    pub zeros_apart: bool,
    /// The mapping's use of the eight bytes beside each line, if it needs them.
    pub beside: Option<&'static str>,
}

/// Attacks on the medium that do not stay unnoticed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refuses {
    /// Changing bits of a line is noticed.
    pub tamper: bool,
    /// Moving a line, with all that is kept of it, to another line's place is noticed.
    pub splice: bool,
    /// Restoring an earlier state of a line, with all that is kept of it, is noticed.
    pub replay: bool,
    /// Restoring an earlier state of the whole medium is noticed.
    pub rollback: bool,
}

impl Refuses {
    /// No attack is noticed.
    pub const NOTHING: Refuses = Refuses {
        tamper: false,
        splice: false,
        replay: false,
        rollback: false,
    };
    /// Every attack is noticed.
    pub const ALL: Refuses = Refuses {
        tamper: true,
        splice: true,
        replay: true,
        rollback: true,
    };
}

/// The number of the word beside a line, after the eight of the line itself.
pub const BESIDE: usize = LINE_BYTES / 8;

/// The controller's work on reserve power on what lies in the medium. Its time is not modelled, and an attacker sees
/// its changes.
pub trait PowerFail {
    /// Begins with a medium at rest.
    fn begin(&mut self, image: &mut Places);

    /// Hears that the line at `place` has come into the persistence domain.
    fn accepted(&mut self, place: Place, image: &mut Places);

    /// Hears that reserve power has dumped a line to `place` past the guard.
    fn dumped(&mut self, place: Place, image: &mut Places);

    /// Lines that stand for registers on chip, which no attacker reaches.
    fn on_chip(&self) -> Option<&Region>;

    /// The line and the word in it that hold the MAC of the line at `place`, or [`BESIDE`] as the word if the MAC lies
    /// beside that line.
    fn kept_of(&self, place: Place) -> Option<(Place, usize)>;

    /// The line with the version of the line at `place`, and the bits of it that are this version; `None` where nothing
    /// counts.
    fn version_of(&self, _place: Place) -> Option<(Place, Range<usize>)> {
        None
    }

    /// Whether `place` is that of a register of the integrity which holds no line, only what a recovery looks at.
    fn has_register(&self, _place: Place) -> bool {
        false
    }

    /// The lowest bits of each MAC's word that are of the line's version.
    fn version_in_mac(&self) -> u64 {
        0
    }

    /// The line of the tree's `level` (0 is the lowest) that vouches for the line at `place`, or is that line: one of
    /// data, tables, MACs or the tree itself. `None` above the highest level, and where nothing vouches.
    fn over(&self, _place: Place, _level: usize) -> Option<Place> {
        None
    }
}

/// Makes an integrity's [`PowerFail`], in a layout in which it has been built.
pub type MakePowerFail = fn(&Settings, &Layout) -> Box<dyn PowerFail>;

/// A layer that refuses lines of the medium which are not what was last written there.
pub struct Integrity {
    /// The declarations that every layer makes.
    pub about: About,
    /// Builds the guard when all other regions of the layout are reserved. An integrity that does nothing returns
    /// `None`.
    pub build: fn(&Settings, &mut Layout) -> Option<Box<dyn Guard>>,
    /// Attacks that are noticed, in a run and after a cut.
    pub promises: Refuses,
    /// Whether each line of MACs and nodes is written once for each group, however many lines of data the group has.
    pub settles_groups: bool,
    /// Bytes of the on-chip registers that survive a power cut, caches left out.
    pub registers: fn(&Settings) -> u64,
    /// The part that works on reserve power, in a layout in which the integrity has been built, if there is one.
    pub power_fail: Option<MakePowerFail>,
}

impl Integrity {
    /// Bytes of its regions in a medium with this many lines of data and of other layers' tables. Registers are left
    /// out.
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

/// The placement of a mapping's lines in a layout in which it has been built.
#[derive(Clone, Debug)]
pub enum Placement {
    /// Each line lies at its own place.
    Home,
    /// A table in the medium gives each line's place.
    Table(Entries),
}

/// A table in the medium that gives the places of lines. A line of it that has never been written holds zeros.
#[derive(Clone, Debug)]
pub struct Entries {
    /// The lines of the table.
    pub region: Region,
    /// Entries in a line of the table.
    pub per_line: u64,
    /// The number of places; an entry beyond them is not a mapping (a power cut may have torn it).
    pub places: u64,
    /// The place of a logical line, from its line of the table and the number of its entry in that line.
    pub place: fn(&Line, Logical, usize) -> Option<Place>,
}

impl Entries {
    /// The logical lines whose places the table's line `bytes` at `place` gives, and those places.
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

/// An encryption, and its policy of when counters persist.
pub struct Policy {
    /// The declarations that every layer makes.
    pub about: About,
    /// Builds the encryption.
    pub build: fn(&Settings, &mut Layout) -> Encryption,
    /// The promise of the policy.
    pub guarantee: Guarantee,
    /// The kind of counters that it has.
    pub counters: Counters,
    /// The bytes of a word, if words of a line that do not change may keep their ciphertext.
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
