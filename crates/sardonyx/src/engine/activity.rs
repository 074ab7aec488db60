//! For how long the ranks of a channel have had open rows, where that takes another current than closed ones.

use super::constraints::MOST;

#[derive(Clone, Copy, Default)]
struct Rank {
    open: u32,
    /// The cycle up to which its time is counted, and when the latest of its rows closes that were open since.
    counted: u64,
    closing: u64,
}

/// Sums the cycles in which ranks have open rows. A row that closes itself is told of when its access goes.
pub(super) struct Activity {
    ranks: [Rank; MOST],
    total: u64,
    forgotten: u64,
}

impl Activity {
    pub fn new() -> Activity {
        Activity {
            ranks: [Rank::default(); MOST],
            total: 0,
            forgotten: 0,
        }
    }

    pub fn opens(&mut self, rank: usize, cycle: u64) {
        let rank = &mut self.ranks[rank % MOST];
        if rank.open == 0 {
            rank.counted = rank.counted.max(cycle);
        }
        rank.open += 1;
    }

    pub fn closes(&mut self, rank: usize, cycle: u64) {
        let rank = &mut self.ranks[rank % MOST];
        rank.open -= 1;
        rank.closing = rank.closing.max(cycle);
        if rank.open == 0 {
            self.total += rank.closing.saturating_sub(rank.counted);
            rank.counted = rank.counted.max(rank.closing);
        }
    }

    /// The cycles up to `cycle`, all ranks together, since they were last forgotten.
    pub fn until(&self, cycle: u64) -> u64 {
        let rest = |rank: &Rank| match (rank.open, cycle as i64 - rank.counted as i64) {
            (0, since) => since.min(0), // rows that close later
            (_, since) => since,
        };
        let rest: i64 = self.ranks.iter().map(rest).sum();
        self.total
            .saturating_add_signed(rest)
            .saturating_sub(self.forgotten)
    }

    pub fn forget(&mut self, cycle: u64) {
        self.forgotten = 0;
        self.forgotten = self.until(cycle);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Against counting cycle by cycle in how many ranks a row is open.
    #[test]
    fn the_sum_is_that_of_every_cycle() {
        let rows: [(usize, u64, u64); 7] = [
            (0, 3, 10),
            (0, 5, 20),
            (1, 4, 8),
            (0, 22, 40),
            (0, 23, 30),
            (1, 30, 50),
            (0, 39, 60),
        ];
        let mut events: Vec<(u64, bool, usize, u64)> = Vec::new();
        for (rank, opened, closed) in rows {
            events.push((opened, true, rank, opened));
            events.push((closed - 2, false, rank, closed)); // told of earlier, as a row that closes itself
        }
        events.sort_unstable();
        let mut activity = Activity::new();
        for (now, opens, rank, cycle) in events {
            match opens {
                true => activity.opens(rank, cycle),
                false => activity.closes(rank, cycle),
            }
            let open = |at: u64| {
                let of = |rank: usize| {
                    let mut known = rows.iter().filter(|row| row.1 <= now);
                    known.any(|(of, from, to)| *of == rank && (*from..*to).contains(&at))
                };
                (0..2).filter(|rank| of(*rank)).count() as u64
            };
            assert_eq!(
                activity.until(now),
                (0..now).map(open).sum::<u64>(),
                "{now}"
            );
        }
        activity.forget(55);
        assert_eq!(activity.until(60), 5);
    }
}
