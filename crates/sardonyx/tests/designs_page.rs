//! `docs/add-a-design.md` shows sources as they are, and commands that exist.

use std::path::Path;

fn root() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn page() -> String {
    std::fs::read_to_string(root().join("docs/add-a-design.md")).expect("the page")
}

/// Blocks of code with what is said before them, `part of FILE`, and the code without the page's indentation.
fn sources(page: &str) -> Vec<(String, String)> {
    let lines: Vec<&str> = page.lines().collect();
    let mut found = Vec::new();
    for (number, line) in lines.iter().enumerate() {
        let said = line.trim().strip_prefix("<!-- ");
        let Some(said) = said.and_then(|said| said.strip_suffix(" -->")) else {
            continue;
        };
        let indent = line.len() - line.trim_start().len();
        assert_eq!(lines[number + 1].trim(), "```rust", "after {line}");
        let code = lines[number + 2..].iter();
        let code = code.take_while(|line| line.trim() != "```");
        let code = code.map(|line| format!("{}\n", line.get(indent..).unwrap_or_default()));
        found.push((said.to_owned(), code.collect()));
    }
    found
}

#[test]
fn the_sources_of_the_page_are_those_of_the_tree() {
    let page = page();
    let sources = sources(&page);
    assert_eq!(sources.len(), page.matches("```rust").count(), "each block");
    for (said, code) in sources {
        let path = said.strip_prefix("part of ").expect("`part of`");
        let text = std::fs::read_to_string(root().join(path)).expect(path);
        assert!(text.contains(&code), "{path} has no such part:\n{code}");
    }
    let path = root().join("crates/sardonyx/src/controller/mapping/dedup_fold.rs");
    let text = std::fs::read_to_string(path).expect("a file");
    let lines = format!("`mapping/dedup_fold.rs`, {} lines", text.lines().count());
    assert!(page.contains(&lines), "the page does not say {lines}");
}

/// A program of tests that a command of the docs names exists; so do the page's own files.
#[test]
fn commands_of_tests_name_programs_that_exist() {
    let said = [page(), sardonyx::config::reference()].concat();
    let mut named = 0;
    for command in said.split("cargo test ").skip(1) {
        let words: Vec<&str> = command.lines().next().unwrap().split([' ', '`']).collect();
        for pair in words.windows(2).filter(|pair| pair[0] == "--test") {
            let file = format!("{}/tests/{}.rs", env!("CARGO_MANIFEST_DIR"), pair[1]);
            assert!(Path::new(&file).exists(), "{file}");
            named += 1;
        }
    }
    assert!(named >= 2, "{named}");
    for name in ["dedup_fold.rs", "identity.rs", "zero_lines.rs"] {
        let path = root().join("crates/sardonyx/src/controller/mapping");
        assert!(path.join(name).exists());
    }
}
