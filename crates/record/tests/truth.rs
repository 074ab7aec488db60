//! The last recorded data of each line is what the program's memory held at its end.

mod common;

use std::collections::HashMap;
use std::path::Path;

use common::{compile, hold, placed, records, request, run};
use sardonyx_record::{Geometry, Level};
use sardonyx_trace::Op;

#[test]
#[ignore = "machine: records under QEMU"]
fn a_trace_holds_all_of_a_programs_memory() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let program = compile("truth", folder.path(), &[]);
    let (trace, dump) = (at("t.parquet"), at("dump"));
    let words = [program.to_str().unwrap(), dump.to_str().unwrap(), "20"];
    let mut wanted = request(&trace, &words);
    wanted.follow_fork = true;
    let outcome = run(&wanted);
    assert_eq!(outcome.status, Some(0));
    assert!(outcome.traces.iter().all(|t| t.complete), "{outcome:?}");
    let lines = hold(&trace, &dump);
    println!("{lines} lines hold");
    assert!(lines >= 300_000);

    // The children have traces of their own, and the first says what it held.
    assert_eq!(outcome.traces.len(), 3);
    hold(&at("t.1.parquet"), &at("dump.child"));

    let all = records(&trace);
    let threads: std::collections::BTreeSet<u16> = all.iter().map(|r| r.thread).collect();
    assert!(threads.len() >= 5, "{threads:?}");
    for op in [
        Op::ReadMiss,
        Op::DirtyEviction,
        Op::NonTemporalWrite,
        Op::FlushWriteBack,
        Op::Fence,
        Op::Clwb,
        Op::ClflushOpt,
        Op::Clflush,
        Op::FinalDirty,
    ] {
        assert!(all.iter().any(|r| r.op == op), "no {op:?}");
    }
}

fn small(name: &str, change: impl FnOnce(&mut sardonyx_record::Request)) {
    let folder = tempfile::tempdir().unwrap();
    let program = compile("truth", folder.path(), &[]);
    let (trace, dump) = (folder.path().join(name), folder.path().join("dump"));
    let words = [program.to_str().unwrap(), dump.to_str().unwrap(), "4"];
    let mut wanted = request(Path::new(&trace), &words);
    change(&mut wanted);
    assert_eq!(run(&wanted).status, Some(0));
    hold(&trace, &dump);
}

#[test]
#[ignore = "machine: records under QEMU"]
fn caches_that_include_nothing_lose_nothing() {
    small("t.parquet", |r| r.caches.inclusive = false);
}

#[test]
#[ignore = "machine: records under QEMU"]
fn without_a_last_level_nothing_is_lost() {
    small("t.parquet", |r| r.caches.llc = None);
}

#[test]
#[ignore = "machine: records under QEMU"]
fn tiny_caches_lose_nothing() {
    small("t.parquet", |r| {
        let bytes = |bytes| Geometry { bytes, ways: 1 };
        (r.caches.l1, r.caches.l2) = (bytes(256), bytes(512));
        r.caches.llc = Some(bytes(1024));
        r.caches.cores = 2;
    });
}

#[test]
#[ignore = "machine: records under QEMU"]
fn at_the_core_nothing_is_lost() {
    small("t.parquet", |r| r.level = Level::Cpu);
}

#[test]
#[ignore = "machine: records under QEMU"]
fn flushes_have_the_address_of_the_moment() {
    let folder = tempfile::tempdir().unwrap();
    let program = compile("flushes", folder.path(), &[]);
    let (trace, dump) = (folder.path().join("t.parquet"), folder.path().join("dump"));
    let words = [program.to_str().unwrap(), dump.to_str().unwrap()];
    assert_eq!(run(&request(&trace, &words)).status, Some(0));
    let last: HashMap<u64, u64> = placed(&trace).into_iter().collect();
    let said: Vec<u64> = std::fs::read(&dump)
        .unwrap()
        .chunks_exact(8)
        .map(|address| u64::from_le_bytes(address.try_into().unwrap()))
        .map(|address| last[&(address / 4096)] + address / 64 % 64)
        .collect();
    let recorded: Vec<u64> = records(&trace)
        .iter()
        .filter(|r| matches!(r.op, Op::Clwb | Op::ClflushOpt | Op::Clflush))
        .map(|r| r.line.0)
        .collect();
    assert_eq!(said.len(), 650);
    let wrong = said.iter().zip(&recorded).filter(|(a, b)| a != b).count();
    assert_eq!((recorded.len(), wrong), (said.len(), 0));
}

/// One callback stands for several accesses, which a check in the plugin holds against QEMU's own word for each of them.
fn grouped(
    name: &str,
    words: &[&str],
    change: impl FnOnce(&mut sardonyx_record::Request),
) -> usize {
    let folder = tempfile::tempdir().unwrap();
    let program = compile(name, folder.path(), &[]);
    let (trace, dump) = (folder.path().join("t.parquet"), folder.path().join("dump"));
    let mut all = vec![program.to_str().unwrap(), dump.to_str().unwrap()];
    all.extend(words);
    let mut wanted = request(&trace, &all);
    wanted
        .environment
        .push(("SARDONYX_RECORDER_CHECK".into(), "1".into()));
    change(&mut wanted);
    let outcome = run(&wanted);
    assert_eq!(outcome.status, Some(0), "{outcome:?}");
    hold(&trace, &dump);
    let notes = &outcome.traces[0].notes;
    let note = notes
        .iter()
        .find(|note| note.starts_with("checked "))
        .expect("a note");
    println!("{name}: {note}");
    let number = |at: usize| note.split(' ').nth(at).unwrap().parse::<usize>().unwrap();
    let (accesses, spared) = (number(1), number(8));
    assert!(spared * 10 > accesses, "{note}");
    number(14)
}

fn tiny(request: &mut sardonyx_record::Request) {
    let bytes = |bytes| Geometry { bytes, ways: 1 };
    (request.caches.l1, request.caches.l2) = (bytes(256), bytes(512));
    request.caches.llc = Some(bytes(1024));
}

#[test]
#[ignore = "machine: records under QEMU"]
fn groups_are_what_the_program_does() {
    grouped("truth", &["4"], |_| {});
    let left_early = grouped("groups", &[], |_| {});
    assert!(left_early >= 300, "{left_early}");
}

#[test]
#[ignore = "machine: records under QEMU"]
fn groups_lose_no_store_when_their_line_goes_between() {
    grouped("groups", &[], tiny);
    grouped("groups", &[], |r| {
        tiny(r);
        r.caches.inclusive = false;
    });
    grouped("groups", &[], |r| {
        tiny(r);
        r.caches.llc = None;
        r.read_data = true;
    });
}

/// A line's contents before the program: its number in the file, eight times.
fn numbered(line: u64) -> [u8; 64] {
    let mut data = [0; 64];
    for word in data.chunks_exact_mut(8) {
        word.copy_from_slice(&(0xF11E_0000 + line).to_le_bytes());
    }
    data
}

fn reads_of(kind: &str) {
    let folder = tempfile::tempdir().unwrap();
    let program = compile("reads", folder.path(), &[]);
    let (trace, file) = (folder.path().join("t.parquet"), folder.path().join("file"));
    let pages = 64;
    let bytes: Vec<u8> = (0..pages * 64).flat_map(numbered).collect();
    std::fs::write(&file, &bytes).unwrap();
    let words = [program.to_str().unwrap(), file.to_str().unwrap(), kind];
    let mut wanted = request(&trace, &words);
    wanted.read_data = true;
    assert_eq!(run(&wanted).status, Some(0));
    let mut found = vec![0; pages as usize * 64];
    for read in records(&trace).iter().filter(|r| r.op == Op::ReadMiss) {
        let Some(data) = read.data else { continue };
        let number = u64::from_le_bytes(data[..8].try_into().unwrap()).wrapping_sub(0xF11E_0000);
        if let Some(found) = found.get_mut(number as usize) {
            assert_eq!(
                data,
                numbered(number),
                "line {number} is as before the store"
            );
            *found += 1;
        }
    }
    // Of pages that were not loaded the line of the first store has lost its bytes. A private page is copied then, and
    // a shared one has no other line fetched but that of the second store.
    for (line, times) in found.iter().enumerate() {
        let (loaded, shared) = (line / 64 % 2 == 0, kind == "shared");
        let known = loaded
            || if shared {
                line % 64 == 9
            } else {
                line % 64 != 7
            };
        assert_eq!(*times, usize::from(known), "{kind}, line {line}");
    }
}

#[test]
#[ignore = "machine: records under QEMU"]
fn reads_have_the_bytes_that_memory_held() {
    reads_of("private");
    reads_of("shared");
}
