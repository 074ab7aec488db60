//! No circle of files: whoever reads one file of the crash tests meets none of those that use it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// The text of every file by its module, as `search::crew`, without comments and tests.
fn modules(root: &Path) -> BTreeMap<String, String> {
    let mut folders = vec![root.to_owned()];
    let mut found = BTreeMap::new();
    while let Some(folder) = folders.pop() {
        let entries = std::fs::read_dir(folder).unwrap();
        for path in entries.map(|entry| entry.unwrap().path()) {
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let module = path.strip_prefix(root).unwrap().with_extension("");
            let parts = module.iter().map(|part| part.to_str().unwrap());
            let parts: Vec<&str> = parts
                .filter(|part| !["mod", "lib"].contains(part))
                .collect();
            let text = std::fs::read_to_string(&path).unwrap();
            let code = text.split("#[cfg(test)]\nmod ").next().unwrap();
            let code = code.lines().map(|line| line.split("//").next().unwrap());
            found.insert(parts.join("::"), code.collect::<Vec<_>>().join("\n"));
        }
    }
    found.retain(|module, _| !module.starts_with("test"));
    found
}

/// The paths in some code, each as far as it is a module: `use crate::a::{b, c::d};` has `a`, `a::b` and `a::c`.
fn named(code: &str, all: &BTreeMap<String, String>) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for part in code.split("crate::").skip(1) {
        let end = part
            .find(|c: char| !(c.is_alphanumeric() || c == '_' || c == ':'))
            .unwrap_or(part.len());
        let head = part[..end].trim_end_matches(':');
        let mut paths = vec![head.to_owned()];
        if let Some(inner) = part[end..].strip_prefix('{') {
            let inner = &inner[..inner.find('}').unwrap_or(inner.len())];
            let inner = inner.split(',').map(|one| one.trim());
            paths = inner.map(|one| format!("{head}::{one}")).collect();
        }
        for path in paths {
            let mut path = path.as_str();
            while !all.contains_key(path) && path.contains("::") {
                path = path.rsplit_once("::").unwrap().0;
            }
            found.extend(all.contains_key(path).then(|| path.to_owned()));
        }
    }
    found
}

/// Files on circles: what is left once every file that uses no other one is taken away, again and again.
fn on_circles(root: &Path) -> Vec<String> {
    let all = modules(root);
    let mut arrows: BTreeMap<&String, BTreeSet<String>> = BTreeMap::new();
    for (module, code) in &all {
        let mut uses = named(code, &all);
        // A folder's own file may name its children without the path.
        for child in all.keys() {
            let below = child.strip_prefix(&format!("{module}::"));
            let inner = below.filter(|name| !name.contains("::"));
            let called = |name: &str| {
                let path = format!("{name}::");
                code.match_indices(&path).any(|(at, _)| {
                    !code[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_' || c == ':')
                })
            };
            if inner.is_some_and(called) {
                uses.insert(child.clone());
            }
        }
        uses.remove(module);
        arrows.insert(module, uses);
    }
    loop {
        let left: BTreeSet<String> = arrows.keys().map(|module| (*module).clone()).collect();
        let before = arrows.len();
        arrows.retain(|_, uses| uses.iter().any(|other| left.contains(other)));
        if arrows.len() == before {
            return left.into_iter().collect();
        }
    }
}

#[test]
fn there_is_no_circle_of_files() {
    let crates = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("..");
    for name in ["crash-test", "crash-files", "crash-test-designs", "record"] {
        let found = on_circles(&crates.join(name).join("src"));
        assert!(
            found.is_empty(),
            "{name}: on circles, or above one: {found:?}"
        );
    }
}
