//! The array's bytes and its wear: what a power cut would leave. Lines lie in 4 KiB frames, each with
//! its lines' wear behind it, in large-page segments behind a direct page table. A segment may come from an image that
//! is gone, so a frame's wear is cleared when it is taken and a line when it is first written. Hashed tables are
//! stored line by line. Memory is bounded by the touched footprint, never by the capacity.

use std::collections::BTreeSet;

use rustc_hash::FxHashMap;
use sardonyx_base::prefetch;

use super::layout::Region;
use super::segments::{SEGMENT_BYTES, Segments};
use crate::line::{LINE_BYTES, Line, Place, ZERO_LINE};

const FRAME_LINES: u64 = 64;
/// Bytes of a line's wear, a `u32` that counts its writes.
const WEAR_BYTES: usize = 4;
/// The offset of the lines' wear in a frame. It follows the lines, so that one large page holds both.
const WEAR_START: usize = FRAME_LINES as usize * LINE_BYTES;
const FRAME_BYTES: usize = WEAR_START + FRAME_LINES as usize * WEAR_BYTES;
const SEGMENT_FRAMES: usize = SEGMENT_BYTES / FRAME_BYTES;

fn wear_mut(frames: &mut [u8], offset: usize) -> &mut [u8; WEAR_BYTES] {
    let wear = &mut frames[offset..offset + WEAR_BYTES];
    wear.try_into().expect("a line's wear")
}

/// Lines that were written about equally often.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Worn {
    /// The least number of writes of these lines; all have less than twice as many.
    pub least: u32,
    /// The number of these lines.
    pub lines: u64,
    /// The number of their writes.
    pub writes: u64,
}

/// A part of the medium.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ImagePart {
    /// The part's first line.
    pub first: Place,
    /// Lines of the part that were written.
    pub lines: u64,
    /// Writes of these lines.
    pub writes: u64,
    /// Writes of the line written most.
    pub most: u32,
}

/// The wear of the medium.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Wear {
    /// Array writes in all.
    pub writes: u64,
    /// Bytes that those writes carried: whole 8-byte words and sidebands.
    pub bytes: u64,
    /// Bits that changed.
    pub bits_flipped: u64,
    /// Writes of the line written most.
    pub max_line_writes: u32,
}

/// A line, and the 8 bytes stored beside it, if any.
pub type Content = (Line, Option<[u8; 8]>);

/// The number of lines that a table of pages covers: 1 TiB, with a table of 4 GiB at most. The last lines of a larger
/// medium are kept one by one.
const DENSE: u64 = 1 << 34;

const WORN: u64 = 1 << 63;

#[inline]
fn frame_of(entry: u64) -> Option<usize> {
    (entry & !WORN).checked_sub(1).map(|frame| frame as usize)
}

/// The bytes in the array.
pub struct Image {
    /// Lines from this one on are kept one by one.
    sparse_from: u64,
    /// For each page the set of lines that have been written, and its frame plus one, with [`WORN`] if the frame has
    /// any wear.
    pages: Vec<[u64; 2]>,
    frames: Vec<usize>,
    worn: Vec<usize>,
    segments: Segments,
    sparse: FxHashMap<u64, u32>,
    sparse_order: BTreeSet<u64>,
    sparse_lines: Vec<(Line, u32)>,
    sparse_free: Vec<u32>,
    sidebands: FxHashMap<u64, [u8; 8]>,
    wear: Wear,
    /// Whether writes wear nothing out, because their effects will be forgotten.
    spared: bool,
    /// The near medium's lines, by their numbers there; `None` before the first.
    near: Option<Box<Image>>,
    /// Whether a power cut leaves them.
    near_saved: bool,
}

impl Default for Image {
    fn default() -> Image {
        Image {
            sparse_from: DENSE,
            pages: Vec::new(),
            frames: Vec::new(),
            worn: Vec::new(),
            segments: Segments::default(),
            sparse: FxHashMap::default(),
            sparse_order: BTreeSet::new(),
            sparse_lines: Vec::new(),
            sparse_free: Vec::new(),
            sidebands: FxHashMap::default(),
            wear: Wear::default(),
            spared: false,
            near: None,
            near_saved: false,
        }
    }
}

impl Image {
    /// An array that has never been written.
    pub fn new() -> Image {
        Image::default()
    }

    /// An array of which a few scattered lines will be written. It takes memory for these only, however high they are.
    pub fn sparse() -> Image {
        Image {
            sparse_from: 0,
            ..Image::default()
        }
    }

    /// The image that has `place`, and the number there; itself unless the line is a near one.
    #[cold]
    fn near_of(&mut self, place: Place) -> (&mut Image, Place) {
        let (sparse_from, spared) = (self.sparse_from, self.spared);
        let fresh = || {
            Box::new(Image {
                sparse_from,
                spared,
                ..Image::default()
            })
        };
        self.near_saved = !place.is_lost();
        let near = self.near.get_or_insert_with(fresh);
        (near, Place(place.in_medium()))
    }

    /// The near medium's lines, as an image of their own; `None` if there are none.
    pub fn near(&self) -> Option<&Image> {
        self.near.as_deref()
    }

    /// Loses the near medium's lines, as a power cut does, unless reserve power saves them.
    pub fn lose_near(&mut self) {
        if !self.near_saved {
            self.near = None;
        }
    }

    /// Another array with the same bytes, not worn.
    pub fn copy(&self) -> Image {
        // As in `touch`, only entries of used pages are touched: most of a table are holes.
        let mut pages = vec![[0; 2]; self.pages.len()];
        for page in &self.frames {
            let [written, frame] = self.pages[*page];
            pages[*page] = [written, frame & !WORN];
        }
        let mut segments = Segments::default();
        for frame in 0..self.frames.len() {
            let at = locate(frame, Place(0));
            if at.segment == segments.len() {
                segments.add();
            }
            let (lines, end) = (at.line..at.wear, at.line + FRAME_BYTES);
            segments[at.segment][lines.clone()].copy_from_slice(&self.segments[at.segment][lines]);
            segments[at.segment][at.wear..end].fill(0);
        }
        let unworn = |(line, _): &(Line, u32)| (*line, 0);
        Image {
            sparse_from: self.sparse_from,
            pages,
            frames: self.frames.clone(),
            worn: Vec::new(),
            segments,
            sparse: self.sparse.clone(),
            sparse_order: self.sparse_order.clone(),
            sparse_lines: self.sparse_lines.iter().map(unworn).collect(),
            sparse_free: self.sparse_free.clone(),
            sidebands: self.sidebands.clone(),
            wear: Wear::default(),
            spared: false,
            near: self.near.as_ref().map(|near| Box::new(near.copy())),
            near_saved: self.near_saved,
        }
    }

    /// The line at `place`, `None` if it has never been written.
    pub fn read(&self, place: Place) -> Option<Line> {
        if place.0 >= self.sparse_from {
            if place.is_near() {
                return self.near()?.read(Place(place.in_medium()));
            }
            let slot = *self.sparse.get(&place.0)?;
            return Some(self.sparse_lines[slot as usize].0);
        }
        let [written, frame] = *self.pages.get((place.0 / FRAME_LINES) as usize)?;
        if written >> (place.0 % FRAME_LINES) & 1 == 0 {
            return None;
        }
        let at = locate(frame_of(frame)?, place);
        let bytes = &self.segments[at.segment][at.line..at.line + LINE_BYTES];
        Some(bytes.try_into().expect("a line's bytes"))
    }

    /// The 8 bytes stored beside the line at `place`, if any.
    pub fn sideband(&self, place: Place) -> Option<[u8; 8]> {
        if place.is_near() {
            return self.near()?.sideband(Place(place.in_medium()));
        }
        self.sidebands.get(&place.0).copied()
    }

    /// Sets whether writes count as wear from now on. Writes whose wear nobody will look at need not count: the count
    /// lies apart from the line's bytes, and costs as much host time.
    pub fn spare(&mut self, spared: bool) {
        self.spared = spared;
        if let Some(near) = &mut self.near {
            near.spare(spared);
        }
    }

    /// Writes the 8-byte words of `line` whose bit is set in `words`, and the sideband, and counts the wear.
    pub fn write(&mut self, place: Place, line: &Line, words: u8, sideband: Option<[u8; 8]>) {
        if place.is_near() {
            let (near, place) = self.near_of(place);
            return near.write(place, line, words, sideband);
        }
        if self.spared && place.0 < self.sparse_from {
            if let Some(beside) = sideband {
                self.sidebands.insert(place.0, beside);
            }
            let at = self.touch(place, 0);
            let old = &mut self.segments[at.segment][at.line..at.line + LINE_BYTES];
            match words {
                0xff => old.copy_from_slice(line),
                _ => _ = overwrite(old.try_into().expect("a line's bytes"), line, words),
            }
            return;
        }
        if let Some(beside) = sideband {
            let old = self.sidebands.insert(place.0, beside).unwrap_or_default();
            let flips = u64::from_le_bytes(old) ^ u64::from_le_bytes(beside);
            self.wear.bits_flipped += u64::from(flips.count_ones());
            self.wear.bytes += 8;
        }
        let writes = if place.0 >= self.sparse_from {
            let end = self.sparse_lines.len() as u32;
            let next = self.sparse_free.last().copied().unwrap_or(end);
            let slot = *self.sparse.entry(place.0).or_insert(next);
            if slot == next {
                if self.sparse_free.pop().is_none() {
                    self.sparse_lines.push((ZERO_LINE, 0));
                }
                self.sparse_order.insert(place.0);
            }
            let (old, writes) = &mut self.sparse_lines[slot as usize];
            self.wear.bits_flipped += u64::from(overwrite(old, line, words));
            *writes = writes.saturating_add(1);
            *writes
        } else {
            let at = self.touch(place, WORN);
            let segment = &mut self.segments[at.segment];
            let old = &mut segment[at.line..at.line + LINE_BYTES];
            let old = old.try_into().expect("a line's bytes");
            self.wear.bits_flipped += u64::from(overwrite(old, line, words));
            let wear = wear_mut(segment, at.wear);
            let writes = u32::from_le_bytes(*wear).saturating_add(1);
            *wear = writes.to_le_bytes();
            writes
        };
        self.wear.max_line_writes = self.wear.max_line_writes.max(writes);
        self.wear.writes += 1;
        self.wear.bytes += u64::from(words.count_ones()) * 8;
    }

    /// Changes the line at `place`, zeros if it was never written, and the sideband if one is given, without wear.
    pub fn amend(
        &mut self,
        place: Place,
        sideband: Option<[u8; 8]>,
        change: impl FnOnce(&mut Line),
    ) {
        if place.is_near() {
            let (near, place) = self.near_of(place);
            return near.amend(place, sideband, change);
        }
        let mut line = self.read(place).unwrap_or(ZERO_LINE);
        change(&mut line);
        let (spared, wear) = (std::mem::replace(&mut self.spared, true), self.wear);
        self.write(place, &line, 0xff, sideband);
        (self.spared, self.wear) = (spared, wear);
        if place.0 >= self.sparse_from {
            let (_, writes) = &mut self.sparse_lines[self.sparse[&place.0] as usize];
            *writes -= 1;
        }
    }

    /// Counts another array write of `place`, one that left nothing there because it was cancelled.
    pub fn wear_again(&mut self, place: Place) {
        let words = 0;
        match self.read(place) {
            Some(line) => self.write(place, &line, words, None),
            None => self.wear.writes += 1, // its first write will follow
        }
    }

    /// The line at `place` and the 8 bytes beside it; nothing if it has never been written.
    pub fn content(&self, place: Place) -> Option<Content> {
        Some((self.read(place)?, self.sideband(place)))
    }

    /// Sets the content of `place`, whatever it was.
    pub fn put(&mut self, place: Place, content: Option<&Content>) {
        let stays = |(_, beside): &&Content| beside.is_some() || self.sideband(place).is_none();
        if content.filter(stays).is_none() {
            self.unwrite(place);
        }
        if let Some((line, beside)) = content {
            self.write(place, line, 0xff, *beside);
        }
    }

    /// Makes the line at `place` one that was never written.
    pub fn unwrite(&mut self, place: Place) {
        if self.read(place).is_none() {
            return;
        }
        if place.is_near() {
            let (near, place) = self.near_of(place);
            return near.unwrite(place);
        }
        self.sidebands.remove(&place.0);
        if place.0 >= self.sparse_from {
            let slot = self.sparse.remove(&place.0).expect("it has been written");
            self.sparse_order.remove(&place.0);
            self.sparse_lines[slot as usize] = (ZERO_LINE, 0);
            self.sparse_free.push(slot);
            return;
        }
        let [written, _] = &mut self.pages[(place.0 / FRAME_LINES) as usize];
        *written &= !(1 << (place.0 % FRAME_LINES));
    }

    /// Removes the sideband of `place`.
    pub fn clear_sideband(&mut self, place: Place) {
        if place.is_near() {
            let (near, place) = self.near_of(place);
            return near.clear_sideband(place);
        }
        self.sidebands.remove(&place.0);
    }

    /// The wear since the last [`Image::forget_wear`].
    pub fn wear(&self) -> Wear {
        self.wear
    }

    /// Counts wear from zero again (after a warm-up); bytes stay.
    pub fn forget_wear(&mut self) {
        self.wear = Wear::default();
        for frame in self.worn.drain(..) {
            self.pages[self.frames[frame]][1] &= !WORN;
            let at = locate(frame, Place(0));
            let wear = FRAME_LINES as usize * WEAR_BYTES;
            self.segments[at.segment][at.wear..at.wear + wear].fill(0);
        }
        for (_, writes) in &mut self.sparse_lines {
            *writes = 0;
        }
        if let Some(near) = &mut self.near {
            near.forget_wear();
        }
    }

    /// The lines written since the last [`Image::forget_wear`], sorted by their number of writes.
    pub fn worn(&self) -> Vec<Worn> {
        let mut classes: Vec<Worn> = Vec::new();
        let mut count = |writes: u32| {
            let Some(class) = writes.checked_ilog2() else {
                return;
            };
            while classes.len() <= class as usize {
                classes.push(Worn {
                    least: 1 << classes.len(),
                    ..Worn::default()
                });
            }
            let class = &mut classes[class as usize];
            class.lines += 1;
            class.writes += u64::from(writes);
        };
        for frame in &self.worn {
            self.wear_of(*frame).for_each(&mut count);
        }
        self.sparse_lines.iter().for_each(|line| count(line.1));
        classes
    }

    /// Divides the medium, from the first written page to the last, into at most `count` parts with equal numbers of
    /// touched pages, and returns the writes of each. Lines placed by a hash are left out.
    pub fn parts(&self, count: usize) -> Vec<ImagePart> {
        let mut pages: Vec<(usize, usize)> = self.frames.iter().copied().zip(0..).collect();
        pages.sort_unstable();
        let each = pages.len().div_ceil(count).max(1);
        let part = |pages: &[(usize, usize)]| {
            let mut part = ImagePart {
                first: Place(pages[0].0 as u64 * FRAME_LINES),
                ..ImagePart::default()
            };
            let wear = pages.iter().flat_map(|(_, frame)| self.wear_of(*frame));
            for writes in wear.filter(|writes| *writes > 0) {
                part.lines += 1;
                part.writes += u64::from(writes);
                part.most = part.most.max(writes);
            }
            part
        };
        pages.chunks(each).map(part).collect()
    }

    fn wear_of(&self, frame: usize) -> impl Iterator<Item = u32> + '_ {
        let at = locate(frame, Place(0));
        let wear = &self.segments[at.segment][at.wear..at.wear + FRAME_LINES as usize * WEAR_BYTES];
        let (wear, _) = wear.as_chunks::<WEAR_BYTES>();
        wear.iter().map(|wear| u32::from_le_bytes(*wear))
    }

    /// Iterates over the lines written at least once, in order of place.
    pub fn written_lines(&self) -> impl Iterator<Item = (Place, Line)> + '_ {
        let dense = self
            .pages
            .iter()
            .enumerate()
            .filter(|(_, page)| page[0] != 0);
        let dense = dense.flat_map(|(page, _)| {
            (0..FRAME_LINES).map(move |line| Place(page as u64 * FRAME_LINES + line))
        });
        dense
            .chain(self.sparse_order.iter().copied().map(Place))
            .filter_map(|place| Some((place, self.read(place)?)))
    }

    /// Lines of `region` written at least once, in order of place.
    pub fn written_in(&self, region: &Region) -> Vec<Place> {
        if region.first.is_near() {
            return self.written_near(region);
        }
        let (first, end) = (region.first.0, region.first.0 + region.lines);
        if first >= self.sparse_from {
            return self
                .sparse_order
                .range(first..end)
                .copied()
                .map(Place)
                .collect();
        }
        let sparse = self.sparse_order.range(first..end.max(first));
        let pages = (self.pages.len() as u64).min(end.div_ceil(FRAME_LINES));
        let mut places = Vec::new();
        for page in first / FRAME_LINES..pages {
            let [mut written, _] = self.pages[page as usize];
            while written != 0 {
                let place = page * FRAME_LINES + u64::from(written.trailing_zeros());
                written &= written - 1;
                if (first..end).contains(&place) {
                    places.push(Place(place));
                }
            }
        }
        places.extend(sparse.copied().map(Place));
        places
    }

    fn written_near(&self, region: &Region) -> Vec<Place> {
        let Some(near) = self.near() else {
            return Vec::new();
        };
        let own = Region {
            first: Place(region.first.in_medium()),
            ..region.clone()
        };
        let places = near.written_in(&own).into_iter();
        let bits = region.first.0 - region.first.in_medium();
        places.map(|place| Place(place.0 | bits)).collect()
    }

    /// Iterates over the lines that have a sideband, in no order.
    pub fn with_sideband(&self) -> impl Iterator<Item = Place> + '_ {
        self.sidebands.keys().copied().map(Place)
    }

    /// Prefetches the host memory that holds `place` without waiting for it: its bytes, and before a write the count of
    /// its wear.
    #[inline]
    pub fn touch_ahead(&self, place: Place, writes: bool) {
        if place.0 >= self.sparse_from {
            if let Some(near) = self.near().filter(|_| place.is_near()) {
                near.touch_ahead(Place(place.in_medium()), writes);
            }
            return;
        }
        let Some(frame) = self.frame(place) else {
            return;
        };
        let at = locate(frame, place);
        let segment = &self.segments[at.segment];
        prefetch(&segment[at.line]);
        if writes {
            prefetch(&segment[at.wear]);
        }
    }

    /// Prefetches what [`Image::touch_ahead`] will need.
    #[inline]
    pub fn touch_page_ahead(&self, place: Place) {
        if let Some(page) = self.pages.get((place.0 / FRAME_LINES) as usize) {
            prefetch(page);
        }
    }

    #[inline]
    fn frame(&self, place: Place) -> Option<usize> {
        frame_of(self.pages.get((place.0 / FRAME_LINES) as usize)?[1])
    }

    /// Finds the line, which has been written now and was zeros before, in a new frame if its page has none. The frame
    /// is marked with `worn`.
    fn touch(&mut self, place: Place, worn: u64) -> SegmentOffsets {
        let page = (place.0 / FRAME_LINES) as usize;
        if page >= self.pages.len() {
            // A fresh zeroed table costs no memory until it is touched. Growing in place would touch it, and so would a
            // copy of the old one, which is mostly holes.
            let mut pages = vec![[0; 2]; (page + 1).next_power_of_two()];
            for &used in &self.frames {
                pages[used] = self.pages[used];
            }
            self.pages = pages;
        }
        let [written, frame] = &mut self.pages[page];
        let first = *frame == 0;
        if first {
            self.frames.push(page);
            *frame = self.frames.len() as u64;
            if self.frames.len() > self.segments.len() * SEGMENT_FRAMES {
                self.segments.add();
            }
        }
        let entry = *frame;
        *frame |= worn;
        let frame = frame_of(entry).expect("it has one now");
        if entry & WORN < worn {
            self.worn.push(frame);
        }
        let at = locate(frame, place);
        let segment = &mut self.segments[at.segment];
        if *written >> (place.0 % FRAME_LINES) & 1 == 0 {
            *written |= 1 << (place.0 % FRAME_LINES);
            segment[at.line..at.line + LINE_BYTES].fill(0);
        }
        if first {
            let wear = locate(frame, Place(0)).wear;
            segment[wear..wear + FRAME_LINES as usize * WEAR_BYTES].fill(0);
        }
        at
    }
}

struct SegmentOffsets {
    segment: usize,
    line: usize,
    wear: usize,
}

#[inline]
fn locate(frame: usize, place: Place) -> SegmentOffsets {
    let start = frame % SEGMENT_FRAMES * FRAME_BYTES;
    let line = (place.0 % FRAME_LINES) as usize;
    SegmentOffsets {
        segment: frame / SEGMENT_FRAMES,
        line: start + line * LINE_BYTES,
        wear: start + WEAR_START + line * WEAR_BYTES,
    }
}

/// Copies the words of `new` whose bit is set in `words` into `old`, and returns the number of bits that changed.
#[inline]
fn overwrite(old: &mut Line, new: &Line, words: u8) -> u32 {
    let (olds, _) = old.as_chunks_mut::<8>();
    let (news, _) = new.as_chunks::<8>();
    let mut flips = [0; LINE_BYTES / 8];
    let lines = olds.iter_mut().zip(news);
    for (at, (flipped, (old, new))) in flips.iter_mut().zip(lines).enumerate() {
        let was = u64::from_le_bytes(*old);
        let carried = u64::from(words >> at & 1).wrapping_neg();
        *flipped = (was ^ u64::from_le_bytes(*new)) & carried;
        *old = (was ^ *flipped).to_le_bytes();
    }
    ones(flips)
}

/// Counts the bits that are set in all bytes at once, because not every host has an instruction for it.
#[inline]
fn ones(words: [u64; LINE_BYTES / 8]) -> u32 {
    // The lower halves of all fields of 2, 4, 8 and 16 bits, and the lowest bits of those of 16.
    const PAIRS: u64 = u64::MAX / 3;
    const FOURS: u64 = u64::MAX / 5;
    const BYTES: u64 = u64::MAX / 17;
    const HALVES: u64 = u64::MAX / 257;
    const EACH: u64 = u64::MAX / 65535;
    let mut bytes = 0;
    for word in words {
        let pairs = word - ((word >> 1) & PAIRS);
        let fours = (pairs & FOURS) + ((pairs >> 2) & FOURS);
        bytes += (fours + (fours >> 4)) & BYTES;
    }
    let halves = (bytes & HALVES) + ((bytes >> 8) & HALVES);
    (halves.wrapping_mul(EACH) >> 48) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_image_has_nothing_of_the_one_before() {
        let mut image = Image::new();
        for line in 0..2 * FRAME_LINES {
            image.write(Place(line), &[7; LINE_BYTES], 0xff, Some([7; 8]));
        }
        let segment = image.segments[0].as_ptr();
        drop(image);
        let mut image = Image::new();
        image.write(Place(5), &[9; LINE_BYTES], 1, None);
        assert_eq!(image.segments[0].as_ptr(), segment, "it is the same memory");
        let mut part = ZERO_LINE;
        part[..8].fill(9);
        assert_eq!(image.content(Place(5)), Some((part, None)));
        assert_eq!(image.read(Place(6)), None);
        let wear = image.wear();
        assert_eq!((wear.writes, wear.max_line_writes), (1, 1));
        assert_eq!(wear.bits_flipped, 8 * u64::from(9u8.count_ones()));
        assert_eq!(image.worn().len(), 1);
    }

    #[test]
    fn a_copy_has_the_bytes_and_no_wear() {
        for mut image in [Image::new(), Image::sparse()] {
            let last = SEGMENT_FRAMES as u64 * FRAME_LINES; // a frame of a second segment, once all are taken
            for line in (0..=last)
                .step_by(FRAME_LINES as usize)
                .chain([1, DENSE + 3])
            {
                image.write(Place(line), &[line as u8; LINE_BYTES], 0xff, None);
            }
            image.write(Place(2), &[7; LINE_BYTES], 0xff, Some([1; 8]));
            image.unwrite(Place(1));
            let mut copy = image.copy();
            assert!(copy.written_lines().eq(image.written_lines()));
            assert_eq!(copy.content(Place(2)), image.content(Place(2)));
            assert_eq!((copy.wear(), copy.worn()), (Wear::default(), Vec::new()));
            copy.write(Place(2), &[8; LINE_BYTES], 0xff, None);
            copy.write(Place(1), &[9; LINE_BYTES], 1, None);
            assert_eq!(image.read(Place(2)), Some([7; LINE_BYTES]));
            assert_eq!(
                copy.read(Place(1)).map(|line| line[8..16].to_vec()),
                Some(vec![0; 8])
            );
            assert_eq!(copy.worn().iter().map(|worn| worn.writes).sum::<u64>(), 2);
        }
    }

    #[test]
    fn what_is_unwritten_was_never_written() {
        for mut image in [Image::new(), Image::sparse()] {
            let (one, other) = (Place(3), Place(DENSE + 3));
            for place in [one, other] {
                image.write(place, &[7; LINE_BYTES], 0xff, Some([1; 8]));
                image.write(Place(place.0 + 1), &[8; LINE_BYTES], 0xff, None);
                image.unwrite(place);
                image.unwrite(Place(place.0 + 2));
                assert_eq!((image.read(place), image.sideband(place)), (None, None));
                assert_eq!(image.read(Place(place.0 + 1)), Some([8; LINE_BYTES]));
                // Nothing of what it was comes back with a part of it.
                image.write(place, &[9; LINE_BYTES], 1, None);
                let mut part = ZERO_LINE;
                part[..8].fill(9);
                assert_eq!(image.read(place), Some(part));
            }
            let places: Vec<u64> = image.written_lines().map(|(place, _)| place.0).collect();
            assert_eq!(places, [3, 4, DENSE + 3, DENSE + 4]);
        }
    }
}
