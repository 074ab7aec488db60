//! Any bytes at all give records or an error: `cargo +nightly fuzz run trace_reader`.
//!
//! Panics of the parquet crate that the reader turns into errors are expected; libFuzzer would stop
//! at them, so its hook is taken out and only panics that leave the reader count.

#![no_main]

use std::io::Write;
use std::sync::Once;

use libfuzzer_sys::fuzz_target;

#[path = "../drain.rs"]
mod drain;

static QUIET: Once = Once::new();

fuzz_target!(|bytes: &[u8]| {
    QUIET.call_once(|| std::panic::set_hook(Box::new(|_| ())));
    let mut file = tempfile::NamedTempFile::new().expect("a temporary file");
    file.write_all(bytes).expect("space for it");
    let outcome = std::panic::catch_unwind(|| drain::drain(file.path()));
    if let Err(panic) = outcome {
        let what = panic.downcast_ref::<&str>().copied();
        let what = what.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
        eprintln!("the reader panicked: {}", what.unwrap_or("?"));
        std::process::abort();
    }
});
