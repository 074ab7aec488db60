//! Faults that can be planted into any stack, at the seams between its layers, to learn what a verdict of `holds` on
//! that stack is worth: `sca!policy-mark-lost` is the design `sca` with one. Left out: faults within a layer, which only
//! its own tests know (`docs/inside/planted-faults.md`).

mod guards;
mod layers;

use std::sync::atomic::{AtomicU64, Ordering};

use guards::{Believing, Following};
use layers::Around;
use sardonyx::controller::designs::Stack;
use sardonyx::controller::encryption::ENABLED;
use sardonyx::controller::layers::{Guarantee, PowerFail};
use sardonyx::controller::planted::{self, Plant};
use sardonyx::controller::{Encryption, Top};
use sardonyx::medium::layout::Layout;
use sardonyx::plan::guard::Guard;
use sardonyx::settings::Settings;

/// Where a fault stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Seam {
    Policy,
    Mapping,
    Log,
    Guard,
}

macro_rules! faults {
    ($($slip:ident $meaning:literal: $($seam:ident $name:literal),+;)+) => {
        /// What goes wrong there.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        enum Slip { $($slip),+ }

        /// All of them, those of one slip together.
        static FAULTS: &[Fault] = &[$($(Fault {
            name: $name,
            meaning: $meaning,
            seam: Seam::$seam,
            slip: Slip::$slip,
        }),+),+];
    };
}

faults! {
    MarkLost "a marked write loses its mark on its way down": Policy "policy-mark-lost", Mapping "mapping-mark-lost";
    SomeMarksLost "one marked write in eight loses its mark on its way down":
        Policy "policy-some-marks-lost", Mapping "mapping-some-marks-lost";
    TakenForAccepted "no fence waits until the layer's writes are accepted":
        Policy "policy-not-awaited", Mapping "mapping-not-awaited";
    OneTakenForAccepted "a fence does not wait for one write of the layer in sixteen":
        Policy "policy-one-not-awaited", Mapping "mapping-one-not-awaited";
    GateIgnored "the layer does not wait for what must be accepted before a write":
        Policy "policy-gate-ignored", Mapping "mapping-gate-ignored";
    WriteDropped "one write in 64 never reaches the layer":
        Policy "policy-write-dropped", Mapping "mapping-write-dropped";
    LateDropped "no write after the 65,536th reaches the layer":
        Policy "policy-late-write-dropped", Mapping "mapping-late-write-dropped";
    LastWordLost "one write in 32 loses the last word of its line on its way down":
        Policy "policy-last-word-lost", Mapping "mapping-last-word-lost";
    OnesAsZeros "a line of ones is taken for a line of zeros": Mapping "mapping-ones-as-zeros";
    ReadOfZeros "one read in 64 gives zeros": Policy "policy-read-of-zeros";
    MetadataForgotten "the layer's metadata are not written back on demand":
        Policy "policy-metadata-forgotten", Mapping "mapping-metadata-forgotten";
    ShutdownForgotten "the layer's caches are not drained":
        Policy "policy-shutdown-forgotten", Mapping "mapping-shutdown-forgotten";
    RecoveryForgotten "the layer learns nothing when it recovers":
        Policy "policy-recovery-forgotten", Mapping "mapping-recovery-forgotten",
        Log "log-recovery-forgotten", Guard "guard-recovery-forgotten";
    EntryDropped "one old line in eight is not logged": Log "log-entry-dropped";
    LateEntryDropped "no old line after the 1,900th is logged": Log "log-late-entry-dropped";
    OldHalf "the log has the first half of an old line": Log "log-old-half";
    OfOneCore "old lines go to the record of the first core": Log "log-of-one-core";
    CoreOneBit "the log knows cores by one bit of their number": Log "log-core-one-bit";
    TwoCores "the log begins no transaction of a third core": Log "log-of-two-cores";
    NumberTwoBits "the log keeps two bits of a transaction's number": Log "log-number-two-bits";
    ForgetsLater "after a power cut the log takes the old lines of eight transactions and no others":
        Log "log-forgets-later";
    NotTruncated "a commit does not reach the log": Log "log-not-truncated";
    CommitNotAwaited "no core waits for the log at a commit": Log "log-commit-not-awaited";
    NotUndone "recovery puts nothing back": Log "log-not-undone";
    UndoRelaxed "what recovery puts back is not marked": Log "log-undo-relaxed";
    UndoNotAwaited "the log is cleared before what recovery puts back is accepted": Log "log-undo-not-awaited";
    DataBelieved "lines of data are not verified": Guard "guard-data-believed";
    TablesBelieved "lines of tables, counters and logs are not verified": Guard "guard-tables-believed";
    WrittenBelieved "what a run has written is not verified any more": Guard "guard-written-believed";
    GoneBelieved "a line that is not there is believed never to have been written": Guard "guard-gone-believed";
    OddBelieved "every other line is not verified": Guard "guard-odd-believed";
    WriteUnheard "the integrity does not hear of one write in 64": Guard "guard-write-unheard";
    RegisterLate "the register follows eight acceptances late": Guard "guard-register-late";
    RegisterSkipsTables "the register does not follow tables and counters": Guard "guard-register-skips-tables";
    RegisterInMemory "the register lies where an attacker comes": Guard "guard-register-in-memory";
    DumpsUnheard "the integrity does not hear of what reserve power dumps": Guard "guard-dumps-unheard";
}

/// A fault that fits stacks with a layer at its seam.
#[derive(Debug)]
pub struct Fault {
    pub name: &'static str,
    pub meaning: &'static str,
    seam: Seam,
    slip: Slip,
}

/// How often faults had an occasion since somebody last asked.
static OCCASIONS: AtomicU64 = AtomicU64::new(0);

fn count_occasion() {
    OCCASIONS.fetch_add(1, Ordering::Relaxed);
}

/// How often planted faults have done something else than what is right, since this was last asked.
pub fn occasions() -> u64 {
    OCCASIONS.swap(0, Ordering::Relaxed)
}

/// Makes the faults known, so that a design may have one.
pub fn know() {
    planted::know_plants(FAULTS.iter().map(|fault| fault as &dyn Plant));
}

/// The faults that can be planted into `stack`. A mapping that changes nothing is no seam of its own, and a stack that
/// promises every line needs no write-back on demand and no orderly shutdown.
pub fn fitting(stack: &Stack, settings: &Settings) -> Vec<&'static Fault> {
    let maps = stack.mapping.about.name != "identity";
    let on_demand = stack.guarantee() != Guarantee::EveryLine;
    let persists = |slip| matches!(slip, Slip::MetadataForgotten | Slip::ShutdownForgotten);
    let fits = |fault: &&Fault| match fault.seam {
        _ if persists(fault.slip) && !on_demand => false,
        Seam::Policy => true,
        Seam::Mapping => maps,
        Seam::Log => stack.keeps_log(),
        Seam::Guard => stack.integrity.power_fail.is_some() && settings.get(&ENABLED),
    };
    FAULTS.iter().filter(fits).collect()
}

impl Plant for Fault {
    fn name(&self) -> &'static str {
        self.name
    }

    fn policy(&self, right: Encryption) -> Encryption {
        match self.seam {
            Seam::Policy => Box::new(Around::new(self.slip, right)),
            _ => right,
        }
    }

    fn mapping(&self, right: Top) -> Top {
        let puts_back = matches!(self.slip, Slip::UndoRelaxed | Slip::UndoNotAwaited);
        match self.seam {
            Seam::Mapping => Box::new(Around::new(self.slip, right)),
            Seam::Log if puts_back => Box::new(Around::new(self.slip, right)),
            _ => right,
        }
    }

    fn logging(&self, right: Top) -> Top {
        match self.seam {
            Seam::Log => Box::new(Around::new(self.slip, right)),
            _ => right,
        }
    }

    fn guard(&self, right: Box<dyn Guard>, layout: &Layout) -> Box<dyn Guard> {
        match self.seam {
            Seam::Guard => Box::new(Believing::new(self.slip, right, layout)),
            _ => right,
        }
    }

    fn power_fail(&self, right: Box<dyn PowerFail>, layout: &Layout) -> Box<dyn PowerFail> {
        match self.seam {
            Seam::Guard => Box::new(Following::new(self.slip, right, layout)),
            _ => right,
        }
    }
}
