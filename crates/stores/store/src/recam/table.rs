//! The content of the translation table: the slot of each logical block, by pages of neighbours.

use rustc_hash::FxHashMap;

use crate::store::Lba;

const PAGE: u64 = 512;
const NONE: u32 = u32::MAX;

#[derive(Clone, Debug, Default)]
pub struct Table {
    pages: FxHashMap<u64, Box<[u32; PAGE as usize]>>,
    live: u64,
}

impl Table {
    pub fn get(&self, lba: Lba) -> Option<u32> {
        let page = self.pages.get(&(lba / PAGE))?;
        Some(page[(lba % PAGE) as usize]).filter(|&slot| slot != NONE)
    }

    pub fn insert(&mut self, lba: Lba, slot: u32) {
        let page = self.pages.entry(lba / PAGE);
        let page = page.or_insert_with(|| Box::new([NONE; PAGE as usize]));
        page[(lba % PAGE) as usize] = slot;
        self.live += 1;
    }

    pub fn remove(&mut self, lba: Lba) {
        if let Some(page) = self.pages.get_mut(&(lba / PAGE)) {
            page[(lba % PAGE) as usize] = NONE;
            self.live -= 1;
        }
    }

    pub fn len(&self) -> u64 {
        self.live
    }
}
