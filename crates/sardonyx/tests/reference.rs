//! The reference page is what the program says of itself.

/// `UPDATE_REFERENCE=1` writes it.
#[test]
fn the_reference_page_is_up_to_date() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference/keys.md");
    let page = sardonyx::config::reference();
    if std::env::var_os("UPDATE_REFERENCE").is_some() {
        std::fs::write(path, &page).unwrap();
    }
    let committed = std::fs::read_to_string(path).unwrap_or_default();
    assert!(
        committed == page,
        "docs/reference/keys.md is not what the program says: run with UPDATE_REFERENCE=1"
    );
    let keys = page.split("## Keys").skip(1).flat_map(str::lines);
    let keys: Vec<&str> = keys.filter(|line| line.starts_with("* `")).collect();
    assert!(keys.len() > 100, "{}", keys.len());
    for line in keys {
        assert!(!line.ends_with("**"), "no source: {line}");
    }
}
