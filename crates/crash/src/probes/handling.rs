//! Handles the history's own requests once more in an empty medium: under another key, for other lines, with other
//! contents.

use std::collections::BTreeMap;

use rustc_hash::FxHashSet;

use super::life::UntimedLife;
use crate::history::History;
use crate::pads::{self, Encrypted, Held};
use sardonyx::controller::encryption::pad::OTHER_KEY;
use sardonyx::controller::{Class, Controller, Write};
use sardonyx::line::{Line, Logical, Place, ZERO_LINE};
use sardonyx::medium::image::Image;
use sardonyx::medium::layout::Layout;
use sardonyx::plan::At;
use sardonyx::plan::journal::MediumWrite;
use sardonyx::plan::untimed::Untimed;
use sardonyx::settings::{Settings, Value};

/// Each transaction has this many requests when requests are handled again.
const TOGETHER: usize = 12;
/// Lines have numbers of fewer bits than this when requests are handled again.
const MOST_BITS: u32 = 38;

/// The way in which requests are handled again.
#[derive(Clone, Copy)]
pub struct Handling<'h> {
    /// The number of the key's byte that differs, the first being 1; 0 stands for the processor's own key.
    pub other_key: u64,
    /// Maps a line's number to that of the line in its place.
    pub moved: &'h dyn Fn(u64) -> u64,
    /// The highest bit of the line numbers that the medium has room for.
    pub high: u32,
    /// The mask that contents are XORed with; lines of zeros stay zeros where a mapping treats them apart.
    pub mask: Option<Line>,
    /// If set, each request is made twice: the second time for the line whose number differs in this bit, with other
    /// contents.
    pub twin: Option<(u32, Line)>,
    pub begin: Option<(&'static str, u64)>,
}

impl Default for Handling<'_> {
    fn default() -> Self {
        Handling {
            other_key: 0,
            moved: &|line| line,
            high: 0,
            mask: None,
            twin: None,
            begin: None,
        }
    }
}

pub struct Again {
    pub covered: Vec<Encrypted>,
    /// Writes of the medium that are not encrypted.
    pub beside: Vec<MediumWrite>,
    /// The bytes beside lines, whatever they hold.
    pub sidebands: Vec<(Place, [u8; 8])>,
    pub layout: Layout,
    held: Held,
    /// The first line that a recovered controller reads otherwise than it was last written, if any; checked where lines
    /// have twins, or counters begin elsewhere.
    pub misread: Option<Logical>,
    /// The first place that such a controller has refused, if any.
    pub refused: Option<Place>,
}

impl Again {
    fn new(untimed: &Untimed, layout: Layout, held: Held) -> Again {
        let mut again = Again {
            covered: pads::written(untimed, 0, &held),
            beside: Vec::new(),
            sidebands: Vec::new(),
            layout,
            held,
            misread: None,
            refused: None,
        };
        again.and_beside(untimed);
        again
    }

    /// Adds what `untimed` has written under no pad, as a recovery does too.
    fn and_beside(&mut self, untimed: &Untimed) {
        // Registers are dumped as they are, under no pad; entries of a log that wait in some were encrypted before.
        let registers = untimed.asked().registers().into_iter();
        let registers = registers.filter(|write| !self.held.log.contains(&write.place.0));
        self.beside.extend(registers.cloned());
        for write in untimed.writes(0).filter(|write| !write.is_move()) {
            let beside = write.sideband.map(|beside| (write.place, beside));
            self.sidebands.extend(beside);
            let is_clear = untimed.asked().handled.is_empty() && !self.held.covers(write.place)
                || Encrypted::from_write(&write, untimed.asked(), &self.held).is_none();
            if is_clear {
                self.beside.push(write);
            }
        }
    }
}

impl History {
    /// Handles `count` write requests of the history, from the first on and round again, as `how` says in an empty
    /// medium, and returns what they left; `None` if the medium has no such line. A hardware log gets the old contents
    /// of lines, in transactions of some requests each.
    pub fn again(&self, how: &Handling, count: usize) -> Option<Again> {
        let mut settings = Settings::clone(&self.small);
        settings.set(&OTHER_KEY, how.other_key);
        if let Some((key, value)) = how.begin {
            settings.put(key, Value::Int(value));
        }
        let high = how.twin.map_or(how.high, |(bit, _)| bit);
        let lines = match high {
            0..MOST_BITS => self.data_lines().max(2 << high),
            _ => return None,
        };
        let mut layout = Layout::new(lines);
        let controller = self.stack.build(&settings, &mut layout);
        let mut life = UntimedLife::recovered(controller, Image::sparse());
        let held = self.handle_again(how, count, lines, &mut life)?;
        life.flush();
        let under_pads = Held::from_stack(&layout, &self.stack, &settings);
        let mut again = Again::new(&life.untimed, layout, under_pads);
        life.untimed.settle();
        let mut recovered = life.then(self.stack.build(&settings, &mut Layout::new(lines)));
        recovered.ask(Controller::undo);
        recovered.flush();
        again.and_beside(&recovered.untimed);
        again.refused = recovered.untimed.refused().first().copied();
        let asks = how.twin.is_some() || how.begin.is_some();
        if asks && recovered.fits().is_ok() && again.refused.is_none() {
            again.misread = recovered.misread(&held);
        }
        Some(again)
    }

    /// Handles the requests, and returns the contents of lines then; `None` if there is no such line.
    fn handle_again(
        &self,
        how: &Handling,
        count: usize,
        lines: u64,
        life: &mut UntimedLife,
    ) -> Option<BTreeMap<Logical, Line>> {
        let logs = self.stack.keeps_log();
        let (mut held, mut logged) = (BTreeMap::new(), FxHashSet::default());
        let mut begun = usize::MAX;
        let apart = self.stack.mapping.zeros_apart;
        for (index, handled) in (0..count).zip(self.journal.handled.iter().cycle()) {
            // A mapping may treat zeros of a log either way, and a mask must not change which.
            if apart && handled.class == Class::Log && handled.data == ZERO_LINE {
                continue;
            }
            let line = Logical((how.moved)(handled.line.0));
            if line.0 >= lines {
                return None;
            }
            let twin = (how.twin).map(|(bit, mask)| (Logical(line.0 ^ 1 << bit), Some(mask)));
            for (line, mask) in [(line, how.mask)].into_iter().chain(twin) {
                let data = self.masked(handled.data, mask);
                let old = held.insert(line, data);
                if logs && index % TOGETHER == 0 && begun != index {
                    begun = index;
                    life.ask(|controller, plan| controller.commit(0, plan));
                    life.begin(0, (index / TOGETHER) as u64 + 1);
                    logged.clear();
                }
                if let Some(old) = old.filter(|_| logs && logged.insert(line)) {
                    life.log(0, line, &old);
                }
                life.handle(Write {
                    class: handled.class,
                    order: handled.persist,
                    ..Write::new(line, At::past(&data))
                });
            }
        }
        Some(held)
    }

    /// XORs the data with the mask; lines of zeros stay zeros where the mapping treats them apart.
    fn masked(&self, mut data: Line, mask: Option<Line>) -> Line {
        let is_apart = self.stack.mapping.zeros_apart && data == ZERO_LINE;
        for (byte, mask) in data
            .iter_mut()
            .zip(mask.filter(|_| !is_apart).into_iter().flatten())
        {
            *byte ^= mask;
        }
        data
    }
}
