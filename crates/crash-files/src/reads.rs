//! What the recovery reads of the folder, by runs of it where the program had done all, and where the most was pending: a
//! log is often read only there.
//!
//! Left out: names and folders, which a recovery sees in many ways; and what it would read of files that were at neither.
//! Both count as read.

use std::ops::Range;

use rustc_hash::FxHashMap;

use crate::model::{Effect, EffectKind};
use crate::operations::Inode;

/// The bytes that it reads of each file that was there, apart and in their order; without files it reads everything.
#[derive(Clone, Debug, Default)]
pub struct RecoveryReads(FxHashMap<Inode, Vec<Range<u64>>>);

impl RecoveryReads {
    pub fn new(files: impl IntoIterator<Item = (Inode, Vec<Range<u64>>)>) -> RecoveryReads {
        let mut all: FxHashMap<Inode, Vec<Range<u64>>> = FxHashMap::default();
        for (inode, ranges) in files {
            all.entry(inode).or_default().extend(ranges);
        }
        for ranges in all.values_mut() {
            ranges.sort_by_key(|range| range.start);
            ranges.dedup_by(|next, before| {
                let touches = next.start <= before.end;
                if touches {
                    before.end = before.end.max(next.end);
                }
                touches
            });
        }
        RecoveryReads(all)
    }

    /// Whether it may tell an effect's being there from its absence.
    pub fn see(&self, effect: &Effect) -> bool {
        let (inode, bytes) = match &effect.what {
            EffectKind::Data {
                inode,
                offset,
                length,
                ..
            } => (inode, *offset..offset + *length as u64),
            EffectKind::Size { inode, .. } => (inode, 0..u64::MAX),
            EffectKind::Names(_) => return true,
        };
        let Some(ranges) = self.0.get(inode) else {
            return true;
        };
        let at = ranges.partition_point(|range| range.end <= bytes.start);
        ranges.get(at).is_some_and(|range| range.start < bytes.end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_read_is_seen_and_nothing_beside_it() {
        let reads = RecoveryReads::new([
            (1, vec![600..700, 0..10]),
            (2, Vec::new()),
            (1, std::iter::once(650..1024).collect()),
        ]);
        let sees = |inode, offset, length| {
            reads.see(&Effect {
                operation: 0,
                what: EffectKind::Data {
                    inode,
                    offset,
                    from: 0,
                    length,
                    fresh: false,
                },
                needs: Vec::new(),
                after: None,
                sure: None,
            })
        };
        let seen = [
            sees(1, 0, 1),
            sees(1, 512, 512),
            sees(1, 1023, 1),
            sees(3, 0, 1),
        ];
        assert_eq!(seen, [true; 4]);
        let beside = [sees(1, 10, 502), sees(1, 1024, 512), sees(2, 0, 512)];
        assert_eq!(beside, [false; 3]);
    }
}
