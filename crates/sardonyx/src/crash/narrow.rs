//! A machine that a run fills: its medium or its hardware log has as much room as the programs take, or less.

use super::caught::caught;
use super::golden::Golden;
use super::history::{HistoryError, adverse, set_up};
use crate::config::Machine;
use crate::controller::designs::Stack;
use crate::controller::logging::undo::BUCKETS;
use crate::controller::mapping::places::RETIRED;
use crate::machine::OpSource;
use crate::mechanisms::Value;
use crate::medium::layout::Layout;
use crate::medium::params::CRASH_SHORT;
use crate::plan::journal::Journal;
use crate::plan::script::Scripting;
use crate::settings::Settings;
use crate::workload::ProgramSpec;

/// Places or buckets that are taken away beyond those asked for, until a run ends for want of them.
const MOST_NARROWED: u64 = 16;

/// Whether a run may end because something is full.
pub(super) fn may_fill(settings: &Settings) -> bool {
    settings.get(&CRASH_SHORT) > 0
}

/// Takes places or buckets away from `machine`, so many that `specs` fill it. What they take hangs on what lines
/// share and on who goes first, so a run in which there are enough tells; and where the run has to end, further
/// runs tell with how few it does.
pub(super) fn narrow(
    machine: &mut Machine,
    design: &str,
    (specs, first): (&[ProgramSpec], u64),
    seed: u64,
) -> Result<(), HistoryError> {
    let (stack, drawn) = (Stack::named(design)?, Scripting::default());
    let run = |machine: &Machine| -> Result<Box<Journal>, HistoryError> {
        let (programs, _) = Golden::all(specs, first)?;
        let (image, _) = set_up(machine, &stack, &programs)?;
        let mut layout = Layout::new(machine.engine.medium.geometry.lines());
        let controller = stack.build(&machine.settings, &mut layout);
        let (mut again, _) = Golden::all(specs, first)?;
        let sources = again.iter_mut();
        let sources = sources.map(|program| Box::new(program) as Box<dyn OpSource>);
        let (named, sources) = ((design, controller, layout), sources.collect());
        let run = caught(|| adverse(machine, named, image, sources, (seed, &drawn)));
        Ok(run.map_err(HistoryError::Broken)??.0)
    };
    let enough = run(machine)?;
    let lines = machine.engine.medium.geometry.lines();
    let (places, buckets) = (
        enough.reached.of(Value::PlacesInUse),
        enough.reached.of(Value::LogBuckets),
    );
    let short = machine.settings.get(&CRASH_SHORT);
    let take = |machine: &mut Machine, less: u64| {
        if places > 0 {
            let retired = lines - places.saturating_sub(less).min(lines);
            machine.settings.set(&RETIRED, retired);
        }
        if buckets > 0 {
            let there = (buckets + 1).saturating_sub(less);
            machine.settings.set(&BUCKETS, there.max(1));
        }
    };
    // Setup needs places as well, so a run may not even begin with as few as would end it.
    let mut begins = 0;
    for less in (short..short + MOST_NARROWED).chain((1..short).rev()) {
        take(machine, less);
        match run(machine) {
            Ok(narrowed) if narrowed.ended.is_some() || short == 1 => return Ok(()),
            Ok(_) => begins = begins.max(less),
            Err(HistoryError::Exhausted(_)) => {}
            Err(why) => return Err(why),
        }
    }
    take(machine, begins);
    Ok(())
}
