//! When each source of events has its next one, and which source is first.
//!
//! Channels act several times for each result, and most machines have one channel; so the channels
//! are kept apart from the other sources, which are the leaves of a tournament tree.

use std::hint::select_unpredictable;

use super::channel::NEVER;

/// Low bits of a key name the source. Events of equal times thus go in the order of the sources, channels before the
/// others. 54 bits remain for picoseconds: five hours.
const SOURCE_BITS: u32 = 10;
const END: u64 = (1 << (64 - SOURCE_BITS)) - 2;
/// This bit is set in the key of a source that is not a channel.
const RESULT: u64 = 1 << (SOURCE_BITS - 1);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Head {
    Channel(usize),
    Source(usize),
}

/// The key of each source's next event; [`NEVER`] for a source without one.
pub(crate) struct Heads {
    acts: Vec<u64>,
    first_act: u64,
    /// The keys of the other sources as a binary tree: the keys themselves in the upper half, the lesser of 2i and 2i +
    /// 1 at i, and so the least of all at 1.
    results: Vec<u64>,
    /// An event lay beyond the clock's end and was dropped, or the engine was told to stop.
    pub stopped: bool,
}

impl Heads {
    pub fn new(channels: usize, sources: usize) -> Heads {
        assert!(
            channels.max(sources) < RESULT as usize,
            "fewer sources of events"
        );
        Heads {
            acts: vec![NEVER; channels],
            first_act: NEVER,
            results: vec![NEVER; sources.next_power_of_two().max(2) * 2],
            stopped: false,
        }
    }

    #[inline]
    fn first(&self) -> u64 {
        self.first_act.min(self.results[1])
    }

    #[inline]
    pub fn time(&self) -> u64 {
        time(self.first())
    }

    #[inline]
    pub fn head(&self) -> Head {
        let key = self.first();
        let source = (key & (RESULT - 1)) as usize;
        match key & RESULT {
            0 => Head::Channel(source),
            _ => Head::Source(source),
        }
    }

    /// A time up to which no source but `channel` can have an event before the events of `channel`.
    #[inline]
    pub fn alone(&self, channel: usize) -> u64 {
        let results = time(self.results[1]).min(END);
        match self.acts[..] {
            [_] => results,
            _ => self.others(channel).min(results),
        }
    }

    fn others(&self, channel: usize) -> u64 {
        let others = self
            .acts
            .iter()
            .enumerate()
            .filter(|(at, _)| *at != channel);
        let least = others.map(|(_, key)| time(*key)).min();
        // At an equal time another channel may come first, but no result does.
        least.map_or(NEVER, |least| least.saturating_sub(1))
    }

    #[inline]
    pub fn act(&self, channel: usize) -> u64 {
        time(self.acts[channel])
    }

    #[inline]
    pub fn set_act(&mut self, channel: usize, time: u64) {
        self.acts[channel] = self.key(time, channel as u64);
        self.first_act = match self.acts[..] {
            [only] => only,
            _ => self.acts.iter().copied().min().unwrap_or(NEVER),
        };
    }

    #[inline]
    pub fn set_result(&mut self, source: usize, time: u64) {
        let mut least = self.key(time, RESULT | source as u64);
        let keys = &mut self.results[..];
        let mut at = keys.len() / 2 + source;
        keys[at] = least;
        // Always to the root: to stop early would cost a mispredicted branch.
        while at > 1 {
            let other = keys[at ^ 1];
            least = select_unpredictable(other < least, other, least);
            at /= 2;
            keys[at] = least;
        }
    }

    #[cold]
    fn stop(&mut self) -> u64 {
        self.stopped = true;
        NEVER
    }

    /// Makes the key of an event, [`NEVER`] if it lies beyond the clock's end. Adding one wraps [`NEVER`] to 0.
    #[inline]
    fn key(&mut self, time: u64, source: u64) -> u64 {
        if time.wrapping_add(1) > END + 1 {
            return self.stop();
        }
        select_unpredictable(time == NEVER, NEVER, time << SOURCE_BITS | source)
    }
}

#[inline]
fn time(key: u64) -> u64 {
    select_unpredictable(key == NEVER, NEVER, key >> SOURCE_BITS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_beyond_the_end_stops_the_clock() {
        let mut heads = Heads::new(1, 2);
        heads.set_act(0, END);
        heads.set_result(0, NEVER);
        assert!(heads.time() == END && !heads.stopped);
        heads.set_result(1, END + 1);
        assert!(heads.time() == END && heads.stopped);
    }

    #[test]
    fn the_earliest_comes_first_and_channels_before_results() {
        for channels in [1, 2, 5] {
            let mut heads = Heads::new(channels, 9);
            let (mut acts, mut results) = (vec![NEVER; channels], [NEVER; 9]);
            let mut state = 1u64;
            for _ in 0..10_000 {
                state = state
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1);
                let draw = state >> 40 & 15;
                let time = if draw == 0 { NEVER } else { draw };
                let source = (state >> 33) as usize % 9;
                if state >> 60 & 1 == 1 {
                    acts[source % channels] = time;
                    heads.set_act(source % channels, time);
                } else {
                    results[source] = time;
                    heads.set_result(source, time);
                }
                let act = *acts.iter().min().unwrap();
                let result = *results.iter().min().unwrap();
                assert_eq!(heads.time(), act.min(result));
                let at = |times: &[u64], least| times.iter().position(|time| *time == least);
                if act.min(result) == NEVER {
                    continue;
                }
                let first = match act <= result {
                    true => Head::Channel(at(&acts, act).unwrap()),
                    false => Head::Source(at(&results, result).unwrap()),
                };
                assert_eq!(heads.head(), first);
            }
        }
    }
}
