//! The distinct contents of pages: pages with equal bytes have the same number, found by hash and confirmed byte by
//! byte. For live processes a copy of each content is kept while the copies take no more memory than they may; then all
//! copies are dropped, and a content is known by a digest of 128 bits and its first eight bytes.

use std::collections::TryReserveError;

use hashbrown::HashTable;
use twox_hash::XxHash3_128;

use super::{Data, ImageError, PageExtent, checksum};
use crate::{Checksum, PAGE_BYTES, PageBytes};

/// The content of a page that does not exist.
pub(super) const NONE: u32 = u32::MAX;
/// The place of bytes that have been dropped.
const NOWHERE: u32 = u32::MAX;
/// Bytes of live processes are kept in pieces of this many pages: 16 MiB.
const PIECE: usize = 4096;

pub(super) fn memory_ended(_: TryReserveError) -> ImageError {
    ImageError(
        "memory ended: the system gives this program no more; give fewer machines, fewer --snapshots, or a \
         smaller --memory"
            .to_owned(),
    )
}

#[derive(Clone, Copy, Debug)]
struct PooledContent {
    hash: u32,
    /// The number of the page among those of all stretches.
    place: u32,
    /// The first eight bytes, so that the page itself need not be touched to compare most first lines.
    head: u64,
}

#[derive(Clone, Copy, Debug)]
struct Stretch {
    first: u32,
    data: u32,
    offset: u64,
}

#[derive(Clone, Copy, Debug)]
pub struct Keep {
    /// The most memory for the copies, in bytes.
    pub bytes: u64,
    pub needed: bool,
}

pub(super) enum SnapshotData {
    /// Bytes, by their number among the pool's data.
    Bytes(u32),
    /// Numbers of contents that the pool has given already.
    Contents(Vec<u32>),
}

#[derive(Debug, Default)]
pub struct ContentPool {
    data: Vec<Data>,
    stretches: Vec<Stretch>,
    contents: Vec<PooledContent>,
    /// The digest of each content, if there are live processes; that of zeros is 0.
    digests: Vec<u128>,
    known: HashTable<u32>,
    places: u32,
    keep: Option<Keep>,
    let_go: bool,
    zero: bool,
}

fn spread(hash: u32) -> u64 {
    u64::from(hash).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

fn digest(bytes: &PageBytes) -> u128 {
    if *bytes == [0; PAGE_BYTES] {
        return 0;
    }
    XxHash3_128::oneshot(bytes).max(1)
}

fn bytes_at<'d>(data: &'d [Data], stretches: &[Stretch], place: u32) -> &'d PageBytes {
    let after = stretches.partition_point(|stretch| stretch.first <= place);
    let stretch = &stretches[after - 1];
    let offset = stretch.offset + u64::from(place - stretch.first) * PAGE_BYTES as u64;
    data[stretch.data as usize].page(offset)
}

struct Candidate<'b> {
    bytes: &'b PageBytes,
    hash: u32,
    digest: u128,
}

impl ContentPool {
    pub fn new(keep: Option<Keep>) -> ContentPool {
        ContentPool {
            keep,
            ..ContentPool::default()
        }
    }

    pub(super) fn hold(&mut self, data: Data) -> SnapshotData {
        match data {
            Data::Contents(contents) => SnapshotData::Contents(contents),
            data => {
                self.data.push(data);
                SnapshotData::Bytes(self.data.len() as u32 - 1)
            }
        }
    }

    /// Gives the numbers of an extent's contents. False if `tell` ended it.
    pub(super) fn intern_all(
        &mut self,
        held: &SnapshotData,
        extent: &PageExtent,
        into: &mut [u32],
        tell: &mut impl FnMut(u32) -> bool,
    ) -> Result<bool, ImageError> {
        let data = match held {
            SnapshotData::Bytes(data) => *data,
            SnapshotData::Contents(contents) => {
                let first = extent.offset as usize / PAGE_BYTES;
                into.copy_from_slice(&contents[first..first + into.len()]);
                return Ok(true);
            }
        };
        let first = self.places;
        self.stretches.push(Stretch {
            first,
            data,
            offset: extent.offset,
        });
        self.places += extent.pages;
        for (index, content) in into.iter_mut().enumerate() {
            let offset = extent.offset + (index * PAGE_BYTES) as u64;
            *content = self.intern_held(first + index as u32, data, offset)?;
            if index % 4096 == 0 && !tell(index as u32) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn candidate<'b>(&self, bytes: &'b PageBytes) -> Candidate<'b> {
        Candidate {
            bytes,
            hash: checksum(bytes, Checksum::XxHash64),
            digest: self.keep.map_or(0, |_| digest(bytes)),
        }
    }

    fn find(&self, page: &Candidate<'_>) -> Option<u32> {
        let same = |number: &u32| {
            let content = &self.contents[*number as usize];
            let digest = self.digests.get(*number as usize);
            content.hash == page.hash
                && digest.is_none_or(|digest| *digest == page.digest)
                && (content.place == NOWHERE
                    || bytes_at(&self.data, &self.stretches, content.place) == page.bytes)
        };
        self.known.find(spread(page.hash), same).copied()
    }

    fn intern_held(&mut self, place: u32, data: u32, offset: u64) -> Result<u32, ImageError> {
        let page = self.candidate(self.data[data as usize].page(offset));
        if let Some(known) = self.find(&page) {
            return Ok(known);
        }
        let head = head(page.bytes);
        let Candidate { hash, digest, .. } = page;
        self.add(PooledContent { hash, place, head }, digest)
    }

    /// The number of the content of a live process's page.
    ///
    /// # Errors
    /// If memory ends, or the copies that somebody needs take more than they may.
    pub fn intern(&mut self, bytes: &PageBytes) -> Result<u32, ImageError> {
        let page = self.candidate(bytes);
        if let Some(known) = self.find(&page) {
            return Ok(known);
        }
        let place = self.copy(bytes)?;
        let content = PooledContent {
            hash: page.hash,
            place,
            head: head(bytes),
        };
        self.add(content, page.digest)
    }

    fn add(&mut self, content: PooledContent, digest: u128) -> Result<u32, ImageError> {
        let number = self.contents.len() as u32;
        self.contents.try_reserve(1).map_err(memory_ended)?;
        let rehash = |content: &u32| spread(self.contents[*content as usize].hash);
        let room = self.known.try_reserve(1, rehash);
        room.map_err(|_| ImageError("memory ended: give fewer machines".to_owned()))?;
        self.known
            .insert_unique(spread(content.hash), number, rehash);
        if self.keep.is_some() {
            self.digests.try_reserve(1).map_err(memory_ended)?;
            self.digests.push(digest);
        }
        self.contents.push(content);
        Ok(number)
    }

    /// Keeps a copy of a page, and returns its place: [`NOWHERE`] once the copies take more than they may.
    fn copy(&mut self, bytes: &PageBytes) -> Result<u32, ImageError> {
        let keep = self.keep.expect("there are live processes");
        if self.let_go {
            return Ok(NOWHERE);
        }
        if (u64::from(self.places) + 1) * PAGE_BYTES as u64 > keep.bytes {
            if keep.needed {
                return Err(ImageError(format!(
                    "--memory: the different pages of the processes take more than {} MiB, and pageforge and \
                     jhash2-1k look into them; give more memory, or --designs ksm with another checksum",
                    keep.bytes >> 20
                )));
            }
            self.let_go = true;
            (self.data, self.stretches) = (Vec::new(), Vec::new());
            self.contents
                .iter_mut()
                .for_each(|content| content.place = NOWHERE);
            return Ok(NOWHERE);
        }
        let full = (self.places as usize).is_multiple_of(PIECE);
        if full {
            let mut piece = Vec::new();
            piece
                .try_reserve_exact(PIECE * PAGE_BYTES)
                .map_err(memory_ended)?;
            self.stretches.push(Stretch {
                first: self.places,
                data: self.data.len() as u32,
                offset: 0,
            });
            self.data.push(Data::Memory(piece));
        }
        if let Some(Data::Memory(piece)) = self.data.last_mut() {
            piece.extend_from_slice(bytes);
        }
        self.places += 1;
        Ok(self.places - 1)
    }

    /// Numbers the contents in the order of their bytes, and returns each one's new number. If bytes were dropped,
    /// contents with the same first eight bytes are in the order of their digests.
    pub(super) fn sort(&mut self) -> Result<Vec<u32>, ImageError> {
        self.known = HashTable::new();
        let count = self.contents.len();
        let mut order: Vec<u32> = Vec::new();
        order.try_reserve_exact(count).map_err(memory_ended)?;
        order.extend(0..count as u32);
        let of = |number: u32| &self.contents[number as usize];
        if self.has_bytes() {
            let bytes = |number| bytes_at(&self.data, &self.stretches, of(number).place);
            order.sort_unstable_by(|a, b| {
                let heads = of(*a).head.cmp(&of(*b).head);
                heads.then_with(|| bytes(*a).cmp(bytes(*b)))
            });
            self.zero = order
                .first()
                .is_some_and(|first| *bytes(*first) == [0; PAGE_BYTES]);
        } else {
            let digest = |number: u32| self.digests[number as usize];
            order.sort_unstable_by_key(|number| (of(*number).head, digest(*number)));
            self.zero = order.first().is_some_and(|first| digest(*first) == 0);
        }
        let mut rank = Vec::new();
        rank.try_reserve_exact(count).map_err(memory_ended)?;
        rank.resize(count, 0);
        for (at, content) in order.iter().enumerate() {
            rank[*content as usize] = at as u32;
        }
        drop(order);
        self.move_to(&rank)?;
        Ok(rank)
    }

    fn move_to(&mut self, rank: &[u32]) -> Result<(), ImageError> {
        let mut moved = Vec::new();
        moved.try_reserve_exact(rank.len()).map_err(memory_ended)?;
        moved.extend_from_slice(&self.contents);
        for (content, to) in self.contents.iter().zip(rank) {
            moved[*to as usize] = *content;
        }
        self.contents = moved;
        let mut moved: Vec<u128> = Vec::new();
        moved
            .try_reserve_exact(self.digests.len())
            .map_err(memory_ended)?;
        moved.extend_from_slice(&self.digests);
        for (digest, to) in self.digests.iter().zip(rank) {
            moved[*to as usize] = *digest;
        }
        self.digests = moved;
        Ok(())
    }

    pub fn len(&self) -> usize {
        self.contents.len()
    }

    pub fn is_empty(&self) -> bool {
        self.contents.is_empty()
    }

    pub(super) fn has_bytes(&self) -> bool {
        !self.let_go
    }

    /// Whether the first content is all zeros; valid after [`ContentPool::sort`].
    pub(super) fn zero(&self) -> bool {
        self.zero
    }

    pub(super) fn bytes(&self, content: u32) -> &PageBytes {
        let place = self.contents[content as usize].place;
        bytes_at(&self.data, &self.stretches, place)
    }

    pub(super) fn head(&self, content: u32) -> u64 {
        self.contents[content as usize].head
    }

    /// The checksum of a content. If its bytes were dropped it is any hash that tells contents apart, except for zeros:
    /// checksums are only compared with each other and with that of zeros.
    pub(super) fn checksum(&self, content: u32, kind: Checksum) -> u32 {
        let known = &self.contents[content as usize];
        match kind {
            Checksum::XxHash64 => known.hash,
            _ if known.place != NOWHERE => checksum(self.bytes(content), kind),
            _ => match self.digests[content as usize] {
                0 => checksum(&[0; PAGE_BYTES], kind),
                digest => digest as u32,
            },
        }
    }
}

fn head(bytes: &PageBytes) -> u64 {
    let head = bytes.first_chunk().expect("a page has eight bytes");
    u64::from_be_bytes(*head)
}
