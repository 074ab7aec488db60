//! Guards and trees: what is not verified, and registers that do not follow. Around the library's integrities.

use sardonyx::line::{Line, Place};

use crate::around_guard::{Seen, Wrong, integrity};
use crate::fault::{Fault, rows};
use crate::plans::SMALL;

/// Makes faulty integrities around right ones: a type with what is wrong.
macro_rules! around {
    ($($($name:ident of $right:literal),+ : $body:tt)+) => {
        $($(around!(one $name $right $body);)+)+
    };
    (one $name:ident $right:literal { $($wrong:tt)* }) => {
        struct $name;

        impl Wrong for $name {
            const RIGHT: &'static str = $right;
            $($wrong)*
        }
    };
}

around! {
    CountersUnverified of "bonsai-lazy-sound": {
        fn believes(seen: &Seen, place: Place, _line: Option<&Line>) -> bool {
            seen.region(place) == "counters"
        }
    }

    WrittenBelieved of "bonsai-lazy-sound": {
        fn believes(seen: &Seen, place: Place, _line: Option<&Line>) -> bool {
            seen.written.contains(&place)
        }
    }

    EightBelieved of "bonsai-lazy-sound": {
        fn believes(seen: &Seen, place: Place, _line: Option<&Line>) -> bool {
            let first = place.0 - place.0 % 8;
            seen.written.range(Place(first)..Place(first + 8)).next().is_some()
        }
    }

    GoneBelieved of "bonsai": {
        fn believes(_seen: &Seen, _place: Place, line: Option<&Line>) -> bool {
            line.is_none()
        }
    }

    MarkBelieved of "merkle",
    BonsaiMarkBelieved of "bonsai",
    CountersMarkBelieved of "sgx-sound": {
        fn believes(seen: &Seen, place: Place, _line: Option<&Line>) -> bool {
            seen.region(place) == "counter-mark"
        }
    }

    OddUnverified of "merkle": {
        fn believes(_seen: &Seen, place: Place, _line: Option<&Line>) -> bool {
            place.0 % 2 == 1
        }
    }

    RegisterLate of "merkle",
    BonsaiRegisterLate of "bonsai-lazy-sound",
    ForestRootsLate of "bmf",
    ScueRegisterLate of "scue",
    CountersRegisterLate of "sgx-sound": {
        const LATE: usize = 8;
    }

    DumpsIgnored of "merkle",
    BonsaiDumpsIgnored of "bonsai-lazy-sound",
    CountersDumpsIgnored of "sgx-sound",
    StarDumpsIgnored of "star",
    ScueDumpsIgnored of "scue",
    ForestDumpsIgnored of "bmf",
    ShadowDumpsIgnored of "anubis-asit": {
        const DUMPS: bool = false;
    }

    RegisterInMemory of "merkle",
    ScueRegisterInMemory of "scue",
    ForestRootsInMemory of "bmf",
    BonsaiRegisterInMemory of "bonsai": {
        const ON_CHIP: bool = false;
    }

    ForestRootsWrong of "bmf",
    OwnRegisterWrong of "bonsai": {
        const REGISTER_HOLDS: u64 = 20;
    }

    RegisterSkipsMacs of "osiris",
    StarRegisterSkipsMacs of "star",
    PhoenixRegisterSkipsMacs of "phoenix": {
        fn follows(seen: &Seen, place: Place) -> bool {
            seen.region(place) != "macs"
        }
    }

    StarBitsForgotten of "star": {
        const FORGETS: &'static str = "stale-nodes";
    }

    RegisterSkipsTable of "anubis-asit": {
        fn follows(seen: &Seen, place: Place) -> bool {
            seen.region(place) != "shadow-nodes"
        }
    }
}

pub const FAULTS: &[Fault] = rows! { "identity+sca@*", SMALL;
    "counters-unverified" integrity[CountersUnverified]
        "Lines of encryption counters are not verified." [Attacks: Undetected]
    "written-believed" integrity[WrittenBelieved]
        "What a run has written is not verified any more." [Attacks: Undetected]
    "eight-believed" integrity[EightBelieved]
        "Of eight lines in a row none is verified once one has been written." [Attacks: Undetected]
    "gone-believed" integrity[GoneBelieved]
        "A line that is not there is believed never to have been written." [Attacks: Undetected]
    "odd-unverified" integrity[OddUnverified]
        "Every other line is not verified." [Attacks: Undetected]
    "register-late" integrity[RegisterLate]
        "The register of a Merkle tree follows eight acceptances late." [Cuts: NotAuthentic]
    "bonsai-register-late" integrity[BonsaiRegisterLate]
        "The register of a Bonsai tree follows eight acceptances late." [Cuts: NotAuthentic]
    "counters-register-late" integrity[CountersRegisterLate]
        "The register of a tree of counters follows eight acceptances late." [Cuts: NotAuthentic]
    "own-register-wrong" integrity[OwnRegisterWrong]
        "The register of the controller itself is wrong once data have been written again 20 times; that of reserve power is right." [Cuts: NotAuthentic]
    "scue-register-late" integrity[ScueRegisterLate]
        "The register of scue follows eight acceptances late." [Cuts: NotAuthentic]
    "forest-roots-late" integrity[ForestRootsLate]
        "The roots of bmf follow eight acceptances late." [Cuts: NotAuthentic]
    "forest-roots-wrong" integrity[ForestRootsWrong]
        "What the roots of bmf hash to is wrong in the controller once data have been written again 20 times; that of reserve power is right." [Cuts: NotAuthentic]
    "scue-register-in-memory" integrity[ScueRegisterInMemory]
        "The register of scue lies where an attacker comes." [Attacks: Undetected]
    "forest-roots-in-memory" integrity[ForestRootsInMemory]
        "The roots of bmf lie where an attacker comes." [Attacks: Undetected]
    "register-in-memory" integrity[RegisterInMemory]
        "The register of a Merkle tree lies where an attacker comes." [Attacks: Undetected]
    "bonsai-register-in-memory" integrity[BonsaiRegisterInMemory]
        "The register of a Bonsai tree lies where an attacker comes." [Attacks: Undetected]
    "register-skips-macs" integrity[RegisterSkipsMacs]
        "The register of osiris does not follow the MACs." [Cuts: NotAuthentic]
    "register-skips-table" integrity[RegisterSkipsTable]
        "The register does not follow Anubis' table." [Cuts: NotAuthentic]
    "phoenix-register-skips-macs" integrity[PhoenixRegisterSkipsMacs]
        "The register of phoenix does not follow the MACs." [Cuts: NotAuthentic]
    "star-register-skips-macs" integrity[StarRegisterSkipsMacs]
        "The register of star does not follow the MACs." [Cuts: NotAuthentic]
    "star-bits-forgotten" integrity[StarBitsForgotten]
        "Reserve power does not keep star's bits." [Cuts: NotAuthentic]
};

/// Programs read what they would have read, under pads that were used.
pub const MARKS: &[Fault] = rows! { "identity+sca@*", SMALL;
    "mark-believed" integrity[MarkBelieved]
        "The mark of the encryption's counter is not verified by a Merkle tree." [Attacks: Undetected]
    "bonsai-mark-believed" integrity[BonsaiMarkBelieved]
        "The mark of the encryption's counter is not verified by a Bonsai tree." [Attacks: Undetected]
    "counters-mark-believed" integrity[CountersMarkBelieved]
        "The mark of the encryption's counter is not verified by a tree of counters." [Attacks: Undetected]
};

pub const DUMPED: &[Fault] = rows! { "hw-log/identity+sca@*", SMALL;
    "dumps-ignored" integrity[DumpsIgnored]
        "The register of a Merkle tree does not follow what reserve power dumps." [Cuts: NotAuthentic]
    "bonsai-dumps-ignored" integrity[BonsaiDumpsIgnored]
        "The register of a Bonsai tree does not follow what reserve power dumps." [Cuts: NotAuthentic]
    "counters-dumps-ignored" integrity[CountersDumpsIgnored]
        "The register of a tree of counters does not follow what reserve power dumps." [Cuts: NotAuthentic]
    "shadow-dumps-ignored" integrity[ShadowDumpsIgnored]
        "The register of a tree of counters with Anubis' table does not follow what reserve power dumps." [Cuts: NotAuthentic]
    "star-dumps-ignored" integrity[StarDumpsIgnored]
        "The register of a tree of counters with star's bits does not follow what reserve power dumps." [Cuts: NotAuthentic]
    "scue-dumps-ignored" integrity[ScueDumpsIgnored]
        "The register of scue does not follow what reserve power dumps." [Cuts: NotAuthentic]
    "forest-dumps-ignored" integrity[ForestDumpsIgnored]
        "The roots of bmf do not follow what reserve power dumps." [Cuts: NotAuthentic]
};
