//! What an operator may count on, on real files: damage is named or refused and never served, nothing is
//! deleted, `check` changes nothing, and the files are private.
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use sardonyx_device::{Device, check};

use crate::{BLOCK, BLOCKS, SIZE, checked, open, wanted};

fn content(block: u64) -> Vec<u8> {
    (0..BLOCK)
        .map(|at| (at / 8 * 31 + block * 7 + 1) as u8)
        .collect()
}

/// A store whose blocks are all flushed, in several commits.
fn filled(folder: &Path) {
    let mut device = open(folder, "recam");
    for block in 0..BLOCKS {
        device.write(block * BLOCK, &content(block)).unwrap();
        if block % 4 == 3 {
            device.flush().unwrap();
        }
    }
}

/// Every file below, with its bytes, mode and time.
fn seen(folder: &Path) -> BTreeMap<PathBuf, (Vec<u8>, u32, i64)> {
    let mut all = BTreeMap::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            all.extend(seen(&path));
        } else {
            let about = path.metadata().unwrap();
            let time = about.mtime_nsec() + about.mtime() * 1_000_000_000;
            all.insert(path.clone(), (fs::read(&path).unwrap(), about.mode(), time));
        }
    }
    all
}

/// Opens it and reads all; blocks that were refused, or `None` if it does not open.
fn judged(folder: &Path, what: &str) -> Option<usize> {
    let mut device = Device::open(folder, wanted("recam"), &mut |_, _| ()).ok()?;
    let mut refused = 0;
    for block in 0..BLOCKS {
        let mut bytes = vec![9; BLOCK as usize];
        match device.read(block * BLOCK, &mut bytes) {
            Ok(()) => assert!(bytes == content(block), "{what}: block {block} is wrong"),
            Err(_) => refused += 1,
        }
    }
    Some(refused)
}

#[test]
fn check_changes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    filled(folder.path());
    let before = seen(folder.path());
    assert_eq!(checked(folder.path()).faults, Vec::<String>::new());
    assert!(before == seen(folder.path()), "of a store that is whole");
    for path in before.keys() {
        fs::remove_file(path).unwrap();
        let without = seen(folder.path());
        let _ = check(folder.path(), &|_, _| true);
        assert!(without == seen(folder.path()), "without {}", path.display());
        fs::write(path, &before[path].0).unwrap();
    }
}

#[test]
fn without_any_one_of_its_files_nothing_is_deleted_and_nothing_is_wrong() {
    let folder = tempfile::tempdir().unwrap();
    filled(folder.path());
    let before = seen(folder.path());
    for path in before.keys() {
        fs::remove_file(path).unwrap();
        let what = format!("without {}", path.display());
        if let Some(refused) = judged(folder.path(), &what) {
            let spare = path.ends_with("lock") || path.ends_with("store.json");
            assert!(spare && refused == 0, "{what}: it opens");
        }
        fs::write(path, &before[path].0).unwrap();
        assert_eq!(judged(folder.path(), &what), Some(0), "{what}, put back");
        for (path, (bytes, ..)) in &before {
            fs::write(path, bytes).unwrap();
        }
    }
}

#[test]
fn a_file_of_blocks_that_is_short_costs_its_blocks_and_not_the_device() {
    let folder = tempfile::tempdir().unwrap();
    filled(folder.path());
    let blocks = folder.path().join("blocks");
    let file = File::options().write(true).open(&blocks).unwrap();
    file.set_len(SIZE - 1).unwrap();
    assert_eq!(judged(folder.path(), "a byte short"), Some(1));
    assert_eq!(checked(folder.path()).faults.len(), 1);
    let mut device = open(folder.path(), "recam");
    device.write(0, &vec![77; 3 * BLOCK as usize]).unwrap(); // goes on
    device.flush().unwrap();
}

#[test]
fn folder_and_files_are_private() {
    let parent = tempfile::tempdir().unwrap();
    let folder = parent.path().join("a").join("store");
    filled(&folder);
    let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&folder), 0o700);
    for entry in fs::read_dir(&folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_file() {
            assert_eq!(mode(&path), 0o600, "{}", path.display());
        }
    }
}
