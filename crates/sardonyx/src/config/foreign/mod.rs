//! Machines as other simulators write them: DRAMsim3's .ini, NVMain's .config, Ramulator's .yaml, .json
//! and .cfg. What such a file says becomes keys of a machine that extends one of ours; what has no key
//! here is named.

mod dramsim3;
mod nvmain;
mod ramulator;
mod tree;

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use super::error::{ConfigError, KeyPlace, Result};

#[derive(Debug)]
pub(super) struct Foreign {
    pub simulator: &'static str,
    /// The machine of ours that gives the values which the file does not have.
    pub base: &'static str,
    /// The same for the near medium, if the file has one.
    pub near: Option<&'static str>,
    pub keys: Vec<(String, String, KeyPlace)>,
    pub notes: Vec<String>,
}

/// Reads the machine in `text`, if the ending of `file` is another simulator's.
///
/// # Errors
/// The line that cannot be, with the remedy.
pub(super) fn read(text: &str, file: &str) -> Option<Result<Foreign>> {
    let ending = Path::new(file).extension()?.to_str()?;
    match ending {
        "ini" => Some(dramsim3::read(text, file)),
        "config" => Some(nvmain::read(text, file)),
        "yaml" | "yml" | "json" => Some(ramulator::read(text, file)),
        "cfg" => Some(ramulator::read_first(text, file)),
        _ => None,
    }
}

/// Reports on standard error which entries of `file` were not carried over: once, however often a process reads the
/// file.
pub(super) fn tell(file: &str, notes: &[String]) {
    static TOLD: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());
    let mut told = TOLD.lock().unwrap_or_else(PoisonError::into_inner);
    if told.insert(file.to_owned()) {
        for note in notes {
            eprintln!("{}", visible(&format!("sardonyx: {file}: {note}")));
        }
    }
}

/// The text with an escape for each character that a terminal could take for a command: the file may be somebody
/// else's.
fn visible(text: &str) -> String {
    let shown = |c: char| match c {
        '\'' | '"' | '\\' => c.to_string(),
        _ => c.escape_debug().to_string(),
    };
    text.chars().map(shown).collect()
}

#[derive(Clone, Debug)]
struct PlacedValue {
    text: String,
    line: usize,
}

/// The entries of a file by name, and the names that were asked for.
struct Entries<'f> {
    file: &'f str,
    all: BTreeMap<String, PlacedValue>,
    used: RefCell<BTreeSet<String>>,
}

impl<'f> Entries<'f> {
    fn new(file: &'f str, all: BTreeMap<String, PlacedValue>) -> Entries<'f> {
        Entries {
            file,
            all,
            used: RefCell::default(),
        }
    }

    fn place(&self, line: usize) -> KeyPlace {
        KeyPlace {
            file: self.file.into(),
            line: Some(line),
        }
    }

    fn find(&self, name: &str) -> Option<&PlacedValue> {
        let found = self.all.get(name)?;
        self.used.borrow_mut().insert(name.to_owned());
        Some(found)
    }

    fn word(&self, name: &str, otherwise: &str) -> String {
        let found = self.find(name).map(|entry| entry.text.clone());
        found.unwrap_or_else(|| otherwise.to_owned())
    }

    fn fault<T>(&self, name: &str, problem: String, remedy: &str) -> Result<T> {
        let line = self.all.get(name).map(|entry| entry.line);
        Err(ConfigError {
            line,
            key: Some(name.to_owned()),
            ..ConfigError::file(self.file, problem, remedy)
        })
    }

    fn real(&self, name: &str) -> Result<Option<f64>> {
        let Some(entry) = self.find(name) else {
            return Ok(None);
        };
        let number = entry.text.parse::<f64>().ok();
        match number.filter(|number| (0.0..=1e12).contains(number)) {
            Some(number) => Ok(Some(number)),
            None => {
                let problem = format!("\"{}\" is not a number from 0 to 1e12", entry.text);
                self.fault(name, problem, "give a number")
            }
        }
    }

    /// The numbers of all these entries, or the first that the file has not.
    fn reals<const N: usize>(
        &self,
        names: [&str; N],
    ) -> Result<std::result::Result<[f64; N], String>> {
        let mut missing = None;
        let mut numbers = [0.0; N];
        for (number, name) in numbers.iter_mut().zip(names) {
            match self.real(name)? {
                Some(known) => *number = known,
                None => missing = missing.or_else(|| Some(name.to_owned())),
            }
        }
        Ok(missing.map_or(Ok(numbers), Err))
    }

    fn whole(&self, name: &str, otherwise: u64) -> Result<u64> {
        match self.real(name)? {
            None => Ok(otherwise),
            Some(number) if number.fract() == 0.0 => Ok(number as u64),
            Some(number) => self.fault(name, format!("{number} is not a whole number"), "give one"),
        }
    }

    fn count(&self, name: &str, otherwise: u64) -> Result<u64> {
        match self.whole(name, otherwise)? {
            0 => self.fault(name, "0 of them are no memory".to_owned(), "give 1 or more"),
            count => Ok(count),
        }
    }

    /// Names of entries that nobody has asked for.
    fn unasked(&self) -> Vec<String> {
        let used = self.used.borrow();
        let all = self.all.keys().filter(|name| !used.contains(*name));
        all.cloned().collect()
    }
}

const ENERGIES: [&str; 7] = [
    "read_nj",
    "row_hit_read_nj",
    "write_nj",
    "row_hit_write_nj",
    "refresh_nj",
    "standby_nj_per_us",
    "active_nj_per_us",
];

/// A rank's parts: their currents IDD0, IDD2N, IDD3N, IDD4R, IDD4W and IDD5 in milliamperes, and the cycles of tRAS, tRP,
/// tRFC and a line's burst.
struct Currents {
    milliamperes: [f64; 6],
    volts: f64,
    devices: f64,
    clock_ns: f64,
    ras: u64,
    rp: u64,
    rfc: u64,
    burst: u64,
}

struct MachineKeys<'e, 'f> {
    entries: &'e Entries<'f>,
    keys: Vec<(String, String, KeyPlace)>,
    notes: Vec<String>,
}

impl<'e, 'f> MachineKeys<'e, 'f> {
    fn new(entries: &'e Entries<'f>) -> MachineKeys<'e, 'f> {
        MachineKeys {
            entries,
            keys: Vec::new(),
            notes: Vec::new(),
        }
    }

    /// Sets `medium.KEY` to `value`, which the entry `from` gives.
    fn put(&mut self, key: &str, value: impl ToString, from: &str) {
        let line = self.entries.all.get(from).map_or(1, |entry| entry.line);
        let place = self.entries.place(line);
        self.keys
            .push((format!("medium.{key}"), value.to_string(), place));
    }

    /// The number that `medium.KEY` was set to.
    fn number(&self, key: &str) -> u64 {
        let key = format!("medium.{key}");
        let found = self.keys.iter().find(|(name, ..)| *name == key);
        found
            .and_then(|(_, value, _)| value.parse().ok())
            .unwrap_or(1)
    }

    /// Nothing parts writes to two ranks. Call it when the ranks are known.
    fn writes_do_not_turn(&mut self, from: &str) {
        if self.number("geometry.ranks") > 1 {
            self.put("timing.tRTRS_writes", false, from);
        }
    }

    fn same(&mut self, key: &str, from: &str, otherwise: u64) -> Result<()> {
        let cycles = self.entries.whole(from, otherwise)?;
        self.put(&format!("timing.{key}"), cycles, from);
        Ok(())
    }

    /// Computes energies from a part's currents (mA) and its voltage, as DRAMsim3 and Micron's calculator do: what a
    /// command takes beyond an open rank's standby, and the standby of a rank whose rows are open or closed.
    fn currents(&mut self, part: &Currents, names: [&str; 6]) {
        let [idd0, idd2n, idd3n, idd4r, idd4w, idd5] = part.milliamperes;
        let volts = part.volts * part.devices;
        // A milliampere at a volt for a nanosecond is a thousandth of a nanojoule.
        let spent =
            |current: f64, cycles: u64| current * cycles as f64 * part.clock_ns * volts * 1e-3;
        let (ras, rp) = (part.ras, part.rp);
        let opened = spent(idd0, ras + rp) - spent(idd3n, ras) - spent(idd2n, rp);
        let opened = opened.max(0.0);
        let read = spent(idd4r - idd3n, part.burst).max(0.0);
        let write = spent(idd4w - idd3n, part.burst).max(0.0);
        let refresh = spent(idd5 - idd3n, part.rfc).max(0.0);
        for (key, value, from) in [
            ("read_nj", opened + read, names[3]),
            ("row_hit_read_nj", read, names[3]),
            ("write_nj", opened + write, names[4]),
            ("row_hit_write_nj", write, names[4]),
            ("refresh_nj", refresh, names[5]),
            ("standby_nj_per_us", idd2n * volts, names[1]),
            ("active_nj_per_us", idd3n * volts, names[2]),
        ] {
            let value = (value * 1e4).round() / 1e4;
            self.put(&format!("energy.{key}"), value, from);
        }
    }

    /// Counts no energy of the medium, because the file does not say it.
    fn no_energies(&mut self, lacks: &str) {
        for key in ENERGIES {
            self.put(&format!("energy.{key}"), 0, "");
        }
        let note = format!("the medium's energy is not counted: the file has no {lacks}");
        self.notes.push(note);
    }

    /// Sorts entries that were not asked for. A name without meaning to `simulator` is an error; one with its reason in
    /// `without_effect` is passed over; what `left_out` has is told, with what follows from that.
    fn finish(
        mut self,
        simulator: &'static str,
        base: &'static str,
        without_effect: &[&str],
        left_out: &[(&str, &str)],
    ) -> Result<Foreign> {
        let is = |name: &str, pattern: &str| match pattern.strip_suffix('*') {
            Some(begin) => name.starts_with(begin),
            None => name == pattern,
        };
        let mut left: BTreeMap<&str, Vec<String>> = BTreeMap::new();
        for name in self.entries.unasked() {
            if without_effect.iter().any(|pattern| is(&name, pattern)) {
                continue;
            }
            let Some((_, effect)) = left_out.iter().find(|(pattern, _)| is(&name, pattern)) else {
                let problem = format!("{simulator} has no such entry");
                return self
                    .entries
                    .fault(&name, problem, "mend its name, or take it out");
            };
            left.entry(*effect).or_default().push(name);
        }
        for (effect, names) in left {
            let note = format!("left out: {} ({effect})", names.join(", "));
            self.notes.push(note);
        }
        Ok(Foreign {
            simulator,
            base,
            near: None,
            keys: self.keys,
            notes: self.notes,
        })
    }
}

/// Translates the order of an address's fields, the most significant first, from another simulator's names to those of
/// `medium.mapping`.
fn order(fields: &[&str], known: &[(&str, &str)]) -> Option<String> {
    let mut ours: Vec<&str> = Vec::new();
    for field in fields {
        let (_, name) = known.iter().find(|(theirs, _)| theirs == field)?;
        if ours.contains(name) {
            return None;
        }
        ours.push(name);
    }
    (ours.len() == known.len()).then(|| ours.join(":").replace("bank:group", "bank"))
}
