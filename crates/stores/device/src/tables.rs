//! The tables on disk: the slot of each block's content, and the content of each slot.
//!
//! `table.G` is all of both tables as they were at some commit, `log.G` the commits since then, each with a sum over
//! itself and all before it. `mark` is a file of its own: it has the number and the sum of the last commit, and is
//! written after that commit is on the disk. So a torn end, which the mark does not know, is told from damage to what
//! it knows, and damage is refused. When a log has become longer than its table, a new table and an empty log begin
//! generation G + 1.
//!
//! Tables and logs are in pages that are there twice ([`Twice`]); a commit begins a page of its own, so that no page on
//! the disk is written again.
//!
//! Numbers are little-endian, sums BLAKE3. Left out: how the tables are used (`volume.rs`).

use std::io::{self, ErrorKind};
use std::sync::Arc;

use crate::files::{Bytes, How, StoreFiles};
use crate::mirror::{KEPT, Twice, whole_pages};
use crate::shape::{FORMAT, Shape};
use crate::{DeviceError, Result};
use sardonyx_store::Named;

/// The BLAKE3 of a content, which is its checksum and its name.
pub(crate) type Digest = [u8; 32];

pub(crate) const NOTHING: u32 = 0;

pub(crate) const MARK: &str = "mark";
const MARK_MAGIC: u64 = u64::from_le_bytes(*b"SARDmark");
/// The places of the two copies of the mark, in sectors that no disk writes at once. They are written in turn.
const COPIES: [u64; 2] = [0, 4096];
const MARK_BYTES: usize = 512;

const TABLE_MAGIC: u64 = u64::from_le_bytes(*b"SARDtabl");
const HEAD_BYTES: usize = 96;
const NAME_BYTES: usize = 32;

const RECORD_MAGIC: u32 = u32::from_le_bytes(*b"SARc");
const RECORD_HEAD: usize = 24;
/// The bytes of an entry of a block: the block's number, and its slot's number plus one.
const BLOCK_BYTES: usize = 8;
const SLOT_BYTES: usize = 40;
const SUM: usize = 32;
/// The number of slots that a disk may refuse while a server runs.
pub(crate) const SET_ASIDE: usize = 1 << 12;
/// The bytes of a file that are in memory at once.
const STRETCH: usize = 1 << 20;

pub(crate) fn table_name(generation: u64) -> String {
    format!("table.{generation}")
}

pub(crate) fn log_name(generation: u64) -> String {
    format!("log.{generation}")
}

fn generation_of(name: &str) -> Option<u64> {
    let number = name.strip_prefix("table.").or(name.strip_prefix("log."))?;
    number.parse().ok()
}

pub(crate) fn is_ours(name: &str) -> bool {
    name == MARK || generation_of(name).is_some()
}

/// The content of a slot; none without references.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct SlotEntry {
    pub references: u32,
    pub digest: Digest,
}

#[derive(Debug, Default)]
pub(crate) struct Map {
    /// For each block [`NOTHING`], or the slot's number plus one.
    pub blocks: Vec<u32>,
    pub slots: Vec<SlotEntry>,
}

impl Map {
    pub fn empty(shape: &Shape) -> Map {
        Map {
            blocks: vec![NOTHING; shape.blocks() as usize],
            slots: Vec::new(),
        }
    }

    fn set_block(&mut self, block: u32, slot: u32) -> Option<()> {
        *self.blocks.get_mut(block as usize)? = slot;
        Some(())
    }

    /// Sets a slot; `None` if no device of this size has it.
    fn set_slot(&mut self, slot: u32, kept: SlotEntry) -> Option<()> {
        // There is at most one content for each block, as many slots that are free after the next commit, and those
        // that the disk has refused.
        if slot as usize > 2 * self.blocks.len() + SET_ASIDE {
            return None;
        }
        if self.slots.len() <= slot as usize {
            self.slots.resize(slot as usize + 1, SlotEntry::default());
        }
        self.slots[slot as usize] = kept;
        Some(())
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CommitMark {
    sequence: u64,
    pub generation: u64,
    pub commit: u64,
    log_bytes: u64,
    /// The sum over the table and those bytes.
    sum: Digest,
    pub is_clean: bool,
}

impl CommitMark {
    fn encoded(&self) -> [u8; MARK_BYTES] {
        let mut bytes = [0; MARK_BYTES];
        let numbers = [
            MARK_MAGIC,
            self.sequence,
            self.generation,
            self.commit,
            self.log_bytes,
            u64::from(self.is_clean),
        ];
        for (at, number) in numbers.into_iter().enumerate() {
            bytes[8 * at..8 * at + 8].copy_from_slice(&number.to_le_bytes());
        }
        bytes[48..80].copy_from_slice(&self.sum);
        let own = *blake3::hash(&bytes[..MARK_BYTES - SUM]).as_bytes();
        bytes[MARK_BYTES - SUM..].copy_from_slice(&own);
        bytes
    }

    fn decoded(bytes: &[u8; MARK_BYTES]) -> Option<CommitMark> {
        let number = |at: usize| u64_at(bytes, 8 * at);
        let own = blake3::hash(&bytes[..MARK_BYTES - SUM]);
        if own.as_bytes() != &bytes[MARK_BYTES - SUM..] || number(0) != MARK_MAGIC {
            return None;
        }
        Some(CommitMark {
            sequence: number(1),
            generation: number(2),
            commit: number(3),
            log_bytes: number(4),
            is_clean: number(5) == 1,
            sum: bytes[48..80].try_into().expect("32 bytes"),
        })
    }
}

#[derive(Debug)]
pub(crate) struct ReadTables {
    pub map: Map,
    /// The last commit: that of the mark, or a later one whose mark could no longer be written.
    pub mark: CommitMark,
    pub beyond: u64,
    pub copy_is_lost: bool,
    /// The number of lost copies of pages of the table and the log, for which the other copies serve.
    pub lost_pages: u64,
    /// Bytes of the table and the log that were read and agree with the sums.
    pub bytes_read: u64,
    /// The bytes at the log's end that are no commit.
    pub torn_bytes: u64,
}

/// Brings every file that may be in doubt to the disk and then has it read from there, because a failed sync may leave
/// data only in the system's memory.
pub(crate) fn disbelieve(files: &dyn StoreFiles, names: &[&str]) -> Result<()> {
    for name in names {
        let file = open(files, name, How::Write)?;
        (file.sync().and_then(|()| file.forget_cached()))
            .map_err(|error| failed(files, name, error))?;
    }
    Ok(())
}

pub(crate) fn read_mark(files: &dyn StoreFiles) -> Result<(CommitMark, bool)> {
    let file = open(files, MARK, How::Read)?;
    let mut marks = Vec::new();
    for at in COPIES {
        let mut bytes = [0; MARK_BYTES];
        if file.read_at(&mut bytes, at).is_ok() {
            marks.extend(CommitMark::decoded(&bytes));
        }
    }
    let copy_is_lost = marks.len() < COPIES.len();
    match marks.into_iter().max_by_key(|mark| mark.sequence) {
        Some(mark) => Ok((mark, copy_is_lost)),
        None => Err(damaged(files, MARK, "both of its copies are damaged")),
    }
}

pub(crate) fn read(files: &dyn StoreFiles, shape: &Shape) -> Result<ReadTables> {
    let open = |name: &str| open(files, name, How::Read).map(Twice::new);
    let (mut mark, copy_is_lost) = read_mark(files)?;
    not_older(files, mark.generation)?;
    let mut map = Map::empty(shape);
    let table = open(&table_name(mark.generation))?;
    let (commit, mut sum, table_bytes) =
        read_table(files, &table, shape, mark.generation, &mut map)?;
    let name = log_name(mark.generation);
    let log = open(&name)?;
    let (known, known_bytes) = (mark.commit, mark.log_bytes);
    let length = log.length().map_err(|error| failed(files, &name, error))?;
    let length = length.max(known_bytes); // the file's end may be lost, and with it but one of two copies
    let (mut at, mut number) = (0, commit);
    loop {
        let is_known = at < known_bytes;
        if !is_known
            && number <= known.max(commit)
            && (at, number, sum) != (known_bytes, known, mark.sum)
        // At the end of the bytes that the mark knows, number and sum must be the mark's: otherwise the log is older,
        // or of another store.
        {
            let what = format!("ends with commit {number}, and is not the log of commit {known}");
            return Err(damaged(files, &name, &what));
        }
        let read = read_record(&log, at, length, number + 1, &sum);
        let Some(record) = read.map_err(|error| failed(files, &name, error))? else {
            if is_known {
                let what = format!(
                    "the last commit was {known}, and after commit {number} nothing is whole: from byte \
                     {at} on it is damaged or missing"
                );
                return Err(damaged(files, &name, &what));
            }
            break;
        };
        let strange = || damaged(files, &name, "is not a log of this device");
        for (block, slot) in record.blocks() {
            map.set_block(block, slot).ok_or_else(strange)?;
        }
        for (slot, kept) in record.slots() {
            map.set_slot(slot, kept).ok_or_else(strange)?;
        }
        at += whole_pages(record.bytes.len() as u64);
        sum = record.sum();
        number += 1;
        if !is_known {
            (mark.commit, mark.log_bytes, mark.sum, mark.is_clean) = (number, at, sum, false);
        }
    }
    Ok(ReadTables {
        map,
        mark,
        beyond: number - known,
        copy_is_lost,
        lost_pages: table.lost_copies() + log.lost_copies(),
        bytes_read: table_bytes + at,
        torn_bytes: length - at,
    })
}

/// An error if there are commits of a later generation: both copies of the mark had named it before the first of them,
/// so the disk has an old mark.
fn not_older(files: &dyn StoreFiles, generation: u64) -> Result<()> {
    let names = files.names();
    for name in names.map_err(|error| failed(files, MARK, error))? {
        if name.starts_with("log.") && generation_of(&name) > Some(generation) {
            let log = Twice::new(open(files, &name, How::Read)?);
            let first = log.page(0).map_err(|error| failed(files, &name, error))?;
            if first.is_some_and(|head| u32_at(&head, 0) == RECORD_MAGIC) {
                let what = format!("is older than {name}, which has commits");
                return Err(damaged(files, MARK, &what));
            }
        }
    }
    Ok(())
}

/// Fills the map from a table. Returns its commit, its sum and its bytes.
fn read_table(
    files: &dyn StoreFiles,
    file: &Twice,
    shape: &Shape,
    generation: u64,
    map: &mut Map,
) -> Result<(u64, Digest, u64)> {
    let name = table_name(generation);
    let failed = |error: io::Error| match error.kind() {
        ErrorKind::UnexpectedEof => {
            damaged(files, &name, "is cut off, or damaged in both of its copies")
        }
        _ => failed(files, &name, error),
    };
    let mut stream = SummedFile::new(file);
    let head: [u8; HEAD_BYTES] = (stream.take(HEAD_BYTES).map_err(failed)?)
        .try_into()
        .expect("as asked");
    let (blocks, slots) = (u64_at(&head, 72), u64_at(&head, 80));
    let bytes = |blocks: u64, slots: u64| {
        let slots = slots.checked_mul(SLOT_BYTES as u64)?;
        let blocks = blocks.checked_mul(BLOCK_BYTES as u64)?;
        (HEAD_BYTES as u64 + SUM as u64)
            .checked_add(slots)?
            .checked_add(blocks)
    };
    let length = match bytes(blocks, slots) {
        Some(length) if u64_at(&head, 0) == TABLE_MAGIC => length,
        _ => return Err(damaged(files, &name, "is not a table")),
    };
    let mut strange = false;
    for _ in 0..blocks {
        let entry = stream.take(BLOCK_BYTES).map_err(failed)?;
        strange |= map.set_block(u32_at(entry, 0), u32_at(entry, 4)).is_none();
    }
    for _ in 0..slots {
        let (slot, kept) = slot_of(stream.take(SLOT_BYTES).map_err(failed)?);
        strange |= map.set_slot(slot, kept).is_none();
    }
    let sum = stream.sum();
    if stream.take(SUM).map_err(failed)? != sum {
        return Err(damaged(files, &name, "is not what its sum says"));
    }
    strange |= head[16..72] != head_of(shape)[16..72];
    if strange || u64_at(&head, 8) != generation {
        return Err(damaged(files, &name, "is not a table of this device"));
    }
    Ok((u64_at(&head, 88), sum, length))
}

/// The shape in the head of the current table; `None` if it cannot be read.
pub(crate) fn read_shape(files: &dyn StoreFiles) -> Option<Shape> {
    let generation = read_mark(files).ok()?.0.generation;
    let table = files.open(&table_name(generation), How::Read).ok()?;
    let head = Twice::new(table).page(0).ok()??;
    let name = head[32..32 + NAME_BYTES].split(|&byte| byte == 0).next()?;
    let shape = Shape {
        format: FORMAT,
        design: Named::find(std::str::from_utf8(name).ok()?).ok()?,
        size_bytes: u64_at(&head, 16),
        block_bytes: u32_at(&head, 24),
    };
    let is_table = u64_at(&head, 0) == TABLE_MAGIC && u64_at(&head, 8) == generation;
    (is_table && shape.check().is_ok()).then_some(shape)
}

fn head_of(shape: &Shape) -> [u8; HEAD_BYTES] {
    let mut head = [0; HEAD_BYTES];
    head[..8].copy_from_slice(&TABLE_MAGIC.to_le_bytes());
    head[16..24].copy_from_slice(&shape.size_bytes.to_le_bytes());
    head[24..28].copy_from_slice(&shape.block_bytes.to_le_bytes());
    let name = shape.design.name.as_bytes();
    let name = &name[..name.len().min(NAME_BYTES)];
    head[32..32 + name.len()].copy_from_slice(name);
    head
}

/// A file that is read from its beginning and summed on the way.
struct SummedFile<'a> {
    file: &'a Twice,
    page: u64,
    buffer: Vec<u8>,
    from: usize,
    sum: blake3::Hasher,
}

impl SummedFile<'_> {
    fn new(file: &Twice) -> SummedFile<'_> {
        SummedFile {
            file,
            page: 0,
            buffer: Vec::new(),
            from: 0,
            sum: blake3::Hasher::new(),
        }
    }

    fn sum(&mut self) -> Digest {
        self.sum.update(&self.buffer[..self.from]);
        self.buffer.drain(..self.from);
        self.from = 0;
        *self.sum.finalize().as_bytes()
    }

    /// The next bytes; a lost page reads as the file's end.
    fn take(&mut self, bytes: usize) -> io::Result<&[u8]> {
        while self.buffer.len() - self.from < bytes {
            self.sum.update(&self.buffer[..self.from]);
            self.buffer.drain(..self.from);
            self.from = 0;
            let page = self.file.page(self.page)?;
            self.buffer.extend(page.ok_or(ErrorKind::UnexpectedEof)?);
            self.page += 1;
        }
        self.from += bytes;
        Ok(&self.buffer[self.from - bytes..self.from])
    }
}

/// A commit in the log: a head, blocks, slots, and the sum over the sum before and all of this.
struct CommitRecord {
    bytes: Vec<u8>,
}

impl CommitRecord {
    fn blocks(&self) -> impl Iterator<Item = (u32, u32)> + '_ {
        let count = u32_at(&self.bytes, 4) as usize;
        let entries = self.bytes[RECORD_HEAD..].chunks_exact(BLOCK_BYTES);
        entries
            .take(count)
            .map(|entry| (u32_at(entry, 0), u32_at(entry, 4)))
    }

    fn slots(&self) -> impl Iterator<Item = (u32, SlotEntry)> + '_ {
        let from = RECORD_HEAD + u32_at(&self.bytes, 4) as usize * BLOCK_BYTES;
        let entries = self.bytes[from..].chunks_exact(SLOT_BYTES);
        entries.take(u32_at(&self.bytes, 8) as usize).map(slot_of)
    }

    fn sum(&self) -> Digest {
        self.bytes[self.bytes.len() - SUM..]
            .try_into()
            .expect("32 bytes")
    }

    fn sum_of(bytes: &[u8], before: &Digest) -> Digest {
        let mut sum = blake3::Hasher::new();
        sum.update(before).update(bytes);
        *sum.finalize().as_bytes()
    }
}

/// Reads the commit of this number that begins here; `None` if there is no whole one. Bytes that cannot be read are an
/// error of the disk.
fn read_record(
    log: &Twice,
    at: u64,
    length: u64,
    number: u64,
    before: &Digest,
) -> io::Result<Option<CommitRecord>> {
    if at >= length {
        return Ok(None);
    }
    let first = at / KEPT as u64;
    let Some(head) = log.page(first)? else {
        return Ok(None);
    };
    let bytes = RECORD_HEAD as u64
        + u64::from(u32_at(&head, 4)) * BLOCK_BYTES as u64
        + u64::from(u32_at(&head, 8)) * SLOT_BYTES as u64
        + SUM as u64;
    if u32_at(&head, 0) != RECORD_MAGIC || u64_at(&head, 16) != number || bytes > length - at {
        return Ok(None);
    }
    let Some(bytes) = log.read(first, bytes as usize)? else {
        return Ok(None);
    };
    let record = CommitRecord { bytes };
    let own = record.bytes.len() - SUM;
    Ok((record.sum() == CommitRecord::sum_of(&record.bytes[..own], before)).then_some(record))
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().expect("4 bytes"))
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().expect("8 bytes"))
}

fn put_slot(slot: u32, kept: SlotEntry, into: &mut Vec<u8>) {
    into.extend(slot.to_le_bytes());
    into.extend(kept.references.to_le_bytes());
    into.extend(kept.digest);
}

fn slot_of(entry: &[u8]) -> (u32, SlotEntry) {
    let kept = SlotEntry {
        references: u32_at(entry, 4),
        digest: entry[8..SLOT_BYTES].try_into().expect("32 bytes"),
    };
    (u32_at(entry, 0), kept)
}

pub(crate) fn open(files: &dyn StoreFiles, name: &str, how: How) -> Result<Arc<dyn Bytes>> {
    files.open(name, how).map_err(|error| match error.kind() {
        ErrorKind::NotFound => damaged(files, name, "is missing"),
        _ => failed(files, name, error),
    })
}

fn failed(files: &dyn StoreFiles, name: &str, error: io::Error) -> DeviceError {
    DeviceError::io(&files.folder().join(name), error)
}

fn damaged(files: &dyn StoreFiles, name: &str, what: &str) -> DeviceError {
    DeviceError::Tables(format!("{}: {what}", files.folder().join(name).display()))
}

pub(crate) enum Refused {
    /// There was no room; nothing is in doubt, and the commit can be tried again.
    Full(DeviceError),
    InDoubt(DeviceError),
}

#[derive(Debug)]
pub(crate) struct Tables {
    files: Arc<dyn StoreFiles>,
    shape: Shape,
    marks: Arc<dyn Bytes>,
    log: Twice,
    mark: CommitMark,
    table_bytes: u64,
}

impl Tables {
    /// Makes the tables of a new, empty store; everything except their names is on the disk.
    pub fn make(files: Arc<dyn StoreFiles>, shape: &Shape) -> Result<Tables> {
        let map = Map::empty(shape);
        let (sum, table_bytes) = write_table(&*files, shape, 0, 0, &map)?;
        let failed = |error| failed(&*files, MARK, error);
        let log = Twice::new(files.open(&log_name(0), How::New).map_err(failed)?);
        log.sync().map_err(failed)?;
        let marks = files.open(MARK, How::New).map_err(failed)?;
        marks.set_length(2 * COPIES[1]).map_err(failed)?;
        let mut tables = Tables {
            mark: CommitMark {
                sequence: 0,
                generation: 0,
                commit: 0,
                log_bytes: 0,
                sum,
                is_clean: false,
            },
            shape: shape.clone(),
            files: files.clone(),
            marks,
            log,
            table_bytes,
        };
        tables.write_marks().map_err(failed)?;
        Ok(tables)
    }

    /// Prepares the tables that were found for further commits. Files of other generations are removed once both copies
    /// of the mark are on the disk.
    pub fn go_on(files: Arc<dyn StoreFiles>, shape: &Shape, found: &ReadTables) -> Result<Tables> {
        let (mark, table, log) = (
            found.mark,
            table_name(found.mark.generation),
            log_name(found.mark.generation),
        );
        let open = |name: &str| open(&*files, name, How::Write);
        let table_bytes = Twice::new(open(&table)?).length();
        let table_bytes = table_bytes.map_err(|error| failed(&*files, &table, error))?;
        let mut tables = Tables {
            marks: open(MARK)?,
            log: Twice::new(open(&log)?),
            mark: CommitMark {
                is_clean: false,
                ..mark
            },
            shape: shape.clone(),
            files: files.clone(),
            table_bytes,
        };
        if found.beyond > 0 || found.copy_is_lost || found.lost_pages > 0 {
            // It is unknown whether the disk has the log's end, so a new generation is written as a whole.
            tables
                .next_generation(&found.map)
                .map_err(|refused| match refused {
                    Refused::Full(error) | Refused::InDoubt(error) => error,
                })?;
        } else {
            let cut = tables.log.cut(mark.log_bytes);
            (cut.and_then(|()| tables.log.sync())).map_err(|error| failed(&*files, &log, error))?;
            (tables.write_marks()).map_err(|error| failed(&*files, MARK, error))?;
        }
        tables.remove_others();
        Ok(tables)
    }

    /// Whether the log is so long that [`Tables::next_generation`] pays.
    pub fn is_log_long(&self, at_least: u64) -> bool {
        self.mark.log_bytes > at_least.max(self.table_bytes)
    }

    /// Commits the slot (its number plus one, or [`NOTHING`]) of each of these blocks, and the content of each of these
    /// slots. It is on the disk when this returns.
    pub fn commit(
        &mut self,
        blocks: impl ExactSizeIterator<Item = (u32, u32)>,
        slots: impl ExactSizeIterator<Item = (u32, SlotEntry)>,
    ) -> std::result::Result<(), Refused> {
        let number = self.mark.commit + 1;
        let mut record = Vec::with_capacity(
            RECORD_HEAD + blocks.len() * BLOCK_BYTES + slots.len() * SLOT_BYTES + SUM,
        );
        record.extend(RECORD_MAGIC.to_le_bytes());
        record.extend((blocks.len() as u32).to_le_bytes());
        record.extend((slots.len() as u32).to_le_bytes());
        record.extend([0; 4]);
        record.extend(number.to_le_bytes());
        for (block, slot) in blocks {
            record.extend(block.to_le_bytes());
            record.extend(slot.to_le_bytes());
        }
        for (slot, kept) in slots {
            put_slot(slot, kept, &mut record);
        }
        let sum = CommitRecord::sum_of(&record, &self.mark.sum);
        record.extend(sum);
        let name = log_name(self.mark.generation);
        let written = self.log.write(self.mark.log_bytes / KEPT as u64, &record);
        written.map_err(|error| refused(failed(&*self.files, &name, error)))?;
        let synced = self.log.sync();
        synced.map_err(|error| Refused::InDoubt(failed(&*self.files, &name, error)))?;
        self.mark.is_clean = false;
        self.mark.commit = number;
        self.mark.log_bytes += whole_pages(record.len() as u64);
        self.mark.sum = sum;
        self.write_mark()
            .map_err(|error| Refused::InDoubt(failed(&*self.files, MARK, error)))
    }

    /// Writes all tables as a new generation, with an empty log.
    pub fn next_generation(&mut self, map: &Map) -> std::result::Result<(), Refused> {
        let (files, generation) = (self.files.clone(), self.mark.generation + 1);
        let (table, name) = (table_name(generation), log_name(generation));
        let made = write_table(&*files, &self.shape, generation, self.mark.commit, map);
        let (sum, table_bytes) = made.map_err(|error| {
            let _ = files.remove(&table);
            refused(error)
        })?;
        let opened = files.open(&name, How::New);
        let log = Twice::new(opened.map_err(|error| refused(failed(&*files, &name, error)))?);
        let synced = (log.sync()).and_then(|()| files.sync_names());
        synced.map_err(|error| Refused::InDoubt(failed(&*files, &name, error)))?;
        self.log = log;
        self.table_bytes = table_bytes;
        self.mark = CommitMark {
            generation,
            log_bytes: 0,
            sum,
            ..self.mark
        };
        self.write_marks()
            .map_err(|error| Refused::InDoubt(failed(&*files, MARK, error)))?;
        self.remove_others();
        Ok(())
    }

    /// Notes that everything is on the disk and that the store was closed.
    pub fn end(&mut self) -> Result<()> {
        self.mark.is_clean = true;
        self.write_mark()
            .map_err(|error| failed(&*self.files, MARK, error))
    }

    fn write_mark(&mut self) -> io::Result<()> {
        // The copies are written in turn, so a torn write leaves the mark before it.
        self.mark.sequence += 1;
        let at = COPIES[(self.mark.sequence % 2) as usize];
        self.marks.write_at(&self.mark.encoded(), at)?;
        self.marks.sync()
    }

    fn write_marks(&mut self) -> io::Result<()> {
        // Both copies must name the generation before files of others are removed.
        self.write_mark()?;
        self.write_mark()
    }

    /// Removes files of other generations, which neither copy of the mark names. A file that stays does no harm.
    fn remove_others(&self) {
        for name in self.files.names().unwrap_or_default() {
            if generation_of(&name).is_some_and(|other| other != self.mark.generation) {
                let _ = self.files.remove(&name);
            }
        }
    }
}

fn refused(error: DeviceError) -> Refused {
    if error.is_full() {
        Refused::Full(error)
    } else {
        Refused::InDoubt(error)
    }
}

/// Writes a table and syncs it. Returns its sum and its bytes. A sync that fails because the disk is full fails like
/// any other.
fn write_table(
    files: &dyn StoreFiles,
    shape: &Shape,
    generation: u64,
    commit: u64,
    map: &Map,
) -> Result<(Digest, u64)> {
    let name = table_name(generation);
    let failed = |error| failed(files, &name, error);
    let file = Twice::new(files.open(&name, How::New).map_err(failed)?);
    let live = |slot: &&u32| **slot != NOTHING;
    let used = |kept: &&SlotEntry| kept.references > 0;
    let mut head = head_of(shape);
    let numbers = [
        (8, generation),
        (72, map.blocks.iter().filter(live).count() as u64),
        (80, map.slots.iter().filter(used).count() as u64),
        (88, commit),
    ];
    for (at, number) in numbers {
        head[at..at + 8].copy_from_slice(&number.to_le_bytes());
    }
    let mut sum = blake3::Hasher::new();
    let (mut page, mut bytes) = (0, 0);
    let mut buffer = Vec::with_capacity(STRETCH + SLOT_BYTES);
    buffer.extend(head);
    // Writes the whole pages of the buffer, once it has this many bytes.
    let mut put = |buffer: &mut Vec<u8>, at_least: usize| -> io::Result<()> {
        if buffer.len() >= at_least {
            let whole = buffer.len() / KEPT * KEPT;
            file.write(page, &buffer[..whole])?;
            sum.update(&buffer[..whole]);
            page += (whole / KEPT) as u64;
            bytes += whole as u64;
            buffer.drain(..whole);
        }
        Ok(())
    };
    for (block, slot) in map.blocks.iter().enumerate().filter(|(_, slot)| live(slot)) {
        buffer.extend((block as u32).to_le_bytes());
        buffer.extend(slot.to_le_bytes());
        put(&mut buffer, STRETCH).map_err(failed)?;
    }
    for (slot, kept) in map.slots.iter().enumerate().filter(|(_, kept)| used(kept)) {
        put_slot(slot as u32, *kept, &mut buffer);
        put(&mut buffer, STRETCH).map_err(failed)?;
    }
    put(&mut buffer, 0).map_err(failed)?;
    let sum = *sum.update(&buffer).finalize().as_bytes();
    buffer.extend(sum);
    file.write(page, &buffer).map_err(failed)?;
    file.sync().map_err(|error| {
        let error = io::Error::other(format!("cannot be synced: {error}"));
        failed(error)
    })?;
    Ok((sum, bytes + buffer.len() as u64))
}
