//! Turns one process's events into one trace file.

use std::collections::BTreeSet;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;

use sardonyx_recorder::codec::{self, CacheContents, Decoder, RecorderEvent, Undecodable};
use sardonyx_recorder::maps::{FILE_LINES, FILES, ground_name};
use sardonyx_trace::line::Virtual;
use sardonyx_trace::{Contents, Op, Provenance, Record, TraceError, TraceWriter};
use serde_json::json;

use crate::error::{RecordError, Result};
use crate::family::Family;
use crate::grounds;
use crate::lists::ProvenanceLists;
use crate::pages::{self, Mapper, PAGE_LINES, PageFrames};
use crate::request::Window;
use crate::verified::{Verified, verify};

/// zstd level of a recording: it must keep up with the program.
const COMPRESSION: i32 = 1;
/// At most this many places of a file in memory are noted.
const PLACES: usize = 64;

pub struct TraceStream {
    path: PathBuf,
    writer: TraceWriter,
    decoder: Decoder,
    pages: Mapper,
    pub memory: Option<u64>,
    cached: Option<CacheContents>,
    window: Window,
    /// Bytes of an event that is not complete yet.
    left: Vec<u8>,
    /// What the records that are left out say of lines, by the names that the plugin gives them.
    before: Contents,
    /// The number of records seen, kept or not, and of instructions up to them.
    seen: u64,
    instructions: u64,
    kept: u64,
    identities: Vec<(u64, u64)>,
    notes: Vec<String>,
    held: Vec<(u64, u64)>,
    pub acks: bool,
    /// Lines of files that were stored to since a system call last made them sure.
    unsynced: BTreeSet<u64>,
    family: Family,
    lists: ProvenanceLists,
    pub ground: Option<PathBuf>,
    ended: bool,
    first_site: usize,
    /// The program that took this one's place and is not recorded, as far as is known.
    lost: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct RecordedTrace {
    pub path: PathBuf,
    pub records: u64,
    pub instructions: u64,
    /// Set if the program ended in order, so that the last write of every line is there.
    pub complete: bool,
    pub notes: Vec<String>,
    /// The comparison with the program's memory at its end, if it was wanted and the program ended in order.
    pub verified: Option<Verified>,
}

impl TraceStream {
    pub fn create(
        path: &Path,
        provenance: Provenance,
        pages: PageFrames,
        window: Window,
        sites: bool,
    ) -> Result<TraceStream> {
        Ok(TraceStream {
            path: path.to_owned(),
            writer: TraceWriter::with_sites(path, provenance, COMPRESSION, sites)?,
            decoder: Decoder::default(),
            pages: Mapper::new(pages),
            memory: None,
            cached: None,
            window,
            left: Vec::new(),
            before: Contents::default(),
            seen: 0,
            instructions: 0,
            kept: 0,
            identities: Vec::new(),
            notes: Vec::new(),
            held: Vec::new(),
            acks: false,
            unsynced: BTreeSet::new(),
            family: Family::default(),
            lists: ProvenanceLists::default(),
            ground: None,
            ended: false,
            first_site: 0,
            lost: None,
        })
    }

    pub fn records(&self) -> u64 {
        self.kept
    }

    /// Notes how the program ended by itself.
    pub fn exited(&mut self, status: ExitStatus) {
        let told = match (status.code(), status.signal()) {
            (Some(status), _) => json!({"status": status}),
            (None, signal) => json!({"signal": signal}),
        };
        self.writer
            .provenance_mut()
            .more
            .insert("exit".into(), told);
    }

    pub fn has_ended(&self) -> bool {
        self.ended
    }

    /// The program that this one became by exec and that is not recorded, unless this one did something afterwards.
    pub fn lost(&self) -> Option<&str> {
        self.lost.as_deref()
    }

    pub fn family(&self) -> &Family {
        &self.family
    }

    pub fn cached(&mut self, cached: CacheContents) {
        self.cached = Some(cached);
    }

    pub fn is_full(&self) -> bool {
        self.window.limit.is_some_and(|limit| self.kept >= limit)
            || self
                .window
                .instructions
                .is_some_and(|limit| self.instructions >= limit)
    }

    /// Takes the next bytes, and leaves `bytes` empty. Records after the window are dropped.
    ///
    /// # Errors
    /// A full disk, no frame for a page, or bytes that our plugin does not send.
    pub fn take(&mut self, bytes: &mut Vec<u8>) -> Result<()> {
        let mut all = std::mem::take(&mut self.left); // and back again: the room is used each time
        all.append(bytes);
        let mut at = 0;
        while !self.is_full() {
            match self.decoder.next(&all[at..]) {
                Ok((event, length)) => {
                    at += length;
                    self.event(event)?;
                }
                Err(Undecodable::Short) => break,
                Err(Undecodable::Damaged) => {
                    return Err(RecordError::new(format!(
                        "{}: the plugin's stream is damaged after {} records; is the plugin of the same build?",
                        self.path.display(),
                        self.seen
                    )));
                }
            }
        }
        all.drain(..at);
        self.left = all;
        Ok(())
    }

    fn event(&mut self, event: RecorderEvent) -> Result<()> {
        match event {
            RecorderEvent::Record(record) => self.record(record)?,
            RecorderEvent::Gone { line, lines } => self.gone(line, lines)?,
            RecorderEvent::Moved { line, lines, from } => self.moved(line, lines, from)?,
            RecorderEvent::Frame { page, frame } => self.frame(page, frame)?,
            RecorderEvent::File {
                line: _,
                bytes,
                identity,
                path,
            } => self.file(bytes, identity, &path),
            RecorderEvent::Mapped {
                line,
                address,
                bytes,
            } => self.mapped(line, address, bytes),
            RecorderEvent::Cached(cached) => self.cached = Some(cached),
            RecorderEvent::Thread {
                thread,
                instructions,
            } => self.thread(thread, instructions),
            RecorderEvent::Site { parent, pc, locked } => self.site(parent, pc, locked),
            RecorderEvent::Module {
                start,
                end,
                offset,
                path,
            } => self.module(start, end, offset, &path),
            RecorderEvent::Ran { start, end } => self.lists.ran(self.family.program(), start, end),
            RecorderEvent::Printed(bytes) => self.printed(&bytes),
            RecorderEvent::Mark(text) => self.mark(&text),
            RecorderEvent::Synced {
                thread,
                site,
                ranges,
            } => self.synced(thread, site, &ranges)?,
            RecorderEvent::Turn(process) => self.family.turn(process),
            RecorderEvent::Child {
                process,
                parent,
                sites,
                files,
                execs,
            } => (self.family).child(process, parent, (sites, files, execs), self.kept),
            RecorderEvent::Forked(process) => self.family.forked(process),
            RecorderEvent::Held { line, hash } => self.held(line, hash)?,
            RecorderEvent::Note(text) => self.note(&text),
            RecorderEvent::Became(path) => self.became(&String::from_utf8_lossy(&path)),
            RecorderEvent::Lost(path) => {
                self.becomes(Some(String::from_utf8_lossy(&path).into_owned()))
            }
            RecorderEvent::End => {
                self.becomes(None);
                self.ended |= self.family.is_first();
            }
        }
        Ok(())
    }

    fn thread(&mut self, thread: u16, instructions: u64) {
        let thread = self.family.thread(thread);
        let thread = json!({"thread": thread, "instructions": instructions});
        self.lists.threads.push(thread);
    }

    /// Each byte becomes a character, so that nothing is lost.
    fn printed(&mut self, bytes: &[u8]) {
        let text: String = bytes.iter().map(|&byte| char::from(byte)).collect();
        self.lists.printed.push(json!([self.kept, text]));
    }

    fn mark(&mut self, text: &[u8]) {
        let mark = json!([self.kept, String::from_utf8_lossy(text)]);
        self.lists.marks.push(mark);
    }

    fn held(&mut self, line: u64, hash: u64) -> Result<()> {
        let line = self.family.line(line);
        let line = self.pages.map(line).map_err(RecordError::new)?;
        self.held.push((line, hash));
        Ok(())
    }

    /// Several processes may make one note.
    fn note(&mut self, text: &[u8]) {
        let note = String::from_utf8_lossy(text).into_owned();
        if !self.notes.contains(&note) {
            self.notes.push(note);
        }
    }

    fn gone(&mut self, line: u64, lines: u64) -> Result<()> {
        self.before.moved(self.family.line(line), lines, None);
        if !self.pages.maps() {
            return self.changed(line, lines, None);
        }
        for first in self.pages.gone(line, lines) {
            self.changed(first, PAGE_LINES, None)?;
        }
        Ok(())
    }

    fn moved(&mut self, line: u64, lines: u64, from: u64) -> Result<()> {
        let [to, before] = [line, from].map(|line| self.family.line(line));
        self.before.moved(to, lines, Some(before));
        if !self.pages.maps() {
            return self.changed(line, lines, Some(from));
        }
        self.pages.moved(line, lines, from);
        Ok(())
    }

    /// Follows a page to its frame if lines are of frames, and lists it otherwise. The kernel answers 0 to who may
    /// not know frames, which is an error.
    fn frame(&mut self, page: u64, frame: u64) -> Result<()> {
        if frame == 0 || self.pages.maps() {
            return self.pages.told(page, frame).map_err(RecordError::new);
        }
        self.lists.placed.push(json!([self.kept, page, frame]));
        Ok(())
    }

    fn became(&mut self, path: &str) {
        self.family.became(path, self.kept);
        if self.family.is_first() {
            self.lists.execs.push(json!([self.kept, path]));
            self.first_site = self.lists.sites.len();
        }
    }

    /// Keeps a place once: a program may map a file over and over.
    fn mapped(&mut self, line: u64, address: u64, bytes: u64) {
        let line = self.family.line(line);
        let mut files = self.lists.files.iter_mut().rev();
        let file = files.find(|f| f["first_line"].as_u64() <= Some(line));
        if let Some(places) = file.and_then(|f| f["mapped"].as_array_mut()) {
            let place = json!([line, address, bytes]);
            if places.len() < PLACES && !places.contains(&place) {
                places.push(place);
            }
        }
    }

    fn site(&mut self, parent: u32, pc: u64, locked: bool) {
        let parent = match parent.checked_sub(1) {
            None => 0,
            Some(parent) => self.family.site(parent) + 1,
        };
        self.family.new_site();
        let program = self.family.program();
        let lists = &mut self.lists;
        if lists.site_programs.last().map_or(0, |(_, last)| *last) != program {
            lists.site_programs.push((lists.sites.len(), program));
        }
        lists.sites.push(json!([parent, pc, locked]));
    }

    fn module(&mut self, start: u64, end: u64, offset: u64, path: &[u8]) {
        let module = json!({
            "path": String::from_utf8_lossy(path), "start": start, "end": end, "offset": offset,
            "first_site": if self.family.is_first() { self.first_site } else { 0 },
            "of_program": self.family.program(),
        });
        // A child has its parent's modules, and they come again when code is unmapped.
        if !self.lists.modules.contains(&module) {
            self.lists.modules.push(module);
        }
    }

    /// Notes that the process became a program that is not recorded, or that it did something after that, so that it
    /// did not.
    fn becomes(&mut self, path: Option<String>) {
        match self.family.is_first() {
            true => self.lost = path,
            false => self
                .family
                .lost(path.map(|lost| match lost.split_once(" by exec") {
                    Some((path, _)) => path.to_owned(),
                    None => lost,
                })),
        }
    }

    /// Adds a file that a process mapped for the first time; another may have mapped it before.
    fn file(&mut self, bytes: u64, identity: (u64, u64), path: &[u8]) {
        let known = self.identities.iter().position(|&i| i == identity);
        let number = known.unwrap_or(self.lists.files.len());
        self.family.new_file(number as u64);
        if known.is_none() {
            self.identities.push(identity);
            self.lists.files.push(json!({
                "path": String::from_utf8_lossy(path), "first_line": FILES + number as u64 * FILE_LINES,
                "bytes": bytes, "mapped": [],
            }));
        }
    }

    /// Adds the flushes and the fence of a system call that made sure what any process had stored to these lines.
    fn synced(&mut self, thread: u16, site: u32, ranges: &[(u64, u64)]) -> Result<()> {
        let thread = self.family.thread(thread);
        let site = site.checked_sub(1).map(|site| self.family.site(site));
        let mut lines = BTreeSet::new();
        for &(first, count) in ranges {
            let first = self.family.line(first);
            lines.extend(self.unsynced.range(first..first.saturating_add(count)));
        }
        if lines.is_empty() || self.seen <= self.window.skip {
            return Ok(());
        }
        let from = self.kept;
        for line in &lines {
            self.unsynced.remove(line);
            self.push_made(thread, Op::Clwb, *line, site)?;
        }
        self.push_made(thread, Op::Fence, 0, site)?;
        self.lists.syncs.push(json!([from, self.kept]));
        Ok(())
    }

    fn push_made(&mut self, thread: u16, op: Op, line: u64, site: Option<u32>) -> Result<()> {
        self.kept += 1;
        let line = match op {
            Op::Fence => 0,
            _ => self.pages.map(line).map_err(RecordError::new)?,
        };
        let record = Record {
            gap: 0,
            thread,
            op,
            line: Virtual(line),
            data: None,
        };
        Ok(self.writer.push_at(&record, site)?)
    }

    fn record(&mut self, record: codec::Record) -> Result<()> {
        self.seen += 1;
        self.becomes(None);
        self.instructions += record.gap;
        let thread = self.family.thread(record.thread);
        let op = Op::from_code(record.op)
            .ok_or_else(|| RecordError::new(format!("the plugin sent operation {}", record.op)))?;
        let mut kept = Record {
            gap: 0,
            thread,
            op,
            line: Virtual(self.family.line(record.line)),
            data: record.data,
        };
        if self.seen <= self.window.skip {
            self.before.see(&kept);
            return Ok(());
        }
        self.before.fill(&mut kept);
        let mut gap = record.gap;
        while gap > u64::from(u32::MAX) {
            self.push(Record::carry(thread))?;
            gap -= u64::from(u32::MAX);
        }
        kept.gap = gap as u32;
        let line = match op {
            Op::Fence => 0,
            _ => {
                let line = kept.line.0;
                // If there are places, a store without one is another thread's that was seen at a flush.
                let own = record.site.is_some() || self.lists.sites.is_empty();
                if own && line >= FILES && matches!(op, Op::Store | Op::NonTemporalWrite) {
                    self.unsynced.insert(line);
                }
                self.pages.map(line).map_err(RecordError::new)?
            }
        };
        if let Some(frames) = self.memory
            && (frames * PAGE_LINES..FILES).contains(&line)
        {
            return Err(RecordError::new(pages::full(frames)));
        }
        kept.line = Virtual(line);
        let site = record.site.map(|site| self.family.site(site));
        self.kept += 1;
        Ok(self.writer.push_at(&kept, site)?)
    }

    fn changed(&mut self, line: u64, lines: u64, from: Option<u64>) -> Result<()> {
        if self.seen == 0 || self.seen < self.window.skip {
            return Ok(()); // nothing was said of these lines yet
        }
        let mut data = [0; 64];
        data[..8].copy_from_slice(&lines.to_le_bytes());
        data[8..16].copy_from_slice(&from.map_or(0, |from| from + 1).to_le_bytes());
        self.push(Record {
            gap: 0,
            line: Virtual(line),
            data: Some(data),
            ..Record::carry(0)
        })
    }

    fn push(&mut self, record: Record) -> Result<()> {
        self.kept += 1;
        Ok(self.writer.push(&record)?)
    }

    /// Keeps the contents of mapped files before and after the program, and the hashes of its modules, which a crash
    /// test needs.
    fn keep_files(&mut self) {
        let lists = &mut self.lists;
        if let Some(folder) = &self.ground {
            for (file, identity) in lists.files.iter_mut().zip(&self.identities) {
                let copied = folder.join(ground_name(*identity));
                if let Err(e) = grounds::keep(&copied, &self.path, file) {
                    self.notes
                        .push(format!("a mapped file could not be kept: {e}"));
                }
            }
        }
        for module in &mut lists.modules {
            let path = Path::new(module["path"].as_str().unwrap_or_default());
            if let Ok(hash) = grounds::hash_of(path) {
                module["hash"] = hash.into();
            }
        }
    }

    /// Completes the file and gives it its name.
    ///
    /// # Errors
    /// A full disk; the file then does not appear.
    pub fn finish(mut self) -> Result<RecordedTrace, TraceError> {
        if let Some(lost) = &self.lost {
            self.notes.push(format!("the program became {lost}"));
        }
        self.notes.extend(self.family.note());
        let processes = self.family.told();
        let complete = self.ended && !self.is_full();
        self.keep_files();
        let more = &mut self.writer.provenance_mut().more;
        more.insert("complete".into(), complete.into());
        let lists = self.lists;
        let coverage = lists.coverage();
        let site_programs = lists.site_programs.iter().map(|of| json!(of)).collect();
        for (key, list) in [
            ("threads", lists.threads),
            ("execs", lists.execs),
            ("files", lists.files),
            ("sites", lists.sites),
            ("modules", lists.modules),
            ("acks", lists.printed),
            ("marks", lists.marks),
            ("syncs", lists.syncs),
            ("processes", processes),
            ("site_programs", site_programs),
            ("ran", coverage),
            ("pages", lists.placed),
        ] {
            // An empty list of acknowledgements is kept too: it tells that nothing was printed.
            if !list.is_empty() || (key == "acks" && self.acks) {
                more.insert(key.into(), list.into());
            }
        }
        if let Some(cached) = self.cached.filter(|cached| cached.frames > 0) {
            let shown = json!({"dirty_lines": cached.dirty, "of_pages_gone": cached.gone});
            more.insert("cached_at_end".into(), shown);
            if let Some(frames) = more.get_mut("frames") {
                frames["used"] = cached.frames.into();
                frames["pages_cleared"] = cached.cleared.into();
                frames["pages_copied"] = cached.copied.into();
            }
        }
        if !self.notes.is_empty() {
            more.insert("notes".into(), self.notes.clone().into());
        }
        let records = self.writer.finish()?;
        let verified = match self.held.as_slice() {
            [] => None,
            held => Some(verify(&self.path, held)?),
        };
        Ok(RecordedTrace {
            path: self.path,
            records,
            instructions: self.instructions,
            complete,
            notes: self.notes,
            verified,
        })
    }
}
