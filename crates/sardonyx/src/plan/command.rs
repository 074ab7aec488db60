//! The command log: what went over each channel's command bus, for the auditor and for people.

use super::observe::Observer;

/// A command on a channel's command bus.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CommandKind {
    /// Open a row.
    Activate {
        /// The row.
        row: u64,
    },
    /// Close the bank's row.
    Precharge,
    /// Close the rows of the banks that are refreshed next; `bank` is the first of them, 0 where they are the rank's.
    PrechargeAll,
    /// Column read; with `auto_precharge` the bank closes itself as soon as its timing allows.
    Read {
        /// The open row.
        row: u64,
        /// Whether the bank closes itself.
        auto_precharge: bool,
    },
    /// Column write, likewise.
    Write {
        /// The open row.
        row: u64,
        /// Whether the bank closes itself.
        auto_precharge: bool,
    },
    /// Refresh the rank, or one bank of each group; `bank` is the first of them.
    Refresh,
    /// Have the bank's array write pause when its iteration ends.
    Pause,
    /// Stop the bank's array write at once; it will begin anew.
    Cancel,
    /// Have the bank's array write go on, or begin anew.
    Resume,
}

/// One entry of the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Command {
    /// When, in memory-clock cycles from the start.
    pub cycle: u64,
    /// Number of the channel on whose bus it was issued.
    pub channel: u32,
    /// The rank.
    pub rank: u32,
    /// The bank within the rank.
    pub bank: u32,
    /// What the command does: activate, read, write, precharge, refresh.
    pub kind: CommandKind,
    /// The line of a column command, and of a write that is interrupted or goes on; 0 otherwise.
    pub place: u64,
    /// When a column command's request is done (data returned and off chip, or array written), in
    /// cycles, and when a write that goes on is done, unless it is interrupted; when an interrupted one leaves its
    /// bank; 0 otherwise.
    pub done: u64,
}

/// All commands, in the order in which the channels issued them.
#[derive(Debug, Default)]
pub struct CommandLog(Vec<Command>);

impl CommandLog {
    /// The commands of all channels, one channel after the other.
    pub fn by_channel(self) -> Vec<Command> {
        let mut commands = self.0;
        commands.sort_by_key(|command| command.channel);
        commands
    }
}

impl Observer for CommandLog {
    fn command(&mut self, command: &Command) {
        self.0.push(*command);
    }
}
