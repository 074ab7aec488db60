//! Power cuts at every operation of every program, against a plain model of encrypted persistent
//! memory: no controller, no engine, no cache geometry. A line whose data and counter are of
//! different writes reads as noise. Correct programs recover; each mutant is caught by some.

use std::collections::{BTreeMap, BTreeSet};

use sardonyx::line::{Line, Logical, ZERO_LINE};
use sardonyx::machine::{Batch, Op, OpKind, Phase};
use sardonyx_workload::{
    self as workload, Bytes, DurabilityKind, Flat, Mutant, ProgramRun, ProgramSpec,
};

struct Random(u64);

impl Random {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (self.0 >> 33) % end
    }
}

#[derive(Clone, Copy)]
struct Cached {
    line: Line,
    dirty: bool,
    atomic: bool,
}

/// A write on its way: accepted, and so persistent, at any time.
struct Pending {
    at: u64,
    line: Line,
    version: u64,
    atomic: bool,
}

struct Machine {
    random: Random,
    cached: BTreeMap<u64, Cached>,
    pending: Vec<Pending>,
    /// Counter lines to be written back when what is pending has been accepted.
    wanted: Vec<u64>,
    version: u64,
    data: BTreeMap<u64, (Line, u64)>,
    /// Counters of accepted data in the counter cache, and those in the medium.
    counters: BTreeMap<u64, u64>,
    stored_counters: BTreeMap<u64, u64>,
}

impl Machine {
    fn new(run: &ProgramRun, seed: u64) -> Machine {
        let data = (0..run.region().count).map(|line| (line, (*run.memory().line(line), 0)));
        Machine {
            random: Random(seed),
            cached: BTreeMap::new(),
            pending: Vec::new(),
            wanted: Vec::new(),
            version: 0,
            data: data.collect(),
            counters: BTreeMap::new(),
            stored_counters: BTreeMap::new(),
        }
    }

    fn play(&mut self, op: Op, batch: &Batch) {
        let line = op.line.0;
        match op.kind {
            OpKind::Store {
                from,
                len,
                atomic,
                bytes,
            } => {
                let cached = self.fetch(line);
                let from = usize::from(from);
                cached.line[from..from + usize::from(len)].copy_from_slice(batch.bytes(bytes, len));
                (cached.dirty, cached.atomic) = (true, cached.atomic || atomic);
            }
            OpKind::WriteBack => self.write_back(line),
            OpKind::CounterWriteBack => self.wanted.push(line / 8),
            OpKind::Fence => {
                while !self.pending.is_empty() {
                    self.accept(0);
                }
                for counters in std::mem::take(&mut self.wanted) {
                    self.write_counters(counters);
                }
            }
            _ => {}
        }
        // Whatever a machine may do by itself.
        match self.random.below(12) {
            0 if !self.cached.is_empty() => {
                let index = self.random.below(self.cached.len() as u64) as usize;
                let line = *self.cached.keys().nth(index).unwrap();
                self.write_back(line);
                self.cached.remove(&line);
            }
            1 | 2 if !self.pending.is_empty() => {
                let index = self.random.below(self.pending.len() as u64) as usize;
                self.accept(index);
            }
            3 if !self.counters.is_empty() => {
                let index = self.random.below(self.counters.len() as u64) as usize;
                let line = *self.counters.keys().nth(index).unwrap();
                self.write_counters(line / 8);
            }
            _ => {}
        }
    }

    fn fetch(&mut self, line: u64) -> &mut Cached {
        let pending = self.pending.iter().rev().find(|p| p.at == line);
        let newest = pending.map_or_else(|| self.data[&line].0, |p| p.line);
        self.cached.entry(line).or_insert(Cached {
            line: newest,
            dirty: false,
            atomic: false,
        })
    }

    fn write_back(&mut self, at: u64) {
        let Some(cached) = self.cached.get_mut(&at) else {
            return;
        };
        if !std::mem::take(&mut cached.dirty) {
            return;
        }
        self.version += 1;
        self.pending.push(Pending {
            at,
            line: cached.line,
            version: self.version,
            atomic: std::mem::take(&mut cached.atomic),
        });
    }

    /// Accepts a pending write, and before it the older ones of its line.
    fn accept(&mut self, index: usize) {
        let at = self.pending[index].at;
        let oldest = self.pending.iter().position(|p| p.at == at).unwrap();
        let write = self.pending.remove(oldest);
        self.data.insert(at, (write.line, write.version));
        match write.atomic {
            true => {
                self.counters.remove(&at);
                self.stored_counters.insert(at, write.version);
            }
            false => {
                self.counters.insert(at, write.version);
            }
        }
    }

    fn write_counters(&mut self, counter_line: u64) {
        let lines = counter_line * 8..counter_line * 8 + 8;
        let due: Vec<u64> = self.counters.range(lines).map(|(line, _)| *line).collect();
        for line in due {
            let version = self.counters.remove(&line).unwrap();
            self.stored_counters.insert(line, version);
        }
    }

    /// What is left after a power cut: noise where data and counter do not belong together.
    fn cut(&self, lines: u64) -> Flat {
        let mut flat = Flat::new(lines * 64);
        for (at, (line, version)) in &self.data {
            let counter = self.stored_counters.get(at).copied().unwrap_or(0);
            *flat.line_mut(*at) = match counter == *version {
                true => *line,
                false => noise(line, counter),
            };
        }
        flat
    }
}

fn noise(line: &Line, counter: u64) -> Line {
    std::array::from_fn(|i| {
        line[i]
            ^ (counter as u8)
                .wrapping_mul(97)
                .wrapping_add((i as u8).wrapping_mul(31).wrapping_add(5))
    })
}

/// What the first wrong cut looks like; `None` if all are right.
fn explore(spec: &ProgramSpec, seed: u64, cuts: &mut u64) -> Option<String> {
    let mut run = ProgramRun::new(spec, Logical(0)).unwrap();
    let lines = run.region().count;
    let log: BTreeSet<u64> = run.workload().log_bytes().map(|byte| byte / 64).collect();
    let mut machine = Machine::new(&run, seed);
    let snapshot = |run: &ProgramRun| {
        (0..lines)
            .map(|l| *run.memory().line(l))
            .collect::<Vec<_>>()
    };
    let mut states = vec![snapshot(&run)];
    let (mut required, mut possible) = (0, 0);
    let mut batch = Batch::default();
    for number in 1..=spec.transactions {
        batch.clear();
        run.transaction(&mut batch);
        states.push(snapshot(&run));
        for op in batch.ops() {
            machine.play(*op, &batch);
            match op.kind {
                OpKind::Mark(Phase::Committing) => possible = number,
                OpKind::Mark(Phase::Committed) => required = number,
                _ => {}
            }
            *cuts += 1;
            let mut flat = machine.cut(lines);
            let recovered = match run.workload().recover(&mut flat) {
                Ok(recovered) => recovered,
                Err(fault) => return Some(fault.to_string()),
            };
            if !(required..=possible).contains(&recovered.visible) {
                return Some(format!("{} of {required}..={possible}", recovered.visible));
            }
            let expected = &states[recovered.visible as usize];
            let wrong =
                (0..lines).find(|l| !log.contains(l) && flat.line(*l) != &expected[*l as usize]);
            if let Some(line) = wrong {
                return Some(format!(
                    "transaction {number}: line {line} is not as it was"
                ));
            }
        }
    }
    let mut last = copy_of(&run);
    assert_eq!(run.workload().check(&mut last), Ok(()));
    None
}

fn copy_of(run: &ProgramRun) -> Flat {
    let mut flat = Flat::new(run.region().count * 64);
    for line in 0..run.region().count {
        flat.store(line * 64, run.memory().line(line));
    }
    assert_ne!(flat.line(run.set_up_lines() - 1), &ZERO_LINE);
    flat
}

fn spec(name: &str, mutant: Option<Mutant>) -> ProgramSpec {
    ProgramSpec {
        name: name.into(),
        item_bytes: 128,
        footprint: 8 << 10,
        transactions: 40,
        seed: 3,
        durability: DurabilityKind::SoftwareUndo { mutant },
        ..ProgramSpec::default()
    }
}

#[test]
fn correct_programs_recover_from_every_cut() {
    let mut cuts = 0;
    for program in workload::all() {
        for seed in 0..3 {
            let wrong = explore(&spec(program.name, None), seed, &mut cuts);
            assert_eq!(wrong, None, "{} seed {seed}", program.name);
        }
    }
    assert!(cuts > 20_000, "{cuts}");
}

#[test]
fn every_mutant_is_caught() {
    for mutant in Mutant::ALL {
        let caught = workload::all().iter().any(|program| {
            let spec = spec(program.name, Some(*mutant));
            (0..8).any(|seed| explore(&spec, seed, &mut 0).is_some())
        });
        assert!(caught, "{mutant:?} ({})", mutant.meaning());
    }
}
