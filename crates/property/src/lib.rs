//! How much a test tries, and from which seed. `make test` tries a little, and the same each time; `make test-all` sets
//! [`SEED`], and then every test here tries all that it can, and property tests other cases than last time.
#![forbid(unsafe_code)]

use proptest::test_runner::{Config, RngSeed};

/// Environment variable: the seed of a whole run; a quick run has none.
pub const SEED: &str = "SARDONYX_TEST_SEED";
/// Cases of a property test in a whole run, as a multiple of those in a quick one.
const MORE: u32 = 4;

/// The seed of a whole run; `None` in a quick one.
///
/// # Panics
/// The variable is set and is no number.
pub fn seed() -> Option<u64> {
    let value = std::env::var(SEED).ok()?;
    let seed = value.parse();
    Some(seed.unwrap_or_else(|_| panic!("{SEED}={value} is not a number")))
}

/// The configuration of a property test that tries `few` cases in a quick run.
pub fn cases(few: u32) -> Config {
    Config {
        cases: count(few, few * MORE),
        rng_seed: RngSeed::Fixed(seed().unwrap_or(0)),
        failure_persistence: None,
        ..Config::default()
    }
}

/// `few` in a quick run, `all` in a whole one.
pub fn count<T>(few: T, all: T) -> T {
    if seed().is_some() { all } else { few }
}

/// `few` elements of a list in a quick run, evenly spaced, and all in a whole one.
pub fn some<T: Copy>(list: &[T], few: usize) -> Vec<T> {
    let few = count(few, list.len()).min(list.len());
    (0..few).map(|at| list[at * list.len() / few]).collect()
}

/// Checks that a program of tests, whose file `all` is, has each file of its folder as a module: one that is not named
/// would never run.
///
/// # Panics
/// It lacks one, or the folder cannot be read.
pub fn assert_all_named(folder: &str, all: &str) {
    for entry in std::fs::read_dir(folder).expect("the folder of tests") {
        let name = entry.expect("a file").file_name();
        let name = name.to_string_lossy();
        let module = name.strip_suffix(".rs").filter(|module| *module != "all");
        if let Some(module) = module {
            let line = format!("\nmod {module};\n");
            assert!(all.contains(&line), "all.rs lacks `mod {module};`");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn some_are_evenly_spaced() {
        let list = [0, 1, 2, 3, 4, 5, 6];
        let whole = seed().is_some();
        assert_eq!(
            some(&list, 3),
            if whole { list.to_vec() } else { vec![0, 2, 4] }
        );
        assert_eq!(some(&list, 9), list);
    }
}
