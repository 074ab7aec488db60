//! The machine of a history: a medium as small as the programs allow, small caches on chip, the programs' setup, and a
//! run with adversity or without.

use crate::history::error::Result;
use crate::history::golden::Golden;
use crate::pads::{self, Encrypted, Held};
use sardonyx::config::Machine;
use sardonyx::controller::designs::{self, Stack};
use sardonyx::controller::{Controller, Write};
use sardonyx::line::{LINE_BYTES, Logical};
use sardonyx::machine::{Adversity, OpSource, RunError, System, Warmup, write_untimed};
use sardonyx::medium::image::Image;
use sardonyx::medium::layout::Layout;
use sardonyx::medium::params::{CRASH_CACHED, CRASH_FIRST, CRASH_SHORT, CacheLevel};
use sardonyx::memory::Memory;
use sardonyx::plan::journal::Journal;
use sardonyx::plan::orders::Choice;
use sardonyx::plan::script::Scripting;
use sardonyx::plan::untimed::Untimed;
use sardonyx::plan::{At, Holding};
use sardonyx::settings::Settings;

pub(crate) fn may_fill(settings: &Settings) -> bool {
    settings.get(&CRASH_SHORT) > 0
}

/// Runs `sources`, one a core, over `image` under the fresh `controller`, on a machine as adversarial as its
/// instructions allow. Returns the journal and the choices made.
pub(crate) fn adverse<'s>(
    machine: &Machine,
    (design, controller, layout): (&str, Controller, Layout),
    image: Image,
    sources: Vec<Box<dyn OpSource + 's>>,
    (seed, scripting): (u64, &Scripting),
) -> Result<(Box<Journal>, Vec<Choice>), RunError> {
    let mut adversity = Adversity::new(seed, scripting);
    let delays = adversity.seed();
    let mut machine = machine.clone();
    let level = |lines: usize, ways: usize| CacheLevel {
        bytes: (lines * LINE_BYTES) as u64,
        ways,
        ..CacheLevel::default()
    };
    let (lines, own, ways) = match machine.settings.get(&CRASH_CACHED) as usize {
        0 => (adversity.cached_lines, adversity.cached_lines / 4, [4, 8]),
        // With one way a line also goes if another core wants its set between a store and its write-back.
        few @ 1..8 => (few.next_power_of_two(), 1, [1, 1]),
        // The last level has fewer ways than L1, so a line that it gives up is often still in use in L1.
        few => (few.next_power_of_two(), few.next_power_of_two() / 2, [8, 2]),
    };
    machine.caches.l1 = level(own, ways[0]);
    machine.caches.l2 = CacheLevel::default();
    machine.caches.llc = level((lines * sources.len()).next_power_of_two(), ways[1]);
    let holding = Holding::Drawn(delays, scripting.clone());
    let memory = Memory::recovering(&machine, design, controller, layout, image, holding);
    let sources = sources.into_iter();
    let sources = sources.map(|source| adversity.pausing(source)).collect();
    let system = System::of_programs(&machine, memory, sources, Warmup::Requests(0))?;
    let system = system.under(adversity);
    match may_fill(&machine.settings) {
        true => system.record_until_full(),
        false => system.record(),
    }
}

/// Runs `sources` on a machine without adversity: nothing leaves the caches by itself, no operation waits without a
/// reason, and writes are `held`. Returns the journal and the choices made.
pub(crate) fn obliging<'s>(
    machine: &Machine,
    (design, controller, layout): (&str, Controller, Layout),
    image: Image,
    sources: Vec<Box<dyn OpSource + 's>>,
    held: Holding,
) -> Result<(Box<Journal>, Vec<Choice>), RunError> {
    let memory = Memory::recovering(machine, design, controller, layout, image, held);
    System::of_programs(machine, memory, sources, Warmup::Requests(0))?.record()
}

/// Shrinks the medium to `lines` lines and `spare` rows: untouched lines show nothing, and a recovery scans all tables
/// that there are.
pub(crate) fn shrink(machine: &mut Machine, lines: u64, spare: u64) {
    let geometry = &mut machine.engine.medium.geometry;
    let row = geometry.channels * geometry.ranks * geometry.banks * geometry.columns;
    geometry.rows = geometry.rows.min(lines.div_ceil(row) + spare);
}

pub(crate) fn fresh(settings: &Settings) -> Settings {
    let mut settings = settings.clone();
    for key in designs::caches() {
        let mut cache = settings.cache(key);
        if key.is_of_lines() {
            (cache.bytes, cache.ways) = (4096, 4);
        } else {
            cache.bytes = cache.bytes.min(1024);
        }
        settings.set_cache(key, cache);
    }
    settings
}

/// Returns the medium after all programs' setup and an orderly shutdown, and the lines encrypted there.
pub(crate) fn set_up(
    machine: &Machine,
    stack: &Stack,
    programs: &[Golden],
) -> Result<(Image, Vec<Encrypted>)> {
    let data_lines = machine.engine.medium.geometry.lines();
    let mut layout = Layout::new(data_lines);
    // Setup begins with small numbers: counters and versions that begin elsewhere do so in the run.
    let mut settings = machine.settings.clone();
    let layers = stack.layers().into_iter();
    let limits = layers.flat_map(|layer| layer.about().limits);
    for key in limits.filter_map(|limit| limit.begins) {
        settings.remove(key.name());
    }
    let controller = stack.build(&settings, &mut layout);
    let mut untimed = Untimed::new(match machine.settings.get(&CRASH_FIRST) {
        0 => Image::new(),
        _ => Image::sparse(),
    });
    // A program that all cores share is set up once, as the first core's.
    let first_only = programs.first().is_some_and(|p| p.joint().is_some());
    let count = if first_only { 1 } else { programs.len() };
    let programs = programs[..count].iter().map(|program| &program.expected);
    let writes = programs.flat_map(|program| {
        let lines = program.region.iter().zip(&program.initial);
        lines.map(|(line, data)| Write {
            class: program.class_of(line),
            ..Write::new(Logical(line), At::past(data))
        })
    });
    write_all(controller, &mut untimed, writes)?;
    let encrypted = pads::written(&untimed, 0, &Held::from_stack(&layout, stack, &settings));
    untimed.settle();
    let mut image = untimed.into_image();
    image.lose_near();
    Ok((image, encrypted))
}

/// Has `controller` make `writes` and shuts it down in order.
pub(crate) fn write_all<'d>(
    mut controller: Controller,
    untimed: &mut Untimed,
    writes: impl Iterator<Item = Write<'d, Logical>>,
) -> Result<()> {
    for write in writes {
        write_untimed(&mut controller, untimed, write);
    }
    untimed.plan(|plan| controller.flush(plan));
    untimed.failure().map_or(Ok(()), |why| Err(why.into()))
}
