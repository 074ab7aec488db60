//! What is persistent, and in which units: persistent memory, or a file on a disk behind the page cache.

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Platform {
    /// Persistent is everything that has left the caches.
    #[default]
    Adr,
    /// Persistent are the caches as well.
    Eadr,
    /// A file on a disk that writes a page of 4096 bytes whole or not at all; pages are written back at any time and in any order.
    Pages,
    /// A file on a disk that writes sectors of 512 bytes whole: the sectors of a page may be of different moments.
    Sectors,
}

impl Platform {
    pub fn named(name: &str) -> Option<Platform> {
        match name {
            "adr" => Some(Platform::Adr),
            "eadr" => Some(Platform::Eadr),
            "pages" => Some(Platform::Pages),
            "sectors" => Some(Platform::Sectors),
            _ => None,
        }
    }

    pub fn name(self) -> &'static str {
        match self {
            Platform::Adr => "adr",
            Platform::Eadr => "eadr",
            Platform::Pages => "pages",
            Platform::Sectors => "sectors",
        }
    }

    /// The name of a unit that persists whole or not at all.
    pub fn of_unit(self) -> &'static str {
        match self {
            Platform::Adr | Platform::Eadr => "line",
            Platform::Pages => "page",
            Platform::Sectors => "sector",
        }
    }

    /// The bytes of a unit that persists whole or not at all.
    pub fn unit(self) -> u32 {
        match self {
            Platform::Adr | Platform::Eadr => 64,
            Platform::Pages => 4096,
            Platform::Sectors => 512,
        }
    }

    /// Whether the file lies behind the page cache, where msync and fsync count and flushes and fences do nothing.
    pub fn is_disk(self) -> bool {
        matches!(self, Platform::Pages | Platform::Sectors)
    }
}
