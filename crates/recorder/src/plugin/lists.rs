//! Lists of groups with stores to come, which callbacks know by a number.

use std::collections::HashMap;

use super::word::Word;

const LISTS: usize = 1 << 31;

/// All lists; the first is the empty one.
pub struct GroupLists {
    lists: Vec<Vec<Word>>,
    numbers: HashMap<Vec<u64>, u32>,
}

impl Default for GroupLists {
    fn default() -> GroupLists {
        GroupLists {
            lists: vec![Vec::new()],
            numbers: HashMap::new(),
        }
    }
}

impl GroupLists {
    pub fn open(&self, number: usize) -> &[Word] {
        &self.lists[number]
    }

    /// The number of a list; 0 is the empty one.
    pub fn number(&mut self, open: &[Word]) -> Option<u32> {
        if open.is_empty() {
            return Some(0);
        }
        let key = open
            .iter()
            .map(|group| group.data().addr() as u64)
            .collect();
        if let Some(number) = self.numbers.get(&key) {
            return Some(*number);
        }
        let number = self.lists.len();
        (number < LISTS).then(|| {
            self.lists.push(open.to_vec());
            self.numbers.insert(key, number as u32);
            number as u32
        })
    }
}
