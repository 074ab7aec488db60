//! What the recorder tells the plugin: one `key=value` each on QEMU's command line, which splits at commas.

use crate::caches::{Geometry, Hierarchy};

/// Where records are taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// Below the last cache.
    Memory,
    /// At the core.
    Cpu,
}

/// How the plugin records.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// Folder of the rings.
    pub folder: String,
    /// Process of the recorder.
    pub reader: u32,
    /// The caches.
    pub caches: Hierarchy,
    /// Where records are taken.
    pub level: Level,
    /// The first read of a line carries its bytes.
    pub read_data: bool,
    /// Children are recorded too, in rings of their own.
    pub follow_fork: bool,
    /// Frames of pages are looked up in the kernel's page map.
    pub page_map: bool,
    /// Instructions that pass before the first record.
    pub skip: u64,
}

fn geometry(text: &str) -> Option<Geometry> {
    let (bytes, ways) = text.split_once(':')?;
    Some(Geometry {
        bytes: bytes.parse().ok()?,
        ways: ways.parse().ok()?,
    })
}

impl Options {
    /// As arguments of a plugin.
    pub fn arguments(&self) -> String {
        let put = |g: Geometry| format!("{}:{}", g.bytes, g.ways);
        let caches = &self.caches;
        format!(
            "folder={},reader={},l1={},l2={},llc={},inclusive={},cores={},level={},reads={},follow={},pagemap={},skip={}",
            self.folder,
            self.reader,
            put(caches.l1),
            put(caches.l2),
            caches.llc.map_or("none".to_owned(), put),
            u8::from(caches.inclusive),
            caches.cores,
            if self.level == Level::Cpu {
                "cpu"
            } else {
                "memory"
            },
            u8::from(self.read_data),
            u8::from(self.follow_fork),
            u8::from(self.page_map),
            self.skip,
        )
    }

    /// From the arguments that QEMU hands over.
    ///
    /// # Errors
    /// One is missing or unknown.
    pub fn parse<'a>(arguments: impl IntoIterator<Item = &'a str>) -> Result<Options, String> {
        let none = Geometry { bytes: 0, ways: 0 };
        let mut options = Options {
            folder: String::new(),
            reader: 0,
            caches: Hierarchy {
                l1: none,
                l2: none,
                llc: None,
                inclusive: false,
                cores: 0,
            },
            level: Level::Memory,
            read_data: false,
            follow_fork: false,
            page_map: false,
            skip: 0,
        };
        for argument in arguments {
            let bad = || format!("`{argument}` is none of the recorder's arguments");
            let (key, value) = argument.split_once('=').ok_or_else(bad)?;
            let number = || value.parse::<u64>().map_err(|_| bad());
            // QEMU turns `1` into `on` nowhere, so numbers stay numbers.
            let flag = || Ok::<_, String>(number()? != 0);
            let caches = &mut options.caches;
            match key {
                "folder" => options.folder = value.to_owned(),
                "reader" => options.reader = number()? as u32,
                "l1" => caches.l1 = geometry(value).ok_or_else(bad)?,
                "l2" => caches.l2 = geometry(value).ok_or_else(bad)?,
                "llc" if value == "none" => caches.llc = None,
                "llc" => caches.llc = Some(geometry(value).ok_or_else(bad)?),
                "inclusive" => caches.inclusive = flag()?,
                "cores" => caches.cores = number()? as usize,
                "level" => {
                    options.level = match value {
                        "cpu" => Level::Cpu,
                        "memory" => Level::Memory,
                        _ => return Err(bad()),
                    }
                }
                "reads" => options.read_data = flag()?,
                "follow" => options.follow_fork = flag()?,
                "pagemap" => options.page_map = flag()?,
                "skip" => options.skip = number()?,
                _ => return Err(bad()),
            }
        }
        if options.folder.is_empty() || options.reader == 0 {
            return Err("the recorder's folder and process are missing".to_owned());
        }
        Ok(options)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_survive_the_command_line() {
        let geometry = |bytes, ways| Geometry { bytes, ways };
        let mut options = Options {
            folder: "/tmp/a b".to_owned(),
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
            page_map: false,
            skip: 5,
        };
        assert_eq!(
            Options::parse(options.arguments().split(',')),
            Ok(options.clone())
        );
        options.caches.llc = None;
        options.level = Level::Memory;
        assert_eq!(Options::parse(options.arguments().split(',')), Ok(options));
        assert!(Options::parse(["l3=1"]).is_err());
        assert!(Options::parse(["l1=32768:8"]).is_err());
    }
}
