//! Places in the recorded program: sites of instructions, the files that they lie in, and the code that ran.

use std::path::PathBuf;

use serde::Deserialize;

/// Stands for an unknown site.
pub const NOWHERE: u32 = u32::MAX;

#[derive(Clone, Copy, Debug)]
pub struct Site {
    /// The index of the calling site plus 1; 0 if none is known.
    pub parent: u32,
    /// The instruction's address; 0 for a system call.
    pub pc: u64,
    pub locked: bool,
    /// The number of its program, among those that the recorded processes ran.
    pub program: u32,
}

/// Addresses from here on are no code, but numbers of [`ScriptFrame`]s.
pub const SCRIPTS: u64 = 1 << 63;

/// A call in a language whose code has no file of its own in memory, as of an interpreter.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ScriptFrame {
    pub file: String,
    pub line: Option<u32>,
    pub function: Option<String>,
    /// Whether it came with the interpreter or was installed, so that it is not the user's own.
    pub library: bool,
}

/// A part of a file in the program's memory, in which addresses of instructions are looked up.
#[derive(Clone, Debug, Deserialize)]
pub struct Module {
    pub path: PathBuf,
    pub start: u64,
    pub end: u64,
    /// The offset of the first address in the file.
    pub offset: u64,
    /// The first site of the program that had the file at these addresses; later sites may be of another program.
    #[serde(default)]
    pub first_site: u32,
    /// The number of that program, among those that the recorded processes ran.
    #[serde(default)]
    pub of_program: u32,
    #[serde(default)]
    pub hash: String,
}

/// The code of one program that ran.
#[derive(Debug, PartialEq, Eq)]
pub struct Ran {
    pub(crate) program: u32,
    pub(crate) ranges: Vec<(u64, u64)>,
}

impl Ran {
    /// Builds it from the program's number and addresses within the calls that ran.
    pub fn from_calls(program: u32, calls: impl Iterator<Item = u64>) -> Ran {
        // A call that names its target, or the word with its target, has 5 or 6 bytes; these addresses are its last.
        const CALL: u64 = 5;
        Ran {
            program,
            ranges: calls.map(|at| (at.saturating_sub(CALL), at + 1)).collect(),
        }
    }

    /// Builds it from the program's number, the first address, and lengths that ran and did not run, in turn.
    pub fn from_lengths(told: &[u64]) -> Ran {
        let (program, mut at) = (told.first().copied(), told.get(1).copied().unwrap_or(0));
        let mut ranges = Vec::new();
        for (number, length) in told.iter().skip(2).enumerate() {
            let end = at.saturating_add(*length);
            if number % 2 == 0 {
                ranges.push((at, end));
            }
            at = end;
        }
        Ran {
            program: program.unwrap_or(0) as u32,
            ranges,
        }
    }
}
