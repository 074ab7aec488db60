//! What a read does to the array write that is under way in its bank: nothing, or it has the write pause at the end of an
//! iteration, or cancels it (Qureshi et al., HPCA 2010, from memory). Parameters only; `engine/pausing.rs` does it.

use super::parts::Part;
use crate::mechanisms::mechanisms;
use crate::settings::{Limit, Needs, Reached, Settings, keys, words};

/// The effect of a read on the write that its bank is doing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PausingPolicy {
    /// The read waits.
    #[default]
    None,
    /// The write pauses at the end of an iteration and continues later.
    Pause,
    /// The write stops at once, unless it is nearly done, and begins again later.
    Cancel,
    /// The write is cancelled, or pauses if it is nearly done.
    Both,
}

words!(PausingPolicy { "none" => None, "pause" => Pause, "cancel" => Cancel, "both" => Both });

const INTERRUPTS: Needs = Needs {
    met: |settings| settings.get(&POLICY) != PausingPolicy::None,
    switches: &["medium.pausing.policy"],
    what: "medium.pausing.policy is pause, cancel or both",
};
const PAUSES: Needs = Needs {
    met: |settings| [PausingPolicy::Pause, PausingPolicy::Both].contains(&settings.get(&POLICY)),
    what: "medium.pausing.policy is pause or both",
    ..INTERRUPTS
};
const CANCELS: Needs = Needs {
    met: |settings| [PausingPolicy::Cancel, PausingPolicy::Both].contains(&settings.get(&POLICY)),
    what: "medium.pausing.policy is cancel or both",
    ..INTERRUPTS
};

keys! {
    POLICY: PausingPolicy = word("medium.pausing.policy", "none"),
        Source("ESD, SCA and EASY-PM have reads wait for the write under way in their bank"),
        "What a read does to the array write under way in its bank: none, pause (at the end of an iteration), cancel, or \
         both: cancel below the threshold and pause above (Qureshi et al., HPCA 2010)";
    ITERATIONS: u64 = int("medium.pausing.iterations", (1, 1024), 8),
        Assumed("cells of several levels are written and verified some eight times; no machine here says"),
        "Iterations of an array write, alike in time; a write can pause between two"
        in Between("4", "16", "half as many and twice as many") needs PAUSES;
    THRESHOLD: u64 = int("medium.pausing.threshold", (1, 100), 75),
        Assumed("HPCA 2010 tries several shares and finds the best around three quarters, from memory"),
        "Percent of an array write from which on it is no longer cancelled"
        in Between("25", "100", "hardly ever cancelled, and always") needs CANCELS;
    TIMES: u64 = int("medium.pausing.times", (1, 1 << 20), 4),
        Assumed("the paper bounds by how full the write queue is, which a drain does here; this bounds a write's wear"),
        "How often one array write pauses or is cancelled, at most"
        in Between("1", "1048576", "once, and as often as reads come") needs INTERRUPTS
        under |by| by.limits.then_some(1);
}

mechanisms! {
    WRITE_INTERRUPTED = "interrupted array writes", least 30;
    LAST_INTERRUPTION = "writes interrupted for the last time", least 30, by &[("medium.pausing.times", 1)];
}

/// The crash explorer's knowledge of interrupted writes.
pub static PART: Part = Part {
    met: INTERRUPTS.met,
    keys: &[&TIMES],
    tries: MECHANISMS,
    limits: &[Limit {
        name: "interruptions of a write",
        bits: 20,
        begins: None,
        pads: false,
        reached: Reached::Pressed,
    }],
};

/// The parameters of interrupted writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PausingParams {
    /// Whether writes pause.
    pub pauses: bool,
    /// Writes are cancelled before this share of their time, in percent; 0 means never.
    pub threshold: u64,
    /// Iterations of a write.
    pub iterations: u64,
    /// Interruptions of one write, at most.
    pub times: u64,
}

impl PausingParams {
    /// The parameters in `settings`; `None` if reads wait.
    pub fn from_settings(settings: &Settings) -> Option<PausingParams> {
        let policy = settings.get(&POLICY);
        (policy != PausingPolicy::None).then(|| PausingParams {
            pauses: policy != PausingPolicy::Cancel,
            threshold: match policy {
                PausingPolicy::Pause => 0,
                _ => settings.get(&THRESHOLD),
            },
            iterations: settings.get(&ITERATIONS),
            times: settings.get(&TIMES),
        })
    }
}
