//! A program that forks is recorded with its children, in one order.

mod common;

use std::collections::BTreeMap;
use std::path::Path;

use common::{compile, image, records, request, run};
use sardonyx_record::Level;
use sardonyx_trace::Op;
use serde_json::Value;

fn recorded(folder: &Path) -> sardonyx_record::RecordOutcome {
    let program = compile("forks", folder, &[]);
    let trace = folder.join("t.parquet");
    let words = [program.to_str().unwrap(), folder.to_str().unwrap()];
    let mut wanted = request(&trace, &words);
    (wanted.level, wanted.pc, wanted.follow_fork) = (Level::Cpu, true, true);
    run(&wanted)
}

#[test]
#[ignore = "machine: records under QEMU"]
fn what_all_processes_store_to_files_is_in_one_trace() {
    let folder = tempfile::tempdir().unwrap();
    let outcome = recorded(folder.path());
    assert_eq!((outcome.status, outcome.traces.len()), (Some(0), 1));
    assert!(outcome.traces[0].notes.is_empty(), "{outcome:?}");
    let trace = folder.path().join("t.parquet");
    let all = records(&trace);
    let more = sardonyx_trace::TraceReader::open(&trace)
        .unwrap()
        .provenance()
        .more
        .clone();

    // Every file holds what the trace says, also those that two processes mapped, or a child alone.
    let image = image(&all);
    let files = more["files"].as_array().unwrap();
    let mut names: Vec<&str> = Vec::new();
    for file in files {
        let path = Path::new(file["path"].as_str().unwrap());
        names.push(path.file_name().unwrap().to_str().unwrap());
        let first = file["first_line"].as_u64().unwrap();
        for (line, bytes) in std::fs::read(path).unwrap().chunks(64).enumerate() {
            let known = image.get(&(first + line as u64)).copied();
            assert_eq!(known.unwrap_or([0; 64]), bytes, "{path:?}, line {line}");
        }
    }
    names.sort_unstable();
    assert_eq!(names, ["a", "b", "c"]);

    // Two processes took turns, and so they are in the trace.
    let a = files
        .iter()
        .find(|f| f["path"].as_str().unwrap().ends_with("/a"));
    let counter = a.unwrap()["first_line"].as_u64().unwrap() + 64;
    let turns = all
        .iter()
        .filter(|r| r.op == Op::Store && r.line.0 == counter);
    let turns: Vec<(u64, u16)> = turns
        .map(|r| {
            (
                u64::from_le_bytes(r.data.unwrap()[..8].try_into().unwrap()),
                r.thread,
            )
        })
        .collect();
    let ends = (turns.len(), turns.last().map(|(turn, _)| *turn));
    assert_eq!(ends, (300, Some(300)));
    assert!(turns.is_sorted_by_key(|(turn, _)| *turn), "{turns:?}");
    // Between a store and its record the other may store as well: the records then have the later bytes.
    let [one, other] = [(1, 0), (0, 1)].map(|odd_and_even| {
        let first = turns.iter().map(|(_, by)| *by).min();
        let is_first = |by: u16| u64::from(Some(by) == first);
        let at_its_turn = |(number, (turn, by)): &(u64, &(u64, u16))| {
            let wanted = if number % 2 == 1 {
                odd_and_even.0
            } else {
                odd_and_even.1
            };
            turn == number && is_first(*by) == wanted
        };
        (1..).zip(&turns).filter(at_its_turn).count()
    });
    assert!(one.max(other) >= 280, "{turns:?}");

    // Each process's threads have numbers of their own.
    let processes = more["processes"].as_array().unwrap();
    assert_eq!(processes.len(), 6, "{processes:?}");
    assert!(
        processes.iter().all(|p| p["became"] == Value::Null),
        "{processes:?}"
    );
    let execs: Vec<usize> = processes
        .iter()
        .map(|p| p["execs"].as_array().map_or(0, Vec::len))
        .collect();
    assert_eq!(execs, [0, 0, 0, 1, 0, 0]);
    let mut of: BTreeMap<u64, usize> = BTreeMap::new();
    for (number, process) in processes.iter().enumerate().skip(1) {
        for thread in process["threads"].as_array().unwrap() {
            assert_eq!(of.insert(thread.as_u64().unwrap(), number), None);
        }
    }
    assert_eq!(of.values().filter(|&&number| number == 1).count(), 2);
    assert_eq!(processes[2]["parent"], 1);
    assert!(all.iter().all(|r| r.thread < 16));

    // No line of a child's own memory is taken for its parent's.
    let own =
        |r: &&sardonyx_trace::Record| of.contains_key(&u64::from(r.thread)) && r.op != Op::Fence;
    assert!(all.iter().filter(own).all(|r| r.line.0 >= 1 << 57));

    // Stores of all have places, of the program that their process was.
    let sites = more["sites"].as_array().unwrap();
    assert!(
        sites
            .iter()
            .all(|site| site[0].as_u64().unwrap() <= sites.len() as u64)
    );
    let programs = more["site_programs"].as_array().unwrap();
    assert_eq!(
        (&programs[0][1], &programs[1][1]),
        (&1.into(), &0.into()),
        "{programs:?}"
    );
    for program in 0..2 {
        let modules = more["modules"].as_array().unwrap().iter();
        let of = modules.filter(|m| {
            m["of_program"] == program && m["path"].as_str().unwrap().ends_with("/forks")
        });
        assert!(of.count() > 0, "{program}");
    }
}

#[test]
#[ignore = "machine: records under QEMU"]
fn without_pc_children_are_left_out_as_before() {
    let folder = tempfile::tempdir().unwrap();
    let program = compile("forks", folder.path(), &[]);
    let trace = folder.path().join("t.parquet");
    let words = [program.to_str().unwrap(), folder.path().to_str().unwrap()];
    let mut wanted = request(&trace, &words);
    wanted.level = Level::Cpu;
    let outcome = run(&wanted);
    assert!(outcome.traces[0].notes[0].starts_with("4 child processes are not in this trace"));
}
