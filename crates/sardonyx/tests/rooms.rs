//! The rooms of the house: where operations are interpreted.

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
