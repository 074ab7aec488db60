//! Checks single lines: before any program recovers, and where a recovery has written.

use std::collections::BTreeSet;

use crate::check::Checker;
use sardonyx::controller::Controller;
use sardonyx::line::Line;
use sardonyx::machine::read_untimed;

impl Checker<'_> {
    /// Each of `lines` must read as the newest accepted write of it, or a later one.
    pub(crate) fn every_line(&mut self, controller: &mut Controller, lines: &BTreeSet<u64>) {
        for line in lines.iter().chain(&self.lost.clone()) {
            // A processor's cache drains bytes that need be no write request's, and a torn line is a mixture of two.
            let drained = self.survivors.is_cached(*line) || self.survivors.is_torn(*line);
            if drained || self.history.core_of(*line).is_none() {
                self.seen.remove(line);
                self.lost.remove(line);
                continue;
            }
            let content = read_untimed(controller, &mut self.survivors.untimed, *line);
            if self.history.may_fill() && self.survivors.untimed.failure().is_some() {
                // A line that left a near cache for this one has found no place.
                self.nothing_seen();
                return;
            }
            let seen = self.request_of(*line, &content);
            match seen {
                Some(request) => {
                    self.seen.insert(*line, request);
                    self.lost.remove(line);
                }
                None => {
                    self.lost.insert(*line);
                }
            }
        }
    }

    /// Forgets what lines read as: the present state cannot tell.
    pub(crate) fn nothing_seen(&mut self) {
        self.lost.clear();
        self.seen.clear();
    }

    /// Returns the newest request that wrote `content`, or `Some(None)` if setup did; `None` if what wrote it is older
    /// than the newest accepted request.
    fn request_of(&self, line: u64, content: &Line) -> Option<Option<u32>> {
        let accepted = self.accepted.get(&line).copied();
        let requests = self.history.requests.get(&line);
        let handled = &self.history.journal.handled;
        let late = requests.into_iter().flatten().rev().copied();
        let mut late = late.take_while(|index| accepted.is_none_or(|a| *index >= a));
        match late.find(|index| handled[*index as usize].data == *content) {
            Some(index) => Some(Some(index)),
            None if accepted.is_none() && self.history.initial(line) == Some(content) => Some(None),
            None => None,
        }
    }

    /// Compares the lines that lie where a recovery has written: it may have taken a place for free that is not.
    pub(crate) fn overwritten(&mut self, from: u64, controller: &mut Controller) {
        let Some(mapped) = &self.mapped else { return };
        let untimed = &mut self.survivors.untimed;
        let writes = untimed.writes(from);
        let at = writes.flat_map(|write| mapped.at(write.place));
        let lines: BTreeSet<u64> = at.copied().collect();
        for line in lines {
            let Some(core) = self.history.core_of(line) else {
                continue;
            };
            let visible: Vec<u64> = self.cores.iter().map(|core| core.visible).collect();
            let should = self.history.content(line, &visible);
            let (expected, core) = (&self.history.programs[core], &mut self.cores[core]);
            if core.fault.is_none()
                && !expected.log.contains(line)
                && should != Some(&read_untimed(controller, untimed, line))
            {
                core.wrong.insert(line);
            }
        }
    }
}
