//! More lines with one content than a count of eight bits has room for.

use std::collections::BTreeMap;

use super::content;
use super::life::UntimedLife;
use crate::history::History;
use crate::probes::Looked;
use sardonyx::line::{Line, Logical};
use sardonyx::medium::image::Image;
use sardonyx::medium::layout::Layout;

const SHARERS: u64 = 300;

impl History {
    /// Has more lines share a content than an 8-bit count has room for; then they change, and others take what is free.
    /// Returns the first line that does not read as it was last written.
    pub fn shared(&self, looked: &Looked) -> Option<Logical> {
        if !self.finds_duplicates() {
            return None;
        }
        let each = |first: u64| (0..SHARERS).map(move |line| (line, first + line));
        let share = (0..SHARERS).map(|line| (line, 0));
        let others = |first: u64| (first..first + SHARERS).map(|line| (line, line));
        // One line keeps the content. It is not the first, at whose place the content lies, because that line would be
        // the first to take the place back.
        let last = SHARERS as usize - 1;
        let all_but_one = each(SHARERS).take(last).chain([(0, 2 * SHARERS)]);
        let one_left = share.clone().chain(all_but_one).chain(others(3 * SHARERS));
        // Nobody keeps the content, some lines take it again, and others take all free places.
        let again = (2 * SHARERS..2 * SHARERS + 3).map(|line| (line, 0));
        let none_left = share
            .chain(each(SHARERS))
            .chain(again)
            .chain(each(2 * SHARERS));
        // After a power cut the counts are those that a recovery has found.
        let later = each(5 * SHARERS).chain(others(SHARERS));
        let kept = self.keeps([one_left.collect(), later.clone().collect()], looked);
        kept.or_else(|| self.keeps([none_left.collect(), later.collect()], looked))
    }

    /// Has a controller write contents by number, and another the second list after a recovery. Returns the first line
    /// that a recovered controller does not read as it was last written.
    fn keeps(&self, lives: [Vec<(u64, u64)>; 2], looked: &Looked) -> Option<Logical> {
        let settings = self.with_room();
        let build = || {
            let mut layout = Layout::new(4 * SHARERS);
            self.stack.build(&settings, &mut layout)
        };
        let mut held: BTreeMap<Logical, Line> = BTreeMap::new();
        let mut life = UntimedLife::recovered(build(), Image::sparse());
        for writes in lives {
            for (line, number) in writes {
                let (line, data) = (Logical(line), content(0, number));
                held.insert(line, data);
                life.write(line, &data);
            }
            life.fits().ok()?;
            life.flush();
            life.untimed.settle();
            life = life.then(build());
            let wrong = life.misread(&held);
            let wrong = wrong.or_else(|| life.written_by_nobody(&held, 4 * SHARERS, looked));
            if wrong.is_some() {
                return wrong;
            }
        }
        None
    }
}
