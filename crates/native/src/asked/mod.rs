//! The questions of all commands, a file a door. An option is a field here.
pub mod crash;
pub mod crash_test;
pub mod merge;
pub mod simulator;
pub mod stores;
pub mod traces;

use sardonyx::names::did_you_mean;

/// Refuses a name that is none of those known of its kind.
fn check_known(kind: &str, option: &str, name: &str, known: &[&str]) -> Result<(), String> {
    if known.contains(&name) {
        return Ok(());
    }
    Err(format!(
        "{option}: there is no {kind} \"{name}\"; {}known: {}",
        did_you_mean(name, known),
        known.join(", ")
    ))
}
