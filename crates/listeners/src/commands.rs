//! The commands on a channel's bus as DRAMPower's command line reads them (5.1 to 6.2, `parse_command_list`):
//! `cycle,command,rank,bank group,bank,row,column`, a line each, and the bytes that it moves in hexadecimal after a read or a
//! write; the last of them END. A bank's number is that within its rank, a cycle one of its channel's clock. DRAMPower
//! knows one channel, so each has a file. Left out: columns, which are 0, and what DRAMPower has no word for (interrupted
//! array writes). Bytes that nobody knows are written as zeros.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufWriter, Result, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};

use sardonyx::line::{LINE_BYTES, Line, ZERO_LINE};
use sardonyx::medium::params::{EngineParams, MediumParams};
use sardonyx::plan::command::{Command, CommandKind};
use sardonyx::plan::observe::Observer;

use crate::media::Media;

/// The file of a channel.
struct ChannelLines {
    out: BufWriter<File>,
    groups: u32,
    /// Words for the precharge and the refresh of the banks that are refreshed together.
    of_set: [&'static str; 2],
    last: u64,
    /// The bursts of a line, and those that have gone of lines by their places.
    bursts: usize,
    gone: BTreeMap<u64, usize>,
    /// The part of its line that the newest column command moves.
    part: Range<usize>,
}

impl ChannelLines {
    /// Takes the next burst of a line.
    fn take_burst(&mut self, place: u64) {
        let gone = self.gone.entry(place).or_default();
        let bytes = LINE_BYTES / self.bursts;
        self.part = *gone * bytes..(*gone + 1) * bytes;
        *gone += 1;
        if *gone == self.bursts {
            self.gone.remove(&place);
        }
    }

    fn create(path: &Path, medium: &MediumParams) -> Result<ChannelLines> {
        Ok(ChannelLines {
            out: BufWriter::new(File::create(path)?),
            groups: medium.groups.count as u32,
            of_set: match (medium.refreshes.tRFCsb, medium.refreshes.banks) {
                (0, _) => ["PREA", "REFA"],
                (_, 1) => ["PRE", "REFB"],
                _ => ["PRESB", "REFSB"],
            },
            last: 0,
            bursts: medium.active.map_or(1, |active| active.bursts as usize),
            gone: BTreeMap::new(),
            part: 0..LINE_BYTES,
        })
    }
}

/// Writes each command as a line of text.
pub struct CommandLines {
    channels: Vec<ChannelLines>,
    failed: Result<()>,
    /// The channel of the newest command.
    channel: usize,
    count: u64,
    unknown: u64,
}

impl CommandLines {
    /// Creates a file for the commands of each channel: `path` for the first, and for further ones, and those of a near
    /// medium, `path.1`, `path.near-0` and so on.
    ///
    /// # Errors
    /// A file cannot be made.
    pub fn create(path: &Path, params: &EngineParams) -> Result<CommandLines> {
        let media = Media::new(params);
        let channels = media.channels().map(|channel| {
            let file = match media.number(channel) {
                (0, false) => path.to_owned(),
                (number, false) => beside(path, &number.to_string()),
                (number, true) => beside(path, &format!("near-{number}")),
            };
            ChannelLines::create(&file, media.params(channel))
        });
        Ok(CommandLines {
            channels: channels.collect::<Result<_>>()?,
            failed: Ok(()),
            channel: 0,
            count: 0,
            unknown: 0,
        })
    }

    /// Ends the files. Returns the number of commands in them, and of those whose bytes nobody knows.
    ///
    /// # Errors
    /// Something could not be written.
    pub fn finish(mut self) -> Result<(u64, u64)> {
        self.failed?;
        for ChannelLines { out, last, .. } in &mut self.channels {
            writeln!(out, "{},END,0,0,0,0,0", *last + 1)?;
            out.flush()?;
        }
        Ok((self.count, self.unknown))
    }
}

fn beside(path: &Path, which: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".");
    name.push(which);
    name.into()
}

impl Observer for CommandLines {
    fn of_commands(&self) -> bool {
        true
    }

    fn command(&mut self, command: &Command) {
        self.channel = command.channel as usize;
        let lines = &mut self.channels[self.channel];
        let (word, row) = match command.kind {
            CommandKind::Activate { row } => ("ACT", row),
            CommandKind::Precharge => ("PRE", 0),
            CommandKind::PrechargeAll => (lines.of_set[0], 0),
            CommandKind::Read {
                row,
                auto_precharge,
            } => (if auto_precharge { "RDA" } else { "RD" }, row),
            CommandKind::Write {
                row,
                auto_precharge,
            } => (if auto_precharge { "WRA" } else { "WR" }, row),
            CommandKind::Refresh => (lines.of_set[1], 0),
            CommandKind::Pause | CommandKind::Cancel | CommandKind::Resume => return,
        };
        let Command {
            cycle, rank, bank, ..
        } = *command;
        let group = bank % lines.groups.max(1);
        // The bytes of a column command are told next.
        let moves = matches!(
            command.kind,
            CommandKind::Read { .. } | CommandKind::Write { .. }
        );
        let end = if moves { "," } else { "\n" };
        if moves && lines.bursts > 1 {
            lines.take_burst(command.place);
        }
        if self.failed.is_ok() {
            self.failed = write!(
                lines.out,
                "{cycle},{word},{rank},{group},{bank},{row},0{end}"
            );
        }
        lines.last = lines.last.max(cycle);
        self.count += 1;
    }
    fn moves(&mut self, line: Option<&Line>) {
        self.unknown += u64::from(line.is_none());
        let line = line.unwrap_or(&ZERO_LINE);
        let lines = &mut self.channels[self.channel];
        let bytes = &line[lines.part.clone()];
        let hexadecimal: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        if self.failed.is_ok() {
            self.failed = writeln!(lines.out, "{hexadecimal}");
        }
    }
}
