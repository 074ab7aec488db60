//! The options that the recorder gives the plugin: one JSON argument on QEMU's command line.

use serde::{Deserialize, Serialize};

use crate::caches::Hierarchy;
use crate::frames::{FrameNumbers, Reuse};

/// The only argument of a plugin that is to tell whether this QEMU can record.
pub const CHECK: &str = "check=on";
/// The plugin's answer if it can.
pub const READY: &str = "ready to record";

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Level {
    /// Below the last cache.
    Memory,
    /// At the core.
    Cpu,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Clearing {
    /// Lines are overwritten whole and not fetched first, as `rep stosb` does on processors with fast strings.
    #[default]
    WholeLines,
    Fetched,
    /// Clearing is not recorded: the frame's lines leave the caches, and memory has its bytes without a write.
    Unrecorded,
}

/// The kernel's instructions for a page, which a recorder of a user's program cannot see.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KernelTime {
    /// Instructions of a fault, before the first line is cleared or copied.
    pub fault: u64,
    /// Instructions to clear a line; copying one takes twice as many.
    pub line: u64,
}

impl Default for KernelTime {
    /// Assumed: about the cost of a minor fault of Linux, and of a line's eight stores of eight bytes.
    fn default() -> KernelTime {
        KernelTime {
            fault: 1000,
            line: 8,
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PluginOptions {
    pub folder: String,
    pub plugin: String,
    pub reader: u32,
    pub caches: Hierarchy,
    pub level: Level,
    pub read_data: bool,
    pub follow_fork: bool,
    /// Set if children that store to mapped files are recorded in this ring, in one order.
    pub one_order: bool,
    pub numbers: FrameNumbers,
    pub reuse: Reuse,
    pub clearing: Clearing,
    pub kernel: KernelTime,
    /// Set if frames of pages are looked up in the kernel's page map, at level `cpu`.
    pub page_map: bool,
    pub skip: u64,
    /// Set if flushes, fences and stores to mapped files carry their place in the program, and marks are sent.
    pub sites: bool,
    /// With sites: microseconds that a thread rests after a store to a file, the first times at a place.
    pub rest: u32,
    pub acks: Option<i32>,
    /// Set if the contents of memory are sent at the end, for all pages with lines in the trace.
    pub verify: bool,
    /// Folder into which a file is copied before the program first maps it for writing.
    pub ground: Option<String>,
}

impl PluginOptions {
    /// The options as an argument of the plugin. A comma ends an argument of QEMU's, and two commas are one.
    pub fn argument(&self) -> String {
        let options = serde_json::to_string(self).expect("options are plain data");
        format!("options={}", options.replace(',', ",,"))
    }

    /// Parses the options from the arguments that QEMU passes.
    ///
    /// # Errors
    /// They are not one that [`PluginOptions::argument`] makes.
    pub fn parse(arguments: &[String]) -> Result<PluginOptions, String> {
        let [argument] = arguments else {
            return Err("the recorder's options are missing, or there are others".to_owned());
        };
        let options = argument.strip_prefix("options=").unwrap_or(argument);
        serde_json::from_str(options).map_err(|e| format!("the recorder's options: {e}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::caches::Geometry;

    #[test]
    fn options_survive_the_command_line() {
        let geometry = |bytes, ways| Geometry { bytes, ways };
        let mut options = PluginOptions {
            folder: "/tmp/a b".to_owned(),
            plugin: "/p.so".to_owned(),
            reader: 77,
            caches: Hierarchy {
                l1: geometry(32768, 8),
                l2: geometry(262_144, 4),
                llc: Some(geometry(1 << 24, 16)),
                inclusive: true,
                cores: 4,
            },
            level: Level::Cpu,
            read_data: true,
            follow_fork: true,
            one_order: false,
            numbers: FrameNumbers::Random {
                seed: 3,
                frames: 99,
            },
            reuse: Reuse::FirstFreed,
            clearing: Clearing::Fetched,
            kernel: KernelTime { fault: 7, line: 9 },
            page_map: false,
            skip: 5,
            sites: true,
            rest: 100,
            acks: Some(1),
            verify: true,
            ground: Some("a/c,d".to_owned()),
        };
        let parsed = |options: &PluginOptions| {
            PluginOptions::parse(&[options.argument().replace(",,", ",")])
        };
        assert_eq!(parsed(&options), Ok(options.clone()));
        options.caches.llc = None;
        options.level = Level::Memory;
        assert_eq!(parsed(&options), Ok(options));
        assert!(PluginOptions::parse(&[]).is_err());
        assert!(PluginOptions::parse(&["options={}".to_owned()]).is_err());
    }
}
