//! The engine under random machines and random traffic, held against what needs no engine: the
//! auditor, a plain map of bytes, and sums.

use std::collections::BTreeMap;

use proptest::prelude::*;
use sardonyx::config::Machine;
use sardonyx::engine::{Engine, Request};
use sardonyx::line::{Line, Place, ZERO_LINE};
use sardonyx::medium::mapping::{AddressMapping, Field};
use sardonyx::medium::params::{
    ActiveParams, BankGroups, CommandQueueParams, CommandsOf, EngineParams, Geometry, GroupMerging,
    MediumParams, PagePolicy, Queues, Scheduler, Timing, Turns, Unit,
};
use sardonyx::medium::pausing::PausingParams;
use sardonyx::plan::command::{Command, CommandLog};
use sardonyx::plan::{At, Plan, Queue, Step, Stored};
use sardonyx::stats::{Cause, Direction, Ledger};
use sardonyx::units::Time;
use sardonyx_audit::audit;

fn power(exponents: std::ops::RangeInclusive<u32>) -> impl Strategy<Value = u64> {
    exponents.prop_map(|exponent| 1 << exponent)
}

fn geometry() -> impl Strategy<Value = Geometry> {
    (power(0..=2), power(0..=2), power(0..=3), power(1..=5)).prop_map(
        |(channels, ranks, banks, columns)| Geometry {
            channels,
            ranks,
            banks,
            rows: 16,
            columns,
        },
    )
}

fn timing() -> impl Strategy<Value = Timing> {
    let bank = (0..40u64, 1..20u64, 1..20u64, 0..20u64, 0..50u64);
    let bus = (1..8u64, 1..8u64, 0..8u64, 0..40u64);
    let turn = (0..10u64, 0..10u64, 0..4u64, 0..20u64, 0..80u64);
    let refresh = prop_oneof![Just((0, 0)), (1..120u64, 400..3000u64)];
    (bank, bus, turn, refresh, 0..12u64).prop_map(|(bank, bus, turn, refresh, off_chip)| Timing {
        clock: Time::from_ps(2500),
        tRCD: bank.0,
        tCL: bank.1,
        tCWD: bank.2,
        tRP: bank.3,
        tRAS: bank.4,
        tBURST: bus.0,
        tCCD: bus.1,
        tRRD: bus.2,
        tFAW: bus.3,
        tWTR: turn.0,
        // The equation subtracts tCCD - tBURST; parts never make it negative.
        tRTP: turn.1,
        tRTRS: turn.2,
        tWR: turn.3,
        tWP: turn.4,
        tRFC: refresh.0,
        tREFI: refresh.1,
        off_chip,
    })
}

fn queues() -> impl Strategy<Value = Queues> {
    let sizes = (1..12usize, 2..12usize, prop_oneof![Just(0), 1..6usize]);
    let marks = (any::<prop::sample::Index>(), any::<prop::sample::Index>());
    let flags = any::<[bool; 5]>();
    let starvation = prop_oneof![Just(None), (0..6u32).prop_map(Some)];
    (sizes, marks, flags, starvation).prop_map(|(sizes, marks, flags, starvation)| {
        let high_watermark = 1 + marks.0.index(sizes.1);
        Queues {
            reads: sizes.0,
            writes: sizes.1,
            counter_writes: sizes.2,
            high_watermark,
            low_watermark: marks.1.index(high_watermark),
            idle_writes: flags[0],
            forwarding: flags[1],
            forwarding_cycles: 1,
            coalescing: flags[2],
            refill_in_drain: flags[3],
            scheduler: match starvation {
                Some(0) => Scheduler::FrFcfs,
                Some(starvation) => Scheduler::FrFcfsCap { starvation },
                None => Scheduler::Fcfs,
            },
            page: match flags[4] {
                true => PagePolicy::Open,
                false => PagePolicy::Closed,
            },
        }
    })
}

/// Any order of the fields.
fn mapping() -> impl Strategy<Value = AddressMapping> {
    let orders = Just(Field::ALL.to_vec()).prop_shuffle();
    orders.prop_map(|order| AddressMapping {
        fields: order.try_into().expect("six fields"),
        groups: 1,
    })
}

/// Bank groups, and refreshes of one bank of each: their share of the time in which all may take place.
fn groups() -> impl Strategy<Value = (u32, [u64; 6])> {
    let longer = (0..12u64, 0..12u64, 0..12u64, 0..12u64, 0..100u64, 0..60u64);
    (
        0..3u32,
        longer.prop_map(|(a, b, c, d, e, f)| [a, b, c, d, e, f]),
    )
}

fn grouped(medium: &mut MediumParams, (shift, longer): (u32, [u64; 6])) {
    let (t, banks) = (&medium.timing, medium.geometry.banks);
    let count = (1 << shift).min(1 << banks.trailing_zeros());
    if count == 1 {
        return;
    }
    medium.mapping = medium.mapping.in_groups(count);
    let [column, written, activate, turn, share, others] = longer;
    let room = t.tREFI * count / banks;
    let refresh = room * share.saturating_sub(40) / 100;
    medium.groups = BankGroups {
        count,
        tCCD: [t.tCCD + column, t.tCCD + column + written],
        tRRD: t.tRRD + activate,
        tWTR: t.tWTR + turn,
        tRCDWR: t.tRCD / 2,
        tPPD: 0,
        t32AW: 0,
        tRTW: 0,
        writes_turn: true,
    };
    // Every third machine's refreshes are of one bank, and not of one of each group.
    let of_set = &mut medium.refreshes;
    of_set.tRFCsb = refresh;
    of_set.tREFSBRD = if refresh > 0 { others } else { 0 };
    if activate % 3 == 0 {
        (of_set.banks, of_set.tRREFD) = (1, others % 7);
        of_set.tRFCsb /= count;
    }
}

/// Half of the machines have array writes that reads interrupt.
fn pausing() -> impl Strategy<Value = Option<PausingParams>> {
    let one = (any::<bool>(), 0..=100u64, 1..20u64, 1..6u64);
    prop::option::of(
        one.prop_map(|(pauses, threshold, iterations, times)| PausingParams {
            pauses,
            threshold,
            iterations,
            times,
        }),
    )
}

/// Has accesses become active, on a machine that allows it.
fn activate(medium: &mut MediumParams, draw: u64) {
    let bursts = 1 << (draw % 2);
    for cycles in [&mut medium.timing.tBURST, &mut medium.timing.tCCD] {
        *cycles *= bursts;
    }
    // Halves of cycles are of one bus, whose commands take two.
    let rising_edges = draw.is_multiple_of(5);
    medium.active = Some(ActiveParams {
        bursts,
        bus_cycles: [1 + draw / 2 % 3, 1 + draw / 5 % 2, 1 + draw / 6 % 2],
        second_activate: draw / 12 % 3 * 4,
        data_clock: draw / 36 % 2 * 7,
        rank_buses: draw.is_multiple_of(3),
        rising_edges,
        stacks: 1 << (draw / 7 % 2),
        reopens: draw % 13 * 8,
        between_stacks: draw % 11,
    });
    medium.row_bus = draw % 4 > 1;
    if medium.row_bus {
        // Of LPDDR alone, which has one bus.
        let active = medium.active.as_mut().expect("it is set");
        (active.second_activate, active.data_clock) = (0, 0);
    }
}

fn params() -> impl Strategy<Value = EngineParams> {
    let unit = (0..40_000u64, 0..40_000u64);
    let medium = (
        geometry(),
        mapping(),
        pausing(),
        any::<[bool; 2]>(),
        groups(),
    );
    (medium, timing(), queues(), 1..20usize, unit).prop_map(
        |(
            (geometry, mapping, pausing, [by_member, again], groups),
            timing,
            queues,
            ingress,
            unit,
        )| {
            let mut params = preset();
            params.medium.geometry = geometry;
            params.medium.mapping = mapping;
            params.medium.pausing = pausing;
            params.medium.remerging = again;
            if by_member != again {
                params.medium.refreshes.turns = Turns::Together;
            }
            if pausing.is_none() && queues.scheduler != Scheduler::Fcfs {
                params.medium.command_queues = CommandQueueParams {
                    entries: ingress % 4 * (ingress % 2),
                    of: if again {
                        CommandsOf::Rank
                    } else {
                        CommandsOf::Bank
                    },
                };
                params.medium.row_bus = by_member;
            }
            params.medium.group_merging = match by_member {
                true => GroupMerging::Member,
                false => GroupMerging::All,
            };
            params.medium.timing = timing;
            grouped(&mut params.medium, groups);
            params.medium.groups.tPPD = ingress as u64 % 3 * 7;
            params.medium.groups.t32AW = ingress as u64 % 4 * 100;
            params.medium.groups.writes_turn = ingress % 5 > 1;
            params.medium.refreshes.closes_singly = ingress % 4 > 1;
            params.medium.passing = ingress % 3 == 0;
            if params.medium.pausing.is_none()
                && queues.scheduler != Scheduler::Fcfs
                && params.medium.command_queues.entries == 0
            {
                activate(&mut params.medium, unit.0);
            }
            params.medium.queues = queues;
            params.ingress = ingress;
            let aes = &mut params.units[Unit::Aes as usize];
            (aes.latency, aes.interval) = (Time::from_ps(unit.0), Time::from_ps(unit.1));
            params
        },
    )
}

fn preset() -> EngineParams {
    let machine = Machine::load::<&str, &str>("esd", &[]);
    machine.unwrap_or_else(|error| panic!("{error}")).engine
}

/// What a request does in the middle of its plan.
#[derive(Clone, Copy, Debug)]
enum Shape {
    /// One access.
    Plain,
    /// A unit first.
    AfterUnit,
    /// A read of another line first, and a unit after it.
    AfterRead(usize),
    /// A group of this write and a counter's, with a masked counter line.
    Group(usize, u8),
    /// A write with a sideband.
    Beside,
}

#[derive(Clone, Copy, Debug)]
struct Op {
    gap: u64,
    write: bool,
    line: usize,
    /// How many requests back lies one whose step this one waits for.
    after: Option<usize>,
    shape: Shape,
    counted: bool,
}

const LINES: usize = 24;
/// Picoseconds with dozens of refreshes in them.
const LONG_GAP: u64 = 300_000_000;

fn op() -> impl Strategy<Value = Op> {
    let shape = prop_oneof![
        4 => Just(Shape::Plain),
        1 => Just(Shape::AfterUnit),
        1 => (0..LINES).prop_map(Shape::AfterRead),
        2 => (0..4usize, any::<u8>()).prop_map(|(line, words)| Shape::Group(line, words)),
        1 => Just(Shape::Beside),
    ];
    let gap = prop_oneof![4 => Just(0), 3 => 0..20_000u64, 1 => 0..2_000_000u64, 1 => 0..LONG_GAP];
    let line = prop_oneof![1 => 0..LINES, 1 => 0..4usize];
    let after = prop::option::weighted(0.3, 0..8usize);
    (gap, any::<bool>(), line, after, shape, any::<bool>()).prop_map(
        |(gap, write, line, after, shape, counted)| Op {
            gap,
            write,
            line,
            after,
            shape,
            counted,
        },
    )
}

/// Lines that share rows and banks: eight bases, three lines from each.
fn places(bases: &[u64], geometry: &Geometry) -> Vec<Place> {
    let near = [0, 1, geometry.columns * geometry.channels];
    let place = |i: usize| {
        (bases[i % bases.len()] % geometry.lines() + near[i / bases.len()]) % geometry.lines()
    };
    let mut places: Vec<Place> = (0..LINES).map(|i| Place(place(i))).collect();
    places.sort_unstable();
    places.dedup();
    places
}

/// What must be in the medium in the end, kept by hand.
#[derive(Default)]
struct Plain {
    lines: BTreeMap<Place, Line>,
    beside: BTreeMap<Place, [u8; 8]>,
    accesses: [u64; 2],
    units: u64,
}

impl Plain {
    fn write(&mut self, place: Place, line: &Line, words: u8) {
        let kept = self.lines.entry(place).or_insert(ZERO_LINE);
        for byte in (0..64).filter(|byte| words >> (byte / 8) & 1 == 1) {
            kept[byte] = line[byte];
        }
        self.accesses[1] += 1;
    }

    fn read(&mut self, plan: &mut Plan, place: Place, after: Step) -> Step {
        let read = plan.read(place, after);
        assert_eq!(read.value, self.lines.get(&place).copied(), "{place:?}");
        assert_eq!(
            plan.peek_sideband(place),
            self.beside.get(&place).copied(),
            "{place:?}"
        );
        self.accesses[0] += 1;
        read.at
    }
}

fn handle(
    plan: &mut Plan,
    op: &Op,
    after: Step,
    id: u8,
    places: &[Place],
    p: &mut Plain,
) -> Stored {
    let place = places[op.line % places.len()];
    let mut after = after;
    match op.shape {
        Shape::AfterUnit => {
            after = plan.because(Cause::Encryption).unit(Unit::Aes, after);
            p.units += 1;
        }
        Shape::AfterRead(other) => {
            let mut plan = plan.because(Cause::Counter);
            after = p.read(&mut plan, places[other % places.len()], after);
            after = plan.unit(Unit::Aes, after);
            p.units += 1;
        }
        _ => {}
    }
    if !op.write {
        return Stored::at(p.read(plan, place, after));
    }
    let line = [id; 64];
    let data = At::new(&line, after);
    let group = match op.shape {
        Shape::Group(counter, words) => Some((places[counter % places.len()], words)),
        _ => None,
    };
    match (op.shape, group) {
        (_, Some((counter, words))) if counter != place => {
            p.write(place, &line, 0xff);
            p.write(counter, &line, words);
            let data = plan.write(place, data, Step::PAST);
            let line = At::past(&line);
            let beside = plan.because(Cause::Counter).write_words(
                counter,
                line,
                words,
                None,
                Step::PAST,
                Queue::Counter,
            );
            plan.group(&[data, beside]);
            Stored {
                accepted: plan.both(data.accepted, beside.accepted),
                done: plan.both(data.done, beside.done),
            }
        }
        (Shape::Beside, _) => {
            p.write(place, &line, 0xff);
            p.beside.insert(place, [id; 8]);
            plan.write_words(place, data, 0xff, Some([id; 8]), Step::PAST, Queue::Data)
        }
        _ => {
            p.write(place, &line, 0xff);
            plan.write(place, data, Step::PAST)
        }
    }
}

struct Ran {
    interruptions: u64,
    /// The commands, if somebody wanted to know them.
    log: Vec<Command>,
    answers: Vec<(u64, Time, Time)>,
    ledger: Ledger,
}

fn run(params: &EngineParams, ops: &[Op], places: &[Place], listens: bool) -> Ran {
    let mut engine = Engine::new(params);
    if listens {
        engine.observe(CommandLog::default());
    }
    let mut plain = Plain::default();
    let mut steps: Vec<Step> = Vec::new();
    let mut answers = Vec::new();
    let (mut next, mut arrival) = (0, Time::from_ps(ops[0].gap));
    let mut latency = [Time::ZERO; 2];
    loop {
        let event = engine.next_event();
        let now = arrival.max(engine.now());
        if next < ops.len() && engine.admits() && now < event {
            let op = ops[next];
            let request = Request {
                arrival,
                core: 0,
                tag: next as u64,
                kind: if op.write {
                    Direction::Write
                } else {
                    Direction::Read
                },
                counted: op.counted,
            };
            let after = op.after.and_then(|back| steps.len().checked_sub(back + 1));
            let after = after.map_or(Step::PAST, |index| steps[index]);
            engine.admit(request, now, |plan| {
                assert_eq!(plan.now(), now);
                let id = next as u8 + 1;
                let stored = handle(plan, &op, after, id, places, &mut plain);
                steps.push(stored.done);
                stored
            });
            next += 1;
            arrival += Time::from_ps(ops.get(next).map_or(0, |op| op.gap));
            if next == ops.len() {
                engine.end_of_input();
            }
        } else if event != Time::NEVER {
            engine.advance();
        } else if !engine.force_drain() {
            break;
        }
        for answer in engine.answers() {
            assert!(answer.request.arrival <= answer.admitted && answer.admitted <= answer.at);
            answers.push((answer.request.tag, answer.admitted, answer.at));
            if answer.request.counted {
                latency[answer.request.kind as usize] += answer.at - answer.request.arrival;
            }
        }
    }
    engine.assert_at_rest();
    let total = engine.ledger().grand_total();
    let booked = [total.read_latency, total.write_latency];
    assert_eq!(booked, latency, "latencies add up");
    let image: BTreeMap<Place, Line> = engine.image().written_lines().collect();
    assert_eq!(image, plain.lines);
    for (place, beside) in &plain.beside {
        assert_eq!(engine.image().sideband(*place), Some(*beside));
    }
    let service = [Direction::Read, Direction::Write].map(|kind| engine.service(kind));
    for kind in [0, 1] {
        let served = service[kind].accesses + service[kind].short_cuts;
        assert_eq!(served, plain.accesses[kind], "every access was served once");
    }
    assert_eq!(total.medium_reads, service[0].accesses);
    assert_eq!(total.medium_writes, service[1].accesses);
    assert_eq!(total.unit_uses, plain.units);
    let interruptions = engine.interruptions().unwrap_or_default();
    let worn = engine.image().wear().writes;
    // A write that was cancelled after it had begun has worn its line once more.
    let most = total.medium_writes + interruptions.cancelled;
    assert!((total.medium_writes..=most).contains(&worn));
    Ran {
        interruptions: interruptions.paused + interruptions.cancelled,
        ledger: engine.ledger().clone(),
        log: engine
            .take::<CommandLog>()
            .map_or_else(Vec::new, |log| log.by_channel()),
        answers,
    }
}

fn check(params: &EngineParams, ops: &[Op], places: &[Place]) {
    let ran = run(params, ops, places, true);
    let summary = audit(&params.medium, &ran.log).unwrap_or_else(|violation| panic!("{violation}"));
    let total = ran.ledger.grand_total();
    let bursts = params.medium.active.map_or(1, |active| active.bursts);
    assert_eq!(summary.reads, total.medium_reads * bursts);
    assert_eq!(summary.writes, total.medium_writes * bursts);
    assert_eq!(summary.interruptions, ran.interruptions);
    let mut tags: Vec<u64> = ran.answers.iter().map(|answer| answer.0).collect();
    tags.sort_unstable();
    assert!(tags.into_iter().eq(0..ops.len() as u64), "answered once");
    // A channel whose commands nobody hears skips the refreshes of an idle time, and nothing else is different.
    let idle = ops.iter().any(|op| op.gap > LONG_GAP / 8);
    let again = run(params, ops, places, !idle);
    assert!(idle || again.log == ran.log);
    assert_eq!(again.answers, ran.answers);
    assert_eq!(again.ledger, ran.ledger);
}

proptest! {
    #![proptest_config(sardonyx_property::cases(1500))]

    #[test]
    fn random_traffic_on_random_machines(
        params in params(),
        bases in prop::collection::vec(any::<u64>(), 8),
        ops in prop::collection::vec(op(), 1..120),
    ) {
        let places = places(&bases, &params.medium.geometry);
        check(&params, &ops, &places);
    }
}
