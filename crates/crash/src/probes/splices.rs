//! Lines that an attacker copies over others with their MACs.

use std::collections::BTreeSet;

use super::content;
use super::life::UntimedLife;
use crate::history::History;
use crate::words::word_of;
use sardonyx::controller::designs::Stack;
use sardonyx::controller::layers::BESIDE;
use sardonyx::line::{Logical, Place, ZERO_LINE};
use sardonyx::medium::image::Image;
use sardonyx::medium::layout::Layout;

/// Pairs of lines, each copied over the other.
type LinePairs = Vec<(u64, u64)>;
type Writes = fn(u64) -> u64;

/// Bits in which the places of two exchanged lines differ.
const SPLICED_BITS: [u32; 5] = [16, 20, 24, 32, 36];
/// The number of lines that are exchanged where their versions differ.
const NEIGHBOURS: u64 = 6;

impl History {
    /// Has only the integrity guard lines whose places differ in a few bits, and others whose versions rise as their
    /// places fall; copies each over others with its MAC, and reads it after a recovery. Returns the first place that
    /// reads as what was copied there, and the place of its origin.
    pub fn spliced(&self) -> Option<(Place, Place)> {
        if !self.stack.integrity.promises.splice || self.stack.integrity.power_fail.is_none() {
            return None;
        }
        let bare = Stack::named("no-encryption").expect("a design");
        let stack = Stack {
            integrity: self.stack.integrity,
            planted: self.stack.planted,
            ..bare
        };
        let bit = |bit: u32| move |line: u64| line ^ 1 << bit;
        let far = SPLICED_BITS.map(|number| {
            (
                2 << number,
                (0..4).map(|line| (line, bit(number)(line))).collect(),
            )
        });
        let all = (0..NEIGHBOURS).flat_map(|one| (0..NEIGHBOURS).map(move |other| (one, other)));
        let near: Vec<(u64, u64)> = all.filter(|(one, other)| one != other).collect();
        let mut cases: Vec<(u64, LinePairs, Writes)> = vec![
            (64, near.clone(), |line| NEIGHBOURS - line),
            (64, near, |line| line + 1),
            // The versions differ by 256, so a byte of the version carries into the place if a MAC adds them up.
            (64, vec![(0, 1)], |line| if line == 0 { 257 } else { 1 }),
        ];
        cases.extend(
            far.into_iter()
                .map(|(lines, pairs)| (lines, pairs, (|_| 1) as Writes)),
        );
        cases
            .iter()
            .find_map(|(lines, pairs, writes)| self.reads_spliced(&stack, *lines, pairs, *writes))
    }

    fn reads_spliced(
        &self,
        stack: &Stack,
        lines: u64,
        pairs: &[(u64, u64)],
        writes: Writes,
    ) -> Option<(Place, Place)> {
        let mut layout = Layout::new(lines);
        let controller = stack.build(&self.small, &mut layout);
        let kept = stack.power_fail(&self.small, &layout)?;
        let mut life = UntimedLife::recovered(controller, Image::sparse());
        let written: BTreeSet<u64> = pairs
            .iter()
            .flat_map(|(one, other)| [*one, *other])
            .collect();
        for line in &written {
            for number in 0..writes(*line) {
                life.write(Logical(*line), &content(*line, number));
            }
        }
        life.flush();
        life.fits().ok()?;
        life.untimed.settle();
        let image = life.untimed.image();
        pairs
            .iter()
            .map(|(one, other)| (Place(*one), Place(*other)))
            .find(|(place, other)| {
                let mut image = image.copy();
                let line = image.read(*other);
                let word =
                    |(at, number): (Place, usize)| word_of(image.content(at).as_ref(), number);
                let mac = kept.kept_of(*other).map(word);
                let beside = mac.filter(|_| kept.kept_of(*place) == Some((*place, BESIDE)));
                if let (Some((at, number)), Some(mac), None) = (kept.kept_of(*place), mac, beside) {
                    let mut macs = image.read(at).unwrap_or(ZERO_LINE);
                    macs[number * 8..][..8].copy_from_slice(&mac);
                    image.put(at, Some(&(macs, None)));
                }
                image.put(*place, line.map(|line| (line, beside)).as_ref());
                let recovered = stack.build(&self.small, &mut Layout::new(lines));
                let mut life = UntimedLife::recovered(recovered, image);
                life.untimed.refused().is_empty()
                    && life.read(Logical(place.0)) == line
                    && life.untimed.refused().is_empty()
            })
    }
}
