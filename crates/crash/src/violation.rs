//! Violations: what a cut may reveal, and how often it did.

use std::collections::BTreeMap;

use sardonyx::line::Place;

sardonyx::names::named! {
    /// What is wrong after a cut.
    Kind {
        /// The program's recovery gave up: its log makes no sense.
        Unrecoverable = "unrecoverable",
        /// A transaction whose commit fence had retired is not there.
        Lost = "lost-transaction",
        /// A transaction is there that was not yet at its commit.
        Early = "early-transaction",
        /// A transaction is there that has seen one, another core's, that is not.
        OutOfOrder = "not-linearizable",
        /// After the program's recovery a line holds another content than it should.
        WrongLine = "wrong-line",
        /// A line of the medium is not what was last written there, and is refused.
        NotAuthentic = "not-authentic",
        /// A design that promises every line lost one: it reads as no accepted write of it.
        LineLost = "line-lost",
        /// After the program's recovery the structure's invariants do not hold.
        Broken = "broken-structure",
        /// A run could not go on: an error, or an assertion of the simulator's own.
        RunEnded = "run-ended",
        /// What a cut would leave changes when a write is done in the array.
        ArrayWrite = "array-write",
        /// A counter persists before the line that it is for, or one half of a pair without the other.
        HalfAPair = "half-a-pair",
        /// Two contents under one pad.
        PadReused = "pad-reused",
        /// A pad that was used will be drawn again.
        PadWithinReach = "pad-within-reach",
        /// A content, or its check bits, in the medium as they are.
        Plaintext = "plaintext",
        /// A ciphertext that is the same under another key.
        KeyIgnored = "key-ignored",
        /// An initial vector that nobody may foresee can be told without the key.
        VectorForeseen = "vector-foreseen",
        /// A digest of contents, or check bits of one, under no key, where the design is not built on that.
        Digest = "digest",
        /// An attack that the integrity promises to notice: programs read something else, and nothing was refused.
        Undetected = "undetected-attack",
    }
}

impl Kind {
    pub fn about(self) -> &'static str {
        match self {
            Kind::Undetected => "integrity",
            _ if self.is_secrecy() => "secrecy",
            _ => "recoverability",
        }
    }

    pub fn is_secrecy(self) -> bool {
        matches!(
            self,
            Kind::PadReused
                | Kind::PadWithinReach
                | Kind::Plaintext
                | Kind::KeyIgnored
                | Kind::VectorForeseen
                | Kind::Digest
        )
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    pub kind: Kind,
    pub position: u64,
    /// The positions of the cuts in later lives, one for each life, if the violation shows there.
    pub later_cuts: Vec<u64>,
    pub core: Option<usize>,
    /// The affected line, as the processor numbers it.
    pub line: Option<u64>,
    /// The affected place of the medium, where only that is known.
    pub place: Option<Place>,
    pub what: String,
    pub evidence: Vec<String>,
    /// The events in later lives that led to it, a line of text each.
    pub story: Vec<String>,
}

impl Violation {
    /// A violation at the cut at `position`, with no core, line or place.
    pub fn new(kind: Kind, position: u64, what: String) -> Violation {
        Violation {
            kind,
            position,
            later_cuts: Vec::new(),
            core: None,
            line: None,
            place: None,
            what,
            evidence: Vec::new(),
            story: Vec::new(),
        }
    }
}

/// CutCount that share a sort of violation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CutCount {
    /// The number of cuts, each counted once however much was wrong there.
    pub count: u64,
    /// The last of them: its position, and that of the cut in the later life.
    last: Option<(u64, Option<u64>)>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    pub kinds: BTreeMap<Kind, (u64, Violation)>,
    pub lost: CutCount,
    pub secret: CutCount,
}

impl Tally {
    /// Adds a violation; those of one cut must follow each other.
    pub fn add(&mut self, violation: Violation) {
        let at = Some((violation.position, violation.later_cuts.first().copied()));
        let cuts = match violation.kind.is_secrecy() {
            true => &mut self.secret,
            false => &mut self.lost,
        };
        if cuts.last != at {
            (cuts.count, cuts.last) = (cuts.count + 1, at);
        }
        self.add_times(1, violation);
    }

    /// Adds `times` violations, of cuts that are counted already; `first` is the first.
    pub fn add_times(&mut self, times: u64, first: Violation) {
        let (count, _) = self.kinds.entry(first.kind).or_insert((0, first));
        *count += times;
    }

    pub fn append(&mut self, later: Tally) {
        self.lost.count += later.lost.count;
        self.secret.count += later.secret.count;
        for (times, first) in later.kinds.into_values() {
            self.add_times(times, first);
        }
    }

    /// The number of violations of secrecy, or else of recoverability.
    pub fn count(&self, secrecy: bool) -> u64 {
        let kinds = self.kinds.iter();
        let wanted = kinds.filter(|(kind, _)| kind.is_secrecy() == secrecy);
        wanted.map(|(_, (count, _))| *count).sum()
    }

    pub fn first(&self) -> impl Iterator<Item = &Violation> {
        self.kinds.values().map(|(_, first)| first)
    }
}
