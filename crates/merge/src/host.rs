//! The knobs of the kernel that runs, as keys of the merge.

use std::fs;
use std::path::Path;

use rustix::time::{ClockId, clock_getres};
use serde::Serialize;
use serde_json::{Map, Value};

use super::images::ImageError;

const KSM: &str = "/sys/kernel/mm/ksm";

/// The knobs that are keys of the merge; a kernel has those of its version.
const KNOBS: [&str; 11] = [
    "pages_to_scan",
    "sleep_millisecs",
    "max_page_sharing",
    "smart_scan",
    "use_zero_pages",
    "stable_node_chains_prune_millisecs",
    "advisor_mode",
    "advisor_target_scan_time",
    "advisor_max_cpu",
    "advisor_min_pages_to_scan",
    "advisor_max_pages_to_scan",
];

/// A knob of the kernel beside the one that was asked for.
#[derive(Clone, Debug, Serialize)]
pub struct Beside {
    pub key: String,
    pub host: String,
    pub asked: String,
}

/// The kernel's knobs as keys and values; an error if it has no KSM.
pub fn knobs() -> Result<Vec<(String, String)>, ImageError> {
    let found = known(Path::new(KSM));
    if found.is_empty() {
        let problem = format!("--kernel host: this kernel has no KSM ({KSM}); name another");
        return Err(ImageError(problem));
    }
    Ok(found)
}

/// The kernel's knobs beside those of a merge.
pub fn beside(settings: &Map<String, Value>) -> Vec<Beside> {
    let rows = known(Path::new(KSM)).into_iter().filter_map(|(key, host)| {
        let asked = settings.get(&key)?;
        let asked = asked
            .as_str()
            .map_or_else(|| asked.to_string(), str::to_owned);
        Some(Beside { key, host, asked })
    });
    rows.collect()
}

fn known(ksm: &Path) -> Vec<(String, String)> {
    let mut found = Vec::new();
    for name in KNOBS {
        let Ok(text) = fs::read_to_string(ksm.join(name)) else {
            continue;
        };
        // A knob of words shows all of them, the chosen one in brackets.
        let inner = text
            .split_once('[')
            .and_then(|(_, rest)| rest.split_once(']'));
        let chosen = match (name, inner.map_or(text.trim(), |(word, _)| word)) {
            ("smart_scan" | "use_zero_pages", value) => (value == "1").to_string(),
            (_, value) => value.to_owned(),
        };
        found.push((format!("ksm.{name}"), chosen));
    }
    if !found.is_empty() {
        // This clock advances with the kernel's tick.
        let tick = clock_getres(ClockId::MonotonicCoarse);
        found.push(("ksm.tick_us".to_owned(), (tick.tv_nsec / 1000).to_string()));
    }
    found
}

#[test]
fn knobs_are_keys_with_the_values_that_the_kernel_has() {
    let ksm = tempfile::tempdir().unwrap();
    for (name, text) in [
        ("pages_to_scan", "1250\n"),
        ("smart_scan", "0\n"),
        ("advisor_mode", "none [scan-time]\n"),
    ] {
        fs::write(ksm.path().join(name), text).unwrap();
    }
    let found = known(ksm.path());
    let found: Vec<_> = found
        .iter()
        .map(|(key, value)| (&key[..], &value[..]))
        .collect();
    let known = [
        ("ksm.pages_to_scan", "1250"),
        ("ksm.smart_scan", "false"),
        ("ksm.advisor_mode", "scan-time"),
    ];
    assert_eq!((&found[..3], found[3].0), (&known[..], "ksm.tick_us"));
    assert!(super::host::known(&ksm.path().join("none")).is_empty());
}
