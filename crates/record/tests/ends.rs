//! How recordings end: of many threads, by another program, with the recorder.

mod common;

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use common::{compile, hold, image, plugin, records, request, run};
use sardonyx_record::{Level, PageFrames, Request, record};
use sardonyx_trace::Op;

#[test]
#[ignore = "machine: records under QEMU"]
fn threads_whose_stacks_are_gone_leave_no_line_behind() {
    let folder = tempfile::tempdir().unwrap();
    let program = compile("threads", folder.path(), &[]);
    for many in ["5", "8", "16"] {
        let trace = folder.path().join(format!("{many}.parquet"));
        let outcome = run(&request(&trace, &[program.to_str().unwrap(), many]));
        assert_eq!(outcome.status, Some(0));
        let trace = &outcome.traces[0];
        assert!(
            trace.complete && trace.notes.is_empty(),
            "{many}: {trace:?}"
        );
    }
}

#[test]
#[ignore = "machine: records under QEMU"]
fn a_recording_says_how_its_program_ended() {
    let folder = tempfile::tempdir().unwrap();
    for (script, exit) in [
        ("exit 0", serde_json::json!({"status": 0})),
        ("exit 5", serde_json::json!({"status": 5})),
        ("kill -6 $$", serde_json::json!({"signal": 6})),
    ] {
        let trace = folder.path().join("t.parquet");
        run(&request(&trace, &["/bin/sh", "-c", script]));
        let reader = sardonyx_trace::TraceReader::open(&trace).unwrap();
        assert_eq!(
            reader.provenance().more.get("exit"),
            Some(&exit),
            "{script}"
        );
    }
}

#[test]
#[ignore = "machine: records under QEMU"]
fn memory_that_goes_without_a_word_ends_nobody() {
    let folder = tempfile::tempdir().unwrap();
    let program = compile("gone", folder.path(), &[]);
    let file = folder.path().join("file");
    let words = [program.to_str().unwrap(), file.to_str().unwrap()];
    for level in [Level::Memory, Level::Cpu] {
        let trace = folder.path().join("t.parquet");
        let at_the_core = level == Level::Cpu;
        let outcome = run(&Request {
            level,
            pages: match at_the_core {
                true => PageFrames::Virtual,
                false => PageFrames::Sequential,
            },
            pc: at_the_core,
            ..request(&trace, &words)
        });
        assert_eq!((outcome.status, outcome.signal), (Some(0), None));
        assert!(outcome.traces[0].complete, "{:?}", outcome.traces[0]);
    }
}

fn executable(folder: &Path, name: &str, bytes: &[u8]) -> String {
    let path = folder.join(name);
    std::fs::write(&path, bytes).unwrap();
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(&path, mode).unwrap();
    path.to_str().unwrap().to_owned()
}

fn execs(trace: &Path) -> Vec<(u64, String)> {
    let reader = sardonyx_trace::TraceReader::open(trace).unwrap();
    let execs = reader.provenance().more.get("execs").cloned();
    serde_json::from_value(execs.unwrap_or_default()).unwrap_or_default()
}

#[test]
#[ignore = "machine: records under QEMU"]
fn a_program_is_recorded_through_shims() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    compile("truth", folder.path(), &[]);
    let inner = b"#!/bin/sh -e\ncd \"$1\"\nexec ./truth dumped 4\n";
    let inner = executable(folder.path(), "inner", inner);
    let outer = format!(
        "#!/usr/bin/env sh\nexec {inner} {}\n",
        folder.path().display()
    );
    let outer = executable(folder.path(), "outer", outer.as_bytes());
    let trace = at("t.parquet");
    let outcome = run(&request(&trace, &[&outer]));
    assert_eq!(outcome.status, Some(0), "{outcome:?}");
    let first = &outcome.traces[0];
    assert!(first.complete, "{outcome:?}");
    // The program forks, and its children are not asked for.
    let children = |note: &String| note.contains("child processes are not in this trace");
    assert!(first.notes.iter().all(children), "{outcome:?}");
    // env became a shell, that one another, and that one the program, which says what it held.
    let execs = execs(&trace);
    let paths: Vec<&str> = execs.iter().map(|(_, path)| path.as_str()).collect();
    assert_eq!(paths[1..], [&inner, "./truth"], "{paths:?}");
    assert!(hold(&trace, &at("dumped")) > 60_000);
    // What the programs before had in the caches left them later, if at all, as it was.
    let all = records(&trace);
    let gaps = all
        .windows(2)
        .map(|w| w[1].op.is_write() && w[0].op.is_write() && w[1].gap == 0);
    let (longest, _) = gaps.fold((0, 0), |(most, run), write| {
        let run = if write { run + 1 } else { 0 };
        (most.max(run), run)
    });
    assert!(longest < 64, "{longest} writes at once");
}

#[test]
#[ignore = "machine: records under QEMU"]
fn children_that_become_others_are_recorded_if_wanted() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let program = compile("truth", folder.path(), &[]);
    let script = format!(
        "#!/bin/sh\n{} {} 4\nexit 5\n",
        program.display(),
        at("dumped").display()
    );
    let script = executable(folder.path(), "script", script.as_bytes());
    let mut wanted = request(&at("t.parquet"), &[&script]);
    let outcome = run(&wanted);
    assert_eq!((outcome.status, outcome.traces.len()), (Some(5), 1));
    assert!(at("dumped").exists());
    wanted.follow_fork = true;
    wanted.skip_instructions = 100_000; // of the first process
    let outcome = run(&wanted);
    assert_eq!(outcome.status, Some(5));
    assert!(
        outcome.traces.iter().all(|trace| trace.complete),
        "{outcome:?}"
    );
    hold(&at("t.1.parquet"), &at("dumped"));
    let (row, _) = execs(&at("t.1.parquet"))[0];
    let after = &records(&at("t.1.parquet"))[row as usize..];
    let first = after.iter().find(|r| r.op != Op::Changed).unwrap();
    assert!(
        first.gap < 10_000,
        "{} instructions of the child were skipped",
        first.gap
    );
}

#[test]
#[ignore = "machine: records under QEMU"]
fn files_keep_their_lines_in_what_a_program_becomes() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let program = compile("exec", folder.path(), &[]);
    let program = program.to_str().unwrap();
    for file in ["a", "b"] {
        std::fs::write(at(file), [0; 4096]).unwrap();
    }
    let (a, b) = (at("a"), at("b"));
    let words = [
        program,
        "-m",
        &a,
        "1",
        program,
        "-m",
        &b,
        "2",
        "/proc/self/exe",
        "-m",
        &a,
        "3",
        "/bin/true",
    ];
    let trace = folder.path().join("t.parquet");
    let mut wanted = request(&trace, &words);
    wanted.level = Level::Cpu;
    assert_eq!(run(&wanted).status, Some(0));
    assert_eq!(execs(&trace).len(), 3);
    let reader = sardonyx_trace::TraceReader::open(&trace).unwrap();
    let files = reader.provenance().more["files"].as_array().unwrap();
    assert_eq!(files.len(), 2, "{files:?}");
    let image = image(&records(&trace));
    for (file, path, byte) in [(&files[0], &a, b'3'), (&files[1], &b, b'2')] {
        assert_eq!(file["path"], **path);
        assert_eq!(image[&file["first_line"].as_u64().unwrap()], [byte; 64]);
    }
}

#[test]
#[ignore = "machine: records under QEMU"]
fn an_exec_that_fails_leaves_the_program_as_it_was() {
    let folder = tempfile::tempdir().unwrap();
    let trace = folder.path().join("t.parquet");
    let program = compile("exec", folder.path(), &[]);
    let broken = executable(folder.path(), "broken", b"\x7FELF");
    // A program whose loader is not there.
    let mut bytes = std::fs::read("/bin/true").unwrap();
    let name = b"/lib64/ld-linux";
    let loader = bytes.windows(name.len()).position(|w| w == name).unwrap();
    bytes[loader + 1..loader + 4].copy_from_slice(b"nil");
    let unloadable = executable(folder.path(), "unloadable", &bytes);
    for other in [&broken, &unloadable, "/no/such"] {
        let outcome = run(&request(&trace, &[program.to_str().unwrap(), other]));
        assert_eq!(outcome.status, Some(3), "{other}");
        assert!(outcome.traces[0].complete, "{outcome:?}");
        assert!(outcome.traces[0].notes.is_empty(), "{outcome:?}");
        assert!(execs(&trace).is_empty());
    }
}

#[test]
#[ignore = "machine: records under QEMU"]
fn a_program_that_becomes_what_cannot_be_recorded_is_an_error_and_no_trace() {
    let folder = tempfile::tempdir().unwrap();
    let trace = folder.path().join("t.parquet");
    let started = Instant::now();
    let program = compile("exec", folder.path(), &[]);
    // The kernel does not look at the byte that says how wide addresses are.
    let mut bytes = std::fs::read("/bin/sleep").unwrap();
    bytes[4] = 1;
    let other = executable(folder.path(), "other", &bytes);
    let words = [program.to_str().unwrap(), &other, "100"];
    let problem = record(&request(&trace, &words), &Default::default()).unwrap_err();
    let problem = problem.to_string();
    assert!(problem.contains("other by exec"), "{problem}");
    assert!(started.elapsed() < Duration::from_secs(30));
    assert!(!trace.exists());
}

/// The part of the recorder that is killed: this test's own program, which calls nothing but this.
#[test]
#[ignore = "by hand: the child of the_emulator_dies_with_its_recorder"]
fn record_until_killed() {
    let trace = std::env::var("SARDONYX_TEST_TRACE").unwrap();
    run(&request(Path::new(&trace), &["sleep", "1000"]));
}

#[test]
#[ignore = "machine: records under QEMU"]
fn the_emulator_dies_with_its_recorder() {
    let folder = tempfile::tempdir().unwrap();
    assert!(plugin().is_file());
    let mut recorder = Command::new(std::env::current_exe().unwrap())
        .args(["--ignored", "--exact", "record_until_killed"])
        .env("SARDONYX_TEST_TRACE", folder.path().join("t.parquet"))
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let within = |what: &dyn Fn() -> bool| {
        let started = Instant::now();
        while !what() && started.elapsed() < Duration::from_secs(30) {
            std::thread::sleep(Duration::from_millis(20));
        }
        what()
    };
    let id = recorder.id();
    // It has begun once it maps its ring; one before it only says that it can record.
    let maps =
        |child: u32| std::fs::read_to_string(format!("/proc/{child}/maps")).unwrap_or_default();
    // Until its exec a new process has the recorder's own ring.
    let mapped = ["sardonyx-record-", "libsardonyx_recorder.so"];
    let begun =
        || emulator(id).filter(|&child| mapped.iter().all(|name| maps(child).contains(name)));
    assert!(within(&|| begun().is_some()), "no emulator with a ring");
    let child = begun().unwrap();
    std::thread::sleep(Duration::from_millis(300));
    recorder.kill().unwrap();
    recorder.wait().unwrap();
    assert!(within(&|| maps(child).is_empty()), "{child} lives on");
}

fn emulator(recorder: u32) -> Option<u32> {
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    let mut numbers = processes.filter_map(|e| e.file_name().to_str()?.parse::<u32>().ok());
    numbers.find(|process| {
        let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
        let parent = stat
            .rsplit_once(") ")
            .and_then(|(_, rest)| rest.split(' ').nth(1)?.parse().ok());
        parent == Some(recorder)
    })
}
