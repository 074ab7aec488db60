//! The auditor on logs made by hand: legal ones pass, those that NVMain was seen to issue among
//! them, and for every rule a log that breaks it in one place is caught and the rule named.
use sardonyx::config::Machine;
use sardonyx::medium::params::{ActiveParams, MediumParams};
use sardonyx::medium::pausing::PausingParams;
use sardonyx::plan::command::{Command, CommandKind};
use sardonyx_audit::{Rule, TimingViolation, audit};

/// DDR4-2400 on two channels with an array write and a link: every term of the equations counts.
fn mixed() -> MediumParams {
    let mut params = preset("ddr4-2400");
    params.geometry.channels = 2;
    (params.timing.tWP, params.timing.off_chip) = (20, 5);
    params
}

fn preset(name: &str) -> MediumParams {
    // A line's number is easy to find by hand, and short distances are all there are.
    let plain = [
        ("medium.mapping", "row:rank:bank:channel:column"),
        ("medium.geometry.groups", "1"),
    ];
    let machine = Machine::load(name, &plain);
    machine
        .unwrap_or_else(|error| panic!("{error}"))
        .engine
        .medium
}

/// Commands in the making; a column command gets its place and completion.
struct Log<'a>(&'a MediumParams, Vec<Command>);

/// (channel, rank, bank); all of the tests' rows are 7 unless they say otherwise.
type At = (u32, u32, u32);
const ROW: u64 = 7;
const B0: At = (0, 0, 0);
const B1: At = (0, 0, 1);
const R1: At = (0, 1, 0);

impl Log<'_> {
    fn add(&mut self, cycle: u64, at: At, kind: CommandKind) -> &mut Self {
        let (g, t) = (&self.0.geometry, &self.0.timing);
        let (channel, rank, bank) = at;
        let bursts = self.0.active.map_or(1, |active| active.bursts);
        let latency = match kind {
            CommandKind::Read { .. } => Some(t.tCL + t.tBURST / bursts),
            CommandKind::Write { .. } => Some(t.tCWD + t.tBURST.max(t.tCCD) / bursts + t.tWP),
            _ => None,
        };
        let place = |row: u64| {
            let bank_of_all = (row * g.ranks + u64::from(rank)) * g.banks + u64::from(bank);
            (bank_of_all * g.channels + u64::from(channel)) * g.columns + 3
        };
        self.1.push(Command {
            cycle,
            channel,
            rank,
            bank,
            kind,
            place: match kind {
                CommandKind::Read { row, .. } | CommandKind::Write { row, .. } => place(row),
                _ => 0,
            },
            done: latency.map_or(0, |latency| cycle + latency + t.off_chip),
        });
        self
    }

    fn act(&mut self, cycle: u64, at: At) -> &mut Self {
        self.add(cycle, at, CommandKind::Activate { row: ROW })
    }

    fn rd(&mut self, cycle: u64, at: At) -> &mut Self {
        self.add(cycle, at, read(ROW, false))
    }

    fn wr(&mut self, cycle: u64, at: At) -> &mut Self {
        self.add(cycle, at, write(ROW, false))
    }

    fn rda(&mut self, cycle: u64, at: At) -> &mut Self {
        self.add(cycle, at, read(ROW, true))
    }

    fn wra(&mut self, cycle: u64, at: At) -> &mut Self {
        self.add(cycle, at, write(ROW, true))
    }

    fn pre(&mut self, cycle: u64, at: At) -> &mut Self {
        self.add(cycle, at, CommandKind::Precharge)
    }

    fn prea(&mut self, cycle: u64, at: At) -> &mut Self {
        self.add(cycle, at, CommandKind::PrechargeAll)
    }

    fn refresh(&mut self, cycle: u64, at: At) -> &mut Self {
        self.add(cycle, at, CommandKind::Refresh)
    }

    /// The write of the first bank is interrupted or goes on.
    fn turn(&mut self, cycle: u64, kind: CommandKind, done: u64) -> &mut Self {
        let command = *self.wr(cycle, B0).1.last().expect("a write");
        *self.1.last_mut().expect("a write") = Command {
            kind,
            done,
            ..command
        };
        self
    }
}

fn read(row: u64, auto_precharge: bool) -> CommandKind {
    CommandKind::Read {
        row,
        auto_precharge,
    }
}

fn write(row: u64, auto_precharge: bool) -> CommandKind {
    CommandKind::Write {
        row,
        auto_precharge,
    }
}

fn log(params: &MediumParams, make: impl Fn(&mut Log)) -> Vec<Command> {
    let mut log = Log(params, Vec::new());
    make(&mut log);
    log.1
}

#[track_caller]
fn passes(params: &MediumParams, make: impl Fn(&mut Log)) {
    if let Err(violation) = audit(params, &log(params, make)) {
        panic!("{violation}");
    }
}

/// The violation, which must be of this rule and at the last command.
#[track_caller]
fn caught(params: &MediumParams, rule: Rule, make: impl Fn(&mut Log)) -> TimingViolation {
    let log = log(params, make);
    match audit(params, &log) {
        Ok(_) => panic!("nothing found, but should: {rule}"),
        Err(violation) => {
            assert_eq!(violation.rule, rule, "{violation}");
            assert_eq!(violation.later.index, log.len() - 1, "{violation}");
            assert_eq!(violation.later.command, log[log.len() - 1]);
            assert!(violation.to_string().contains(rule.name()));
            *violation
        }
    }
}

/// With its last command at `least` the log passes and is tight; a cycle earlier the rule is
/// broken against command `earlier`.
#[track_caller]
fn distance(
    params: &MediumParams,
    rule: Rule,
    earlier: usize,
    least: u64,
    make: impl Fn(&mut Log, u64),
) {
    let legal = log(params, |l| make(l, least));
    match audit(params, &legal) {
        Ok(summary) => assert!(summary.tight(rule) > 0, "{rule} is not tight"),
        Err(violation) => panic!("at {least}: {violation}"),
    }
    let violation = caught(params, rule, |l| make(l, least - 1));
    let first = violation.earlier.expect("two commands");
    assert_eq!(first.index, earlier, "{violation}");
    assert_eq!(first.command, legal[earlier]);
    assert_eq!(violation.required, least - legal[earlier].cycle);
    assert_eq!(violation.actual, violation.required - 1);
}

#[test]
fn what_nvmain_was_seen_to_issue_passes() {
    let params = preset("nvmain-a");
    let eight = log(&params, |l| {
        let activates = [201, 205, 209, 213, 221, 225, 229, 233];
        let mut commands: Vec<(u64, u32, bool)> = Vec::new();
        for (bank, cycle) in (0..).zip(activates) {
            commands.extend([(cycle, bank, false), (cycle + 30, bank, true)]);
        }
        commands.sort_unstable();
        for (cycle, bank, column) in commands {
            // NVMain issues one command a cycle; the reads of this case are never in the way.
            let at = (0, 0, bank);
            _ = if column {
                l.rd(cycle, at)
            } else {
                l.act(cycle, at)
            };
        }
    });
    let summary = audit(&params, &eight).unwrap();
    assert_eq!((summary.commands, summary.activates), (16, 8));
    assert_eq!((summary.reads, summary.writes), (8, 0));
    assert_eq!((summary.tight(Rule::FourActivates), summary.end), (4, 263));
    assert_eq!(eight.last().unwrap().done, 200 + 78);

    let rows = log(&params, |l| {
        l.act(201, B0).rd(231, B0).pre(236, B0);
        l.add(237, B0, CommandKind::Activate { row: 8 });
        l.add(267, B0, write(8, false));
    });
    audit(&params, &rows).unwrap();
    assert_eq!((rows[1].done, rows[4].done), (246, 345));
}

#[test]
fn legal_logs_pass() {
    let p = mixed();
    assert_eq!(audit(&p, &[]).unwrap().commands, 0);
    // Channels have nothing to do with each other, and may be logged one after the other.
    passes(&p, |l| {
        l.act(0, B0).rd(17, B0);
        l.act(0, (1, 0, 0)).rd(17, (1, 0, 0));
    });
    // Both ways of closing, and a precharge of all that has nothing to close.
    passes(&p, |l| {
        l.act(0, B0).wra(17, B0).act(40, B1);
        l.prea(79, B0).prea(80, B0).act(96, B1).act(100, B0);
        l.prea(140, B0).refresh(157, B0).act(578, B0).rd(595, B0);
    });
    // One rank refreshes, the other works.
    passes(&p, |l| {
        l.refresh(0, B0).act(1, R1).rd(18, R1);
    });
    // Rows beyond the geometry's hold metadata, however far away.
    passes(&p, |l| {
        for (cycle, row) in [(0, 65_536), (100, 1 << 40)] {
            l.add(cycle, B0, CommandKind::Activate { row });
            l.add(cycle + 17, B0, read(row, true));
        }
        assert!(l.1[3].place >= 1 << 48);
    });
}

#[test]
fn distances_within_a_bank() {
    use Rule::*;
    let p = mixed();
    distance(&p, ActivateToColumn, 0, 17, |l, c| {
        _ = l.act(0, B0).rd(c, B0)
    });
    distance(&p, ActivateToColumn, 0, 17, |l, c| {
        _ = l.act(0, B0).wra(c, B0)
    });
    distance(&p, ActivateToPrecharge, 0, 39, |l, c| {
        _ = l.act(0, B0).pre(c, B0)
    });
    distance(&p, ActivateToPrecharge, 1, 43, |l, c| {
        l.act(0, B0).act(4, B1).prea(c, B0);
    });
    distance(&p, PrechargeToActivate, 1, 57, |l, c| {
        l.act(0, B0).pre(40, B0).act(c, B0);
    });
    distance(&p, PrechargeToActivate, 1, 57, |l, c| {
        l.act(0, B0).prea(40, B0).act(c, B0);
    });
    distance(&p, PrechargeToRefresh, 1, 117, |l, c| {
        l.act(0, B1).pre(100, B1).refresh(c, B0);
    });
    distance(&p, PrechargeToRefresh, 1, 117, |l, c| {
        l.act(0, B1).prea(100, B0).refresh(c, B0);
    });
    distance(&p, ReadToPrecharge, 1, 49, |l, c| {
        l.act(0, B0).rd(40, B0).pre(c, B0);
    });
    distance(&p, WriteToPrecharge, 1, 71, |l, c| {
        l.act(0, B0).wr(17, B0).pre(c, B0);
    });
    // 39 by the activate, 50 + 9 by the read, 17 + 54 by the write; then tRP.
    distance(&p, AutoPrecharge, 0, 56, |l, c| {
        l.act(0, B0).rda(17, B0).act(c, B0);
    });
    distance(&p, AutoPrecharge, 1, 76, |l, c| {
        l.act(0, B0).rda(50, B0).act(c, B0);
    });
    distance(&p, AutoPrecharge, 1, 88, |l, c| {
        l.act(0, B0).wra(17, B0).act(c, B0);
    });
    distance(&p, AutoPrecharge, 1, 88, |l, c| {
        l.act(0, B1).wra(17, B1).refresh(c, B0);
    });
}

#[test]
fn distances_within_a_rank_and_a_channel() {
    use Rule::*;
    let p = mixed();
    let two = |l: &mut Log, other: At| _ = l.act(0, B0).act(4, other);
    distance(&p, ActivateToActivate, 0, 4, |l, c| {
        _ = l.act(0, B0).act(c, B1)
    });
    distance(&p, FourActivates, 0, 26, |l, c| {
        for bank in 0..4 {
            l.act(u64::from(bank) * 4, (0, 0, bank));
        }
        l.act(c, (0, 0, 4));
    });
    let mut many = mixed();
    many.groups.tPPD = 5;
    distance(&many, PrechargeToPrecharge, 2, 105, |l, c| {
        l.act(0, B0).act(4, B1).pre(100, B0).pre(c, B1);
    });
    distance(&many, PrechargeToPrecharge, 2, 105, |l, c| {
        l.act(0, B0).act(4, B1).pre(100, B0).prea(c, B0);
    });
    (many.groups.t32AW, many.geometry.banks) = (300, 64);
    distance(&many, ManyActivates, 0, 300, |l, c| {
        for bank in 0..32 {
            l.act(u64::from(bank) * 8, (0, 0, bank));
        }
        l.act(c, (0, 0, 32));
    });
    for (other, least) in [(B0, 4), (B1, 4), (R1, 6)] {
        let second = if other == B0 { B1 } else { other };
        distance(&p, ReadToRead, 2, 40 + least, |l, c| {
            two(l, second);
            l.rd(40, B0).rd(c, other);
        });
        distance(&p, ReadToWrite, 2, 51, |l, c| {
            two(l, second);
            l.rd(40, B0).wr(c, other);
        });
    }
    distance(&p, WriteToWriteSameBank, 1, 64, |l, c| {
        l.act(0, B0).wr(40, B0).wr(c, B0);
    });
    distance(&p, WriteToWrite, 2, 44, |l, c| {
        two(l, B1);
        l.wr(40, B0).wr(c, B1);
    });
    distance(&p, WriteToWrite, 2, 46, |l, c| {
        two(l, R1);
        l.wr(40, B0).wr(c, R1);
    });
    distance(&p, WriteToReadSameBank, 1, 79, |l, c| {
        l.act(0, B0).wr(40, B0).rd(c, B0);
    });
    distance(&p, WriteToRead, 2, 59, |l, c| {
        two(l, B1);
        l.wr(40, B0).rd(c, B1);
    });
    distance(&p, AfterRefresh, 0, 421, |l, c| {
        _ = l.refresh(0, B0).act(c, B1)
    });
    distance(&p, AfterRefresh, 0, 421, |l, c| {
        _ = l.refresh(0, B0).prea(c, B0)
    });
    distance(&p, AfterRefresh, 0, 421, |l, c| {
        _ = l.refresh(0, B0).refresh(c, B0)
    });
}

#[test]
fn the_bus_alone_parts_a_write_and_another_ranks_read() {
    // The write's data are on the bus in 52..56; the read's must leave two cycles on either side.
    let mut p = mixed();
    p.timing.tCL = 1;
    let make = |l: &mut Log, c: u64| {
        l.act(0, B0).act(4, R1).wr(40, B0).rd(c, R1);
    };
    for cycle in 41..=45 {
        passes(&p, |l| make(l, cycle));
    }
    for cycle in 46..=56 {
        let violation = caught(&p, Rule::Bus, |l| make(l, cycle));
        assert_eq!((violation.required, violation.actual), (17, cycle - 40));
    }
    distance(&p, Rule::Bus, 2, 57, make);
}

#[test]
fn states_of_banks() {
    use Rule::*;
    let p = mixed();
    caught(&p, ActivateOpen, |l| _ = l.act(0, B0).act(100, B0));
    caught(&p, ColumnClosed, |l| _ = l.rd(0, B0));
    caught(&p, ColumnClosed, |l| _ = l.act(0, B0).wr(17, B1));
    caught(&p, ColumnClosed, |l| {
        _ = l.act(0, B0).prea(39, B0).rd(70, B0)
    });
    let violation = caught(&p, ColumnClosed, |l| {
        _ = l.act(0, B0).rda(17, B0).rd(21, B0)
    });
    assert_eq!(violation.earlier.unwrap().index, 1);
    let violation = caught(&p, ColumnRow, |l| {
        l.act(0, B0).add(17, B0, read(ROW + 1, false));
    });
    assert_eq!((violation.required, violation.actual), (ROW, ROW + 1));
    caught(&p, PrechargeClosed, |l| _ = l.pre(0, B0));
    caught(&p, PrechargeClosed, |l| {
        _ = l.act(0, B0).pre(39, B0).pre(80, B0)
    });
    caught(&p, PrechargeClosed, |l| {
        _ = l.act(0, B0).rda(17, B0).pre(39, B0)
    });
    caught(&p, RefreshOpen, |l| _ = l.act(0, B1).refresh(500, B0));
}

#[test]
fn one_command_alone() {
    use Rule::*;
    let p = mixed();
    caught(&p, Range, |l| _ = l.act(0, (2, 0, 0)));
    caught(&p, Range, |l| _ = l.act(0, (0, 2, 0)));
    let violation = caught(&p, Range, |l| _ = l.act(0, (0, 0, 16)));
    assert_eq!((violation.required, violation.actual), (16, 16));
    // One off in column, channel, bank, rank and row, from the bottom of the address.
    let line = 128;
    let off = |lines: u64| move |l: &mut Log| l.act(0, B0).rd(17, B0).1[1].place += lines;
    passes(&p, off(1));
    for lines in [line, 2 * line, 32 * line, 64 * line] {
        caught(&p, Address, off(lines));
    }
    for (wrong, made) in [(37, read(ROW, false)), (38, write(ROW, true))] {
        let violation = caught(&p, Done, |l| {
            l.act(0, B0).add(17, B0, made).1[1].done = wrong;
        });
        // 17 + 17 + 4 + 5; 17 + 12 + 4 + 20 + 5.
        let right = if wrong == 37 { 43 } else { 58 };
        assert_eq!((violation.required, violation.actual), (right, wrong));
    }
    caught(&p, Unused, |l| l.act(0, B0).1[0].place = 1);
    caught(&p, Unused, |l| l.act(0, B0).1[0].done = 1);
    caught(&p, Unused, |l| _ = l.refresh(0, B1));
    caught(&p, Unused, |l| _ = l.prea(0, B1));
}

#[test]
fn the_command_bus() {
    let p = mixed();
    caught(&p, Rule::OneCommand, |l| _ = l.act(0, B0).act(0, R1));
    caught(&p, Rule::Order, |l| _ = l.act(1, B0).act(0, R1));
}

/// By hand: bursts of half a line, two buses for two ranks, activates of two cycles, reads of two stacks 9 apart.
#[test]
fn a_controller_whose_accesses_become_active() {
    use Rule::*;
    let mut p = mixed();
    let mut active = ActiveParams {
        bursts: 2,
        bus_cycles: [2, 1, 1],
        second_activate: 0,
        data_clock: 0,
        rank_buses: true,
        rising_edges: false,
        stacks: 2,
        reopens: 70,
        between_stacks: 9,
    };
    p.active = Some(active);
    p.groups.count = 2;
    p.groups.tRTW = 13;
    caught(&p, OneCommand, |l| _ = l.act(0, B0).act(1, R1));
    let next = log(&p, |l| _ = l.act(0, B0).act(2, R1));
    assert_eq!(audit(&p, &next).err(), None);
    distance(&p, ReadToRead, 2, 49, |l, c| {
        l.act(0, B0).act(4, B1).rd(40, B0).rd(c, B1);
    });
    distance(&p, ReadToRead, 1, 42, |l, c| {
        l.act(0, B0).rd(40, B0).rd(c, B0);
    });
    distance(&p, ReadToWrite, 2, 53, |l, c| {
        l.act(0, B0).act(4, B1).rd(40, B0).wr(c, B1);
    });
    distance(&p, ActivateToActivate, 0, 70, |l, c| {
        l.act(0, B0).pre(39, B0).act(c, B0);
    });
    // Two ranks have two data buses.
    let apart = log(&p, |l| _ = l.act(0, B0).act(4, R1).rd(40, B0).rd(41, R1));
    assert_eq!(audit(&p, &apart).err(), None);
    active.rising_edges = true;
    p.active = Some(active);
    caught(&p, Edge, |l| _ = l.act(4, B0));
}

/// One bank at a time, and the next tRREFD later.
#[test]
fn refreshes_of_one_bank() {
    let mut p = mixed();
    (p.geometry.banks, p.geometry.ranks, p.geometry.channels) = (4, 1, 1);
    (p.timing.tREFI, p.timing.tRFC, p.timing.tRRD) = (10_000, 500, 4);
    (p.groups.count, p.refreshes.tRFCsb, p.refreshes.tRREFD) = (2, 100, 20);
    p.refreshes.banks = 1;
    let [b0, b1] = [0, 1].map(|bank| (0, 0, bank));
    passes(&p, |l| _ = l.refresh(0, b0).refresh(20, b1).act(100, b0));
    caught(&p, Rule::RefreshToRefresh, |l| {
        _ = l.refresh(0, b0).refresh(19, b1)
    });
    caught(&p, Rule::AfterRefresh, |l| _ = l.refresh(0, b0).act(99, b0));
}

/// One bank of each of two groups is refreshed at a time: 0 and 1, then 2 and 3.
#[test]
fn refreshes_of_one_bank_of_each_group() {
    use Rule::*;
    let mut p = mixed();
    (p.geometry.banks, p.geometry.ranks, p.geometry.channels) = (4, 1, 1);
    (p.timing.tREFI, p.timing.tRFC, p.timing.tRRD) = (10_000, 500, 4);
    (p.groups.count, p.refreshes.tRFCsb, p.refreshes.tREFSBRD) = (2, 100, 30);
    let (first, second) = ((0, 0, 0), (0, 0, 2));
    let [b1, b2] = [1, 2].map(|bank| (0, 0, bank));
    for (rule, wait, refreshes, bank) in [
        (AfterRefresh, 100, false, 1),
        (RefreshToRefresh, 100, true, 2),
        (RefreshToActivate, 30, false, 3),
    ] {
        let after = |cycle: u64| {
            move |l: &mut Log| match l.refresh(0, first) {
                l if refreshes => _ = l.refresh(cycle, (0, 0, bank)),
                l => _ = l.act(cycle, (0, 0, bank)),
            }
        };
        passes(&p, after(wait));
        let violation = caught(&p, rule, after(wait - 1));
        assert_eq!((violation.required, violation.actual), (wait, wait - 1));
    }
    passes(&p, |l| _ = l.act(0, b1).refresh(4, second));
    caught(&p, ActivateToRefresh, |l| {
        _ = l.act(0, b1).refresh(3, second)
    });
    caught(&p, RefreshOpen, |l| _ = l.act(0, b1).refresh(80, first));
    passes(&p, |l| _ = l.act(0, b1).prea(39, first).refresh(56, first));
    caught(&p, PrechargeToRefresh, |l| {
        _ = l.act(0, b1).prea(39, first).refresh(55, first)
    });
    // A precharge of other banks closes none of these.
    caught(&p, RefreshOpen, |l| {
        _ = l.act(0, b2).prea(39, first).refresh(56, second)
    });
    caught(&p, Unused, |l| _ = l.refresh(0, b1));
    // Each set is due on its own.
    passes(&p, |l| _ = l.refresh(80_000, first).refresh(80_100, second));
    caught(&p, RefreshMissing, |l| {
        _ = l.refresh(80_000, first).act(90_001, b1)
    });
}

#[test]
fn refreshes_come_in_time() {
    let mut p = mixed();
    (p.timing.tREFI, p.geometry.ranks, p.geometry.channels) = (1_000, 1, 1);
    let refreshes = |cycles: &'static [u64]| {
        move |l: &mut Log| {
            for &cycle in cycles {
                l.refresh(cycle, B0);
            }
        }
    };
    passes(&p, refreshes(&[9_000, 10_000, 11_000, 12_000]));
    caught(&p, Rule::RefreshInterval, refreshes(&[9_001]));
    passes(&p, refreshes(&[1_000, 2_000, 2_500, 11_500]));
    caught(
        &p,
        Rule::RefreshInterval,
        refreshes(&[1_000, 2_000, 2_500, 11_501]),
    );
    // Near enough to each other, but ever more are owed.
    caught(&p, Rule::RefreshMissing, refreshes(&[8_000, 11_000]));
    // None at the log's end, on whatever channel or rank.
    passes(&p, |l| _ = l.act(9_000, B0));
    let violation = caught(&p, Rule::RefreshMissing, |l| _ = l.act(9_001, B0));
    assert_eq!((violation.required, violation.actual), (9_000, 9_001));
    (p.geometry.ranks, p.geometry.channels) = (2, 2);
    let mut busy = log(&p, |l| {
        for at in [B0, R1, (1, 0, 0), (1, 1, 0)] {
            l.refresh(9_000, at).1.last_mut().unwrap().cycle += u64::from(at.1);
        }
    });
    let violation = audit(&p, &busy).unwrap_err();
    assert_eq!(violation.rule, Rule::RefreshInterval);
    busy.iter_mut().for_each(|c| c.cycle -= 1);
    audit(&p, &busy).unwrap();
    busy.pop();
    busy.last_mut().unwrap().cycle = 9_500;
    busy[2].cycle = 8_999;
    let violation = audit(
        &p,
        &[&busy[..], &log(&p, |l| _ = l.act(9_501, (1, 0, 0)))].concat(),
    );
    let violation = violation.unwrap_err();
    assert_eq!(violation.rule, Rule::RefreshMissing);
    assert_eq!((violation.channel, violation.rank), (1, 1));
    // Without refresh nothing is ever due.
    p.timing.tREFI = 0;
    passes(&p, |l| _ = l.act(1 << 40, B0));
}

#[test]
fn writes_are_interrupted_and_go_on_in_turn() {
    use CommandKind::{Cancel, Pause, Resume};
    let mut p = mixed();
    p.pausing = Some(PausingParams {
        pauses: true,
        threshold: 0,
        iterations: 4,
        times: 1,
    });
    let t = p.timing.clone();
    // The array is written from `from` on, in four iterations of 5 cycles; long after, it is written again.
    let (wr, late) = (200, 1_000);
    let from = wr + t.tCWD + t.tBURST;
    let whole = late + 20 + t.off_chip;
    let rest = whole - 10;
    let paused = |l: &mut Log| _ = l.act(0, B0).wr(wr, B0).turn(from + 7, Pause, from + 10);
    passes(&p, |l| {
        paused(l);
        l.turn(late, Resume, rest);
    });
    caught(&p, Rule::Done, |l| {
        l.act(0, B0).wr(wr, B0).turn(from + 7, Pause, from + 11);
    });
    caught(&p, Rule::Done, |l| {
        paused(l);
        l.turn(late, Resume, rest + 1);
    });
    for (cycle, kind) in [
        (from - 1, Pause),
        (from + 20, Pause),
        (from + 7, Cancel),
        (late, Resume),
    ] {
        caught(&p, Rule::Interruption, |l| {
            l.act(0, B0).wr(wr, B0).turn(cycle, kind, cycle);
        });
    }
    // Once is enough; another line is not what is written.
    caught(&p, Rule::Interruption, |l| {
        paused(l);
        l.turn(late, Resume, rest).turn(late + 1, Pause, late + 5);
    });
    caught(&p, Rule::Interruption, |l| {
        paused(l);
        l.1.last_mut().unwrap().place += 1;
    });
    // While it is interrupted: no other write, no refresh, no end.
    caught(&p, Rule::WriteInterrupted, paused);
    caught(&p, Rule::WriteInterrupted, |l| {
        paused(l);
        l.wr(late, B0);
    });
    caught(&p, Rule::WriteInterrupted, |l| {
        paused(l);
        l.pre(late, B0).refresh(late + 100, B0);
    });
    // The bank is free when its iteration has ended, and again when the rest has.
    let read = wr + t.tCWD + t.tBURST + 10 + t.tWTR;
    for (earlier, rule) in [(0, None), (1, Some(Rule::WriteToReadSameBank))] {
        let change = |l: &mut Log| {
            paused(l);
            l.rd(read - earlier, B0);
            if earlier == 0 {
                l.turn(late, Resume, rest);
            }
        };
        check(&p, rule, change);
        let change = |l: &mut Log| {
            paused(l);
            l.turn(late, Resume, rest);
            l.rd(late + 10 + t.tWTR - earlier, B0);
        };
        check(&p, rule, change);
    }
    let quiet = wr + t.tCWD + t.tBURST + 10 + t.tWR;
    let on = |cycle| {
        move |l: &mut Log| {
            paused(l);
            l.turn(cycle, Resume, cycle + rest - late);
        }
    };
    passes(&p, on(quiet));
    caught(&p, Rule::WriteToPrecharge, on(quiet - 1));
    // Cancelled while less than half is done.
    p.pausing.as_mut().unwrap().threshold = 50;
    passes(&p, |l| {
        let at = from + 9;
        l.act(0, B0).wr(wr, B0).turn(at, Cancel, at);
        l.turn(late, Resume, whole);
    });
    caught(&p, Rule::Interruption, |l| {
        l.act(0, B0).wr(wr, B0).turn(from + 9, Pause, from + 10);
    });
    caught(&p, Rule::Interruption, |l| {
        let at = from + 10;
        l.act(0, B0).wr(wr, B0).turn(at, Cancel, at);
    });
    p.pausing = None;
    caught(&p, Rule::Interruption, paused);
}

fn check(p: &MediumParams, rule: Option<Rule>, change: impl Fn(&mut Log)) {
    match rule {
        Some(rule) => _ = caught(p, rule, change),
        None => passes(p, change),
    }
}
