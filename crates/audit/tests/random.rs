//! The auditor against a second checker, written another way: it keeps for every bank, rank and
//! channel the first cycle at which each command may come. An issuer that asks only that checker
//! makes random legal logs; then one command is changed, and both must agree on the outcome.
use proptest::prelude::*;
use sardonyx::config::Machine;
use sardonyx::medium::params::MediumParams;
use sardonyx::plan::command::{Command, CommandKind as Kind};
use sardonyx_audit::{Rule, audit};
use sardonyx_base::random::SplitMix64;

#[derive(Clone, Default)]
struct Bank {
    open: Option<u64>,
    act: u64,
    /// The first cycles for a read and a write of an open row.
    column: [u64; 2],
    read: u64,
    write: u64,
    pre: u64,
}

#[derive(Clone, Default)]
struct Rank {
    any: u64,
    act: u64,
    acts: Vec<u64>,
    read: u64,
    write: u64,
    refreshes: Vec<u64>,
    banks: Vec<Bank>,
}

#[derive(Clone, Default)]
struct Channel {
    next: u64,
    ranks: Vec<Rank>,
    data: Vec<(u64, u64, u32)>,
}

struct Model<'a>(&'a MediumParams, Vec<Channel>);

impl Model<'_> {
    fn new(p: &MediumParams) -> Model<'_> {
        let rank = Rank {
            banks: vec![Bank::default(); p.geometry.banks as usize],
            ..Rank::default()
        };
        let channel = Channel {
            ranks: vec![rank; p.geometry.ranks as usize],
            ..Channel::default()
        };
        Model(p, vec![channel; p.geometry.channels as usize])
    }

    /// Takes the command, or says that it is illegal and takes nothing.
    fn issue(&mut self, c: &Command) -> bool {
        let (t, g) = (&self.0.timing, &self.0.geometry);
        let to_write = match self.0.groups.tRCDWR {
            0 => t.tRCD,
            other => other,
        };
        let Some(channel) = self.1.get_mut(c.channel as usize) else {
            return false;
        };
        if c.rank as usize >= channel.ranks.len() || c.bank as u64 >= g.banks {
            return false;
        }
        let now = c.cycle;
        let rank = &mut channel.ranks[c.rank as usize];
        if now < channel.next || now < rank.any {
            return false;
        }
        let bank = &mut rank.banks[c.bank as usize];
        match c.kind {
            Kind::Activate { row } => {
                let fourth = rank.acts.iter().rev().nth(3).map_or(0, |a| a + t.tFAW);
                if bank.open.is_some() || now < bank.act.max(rank.act).max(fourth) {
                    return false;
                }
                *bank = Bank {
                    open: Some(row),
                    column: [t.tRCD, to_write].map(|wait| now + wait),
                    pre: now + t.tRAS,
                    ..bank.clone()
                };
                rank.act = now + t.tRRD;
                rank.acts.push(now);
            }
            Kind::Read {
                row,
                auto_precharge,
            }
            | Kind::Write {
                row,
                auto_precharge,
            } => {
                let write = matches!(c.kind, Kind::Write { .. });
                let (wait, ready) = if write {
                    (t.tCWD, bank.write.max(rank.write))
                } else {
                    (t.tCL, bank.read.max(rank.read))
                };
                let (from, to) = (now + wait, now + wait + t.tBURST);
                let gap = |r: u32| if r == c.rank { 0 } else { t.tRTRS };
                let meets = |&(f, e, r): &(u64, u64, u32)| from < e + gap(r) && f < to + gap(r);
                let place = ((row * g.ranks + u64::from(c.rank)) * g.banks + u64::from(c.bank))
                    * g.channels
                    + u64::from(c.channel);
                if bank.open != Some(row)
                    || now < ready.max(bank.column[usize::from(write)])
                    || channel.data.iter().any(meets)
                    || c.place < place * g.columns
                    || c.place >= (place + 1) * g.columns
                    || c.done != done(self.0, c)
                {
                    return false;
                }
                let transfer = t.tBURST.max(t.tCCD);
                if write {
                    bank.write = bank.write.max(now + transfer + t.tWP);
                    bank.read = bank.read.max(to + t.tWTR + t.tWP);
                    bank.pre = bank.pre.max(to + t.tWP + t.tWR);
                } else {
                    let close = (now + t.tBURST + t.tRTP).saturating_sub(t.tCCD).max(now);
                    bank.pre = bank.pre.max(close);
                }
                if auto_precharge {
                    (bank.open, bank.act) = (None, bank.pre + t.tRP);
                }
                let turn = (now + t.tCL + t.tBURST + t.tRTRS).saturating_sub(t.tCWD);
                for (number, rank) in (0..).zip(&mut channel.ranks) {
                    let again = now + transfer + gap(number);
                    if !write {
                        rank.read = rank.read.max(again);
                        rank.write = rank.write.max(turn);
                    } else {
                        rank.write = rank.write.max(again);
                        if number == c.rank {
                            rank.read = rank.read.max(to + t.tWTR);
                        }
                    }
                }
                channel.data.push((from, to, c.rank));
            }
            Kind::Precharge => {
                if bank.open.is_none() || now < bank.pre {
                    return false;
                }
                (bank.open, bank.act) = (None, now + t.tRP);
            }
            Kind::PrechargeAll => {
                if c.bank != 0 || rank.banks.iter().any(|b| b.open.is_some() && now < b.pre) {
                    return false;
                }
                for bank in rank.banks.iter_mut().filter(|b| b.open.is_some()) {
                    (bank.open, bank.act) = (None, now + t.tRP);
                }
            }
            Kind::Refresh => {
                let busy = |b: &Bank| b.open.is_some() || now < b.act;
                if c.bank != 0 || rank.banks.iter().any(busy) {
                    return false;
                }
                rank.any = now + t.tRFC;
                rank.refreshes.push(now);
            }
            Kind::Pause | Kind::Cancel | Kind::Resume => return false,
        }
        channel.next = now + 1;
        matches!(c.kind, Kind::Read { .. } | Kind::Write { .. }) || (c.place, c.done) == (0, 0)
    }
}

fn done(p: &MediumParams, c: &Command) -> u64 {
    let t = &p.timing;
    match c.kind {
        Kind::Read { .. } => c.cycle + t.tCL + t.tBURST + t.off_chip,
        Kind::Write { .. } => c.cycle + t.tCWD + t.tBURST.max(t.tCCD) + t.tWP + t.off_chip,
        _ => 0,
    }
}

fn legal(p: &MediumParams, log: &[Command]) -> bool {
    let mut model = Model::new(p);
    if !log.iter().all(|c| model.issue(c)) {
        return false;
    }
    let due = p.timing.tREFI;
    let end = log.iter().map(|c| c.cycle).max().unwrap_or(0);
    let mut ranks = model.1.iter().flat_map(|c| &c.ranks);
    due == 0
        || ranks.all(|rank| {
            (0..=end).all(|now| {
                let before = rank.refreshes.iter().filter(|&&r| r < now);
                let (count, last) = before.fold((0, 0), |(n, _), &r| (n + 1, r));
                now <= (count + 9) * due && now - last <= 9 * due
            })
        })
}

/// A small generator, so that a case is its seed.
struct Dice(SplitMix64);

impl Dice {
    fn roll(&mut self, below: u64) -> u64 {
        self.0.draw() % below
    }
}

fn complete(p: &MediumParams, c: &mut Command, dice: &mut Dice) {
    let g = &p.geometry;
    if let Kind::Read { row, .. } | Kind::Write { row, .. } = c.kind {
        let above = (row * g.ranks + u64::from(c.rank)) * g.banks + u64::from(c.bank);
        c.place = (above * g.channels + u64::from(c.channel)) * g.columns + dice.roll(g.columns);
    } else {
        c.place = 0;
    }
    c.done = done(p, c);
}

fn kind(dice: &mut Dice) -> Kind {
    let (row, auto_precharge) = (dice.roll(2), dice.roll(4) == 0);
    match dice.roll(12) {
        0..3 => Kind::Activate { row },
        3..6 => Kind::Read {
            row,
            auto_precharge,
        },
        6..9 => Kind::Write {
            row,
            auto_precharge,
        },
        9 | 10 => Kind::Precharge,
        _ => Kind::PrechargeAll,
    }
}

/// Cycle by cycle, whatever the model lets through.
fn random_log(p: &MediumParams, cycles: u64, dice: &mut Dice) -> Vec<Command> {
    let g = &p.geometry;
    let (mut model, mut log) = (Model::new(p), Vec::new());
    for cycle in 0..cycles {
        for channel in 0..g.channels as u32 {
            for _ in 0..12 {
                let rank = dice.roll(g.ranks) as u32;
                let refreshed = &model.1[channel as usize].ranks[rank as usize].refreshes;
                let due = (refreshed.len() as u64 + 1) * p.timing.tREFI;
                let kind = if p.timing.tREFI > 0 && cycle >= due {
                    [Kind::PrechargeAll, Kind::Refresh][dice.roll(2) as usize]
                } else {
                    kind(dice)
                };
                let all = matches!(kind, Kind::PrechargeAll | Kind::Refresh);
                let bank = if all { 0 } else { dice.roll(g.banks) as u32 };
                let (place, done) = (0, 0);
                let mut c = Command {
                    cycle,
                    channel,
                    rank,
                    bank,
                    kind,
                    place,
                    done,
                };
                complete(p, &mut c, dice);
                if model.issue(&c) {
                    log.push(c);
                    break;
                }
            }
        }
    }
    log
}

fn mutate(p: &MediumParams, log: &mut Vec<Command>, dice: &mut Dice) {
    let index = dice.roll(log.len() as u64) as usize;
    let way = dice.roll(9);
    let mut c = log[index];
    match way {
        0..3 => c.cycle = (c.cycle + dice.roll(9)).saturating_sub(4),
        3 => c.bank = dice.roll(p.geometry.banks + 1) as u32,
        4 => c.rank = dice.roll(p.geometry.ranks + 1) as u32,
        5 => match &mut c.kind {
            Kind::Activate { row } | Kind::Read { row, .. } | Kind::Write { row, .. } => *row ^= 1,
            other => *other = kind(dice),
        },
        6 => c.kind = kind(dice),
        7 => c.place += 1,
        _ => {
            log.remove(index);
            return;
        }
    }
    if way != 7 {
        complete(p, &mut c, dice);
    }
    log[index] = c;
}

fn agree(p: &MediumParams, seed: u64, cycles: u64) -> (usize, Vec<u64>) {
    let dice = &mut Dice(SplitMix64(seed));
    let log = random_log(p, cycles, dice);
    assert!(legal(p, &log));
    let summary = audit(p, &log).unwrap_or_else(|violation| panic!("{violation}"));
    let mut caught = 0;
    for _ in 0..if log.is_empty() { 0 } else { 40 } {
        let mut changed = log.clone();
        mutate(p, &mut changed, dice);
        let found = audit(p, &changed);
        assert_eq!(found.is_ok(), legal(p, &changed), "{found:?}");
        caught += usize::from(found.is_err());
    }
    let tight = Rule::ALL.iter().map(|&rule| summary.tight(rule));
    (caught, tight.collect())
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

#[test]
fn presets_agree_and_their_rules_bind() {
    let (mut caught, mut bound) = (0, vec![0; Rule::ALL.len()]);
    for name in ["ddr4-2400", "nvmain-a", "esd"] {
        let mut p = preset(name);
        (p.geometry.ranks, p.geometry.banks) = (2, 4);
        p.timing.tREFI = p.timing.tREFI.min(900);
        for seed in 0..4 {
            let (found, tight) = agree(&p, seed, 4_000);
            caught += found;
            bound.iter_mut().zip(tight).for_each(|(sum, n)| *sum += n);
        }
    }
    assert!(caught > 100, "{caught} changes were caught");
    use Rule::*;
    for rule in [
        ActivateToColumn,
        AutoPrecharge,
        ReadToRead,
        ReadToWrite,
        WriteToRead,
    ] {
        assert!(bound[rule as usize] > 0, "{rule} never binds");
    }
}

proptest! {
    #![proptest_config(sardonyx_property::cases(64))]
    #[test]
    fn any_timing_agrees(t in prop::array::uniform16(0_u64..9), seed: u64, shape in 0_u32..8) {
        let mut p = preset("esd");
        let bit = |n: u32| 1 + u64::from(shape >> n & 1);
        (p.geometry.channels, p.geometry.ranks, p.geometry.banks) = (bit(0), bit(1), 8);
        p.geometry.columns = 4;
        let timing = &mut p.timing;
        [timing.tRCD, timing.tCL, timing.tCWD, timing.tRP] = [t[0], t[1], t[2], t[3]];
        [timing.tRAS, timing.tBURST, timing.tCCD, timing.tRRD] = [t[4], t[5] + 1, t[6], t[7]];
        [timing.tFAW, timing.tWTR, timing.tRTP, timing.tRTRS] = [t[8] * 3, t[9], t[10], t[11]];
        [timing.tWR, timing.tWP, timing.tRFC, timing.off_chip] = [t[12], t[13], t[14], t[15]];
        timing.tREFI = (bit(2) - 1) * 80;
        p.groups.tRCDWR = u64::from(shape >> 1 & 3) * 3;
        agree(&p, seed, 1_200);
    }
}
