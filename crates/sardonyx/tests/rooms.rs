//! The rooms of the house: which module may know of which, and where operations are interpreted.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

fn sources() -> Vec<(PathBuf, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut folders = vec![root.clone()];
    let mut found = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let text = std::fs::read_to_string(&path).unwrap();
                found.push((path.strip_prefix(&root).unwrap().to_owned(), text));
            }
        }
    }
    found
}

/// The module of the crate's root that a file belongs to.
fn room(path: &Path) -> String {
    let first = path.iter().next().unwrap().to_str().unwrap();
    first.trim_end_matches(".rs").to_owned()
}

/// The code of a file without its tests; nothing of a file that is for tests alone.
fn code<'t>(path: &Path, text: &'t str) -> &'t str {
    let name = path.file_stem().unwrap().to_str().unwrap();
    if name == "harness" || name.starts_with("tests") {
        return "";
    }
    let tests = text.find("#[cfg(test)]\nmod tests {");
    &text[..tests.unwrap_or(text.len())]
}

/// Each room with the rooms that its code names.
fn arrows() -> BTreeMap<String, BTreeSet<String>> {
    let mut arrows: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for (path, text) in sources() {
        let from = room(&path);
        for line in code(&path, &text)
            .lines()
            .filter(|line| !line.trim_start().starts_with("//"))
        {
            for part in line.split("crate::").skip(1) {
                let name = |c: char| c.is_ascii_alphanumeric() || c == '_';
                let to = part.split(|c| !name(c)).next().unwrap().to_owned();
                if to != from && !to.is_empty() {
                    arrows.entry(from.clone()).or_default().insert(to);
                }
            }
        }
    }
    arrows
}

#[test]
fn there_is_no_circle_between_rooms() {
    let mut arrows = arrows();
    assert!(arrows["machine"].contains("controller"), "{arrows:?}");
    // Rooms that nothing stands below are taken away until none is left.
    loop {
        let left: BTreeSet<String> = arrows.keys().cloned().collect();
        let before = arrows.len();
        arrows.retain(|_, below| below.iter().any(|room| left.contains(room)));
        if arrows.len() == before {
            break;
        }
    }
    assert!(arrows.is_empty(), "these lie on circles: {arrows:#?}");
}

#[test]
fn operations_are_interpreted_in_the_machine_alone() {
    for (path, text) in sources() {
        let arm = |line: &str| line.contains("OpKind::") && line.contains("=>");
        let interprets = code(&path, &text).lines().any(arm);
        assert!(
            !interprets || room(&path) == "machine",
            "{}",
            path.display()
        );
    }
}
