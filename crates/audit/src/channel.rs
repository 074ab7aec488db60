//! One channel's history: the state of its banks, its refreshes, and the commands that are recent
//! enough for the next one to be too early for.

use std::collections::VecDeque;

use super::pairs::{Distances, demands, horizon};
use super::{Logged, Rule, TimingViolation, alone};
use sardonyx::medium::params::MediumParams;
use sardonyx::medium::pausing::PausingParams;
use sardonyx::plan::command::{Command, CommandKind};

/// JEDEC lets a controller put off up to eight refreshes of a rank.
const POSTPONED: u64 = 8;
const WINDOW: usize = 4;
const MANY: usize = 32;

#[derive(Clone, Copy, Default)]
struct Bank {
    row: Option<u64>,
    by: Option<Logged>,
}

#[derive(Clone, Copy, Default)]
struct LastWrite {
    place: u64,
    /// The array write still takes this many cycles from `since` on.
    left: u64,
    since: u64,
    interrupted: bool,
    times: u64,
}

struct Recent {
    event: Logged,
    logged: Command,
    array: u64,
}

#[derive(Clone, Copy, Default)]
struct Refreshes {
    count: u64,
    last: Option<Logged>,
}

pub(super) struct Channel {
    of: Distances,
    banks_per_rank: usize,
    banks_per_set: usize,
    horizon: u64,
    pausing: Option<PausingParams>,
    banks: Vec<Bank>,
    writes: Vec<LastWrite>,
    refreshes: Vec<Refreshes>,
    last: Option<Logged>,
    /// Whether commands of columns have a bus of their own, and the last command of both buses.
    two_buses: bool,
    buses: [Option<Logged>; 2],
    /// The cycles of its bus that an activate, a precharge and a column command take.
    bus_cycles: [u64; 3],
    rising_edges: bool,
    recent: VecDeque<Recent>,
}

impl Channel {
    pub(super) fn new(params: &MediumParams) -> Channel {
        let (ranks, banks) = (params.geometry.ranks, params.geometry.banks);
        let of = Distances::new(params);
        let set = of.set as usize;
        Channel {
            banks_per_set: set,
            banks_per_rank: banks as usize,
            horizon: horizon(&of),
            of,
            pausing: params.pausing,
            banks: vec![Bank::default(); (ranks * banks) as usize],
            writes: vec![LastWrite::default(); (ranks * banks) as usize],
            refreshes: vec![Refreshes::default(); (ranks * banks) as usize / set],
            last: None,
            two_buses: params.row_bus,
            buses: [None; 2],
            bus_cycles: params.active.map_or([1; 3], |active| active.bus_cycles),
            rising_edges: params.active.is_some_and(|active| active.rising_edges),
            recent: VecDeque::new(),
        }
    }

    /// Checks the next command and takes it into the history; counts the distances that are
    /// exactly as demanded.
    pub(super) fn admit(
        &mut self,
        logged: Logged,
        tight: &mut [u64],
    ) -> Result<(), Box<TimingViolation>> {
        self.on_the_bus(logged)?;
        self.at_an_edge(logged)?;
        let events = self.events(logged);
        while let Some(Recent { event, .. }) = self.recent.front()
            && event.command.cycle + self.horizon < logged.command.cycle
        {
            self.recent.pop_front();
        }
        self.change_state(logged)?;
        self.change_write(logged)?;
        for event in &events {
            self.distances(event.command, logged, tight)?;
        }
        if logged.command.kind == CommandKind::Refresh {
            self.refresh(logged)?;
        }
        let number = self.number(logged.command.rank, logged.command.bank);
        let array = match logged.command.kind {
            CommandKind::Write { .. } | CommandKind::Resume => self.writes[number].left,
            _ => 0,
        };
        self.recent.extend(events.into_iter().map(|event| Recent {
            event,
            logged: logged.command,
            array,
        }));
        self.last = Some(logged);
        let bus = self.bus(logged);
        self.buses[bus] = Some(logged);
        Ok(())
    }

    fn on_the_bus(&self, logged: Logged) -> Result<(), Box<TimingViolation>> {
        let Some(last) = self.last else {
            return Ok(());
        };
        let (before, now) = (last.command.cycle, logged.command.cycle);
        if now < before {
            return Err(pair(Rule::Order, last, logged, before, now));
        }
        let Some(of_bus) = self.buses[self.bus(logged)] else {
            return Ok(());
        };
        let (taken, since) = (self.bus_cycles(of_bus), now - of_bus.command.cycle);
        if since < taken {
            return Err(pair(Rule::OneCommand, of_bus, logged, taken, since));
        }
        Ok(())
    }

    /// The cycles for which a command takes its bus.
    fn bus_cycles(&self, logged: Logged) -> u64 {
        let [activate, precharge, column] = self.bus_cycles;
        match logged.command.kind {
            CommandKind::Activate { .. } => activate,
            CommandKind::Precharge => precharge,
            CommandKind::Read { .. } | CommandKind::Write { .. } => column,
            _ => 1,
        }
    }

    /// Refuses a command at a falling edge that has to go at a rising one.
    fn at_an_edge(&self, logged: Logged) -> Result<(), Box<TimingViolation>> {
        use CommandKind::{Activate, Read, Write};
        let (kind, cycle) = (logged.command.kind, logged.command.cycle);
        let rising = matches!(kind, Activate { .. } | Read { .. } | Write { .. });
        if self.rising_edges && rising && cycle % 2 == 0 {
            return Err(alone(Rule::Edge, logged, cycle + 1, cycle));
        }
        Ok(())
    }

    fn bus(&self, logged: Logged) -> usize {
        use CommandKind::{Read, Write};
        let is_column = matches!(logged.command.kind, Read { .. } | Write { .. });
        usize::from(self.two_buses && is_column)
    }

    /// Splits a command into events of single banks: a precharge of all banks closes each bank that is open.
    fn events(&self, logged: Logged) -> Vec<Logged> {
        let command = logged.command;
        let mut events = vec![logged];
        if command.kind == CommandKind::PrechargeAll {
            let set = command.bank..command.bank + self.banks_per_set as u32;
            let open =
                set.filter(|&bank| self.banks[self.number(command.rank, bank)].row.is_some());
            let kind = CommandKind::Precharge;
            let close = |bank| Command {
                kind,
                bank,
                ..command
            };
            events.extend(open.map(|bank| Logged {
                command: close(bank),
                ..logged
            }));
        }
        events
    }

    fn distances(
        &self,
        event: Command,
        logged: Logged,
        tight: &mut [u64],
    ) -> Result<(), Box<TimingViolation>> {
        use CommandKind::Activate;
        let mut activates = 0;
        for recent in self.recent.iter().rev() {
            let (index, earlier) = (recent.event.index, recent.event.command);
            let actual = event.cycle - earlier.cycle;
            let mut broken = None;
            let mut demand = |rule: Rule, required: u64| {
                if actual < required {
                    broken.get_or_insert((rule, required));
                }
                tight[rule as usize] += u64::from(actual == required);
            };
            demands(&self.of, &earlier, recent.array, &event, &mut demand);
            let kinds = (earlier.kind, event.kind);
            if matches!(kinds, (Activate { .. }, Activate { .. })) && earlier.rank == event.rank {
                activates += 1;
                if activates == WINDOW {
                    demand(Rule::FourActivates, self.of.timing.tFAW);
                } else if activates == MANY && self.of.groups.t32AW > 0 {
                    demand(Rule::ManyActivates, self.of.groups.t32AW);
                }
            }
            if let Some((rule, required)) = broken {
                let command = recent.logged;
                let earlier = Logged { index, command };
                return Err(pair(rule, earlier, logged, required, actual));
            }
        }
        Ok(())
    }

    fn number(&self, rank: u32, bank: u32) -> usize {
        rank as usize * self.banks_per_rank + bank as usize
    }

    /// Refuses the command if its banks are in a wrong state, and moves them to the state that it leaves.
    fn change_state(&mut self, logged: Logged) -> Result<(), Box<TimingViolation>> {
        let command = logged.command;
        let number = self.number(command.rank, command.bank);
        let together = number..(number + self.banks_per_set).min(self.banks.len());
        let bank = self.banks[number];
        let wrong = |rule, by: Option<Logged>, required, actual| {
            let mut violation = alone(rule, logged, required, actual);
            violation.earlier = by;
            Err(violation)
        };
        let by = Some(logged);
        match command.kind {
            CommandKind::Activate { row } => {
                if bank.row.is_some() {
                    return wrong(Rule::ActivateOpen, bank.by, 0, 0);
                }
                self.banks[number] = Bank { row: Some(row), by };
            }
            CommandKind::Read {
                row,
                auto_precharge,
            }
            | CommandKind::Write {
                row,
                auto_precharge,
            } => {
                let Some(open) = bank.row else {
                    return wrong(Rule::ColumnClosed, bank.by, 0, 0);
                };
                if open != row {
                    return wrong(Rule::ColumnRow, bank.by, open, row);
                }
                if auto_precharge {
                    self.banks[number] = Bank { row: None, by };
                }
            }
            CommandKind::Precharge => {
                if bank.row.is_none() {
                    return wrong(Rule::PrechargeClosed, bank.by, 0, 0);
                }
                self.banks[number] = Bank { row: None, by };
            }
            CommandKind::PrechargeAll => {
                for bank in self.banks[together].iter_mut().filter(|b| b.row.is_some()) {
                    *bank = Bank { row: None, by };
                }
            }
            CommandKind::Refresh => {
                if let Some(open) = self.banks[together].iter().find(|b| b.row.is_some()) {
                    return wrong(Rule::RefreshOpen, open.by, 0, 0);
                }
            }
            CommandKind::Pause | CommandKind::Cancel | CommandKind::Resume => {}
        }
        Ok(())
    }

    /// Refuses the command if its bank's array write forbids it, and notes what the command does to that write.
    fn change_write(&mut self, logged: Logged) -> Result<(), Box<TimingViolation>> {
        let Command {
            cycle,
            rank,
            bank,
            kind,
            place,
            ..
        } = logged.command;
        let number = self.number(rank, bank);
        let together = number..(number + self.banks_per_set).min(self.banks.len());
        let t = &self.of.timing;
        match kind {
            CommandKind::Refresh if self.writes[together].iter().any(|one| one.interrupted) => {
                return Err(alone(Rule::WriteInterrupted, logged, 0, 0));
            }
            CommandKind::Write { .. } if self.writes[number].interrupted => {
                return Err(alone(Rule::WriteInterrupted, logged, 0, 0));
            }
            CommandKind::Write { .. } => {
                self.writes[number] = LastWrite {
                    place,
                    left: t.tWP,
                    since: cycle + t.tCWD + t.tBURST,
                    ..LastWrite::default()
                };
            }
            CommandKind::Pause | CommandKind::Cancel => self.interrupt(logged)?,
            CommandKind::Resume => self.resume(logged)?,
            _ => {}
        }
        Ok(())
    }

    /// Refuses a pause or a cancellation that the write does not allow, and notes what is left of the write.
    fn interrupt(&mut self, logged: Logged) -> Result<(), Box<TimingViolation>> {
        let command = logged.command;
        let cycle = command.cycle;
        let number = self.number(command.rank, command.bank);
        let (write, whole) = (self.writes[number], self.of.timing.tWP);
        let under_way = write.since <= cycle && cycle < write.since + write.left;
        let pausing = self.pausing.filter(|_| under_way && !write.interrupted);
        let Some(pausing) = pausing.filter(|one| write.times < one.times) else {
            return Err(alone(Rule::Interruption, logged, 0, 0));
        };
        let written = whole - write.left + (cycle - write.since);
        let cancels = written * 100 < pausing.threshold * whole;
        let of_place = write.place == command.place;
        if !of_place
            || cancels != (command.kind == CommandKind::Cancel)
            || !cancels && !pausing.pauses
        {
            return Err(alone(
                Rule::Interruption,
                logged,
                write.place,
                command.place,
            ));
        }
        // Counted up, iteration by iteration.
        let iteration = whole.div_ceil(pausing.iterations);
        let mut stops = 0;
        while !cancels && stops < written {
            stops += iteration;
        }
        let until = if cancels {
            cycle
        } else {
            cycle + stops - written
        };
        if command.done != until || stops >= whole {
            return Err(alone(Rule::Done, logged, until, command.done));
        }
        // A pause shortens the array write, and with it the distances that later commands keep to it.
        let array = until - write.since;
        let of_bank = |one: &&mut Recent| {
            let other = one.event.command;
            (other.rank, other.bank) == (command.rank, command.bank) && one.array > 0
        };
        if let Some(recent) = self.recent.iter_mut().rev().find(of_bank) {
            recent.array = array;
        }
        self.writes[number] = LastWrite {
            left: if cancels { whole } else { whole - stops },
            interrupted: true,
            times: write.times + 1,
            ..write
        };
        Ok(())
    }

    /// Refuses a resumption of a write that was not interrupted, or that ends at another cycle than it says.
    fn resume(&mut self, logged: Logged) -> Result<(), Box<TimingViolation>> {
        let command = logged.command;
        let cycle = command.cycle;
        let (t, number) = (&self.of.timing, self.number(command.rank, command.bank));
        let write = self.writes[number];
        if !write.interrupted || write.place != command.place {
            return Err(alone(
                Rule::Interruption,
                logged,
                write.place,
                command.place,
            ));
        }
        let slot = t.tBURST.max(t.tCCD) - t.tBURST;
        let wanted = cycle + write.left + slot + t.off_chip;
        if command.done != wanted {
            return Err(alone(Rule::Done, logged, wanted, command.done));
        }
        self.writes[number] = LastWrite {
            since: cycle,
            interrupted: false,
            ..write
        };
        Ok(())
    }

    fn refresh(&mut self, logged: Logged) -> Result<(), Box<TimingViolation>> {
        let set = self.number(logged.command.rank, logged.command.bank) / self.banks_per_set;
        self.refresh_due(logged.command.channel, set, logged, Rule::RefreshInterval)?;
        let refreshes = &mut self.refreshes[set];
        refreshes.count += 1;
        refreshes.last = Some(logged);
        Ok(())
    }

    /// Checks at the log's end, which is at `end` on some channel, that no refresh is missing.
    pub(super) fn finish(&self, channel: u32, end: Logged) -> Result<(), Box<TimingViolation>> {
        if self.writes.iter().any(|write| write.interrupted) {
            return Err(alone(Rule::WriteInterrupted, end, 0, 0));
        }
        for set in 0..self.refreshes.len() {
            self.refresh_due(channel, set, end, Rule::RefreshMissing)?;
        }
        Ok(())
    }

    /// Refuses a gap between refreshes longer than [`POSTPONED`] refreshes and the one that is due allow. The gap
    /// counts from the last refresh, and all refreshes together count from the start.
    fn refresh_due(
        &self,
        channel: u32,
        set: usize,
        now: Logged,
        too_far: Rule,
    ) -> Result<(), Box<TimingViolation>> {
        if self.of.timing.tREFI == 0 {
            return Ok(());
        }
        let Refreshes { count, last } = self.refreshes[set];
        let rank = (set * self.banks_per_set / self.banks_per_rank) as u32;
        let since = last.map_or(0, |logged| logged.command.cycle);
        let interval = (POSTPONED + 1) * self.of.timing.tREFI;
        let in_all = (count + POSTPONED + 1) * self.of.timing.tREFI;
        let cycle = now.command.cycle;
        for (rule, required, actual) in [
            (too_far, interval, cycle.saturating_sub(since)),
            (Rule::RefreshMissing, in_all, cycle),
        ] {
            if actual > required {
                return Err(Box::new(TimingViolation {
                    rule,
                    channel,
                    rank,
                    earlier: last,
                    later: now,
                    required,
                    actual,
                }));
            }
        }
        Ok(())
    }
}

fn pair(
    rule: Rule,
    earlier: Logged,
    later: Logged,
    required: u64,
    actual: u64,
) -> Box<TimingViolation> {
    let mut violation = alone(rule, later, required, actual);
    violation.earlier = Some(earlier);
    violation
}
