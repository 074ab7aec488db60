//! The line at which bash runs a script, from the variables that it shows to its loadable commands.
//!
//! Left out: scripts that are read by `source`, whose names lie deeper.

use std::path::PathBuf;

use sardonyx_crash_test::recording::ScriptFrame;

use super::interpreters::{Read, text, word};

/// The symbols that lead to it.
pub(super) const SYMBOLS: [&[u8]; 4] = [
    b"line_number",
    b"dollar_vars",
    b"command_execution_string",
    b"sourcelevel",
];

#[derive(Clone, Debug)]
pub(super) struct Shell {
    line: u64,
    words: u64,
    given: u64,
    sourced: u64,
}

impl Shell {
    /// A shell whose [`SYMBOLS`] are at these addresses.
    pub(super) fn new(symbols: &[u64]) -> Option<Shell> {
        let [line, words, given, sourced] = symbols.try_into().ok()?;
        Some(Shell {
            line,
            words,
            given,
            sourced,
        })
    }

    pub(super) fn frame(&self, process: i32, read: &Read<'_>) -> Option<ScriptFrame> {
        let number = |address| {
            let bytes = read(address, 4);
            Some(u32::from_le_bytes(bytes.try_into().ok()?))
        };
        if number(self.sourced)? != 0 {
            return None;
        }
        let line = Some(number(self.line)?).filter(|line| (1..1 << 24).contains(line))?;
        let file = match word(read, self.given)? {
            0 => {
                let name = text(read, word(read, self.words)?)?;
                script(process, &name).display().to_string()
            }
            _ => "bash -c".to_owned(),
        };
        Some(ScriptFrame {
            file,
            line: Some(line),
            function: None,
            library: false,
        })
    }
}

/// The script that a process runs, which bash keeps open as its descriptor 255; or else its name, as it was given.
fn script(process: i32, name: &str) -> PathBuf {
    let open = std::fs::read_link(format!("/proc/{process}/fd/255"));
    let open = open.ok().filter(|path| path.is_file());
    open.unwrap_or_else(|| PathBuf::from(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_that_is_no_shell_has_no_frame() {
        let shell = Shell::new(&[16, 24, 32, 40]).unwrap();
        for byte in [0, 1, 0xff] {
            assert!(shell.frame(1, &|_, length| vec![byte; length]).is_none());
        }
        assert!(shell.frame(1, &|_, _| Vec::new()).is_none());
    }
}
