//! Lines of all classes of contents, one after the other at each place.

use std::collections::BTreeMap;

use sardonyx_base::random::mix;

use super::life::UntimedLife;
use crate::history::History;
use crate::probes::Looked;
use sardonyx::line::{Line, Logical, ZERO_LINE};
use sardonyx::medium::image::Image;
use sardonyx::medium::layout::Layout;
use sardonyx_workload::Class as Contents;

/// The number of lines of each class of contents: enough for all bytes, or all places of one.
const CONTENTS: [(Contents, u64); Contents::ALL.len()] = [
    (Contents::Zeros, 1),
    (Contents::Ones, 1),
    (Contents::OneByte, 256),
    (Contents::OneOther, 128),
    (Contents::Bases, 8),
    (Contents::Pointers, 8),
    (Contents::Text, 8),
    (Contents::Low, 14),
    (Contents::Near, 48),
    (Contents::High, 8),
];
/// The number of lines near zero that follow them.
const NEAR_ZERO: u64 = 48;
/// The distance from one line's content to the next one's.
const SHIFT: usize = 131;

impl History {
    /// Has a controller write lines of all classes of contents, and read them; then each line takes another's content,
    /// its own again, and once more; and other controllers read them after recoveries. Returns the first line that
    /// reads otherwise, and its class.
    pub fn of_all_contents(&self, looked: &Looked) -> Option<(Logical, &'static str)> {
        let all = || {
            let classes = CONTENTS.iter().flat_map(|(class, count)| {
                (0..*count).map(|number| (class.name(), class.line(number)))
            });
            classes.chain((0..NEAR_ZERO).map(|number| ("near zero", near_zero(number))))
        };
        let lines = all().count() as u64;
        let settings = self.with_room();
        let build = || self.stack.build(&settings, &mut Layout::new(2 * lines));
        let written = |shift: usize| -> Vec<(Logical, Line)> {
            let contents = all().cycle().skip(shift).take(lines as usize);
            (0..)
                .map(Logical)
                .zip(contents.map(|(_, line)| line))
                .collect()
        };
        let mut life = UntimedLife::recovered(build(), Image::sparse());
        // The shift makes the neighbours' classes differ each time.
        for (round, shift) in [0, SHIFT, 0, 0].into_iter().enumerate() {
            let held: BTreeMap<Logical, Line> = written(shift).into_iter().collect();
            for (line, data) in &held {
                life.write(*line, data);
            }
            life.fits().ok()?;
            let class = |line: Logical| {
                let (class, _) = all()
                    .cycle()
                    .nth(line.0 as usize + shift)
                    .expect("it goes round");
                (line, class)
            };
            let near_zero = held.values().filter(|data| is_near_zero(data)).count();
            looked.near_zero.update(|all| all + near_zero as u64);
            if let Some(wrong) = life.misread(&held) {
                return Some(class(wrong));
            }
            if round >= 2 {
                life.flush();
                life.untimed.settle();
                life = life.then(build());
                if let Some(wrong) = life.misread(&held) {
                    return Some(class(wrong));
                }
            }
            if let Some(line) = life.written_by_nobody(&held, 2 * lines, looked) {
                return Some((line, "none, as nobody has written it"));
            }
        }
        None
    }
}

/// A line with a few bits set, or with one number of at most four bytes.
fn near_zero(number: u64) -> Line {
    let dice = |of: u64| mix(mix(number) ^ of);
    let mut line = ZERO_LINE;
    if number.is_multiple_of(2) {
        for bit in (0..2 + number / 2 % 7).map(dice) {
            line[(bit % 64) as usize] |= 1 << (bit / 64 % 8);
        }
    } else {
        let word = (dice(0) % 8) as usize * 8;
        line[word..][..8].copy_from_slice(&(dice(1) >> (32 + number / 2 % 24)).to_le_bytes());
    }
    line
}

fn is_near_zero(line: &Line) -> bool {
    let bits: u32 = line.iter().map(|byte| byte.count_ones()).sum();
    (1..=8).contains(&bits)
}
