//! Records a program without Python, for those who work on the recorder: `record PLUGIN OUTPUT [key=value..] -- PROGRAM ARGS`.

use std::sync::Arc;

use sardonyx_record::{
    Clearing, Geometry, Hierarchy, KernelTime, Level, Pages, Request, Reuse, Window, record,
};

fn main() {
    let words: Vec<String> = std::env::args().collect();
    let at = words.iter().position(|w| w == "--").expect("-- PROGRAM");
    let geometry = |bytes, ways| Geometry { bytes, ways };
    let has = |option: &str| words[3..at].iter().any(|w| w == option);
    let number = |key: &str| {
        let mut values = words[3..at].iter().filter_map(|w| w.split_once('='));
        let (_, value) = values.find(|(k, _)| *k == key)?;
        Some(value.parse().expect("a number"))
    };
    let request = Request {
        program: words[at + 1..].iter().map(Into::into).collect(),
        output: words[2].clone().into(),
        environment: Vec::new(),
        qemu: std::env::var_os("QEMU").map(Into::into),
        plugin: words[1].clone().into(),
        caches: Hierarchy {
            l1: geometry(32 << 10, 8),
            l2: geometry(256 << 10, 8),
            llc: (!has("no-llc")).then_some(geometry(
                if has("llc-16m") { 16 << 20 } else { 1 << 20 },
                16,
            )),
            inclusive: !has("non-inclusive"),
            cores: 4,
        },
        level: if has("cpu") {
            Level::Cpu
        } else {
            Level::Memory
        },
        pages: match has("cpu") {
            true => Pages::Virtual,
            false => Pages::Sequential,
        },
        reuse: match words[3..at].iter().find_map(|w| w.strip_prefix("reuse=")) {
            Some("first-freed") => Reuse::FirstFreed,
            Some("never") => Reuse::Never,
            _ => Reuse::LastFreed,
        },
        clearing: match words[3..at]
            .iter()
            .find_map(|w| w.strip_prefix("clearing="))
        {
            Some("none") => Clearing::Unrecorded,
            Some("fetched") => Clearing::Fetched,
            _ => Clearing::WholeLines,
        },
        kernel: KernelTime {
            fault: number("fault").unwrap_or(KernelTime::default().fault),
            line: number("line").unwrap_or(KernelTime::default().line),
        },
        skip_instructions: number("skip-millions").map_or(0, |n| n * 1_000_000),
        window: Window {
            limit: number("limit"),
            ..Window::default()
        },
        follow_fork: has("follow"),
        read_data: has("reads"),
        pc: has("pc"),
        acks: has("acks").then_some(1),
        verify: has("verify"),
    };
    match record(&request, &Arc::default()) {
        Ok(outcome) => println!("{outcome:?}"),
        Err(e) => println!("error: {e}"),
    }
}
