//! What a recording says about itself, checked before anything is read, mapped or written by it: a recording may come
//! from somebody else.

use rustc_hash::FxHashSet;
use sardonyx_trace::Provenance;
use serde::Deserialize;

use crate::recording::pools::FileEntry;
use crate::recording::sites::{Module, Ran, Site};
use crate::recovery::ending::Ended;

/// An entry of the provenance, or the default if there is none.
///
/// # Errors
/// It is not what a recorder writes.
pub(crate) fn entry<T: for<'a> Deserialize<'a> + Default>(
    provenance: &Provenance,
    key: &str,
) -> Result<T, String> {
    let Some(value) = provenance.more.get(key) else {
        return Ok(T::default());
    };
    T::deserialize(value).map_err(|e| format!("its `{key}` cannot be read: {e}; record it again"))
}

/// The mapped files.
pub(crate) fn files(provenance: &Provenance) -> Result<Vec<FileEntry>, String> {
    let files: Vec<FileEntry> = entry(provenance, "files")?;
    let mut numbers = FxHashSet::default();
    for file in &files {
        let checked = match file.number() {
            Some(number) if !numbers.insert(number) => Err("has the lines of another file"),
            _ => file.check(),
        };
        checked.map_err(|problem| {
            format!(
                "its file {} {problem}; record it again",
                file.path.display()
            )
        })?;
    }
    Ok(files)
}

/// The places in the program. A place's caller comes before it, so that every stack has an end.
pub(crate) fn sites(provenance: &Provenance) -> Result<Vec<Site>, String> {
    let sites: Vec<(u32, u64, bool)> = entry(provenance, "sites")?;
    let programs: Vec<(usize, u32)> = entry(provenance, "site_programs")?;
    let site = |(number, (parent, pc, locked))| {
        let before = programs.partition_point(|(from, _)| *from <= number);
        Site {
            parent,
            pc,
            locked,
            program: before.checked_sub(1).map_or(0, |last| programs[last].1),
        }
    };
    let sites: Vec<Site> = sites.into_iter().enumerate().map(site).collect();
    match (sites.iter().enumerate()).find(|(number, site)| site.parent as usize > *number) {
        None => Ok(sites),
        Some((number, _)) => Err(format!(
            "its place {number} is called by a later one; record it again"
        )),
    }
}

pub(crate) fn modules(provenance: &Provenance) -> Result<Vec<Module>, String> {
    let modules: Vec<Module> = entry(provenance, "modules")?;
    let fits = |module: &&Module| {
        let length = module.end.checked_sub(module.start);
        length.is_some_and(|length| module.offset.checked_add(length).is_some())
    };
    match modules.iter().find(|module| !fits(module)) {
        None => Ok(modules),
        Some(module) => Err(format!(
            "its file {} ends before it begins; record it again",
            module.path.display()
        )),
    }
}

/// The code that ran, of each program.
pub(crate) fn ran(provenance: &Provenance) -> Result<Vec<Ran>, String> {
    let told: Vec<Vec<u64>> = entry(provenance, "ran")?;
    let of_program = |entry: Vec<u64>| Ran::from_lengths(&entry);
    Ok(told.into_iter().map(of_program).collect())
}

/// How the program ended; recordings that were cut short, and old ones, do not say.
pub(crate) fn ended(provenance: &Provenance) -> Result<Option<Ended>, String> {
    #[derive(Deserialize)]
    #[serde(rename_all = "lowercase", deny_unknown_fields)]
    enum Exit {
        Status(i32),
        Signal(i32),
    }
    Ok(
        entry::<Option<Exit>>(provenance, "exit")?.map(|exit| match exit {
            Exit::Status(status) => Ended::Status(status),
            Exit::Signal(signal) => Ended::Signal(signal),
        }),
    )
}

/// The printed texts, each with the row before which it was printed.
pub(crate) fn acks(provenance: &Provenance) -> Result<Vec<(u64, String)>, String> {
    let acks: Vec<(u64, String)> = entry(provenance, "acks")?;
    let bytes = |(_, text): &(u64, String)| text.chars().all(|c| u32::from(c) < 256);
    match acks.is_sorted_by_key(|(row, _)| *row) && acks.iter().all(bytes) {
        true => Ok(acks),
        false => Err(
            "its `acks` are not bytes in the order in which they were printed; record it again"
                .to_owned(),
        ),
    }
}

#[cfg(test)]
mod tests {
    use crate::interrupt::Interrupt;
    use crate::recording::Recording;
    use crate::recording::pools::{FILE_LINES, FILES, MOST_BYTES};
    use crate::search::explore::explore;
    use crate::testing::{question, written};
    use sardonyx_trace::line::Virtual;
    use sardonyx_trace::{Op, Record, TraceWriter};
    use serde_json::{Value, json};
    use std::path::{Path, PathBuf};

    fn opened(change: impl FnOnce(&mut serde_json::Map<String, Value>)) -> Result<(), String> {
        let folder = tempfile::tempdir().unwrap();
        let path = written(folder.path(), change);
        let pools = ["pool", "other"].map(PathBuf::from);
        let opened =
            Recording::open(&path, &pools, &Interrupt::default()).map_err(|e| e.to_string())?;
        assert_eq!(opened.lines.len(), 2);
        Ok(())
    }

    /// The error for a recording whose second file has this instead.
    fn refused(key: &str, value: Value) -> String {
        let error = opened(|more| more["files"][1][key] = value.clone());
        let error = error.expect_err(&format!("{key}: {value}"));
        assert!(
            !error.contains('\n') && error.contains("record it again"),
            "{error}"
        );
        error
    }

    #[test]
    fn a_recording_that_says_nothing_strange_is_read() {
        opened(|_| ()).unwrap();
    }

    /// The copy of a file lies below the folder of copies whatever the recording calls the file: the victim stays.
    #[test]
    fn a_path_of_a_recording_leads_to_no_other_file() {
        let folder = tempfile::tempdir().unwrap();
        let victim = folder.path().join("other");
        std::fs::write(&victim, "mine").unwrap();
        let up = format!("/mnt/pm/{}{}", "../".repeat(12), victim.display());
        let relative = victim.strip_prefix("/").unwrap().display().to_string();
        for path in [up, format!("/../{relative}"), relative, "other".to_owned()] {
            let recording = written(folder.path(), |more| {
                more["files"][1]["path"] = path.clone().into();
            });
            let mut asked = question();
            (asked.recording, asked.pool) = (recording, PathBuf::from("pool"));
            (asked.more_pools, asked.recover) =
                (vec![PathBuf::from("other")], vec!["true".to_owned()]);
            let error = explore(&asked, &Interrupt::default(), &|_, _| true)
                .err()
                .expect(&path)
                .to_string();
            assert!(error.contains("the path of its file"), "{error}");
            assert_eq!(std::fs::read_to_string(&victim).unwrap(), "mine");
        }
    }

    #[test]
    fn numbers_that_no_recorder_writes_are_refused() {
        let huge = [MOST_BYTES + 1, u64::MAX];
        for bytes in huge {
            assert!(refused("bytes", bytes.into()).contains("more than 256 GiB"));
            for kept in ["ground", "after"] {
                let entry = json!({"bytes": bytes, "hash": "0".repeat(64)});
                assert!(refused(kept, entry).contains("more than 256 GiB"));
            }
        }
        for hash in [
            "",
            "0123",
            "../../../../../../../../etc/passwd",
            "é",
            &"G".repeat(64),
        ] {
            let entry = json!({"bytes": 1, "hash": hash});
            assert!(refused("ground", entry.clone()).contains("a hash that is none"));
            assert!(refused("after", entry).contains("a hash that is none"));
        }
        for first in [0, FILES + FILE_LINES + 1, u64::MAX] {
            assert!(refused("first_line", first.into()).contains("no file's first"));
        }
        assert!(refused("first_line", FILES.into()).contains("the lines of another file"));
        let own = FILES + FILE_LINES;
        for mapped in [
            [FILES, 4096, 4096],
            [own + (1 << 32), 4096, 4096],
            [own, u64::MAX, 4096],
            [own, 4096, u64::MAX],
        ] {
            assert!(refused("mapped", json!([mapped])).contains("was mapped beyond"));
        }
        assert!(refused("path", "/mnt/pm/pool/other".into()).contains("lies below the other"));
    }

    /// A file's offset may be above its address; the first byte would then lie below address 0.
    #[test]
    fn a_file_mapped_from_its_middle_at_a_low_address_is_read() {
        let own = FILES + FILE_LINES;
        opened(|more| more["files"][1]["mapped"] = json!([[own + (1 << 30), 0x1_0000, 4096]]))
            .unwrap();
    }

    #[test]
    fn an_entry_of_another_form_is_an_error_and_no_default() {
        let keys = [
            "files",
            "sites",
            "site_programs",
            "modules",
            "marks",
            "acks",
            "syncs",
            "processes",
            "ran",
            "notes",
        ];
        for key in keys {
            for value in [json!("text"), json!(null), json!([{"a": 1}])] {
                if key == "processes" && value.is_array() {
                    continue; // only their number counts
                }
                let error = opened(|more| drop(more.insert(key.to_owned(), value.clone())));
                let error = error.expect_err(&format!("{key}: {value}"));
                assert!(
                    error.contains(&format!("its `{key}` cannot be read")),
                    "{error}"
                );
            }
        }
    }

    #[test]
    fn a_stack_has_an_end_and_code_its_addresses() {
        let with = |key: &str, value: Value| {
            let error = opened(|more| drop(more.insert(key.to_owned(), value)));
            error.unwrap_err()
        };
        assert!(
            with("sites", json!([[2, 1, false], [1, 1, false]])).contains("called by a later one")
        );
        assert!(with("sites", json!([[1, 1, false]])).contains("called by a later one"));
        let module = |start: u64, end: u64, offset: u64| json!([{"path": "/bin/p", "start": start, "end": end, "offset": offset}]);
        assert!(with("modules", module(2, 1, 0)).contains("ends before it begins"));
        assert!(with("modules", module(0, 2, u64::MAX)).contains("ends before it begins"));
        assert!(with("acks", json!([[5, "a"], [4, "b"]])).contains("in the order"));
        assert!(with("acks", json!([[5, "\u{100}"]])).contains("bytes"));
    }

    #[test]
    fn a_row_beyond_the_last_line_of_a_file_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("r.parquet");
        let files = |folder: &Path| {
            let reader = sardonyx_trace::TraceReader::open(written(folder, |_| ())).unwrap();
            reader.provenance().clone()
        };
        let mut writer = TraceWriter::with_level(&path, files(folder.path()), 1).unwrap();
        let record = Record {
            gap: 1,
            thread: 0,
            op: Op::Store,
            line: Virtual(FILES + (1 << 32)),
            data: Some([7; 64]),
        };
        writer.push(&record).unwrap();
        writer.finish().unwrap();
        let error =
            Recording::open(&path, &[PathBuf::from("pool")], &Interrupt::default()).unwrap_err();
        assert!(
            error.to_string().contains("row 0 is beyond the last line"),
            "{error}"
        );
    }

    /// A pipe in the place of a file would be waited for, and a device may have no end.
    #[test]
    fn only_regular_files_are_read() {
        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("pipe");
        let name = std::ffi::CString::new(pipe.to_str().unwrap()).unwrap();
        // SAFETY: the name lives through the call.
        assert_eq!(unsafe { libc::mkfifo(name.as_ptr(), 0o600) }, 0);
        for path in [pipe, PathBuf::from("/dev/zero"), folder.path().to_owned()] {
            assert!(
                crate::recording::source::read(&path).is_err(),
                "{}",
                path.display()
            );
        }
    }
}
