//! The recorder's inner half: a plugin for QEMU's user-mode emulation that watches a program's accesses, keeps a model
//! of the caches, and sends what reaches memory, with the bytes, to the process that writes the trace.
//!
//! [`caches`], [`codec`], [`frames`], [`insn`], [`flow`], [`group`] and [`program`] are plain code and tested as such; [`ring`] is shared memory. `plugin` is called
//! by QEMU and has to be unsafe. `docs/crash-test/recorder.md` tells the whole; `crates/record` is the outer half.

/// The recorder works only on x86-64 Linux, because it knows the effects of system calls by x86-64's numbers.
pub const RECORDS: bool = cfg!(all(target_os = "linux", target_arch = "x86_64"));

pub mod caches;
pub mod codec;
pub mod flow;
pub mod frames;
pub mod group;
pub mod insn;
pub mod maps;
pub mod options;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod plugin;
pub mod program;
pub mod ring;
