//! Lines outlive their pages in the caches: what reaches memory late is what a page that is gone held, in the frame that it had.

mod common;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::{Path, PathBuf};

use common::{compile, dump, hold, image, placed, records, request, run};
use sardonyx_record::{Clearing, Geometry, KernelTime, Request, Reuse};
use sardonyx_trace::line::Line;
use sardonyx_trace::{Op, Record, TraceReader};
use serde_json::Value;
use tempfile::TempDir;

const STAMP: u64 = 0x53a5_d071_8ace_57a3;

/// The time and the place of a line that the program stamped; an error if the line is of several stamps.
fn stamp(line: &Line) -> Option<Result<(u64, u64), u64>> {
    let word = |at: usize| u64::from_le_bytes(line[8 * at..8 * at + 8].try_into().unwrap());
    let (when, place) = (word(1), word(2));
    if word(0) != STAMP {
        return None;
    }
    let mut s = when.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ place;
    for at in 3..8 {
        s = s
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        if word(at) != s {
            return Some(Err(when));
        }
    }
    Some(Ok((when, place)))
}

/// The longest run of writes without an instruction between them.
fn longest_burst(records: &[Record]) -> usize {
    let (mut longest, mut run) = (0, 0);
    for record in records {
        run = match (record.op.is_write(), record.gap) {
            (true, 0) => run + 1,
            (write, _) => usize::from(write),
        };
        longest = longest.max(run);
    }
    longest
}

struct Recorded {
    folder: TempDir,
    trace: PathBuf,
    records: Vec<Record>,
    history: HashMap<u64, BTreeSet<u64>>,
    more: serde_json::Map<String, Value>,
}

impl Recorded {
    fn at(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn count(&self, name: &str) -> u64 {
        self.more["frames"][name].as_u64().unwrap()
    }
}

/// Records `frames` with another word for its end, and checks all that holds whatever the options are.
fn frames(more: &[&str], change: impl FnOnce(&mut Request)) -> Recorded {
    let folder = tempfile::tempdir().unwrap();
    let program = compile("frames", folder.path(), &[]);
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (trace, file) = (folder.path().join("t.parquet"), path("file"));
    let bytes: Vec<u8> = (0..48 * 4096u32).map(|i| (i % 251) as u8).collect();
    std::fs::write(&file, bytes).unwrap();
    let dumped = path("dump");
    let words = [&[program.to_str().unwrap(), &dumped, &file], more].concat();
    let mut wanted = request(&trace, &words);
    change(&mut wanted);
    let small = wanted.caches.llc.is_some_and(|llc| llc.bytes < 1 << 20);
    let outcome = run(&wanted);
    assert_eq!(outcome.status, Some(0), "{outcome:?}");
    let first = &outcome.traces[0];
    assert!(first.complete && first.notes.is_empty(), "{first:?}");

    let records = records(&trace);
    let mut history: HashMap<u64, BTreeSet<u64>> = HashMap::new();
    for (page, first) in placed(&trace) {
        history.entry(page).or_default().insert(first);
    }
    let (mut stamped, mut halves, mut when_of) = (0, 0, HashMap::new());
    for (row, record) in records.iter().enumerate() {
        let writes = record.op.is_write() || record.op == Op::FinalDirty;
        let data = record.data.as_ref().filter(|_| writes);
        let (when, place) = match data.and_then(stamp) {
            None => continue,
            Some(Ok(stamped)) => stamped,
            Some(Err(_)) => {
                halves += 1;
                continue;
            }
        };
        stamped += 1;
        let had = &history[&(place / 4096)];
        let first = record.line.0 / 64 * 64;
        assert!(
            had.contains(&first) && record.line.0 % 64 == place / 64 % 64,
            "row {row}: line {:#x} is none that {place:#x} ever was",
            record.line.0
        );
        let newest = when_of.entry((record.line.0, place)).or_insert(when);
        assert!(
            *newest <= when,
            "row {row}: an older line is written over a newer one"
        );
        *newest = when;
    }
    assert!(stamped > 10_000, "{stamped}");
    // Where caches have a few lines, other threads displace one between two stores to it.
    let allowed = if small { stamped / 100 } else { 0 };
    assert!(
        halves <= allowed,
        "{halves} of {stamped} lines are mixed of several"
    );
    assert!(longest_burst(&records) < 64, "{}", longest_burst(&records));

    // The file has what was stored through its shared mappings.
    let reader = TraceReader::open(&trace).unwrap();
    let more = reader.provenance().more.clone();
    assert_eq!(more["address_space"], "frames");
    let first = more["files"][0]["first_line"].as_u64().unwrap();
    let image = image(&records);
    let bytes = std::fs::read(&file).unwrap();
    for (at, line) in bytes.as_chunks::<64>().0.iter().enumerate() {
        assert_eq!(&image[&(first + at as u64)], line, "line {at} of the file");
    }
    Recorded {
        folder,
        trace,
        records,
        history,
        more,
    }
}

/// If frames are not used again, they hold at the end what their pages held when they went; returns how many lines.
fn all_is_kept(recorded: &Recorded, gone: &Path) -> usize {
    let image = image(&recorded.records);
    let lines = dump(gone);
    let mut missing = BTreeMap::new();
    for (line, bytes) in &lines {
        let had = &recorded.history[&(line / 64)];
        let found = had
            .iter()
            .any(|first| image.get(&(first + line % 64)) == Some(bytes));
        if !found {
            *missing.entry(line / 64 * 4096).or_insert(0) += 1;
        }
    }
    assert!(missing.is_empty(), "not as they were: {missing:x?}");
    lines.len()
}

fn tiny(request: &mut Request) {
    let bytes = |bytes| Geometry { bytes, ways: 1 };
    (request.caches.l1, request.caches.l2) = (bytes(256), bytes(512));
    request.caches.llc = Some(bytes(1024));
}

#[test]
#[ignore = "machine: records under QEMU"]
fn what_pages_held_reaches_their_frames_though_they_are_gone() {
    for small in [false, true] {
        let recorded = frames(&[], |r| {
            r.reuse = Reuse::Never;
            if small {
                tiny(r);
            }
        });
        let lines = all_is_kept(&recorded, &recorded.at("dump.gone"));
        let alive = hold(&recorded.trace, &recorded.at("dump"));
        println!("{lines} lines of pages that are gone, {alive} of others");
        assert!(lines > 60_000 && alive == 2 * 48 * 64);
    }
}

#[test]
#[ignore = "machine: records under QEMU"]
fn frames_that_come_back_carry_nothing_over() {
    for reuse in [Reuse::LastFreed, Reuse::FirstFreed] {
        for small in [false, true] {
            let recorded = frames(&[], |r| {
                r.reuse = reuse;
                if small {
                    tiny(r);
                }
            });
            hold(&recorded.trace, &recorded.at("dump"));
            let (used, cleared) = (recorded.count("used"), recorded.count("pages_cleared"));
            assert!(used < cleared, "{used} frames for {cleared} pages");
        }
    }
}

#[test]
#[ignore = "machine: records under QEMU"]
fn what_a_program_held_stays_in_the_caches_of_the_one_it_becomes() {
    for reuse in [Reuse::Never, Reuse::LastFreed] {
        let recorded = frames(&["become"], |r| r.reuse = reuse);
        hold(&recorded.trace, &recorded.at("dump.next"));
        if reuse == Reuse::Never {
            all_is_kept(&recorded, &recorded.at("dump.gone"));
            all_is_kept(&recorded, &recorded.at("dump.next.gone"));
        }
    }
}

#[test]
#[ignore = "machine: records under QEMU"]
fn the_kernels_clearing_is_recorded_or_not() {
    let zeros = |recorded: &Recorded| {
        let written = |r: &&Record| r.op == Op::DirtyEviction && r.data == Some([0; 64]);
        let frames: BTreeSet<u64> = (recorded.records.iter().filter(written))
            .map(|r| r.line.0 / 64)
            .collect();
        frames.len()
    };
    let with = frames(&[], tiny);
    let without = frames(&[], |r| {
        tiny(r);
        r.clearing = Clearing::Unrecorded;
    });
    hold(&without.trace, &without.at("dump"));
    assert_eq!(with.more["frames"]["clearing"], "whole lines, not fetched");
    assert_eq!(without.more["frames"]["clearing"], "not recorded");
    assert!(with.count("pages_cleared") > 1000);
    assert_eq!(
        (
            without.count("pages_cleared"),
            without.count("pages_copied")
        ),
        (0, 0)
    );
    // Fetched or not, the same pages are written; a line that is overwritten whole is not read for it.
    let fetched = frames(&[], |r| {
        tiny(r);
        r.clearing = Clearing::Fetched;
    });
    hold(&fetched.trace, &fetched.at("dump"));
    let reads = |recorded: &Recorded| {
        let read = |r: &&Record| r.op == Op::ReadMiss;
        recorded.records.iter().filter(read).count() as u64
    };
    let spared = reads(&fetched) - reads(&with);
    let lines = 64 * (with.count("pages_cleared") + with.count("pages_copied"));
    assert!(
        spared > lines * 9 / 10 && spared < lines * 11 / 10,
        "{spared} of {lines}"
    );
    let (clearing, not) = (zeros(&with), zeros(&without));
    assert!(clearing > 300 && not < clearing / 4, "{clearing} and {not}");
    // What a frame held is gone all the same.
    assert!(without.records.iter().any(|r| r.op == Op::Changed));
}

#[test]
#[ignore = "machine: records under QEMU"]
fn the_kernels_instructions_are_between_its_lines() {
    let instructions = |fault, line| {
        let recorded = frames(&[], |r| {
            tiny(r);
            r.kernel = KernelTime { fault, line };
        });
        let (cleared, copied) = (
            recorded.count("pages_cleared"),
            recorded.count("pages_copied"),
        );
        let kernel = cleared * (fault + 64 * line) + copied * (fault + 128 * line);
        let all: u64 = recorded.records.iter().map(|r| u64::from(r.gap)).sum();
        (all, kernel)
    };
    let (few, little) = instructions(0, 1);
    let (many, much) = instructions(5000, 51);
    let (more, kernel) = (many as f64 - few as f64, much as f64 - little as f64);
    // Threads that wait for each other differ from run to run.
    assert!(
        (more / kernel - 1.0).abs() < 0.05,
        "{more} instructions more, {kernel} of the kernel"
    );
}

#[test]
#[ignore = "machine: records under QEMU"]
fn random_frames_and_those_of_no_last_level_lose_nothing() {
    let random = frames(&[], |r| {
        let (seed, frames) = (7, 1 << 14);
        r.pages = sardonyx_record::PageFrames::Random { seed, frames };
    });
    hold(&random.trace, &random.at("dump"));
    let without = frames(&[], |r| {
        r.caches.llc = None;
        r.reuse = Reuse::Never;
    });
    all_is_kept(&without, &without.at("dump.gone"));
}
