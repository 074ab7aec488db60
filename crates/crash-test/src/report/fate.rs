//! The fate of a store that was late: whether and where it was flushed and fenced.

use crate::recording::{Act, Recording};

/// The fate of a store. Events are numbered as in [`Recording::events`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    NeverFlushed,
    /// The line was first flushed by this event, after the moment in question.
    FlushedTooLate(u32),
    /// This event flushed the line (`None`: the store itself went past the caches), and that thread never fenced.
    NeverFenced(Option<u32>),
    /// The first event flushed the line, and the second fenced that, at the moment in question or after it.
    FencedTooLate(Option<u32>, u32),
    InTime,
}

pub fn fate(recording: &Recording, store: u32, cut: u32) -> Fate {
    let events = &recording.events;
    let event = recording.event(store);
    let Act::Store { slot, past, .. } = event.act else {
        return Fate::InTime;
    };
    let after = |from: u32| (from + 1..events.len() as u32).map(|n| (n, recording.event(n)));
    let fence = |from: u32, thread: u16| {
        let mut later = after(from);
        later.find(|(_, e)| e.thread == thread && e.act == Act::Fence)
    };
    if past {
        return match fence(store, event.thread) {
            None => Fate::NeverFenced(None),
            Some((fence, _)) if fence >= cut => Fate::FencedTooLate(None, fence),
            Some(_) => Fate::InTime,
        };
    }
    let mut later = after(store);
    let flush = later.find(|(_, e)| matches!(e.act, Act::Flush { slot: s, .. } if s == slot));
    let Some((flush, by)) = flush else {
        return Fate::NeverFlushed;
    };
    if flush >= cut {
        return Fate::FlushedTooLate(flush);
    }
    if matches!(by.act, Act::Flush { ordered: true, .. }) {
        return Fate::InTime;
    }
    match fence(flush, by.thread) {
        None => Fate::NeverFenced(Some(flush)),
        Some((fence, _)) if fence >= cut => Fate::FencedTooLate(Some(flush), fence),
        Some(_) => Fate::InTime,
    }
}

impl Fate {
    pub fn words(self, on_disk: bool, mut place: impl FnMut(u32) -> String) -> Option<String> {
        if on_disk {
            // A system call that waits was recorded as flushes and their fence.
            return Some(match self {
                Fate::NeverFlushed | Fate::NeverFenced(_) => "never synced".to_owned(),
                Fate::FlushedTooLate(sync) | Fate::FencedTooLate(_, sync) => {
                    format!("synced too late, at {}", place(sync))
                }
                Fate::InTime => return None,
            });
        }
        let mut flushed = |flush: Option<u32>| match flush {
            Some(flush) => format!("flushed at {}", place(flush)),
            None => "stored past the caches".to_owned(),
        };
        Some(match self {
            Fate::NeverFlushed => "never flushed".to_owned(),
            Fate::FlushedTooLate(flush) => format!("flushed too late, at {}", place(flush)),
            Fate::NeverFenced(flush) => format!("{}, never fenced", flushed(flush)),
            Fate::FencedTooLate(flush, fence) => {
                format!("{}, fenced too late, at {}", flushed(flush), place(fence))
            }
            Fate::InTime => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Do::{self, Clflush, Clwb, Fence, Past, Store};
    use crate::testing::recording;

    fn of(program: &[(u16, Do)], cut: u32) -> Fate {
        fate(&recording(program), 0, cut)
    }

    #[test]
    fn a_store_is_followed_to_its_flush_and_its_fence() {
        let flushed = [(0, Store(0, 1)), (0, Clwb(0)), (1, Fence), (0, Fence)];
        assert_eq!(of(&flushed, 1), Fate::FlushedTooLate(1));
        assert_eq!(of(&flushed, 2), Fate::FencedTooLate(Some(1), 3));
        assert_eq!(of(&flushed, 4), Fate::InTime);
        assert_eq!(of(&flushed[..3], 3), Fate::NeverFenced(Some(1)));
        assert_eq!(
            of(&[(0, Store(0, 1)), (0, Clwb(1)), (0, Fence)], 3),
            Fate::NeverFlushed
        );
        assert_eq!(of(&[(0, Store(0, 1)), (0, Clflush(0))], 2), Fate::InTime);
        assert_eq!(of(&[(0, Past(0, 1))], 1), Fate::NeverFenced(None));
    }

    #[test]
    fn its_words_name_the_places() {
        let place = |event: u32| format!("a.c:{event}");
        let words = |fate: Fate| fate.words(false, place).unwrap();
        assert_eq!(
            words(Fate::NeverFenced(Some(22))),
            "flushed at a.c:22, never fenced"
        );
        assert_eq!(
            words(Fate::FencedTooLate(Some(2), 9)),
            "flushed at a.c:2, fenced too late, at a.c:9"
        );
        assert_eq!(Fate::InTime.words(false, place), None);
        let on_disk = |fate: Fate| fate.words(true, place).unwrap();
        assert_eq!(on_disk(Fate::NeverFlushed), "never synced");
        assert_eq!(
            on_disk(Fate::FlushedTooLate(9)),
            "synced too late, at a.c:9"
        );
    }
}
