//! The engine against NVMain 2's measured behaviour on known traces (configuration A): every
//! single case exactly, the million-request rows within 2 %. docs/inside/accuracy.md has the figures.

use crate::memory_common::request;
use sardonyx::config::Machine;
use sardonyx::engine::{Answer, Engine};
use sardonyx::line::{Place, ZERO_LINE};
use sardonyx::medium::params::EngineParams;
use sardonyx::plan::command::CommandLog;
use sardonyx::plan::{At, Step, Stored};
use sardonyx::stats::Direction;
use sardonyx::units::Time;
use sardonyx_base::random::SplitMix64;

const CLOCK: u64 = 2500;
const ROW_LINES: u64 = 64;
const BANKS: u64 = 8;

fn params() -> EngineParams {
    let none: [(&str, &str); 0] = [];
    Machine::load("nvmain-a", &none).expect("a preset").engine
}

fn place(row: u64, bank: u64, column: u64) -> Place {
    Place((row * BANKS + bank) * ROW_LINES + column)
}

fn admit(engine: &mut Engine, kind: Direction, place: Place, tag: u64, now: Time) {
    let request = request(kind, tag, now);
    engine.admit(request, now, |plan| match kind {
        Direction::Read => Stored::at(plan.read(place, Step::PAST).at),
        Direction::Write => plan.write(place, At::past(&ZERO_LINE), Step::PAST),
    });
}

/// Feeds requests that all arrive at cycle 200, as fast as the queues take them but at most
/// `a_cycle` in a memory cycle; gives for each the cycle of its completion less 200.
fn run(requests: &[(Direction, Place)], a_cycle: usize) -> (Engine, Vec<u64>) {
    let mut engine = Engine::new(&params());
    engine.observe(CommandLog::default());
    let start = Time::from_ps(200 * CLOCK);
    let mut done = vec![0; requests.len()];
    let (mut next, mut taken) = (0, (0, 0));
    let note = |done: &mut Vec<u64>, answer: Answer| {
        done[answer.request.tag as usize] = answer.at.ps() / CLOCK - 200;
    };
    loop {
        while next < requests.len() && engine.admits() {
            let (kind, place) = requests[next];
            let mut now = engine.now().max(start);
            if taken.0 == now.ps() / CLOCK && taken.1 == a_cycle {
                now = Time::from_ps((taken.0 + 1) * CLOCK);
            }
            if engine.next_event() < now {
                break;
            }
            if taken.0 != now.ps() / CLOCK {
                taken = (now.ps() / CLOCK, 0);
            }
            taken.1 += 1;
            admit(&mut engine, kind, place, next as u64, now);
            next += 1;
            if next == requests.len() {
                engine.end_of_input();
            }
        }
        if engine.next_event() == Time::NEVER && !engine.force_drain() {
            break;
        }
        engine.advance();
        engine.answers().for_each(|answer| note(&mut done, answer));
    }
    engine.assert_at_rest();
    (engine, done)
}

fn done(requests: &[(Direction, Place)]) -> Vec<u64> {
    run(requests, usize::MAX).1
}

#[test]
fn single_read() {
    assert_eq!(done(&[(Direction::Read, place(0, 0, 0))]), [46]);
}

#[test]
fn single_write_is_drained_at_the_end_of_the_trace() {
    assert_eq!(done(&[(Direction::Write, place(0, 0, 0))]), [109]);
}

#[test]
fn two_reads_of_one_row() {
    let reads = [0, 1].map(|column| (Direction::Read, place(0, 0, column)));
    assert_eq!(done(&reads), [46, 50]);
}

#[test]
fn two_reads_of_one_bank_and_different_rows() {
    let reads = [0, 1].map(|row| (Direction::Read, place(row, 0, 0)));
    assert_eq!(done(&reads), [46, 82]);
}

#[test]
fn two_reads_of_different_banks() {
    let reads = [0, 1].map(|bank| (Direction::Read, place(0, bank, 0)));
    assert_eq!(done(&reads), [46, 50]);
}

#[test]
fn write_then_read_of_one_bank_and_different_rows() {
    let pair = [
        (Direction::Write, place(0, 0, 0)),
        (Direction::Read, place(1, 0, 0)),
    ];
    assert_eq!(done(&pair), [145, 46]);
}

#[test]
fn eight_reads_one_a_bank() {
    let reads: Vec<_> = (0..8)
        .map(|bank| (Direction::Read, place(0, bank, 0)))
        .collect();
    let (mut engine, done) = run(&reads, usize::MAX);
    assert_eq!(done.iter().max(), Some(&78));
    let log = engine
        .take::<CommandLog>()
        .expect("it listens")
        .by_channel();
    let activates = log.iter().filter(|command| {
        matches!(
            command.kind,
            sardonyx::plan::command::CommandKind::Activate { .. }
        )
    });
    let cycles: Vec<u64> = activates.map(|command| command.cycle).collect();
    assert_eq!(cycles, [201, 205, 209, 213, 221, 225, 229, 233]);
}

#[test]
fn forty_writes_over_eight_banks() {
    let writes: Vec<_> = (0..40)
        .map(|i| (Direction::Write, place(i / BANKS, i % BANKS, 0)))
        .collect();
    assert_eq!(done(&writes).iter().max(), Some(&537));
}

struct Measured {
    total: u64,
    read: Option<(f64, f64)>,
    write: Option<(f64, f64)>,
    energy_nj: f64,
}

fn million(next: impl FnMut(u64) -> (Direction, Place)) -> Measured {
    let requests: Vec<_> = (0..1_000_000).map(next).collect();
    let (engine, _) = run(&requests, usize::MAX);
    let mean = |kind| {
        let service = engine.service(kind);
        let mean = |time: Time| time.ps() as f64 / CLOCK as f64 / service.accesses as f64;
        (service.accesses > 0).then(|| (mean(service.queued), mean(service.total)))
    };
    Measured {
        total: engine.now().ps() / CLOCK,
        read: mean(Direction::Read),
        write: mean(Direction::Write),
        energy_nj: engine.ledger().grand_total().energy.nj(),
    }
}

fn within_two_percent(what: &str, ours: f64, nvmain: f64) {
    let gap = ours / nvmain - 1.0;
    println!(
        "{what}: {ours:.1} against {nvmain:.1}, {:+.2} %",
        gap * 100.0
    );
    assert!(
        gap.abs() <= 0.02,
        "{what}: {ours} is not within 2 % of {nvmain}"
    );
}

/// SplitMix64, for addresses uniform over 1 GiB.
fn random(seed: u64) -> impl FnMut() -> u64 {
    let mut numbers = SplitMix64(seed);
    move || numbers.draw()
}

const GIB_LINES: u64 = 1 << 24;

#[test]
#[ignore = "slow: a million requests"]
fn a_million_random_requests_half_of_them_reads() {
    let mut random = random(1);
    let ours = million(|_| {
        let draw = random();
        let kind = if draw >> 63 == 0 {
            Direction::Read
        } else {
            Direction::Write
        };
        (kind, Place(draw % GIB_LINES))
    });
    let (read, write) = (ours.read.expect("reads"), ours.write.expect("writes"));
    within_two_percent("cycles", ours.total as f64, 9_716_498.0);
    within_two_percent("read queue", read.0, 622.1);
    within_two_percent("read total", read.1, 697.9);
    within_two_percent("write queue", write.0, 441.5);
    within_two_percent("write total", write.1, 589.8);
    within_two_percent("energy", ours.energy_nj, 4_121_636.0);
}

#[test]
fn a_million_sequential_reads() {
    let ours = million(|i| (Direction::Read, Place(i % GIB_LINES)));
    let read = ours.read.expect("reads");
    within_two_percent("cycles", ours.total as f64, 4_000_061.0);
    within_two_percent("read queue", read.0, 128.0);
    within_two_percent("read total", read.1, 148.2);
    within_two_percent("energy", ours.energy_nj, 1_489_999.0);
}

#[test]
#[ignore = "slow: a million requests"]
fn a_million_random_writes() {
    let mut random = random(2);
    let ours = million(|_| (Direction::Write, Place(random() % GIB_LINES)));
    let write = ours.write.expect("writes");
    within_two_percent("cycles", ours.total as f64, 14_130_466.0);
    within_two_percent("write queue", write.0, 309.0);
    within_two_percent("write total", write.1, 477.2);
    within_two_percent("energy", ours.energy_nj, 6_750_000.0);
}
