//! Whoever listens to a run hears what its figures count, and changes nothing.

use std::collections::HashMap;

use sardonyx::config::Machine;
use sardonyx::controller::designs::{self, Stack};
use sardonyx::engine::{Answer, Request};
use sardonyx::machine::Outcome;
use sardonyx::plan::command::{CommandKind, CommandLog};
use sardonyx::plan::journal::Journal;
use sardonyx::plan::observe::Observer;
use sardonyx::stats::Direction;
use sardonyx::units::Time;
use sardonyx_listeners::timeline::{Timeline, TimelineWindow};
use sardonyx_workload::{DurabilityKind, ProgramSpec, timed};

/// One record a request: when it arrived, entered, was accepted and was answered.
#[derive(Default)]
struct Requests {
    under_way: HashMap<u32, (Time, Option<Time>)>,
    done: Vec<(Direction, [Time; 4])>,
}

impl Observer for Requests {
    fn admitted(&mut self, now: Time, number: u32, request: &Request) {
        let before = self.under_way.insert(number, (now, None));
        assert!(before.is_none(), "{request:?} was under way");
    }

    fn accepted(&mut self, now: Time, number: u32, _request: &Request) {
        let of = self.under_way.get_mut(&number);
        of.expect("it was admitted").1 = Some(now);
    }

    fn answered(&mut self, number: u32, answer: &Answer) {
        let request = answer.request;
        let of = self.under_way.remove(&number);
        let (admitted, accepted) = of.expect("it was admitted");
        assert_eq!(admitted, answer.admitted);
        let accepted = accepted.unwrap_or(answer.at);
        let times = [request.arrival, admitted, accepted, answer.at];
        if request.counted {
            self.done.push((request.kind, times)); // not what writes metadata back
        }
    }
}

fn run(
    design: &str,
    listen: impl FnOnce(&mut sardonyx::memory::Memory),
) -> (Outcome, sardonyx::memory::Memory) {
    let machine = Machine::load("sca", &[] as &[(&str, &str)]).unwrap();
    let spec = ProgramSpec {
        name: "btree".into(),
        item_bytes: 128,
        footprint: 16_384,
        transactions: 60,
        seed: 3,
        durability: DurabilityKind::on(&Stack::named(design).unwrap()),
        ..ProgramSpec::default()
    };
    let mut system = timed::system(&machine, design, &spec, 2, 0).unwrap();
    listen(system.memory());
    let outcome = system.run(&mut |_| true).unwrap();
    (outcome, system.into_memory())
}

/// Breaks if a listener is told of a request twice, late or not at all, or if listening costs simulated time.
#[test]
fn what_listeners_hear_is_what_the_figures_count() {
    for design in designs::all() {
        let name = design.name;
        let (alone, _) = run(name, |_| {});
        let (heard, mut memory) = run(name, |memory| {
            memory.observe(Requests::default());
            memory.observe(CommandLog::default());
            let window = TimelineWindow {
                first: None,
                requests: 200,
            };
            let machine = Machine::load("sca", &[] as &[(&str, &str)]).unwrap();
            memory.observe(Timeline::new(&machine.engine, window));
        });
        assert_eq!(heard, alone, "{name}: listening changes the run");
        let figure = |name: &str| alone.figures.named(name).number().expect("a number");
        let requests = memory.take::<Requests>().expect("it listens").done;
        assert!(
            requests.iter().all(|(_, times)| times.is_sorted()),
            "{name}"
        );
        for (kind, of) in [(Direction::Read, "read"), (Direction::Write, "write")] {
            let of_kind = requests.iter().filter(|(known, _)| *known == kind);
            let latencies: Vec<f64> = of_kind
                .map(|(_, [from, .., to])| to.since(*from).ns())
                .collect();
            let mean = latencies.iter().sum::<f64>() / latencies.len() as f64;
            let counted = figure(&format!("mean_{of}_latency_ns"));
            assert!(
                (mean - counted).abs() < 1e-6,
                "{name} {of}: {mean} and {counted}"
            );
            assert_eq!(latencies.len() as f64, figure(&format!("{of}s")));
        }
        let commands = memory
            .take::<CommandLog>()
            .expect("it listens")
            .by_channel();
        let writes = commands
            .iter()
            .filter(|c| matches!(c.kind, CommandKind::Write { .. }));
        assert_eq!(writes.count() as f64, figure("medium_writes"), "{name}");

        let (closely, _) = run(name, |memory| memory.observe(Journal::default()));
        // The extra steps take no time; under which cause a wait for a log is booked may be another.
        assert_eq!(
            closely.figures, alone.figures,
            "{name}: listening closely changes the run"
        );
        assert_eq!(closely.write_latency_cdf, alone.write_latency_cdf, "{name}");
    }
}
