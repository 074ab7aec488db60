//! The chunk index and the address translation table: changes that are not committed yet, a cache of the index, and the
//! rest in fjall, an embedded log-structured engine.
//!
//! A log-structured tree suits keys that are hashes, which is why it is fjall. Of two million operations with 30 %
//! duplicates, in batches of 16,384, fjall 3.1 did 151,000 a second (218 MB on disk, 269 MB of memory), redb 4.5 45,000
//! (256, 72 MB).

use std::num::NonZeroUsize;
use std::path::Path;

use fjall::{Database, Keyspace, KeyspaceCreateOptions, PersistMode};
use lru::LruCache;
use rustc_hash::{FxBuildHasher, FxHashMap};
use smallvec::SmallVec;

use super::extents::FileExtent;
use super::{Activity, ChunkPrint, ConventionalOptions};
use crate::fingerprint::SHA1_BYTES;
use crate::store::{Error, Lba};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Chunk {
    pub extent: FileExtent,
    pub references: u32,
}

/// The chunks with one fingerprint: one, unless fingerprints collide.
pub type Chunks = SmallVec<[Chunk; 1]>;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChunkMapping {
    pub extent: FileExtent,
    pub fingerprint: ChunkPrint,
}

const FORMAT: &str = "format";
const EXTENT: usize = 12;
const CHUNK: usize = EXTENT + 4;

fn put_extent(extent: FileExtent, into: &mut Vec<u8>) {
    into.extend(extent.at.to_le_bytes());
    into.extend(extent.bytes.to_le_bytes());
}

fn extent_of(bytes: &[u8]) -> FileExtent {
    FileExtent {
        at: u64::from_le_bytes(bytes[..8].try_into().expect("8 bytes")),
        bytes: u32::from_le_bytes(bytes[8..EXTENT].try_into().expect("4 bytes")),
    }
}

fn chunks_of(bytes: &[u8]) -> Chunks {
    let chunk = |bytes: &[u8; CHUNK]| Chunk {
        extent: extent_of(bytes),
        references: u32::from_le_bytes(bytes[EXTENT..].try_into().expect("4 bytes")),
    };
    bytes.as_chunks::<CHUNK>().0.iter().map(chunk).collect()
}

fn mapping_of(bytes: &[u8]) -> ChunkMapping {
    ChunkMapping {
        extent: extent_of(bytes),
        fingerprint: bytes[EXTENT..EXTENT + SHA1_BYTES]
            .try_into()
            .expect("20 bytes"),
    }
}

pub struct Index {
    path: String,
    database: Database,
    chunks: Keyspace,
    mappings: Keyspace,
    changed_chunks: FxHashMap<ChunkPrint, Chunks>,
    changed_mappings: FxHashMap<Lba, Option<ChunkMapping>>,
    cache: LruCache<ChunkPrint, Chunks, FxBuildHasher>,
    stored: u64,
    live: u64,
}

impl Index {
    pub fn open(path: &Path, options: &ConventionalOptions) -> Result<Index, Error> {
        let named = path.display().to_string();
        let failed = |error| engine(&named, &error);
        let builder = Database::builder(path).cache_size(options.engine_cache_bytes);
        let database = builder.open().map_err(failed)?;
        let keyspace = |name| {
            database
                .keyspace(name, KeyspaceCreateOptions::default)
                .map_err(failed)
        };
        let (chunks, mappings) = (keyspace("chunks")?, keyspace("mappings")?);
        let (format, made) = (options.format(), keyspace("store")?);
        match made.get(FORMAT).map_err(failed)? {
            None => made.insert(FORMAT, &format).map_err(failed)?,
            Some(other) if *other == *format.as_bytes() => {}
            Some(other) => {
                return Err(Error::Index {
                    path: named,
                    problem: format!(
                        "the store was made with {}, not with {format}; give what it was made \
                         with, or another folder",
                        String::from_utf8_lossy(&other)
                    ),
                });
            }
        }
        let entries = NonZeroUsize::new(options.cache_entries).unwrap_or(NonZeroUsize::MIN);
        let mut index = Index {
            path: named,
            database,
            chunks,
            mappings,
            changed_chunks: FxHashMap::default(),
            changed_mappings: FxHashMap::default(),
            cache: LruCache::with_hasher(entries, FxBuildHasher),
            stored: 0,
            live: 0,
        };
        let (mut stored, mut live) = (0, 0);
        index.each_chunk(|_, _| stored += 1)?;
        index.each_mapping(|_| live += 1)?;
        (index.stored, index.live) = (stored, live);
        Ok(index)
    }

    pub fn each_chunk(&self, mut each: impl FnMut(ChunkPrint, Chunk)) -> Result<(), Error> {
        for entry in self.chunks.iter() {
            let (key, value) = entry.into_inner().map_err(|e| engine(&self.path, &e))?;
            let fingerprint = (*key).try_into().map_err(|_| self.damaged())?;
            for chunk in chunks_of(&value) {
                each(fingerprint, chunk);
            }
        }
        Ok(())
    }

    pub fn each_mapping(&self, mut each: impl FnMut(ChunkMapping)) -> Result<(), Error> {
        for entry in self.mappings.iter() {
            let (_, value) = entry.into_inner().map_err(|e| engine(&self.path, &e))?;
            each(mapping_of(&value));
        }
        Ok(())
    }

    fn damaged(&self) -> Error {
        Error::Index {
            path: self.path.clone(),
            problem: "is not an index of a store".to_owned(),
        }
    }

    pub fn chunks(&mut self, key: &ChunkPrint, done: &mut Activity) -> Result<Chunks, Error> {
        if let Some(chunks) = self.changed_chunks.get(key).or_else(|| self.cache.get(key)) {
            done.cache_answers += 1;
            return Ok(chunks.clone());
        }
        done.engine_lookups += 1;
        let found = self.chunks.get(key).map_err(|e| engine(&self.path, &e))?;
        let Some(bytes) = found else {
            return Ok(Chunks::new());
        };
        let chunks = chunks_of(&bytes);
        self.cache.put(*key, chunks.clone());
        Ok(chunks)
    }

    /// Sets the chunks of a fingerprint, which are `more` than before.
    pub fn set_chunks(&mut self, key: ChunkPrint, chunks: Chunks, more: i64) {
        self.stored = self.stored.wrapping_add_signed(more);
        self.changed_chunks.insert(key, chunks);
    }

    pub fn mapping(&self, lba: Lba) -> Result<Option<ChunkMapping>, Error> {
        if let Some(changed) = self.changed_mappings.get(&lba) {
            return Ok(*changed);
        }
        let found = self.mappings.get(lba.to_be_bytes());
        let found = found.map_err(|e| engine(&self.path, &e))?;
        Ok(found.map(|bytes| mapping_of(&bytes)))
    }

    /// Sets the mapping of a logical block; `replaces` says that it had one.
    pub fn map(&mut self, lba: Lba, mapping: Option<ChunkMapping>, replaces: bool) {
        self.live = self.live + u64::from(mapping.is_some()) - u64::from(replaces);
        self.changed_mappings.insert(lba, mapping);
    }

    pub fn changes(&self) -> usize {
        self.changed_chunks.len() + self.changed_mappings.len()
    }

    /// Commits all changes at once: to the drive with `sync`, else to the system's page cache.
    pub fn commit(&mut self, sync: bool) -> Result<(), Error> {
        let mut batch = self.database.batch();
        for (key, chunks) in &self.changed_chunks {
            if chunks.is_empty() {
                batch.remove(&self.chunks, key.as_slice());
                continue;
            }
            let mut value = Vec::with_capacity(CHUNK * chunks.len());
            for chunk in chunks {
                put_extent(chunk.extent, &mut value);
                value.extend(chunk.references.to_le_bytes());
            }
            batch.insert(&self.chunks, key.as_slice(), value);
        }
        for (lba, mapping) in &self.changed_mappings {
            match mapping {
                None => batch.remove(&self.mappings, lba.to_be_bytes()),
                Some(mapping) => {
                    let mut value = Vec::with_capacity(EXTENT + SHA1_BYTES);
                    put_extent(mapping.extent, &mut value);
                    value.extend(mapping.fingerprint);
                    batch.insert(&self.mappings, lba.to_be_bytes(), value);
                }
            }
        }
        let mode = if sync {
            PersistMode::SyncData
        } else {
            PersistMode::Buffer
        };
        let written = batch.durability(Some(mode)).commit();
        written.map_err(|e| engine(&self.path, &e))?;
        for (key, chunks) in self.changed_chunks.drain() {
            if chunks.is_empty() {
                self.cache.pop(&key);
            } else {
                self.cache.put(key, chunks);
            }
        }
        self.changed_mappings.clear();
        Ok(())
    }

    pub fn stored(&self) -> u64 {
        self.stored
    }

    pub fn live(&self) -> u64 {
        self.live
    }
}

fn engine(path: &str, error: &fjall::Error) -> Error {
    let problem = match error {
        fjall::Error::Locked => "another process has this store open; end it first".to_owned(),
        fjall::Error::Io(error) => error.to_string(),
        other => other.to_string(),
    };
    Error::Index {
        path: path.to_owned(),
        problem,
    }
}
