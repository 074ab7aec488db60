//! What programs do between two transactions.

use crate::line::LINE_BYTES;
use crate::settings::{AnyKey, Needs, Settings, keys};

const THINKS: Needs = Needs {
    met: |settings| settings.get(&THINK_LOADS) > 0,
    switches: &["think.loads"],
    what: "think.loads is more than 0",
};

keys! {
    THINK_INSTRUCTIONS: u32 = int("think.instructions", (0, 1 << 24), 0),
        Source("programs are nothing but transactions unless a machine says otherwise"),
        "Programs: instructions between two transactions";
    THINK_LOADS: u32 = int("think.loads", (0, 1 << 16), 0),
        Source("programs are nothing but transactions unless a machine says otherwise"),
        "Programs: loads of private lines between two transactions, each waiting for the one before";
    THINK_BYTES: u64 = int("think.bytes", (64, 1 << 34), 16_777_216),
        Source("of no effect without think.loads; beyond the caches of every machine"),
        "Programs: private lines of a core that think.loads draws from, in bytes" needs THINKS;
}

/// The work of a program between two transactions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Think {
    /// Instructions that touch no memory.
    pub instructions: u32,
    /// Loads of private lines, each waiting for the one before.
    pub loads: u32,
    /// The number of private lines, 0 without loads.
    pub lines: u64,
}

impl Think {
    /// The parameters of thinking.
    pub const KEYS: [&'static dyn AnyKey; 3] = [&THINK_INSTRUCTIONS, &THINK_LOADS, &THINK_BYTES];

    /// The parameters in `settings`.
    pub fn from_settings(settings: &Settings) -> Think {
        let loads = settings.get(&THINK_LOADS);
        Think {
            instructions: settings.get(&THINK_INSTRUCTIONS),
            loads,
            lines: match loads {
                0 => 0,
                _ => settings.get(&THINK_BYTES) / LINE_BYTES as u64,
            },
        }
    }
}
