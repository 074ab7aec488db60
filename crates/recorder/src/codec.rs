//! The events that the plugin sends to the recorder. A record is a tag, variable-length numbers and 64 bytes of data;
//! any other event is JSON.
//!
//! Lines of records are sent as the distance from the previous record's line, so most events without data have three to
//! five bytes. It is safe on any bytes: bytes that do not decode are an error, because the plugin's process may die at
//! any moment.

use serde::{Deserialize, Serialize};

use sardonyx_base::random::splitmix64;

/// The codes of `docs/simulator/trace-format.md`, as far as the plugin sends them.
pub mod op {
    /// A read that missed the last-level cache.
    pub const READ: u8 = 0;
    pub const EVICT: u8 = 1;
    pub const NON_TEMPORAL: u8 = 2;
    /// A write-back forced by a flush instruction.
    pub const WRITE_BACK: u8 = 3;
    pub const FENCE: u8 = 4;
    pub const CLWB: u8 = 5;
    pub const CLFLUSHOPT: u8 = 6;
    pub const CLFLUSH: u8 = 7;
    pub const LOAD: u8 = 8;
    pub const STORE: u8 = 9;
    pub const FINAL: u8 = 10;
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    pub gap: u64,
    pub thread: u16,
    pub op: u8,
    pub line: u64,
    pub data: Option<[u8; 64]>,
    /// The number of its [`RecorderEvent::Site`], if sites are recorded.
    pub site: Option<u32>,
}

/// The number of lines in the caches at the end of a recording, and how often pages were cleared, copied and freed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CacheContents {
    pub dirty: u64,
    pub gone: u64,
    pub cleared: u64,
    pub copied: u64,
    pub frames: u64,
}

impl CacheContents {
    pub fn words(self) -> [u64; 5] {
        [
            self.dirty,
            self.gone,
            self.cleared,
            self.copied,
            self.frames,
        ]
    }

    pub fn from_counts([dirty, gone, cleared, copied, frames]: [u64; 5]) -> CacheContents {
        CacheContents {
            dirty,
            gone,
            cleared,
            copied,
            frames,
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum RecorderEvent {
    #[serde(skip)]
    Record(Record),
    /// Lines whose contents are gone, because they were unmapped or mapped to something else.
    Gone {
        line: u64,
        lines: u64,
    },
    Moved {
        line: u64,
        lines: u64,
        from: u64,
    },
    /// A shared mapping of a file: its lines are counted from `line` at the file's first byte.
    File {
        line: u64,
        bytes: u64,
        /// The device and inode, by which another process's mapping is known to be of this file.
        identity: (u64, u64),
        path: Vec<u8>,
    },
    Mapped {
        /// The line of the first byte, in the numbering of the file's lines.
        line: u64,
        address: u64,
        bytes: u64,
    },
    /// The physical frame of a virtual page: as the kernel's page map has it, or as the plugin gave it.
    Frame {
        page: u64,
        frame: u64,
    },
    Cached(CacheContents),
    Thread {
        thread: u16,
        instructions: u64,
    },
    /// A place in the program: an instruction, called from another site. Sites are numbered in the order in which they
    /// come.
    Site {
        /// The site of the call plus 1; 0 if none is known.
        parent: u32,
        pc: u64,
        /// Set if the instruction is locked, so that it orders flushes as a fence does.
        locked: bool,
    },
    /// A file's bytes in the program's memory, from which addresses of instructions are looked up.
    Module {
        start: u64,
        /// The address after the last.
        end: u64,
        offset: u64,
        path: Vec<u8>,
    },
    /// Code from `start` to before `end` is about to run for the first time.
    Ran {
        start: u64,
        end: u64,
    },
    Printed(Vec<u8>),
    Mark(Vec<u8>),
    /// A system call made the stores to these lines of files persistent.
    Synced {
        thread: u16,
        /// The site of the call plus 1; 0 if none is known.
        site: u32,
        ranges: Vec<(u64, u64)>,
    },
    /// The next events are of this process, from a new encoder.
    Turn(u32),
    /// This process was forked, and the next events are its own, from a new encoder.
    Child {
        process: u32,
        parent: u32,
        sites: u32,
        files: u32,
        /// The number of earlier programs of its parent.
        execs: u32,
    },
    /// This process forked the one that sends the event.
    Forked(u32),
    Held {
        line: u64,
        hash: u64,
    },
    Note(Vec<u8>),
    /// The program became this one by exec; the next events are from a new encoder.
    Became(Vec<u8>),
    /// The program is about to become this one by exec, which cannot be recorded; all dirty lines have been sent. If
    /// records or the end follow, the call failed.
    Lost(Vec<u8>),
    /// The program ended in order, and all dirty lines have been sent.
    End,
}

impl RecorderEvent {
    fn begins_anew(&self) -> bool {
        matches!(
            self,
            RecorderEvent::Became(_) | RecorderEvent::Turn(_) | RecorderEvent::Child { .. }
        )
    }
}

const WITH_DATA: u8 = 0x10;
const SAME_THREAD: u8 = 0x20;
const WITH_SITE: u8 = 0x40;
/// Comes before the length of an event that is no record, and the event in JSON: there is one for thousands of records.
const IN_JSON: u8 = 0x80;

pub fn hash(bytes: &[u8; 64]) -> u64 {
    let (words, _) = bytes.as_chunks::<8>();
    (words.iter()).fold(0, |hash, word| splitmix64(hash ^ u64::from_le_bytes(*word)))
}

pub const LONGEST_RECORD: usize = 1 + 10 + 3 + 10 + 5 + 64;

pub const LONGEST_TEXT: usize = 4096;

/// A length beyond this is damage: no event in JSON comes near it.
const LONGEST_JSON: u64 = 1 << 24;

fn put(out: &mut [u8], at: &mut usize, mut value: u64) {
    while value >= 0x80 {
        out[*at] = value as u8 | 0x80;
        *at += 1;
        value >>= 7;
    }
    out[*at] = value as u8;
    *at += 1;
}

fn zigzag(value: i64) -> u64 {
    (value << 1 ^ value >> 63) as u64
}

fn unzigzag(value: u64) -> i64 {
    (value >> 1) as i64 ^ -((value & 1) as i64)
}

/// Turns events into bytes, and remembers the line that distances start from.
#[derive(Clone, Debug, Default)]
pub struct Encoder {
    line: u64,
    thread: u16,
}

impl Encoder {
    pub fn line(&self) -> u64 {
        self.line
    }

    /// Writes a record to the beginning of `out` and returns its length.
    #[inline]
    pub fn record(&mut self, out: &mut [u8; LONGEST_RECORD], record: &Record) -> usize {
        let same = record.thread == self.thread;
        let with_data = if record.data.is_some() { WITH_DATA } else { 0 };
        let with_site = if record.site.is_some() { WITH_SITE } else { 0 };
        out[0] = record.op | with_data | with_site | if same { SAME_THREAD } else { 0 };
        let mut at = 1;
        put(out, &mut at, record.gap);
        if !same {
            put(out, &mut at, u64::from(record.thread));
            self.thread = record.thread;
        }
        let distance = record.line.wrapping_sub(self.line) as i64;
        put(out, &mut at, zigzag(distance));
        self.line = record.line;
        if let Some(site) = record.site {
            put(out, &mut at, u64::from(site));
        }
        if let Some(data) = &record.data {
            out[at..at + 64].copy_from_slice(data);
            at += 64;
        }
        at
    }

    pub fn event(&mut self, event: &RecorderEvent) -> Vec<u8> {
        if event.begins_anew() {
            *self = Encoder::default();
        }
        let mut out = [0; LONGEST_RECORD];
        if let RecorderEvent::Record(record) = event {
            let length = self.record(&mut out, record);
            return out[..length].to_vec();
        }
        let json = serde_json::to_vec(event).expect("an event has no map and no float");
        out[0] = IN_JSON;
        let mut at = 1;
        put(&mut out, &mut at, json.len() as u64);
        [&out[..at], &json].concat()
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Undecodable {
    Short,
    Damaged,
}

#[derive(Clone, Debug, Default)]
pub struct Decoder {
    line: u64,
    thread: u16,
}

struct ByteReader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl ByteReader<'_> {
    fn byte(&mut self) -> Result<u8, Undecodable> {
        let byte = *self.bytes.get(self.at).ok_or(Undecodable::Short)?;
        self.at += 1;
        Ok(byte)
    }

    fn number(&mut self) -> Result<u64, Undecodable> {
        let mut value = 0u64;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            let part = u64::from(byte & 0x7F);
            if shift == 63 && part > 1 {
                return Err(Undecodable::Damaged);
            }
            value |= part << shift;
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err(Undecodable::Damaged)
    }

    fn thread(&mut self) -> Result<u16, Undecodable> {
        u16::try_from(self.number()?).map_err(|_| Undecodable::Damaged)
    }

    fn small(&mut self) -> Result<u32, Undecodable> {
        u32::try_from(self.number()?).map_err(|_| Undecodable::Damaged)
    }

    fn take(&mut self, length: usize) -> Result<&[u8], Undecodable> {
        let taken = self.bytes.get(self.at..self.at + length);
        self.at += length;
        taken.ok_or(Undecodable::Short)
    }
}

impl Decoder {
    /// Decodes the event at the beginning of `bytes`. Returns its length too.
    ///
    /// # Errors
    /// The bytes end too early, in which case the decoder has not changed; or the plugin does not send such bytes.
    pub fn next(&mut self, bytes: &[u8]) -> Result<(RecorderEvent, usize), Undecodable> {
        let mut from = ByteReader { bytes, at: 0 };
        let tag = from.byte()?;
        let event = match tag {
            IN_JSON => {
                let length = match from.number()? {
                    length if length <= LONGEST_JSON => length as usize,
                    _ => return Err(Undecodable::Damaged),
                };
                serde_json::from_slice(from.take(length)?).map_err(|_| Undecodable::Damaged)?
            }
            _ if tag & !(WITH_DATA | SAME_THREAD | WITH_SITE) <= op::FINAL => {
                let gap = from.number()?;
                let thread = match tag & SAME_THREAD {
                    0 => from.thread()?,
                    _ => self.thread,
                };
                let line = self.line.wrapping_add(unzigzag(from.number()?) as u64);
                let site = match tag & WITH_SITE {
                    0 => None,
                    _ => Some(from.small()?),
                };
                let data = match tag & WITH_DATA {
                    0 => None,
                    _ => Some(from.take(64)?.try_into().expect("64 bytes were taken")),
                };
                (self.line, self.thread) = (line, thread);
                let op = tag & !(WITH_DATA | SAME_THREAD | WITH_SITE);
                RecorderEvent::Record(Record {
                    gap,
                    thread,
                    op,
                    line,
                    data,
                    site,
                })
            }
            _ => return Err(Undecodable::Damaged),
        };
        if event.begins_anew() {
            *self = Decoder::default();
        }
        Ok((event, from.at))
    }
}
