//! Merging algorithms. Each is a value in its own file, which says all about it: its name, its keys, how it merges page
//! images, and how it is driven in time. A new one is a file, and its name in the list below.

use std::sync::{PoisonError, RwLock};

use super::images::Images;
use super::run::Runner;
use super::timed::{ModuleCosts, Settled, Start};
use sardonyx::config::Machine;
use sardonyx::names::did_you_mean;
use sardonyx::settings::{Row, Settings};

pub struct Algorithm {
    pub name: &'static str,
    pub line: &'static str,
    /// The paper that it comes from, or the program that has it.
    pub source: &'static str,
    pub keys: fn() -> Vec<&'static Row>,
    /// The keys that it declares for runs in time.
    pub timed_keys: fn() -> Vec<&'static Row>,
    /// `None` if the algorithm does not merge.
    pub merges: Option<Merges>,
}

pub struct Merges {
    /// Set if the algorithm looks into pages beyond their order and the kernel's checksum, so that their bytes must be
    /// kept.
    pub looks_into_pages: bool,
    /// Begins a run over the images, for the chosen machines.
    pub on_images: for<'i> fn(&'i Images, Vec<bool>, &Settings) -> Box<dyn Runner + 'i>,
    /// Runs in time: merges until a window begins, and continues in the window as the kernel's thread.
    pub in_time: for<'i, 'g> fn(Start<'i, 'g>) -> Option<Settled<'i>>,
    /// The modules that compare for the thread; `None` if the thread does so itself.
    pub modules: fn(&Machine, &Settings) -> Option<ModuleCosts>,
}

/// Lists the files of algorithms: each exports one `ALGORITHM`.
macro_rules! algorithms {
    ($($file:ident)*) => {
        $(mod $file;)*

        static BUILT_IN: &[&Algorithm] = &[$(&$file::ALGORITHM),*];
    };
}

algorithms! { none ksm pageforge dsa_ksm }

static REGISTERED: RwLock<Vec<&'static Algorithm>> = RwLock::new(Vec::new());

/// Registers an algorithm that no file of this crate has; its keys keep their defaults.
pub fn register(algorithm: &'static Algorithm) {
    let mut registered = REGISTERED.write().unwrap_or_else(PoisonError::into_inner);
    registered.push(algorithm);
}

pub fn built_in() -> impl Iterator<Item = &'static Algorithm> {
    BUILT_IN.iter().copied()
}

impl Algorithm {
    /// The algorithm of that name.
    ///
    /// # Errors
    /// There is none of that name; the error names the nearest, and all there are.
    pub fn named(name: &str) -> Result<&'static Algorithm, String> {
        let registered = REGISTERED.read().unwrap_or_else(PoisonError::into_inner);
        let mut all = built_in().chain(registered.iter().copied());
        all.find(|known| known.name == name).ok_or_else(|| {
            let names: Vec<&str> = built_in().map(|known| known.name).collect();
            let near = did_you_mean(name, &names);
            format!(
                "--designs {name}: there is none; {near}they are {}",
                names.join(", ")
            )
        })
    }
}

/// What an option of several algorithms says of itself.
pub(super) fn listed() -> String {
    let names: Vec<&str> = built_in().map(|known| known.name).collect();
    format!("{}, separated by commas.", names.join(", "))
}

pub(super) fn that_merge() -> Vec<&'static str> {
    let merging = built_in().filter(|known| known.merges.is_some());
    merging.map(|known| known.name).collect()
}
