//! The auditor: re-checks a command log from nothing but the log and the parameters. It shares no
//! code with the engine and compares commands pair by pair, so that it is easy to believe.
//! `docs/inside/timing.md` has the equations.

mod channel;
mod pairs;
mod rule;

pub use rule::Rule;

use std::fmt;

use channel::Channel;
use sardonyx::medium::mapping::Field;
use sardonyx::medium::params::{Geometry, MediumParams};
use sardonyx::plan::command::{Command, CommandKind};

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AuditSummary {
    pub commands: u64,
    pub activates: u64,
    /// Explicit precharges, of one bank or of a rank.
    pub precharges: u64,
    /// Column commands after which the bank closed itself.
    pub auto_precharges: u64,
    pub reads: u64,
    pub writes: u64,
    pub refreshes: u64,
    /// Array writes that were interrupted, each time counted.
    pub interruptions: u64,
    pub end: u64,
    tight: Vec<u64>,
}

impl AuditSummary {
    /// The number of pairs of commands that were exactly as far apart as a rule about time demands. A rule with no such
    /// pair never held a command back, so the log says little about it.
    pub fn tight(&self, rule: Rule) -> u64 {
        self.tight[rule as usize]
    }

    fn count(&mut self, command: &Command) {
        self.commands += 1;
        self.end = self.end.max(command.cycle);
        match command.kind {
            CommandKind::Activate { .. } => self.activates += 1,
            CommandKind::Precharge | CommandKind::PrechargeAll => self.precharges += 1,
            CommandKind::Read { auto_precharge, .. } => {
                self.reads += 1;
                self.auto_precharges += u64::from(auto_precharge);
            }
            CommandKind::Write { auto_precharge, .. } => {
                self.writes += 1;
                self.auto_precharges += u64::from(auto_precharge);
            }
            CommandKind::Refresh => self.refreshes += 1,
            CommandKind::Pause | CommandKind::Cancel => self.interruptions += 1,
            CommandKind::Resume => {}
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Logged {
    pub index: usize,
    pub command: Command,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimingViolation {
    /// The rule of docs/inside/timing.md that is broken.
    pub rule: Rule,
    pub channel: u32,
    /// The rank; the earlier and the later command may be of different ones.
    pub rank: u32,
    /// The command that the later one had to respect, where there is one.
    pub earlier: Option<Logged>,
    pub later: Logged,
    /// For a rule about time, the cycles demanded between the commands; for the two about refreshes, the cycles
    /// allowed; for the others the value demanded, 0 where the rule is about a bank's state.
    pub required: u64,
    /// The cycles between the commands, or the value found.
    pub actual: u64,
}

impl fmt::Display for TimingViolation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let TimingViolation { rule, later, .. } = self;
        write!(f, "{rule}: channel {} rank {}, ", self.channel, self.rank)?;
        write!(f, "command {} {:?}", later.index, later.command)?;
        if let Some(earlier) = self.earlier {
            write!(f, " after command {} {:?}", earlier.index, earlier.command)?;
        }
        let (required, actual) = (self.required, self.actual);
        write!(f, "; required {required}, actual {actual}")
    }
}

impl std::error::Error for TimingViolation {}

/// Checks every command of `log`, in its order, against every rule.
///
/// # Errors
/// The first violation.
pub fn audit(params: &MediumParams, log: &[Command]) -> Result<AuditSummary, Box<TimingViolation>> {
    let geometry = &params.geometry;
    let mut summary = AuditSummary {
        tight: vec![0; Rule::ALL.len()],
        ..AuditSummary::default()
    };
    let mut channels: Vec<Channel> = (0..geometry.channels)
        .map(|_| Channel::new(params))
        .collect();
    for (index, &command) in log.iter().enumerate() {
        let logged = Logged { index, command };
        in_range(geometry, logged)?;
        in_itself(params, logged)?;
        let channel = &mut channels[command.channel as usize];
        channel.admit(logged, &mut summary.tight)?;
        summary.count(&command);
    }
    // The last command in time, of any channel, is the log's end for all of them.
    let last = log.iter().enumerate().max_by_key(|(_, c)| c.cycle);
    if let Some((index, &command)) = last {
        for (number, channel) in channels.iter().enumerate() {
            channel.finish(number as u32, Logged { index, command })?;
        }
    }
    Ok(summary)
}

fn in_range(geometry: &Geometry, logged: Logged) -> Result<(), Box<TimingViolation>> {
    let command = logged.command;
    for (value, limit) in [
        (command.channel, geometry.channels),
        (command.rank, geometry.ranks),
        (command.bank, geometry.banks),
    ] {
        if u64::from(value) >= limit {
            return Err(alone(Rule::Range, logged, limit, u64::from(value)));
        }
    }
    Ok(())
}

/// Checks what a command must fulfil whatever came before it: its address, its completion and its unused fields.
fn in_itself(params: &MediumParams, logged: Logged) -> Result<(), Box<TimingViolation>> {
    let (c, (t, _)) = (logged.command, pairs::of_burst(params));
    let (row, latency) = match c.kind {
        CommandKind::Read { row, .. } => (row, t.tCL + t.tBURST + t.off_chip),
        CommandKind::Write { row, .. } => {
            let transfer = t.tBURST.max(t.tCCD);
            (row, t.tCWD + transfer + t.tWP + t.off_chip)
        }
        // Their cycles are checked beside the write that they are about.
        CommandKind::Pause | CommandKind::Cancel | CommandKind::Resume => {
            let [channel, rank, bank, _] = address(params, c.place);
            let place = [channel, rank, bank];
            let said = [c.channel, c.rank, c.bank].map(u64::from);
            return match place.into_iter().zip(said).find(|(a, b)| a != b) {
                Some((required, actual)) => Err(alone(Rule::Address, logged, required, actual)),
                None => Ok(()),
            };
        }
        kind => {
            // Banks that are refreshed together are named by the first of them.
            let set = params
                .refreshes
                .together(params.geometry.banks, &params.groups);
            let of_a_set = matches!(kind, CommandKind::PrechargeAll | CommandKind::Refresh);
            let bank = if of_a_set { u64::from(c.bank) % set } else { 0 };
            for value in [c.place, c.done, bank] {
                if value != 0 {
                    return Err(alone(Rule::Unused, logged, 0, value));
                }
            }
            return Ok(());
        }
    };
    let [channel, rank, bank, decoded_row] = address(params, c.place);
    for (required, actual) in [
        (channel, u64::from(c.channel)),
        (bank, u64::from(c.bank)),
        (rank, u64::from(c.rank)),
        (decoded_row, row),
    ] {
        if required != actual {
            return Err(alone(Rule::Address, logged, required, actual));
        }
    }
    let done = c.cycle + latency;
    if c.done != done {
        return Err(alone(Rule::Done, logged, done, c.done));
    }
    Ok(())
}

/// Channel, rank, bank and row of a line: its number in the mixed base whose digits are the fields. The row
/// has no upper limit, since metadata lie beyond the rows of the data: each medium's worth of lines more is
/// as many rows further.
fn address(params: &MediumParams, place: u64) -> [u64; 4] {
    let g = &params.geometry;
    let (mut channel, mut rank, mut bank, mut group, mut row) = (0, 0, 0, 0, 0);
    let groups = params.groups.count;
    let mut rest = place;
    for field in params.mapping.fields.iter().rev() {
        let (digit, base) = match field {
            Field::Channel => (&mut channel, g.channels),
            Field::Rank => (&mut rank, g.ranks),
            Field::Bank => (&mut bank, g.banks / groups),
            Field::Group => (&mut group, groups),
            Field::Row => (&mut row, g.rows),
            Field::Column => (&mut 0, g.columns),
        };
        *digit = rest % base;
        rest /= base;
    }
    [channel, rank, bank * groups + group, row + rest * g.rows]
}

fn alone(rule: Rule, later: Logged, required: u64, actual: u64) -> Box<TimingViolation> {
    Box::new(TimingViolation {
        rule,
        channel: later.command.channel,
        rank: later.command.rank,
        earlier: None,
        later,
        required,
        actual,
    })
}
