//! The cost of an integrity's recovery after a power cut: what it reads, computes and writes, counted in the recovery
//! itself, and how long that takes by the engine. A medium is filled, all is written back, further writes leave dirty
//! lines in the caches, and the power goes. Left out: the reads of the layers above in their own recoveries;
//! dependencies within the recovery, so reads go as fast as the medium serves them, and writes follow.

use std::collections::BTreeSet;

use sardonyx_base::random::splitmix64;

use sardonyx::config::Machine;
use sardonyx::controller::designs::{Stack, UnknownDesign};
use sardonyx::controller::layers::PowerFail;
use sardonyx::controller::{Controller, Write};
use sardonyx::engine::Engine;
use sardonyx::line::{LINE_BYTES, Line, Logical, Place};
use sardonyx::medium::image::Image;
use sardonyx::medium::layout::Layout;
use sardonyx::medium::params::Unit;
use sardonyx::plan::start_gap::Places;
use sardonyx::plan::untimed::{Counted, Untimed};
use sardonyx::plan::{At, Step};
use sardonyx::stats::Cause;
use sardonyx::units::Time;

/// After this many requests the writes are settled in the image, which bounds the memory of a fill.
const TOGETHER: u64 = 4096;
/// This many accesses are planned at once when they are timed, which bounds the scoreboard.
const AT_ONCE: usize = 4096;

#[derive(Clone, Copy, Debug)]
pub struct Filled {
    pub lines: u64,
    /// The number of lines that are written once, from the first line on.
    pub written: u64,
    /// The number of further writes, after all was written back, of lines drawn among these.
    pub since: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Restart {
    pub reads: u64,
    /// Keyed hashes: one for each line that integrity itself has read, and the other uses of the unit.
    pub hashes: u64,
    pub writes: u64,
    /// The time that this takes on a machine that does nothing else.
    pub time: Time,
    /// Metadata lines of the integrity that an orderly shutdown would have written at the time of the cut.
    pub dirty: u64,
    pub refused: bool,
}

/// Recovers `design` on `machine` after a cut of a medium that was written as `filled` says.
///
/// # Errors
/// No design has that name.
pub fn restart(machine: &Machine, design: &str, filled: Filled) -> Result<Restart, UnknownDesign> {
    let stack = Stack::under(design, &machine.settings)?;
    let mut medium = FillingMedium::begin(stack, machine, filled.lines);
    for line in 0..filled.written {
        medium.write(line, line + 1);
    }
    medium.flush();
    for number in 0..filled.since {
        let line = splitmix64(number) % filled.written.max(1);
        medium.write(line, filled.written + number + 1);
    }
    medium.settle();
    Ok(medium.cut(stack, machine, filled.lines))
}

struct FillingMedium {
    controller: Controller,
    untimed: Untimed,
    kept: Option<Box<dyn PowerFail>>,
    asked: u64,
}

impl FillingMedium {
    fn begin(stack: Stack, machine: &Machine, lines: u64) -> FillingMedium {
        let mut layout = Layout::new(lines);
        let controller = stack.build(&machine.settings, &mut layout);
        let mut untimed = Untimed::new(Image::new());
        let mut kept = stack.power_fail(&machine.settings, &layout);
        if let Some(kept) = &mut kept {
            kept.begin(&mut Places::new(
                untimed.image_mut(),
                controller.levelling(),
            ));
        }
        FillingMedium {
            controller,
            untimed,
            kept,
            asked: 0,
        }
    }

    fn write(&mut self, line: u64, content: u64) {
        let data = content_of(content);
        let controller = &mut self.controller;
        let write = Write::new(Logical(line), At::past(&data));
        self.untimed.plan(|plan| controller.write(write, plan));
        self.asked += 1;
        if self.asked.is_multiple_of(TOGETHER) {
            self.settle();
        }
    }

    fn flush(&mut self) {
        let controller = &mut self.controller;
        self.untimed.plan(|plan| controller.flush(plan));
        self.settle();
    }

    /// Brings all writes into the persistence domain, in the order of handling, and what registers have.
    fn settle(&mut self) {
        let writes: Vec<_> = self.untimed.writes(0).collect();
        let registers = self.untimed.asked().registers().into_iter();
        let registers: Vec<_> = registers.cloned().collect();
        self.untimed.forget();
        let image = self.untimed.image_mut();
        for write in writes {
            image.write(write.at, &write.line, write.words, write.sideband);
            write.moved.settle(write.at, write.sideband, image);
            if let Some(kept) = &mut self.kept {
                kept.accepted(
                    write.place,
                    &mut Places::new(image, self.controller.levelling()),
                );
            }
        }
        // What a register has is as new as any write of its line that has left the chip.
        for register in registers {
            image.write(register.place, &register.line, 0xff, None);
        }
    }

    /// Cuts the power and has a fresh controller recover.
    fn cut(mut self, stack: Stack, machine: &Machine, lines: u64) -> Restart {
        let from = self.untimed.next_order();
        let controller = &mut self.controller;
        self.untimed.plan(|plan| controller.flush(plan));
        let on_chip = self.kept.as_ref().and_then(|kept| kept.on_chip()).cloned();
        let is_medium = |place: &Place| !on_chip.as_ref().is_some_and(|own| own.contains(*place));
        let dirty: BTreeSet<Place> = self.written_by(from).filter(is_medium).collect();
        self.untimed.forget();

        let mut fresh = stack.build(&machine.settings, &mut Layout::new(lines));
        let from = self.untimed.next_order();
        self.untimed.count();
        self.untimed.plan(|plan| fresh.recover_integrity(plan));
        let refused = !self.untimed.refused().is_empty();
        let counted = self.untimed.counted(from);
        self.untimed.forget();
        let own = counted.looked[..counted.outright].iter().copied();
        let own = own.filter(is_medium).collect::<BTreeSet<Place>>().len() as u64;
        let distinct: BTreeSet<Place> = counted.looked.iter().copied().filter(is_medium).collect();
        let reads: Vec<Place> = distinct.into_iter().collect();
        let written = counted.written.into_iter();
        let written: Vec<(Place, Line)> = written.filter(|(place, _)| is_medium(place)).collect();
        let hashes = counted.hashes + own;
        Restart {
            reads: reads.len() as u64,
            hashes,
            writes: written.len() as u64,
            time: timed(machine, self.untimed.into_image(), &reads, hashes, &written),
            dirty: dirty.len() as u64,
            refused,
        }
    }

    /// Places that were written on behalf of integrity, from the write numbered `from` on.
    fn written_by(&self, from: u64) -> impl Iterator<Item = Place> + use<> {
        let Counted { written, .. } = self.untimed.counted(from);
        written.into_iter().map(|(place, _)| place)
    }
}

/// Returns the time that `reads`, hashes and writes take on a machine that does nothing else.
fn timed(
    machine: &Machine,
    image: Image,
    reads: &[Place],
    hashes: u64,
    written: &[(Place, Line)],
) -> Time {
    let mut engine = Engine::with_image(&machine.engine, image);
    let mut left = hashes;
    for chunk in reads.chunks(AT_ONCE) {
        engine.background(|plan| {
            let plan = &mut plan.because(Cause::Integrity);
            for place in chunk {
                let got = plan.read(*place, Step::PAST);
                if left > 0 {
                    plan.unit(Unit::Mac, got.at);
                    left -= 1;
                }
            }
        });
        engine.run_to_rest();
    }
    while left > 0 {
        let now = left.min(AT_ONCE as u64);
        engine.background(|plan| {
            let plan = &mut plan.because(Cause::Integrity);
            for _ in 0..now {
                plan.unit(Unit::Mac, Step::PAST);
            }
        });
        engine.run_to_rest();
        left -= now;
    }
    for chunk in written.chunks(AT_ONCE) {
        engine.background(|plan| {
            let plan = &mut plan.because(Cause::Integrity);
            for (place, line) in chunk {
                plan.write(*place, At::past(line), Step::PAST);
            }
        });
        engine.run_to_rest();
    }
    engine.now()
}

fn content_of(number: u64) -> Line {
    let mut line = [0; LINE_BYTES];
    for (word, bytes) in line.chunks_exact_mut(8).enumerate() {
        let drawn = splitmix64(number.wrapping_mul(8) + word as u64);
        bytes.copy_from_slice(&drawn.to_le_bytes());
    }
    line
}
