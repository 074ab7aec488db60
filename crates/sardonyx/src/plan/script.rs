//! The evictions, delays and pauses of an adversarial run of the crash explorer, written down: which line is evicted
//! after which operation, which write is held back for how long, before which operation a core pauses. A run under the
//! script of another run is that run again; without one entry, it is the same run but for that entry. So a schedule can
//! be changed a little, and shortened.

use std::sync::{Arc, Mutex};

use rustc_hash::FxHashMap;
use serde::Serialize;

/// The disturbances of a run, in order. Operations and writes are counted from 0.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Script {
    /// The number of lines that the processor's caches hold for each core.
    pub cached_lines: u64,
    /// Evictions: the core, the number of its operation, and the line that goes after it.
    pub evictions: Vec<[u64; 3]>,
    /// Delays: the place, the number of its write, and the nanoseconds for which that is held back.
    pub delays: Vec<[u64; 3]>,
    /// Pauses: the core, the number of its operation, and the instructions before it.
    pub pauses: Vec<[u64; 3]>,
}

/// The source of a run's evictions, delays and pauses, and where they are recorded.
#[derive(Clone, Debug, Default)]
pub struct Scripting {
    /// The script to follow; `None` draws from a seed.
    pub told: Option<Arc<Script>>,
    /// The record of disturbances, if they are recorded.
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

    /// Records the disturbances, and also returns the record.
    pub fn recorded(mut self) -> (Scripting, Arc<Mutex<Script>>) {
        let written = Arc::<Mutex<Script>>::default();
        self.written = Some(written.clone());
        (self, written)
    }

    pub(crate) fn is_idle(&self) -> bool {
        self.told.is_none() && self.written.is_none()
    }

    pub(crate) fn note(&self, note: impl FnOnce(&mut Script)) {
        if let Some(written) = &self.written {
            note(&mut written.lock().expect("no thread panics"));
        }
    }

    /// Indexes the disturbances of one sort by their first two numbers.
    pub(crate) fn index(&self, sort: impl Fn(&Script) -> &Vec<[u64; 3]>) -> Option<ScriptIndex> {
        let told = self.told.as_ref()?;
        let each = sort(told).iter();
        Some(each.map(|[a, b, what]| ((*a, *b), *what)).collect())
    }
}

pub(crate) type ScriptIndex = FxHashMap<(u64, u64), u64>;
