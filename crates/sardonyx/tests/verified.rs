//! Reads are held to what was written, whatever a design stores: the first wrong byte ends a run with its record, and
//! nothing that is right is called wrong.

use std::path::{Path, PathBuf};
use std::sync::Once;

use sardonyx::config::Machine;
use sardonyx::controller::designs::{self, AnyLayer, Stack};
use sardonyx::controller::layers::{About, Mapping, Placement};
use sardonyx::controller::{Class, Encryption, Layer, Storey, Write};
use sardonyx::line::{Line, Logical, Place, Virtual, ZERO_LINE};
use sardonyx::machine::hosted::{HostOptions, HostRequest, HostRequestKind, Hosted};
use sardonyx::machine::recordings::{self, Options};
use sardonyx::machine::{Outcome, RunError, Sampling, System};
use sardonyx::plan::{Fetched, Plan, Step, Stored};
use sardonyx::trace::{Level, Op, Provenance, Record, Source, Spec, Synth, TraceWriter};
use sardonyx_workload::{DurabilityKind, ProgramSpec, timed};

const ONES: Line = [0xff; 64];

/// What a mapping does wrong.
#[derive(Clone, Copy, PartialEq)]
enum Wrong {
    /// Lines of ones come back as zeros.
    Ones,
    /// The seventh word of a line comes back with a bit turned.
    Word,
    /// A store of what a line holds already makes the next store to its neighbour be lost.
    Lost,
}

struct Faulty {
    wrong: Wrong,
    below: Encryption,
    lost: Option<Logical>,
}

impl Storey for Faulty {
    fn below(&self) -> Option<&dyn Storey> {
        Some(&*self.below)
    }

    fn below_mut(&mut self) -> Option<&mut dyn Storey> {
        Some(&mut *self.below)
    }
}

impl Layer for Faulty {
    type Addr = Logical;

    fn read(&mut self, a: Logical, class: Class, after: Step, plan: &mut Plan) -> Fetched {
        let mut got = self.below.read(Place(a.0), class, after, plan);
        match (self.wrong, &mut got.value) {
            (Wrong::Ones, Some(line)) if *line == ONES => *line = ZERO_LINE,
            (Wrong::Word, Some(line)) if line[..8] == [7; 8] => line[53] ^= 0x10,
            _ => {}
        }
        got
    }

    fn write(&mut self, write: Write<Logical>, plan: &mut Plan) -> Stored {
        if self.wrong == Wrong::Lost {
            let at = Place(write.at.0);
            let old = self.below.read(at, Class::Data, Step::PAST, plan);
            if old.value.as_ref() == Some(write.data.value) {
                self.lost = Some(Logical(write.at.0 ^ 1));
            } else if self.lost == Some(write.at) {
                self.lost = None;
                return Stored::at(old.at);
            }
        }
        self.below.write(write.to(Place(write.at.0)), plan)
    }

    fn persist_metadata(&mut self, a: Logical, after: Step, plan: &mut Plan) -> Stored {
        self.below.persist_metadata(Place(a.0), after, plan)
    }
}

macro_rules! faulty {
    ($name:literal, $wrong:expr) => {
        Mapping {
            about: About {
                name: $name,
                cut: "keeps nothing",
                ..About::EMPTY
            },
            build: |_, below, _| {
                Box::new(Faulty {
                    wrong: $wrong,
                    below,
                    lost: None,
                })
            },
            guarantee: |below| below,
            placement: |_, _| Placement::Home,
            shows: &[],
            zeros_apart: false,
            beside: None,
        }
    };
}

static FAULTY: [Mapping; 3] = [
    faulty!("wrong-ones", Wrong::Ones),
    faulty!("wrong-word", Wrong::Word),
    faulty!("lost-neighbour", Wrong::Lost),
];

fn know() {
    static KNOWN: Once = Once::new();
    KNOWN.call_once(|| {
        FAULTY
            .iter()
            .for_each(|one| designs::register(AnyLayer::Mapping(one)))
    });
}

/// A trace of a test: its file goes with it.
struct Trace(PathBuf);

impl Drop for Trace {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

fn trace(name: &str, level: Level, records: &[(Op, u64, Option<Line>)]) -> Trace {
    let file = format!("sardonyx-verified-{name}-{}.parquet", std::process::id());
    let path = std::env::temp_dir().join(file);
    let provenance = Provenance {
        level,
        ..Provenance::default()
    };
    let mut writer = TraceWriter::create(&path, provenance).unwrap();
    for (op, line, data) in records {
        writer
            .push(&Record {
                op: *op,
                line: Virtual(*line),
                data: *data,
                gap: 20,
                thread: 0,
            })
            .unwrap();
    }
    writer.finish().unwrap();
    Trace(path)
}

/// A machine whose caches hold hardly anything.
fn small(name: &str) -> Machine {
    let caches = [
        ("caches.l1.bytes", "1024"),
        ("caches.l2.bytes", "0"),
        ("caches.llc.bytes", "4096"),
    ];
    Machine::load(name, &caches).unwrap()
}

fn machine() -> Machine {
    Machine::load("esd", &[] as &[(&str, &str)]).unwrap()
}

fn system(design: &str, path: &Path) -> Result<System<'static>, RunError> {
    know();
    let sources = vec![Source::open(path).unwrap()];
    recordings::system(&machine(), design, sources, Options::default())
}

fn run(design: &str, trace: &Trace) -> Result<Outcome, RunError> {
    system(design, &trace.0)?.run(&mut |_| true)
}

fn figure(outcome: &Outcome, name: &str) -> Option<u64> {
    outcome.metrics()[name].as_u64()
}

const WRITE: Op = Op::DirtyEviction;
const READ: Op = Op::ReadMiss;

/// Writes of other lines, a fence, then what is stored and read: the wrong read is the last record but one.
fn with_fences(stored: &[(u64, Line)], read: u64) -> Vec<(Op, u64, Option<Line>)> {
    let mut records: Vec<_> = (0..40)
        .map(|k| (WRITE, 1000 + k, Some([k as u8; 64])))
        .collect();
    records.insert(7, (Op::Fence, 0, None));
    records.extend(
        stored
            .iter()
            .map(|(line, data)| (WRITE, *line, Some(*data))),
    );
    records.extend([
        (READ, 1003, None),
        (Op::Fence, 0, None),
        (READ, read, None),
        (READ, 1004, None),
    ]);
    records
}

#[test]
fn the_first_wrong_byte_ends_a_run_with_its_record() {
    let mut seven = [9; 64];
    seven[..8].fill(7);
    let cases = [
        (
            "wrong-ones",
            vec![(5, ONES)],
            5,
            "line 5 read as 0000000000000000 in bytes 0 to 7 of 64 (first differing byte 0: expected ff, found 00)",
        ),
        (
            "wrong-word",
            vec![(5, seven)],
            5,
            "line 5 read as 0909090909190909 in bytes 48 to 55 of 64 (first differing byte 53: expected 09, found 19)",
        ),
        (
            "lost-neighbour",
            vec![(6, [1; 64]), (7, [2; 64]), (6, [1; 64]), (7, [3; 64])],
            7,
            "line 7 read as 0202020202020202 in bytes 0 to 7 of 64 (first differing byte 0: expected 03, found 02)",
        ),
    ];
    for (mapping, stored, read, says) in cases {
        let records = with_fences(&stored, read);
        let number = records.len() - 1;
        let trace = trace(mapping, Level::Memory, &records);
        let design = format!("{mapping}+per-line");
        let error = run(&design, &trace).unwrap_err().to_string();
        let name = trace.0.file_name().unwrap().to_str().unwrap();
        let name = name.trim_end_matches(".parquet");
        assert!(error.starts_with(&format!("{design} on ")), "{error}");
        assert!(error.contains(name), "{error}");
        assert!(
            error.ends_with(&format!(": record {number}: {says}")),
            "{error}"
        );
        let mut unverified = system(&design, &trace.0).unwrap().unverified();
        let outcome = unverified.run(&mut |_| true).unwrap();
        assert_eq!(figure(&outcome, "reads_verified"), None, "nobody looks");
        assert_eq!(figure(&outcome, "reads_of_unwritten_lines"), None);
        let right = run("baseline", &trace).unwrap();
        assert_eq!(figure(&right, "reads_verified"), Some(3));
    }
}

#[test]
fn a_lost_first_write_is_a_wrong_read() {
    let records = with_fences(&[(6, [1; 64]), (6, [1; 64]), (7, [3; 64])], 7);
    let trace = trace("never", Level::Memory, &records);
    let error = run("lost-neighbour+per-line", &trace)
        .unwrap_err()
        .to_string();
    let says = "line 7 read as never written (first differing byte 0: expected 03, found none)";
    assert!(error.ends_with(says), "{error}");
}

#[test]
fn lines_that_nobody_wrote_are_counted() {
    let mut records = with_fences(&[(5, [1; 64])], 5);
    records.extend([(READ, 700, None), (READ, 701, None), (READ, 5, None)]);
    let trace = trace("unwritten", Level::Memory, &records);
    for design in ["baseline", "esd", "no-encryption"] {
        let outcome = run(design, &trace).unwrap();
        assert_eq!(figure(&outcome, "reads_verified"), Some(4), "{design}");
        assert_eq!(
            figure(&outcome, "reads_of_unwritten_lines"),
            Some(2),
            "{design}"
        );
        assert_eq!(figure(&outcome, "reads"), Some(6), "{design}");
    }
}

#[test]
fn windows_of_a_sample_and_what_lies_between_are_held_to_what_was_written() {
    let spec = Spec {
        records: 40_000,
        footprint_lines: 1 << 9,
        ..Spec::default()
    };
    let sampling = Sampling {
        windows: 10,
        requests: 200,
        ramp: 100,
        seed: 1,
    };
    know();
    let sampled = |design: &str, spec: &Spec| {
        let sources = vec![Source::from(Synth::new(spec.clone(), 7).unwrap())];
        let system = recordings::system(&machine(), design, sources, Options::default()).unwrap();
        system.sample(&sampling, 0..spec.records, &mut |_| true)
    };
    for design in ["baseline", "esd", "dewrite-sound"] {
        let outcome = sampled(design, &spec).unwrap().outcome;
        let [verified, unwritten] = ["reads_verified", "reads_of_unwritten_lines"]
            .map(|name| figure(&outcome, name).unwrap());
        let sources = vec![Source::from(Synth::new(spec.clone(), 7).unwrap())];
        let whole = recordings::run(&machine(), design, sources, Options::default(), &mut |_| {
            true
        });
        assert_eq!(
            Some(verified + unwritten),
            figure(&whole.unwrap(), "reads"),
            "{design}"
        );
        assert!(verified > 10_000, "{design}: {verified}");
    }
    // The wrong read lies between windows, where nothing has a clock.
    let mut records = with_fences(&[(5, ONES)], 5);
    let number = records.len() - 1;
    records.extend((0..20_000).map(|k| (WRITE, 2000 + k % 50, Some([k as u8; 64]))));
    let trace = trace("between", Level::Memory, &records);
    let sampling = Sampling {
        seed: 4,
        ..sampling
    };
    let all = records.len() as u64 - 2;
    assert!(sampling.starts(&(0..all)).unwrap()[0] > records.len() as u64 / 100);
    let system = system("wrong-ones+per-line", &trace.0).unwrap();
    let error = system.sample(&sampling, 0..all, &mut |_| true).unwrap_err();
    let error = error.to_string();
    assert!(
        error.contains(&format!(": record {number}: line 5 read as 00")),
        "{error}"
    );
}

#[test]
fn reads_below_caches_are_held_to_what_left_them() {
    // More lines than the caches hold are stored, and loaded again.
    let lines = 600;
    let mut records: Vec<_> = (0..lines).map(|k| (Op::Store, k, Some(ONES))).collect();
    records.extend((0..lines).map(|k| (Op::Load, k, None)));
    let trace = trace("caches", Level::Cpu, &records);
    let run = |design: &str| {
        know();
        let sources = vec![Source::open(&trace.0).unwrap()];
        let machine = small("esd");
        recordings::run(&machine, design, sources, Options::default(), &mut |_| true)
    };
    let error = run("wrong-ones+per-line").unwrap_err().to_string();
    assert!(
        error.contains(": operation ") && error.contains("expected ff, found 00"),
        "{error}"
    );
    let outcome = run("baseline").unwrap();
    assert!(figure(&outcome, "reads_verified").unwrap() > lines / 2);
}

#[test]
fn no_design_is_called_wrong() {
    let spec = Spec {
        records: 6_000,
        footprint_lines: 1 << 8,
        ..Spec::default()
    };
    let machine = machine();
    let program = ProgramSpec {
        name: "queue".to_owned(),
        item_bytes: 64,
        footprint: 16 << 10,
        transactions: 30,
        seed: 1,
        ..ProgramSpec::default()
    };
    let small = small("sca");
    for design in designs::all() {
        let sources = (0..2).map(|_| Source::from(Synth::new(spec.clone(), 7).unwrap()));
        let options = Options {
            warmup: 1_000,
            distinct: 1.0,
        };
        let outcome = recordings::run(
            &machine,
            design.name,
            sources.collect(),
            options,
            &mut |_| true,
        );
        let outcome = outcome.unwrap_or_else(|error| panic!("{error}"));
        assert!(
            figure(&outcome, "reads_verified").unwrap() > 1_000,
            "{}",
            design.name
        );
        let program = ProgramSpec {
            durability: DurabilityKind::on(&Stack::named(design.name).unwrap()),
            ..program.clone()
        };
        let system = timed::system(&small, design.name, &program, 2, 5);
        let outcome = system.unwrap().run(&mut |_| true);
        let outcome = outcome.unwrap_or_else(|error| panic!("{error}"));
        assert!(
            figure(&outcome, "reads_verified").unwrap() > 20,
            "{}",
            design.name
        );
    }
}

#[test]
fn a_host_is_told_of_a_wrong_read() {
    know();
    let send = |host: &mut Hosted, kind| {
        let asked = HostRequest {
            kind,
            address: 320,
            source: 0,
            tag: 0,
            presented: None,
        };
        host.send(&asked).map(|taken| assert!(taken))
    };
    let ones = || HostRequestKind::Write {
        bytes: &ONES,
        persist: false,
        counter_atomic: false,
        tell_array: false,
    };
    let options = |keep| HostOptions {
        keep,
        ..HostOptions::default()
    };
    let mut host = Hosted::new(&machine(), "wrong-ones+per-line", options(true)).unwrap();
    send(&mut host, ones()).unwrap();
    let error = send(&mut host, HostRequestKind::Read(8))
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("request 2: the line at 0x140 read as 00"),
        "{error}"
    );
    let mut blind = Hosted::new(&machine(), "wrong-ones+per-line", options(false)).unwrap();
    send(&mut blind, ones()).unwrap();
    send(&mut blind, HostRequestKind::Read(8)).unwrap();
}
