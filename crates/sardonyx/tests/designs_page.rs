//! `docs/simulator/add-a-design.md` shows sources as they are, and commands that exist.

use std::path::Path;

fn root() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn page() -> String {
    std::fs::read_to_string(root().join("docs/simulator/add-a-design.md")).expect("the page")
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

/// The tools, targets of make and files that the page names are there.
#[test]
fn what_the_page_names_exists() {
    let (page, mut named) = (page(), 0);
    let makefile = std::fs::read_to_string(root().join("Makefile")).expect("a file");
    for word in page.split([' ', '`', '\n', '(']) {
        if word.starts_with("tools/") || word.starts_with("mapping/") {
            let word = word.trim_end_matches([',', '.', ';']);
            let folders = ["", "crates/sardonyx/src/controller"];
            let mut places = folders.iter().map(|folder| root().join(folder).join(word));
            assert!(places.any(|place| place.exists()), "{word}");
            named += 1;
        }
    }
    assert!(named >= 8, "{named}");
    for target in page
        .split("make ")
        .skip(1)
        .filter_map(|rest| rest.split([' ', '`', '\n']).next())
    {
        assert!(
            makefile.contains(&format!("\n{target}:")) || target == "runs",
            "make {target}"
        );
    }
}
