//! Lines that several cores share: their contents after which transactions of which cores, in the order in which the
//! transactions held their locks; and what a cut may leave of them.
//!
//! The condition is strict durable linearizability (Aguilera and Frølund, 2003; Izraelevitz, Mendes and Scott, DISC
//! 2016): a transaction that has answered is visible, one that has not may be, whole or not at all; and memory is as
//! the visible ones leave it one after the other, in an order that keeps to real time. The order of taking locks is
//! such an order, because a core that answers before another asks has held its locks before. So a state is legal if no
//! visible transaction has seen an invisible one, and each line is as the last visible transaction left it.

use rustc_hash::FxHashMap;

use sardonyx::line::{Line, Lines};

/// A transaction: the number of its core, and its own number there.
pub type Who = (usize, u64);

#[derive(Clone, Debug)]
pub struct Joint {
    pub region: Lines,
    pub logs: Lines,
    /// The last transaction of each core that was visible at first.
    first: Vec<u64>,
    pub initial: Vec<Line>,
    /// Maps each line that changed to the transactions that changed it and their contents, in the order of the locks.
    versions: FxHashMap<u64, Vec<(Who, Line)>>,
    /// The lines that each transaction of a core has changed.
    changes: Vec<Vec<Vec<u64>>>,
}

impl Joint {
    /// The lines before any transaction after those of `first`.
    pub fn new(region: Lines, logs: Lines, first: Vec<u64>, initial: Vec<Line>) -> Joint {
        Joint {
            changes: vec![Vec::new(); first.len()],
            region,
            logs,
            first,
            initial,
            versions: FxHashMap::default(),
        }
    }

    pub fn next(&mut self, core: usize, lines: impl Iterator<Item = (u64, Line)>) {
        let number = self.first[core] + self.changes[core].len() as u64 + 1;
        let mut changed = Vec::new();
        for (line, content) in lines {
            let versions = self.versions.entry(line).or_default();
            versions.push(((core, number), content));
            changed.push(line);
        }
        self.changes[core].push(changed);
    }

    /// The content of `line` if each core's transactions up to those of `visible` are visible.
    pub fn content(&self, line: u64, visible: &[u64]) -> &Line {
        let versions = self.versions.get(&line).into_iter().flatten();
        let mut newest = versions.rev();
        match newest.find(|((core, number), _)| *number <= visible[*core]) {
            Some((_, content)) => content,
            None => &self.initial[self.region.index_of(line).expect("a line of it") as usize],
        }
    }

    /// The last transaction that has left `line` as `content`: `Some(None)` if it held that at first, `None` if nothing
    /// has left it so.
    pub fn left_by(&self, line: u64, content: &Line) -> Option<Option<Who>> {
        let versions = self.versions.get(&line).into_iter().flatten();
        let left = versions.rev().find(|(_, line)| line == content);
        let initial = || {
            let initial = &self.initial[self.region.index_of(line)? as usize];
            (initial == content).then_some(None)
        };
        left.map(|(who, _)| Some(*who)).or_else(initial)
    }

    /// A visible transaction, an invisible one before it, and a line that both have changed.
    pub fn out_of_order(&self, visible: &[u64]) -> Option<(Who, Who, u64)> {
        // A core's own transactions are in order.
        if visible.len() < 2 {
            return None;
        }
        let missing = visible.iter().enumerate().flat_map(|(core, last)| {
            let of_core = self.changes[core].iter().enumerate();
            let behind = last.saturating_sub(self.first[core]) as usize;
            of_core.skip(behind).map(move |(index, lines)| {
                let number = self.first[core] + index as u64 + 1;
                ((core, number), lines)
            })
        });
        let mut clashes = missing.flat_map(|(who, lines)| {
            lines.iter().filter_map(move |line| {
                let versions = &self.versions[line];
                let own = versions.iter().position(|(other, _)| *other == who)?;
                let seen = |(other, _): &&(Who, Line)| other.1 <= visible[other.0];
                let later = versions[own..].iter().find(seen)?;
                Some((later.0, who, *line))
            })
        });
        clashes.next()
    }

    /// Lines whose contents may differ between two states, each given by the last visible transaction of each core.
    pub fn between<'j>(&'j self, a: &'j [u64], b: &'j [u64]) -> impl Iterator<Item = u64> + 'j {
        let cores = self.changes.iter().enumerate();
        cores.flat_map(move |(core, changes)| {
            let index = |number: u64| {
                let behind = number.saturating_sub(self.first[core]) as usize;
                behind.min(changes.len())
            };
            let (from, to) = (index(a[core].min(b[core])), index(a[core].max(b[core])));
            changes[from..to].iter().flatten().copied()
        })
    }

    /// Counts how often a core has changed a line that another core had changed last.
    pub fn handed_over(&self) -> u64 {
        let lines = self.versions.values();
        let of_line = |versions: &Vec<(Who, Line)>| {
            let pairs = versions.windows(2);
            pairs.filter(|pair| pair[0].0.0 != pair[1].0.0).count() as u64
        };
        lines.map(of_line).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Core 0 changes line 1, core 1 lines 1 and 2, core 0 line 2.
    fn joint() -> Joint {
        let lines = |count| Lines {
            first: 1,
            stride: 1,
            count,
        };
        let mut joint = Joint::new(lines(2), lines(0), vec![4, 7], vec![[0; 64]; 2]);
        joint.next(0, [(1, [5; 64])].into_iter());
        joint.next(1, [(1, [8; 64]), (2, [8; 64])].into_iter());
        joint.next(0, [(2, [6; 64])].into_iter());
        joint
    }

    #[test]
    fn a_line_is_as_the_last_transaction_that_is_there_has_left_it() {
        let joint = joint();
        for (visible, first, second) in [
            ([4, 7], 0, 0),
            ([5, 7], 5, 0),
            ([5, 8], 8, 8),
            ([6, 8], 8, 6),
        ] {
            assert_eq!(joint.content(1, &visible)[0], first, "{visible:?}");
            assert_eq!(joint.content(2, &visible)[0], second, "{visible:?}");
            assert_eq!(joint.out_of_order(&visible), None, "{visible:?}");
        }
        assert_eq!(joint.handed_over(), 2);
        assert_eq!(joint.left_by(1, &[8; 64]), Some(Some((1, 8))));
        assert_eq!(joint.left_by(1, &[0; 64]), Some(None));
        assert_eq!(joint.left_by(1, &[9; 64]), None);
        let lines: Vec<u64> = joint.between(&[5, 8], &[6, 7]).collect();
        assert_eq!(lines, [2, 1, 2]);
    }

    #[test]
    fn what_has_seen_a_transaction_that_is_not_there_may_not_be() {
        let joint = joint();
        assert_eq!(joint.out_of_order(&[4, 8]), Some(((1, 8), (0, 5), 1)));
        assert_eq!(joint.out_of_order(&[6, 7]), Some(((0, 6), (1, 8), 2)));
    }
}
