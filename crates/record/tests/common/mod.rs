//! Compiles a program, records it, and reads the trace back into what memory must have held.
#![allow(dead_code)] // each test uses its part

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use sardonyx_record::{
    Clearing, Geometry, Hierarchy, KernelTime, Level, PageFrames, RecordOutcome, Request, Reuse,
    record,
};
use sardonyx_trace::line::Line;
use sardonyx_trace::{Op, Record, Source};

/// The plugin of this build: Cargo puts it beside the tests, or one folder up.
pub fn plugin() -> PathBuf {
    let exe = std::env::current_exe().unwrap();
    exe.ancestors()
        .skip(1)
        .take(2)
        .map(|folder| folder.join("libsardonyx_recorder.so"))
        .find(|file| file.is_file())
        .expect("the plugin is built with the workspace: cargo test --workspace, or cargo build -p sardonyx-recorder")
}

pub fn compile(name: &str, folder: &Path, more: &[&str]) -> PathBuf {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/programs/{name}.c"));
    let program = folder.join(name);
    let status = Command::new("cc")
        .args(["-O1", "-pthread", "-Wall", "-o"])
        .arg(&program)
        .arg(source)
        .args(more)
        .status()
        .expect("a C compiler");
    assert!(status.success(), "{name}.c must compile");
    program
}

/// Small caches, so that much reaches memory.
pub fn request(output: &Path, words: &[&str]) -> Request {
    let geometry = |bytes, ways| Geometry { bytes, ways };
    Request {
        program: words.iter().map(Into::into).collect(),
        output: output.to_owned(),
        // The trace says where pages lay.
        environment: vec![("SARDONYX_RECORDER_FRAMES".into(), "1".into())],
        qemu: Some(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/qemu/bin/qemu-x86_64")),
        plugin: plugin(),
        caches: Hierarchy {
            l1: geometry(32 << 10, 8),
            l2: geometry(256 << 10, 8),
            llc: Some(geometry(1 << 20, 16)),
            inclusive: true,
            cores: 4,
        },
        level: Level::Memory,
        pages: PageFrames::Sequential,
        reuse: Reuse::LastFreed,
        clearing: Clearing::default(),
        kernel: KernelTime::default(),
        skip_instructions: 0,
        window: Default::default(),
        follow_fork: false,
        read_data: false,
        pc: false,
        rest: 100,
        acks: None,
        verify: false,
    }
}

pub fn run(request: &Request) -> RecordOutcome {
    let mut request = request.clone();
    if request.level == Level::Cpu {
        request.pages = PageFrames::Virtual;
    }
    record(&request, &Default::default()).unwrap_or_else(|e| panic!("{e}"))
}

pub fn records(path: &Path) -> Vec<Record> {
    let mut source = Source::open(path).unwrap();
    let (mut all, mut batch) = (Vec::new(), Vec::new());
    while source.next_batch(&mut batch).unwrap() {
        all.append(&mut batch);
    }
    all
}

/// The contents of memory after `records`.
pub fn image(records: &[Record]) -> HashMap<u64, Line> {
    let mut image = HashMap::new();
    for record in records {
        let line = record.line.0;
        let Some(data) = &record.data else { continue };
        if record.op == Op::Changed {
            let number = |at: usize| u64::from_le_bytes(data[at..at + 8].try_into().unwrap());
            let (lines, from) = (number(0), number(8));
            for i in 0..lines {
                image.remove(&(line + i));
                if let Some(from) = from.checked_sub(1)
                    && let Some(&old) = image.get(&(from + i))
                {
                    image.insert(line + i, old);
                }
            }
        } else if record.op.has_data() {
            image.insert(line, *data);
        }
    }
    image
}

pub fn placed(trace: &Path) -> Vec<(u64, u64)> {
    let reader = sardonyx_trace::TraceReader::open(trace).unwrap();
    let Some(pages) = reader.provenance().more.get("pages").cloned() else {
        return Vec::new();
    };
    let pages: Vec<(u64, u64, u64)> = serde_json::from_value(pages).unwrap();
    pages
        .into_iter()
        .map(|(_, page, frame)| (page, frame * 64))
        .collect()
}

/// Lines and bytes that a program said its memory held.
pub fn dump(path: &Path) -> Vec<(u64, Line)> {
    let bytes = std::fs::read(path).unwrap();
    let (mut at, mut lines) = (0, Vec::new());
    while at < bytes.len() {
        let number = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap());
        let (address, length) = (number(at), number(at + 8) as usize);
        at += 16;
        assert_eq!(address % 64, 0, "regions begin with a line");
        for (i, line) in bytes[at..at + length].chunks_exact(64).enumerate() {
            lines.push((address / 64 + i as u64, line.try_into().unwrap()));
        }
        at += length;
    }
    lines
}

/// Every line of the dump must be in the trace with its last bytes; gives how many there were.
pub fn hold(trace: &Path, dumped: &Path) -> usize {
    let image = image(&records(trace));
    let lines = dump(dumped);
    // At the core lines are addresses.
    let last: HashMap<u64, u64> = placed(trace).into_iter().collect();
    let lies = |line: u64| {
        last.get(&(line / 64))
            .map_or(line, |first| first + line % 64)
    };
    let (mut wrong, mut missing) = (Vec::new(), Vec::new());
    for (line, bytes) in &lines {
        match image.get(&lies(*line)) {
            Some(known) if known == bytes => {}
            Some(_) => wrong.push(line * 64),
            None => missing.push(line * 64),
        }
    }
    assert!(
        wrong.is_empty() && missing.is_empty(),
        "of {} lines {} differ (first at {:x?}), {} are not in the trace (first at {:x?})",
        lines.len(),
        wrong.len(),
        wrong.first(),
        missing.len(),
        missing.first()
    );
    lines.len()
}
