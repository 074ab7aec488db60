//! Requests of any offset and length on a [`Volume`], each counted by the design.

use std::path::Path;
use std::time::Duration;

use sardonyx_store::{Store, Totals};
use serde::Serialize;

use crate::design::{self, Writing};
use crate::latency::{Latencies, Quantiles, RequestKind};
use crate::{BlockRun, Result, Shape, SpareRoom, Volume, Wanted};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Requests {
    pub reads: u64,
    pub read_bytes: u64,
    pub writes: u64,
    pub written_bytes: u64,
    pub zeroes: u64,
    pub trims: u64,
    /// Flushes, and requests that had to be on the disk when they were answered.
    pub flushes: u64,
}

#[derive(Clone, Debug, Serialize)]
pub struct DeviceCounters {
    #[serde(flatten)]
    pub shape: Shape,
    pub requests: Requests,
    /// Times of requests to read within the device. The client's own time, the protocol's and the wait for an earlier
    /// request are left out.
    pub read_time: Quantiles,
    /// Times of requests to write, with the flush of those that had to be on the disk at once.
    pub write_time: Quantiles,
    pub discard_time: Quantiles,
    pub flush_time: Quantiles,
    /// The number of blocks that the design has been told; it counts once it knows all.
    pub told_blocks: u32,
    pub totals: Totals,
}

pub struct Device {
    volume: Volume,
    design: Box<dyn Store + Send>,
    writing: Writing,
    /// The design knows the blocks before this one.
    told: u32,
    /// The design's totals at the moment when it knew all blocks on the disk.
    before: Totals,
    requests: Requests,
    latencies: Latencies,
    scratch: Vec<u8>,
    digest_of_zeros: [u8; 32],
}

impl Device {
    /// Opens the device in this folder, or makes one. `tell` is told the blocks that the design knows and all blocks.
    ///
    /// # Errors
    /// If the folder is in use or is not what is wanted, or a file refuses.
    pub fn open(path: &Path, wanted: Wanted, tell: &mut dyn FnMut(u32, u32)) -> Result<Device> {
        let mut device = Device::new(Volume::open(path, wanted)?)?;
        while !device.tell_design(1 << 12)? {
            tell(device.told, device.volume.shape().blocks());
        }
        Ok(device)
    }

    /// The device of this volume. Its design does not know the blocks yet: call [`Device::tell_design`], at once or
    /// between requests.
    pub fn new(volume: Volume) -> Result<Device> {
        let writing = Writing::default();
        let design = design::store(volume.shape().design, &volume, writing.clone())?;
        Ok(Device {
            scratch: vec![0; volume.shape().block_bytes as usize],
            digest_of_zeros: *blake3::hash(&vec![0; volume.shape().block_bytes as usize])
                .as_bytes(),
            volume,
            design,
            writing,
            told: 0,
            before: Totals::default(),
            requests: Requests::default(),
            latencies: Latencies::default(),
        })
    }

    pub fn live_blocks(&self) -> u64 {
        self.volume.live_blocks()
    }

    /// Tells the design of this many further blocks. Returns whether it knows all blocks, and counts from now on.
    pub fn tell_design(&mut self, blocks: u32) -> Result<bool> {
        let all = self.volume.shape().blocks();
        if self.told == all {
            return Ok(true);
        }
        let end = self.told.saturating_add(blocks).min(all);
        for block in self.told..end {
            if let Some(slot) = self.volume.slot(block)
                && self.volume.read(block, &mut self.scratch).is_ok()
            {
                self.writing.is_in(slot, &self.scratch);
                self.design.write(u64::from(block), &self.scratch)?;
            } // whoever reads one that is damaged hears of it
        }
        self.told = end;
        self.before = self.design.totals();
        Ok(self.told == all)
    }

    /// The BLAKE3 of a block; of zeros if nobody has written it.
    pub fn digest(&self, block: u32) -> [u8; 32] {
        let digest = self.volume.digest(block);
        digest.unwrap_or(self.digest_of_zeros)
    }

    pub fn shape(&self) -> &Shape {
        self.volume.shape()
    }

    pub fn counters(&self) -> DeviceCounters {
        DeviceCounters {
            shape: self.volume.shape().clone(),
            requests: self.requests,
            read_time: self.latencies.of(RequestKind::Read),
            write_time: self.latencies.of(RequestKind::Write),
            discard_time: self.latencies.of(RequestKind::Trim),
            flush_time: self.latencies.of(RequestKind::Flush),
            told_blocks: self.told,
            totals: self.totals(),
        }
    }

    /// Counts a request that was served, or failed, with its time within the device.
    pub fn ended(&mut self, kind: RequestKind, bytes: u64, time: Duration) {
        let requests = &mut self.requests;
        match kind {
            RequestKind::Read => {
                requests.reads += 1;
                requests.read_bytes += bytes;
            }
            RequestKind::Write => {
                requests.writes += 1;
                requests.written_bytes += bytes;
            }
            RequestKind::Zero => requests.zeroes += 1,
            RequestKind::Trim => requests.trims += 1,
            RequestKind::Flush => {} // as each request that had to be on the disk, by `flush`
        }
        self.latencies.ended(kind, time);
    }

    fn totals(&self) -> Totals {
        let now = self.design.totals();
        // A design that does not know all blocks yet has counted nothing.
        if self.told < self.volume.shape().blocks() {
            return since(now.clone(), &now);
        }
        since(now, &self.before)
    }

    pub fn read(&mut self, offset: u64, into: &mut [u8]) -> Result<()> {
        let mut rest = into;
        for part in parts(self.block_bytes(), offset, rest.len() as u64) {
            let (now, later) = rest.split_at_mut(part.length);
            if part.is_whole {
                self.read_block(part.block, now)?;
            } else {
                let mut block = std::mem::take(&mut self.scratch);
                let read = self.read_block(part.block, &mut block);
                now.copy_from_slice(&block[part.from..part.from + part.length]);
                self.scratch = block;
                read?;
            }
            rest = later;
        }
        Ok(())
    }

    /// Writes bytes; a block that is written in part is read, changed and written.
    ///
    /// # Errors
    /// If the disk refuses, for example because it is full. Blocks before the refused one are written.
    pub fn write(&mut self, offset: u64, bytes: &[u8]) -> Result<()> {
        let mut rest = bytes;
        for part in parts(self.block_bytes(), offset, bytes.len() as u64) {
            let (now, later) = rest.split_at(part.length);
            self.change(part, |block| block.copy_from_slice(now), Some(now))?;
            rest = later;
        }
        Ok(())
    }

    /// Writes zeros; with `may_trim`, whole blocks lose their contents instead.
    pub fn zero(&mut self, offset: u64, length: u64, may_trim: bool) -> Result<()> {
        for part in parts(self.block_bytes(), offset, length) {
            if part.is_whole && may_trim {
                self.delete_block(part.block)?;
            } else {
                self.change(part, |block| block.fill(0), None)?;
            }
        }
        Ok(())
    }

    /// Takes the contents of whole blocks within this range, which then read as zeros.
    pub fn trim(&mut self, offset: u64, length: u64) -> Result<()> {
        for part in parts(self.block_bytes(), offset, length) {
            if part.is_whole {
                self.delete_block(part.block)?;
            }
        }
        Ok(())
    }

    /// Makes everything so far survive the end of the process and of the power.
    ///
    /// # Errors
    /// If the disk refuses; what was flushed before is safe.
    pub fn flush(&mut self) -> Result<()> {
        self.requests.flushes += 1;
        self.volume.commit()?;
        Ok(self.design.flush()?)
    }

    pub fn spare_room(&mut self, runs: usize) -> Option<SpareRoom> {
        self.volume.spare_room(runs)
    }

    pub fn given_back(&mut self, room: SpareRoom, done: bool) {
        self.volume.given_back(room, done);
    }

    /// Flushes, and notes that the device was closed cleanly.
    pub fn end(&mut self) -> Result<()> {
        self.flush()?;
        self.volume.end()
    }

    /// The runs of blocks over these bytes, each with contents or without.
    pub fn extents(&self, offset: u64, length: u64) -> impl Iterator<Item = BlockRun> + '_ {
        let block_bytes = self.block_bytes() as u64;
        let mut next = (offset / block_bytes) as u32;
        let end = (offset + length).div_ceil(block_bytes) as u32;
        std::iter::from_fn(move || {
            let extent = (next < end).then(|| self.volume.extent(next, end))?;
            next += extent.blocks;
            Some(extent)
        })
    }

    fn block_bytes(&self) -> usize {
        self.volume.shape().block_bytes as usize
    }

    fn read_block(&mut self, block: u32, into: &mut [u8]) -> Result<()> {
        self.volume.read(block, into)?;
        if block < self.told {
            self.design.count_read(u64::from(block))?;
        }
        Ok(())
    }

    fn delete_block(&mut self, block: u32) -> Result<()> {
        self.volume.delete(block)?;
        if block < self.told {
            self.design.delete(u64::from(block))?;
        }
        Ok(())
    }

    fn write_block(&mut self, block: u32, bytes: &[u8]) -> Result<()> {
        self.volume.write(block, bytes)?;
        if block < self.told {
            let slot = self.volume.slot(block).expect("just written");
            self.writing.is_in(slot, bytes);
            self.design.write(u64::from(block), bytes)?;
        }
        Ok(())
    }

    /// Changes a part of a block; `whole` has the block's new bytes if the part is all of it.
    fn change(
        &mut self,
        part: BlockPart,
        change: impl FnOnce(&mut [u8]),
        whole: Option<&[u8]>,
    ) -> Result<()> {
        if let (true, Some(bytes)) = (part.is_whole, whole) {
            return self.write_block(part.block, bytes);
        }
        let mut block = std::mem::take(&mut self.scratch);
        let read = match part.is_whole {
            true => Ok(()),
            false => self.read_block(part.block, &mut block),
        };
        let done = read.and_then(|()| {
            change(&mut block[part.from..part.from + part.length]);
            self.write_block(part.block, &block)
        });
        self.scratch = block;
        done
    }
}

#[derive(Clone, Copy, Debug)]
struct BlockPart {
    block: u32,
    from: usize,
    length: usize,
    is_whole: bool,
}

fn parts(block_bytes: usize, offset: u64, length: u64) -> impl Iterator<Item = BlockPart> {
    let size = block_bytes as u64;
    let (mut at, end) = (offset, offset + length);
    std::iter::from_fn(move || {
        let from = at % size;
        let length = (size - from).min(end - at);
        let block = (at / size) as u32;
        at += length;
        (length > 0).then_some(BlockPart {
            block,
            from: from as usize,
            length: length as usize,
            is_whole: length == size,
        })
    })
}

/// The totals minus those before; live and stored blocks stay as they are.
fn since(mut now: Totals, before: &Totals) -> Totals {
    now.writes -= before.writes;
    now.duplicate_writes -= before.duplicate_writes;
    now.reads -= before.reads;
    now.deletes -= before.deletes;
    now.cost.cycles -= before.cost.cycles;
    now.cost.time_ns -= before.cost.time_ns;
    now.cost.energy_nj -= before.cost.energy_nj;
    for ((_, energy), (_, before)) in now.energy_by.iter_mut().zip(&before.energy_by) {
        *energy -= before;
    }
    now
}
