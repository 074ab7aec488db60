//! The evictions, delays and pauses of an adversarial run of the crash explorer, written down: which line is evicted
//! after which operation, which write is held back for how long, before which operation a core pauses. A run under the
//! script of another run is that run again; without one entry, it is the same run but for that entry. So a schedule can
//! be changed a little, and shortened.

use std::sync::{Arc, Mutex};

use rustc_hash::FxHashMap;
use serde::Serialize;

/// What happened, in the order of happening. Operations and writes are counted from 0.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Script {
    /// Lines that the processor's caches hold for each core.
    pub cached_lines: u64,
    /// Core, number of its operation, line that goes after it.
    pub evictions: Vec<[u64; 3]>,
    /// Place, number of the write of it, nanoseconds for which that is held back.
    pub delays: Vec<[u64; 3]>,
    /// Core, number of its operation, instructions before it.
    pub pauses: Vec<[u64; 3]>,
}

/// Where a run's evictions, delays and pauses come from, and where they are recorded.
#[derive(Clone, Debug, Default)]
pub struct Scripting {
    /// The script to follow; `None`: a seed draws.
    pub told: Option<Arc<Script>>,
    /// Where to record what happens, if anywhere.
    pub written: Option<Arc<Mutex<Script>>>,
}

impl Scripting {
    /// Follows `script`.
    pub fn follow(script: Script) -> Scripting {
        Scripting {
            told: Some(Arc::new(script)),
            written: None,
        }
    }

    /// The same, recorded; and where.
    pub fn recorded(mut self) -> (Scripting, Arc<Mutex<Script>>) {
        let written = Arc::<Mutex<Script>>::default();
        self.written = Some(written.clone());
        (self, written)
    }

    pub(crate) fn is_idle(&self) -> bool {
        self.told.is_none() && self.written.is_none()
    }

    /// Notes one thing, if somebody writes down.
    pub(crate) fn note(&self, note: impl FnOnce(&mut Script)) {
        if let Some(written) = &self.written {
            note(&mut written.lock().expect("no thread panics"));
        }
    }

    /// What it says by the first two numbers of each, of one sort.
    pub(crate) fn index(&self, sort: impl Fn(&Script) -> &Vec<[u64; 3]>) -> Option<ScriptIndex> {
        let told = self.told.as_ref()?;
        let each = sort(told).iter();
        Some(each.map(|[a, b, what]| ((*a, *b), *what)).collect())
    }
}

pub(crate) type ScriptIndex = FxHashMap<(u64, u64), u64>;
