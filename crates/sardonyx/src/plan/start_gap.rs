//! Start-Gap wear levelling (Qureshi et al., MICRO 2009), below all layers and their guard: a place is not a line of the
//! array any more. A region of N lines has N + 1 places; the one without a line is its gap. Every so many writes the line
//! before the gap moves into it, so that after N + 1 moves all lines lie one place further.
//!
//! All follows from the number of a region's moves, which is what its register holds. A moved line keeps its bytes: its
//! pad and what integrity keeps of it hang on the place that the layers know. Pads of the array's own places would need
//! each moved line encrypted anew, under a counter that no line of that place has had.

use rustc_hash::FxHashMap;

use super::overlay::Moved;
use super::{At, Plan, Queue, Step};
use crate::line::{Line, Place, ZERO_LINE};
use crate::medium::image::Image;
use crate::medium::layout::{Layout, Region};
use crate::medium::levelling::{
    GAP_ROUND, LINE_MOVED, LevellingParams, REGION_ROUND, Registers, rotations,
};
use crate::settings::Settings;
use crate::stats::Cause;

/// The bytes of a register line that count its region's moves.
const COUNT: std::ops::Range<usize> = 0..8;

fn count(line: &Line) -> u64 {
    u64::from_le_bytes(line[COUNT].try_into().expect("8 bytes"))
}

#[derive(Clone, Debug, Default)]
struct RegionLines {
    moves: u64,
    writes: u64,
    /// Writes since figures were last reset.
    handled: u64,
    /// Lines that were moved by steps which may not be finished yet, the latest last.
    unsettled: Vec<(Place, Step)>,
}

/// Wear levelling of all regions of a medium.
#[derive(Clone, Debug)]
pub struct StartGap {
    params: LevellingParams,
    /// Places from here on are not levelled: sparse regions, and everything reserved later.
    end: u64,
    gaps: Region,
    registers: Region,
    regions: FxHashMap<u64, RegionLines>,
    due: Vec<u64>,
    moves: u64,
}

impl StartGap {
    /// Wear levelling over everything that `layout` has, if `settings` ask for it.
    pub fn from_settings(settings: &Settings, layout: &mut Layout) -> Option<StartGap> {
        let params = LevellingParams::from_settings(settings)?;
        let end = layout.end();
        let count = end.div_ceil(params.region_lines);
        Some(StartGap {
            params,
            end,
            gaps: layout.reserve("gaps", count),
            registers: layout.reserve("start and gap", count),
            regions: FxHashMap::default(),
            due: Vec::new(),
            moves: 0,
        })
    }

    /// The first place of a region and its number of lines. The last region may be smaller.
    fn lines(&self, region: u64) -> (u64, u64) {
        let first = region * self.params.region_lines;
        (first, self.params.region_lines.min(self.end - first))
    }

    /// The region of `place`, and its line there; `None` if the place is not levelled.
    fn region_of(&self, place: Place) -> Option<(u64, u64)> {
        let lines = self.params.region_lines;
        (place.0 < self.end).then(|| (place.0 / lines, place.0 % lines))
    }

    fn start_and_gap(lines: u64, moves: u64) -> (u64, u64) {
        (moves / (lines + 1) % lines, lines - moves % (lines + 1))
    }

    fn moves_of(&self, region: u64) -> u64 {
        let known = self.regions.get(&region);
        known.map_or(self.params.first_move, |state| state.moves)
    }

    fn state(&mut self, region: u64) -> &mut RegionLines {
        let moves = self.params.first_move;
        self.regions.entry(region).or_insert_with(|| RegionLines {
            moves,
            ..RegionLines::default()
        })
    }

    fn array(&self, region: u64, position: u64) -> Place {
        let (first, lines) = self.lines(region);
        match position == lines {
            true => self.gaps.line(region),
            false => Place(first + position),
        }
    }

    /// The array's line for `place`.
    pub fn at(&self, place: Place) -> Place {
        let Some((region, line)) = self.region_of(place) else {
            return place;
        };
        let moves = self.moves_of(region);
        if moves == 0 {
            return place;
        }
        let (_, lines) = self.lines(region);
        let (start, gap) = StartGap::start_and_gap(lines, moves);
        let position = (line + start) % lines;
        self.array(region, position + u64::from(position >= gap))
    }

    /// The place whose line lies at `at`; `None` for a gap, and for places that are not levelled.
    pub fn line_at(&self, at: Place) -> Option<Place> {
        let (region, position) = match self.gaps.contains(at) {
            true => {
                let region = at.0 - self.gaps.first.0;
                (region, self.lines(region).1)
            }
            false => match self.region_of(at) {
                Some(found) => found,
                None => return Some(at),
            },
        };
        let (first, lines) = self.lines(region);
        let (start, gap) = StartGap::start_and_gap(lines, self.moves_of(region));
        let line = position - u64::from(position > gap);
        (position != gap).then(|| Place(first + (line + lines - start) % lines))
    }

    /// The lines of `region` that lie where `written`, asked for a part of the array, finds something; in order.
    fn lines_of(&self, region: &Region, written: impl Fn(&Region) -> Vec<Place>) -> Vec<Place> {
        let parts = self.around(region);
        let written = parts.iter().flat_map(written);
        let mut lines: Vec<Place> = written.filter_map(|at| self.line_at(at)).collect();
        lines.retain(|line| region.contains(*line));
        lines.sort_unstable();
        lines
    }

    /// The parts of the array where lines of `region` can lie.
    fn around(&self, region: &Region) -> Vec<Region> {
        let lines = self.params.region_lines;
        let (first, end) = (
            region.first.0,
            (region.first.0 + region.lines).min(self.end),
        );
        if first >= end {
            return vec![region.clone()];
        }
        let (from, until) = (first / lines, end.div_ceil(lines));
        let part = |first: u64, until: u64| Region {
            name: region.name,
            first: Place(first),
            lines: until - first,
        };
        let gaps = self.gaps.first.0;
        vec![
            part(from * lines, (until * lines).min(self.end)),
            part(gaps + from, gaps + until),
        ]
    }

    /// Learns the places of lines from registers, which `read` reads.
    pub fn recover(&mut self, registers: impl IntoIterator<Item = (Place, Line)>) {
        self.regions.clear();
        for (place, line) in registers {
            self.learn(place, &line);
        }
    }

    /// Learns from `line` if `place` is a register. Returns the line of its last move.
    pub fn learn(&mut self, place: Place, line: &Line) -> Option<Place> {
        if !self.registers.contains(place) {
            return None;
        }
        let region = place.0 - self.registers.first.0;
        self.regions.entry(region).or_default().moves = count(line);
        self.last(region)
    }

    /// The region of its registers.
    pub fn registers(&self) -> &Region {
        &self.registers
    }

    fn last(&self, region: u64) -> Option<Place> {
        let before = self.regions.get(&region)?.moves.checked_sub(1)?;
        let (first, lines) = self.lines(region);
        let (start, gap) = StartGap::start_and_gap(lines, before);
        // The line before the gap, or the last of all.
        let position = if gap == 0 { lines - 1 } else { gap - 1 };
        Some(Place(first + (position + lines - start) % lines))
    }

    /// Counts a write of `place`, after which its region may have to move a line. Returns the step that the write has
    /// to wait for.
    fn written(&mut self, place: Place) -> Option<Step> {
        let (region, _) = self.region_of(place)?;
        let each = self.params.writes_per_move;
        let state = self.state(region);
        state.writes += 1;
        state.handled += 1;
        let is_due = state.writes == each;
        if is_due {
            state.writes = 0;
        }
        self.due.extend(is_due.then_some(region));
        let mut unsettled = self.regions[&region].unsettled.iter().rev();
        unsettled
            .find(|(line, _)| *line == place)
            .map(|(_, step)| *step)
    }

    /// Makes the next move of a region: returns its source, its line and its destination.
    fn advance(&mut self, region: u64) -> (Place, Place, Place) {
        let (_, lines) = self.lines(region);
        let (_, gap) = StartGap::start_and_gap(lines, self.regions[&region].moves);
        let from = if gap == 0 { lines } else { gap - 1 };
        let (from, to) = (self.array(region, from), self.array(region, gap));
        let line = self.line_at(from).expect("only the gap has none");
        self.moves += 1;
        self.regions.entry(region).or_default().moves += 1;
        (from, line, to)
    }

    fn register(&self, region: u64) -> Line {
        let mut line = ZERO_LINE;
        let bits = match self.params.registers {
            Registers::Byte => 8,
            Registers::TwoBytes => 16,
            _ => u64::BITS,
        };
        let moves = self.regions[&region].moves & (u64::MAX >> (u64::BITS - bits));
        line[COUNT].copy_from_slice(&moves.to_le_bytes());
        line
    }

    /// Counts figures from zero again.
    pub fn forget_figures(&mut self) {
        self.moves = 0;
        self.regions
            .values_mut()
            .for_each(|state| state.handled = 0);
    }

    /// The number of lines moved since figures were last reset.
    pub fn moves(&self) -> u64 {
        self.moves
    }

    /// The number of counted periods that the medium survives until its first line has had `endurance` writes. `worn`
    /// has the array's writes of each place, without moves. Registers in the medium do not move, and wear too.
    pub fn lasts(&self, worn: &FxHashMap<u64, u64>, endurance: f64) -> Option<f64> {
        let mut of_region: FxHashMap<u64, Vec<(u64, u64)>> = FxHashMap::default();
        for (place, writes) in worn {
            if let Some((region, line)) = self.region_of(Place(*place)) {
                of_region.entry(region).or_default().push((line, *writes));
            }
        }
        let lasting = of_region.into_iter().filter_map(|(region, worn)| {
            let (_, lines) = self.lines(region);
            let handled = self.regions.get(&region)?.handled.max(1) as f64;
            // Of all that has been counted, one rotation takes so much.
            let rotation = (self.params.writes_per_move * (lines + 1)) as f64 / handled;
            let mut each = vec![1.0; lines as usize]; // the move itself
            for (line, writes) in worn {
                // For one move in a rotation the place is the gap.
                each[line as usize] += writes as f64 * rotation * lines as f64 / (lines + 1) as f64;
            }
            let lasts = rotations(&each, endurance) * rotation;
            let register = endurance * rotation / (lines + 1) as f64;
            Some(match self.params.registers {
                Registers::Reserve => lasts,
                _ => lasts.min(register),
            })
        });
        // Lines that stay where they are.
        let fixed = worn.iter().filter(|(place, _)| **place >= self.end);
        let fixed = fixed.map(|(_, writes)| endurance / *writes as f64);
        lasting.chain(fixed).reduce(f64::min)
    }
}

/// A medium at rest, addressed by the places that the layers know.
pub struct Places<'i> {
    image: &'i mut Image,
    levelling: Option<&'i StartGap>,
}

impl<'i> Places<'i> {
    /// The medium `image`, in which lines lie as `levelling` says, if it is given.
    pub fn new(image: &'i mut Image, levelling: Option<&'i StartGap>) -> Places<'i> {
        Places { image, levelling }
    }

    fn at(&self, place: Place) -> Place {
        self.levelling
            .map_or(place, |levelling| levelling.at(place))
    }

    /// The line at `place`, `None` if it was never written.
    pub fn read(&self, place: Place) -> Option<Line> {
        self.image.read(self.at(place))
    }

    /// The sideband of the line at `place`.
    pub fn sideband(&self, place: Place) -> Option<[u8; 8]> {
        self.image.sideband(self.at(place))
    }

    /// Writes the given words of the line at `place`, and its sideband.
    pub fn write(&mut self, place: Place, line: &Line, words: u8, sideband: Option<[u8; 8]>) {
        let at = self.at(place);
        self.image.write(at, line, words, sideband);
    }

    /// The lines of `region` that have been written, in order.
    pub fn written_in(&self, region: &Region) -> Vec<Place> {
        match self.levelling {
            None => self.image.written_in(region),
            Some(levelling) => levelling.lines_of(region, |part| self.image.written_in(part)),
        }
    }
}

impl Plan {
    #[inline]
    pub(super) fn at(&self, place: Place) -> Place {
        match &self.levelling {
            None => Place(place.0 | self.medium),
            Some(levelling) => levelling.at(place),
        }
    }

    /// Counts a write of `place`, which waits for `gate`, and returns the step that it has to wait for.
    #[cold]
    pub(super) fn levelled(&mut self, place: Place, gate: Step) -> Step {
        let levelling = self.levelling.as_mut().expect("wear is levelled");
        self.worn.get_or_insert_default();
        match levelling.written(place) {
            Some(settled) => self.both(gate, settled),
            None => gate,
        }
    }

    pub(crate) fn level(&mut self) {
        let due = |plan: &mut Plan| plan.levelling.as_mut()?.due.pop();
        while let Some(region) = due(self) {
            self.because(Cause::Levelling).move_line(region);
        }
    }

    fn move_line(&mut self, region: u64) {
        let mut levelling = self.levelling.take().expect("wear is levelled");
        let (from, line, to) = levelling.advance(region);
        let (register, at) = (levelling.register(region), levelling.registers.line(region));
        let state = levelling.regions.entry(region).or_default();
        state.unsettled.retain(|(_, step)| !self.is_past(*step));
        let before = state.unsettled.last().map_or(Step::PAST, |last| last.1);

        let got = self.read_bare(from, Step::PAST);
        let beside = self.contents.newest_sideband(from);
        let moved = Moved {
            only: true,
            whole: true,
            unknown: got.value.is_none(),
        };
        let data = got.value.unwrap_or(ZERO_LINE);
        let data = (line, At::new(&data, got.at), beside, moved);
        let counted = Moved {
            only: true,
            ..Moved::default()
        };
        let kept = |ready: Step| (at, At::new(&register, ready), None, counted);
        let settled = match levelling.params.registers {
            Registers::Reserve => {
                let stored = self.put_at(to, data, 0xff, before, Queue::Data);
                self.registers(at, &register, stored.accepted, &[])
            }
            Registers::Group | Registers::Byte | Registers::TwoBytes => {
                let stored = self.put_at(to, data, 0xff, before, Queue::Data);
                let register = self.put_at(at, kept(Step::PAST), 1, Step::PAST, Queue::Data);
                self.group(&[stored, register]);
                stored.accepted
            }
            Registers::After => {
                let stored = self.put_at(to, data, 0xff, before, Queue::Data);
                let kept = kept(stored.accepted);
                self.put_at(at, kept, 1, Step::PAST, Queue::Data).accepted
            }
            Registers::Late => {
                self.put_at(to, data, 0xff, Step::PAST, Queue::Data);
                self.put_at(at, kept(Step::PAST), 1, Step::PAST, Queue::Data);
                Step::PAST
            }
            Registers::Before => {
                let register = self.put_at(at, kept(got.at), 1, before, Queue::Data);
                let gate = register.accepted;
                self.put_at(to, data, 0xff, gate, Queue::Data).accepted
            }
        };
        levelling
            .regions
            .entry(region)
            .or_default()
            .unsettled
            .push((line, settled));
        self.exercise(&LINE_MOVED);
        let (_, lines) = levelling.lines(region);
        let moves = levelling.moves_of(region);
        if moves.is_multiple_of(lines + 1) {
            self.exercise(&GAP_ROUND);
        }
        if moves.is_multiple_of(lines * (lines + 1)) {
            self.exercise(&REGION_ROUND);
        }
        self.levelling = Some(levelling);
    }

    pub(crate) fn flush_levelling(&mut self) {
        let Some(levelling) = self.levelling.take() else {
            return;
        };
        let mut regions: Vec<u64> = levelling.regions.keys().copied().collect();
        regions.sort_unstable();
        for region in regions {
            let (at, register) = (levelling.registers.line(region), levelling.register(region));
            let kept = self
                .contents
                .newest(at)
                .map_or(levelling.params.first_move, |line| count(&line));
            if kept != count(&register) {
                let moved = Moved {
                    only: true,
                    ..Moved::default()
                };
                let data = (at, At::past(&register), None, moved);
                self.because(Cause::Levelling)
                    .put_at(at, data, 1, Step::PAST, Queue::Data);
            }
        }
        self.levelling = Some(levelling);
    }

    pub(crate) fn recover_levelling(&mut self) {
        let Some(mut levelling) = self.levelling.take() else {
            return;
        };
        let registers = self.contents.written(&levelling.registers).into_iter();
        let registers = registers.filter_map(|place| Some((place, self.contents.newest(place)?)));
        levelling.recover(registers);
        self.levelling = Some(levelling);
    }

    /// The lines of `region` that have been written, wherever they lie now.
    #[cold]
    pub(super) fn written_anywhere(&self, levelling: &StartGap, region: &Region) -> Vec<Place> {
        levelling.lines_of(region, |part| {
            let mut written = self.contents.written(part);
            written.retain(|at| self.contents.newest(*at).is_some());
            written
        })
    }
}
