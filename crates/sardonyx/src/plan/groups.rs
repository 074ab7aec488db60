//! Writes that take their slots at one instant, all or none.

use smallvec::SmallVec;

use super::{Plan, Step, Stored};

/// The accept steps of writes that take their slots at one instant.
pub(crate) type Group = SmallVec<[Step; 4]>;

impl Plan {
    /// Makes writes of this plan one group, which takes all its slots at one instant. A write that is in a group
    /// already brings that group along, so whoever writes below another layer joins its group.
    pub fn group(&mut self, writes: &[Stored]) {
        if self.steps.at_once {
            return;
        }
        let mut members = Group::new();
        for stored in writes {
            match self.steps.get_mut(stored.accepted).group {
                0 => members.push(stored.accepted),
                group => members.extend(std::mem::take(&mut self.groups[group as usize - 1])),
            }
        }
        // Without a clock no group is accepted, so all are there until they are forgotten together.
        let free = self
            .steps
            .timed
            .then(|| self.groups.iter().position(Group::is_empty));
        let index = match free.flatten() {
            Some(free) => free,
            None => {
                self.groups.push(Group::new());
                self.groups.len() - 1
            }
        };
        for member in &members {
            self.steps.get_mut(*member).group = index as u32 + 1;
        }
        self.groups[index] = members;
    }

    /// The number of a write's group, which no other group has at the time; 0 if it is in none.
    pub fn group_of(&self, stored: Stored) -> u32 {
        match self.steps.at_once || stored.accepted == Step::PAST {
            true => 0,
            false => self.steps.get(stored.accepted).group,
        }
    }

    /// Merges `stored` with the queued write of its line, if there is one when its group is accepted, whatever becomes
    /// of the group's other writes.
    pub fn merges(&mut self, stored: Stored) {
        if !self.steps.at_once {
            self.steps.get_mut(stored.accepted).merges = true;
        }
    }
}
