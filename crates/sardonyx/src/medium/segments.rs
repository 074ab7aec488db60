//! Large pieces of the host's memory for lines. One that its owner has given up goes to the next owner as it is, because
//! the system would clear its pages again: most of the time of a run over much memory.

use std::ops::{Index, IndexMut};
use std::sync::Mutex;

use memmap2::MmapMut;

/// The size of a segment: seventeen large pages of the host, 34 MiB.
pub(crate) const SEGMENT_BYTES: usize = 17 << 21;

/// Segments that wait for an owner, at most: 1 GiB.
const MOST_SPARE: usize = 30;

static SPARE: Mutex<Vec<MmapMut>> = Mutex::new(Vec::new());

/// Segments of host memory with any bytes in them.
#[derive(Default)]
pub(crate) struct Segments(Vec<MmapMut>);

impl Segments {
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Adds a segment, on large pages if it is new: a random access misses the translation buffer far less often.
    #[cold]
    pub fn add(&mut self) {
        let spare = SPARE.lock().ok().and_then(|mut spare| spare.pop());
        self.0.push(spare.unwrap_or_else(|| {
            let map = MmapMut::map_anon(SEGMENT_BYTES);
            let map = map.expect("the machine has memory left for the lines");
            #[cfg(target_os = "linux")]
            let _ = map.advise(memmap2::Advice::HugePage); // without it, only slower
            map
        }));
    }
}

impl Index<usize> for Segments {
    type Output = [u8];
    #[inline]
    fn index(&self, at: usize) -> &[u8] {
        &self.0[at]
    }
}

impl IndexMut<usize> for Segments {
    #[inline]
    fn index_mut(&mut self, at: usize) -> &mut [u8] {
        &mut self.0[at]
    }
}

impl Drop for Segments {
    fn drop(&mut self) {
        if let Ok(mut spare) = SPARE.lock() {
            let room = MOST_SPARE.saturating_sub(spare.len());
            spare.extend(self.0.drain(..).take(room));
        }
    }
}
