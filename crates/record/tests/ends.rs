//! How recordings end: of many threads, by another program, with the recorder.

mod common;

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use common::{compile, plugin, request, run};
use sardonyx_record::record;

#[test]
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
fn a_program_that_becomes_another_is_an_error_and_no_trace() {
    let folder = tempfile::tempdir().unwrap();
    let trace = folder.path().join("t.parquet");
    let started = Instant::now();
    let program = compile("exec", folder.path(), &[]);
    let words = [program.to_str().unwrap(), "/bin/sleep", "100"];
    let problem = record(&request(&trace, &words), &Default::default()).unwrap_err();
    let problem = problem.to_string();
    assert!(problem.contains("sleep by exec"), "{problem}");
    assert!(problem.contains("trace record -- "), "{problem}");
    assert!(started.elapsed() < Duration::from_secs(30));
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1); // the program

    // An exec that fails leaves the program as it was.
    let broken = folder.path().join("broken");
    std::fs::write(&broken, b"\x7FELF").unwrap();
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(&broken, mode).unwrap();
    let words = [program.to_str().unwrap(), broken.to_str().unwrap()];
    let outcome = run(&request(&trace, &words));
    assert_eq!(outcome.status, Some(3));
    assert!(outcome.traces[0].complete, "{outcome:?}");
    assert!(outcome.traces[0].notes.is_empty(), "{outcome:?}");
}

/// The part of the recorder that is killed: this test's own program, which calls nothing but this.
#[test]
#[ignore = "the child of the_emulator_dies_with_its_recorder"]
fn record_until_killed() {
    let trace = std::env::var("SARDONYX_TEST_TRACE").unwrap();
    run(&request(Path::new(&trace), &["sleep", "1000"]));
}

#[test]
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
    assert!(within(&|| emulator(id).is_some()), "no emulator");
    let child = emulator(id).unwrap();
    // It has begun once it maps its ring.
    let maps = || std::fs::read_to_string(format!("/proc/{child}/maps")).unwrap_or_default();
    assert!(within(&|| maps().contains("sardonyx-record-")), "no ring");
    std::thread::sleep(Duration::from_millis(300));
    recorder.kill().unwrap();
    recorder.wait().unwrap();
    assert!(within(&|| maps().is_empty()), "{child} lives on");
}

/// The process whose parent is `recorder`.
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
