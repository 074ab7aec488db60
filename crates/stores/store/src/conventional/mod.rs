//! The conventional rival (Sec. III-B, Fig. 7), executed: SHA-1 fingerprints, a summary vector (Bloom
//! filter), a chunk index with a cache in memory and the rest in an embedded key-value engine,
//! reference counts, an address translation table, chunks in a real file.
//!
//! It really stores; its time and energy are counted from what it did ([`CostModel`]), so they are the same on every
//! machine. A fingerprint decides nothing: chunks are compared byte by byte, unless told not to.
//! Left out of the time: the engine's own threads, and waiting for a flush.

mod costs;
mod extents;
mod index;

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use fastbloom::BloomFilter;
use serde::{Deserialize, Serialize};

pub use self::costs::CostModel;
use self::extents::{Extents, FileExtent};
use self::index::{Chunk, ChunkMapping, Chunks, Index};
use crate::fingerprint::{SHA1_BYTES, sha1};
use crate::parameters::Bracket;
use crate::store::{Cost, Error, Lba, Outcome, Store, Totals};

/// A SHA-1, or its first bits if a test wants collisions.
type ChunkPrint = [u8; SHA1_BYTES];

/// The power that the executing machine draws. The paper measured four Xeon E5-4650 with 64 GB of memory and an Intel
/// P3700 with performance counters, and prints no figure.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PowerDraw {
    /// Processors while it works: from one core's share of an E5-4650's 130 W (eight cores) to four
    /// whole packages. *assumed*
    pub processor_w: Bracket,
    /// Memory while it works: from 3 W, a module, to 24 W, eight of them. *assumed*
    pub memory_w: Bracket,
    /// The drive, for a byte written: 25 W at 1.9 GB/s, as an 800 GB P3700 is specified. *assumed*
    pub written_nj_per_byte: f64,
    /// The drive, for a byte read: 12 W at 2.8 GB/s. *assumed*
    pub read_nj_per_byte: f64,
}

impl Default for PowerDraw {
    fn default() -> PowerDraw {
        PowerDraw {
            processor_w: Bracket {
                low: 130.0 / 8.0,
                high: 4.0 * 130.0,
            },
            memory_w: Bracket {
                low: 3.0,
                high: 24.0,
            },
            written_nj_per_byte: 25.0 / 1.9,
            read_nj_per_byte: 12.0 / 2.8,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ConventionalOptions {
    /// Bytes of a block; chunks by content may have other lengths.
    pub block_bytes: u32,
    pub capacity_bytes: u64,
    /// If false every block is stored again, which shows what deduplication costs.
    pub deduplicate: bool,
    /// Set if bytes are compared before a fingerprint is believed.
    pub verify: bool,
    /// Bits of SHA-1 that make a fingerprint; fewer than 160 only to force collisions.
    pub hash_bits: u32,
    /// Entries of the chunk index kept in memory. *assumed*
    pub cache_entries: usize,
    /// Bytes of the engine's own cache. *assumed*
    pub engine_cache_bytes: u64,
    /// Bits of the summary vector for each chunk that fits. *assumed*
    pub bloom_bits: u32,
    /// Changes of the tables that are committed at once, unless a flush comes before. *assumed*
    pub commit_every: usize,
    /// Set if commits between flushes wait for the drive too. If not, a power cut may leave a block that was flushed
    /// and then overwritten with neither its old nor its new content.
    pub sync_commits: bool,
    pub costs: CostModel,
    pub draw: PowerDraw,
}

impl Default for ConventionalOptions {
    fn default() -> ConventionalOptions {
        ConventionalOptions {
            block_bytes: 4096,
            capacity_bytes: 1 << 30,
            deduplicate: true,
            verify: true,
            hash_bits: 160,
            cache_entries: 1 << 18,
            engine_cache_bytes: 64 << 20,
            bloom_bits: 10,
            commit_every: 1 << 15,
            sync_commits: true,
            costs: CostModel::default(),
            draw: PowerDraw::default(),
        }
    }
}

impl ConventionalOptions {
    /// Settings that must not change between two openings of a folder.
    fn format(&self) -> String {
        let ConventionalOptions {
            block_bytes,
            deduplicate,
            hash_bits,
            ..
        } = self;
        format!("blocks of {block_bytes} bytes, deduplicate = {deduplicate}, {hash_bits} hash bits")
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Activity {
    /// Writes, reads and deletions.
    pub requests: u64,
    pub bytes_hashed: u64,
    pub bytes_compared: u64,
    pub bytes_written: u64,
    /// Bytes read from the file of chunks, comparisons included.
    pub bytes_read: u64,
    pub bloom_answers: u64,
    /// Look-ups that the cache or changes not yet committed answered.
    pub cache_answers: u64,
    pub engine_lookups: u64,
    pub collisions: u64,
}

pub struct Conventional {
    options: ConventionalOptions,
    path: PathBuf,
    file: File,
    bloom: BloomFilter,
    index: Index,
    extents: Extents,
    stored_bytes: u64,
    scratch: Vec<u8>,
    counts: StoreCounts,
    activity: Activity,
}

#[derive(Clone, Copy, Debug, Default)]
struct StoreCounts {
    writes: u64,
    duplicates: u64,
    reads: u64,
    deletes: u64,
}

const CHUNKS: &str = "chunks";
/// One part in this many of the file is spare, so that a full store can replace a block. *assumed*
const SPARE: u64 = 16;
const INDEX: &str = "index";

impl Conventional {
    /// Opens the store in a folder, or makes one.
    ///
    /// # Errors
    /// If the folder cannot be used, or another process has it.
    pub fn open(path: &Path, options: ConventionalOptions) -> Result<Conventional, Error> {
        let failed = |source| failed(path, source);
        fs::create_dir_all(path).map_err(failed)?;
        let index = Index::open(&path.join(INDEX), &options)?;
        let place = path.join(CHUNKS);
        let mut how = OpenOptions::new();
        how.read(true).write(true).create(true).truncate(false);
        let file = how.open(&place).map_err(failed)?;
        let chunks = options.capacity_bytes / u64::from(options.block_bytes);
        let bits = (chunks * u64::from(options.bloom_bits)).max(1024) as usize;
        let mut bloom = BloomFilter::with_num_bits(bits)
            .seed(&0)
            .expected_items(chunks.max(1) as usize);
        let spare = (options.capacity_bytes / SPARE).max(SPARE * u64::from(options.block_bytes));
        let mut extents = Extents::new(options.capacity_bytes + spare);
        let mut used = Vec::new();
        index.each_chunk(|fingerprint, chunk| {
            bloom.insert_hash(first_bits(&fingerprint));
            used.push(chunk.extent);
        })?;
        if !options.deduplicate {
            index.each_mapping(|mapping| used.push(mapping.extent))?;
        }
        let stored_bytes = used.iter().map(|extent| u64::from(extent.bytes)).sum();
        extents.take(used);
        Ok(Conventional {
            options,
            path: place,
            file,
            bloom,
            index,
            extents,
            stored_bytes,
            scratch: Vec::new(),
            counts: StoreCounts::default(),
            activity: Activity::default(),
        })
    }

    pub fn activity(&self) -> &Activity {
        &self.activity
    }

    /// Seconds of it all by the costs of what it did, and how long the processors worked meanwhile.
    pub fn seconds(&self) -> (f64, f64) {
        let costs = &self.options.costs;
        (
            costs.seconds(&self.activity),
            costs.processor_seconds(&self.activity),
        )
    }

    /// Nanojoules by what drew them; `place` chooses the value in each bracket.
    pub fn energy_by(&self, place: fn(Bracket) -> f64) -> [(&'static str, f64); 3] {
        self.energy_of(&self.activity, place)
    }

    fn energy_of(&self, done: &Activity, place: fn(Bracket) -> f64) -> [(&'static str, f64); 3] {
        let draw = &self.options.draw;
        let busy_ns = self.options.costs.processor_seconds(done) * 1e9;
        let drive = done.bytes_written as f64 * draw.written_nj_per_byte
            + done.bytes_read as f64 * draw.read_nj_per_byte;
        [
            ("processor", busy_ns * place(draw.processor_w)),
            ("memory", busy_ns * place(draw.memory_w)),
            ("drive", drive),
        ]
    }

    fn cost_of(&self, done: &Activity) -> Cost {
        let energy = self.energy_of(done, Bracket::middle);
        Cost {
            cycles: 0,
            time_ns: self.options.costs.seconds(done) * 1e9,
            energy_nj: energy.iter().map(|(_, energy)| energy).sum(),
        }
    }

    pub fn put(&mut self, lba: Lba, bytes: &[u8]) -> Result<Outcome, Error> {
        let before = self.begin();
        let old = self.index.mapping(lba)?;
        let (mapping, duplicate) = if self.options.deduplicate {
            self.share(bytes, old)?
        } else {
            let extent = self.allocate(bytes.len(), old)?;
            self.write_at(extent, bytes)?;
            let fingerprint = [0; SHA1_BYTES];
            (
                ChunkMapping {
                    extent,
                    fingerprint,
                },
                false,
            )
        };
        self.index.map(lba, Some(mapping), old.is_some());
        if let Some(old) = old {
            self.release(old)?;
            self.counts.deletes += 1;
        }
        self.counts.writes += 1;
        self.counts.duplicates += u64::from(duplicate);
        self.commit_if_many()?;
        Ok(self.end(&before, duplicate, old.is_some()))
    }

    /// Reads a chunk; returns its bytes, if there are any.
    pub fn get(&mut self, lba: Lba) -> Result<(Outcome, Option<Vec<u8>>), Error> {
        let before = self.begin();
        let bytes = match self.index.mapping(lba)? {
            None => None,
            Some(mapping) => {
                let mut bytes = vec![0; mapping.extent.bytes as usize];
                self.read_at(mapping.extent, &mut bytes)?;
                Some(bytes)
            }
        };
        self.counts.reads += 1;
        Ok((self.end(&before, false, bytes.is_some()), bytes))
    }

    /// Adds a reference to an equal chunk, or the chunk itself.
    fn share(
        &mut self,
        bytes: &[u8],
        old: Option<ChunkMapping>,
    ) -> Result<(ChunkMapping, bool), Error> {
        let fingerprint = self.fingerprint(bytes);
        let mut chunks = Chunks::new();
        if self.bloom.contains_hash(first_bits(&fingerprint)) {
            chunks = self.index.chunks(&fingerprint, &mut self.activity)?;
        } else {
            self.activity.bloom_answers += 1;
        }
        for at in 0..chunks.len() {
            let extent = chunks[at].extent;
            if !self.is_equal(extent, bytes)? {
                self.activity.collisions += 1;
                continue;
            }
            chunks[at].references += 1;
            self.index.set_chunks(fingerprint, chunks, 0);
            return Ok((
                ChunkMapping {
                    extent,
                    fingerprint,
                },
                true,
            ));
        }
        let extent = self.allocate(bytes.len(), old)?;
        self.write_at(extent, bytes)?;
        chunks.push(Chunk {
            extent,
            references: 1,
        });
        self.index.set_chunks(fingerprint, chunks, 1);
        self.bloom.insert_hash(first_bits(&fingerprint));
        Ok((
            ChunkMapping {
                extent,
                fingerprint,
            },
            false,
        ))
    }

    fn fingerprint(&mut self, bytes: &[u8]) -> ChunkPrint {
        let mut fingerprint = sha1(bytes);
        self.activity.bytes_hashed += bytes.len() as u64;
        let bits = self.options.hash_bits as usize;
        for (index, byte) in fingerprint.iter_mut().enumerate() {
            let kept = bits.saturating_sub(8 * index).min(8);
            *byte &= !(0xFF_u32 >> kept) as u8;
        }
        fingerprint
    }

    fn is_equal(&mut self, extent: FileExtent, bytes: &[u8]) -> Result<bool, Error> {
        if extent.bytes as usize != bytes.len() {
            return Ok(false);
        }
        if !self.options.verify {
            return Ok(true);
        }
        let mut stored = std::mem::take(&mut self.scratch);
        stored.resize(bytes.len(), 0);
        let read = self.read_at(extent, &mut stored);
        let equal = stored == bytes;
        self.activity.bytes_compared += bytes.len() as u64;
        self.scratch = stored;
        read.map(|()| equal)
    }

    /// Finds room for a chunk that may replace another. Freed room may be used again only after the commit that frees
    /// it, so a store without room commits.
    fn allocate(&mut self, bytes: usize, old: Option<ChunkMapping>) -> Result<FileExtent, Error> {
        let after = self.stored_bytes + bytes as u64;
        if after > self.options.capacity_bytes
            && after - self.freed_by(old)? > self.options.capacity_bytes
        {
            return Err(self.full());
        }
        let bytes = bytes as u32;
        if let Some(extent) = self.extents.allocate(bytes) {
            return Ok(extent);
        }
        self.commit()?;
        self.extents.allocate(bytes).ok_or_else(|| self.full())
    }

    fn freed_by(&mut self, old: Option<ChunkMapping>) -> Result<u64, Error> {
        let Some(old) = old else { return Ok(0) };
        let chunks = self.chunks_of(&old)?;
        let shared = chunks
            .iter()
            .any(|chunk| chunk.extent == old.extent && chunk.references > 1);
        Ok(if shared {
            0
        } else {
            u64::from(old.extent.bytes)
        })
    }

    fn stored(&self) -> u64 {
        if self.options.deduplicate {
            self.index.stored()
        } else {
            self.index.live()
        }
    }

    fn full(&self) -> Error {
        Error::Full {
            blocks: self.stored(),
        }
    }

    /// The chunks under a block's fingerprint; none without deduplication.
    fn chunks_of(&mut self, mapping: &ChunkMapping) -> Result<Chunks, Error> {
        if !self.options.deduplicate {
            return Ok(Chunks::new());
        }
        self.index
            .chunks(&mapping.fingerprint, &mut Activity::default())
    }

    fn release(&mut self, old: ChunkMapping) -> Result<(), Error> {
        if self.options.deduplicate {
            let mut chunks = self.chunks_of(&old)?;
            let at = chunks.iter().position(|chunk| chunk.extent == old.extent);
            let at = at.ok_or_else(|| Error::Index {
                path: self.path.display().to_string(),
                problem: "a block's chunk is not in the index; the folder is damaged".to_owned(),
            })?;
            chunks[at].references -= 1;
            let last = chunks[at].references == 0;
            if last {
                chunks.remove(at);
            }
            self.index
                .set_chunks(old.fingerprint, chunks, -i64::from(last));
            if !last {
                return Ok(());
            }
        }
        self.stored_bytes -= u64::from(old.extent.bytes);
        self.extents.free(old.extent);
        Ok(())
    }

    fn commit_if_many(&mut self) -> Result<(), Error> {
        if self.index.changes() < self.options.commit_every {
            return Ok(());
        }
        if self.options.sync_commits {
            return self.commit();
        }
        self.index.commit(false)
    }

    /// Commits the chunks first, and then the tables that name them, both to the drive.
    fn commit(&mut self) -> Result<(), Error> {
        self.file.sync_data().map_err(|e| failed(&self.path, e))?;
        self.index.commit(true)?;
        self.extents.committed();
        Ok(())
    }

    fn write_at(&mut self, extent: FileExtent, bytes: &[u8]) -> Result<(), Error> {
        let done = self.file.write_all_at(bytes, extent.at);
        if let Err(error) = done {
            // No table names the chunk that was written, so its place is free again.
            self.extents.give_back(extent);
            return Err(failed(&self.path, error));
        }
        self.activity.bytes_written += bytes.len() as u64;
        self.stored_bytes += bytes.len() as u64;
        Ok(())
    }

    fn read_at(&mut self, extent: FileExtent, into: &mut [u8]) -> Result<(), Error> {
        self.activity.bytes_read += into.len() as u64;
        let done = self.file.read_exact_at(into, extent.at);
        done.map_err(|e| failed(&self.path, e))
    }

    /// Notes a request; returns what was done before it.
    fn begin(&mut self) -> Activity {
        let before = self.activity;
        self.activity.requests += 1;
        before
    }

    fn end(&self, before: &Activity, duplicate: bool, found: bool) -> Outcome {
        let cost = self.cost_of(&self.activity.since(before));
        Outcome {
            duplicate,
            found,
            cost,
        }
    }

    fn check_size(&self, given: usize) -> Result<(), Error> {
        let wanted = self.options.block_bytes as usize;
        if given != wanted {
            return Err(Error::BlockSize { given, wanted });
        }
        Ok(())
    }
}

impl Activity {
    fn since(&self, before: &Activity) -> Activity {
        Activity {
            requests: self.requests - before.requests,
            bytes_hashed: self.bytes_hashed - before.bytes_hashed,
            bytes_compared: self.bytes_compared - before.bytes_compared,
            bytes_written: self.bytes_written - before.bytes_written,
            bytes_read: self.bytes_read - before.bytes_read,
            bloom_answers: self.bloom_answers - before.bloom_answers,
            cache_answers: self.cache_answers - before.cache_answers,
            engine_lookups: self.engine_lookups - before.engine_lookups,
            collisions: self.collisions - before.collisions,
        }
    }
}

fn first_bits(fingerprint: &ChunkPrint) -> u64 {
    // SHA-1 is uniform already; a narrow one has only its first bits.
    u64::from_be_bytes(fingerprint[..8].try_into().expect("8 of 20"))
}

fn failed(path: &Path, source: io::Error) -> Error {
    Error::Io {
        path: path.display().to_string(),
        source,
    }
}

impl Store for Conventional {
    fn block_bytes(&self) -> usize {
        self.options.block_bytes as usize
    }

    fn write(&mut self, lba: Lba, block: &[u8]) -> Result<Outcome, Error> {
        self.check_size(block.len())?;
        self.put(lba, block)
    }

    fn read(&mut self, lba: Lba, into: &mut [u8]) -> Result<Outcome, Error> {
        self.check_size(into.len())?;
        let before = self.begin();
        let mapping = self.index.mapping(lba)?;
        match mapping {
            Some(mapping) => self.read_at(mapping.extent, into)?,
            None => into.fill(0),
        }
        self.counts.reads += 1;
        Ok(self.end(&before, false, mapping.is_some()))
    }

    fn delete(&mut self, lba: Lba) -> Result<Outcome, Error> {
        let before = self.begin();
        let old = self.index.mapping(lba)?;
        if let Some(old) = old {
            self.index.map(lba, None, true);
            self.release(old)?;
            self.counts.deletes += 1;
            self.commit_if_many()?;
        }
        Ok(self.end(&before, false, old.is_some()))
    }

    fn flush(&mut self) -> Result<(), Error> {
        self.commit()
    }

    fn totals(&self) -> Totals {
        Totals {
            writes: self.counts.writes,
            duplicate_writes: self.counts.duplicates,
            reads: self.counts.reads,
            deletes: self.counts.deletes,
            live_blocks: self.index.live(),
            stored_blocks: self.stored(),
            cost: self.cost_of(&self.activity),
            energy_by: self.energy_by(Bracket::middle).to_vec(),
        }
    }
}
