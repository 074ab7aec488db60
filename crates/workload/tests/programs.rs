//! The programs run functionally: what they leave is sound, their operations and their deltas say
//! the same, and bad specifications are refused.

use sardonyx::line::Logical;
use sardonyx::machine::{Batch, OpKind};
use sardonyx_workload::{self as workload, Bytes, Flat, ProgramRun, ProgramSpec};

fn spec(name: &str, item_bytes: u64, transactions: u64) -> ProgramSpec {
    ProgramSpec {
        name: name.into(),
        item_bytes,
        footprint: 64 << 10,
        transactions,
        seed: 7,
        ..ProgramSpec::default()
    }
}

fn run_of(spec: &ProgramSpec) -> ProgramRun {
    ProgramRun::new(spec, Logical(1000)).unwrap_or_else(|error| panic!("{error}"))
}

fn copy(of: &Flat) -> Flat {
    let mut flat = Flat::new(of.lines() * 64);
    for line in 0..of.lines() {
        *flat.line_mut(line) = *of.line(line);
    }
    flat
}

/// Breaks if a structure loses a key or a link, or if the operations or the changes leave a store out.
#[test]
fn structures_stay_sound_and_operations_and_changes_tell_all() {
    for program in workload::all() {
        for (item_bytes, transactions) in [(64, 600), (256, 200), (4096, 12)] {
            let spec = spec(program.name, item_bytes, transactions);
            let mut run = run_of(&spec);
            let (mut played, mut patched) = (copy(run.memory()), copy(run.memory()));
            let log = run.workload().log_bytes();
            let mut batch = Batch::default();
            for number in 1..=transactions {
                batch.clear();
                let changed = run.transaction_with_changes(&mut batch);
                assert_eq!(run.done(), number);
                for op in batch.ops() {
                    if let OpKind::Store {
                        from, len, bytes, ..
                    } = op.kind
                    {
                        let at = (op.line.0 - 1000) * 64 + u64::from(from);
                        played.store(at, batch.bytes(bytes, len));
                    }
                }
                for line in changed {
                    *patched.line_mut(line) = *run.memory().line(line);
                }
            }
            for line in 0..played.lines() {
                assert_eq!(
                    played.line(line),
                    run.memory().line(line),
                    "{} {line}",
                    program.name
                );
                if !log.contains(&(line * 64)) {
                    assert_eq!(
                        patched.line(line),
                        played.line(line),
                        "{} {line}",
                        program.name
                    );
                }
            }
            let checked = run.workload().check(&mut played);
            assert_eq!(checked, Ok(()), "{} of {item_bytes}", program.name);
            let recovered = run.workload().recover(&mut played).expect("a log");
            assert_eq!((recovered.visible, recovered.restored), (transactions, 0));
        }
    }
}

/// Breaks if a check reads nothing: one byte changed anywhere in what setup wrote is noticed, but
/// for bytes that mean nothing (padding, free places, the log).
#[test]
fn checks_notice_most_changed_bytes() {
    for program in workload::all() {
        let mut run = run_of(&spec(program.name, 64, 100));
        let mut batch = Batch::default();
        (0..100).for_each(|_| run.transaction(&mut batch));
        let from = run.workload().log_bytes().end / 64;
        let mut flat = copy(run.memory());
        let (mut noticed, mut tried) = (0, 0);
        for line in from..run.set_up_lines() {
            let byte = line as usize % 8; // the first word, which most lines use
            flat.line_mut(line)[byte] ^= 0x11;
            tried += 1;
            noticed += u32::from(run.workload().check(&mut flat).is_err());
            flat.line_mut(line)[byte] ^= 0x11;
        }
        assert_eq!(run.workload().check(&mut flat), Ok(()));
        // A queue is half empty, buckets of a hash table are few to a line.
        assert!(
            noticed * 5 > tried * 2,
            "{}: {noticed} of {tried}",
            program.name
        );
    }
}

#[test]
fn garbage_is_a_fault_and_never_a_panic() {
    for program in workload::all() {
        let run = run_of(&spec(program.name, 64, 10));
        let mut state = 1u64;
        for round in 0..200 {
            let mut flat = copy(run.memory());
            for _ in 0..=round {
                state = state
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1);
                let line = (state >> 33) % flat.lines();
                flat.line_mut(line)[(state >> 20) as usize % 64] = (state >> 50) as u8;
            }
            let _ = run.workload().recover(&mut flat);
            let _ = run.workload().check(&mut flat);
        }
    }
}

#[test]
fn a_bad_specification_says_what_to_give() {
    let tell = |spec: ProgramSpec| {
        ProgramRun::new(&spec, Logical(0))
            .err()
            .unwrap()
            .to_string()
    };
    let good = spec("btree", 64, 10);
    let message = tell(ProgramSpec {
        name: "btre".into(),
        ..good.clone()
    });
    assert!(message.contains("did you mean \"btree\"?"), "{message}");
    let message = tell(ProgramSpec {
        item_bytes: 100,
        ..good.clone()
    });
    assert!(message.contains("multiple of 64"), "{message}");
    let message = tell(ProgramSpec {
        footprint: 1,
        ..good.clone()
    });
    assert!(message.contains("footprint of 1 bytes"), "{message}");
    let message = tell(ProgramSpec {
        transactions: 0,
        ..good
    });
    assert!(message.contains("1 to 2^32"), "{message}");
}
