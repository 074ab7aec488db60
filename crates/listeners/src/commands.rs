//! The commands on a channel's bus as DRAMPower's command line reads them (5.1 to 6.2, `parse_command_list`):
//! `cycle,command,rank,bank group,bank,row,column`, a line each, and the line's bytes in hexadecimal after a read or a
//! write; the last of them END. A bank's number is that within its rank. Left out: columns, which are 0, and what
//! DRAMPower has no word for (interrupted array writes). Bytes that nobody knows are written as zeros.

use std::fs::File;
use std::io::{BufWriter, Result, Write};
use std::path::Path;

use sardonyx::line::{Line, ZERO_LINE};
use sardonyx::medium::params::MediumParams;
use sardonyx::plan::command::{Command, CommandKind};
use sardonyx::plan::observe::Observer;

/// Writes each command as a line of text.
pub struct CommandLines {
    out: BufWriter<File>,
    failed: Result<()>,
    groups: u32,
    /// Words for the precharge and the refresh of the banks that are refreshed together.
    of_set: [&'static str; 2],
    last: u64,
    count: u64,
    unknown: u64,
}

impl CommandLines {
    /// Creates a file for the commands of the machine's only channel.
    ///
    /// # Errors
    /// The file cannot be made.
    pub fn create(path: &Path, medium: &MediumParams) -> Result<CommandLines> {
        Ok(CommandLines {
            out: BufWriter::new(File::create(path)?),
            failed: Ok(()),
            groups: medium.groups.count as u32,
            of_set: match (medium.refreshes.tRFCsb, medium.refreshes.banks) {
                (0, _) => ["PREA", "REFA"],
                (_, 1) => ["PRE", "REFB"],
                _ => ["PRESB", "REFSB"],
            },
            last: 0,
            count: 0,
            unknown: 0,
        })
    }

    /// Ends the file. Returns the number of commands in it, and of those whose bytes nobody knows.
    ///
    /// # Errors
    /// Something could not be written.
    pub fn finish(mut self) -> Result<(u64, u64)> {
        self.failed?;
        writeln!(self.out, "{},END,0,0,0,0,0", self.last + 1)?;
        self.out.flush()?;
        Ok((self.count, self.unknown))
    }
}

impl Observer for CommandLines {
    fn of_commands(&self) -> bool {
        true
    }

    fn command(&mut self, command: &Command) {
        let (word, row) = match command.kind {
            CommandKind::Activate { row } => ("ACT", row),
            CommandKind::Precharge => ("PRE", 0),
            CommandKind::PrechargeAll => (self.of_set[0], 0),
            CommandKind::Read {
                row,
                auto_precharge,
            } => (if auto_precharge { "RDA" } else { "RD" }, row),
            CommandKind::Write {
                row,
                auto_precharge,
            } => (if auto_precharge { "WRA" } else { "WR" }, row),
            CommandKind::Refresh => (self.of_set[1], 0),
            CommandKind::Pause | CommandKind::Cancel | CommandKind::Resume => return,
        };
        let Command {
            cycle, rank, bank, ..
        } = *command;
        let group = bank % self.groups.max(1);
        // The bytes of a column command are told next.
        let moves = matches!(
            command.kind,
            CommandKind::Read { .. } | CommandKind::Write { .. }
        );
        let end = if moves { "," } else { "\n" };
        if self.failed.is_ok() {
            self.failed = write!(
                self.out,
                "{cycle},{word},{rank},{group},{bank},{row},0{end}"
            );
        }
        self.last = self.last.max(cycle);
        self.count += 1;
    }
    fn moves(&mut self, line: Option<&Line>) {
        self.unknown += u64::from(line.is_none());
        let line = line.unwrap_or(&ZERO_LINE);
        let hexadecimal: String = line.iter().map(|byte| format!("{byte:02x}")).collect();
        if self.failed.is_ok() {
            self.failed = writeln!(self.out, "{hexadecimal}");
        }
    }
}
