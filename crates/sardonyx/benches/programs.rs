//! Simulated memory operations a second of one core with caches, data and encryption on: each
//! program under `sca` over 16 MiB, and loads that mostly hit. Setup is not counted. `make bench`
//! runs it; `--transactions N` changes the length, `--design NAME` the design, `--only NAME` picks a row.

use std::time::Instant;

use sardonyx::config::Machine;
use sardonyx::line::Virtual;
use sardonyx::machine::{Batch, OpKind, OpSource, RunError, System, Warmup};
use sardonyx::memory::Memory;
use sardonyx::units::Time;
use sardonyx_workload::{self as workload, ProgramSpec, timed};

/// Nine in ten operations on 256 hot lines, the others over 16 MiB; one in three a store.
struct Mix {
    left: u64,
    state: u64,
}

impl OpSource for Mix {
    fn name(&self) -> &str {
        "mix"
    }

    fn refill(&mut self, _: Time, batch: &mut Batch) -> Result<bool, RunError> {
        for _ in 0..self.left.min(256) {
            self.state = self
                .state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            let draw = self.state >> 24;
            let line = match draw % 10 {
                0 => draw / 10 % (1 << 18),
                _ => draw / 10 % 256,
            };
            batch.compute(3);
            match draw % 3 {
                0 => batch.store(Virtual(line), 0, &draw.to_le_bytes(), false),
                _ => batch.push(OpKind::Load { from: 0, len: 8 }, Virtual(line)),
            }
        }
        let more = self.left > 0;
        self.left = self.left.saturating_sub(256);
        Ok(more)
    }

    fn pages(&self) -> u64 {
        1 << 12
    }
}

fn measure(machine: &Machine, memory: Memory, source: Box<dyn OpSource>) -> (f64, f64) {
    let system = System::of_programs(machine, memory, vec![source], Warmup::Requests(0));
    let mut system = system.expect("a system");
    let start = Instant::now();
    let outcome = system.run(&mut |_| true).expect("a run");
    let took = start.elapsed().as_secs_f64();
    let figure = |name: &str| outcome.figures.named(name).number().expect("a number");
    (
        figure("memory_operations") / took / 1e6,
        figure("requests") / figure("memory_operations"),
    )
}

fn main() {
    let args: Vec<String> = std::env::args().collect();
    let value = |name: &str| {
        let at = args.iter().position(|arg| arg == name)?;
        args.get(at + 1).cloned()
    };
    let transactions = value("--transactions").map_or(20_000, |n| n.parse().expect("a number"));
    let only = value("--only");
    let wanted = |name: &str| only.as_ref().is_none_or(|only| only == name);
    let design = value("--design").unwrap_or_else(|| "sca".into());
    let none: [(&str, &str); 0] = [];
    let machine = Machine::load("sca", &none).expect("a preset").with_cores(1);
    println!("simulated memory operations a second, one core, {design}");
    for known in workload::all().iter().filter(|known| wanted(known.name)) {
        let spec = ProgramSpec {
            name: known.name.into(),
            item_bytes: 64,
            footprint: 16 << 20,
            transactions,
            seed: 1,
            ..ProgramSpec::default()
        };
        let mut set_up = timed::set_up(&machine, &spec, 1).expect("it fits");
        let memory = timed::prefilled(&machine, &design, &set_up).expect("a design");
        let program = set_up.pop().expect("one program");
        let (rate, share) = measure(&machine, memory, Box::new(program));
        let percent = 100.0 * share;
        println!(
            "{:<12} {rate:>6.2} M  {percent:>5.1} % of them requests to memory",
            known.name
        );
    }
    if !wanted("mix") {
        return;
    }
    let memory = Memory::new(&machine, &design).expect("a design");
    let mix = Mix {
        left: transactions * 100,
        state: 1,
    };
    let (rate, share) = measure(&machine, memory, Box::new(mix));
    println!(
        "{:<12} {rate:>6.2} M  {:>5.1} % of them requests to memory",
        "mix",
        100.0 * share
    );
}
