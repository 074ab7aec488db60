//! Groups the accesses of a block: one look at the caches stands for several accesses.

use crate::flow::{Access, Origin, Use};

/// A group spans at most this many bytes: two lines, each with an access, wherever it begins.
const SPAN: u64 = 64;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Member {
    pub insn: usize,
    pub loads: bool,
    pub stores: bool,
    pub access: Access,
}

/// Accesses for which one look at the caches is enough: that of the first one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccessGroup {
    /// The members in the order of the program; the first leads.
    pub members: Vec<Member>,
    pub low: u64,
    /// The number of bytes from there that the group spans.
    pub span: u64,
}

impl AccessGroup {
    fn new(member: Member) -> AccessGroup {
        AccessGroup {
            members: vec![member],
            low: member.access.distance,
            span: u64::from(member.access.size),
        }
    }

    fn origin(&self) -> Origin {
        self.members[0].access.origin
    }

    fn joined(&self, access: &Access) -> Option<(u64, u64)> {
        // Distances are modulo 2^64, so they are counted from one of them.
        let from = self.low.wrapping_sub(SPAN);
        let first = access.distance.wrapping_sub(from);
        let end = (SPAN + self.span).max(first.checked_add(u64::from(access.size))?);
        let first = first.min(SPAN);
        (end - first <= SPAN).then(|| (from.wrapping_add(first), end - first))
    }

    fn join(&mut self, member: Member) {
        if let Some((low, span)) = self.joined(&member.access) {
            (self.low, self.span) = (low, span);
            self.members.push(member);
        }
    }

    /// Whether a look at one line is enough: the group is one access that rarely is in two lines.
    pub fn is_plain(&self) -> bool {
        self.members.len() == 1 && self.members[0].access.size <= 8
    }

    /// The last storing instruction, if it comes after the first member.
    pub fn last_store(&self) -> Option<usize> {
        let later = self.members[1..].iter().rev().find(|m| m.stores)?;
        Some(later.insn)
    }
}

/// Groups the accesses of a block. With `apart`, an instruction that loads and stores is in no group.
pub fn groups(block: &[Use], apart: bool) -> Vec<AccessGroup> {
    let mut groups: Vec<AccessGroup> = Vec::new();
    let mut open = 0;
    for (insn, what) in block.iter().enumerate() {
        let (access, loads, stores) = match *what {
            // A flush changes which lines are cached, and a new segment changes base addresses.
            Use::Barrier => {
                open = groups.len();
                continue;
            }
            Use::One {
                access,
                loads,
                stores,
            } if !(loads && stores && apart) => (access, loads, stores),
            _ => continue,
        };
        let member = Member {
            insn,
            loads,
            stores,
            access,
        };
        let fits = |group: &&mut AccessGroup| {
            group.origin() == access.origin && group.joined(&access).is_some()
        };
        match groups[open..].iter_mut().rev().find(fits) {
            Some(group) => group.join(member),
            None => groups.push(AccessGroup::new(member)),
        }
    }
    groups
}
