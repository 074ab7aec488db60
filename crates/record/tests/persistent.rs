//! A persistent-memory program's file is what its trace says, header included.

mod common;

use std::collections::HashMap;

use common::{compile, image, records, request, run};
use sardonyx_record::Level;
use sardonyx_recorder::maps::FILES;
use sardonyx_trace::line::Line;
use sardonyx_trace::{Op, TraceReader};

#[test]
#[ignore = "machine: records under QEMU"]
fn a_pool_can_be_rebuilt_from_its_trace() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let program = compile("pool", folder.path(), &["-lpmemobj", "-lpmem"]);
    let (trace, pool) = (at("t.parquet"), at("pool.obj"));
    // On an ordinary file libpmem uses flush instructions only if it is told that the file is persistent memory; the
    // variable goes to the program alone.
    let forced = "PMEM_IS_PMEM_FORCE=1";
    let mut wanted = request(&trace, &[program.to_str().unwrap(), pool.to_str().unwrap()]);
    wanted.environment = vec![
        forced
            .split_once('=')
            .map(|(k, v)| (k.into(), v.into()))
            .unwrap(),
    ];
    let outcome = run(&wanted);
    assert_eq!(outcome.status, Some(0));

    let reader = TraceReader::open(&trace).unwrap();
    let files = reader.provenance().more["files"]
        .as_array()
        .unwrap()
        .clone();
    let path = pool.canonicalize().unwrap();
    let file = files
        .iter()
        .find(|f| f["path"] == path.to_str().unwrap())
        .expect("the pool is among the trace's files");
    let first = file["first_line"].as_u64().unwrap();

    let all = records(&trace);
    let image = image(&all);
    let bytes = std::fs::read(&pool).unwrap();
    // The kernel made it of zeros; all else must be in the trace.
    let mut rebuilt = vec![0; bytes.len()];
    let mut known = 0;
    for (i, line) in rebuilt.chunks_exact_mut(64).enumerate() {
        if let Some(data) = image.get(&(first + i as u64)) {
            line.copy_from_slice(data);
            known += 1;
        }
    }
    println!("{known} of {} lines known", bytes.len() / 64);
    let differ = rebuilt.iter().zip(&bytes).position(|(a, b)| a != b);
    assert_eq!(differ, None, "the first byte that differs");
    assert!(known > 8_000, "{known}");
    assert!(
        image.contains_key(&first) && bytes[..8] != [0; 8],
        "a pool has a header"
    );
    for op in [Op::Fence, Op::FlushWriteBack, Op::NonTemporalWrite] {
        assert!(all.iter().any(|r| r.op == op), "no {op:?}");
    }
    assert!(
        all.iter()
            .any(|r| matches!(r.op, Op::Clwb | Op::ClflushOpt | Op::Clflush))
    );
}

/// A store that another thread has made and not told yet is in the trace before a flush that wrote it back.
#[test]
#[ignore = "machine: records under QEMU"]
fn a_flush_covers_what_other_threads_had_stored() {
    const TIMES: u64 = 4000;
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let program = compile("help", folder.path(), &[]);
    let (trace, file) = (at("t.parquet"), at("file"));
    let words = [
        program.to_str().unwrap(),
        file.to_str().unwrap(),
        &TIMES.to_string(),
    ];
    let mut wanted = request(&trace, &words);
    (wanted.level, wanted.pc) = (Level::Cpu, true);
    assert_eq!(run(&wanted).status, Some(0));

    let word = |data: Option<Line>| u64::from_le_bytes(data.unwrap()[..8].try_into().unwrap());
    let (mut count, mut sure, mut flushed, mut promises) = (0, 0, HashMap::new(), 0);
    let mut values = 0u64;
    for record in records(&trace) {
        match (record.op, record.line.0.checked_sub(FILES)) {
            (Op::Store, Some(0)) => {
                let now = word(record.data);
                assert!(now >= count, "{now} after {count}");
                values += u64::from(now > count);
                count = now;
            }
            (Op::Clwb, Some(0)) => {
                flushed.insert(record.thread, count);
            }
            (Op::Fence, _) => sure = sure.max(flushed.remove(&record.thread).unwrap_or(0)),
            (Op::Store, Some(1)) => {
                promises += 1;
                let promised = word(record.data);
                assert!(promised <= sure, "{promised} promised, {sure} sure");
            }
            _ => {}
        }
    }
    println!("{promises} promises, {values} of {} values", 2 * TIMES);
    assert!(count == 2 * TIMES && promises > 0);
}
