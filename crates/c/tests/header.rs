//! The header is what the code says; `SARDONYX_WRITE_HEADER=1 cargo test` writes it.

use std::path::Path;

#[test]
fn the_header_says_what_the_code_says() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let config = cbindgen::Config::from_file(root.join("cbindgen.toml")).expect("a configuration");
    let made = cbindgen::Builder::new()
        .with_config(config)
        .with_src(root.join("src/lib.rs"))
        .generate()
        .expect("a header");
    let mut text = Vec::new();
    made.write(&mut text);
    let (made, path) = (
        String::from_utf8(text).unwrap(),
        root.join("include/sardonyx.h"),
    );
    if std::env::var_os("SARDONYX_WRITE_HEADER").is_some() {
        std::fs::write(&path, &made).unwrap();
    }
    let there = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        there == made,
        "include/sardonyx.h is not what src/lib.rs says; run the test with SARDONYX_WRITE_HEADER=1"
    );
}
