//! The questions of all commands, a file a door. An option is a field here.
pub mod crash;
pub mod merge;
pub mod simulator;
pub mod stores;
pub mod traces;
