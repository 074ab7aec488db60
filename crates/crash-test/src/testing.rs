//! Helpers of tests: recordings made by hand, and all that an exploration of one needs.

use std::path::{Path, PathBuf};
use std::time::Duration;

use sardonyx_trace::line::Virtual;
use sardonyx_trace::{Level, Op, Provenance, Record, TraceWriter};
use serde_json::{Map, Value, json};

use crate::images::grounds;
use crate::interrupt::Interrupt;
use crate::question::Question;
use crate::recording::platform::Platform;
use crate::recording::pools::{FILE_LINES, FILES, Pool};
use crate::recording::versions::Versions;
use crate::recording::{Act, Event, LINE, NOWHERE, PersistenceUnit, Recording};
use crate::recovery::Recovery;
use crate::recovery::bench::{Clock, Trial};
use crate::search::judge::{Judge, Refusal, SearchState};

#[derive(Clone, Copy)]
pub(crate) enum Do {
    Store(u32, u8),
    Past(u32, u8),
    Clwb(u32),
    Clflush(u32),
    Fence,
    /// A flush of a line that is in no pool.
    Elsewhere,
}

/// Makes a recording of these acts: a store has the line's number and the value of all its bytes; each record is a row.
pub(crate) fn recording(program: &[(u16, Do)]) -> Recording {
    recording_on(Platform::Adr, program)
}

pub(crate) fn recording_on(platform: Platform, program: &[(u16, Do)]) -> Recording {
    let unit = platform.unit() / LINE as u32;
    let mut made = Recording {
        pools: vec![Pool::zeros("pool", 16384)],
        rows: program.len() as u64,
        platform,
        processes: 1,
        calls: true,
        ..Recording::default()
    };
    for (row, &(thread, what)) in program.iter().enumerate() {
        let mut changed = false;
        let mut store = |line: u32, value: u8, past: bool| {
            let slot = (made.lines.iter()).position(|slot| slot.line == line / unit * unit);
            let slot = slot.unwrap_or_else(|| {
                made.lines.push(PersistenceUnit {
                    file: 0,
                    line: line / unit * unit,
                    versions: Versions::new(0, unit == 1),
                });
                made.lines.len() - 1
            });
            let versions = &mut made.lines[slot].versions;
            let before = versions.count().saturating_sub(1);
            let version = versions.push(line, &[value; 64], row as u32, || [0; 64]);
            changed = version > before;
            Act::Store {
                slot: slot as u32,
                version,
                past,
            }
        };
        let act = match what {
            Do::Store(line, value) => store(line, value, false),
            Do::Past(line, value) => store(line, value, true),
            Do::Clwb(line) | Do::Clflush(line) => {
                match (made.lines.iter()).position(|slot| slot.line == line / unit * unit) {
                    None => Act::FlushClean,
                    Some(slot) => Act::Flush {
                        slot: slot as u32,
                        ordered: matches!(what, Do::Clflush(_)),
                    },
                }
            }
            Do::Fence => Act::Fence,
            Do::Elsewhere => Act::Foreign,
        };
        let event = Event {
            row: row as u64,
            thread,
            site: NOWHERE,
            act,
        };
        made.events.push(event, changed);
    }
    made
}

pub(crate) fn shared(program: &[(u16, Do)], words: &[&str]) -> SearchState {
    let recovery = Recovery {
        words: words.iter().map(|&word| word.to_owned()).collect(),
        ok: vec![0],
        time: Duration::from_secs(20),
        memory: 1 << 32,
        oracle: None,
        interrupt: Interrupt::default(),
    };
    let clock = Clock::new(Some(Duration::from_secs(600)), Interrupt::default());
    let trial = Trial::new(recovery, clock);
    SearchState::new(trial, recording(program), Refusal::Status)
}

pub(crate) fn on_a_bench<T>(shared: &SearchState, test: impl FnOnce(&mut Judge<'_>) -> T) -> T {
    let folder = grounds::scratch().expect("a folder");
    let grounds = grounds::grounds(&shared.recording, folder.path()).expect("grounds");
    let judge = Judge::new(shared, &grounds, &folder.path().join("bench"));
    test(&mut judge.expect("a bench"))
}

pub(crate) fn question() -> Question {
    let asked = r#"{"recording": "recording", "pool": "pool", "recover": [], "budget": 600, "source": false}"#;
    serde_json::from_str(asked).expect("all else has a default")
}

/// Writes a recording of a store to each of two files, whose provenance `change` may spoil.
pub(crate) fn written(folder: &Path, change: impl FnOnce(&mut Map<String, Value>)) -> PathBuf {
    let hash = |bytes: &[u8]| blake3::hash(bytes).to_hex().to_string();
    let file = |number: u64, name: &str| {
        let ground = json!({"bytes": 4096, "hash": hash(&[0; 4096]), "zeros": true});
        json!({
            "path": format!("/mnt/pm/{name}"), "first_line": FILES + number * FILE_LINES, "bytes": 4096,
            "ground": ground, "mapped": [[FILES + number * FILE_LINES, 0x7f00_0000_0000_u64, 4096]],
        })
    };
    let mut provenance = Provenance {
        level: Level::Cpu,
        ..Provenance::default()
    };
    provenance.more.insert(
        "files".to_owned(),
        json!([file(0, "pool"), file(1, "other")]),
    );
    change(&mut provenance.more);
    let path = folder.join("r.parquet");
    let mut writer = TraceWriter::with_level(&path, provenance, 1).unwrap();
    for number in [0, 1] {
        let line = Virtual(FILES + number * FILE_LINES);
        for op in [Op::Store, Op::Clwb, Op::Fence] {
            let record = Record {
                gap: 1,
                thread: 0,
                op,
                line,
                data: (op == Op::Store).then_some([7; 64]),
            };
            writer.push(&record).unwrap();
        }
    }
    writer.finish().unwrap();
    path
}
