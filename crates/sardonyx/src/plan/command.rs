//! The command log: what went over each channel's command bus, for the auditor and for people.

use super::observe::Observer;

/// A command on a channel's command bus.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CommandKind {
    /// Opens a row.
    Activate {
        /// The row.
        row: u64,
    },
    /// Close the bank's row.
    Precharge,
    /// Closes the rows of the banks that are refreshed next. `bank` is the first of them, 0 where all banks of the rank
    /// are.
    PrechargeAll,
    /// Reads a column. With `auto_precharge` the bank closes itself as soon as its timing allows.
    Read {
        /// The open row.
        row: u64,
        /// Whether the bank closes itself.
        auto_precharge: bool,
    },
    /// Writes a column. With `auto_precharge` the bank closes itself as soon as its timing allows.
    Write {
        /// The open row.
        row: u64,
        /// Whether the bank closes itself.
        auto_precharge: bool,
    },
    /// Refreshes the rank, or one bank of each group; `bank` is the first of them.
    Refresh,
    /// Makes the bank's array write pause when its iteration ends.
    Pause,
    /// Stops the bank's array write at once. It will begin again.
    Cancel,
    /// Makes the bank's array write continue, or begin again.
    Resume,
}

/// An entry of the command log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Command {
    /// The cycle of the memory's clock, from the start.
    pub cycle: u64,
    /// Number of the channel on whose bus it was issued.
    pub channel: u32,
    /// The rank.
    pub rank: u32,
    /// The bank within the rank.
    pub bank: u32,
    /// What the command does: activate, read, write, precharge, refresh.
    pub kind: CommandKind,
    /// The line of a column command, or of a write that is interrupted or resumed; 0 otherwise.
    pub place: u64,
    /// The end of a column command's request (data returned and off chip, or array written) or of a resumed write, in
    /// cycles, unless it is interrupted; for an interruption the cycle at which the write leaves its bank; 0 otherwise.
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
    fn of_commands(&self) -> bool {
        true
    }

    fn command(&mut self, command: &Command) {
        self.0.push(*command);
    }
}
