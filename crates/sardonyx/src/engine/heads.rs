//! When each source of events next has one, and which comes first.
//!
//! Channels act several times for each result, and most machines have one; so they stand apart from
//! the other sources, which play a tournament.

use std::hint::select_unpredictable;

use super::channel::NEVER;

/// Low bits of a key for the source, so that the least key names it; equal times go in the order
/// of the sources, channels before the others. It leaves 54 bits for picoseconds: five hours.
const SOURCE_BITS: u32 = 10;
/// Set in the key of a source that is not a channel.
const RESULT: u64 = 1 << (SOURCE_BITS - 1);

/// What has an event first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Head {
    /// A channel acts.
    Channel(usize),
    /// Another source has a result.
    Source(usize),
}

/// The next event of each source, as keys; [`NEVER`] for one that has nothing to come.
pub(crate) struct Heads {
    /// The channels', and the first of them.
    acts: Vec<u64>,
    first_act: u64,
    /// The winner of the whole at 1; the winner of 2i and 2i + 1 at i; the other sources' keys in the
    /// upper half.
    results: Vec<u64>,
    beyond: bool,
}

impl Heads {
    /// `channels` and other `sources`, with nothing to come.
    pub fn new(channels: usize, sources: usize) -> Heads {
        assert!(
            channels.max(sources) < RESULT as usize,
            "fewer sources of events"
        );
        Heads {
            acts: vec![NEVER; channels],
            first_act: NEVER,
            results: vec![NEVER; sources.next_power_of_two().max(2) * 2],
            beyond: false,
        }
    }

    /// The first event's key.
    #[inline]
    fn first(&self) -> u64 {
        self.first_act.min(self.results[1])
    }

    /// When anything happens, [`NEVER`] if nothing will.
    #[inline]
    pub fn time(&self) -> u64 {
        time(self.first())
    }

    /// What happens at [`Heads::time`].
    #[inline]
    pub fn head(&self) -> Head {
        let key = self.first();
        let source = (key & (RESULT - 1)) as usize;
        match key & RESULT {
            0 => Head::Channel(source),
            _ => Head::Source(source),
        }
    }

    /// When `channel` acts.
    #[inline]
    pub fn act(&self, channel: usize) -> u64 {
        time(self.acts[channel])
    }

    /// `channel` acts at `time`.
    #[inline]
    pub fn set_act(&mut self, channel: usize, time: u64) {
        self.acts[channel] = self.key(time, channel as u64);
        self.first_act = match self.acts[..] {
            [only] => only,
            _ => self.acts.iter().copied().min().unwrap_or(NEVER),
        };
    }

    /// `source` has its next result at `time`.
    #[inline]
    pub fn set_result(&mut self, source: usize, time: u64) {
        let mut winner = self.key(time, RESULT | source as u64);
        let keys = &mut self.results[..];
        let mut at = keys.len() / 2 + source;
        keys[at] = winner;
        // To the top in any case: a guess at where it could stop costs the host more.
        while at > 1 {
            let other = keys[at ^ 1];
            winner = select_unpredictable(other < winner, other, winner);
            at /= 2;
            keys[at] = winner;
        }
    }

    /// Whether anything was to happen at a time that no key can tell: it never does.
    pub fn is_beyond(&self) -> bool {
        self.beyond
    }

    #[inline]
    fn key(&mut self, time: u64, source: u64) -> u64 {
        let beyond = time.wrapping_add(1) >> (64 - SOURCE_BITS) != 0;
        if beyond {
            self.beyond = true;
            return NEVER;
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

    /// Against a look at all of them.
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
