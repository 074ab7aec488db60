//! All events of a recording, in columns of 15 bytes an event: a store that is flushed and fenced makes three events.
//!
//! The version of a store is not kept: it is counted where events are read in order, and looked up in its line's
//! versions for a single event.

use crate::recording::versions::PersistenceUnit;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Act {
    /// The line holds this version from now on, which is the version before if the store changed nothing.
    Store {
        slot: u32,
        /// The version, as an index of the line's; 0 is what the line held before the recording.
        version: u32,
        past: bool,
    },
    /// A flush of a line that was stored to at some time.
    Flush {
        /// The line, as an index of [`Recording::lines`].
        slot: u32,
        ordered: bool,
    },
    /// A flush of a line of the files that was never stored to.
    FlushClean,
    /// A flush, or a store past the caches, of a line in no file that is cut.
    Foreign,
    /// A fence, or another instruction that acts as one.
    Fence,
}

#[derive(Clone, Copy, Debug)]
pub struct Event {
    pub row: u64,
    pub thread: u16,
    /// A place in the program, or [`NOWHERE`].
    pub site: u32,
    pub act: Act,
}

/// The events of a recording, in the order of their rows unless [`Events::reorder`] has changed it; see the module.
#[derive(Debug, Default)]
pub struct Events {
    rows: Vec<u32>,
    /// The first event of each upper half of rows except 0.
    upper: Vec<u32>,
    sites: Vec<u32>,
    slots: Vec<u32>,
    threads: Vec<u16>,
    tags: Vec<Tag>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Tag {
    Store,
    StorePast,
    Same,
    SamePast,
    Flush,
    FlushOrdered,
    FlushClean,
    Foreign,
    Fence,
}

impl Events {
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Appends an event; `changed` says that a store made another version of its line.
    pub fn push(&mut self, event: Event, changed: bool) {
        let upper = (event.row >> 32) as usize;
        while self.upper.len() < upper {
            self.upper.push(self.rows.len() as u32);
        }
        let (slot, tag) = match event.act {
            Act::Store { slot, past, .. } => {
                let tag = match (changed, past) {
                    (true, false) => Tag::Store,
                    (true, true) => Tag::StorePast,
                    (false, false) => Tag::Same,
                    (false, true) => Tag::SamePast,
                };
                (slot, tag)
            }
            Act::Flush { slot, ordered } => match ordered {
                false => (slot, Tag::Flush),
                true => (slot, Tag::FlushOrdered),
            },
            Act::FlushClean => (0, Tag::FlushClean),
            Act::Foreign => (0, Tag::Foreign),
            Act::Fence => (0, Tag::Fence),
        };
        self.rows.push(event.row as u32);
        self.sites.push(event.site);
        self.slots.push(slot);
        self.threads.push(event.thread);
        self.tags.push(tag);
    }

    /// Puts the events from number `first` on into the order of these old numbers. Their rows are no longer in order.
    pub fn reorder(&mut self, first: usize, order: &[usize]) {
        fn put<T: Copy>(column: &mut [T], first: usize, order: &[usize]) {
            let ordered: Vec<T> = order.iter().map(|&number| column[number]).collect();
            column[first..first + order.len()].copy_from_slice(&ordered);
        }
        put(&mut self.rows, first, order);
        put(&mut self.sites, first, order);
        put(&mut self.slots, first, order);
        put(&mut self.threads, first, order);
        put(&mut self.tags, first, order);
    }

    /// Releases spare memory; nothing more is appended.
    pub fn shrink(&mut self) {
        self.rows.shrink_to_fit();
        self.sites.shrink_to_fit();
        self.slots.shrink_to_fit();
        self.threads.shrink_to_fit();
        self.tags.shrink_to_fit();
    }

    pub fn row(&self, number: usize) -> u64 {
        let upper = self
            .upper
            .partition_point(|&first| first as usize <= number);
        (upper as u64) << 32 | u64::from(self.rows[number])
    }

    pub fn before(&self, row: u64) -> usize {
        let (mut from, mut to) = (0, self.len());
        while from < to {
            let middle = from + (to - from) / 2;
            match self.row(middle) < row {
                true => from = middle + 1,
                false => to = middle,
            }
        }
        from
    }

    /// Gives an event to another thread, at another site.
    pub fn credit(&mut self, number: usize, site: u32, thread: u16) {
        self.sites[number] = site;
        self.threads[number] = thread;
    }

    pub fn site(&self, number: usize) -> u32 {
        self.sites[number]
    }

    pub fn thread(&self, number: usize) -> u16 {
        self.threads[number]
    }

    pub fn is_store(&self, number: usize) -> bool {
        use Tag::{Same, SamePast, Store, StorePast};
        matches!(self.tags[number], Store | StorePast | Same | SamePast)
    }

    fn with(&self, number: usize, version: impl FnOnce(u32) -> u32) -> Event {
        let slot = self.slots[number];
        let past = matches!(self.tags[number], Tag::StorePast | Tag::SamePast);
        let act = match self.tags[number] {
            Tag::Store | Tag::StorePast | Tag::Same | Tag::SamePast => Act::Store {
                slot,
                version: version(slot),
                past,
            },
            Tag::Flush => Act::Flush {
                slot,
                ordered: false,
            },
            Tag::FlushOrdered => Act::Flush {
                slot,
                ordered: true,
            },
            Tag::FlushClean => Act::FlushClean,
            Tag::Foreign => Act::Foreign,
            Tag::Fence => Act::Fence,
        };
        Event {
            row: self.row(number),
            thread: self.threads[number],
            site: self.sites[number],
            act,
        }
    }

    pub fn get(&self, number: usize, lines: &[PersistenceUnit]) -> Event {
        let version = |slot: u32| lines[slot as usize].versions.at(number as u32);
        self.with(number, version)
    }

    pub fn walk(&self, lines: usize) -> impl Iterator<Item = Event> + '_ {
        let mut versions = vec![0; lines];
        (0..self.len()).map(move |number| {
            let changes = matches!(self.tags[number], Tag::Store | Tag::StorePast);
            self.with(number, |slot| {
                let version: &mut u32 = &mut versions[slot as usize];
                *version += u32::from(changes);
                *version
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recording::NOWHERE;
    use crate::recording::versions::Versions;

    fn event(row: u64, act: Act) -> Event {
        Event {
            row,
            thread: row as u16,
            site: NOWHERE - row as u32,
            act,
        }
    }

    /// Events come out as they were pushed, by number and in order, also with more rows than a column has bits for.
    #[test]
    fn events_are_those_that_were_pushed() {
        let store = |slot, version, past| Act::Store {
            slot,
            version,
            past,
        };
        let flush = |ordered| Act::Flush { slot: 1, ordered };
        let mut lines: Vec<PersistenceUnit> = (0..2)
            .map(|line| PersistenceUnit {
                file: 0,
                line,
                versions: Versions::new(0, true),
            })
            .collect();
        let far = 1 << 33;
        let pushed = [
            (event(0, store(0, 1, false)), true),
            (event(1, store(1, 1, true)), true),
            (event(2, Act::Fence), false),
            (event(7, store(0, 1, false)), false),
            (event(far, store(0, 2, true)), true),
            (event(far + 1, flush(false)), false),
            (event(far + 2, flush(true)), false),
            (event(far + 3, store(1, 1, true)), false),
            (event(far + 4, Act::FlushClean), false),
            (event(far + 5, Act::Foreign), false),
        ];
        let mut events = Events::default();
        for (number, &(one, changed)) in pushed.iter().enumerate() {
            if let (Act::Store { slot, version, .. }, true) = (one.act, changed) {
                let versions = &mut lines[slot as usize].versions;
                let made = versions.push(slot, &[number as u8 + 1; 64], number as u32, || [0; 64]);
                assert_eq!(made, version);
            }
            events.push(one, changed);
        }
        let shown = |event: Event| format!("{event:?}");
        for (number, (walked, (one, _))) in events.walk(lines.len()).zip(pushed).enumerate() {
            assert_eq!(shown(walked), shown(one));
            assert_eq!(shown(events.get(number, &lines)), shown(one));
            assert_eq!(
                events.is_store(number),
                matches!(one.act, Act::Store { .. })
            );
        }
    }
}
