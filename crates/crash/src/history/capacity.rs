//! A machine that a run fills: its medium or its hardware log has as much room as the programs take, or less.

use crate::history::golden::Golden;
use crate::history::{HistoryError, Result, adverse, set_up};
use crate::panics::caught;
use sardonyx::config::Machine;
use sardonyx::controller::designs::Stack;
use sardonyx::controller::logging::undo::BUCKETS;
use sardonyx::controller::mapping::places::RETIRED;
use sardonyx::machine::OpSource;
use sardonyx::mechanisms::Value;
use sardonyx::medium::layout::Layout;
use sardonyx::medium::params::CRASH_SHORT;
use sardonyx::plan::journal::Journal;
use sardonyx::plan::script::Scripting;
use sardonyx::settings::Settings;
use sardonyx_workload::ProgramSpec;

/// Places or buckets that are taken away beyond those asked for, until a run ends for want of them.
const MOST_NARROWED: u64 = 16;

/// Whether a run may end because something is full.
pub(crate) fn may_fill(settings: &Settings) -> bool {
    settings.get(&CRASH_SHORT) > 0
}

/// Takes places or buckets away from `machine`, so many that `specs` fill it. What they take hangs on what lines
/// share and on who goes first, so a run in which there are enough tells; and where the run has to end, further
/// runs tell with how few it does.
pub(crate) fn narrow(
    machine: &mut Machine,
    design: &str,
    (specs, first): (&[ProgramSpec], u64),
    seed: u64,
) -> Result<()> {
    let (stack, drawn) = (Stack::named(design)?, Scripting::default());
    let run = |machine: &Machine| -> Result<Box<Journal>> {
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
    let mut enough = run(machine)?;
    let lines = machine.engine.medium.geometry.lines();
    let buckets = enough.reached.of(Value::LogBuckets);
    if buckets > 0 {
        // Each bucket that is used takes places, so a log has as few as will do before those are counted.
        machine.settings.set(&BUCKETS, buckets + 1);
        enough = run(machine)?;
    }
    let places = enough.reached.of(Value::PlacesInUse);
    let short = machine.settings.get(&CRASH_SHORT);
    let most = places.max(buckets);
    if most == 0 {
        return Ok(()); // nothing of it can be full
    }
    // A run is tried for each number up to it, so it has a bound.
    let most = most + MOST_NARROWED;
    if short > most {
        return Err(HistoryError::Short { short, most });
    }
    let take = |machine: &mut Machine, (places_less, buckets_less): (u64, u64)| {
        if buckets > 0 {
            let there = (buckets + 1).saturating_sub(buckets_less);
            machine.settings.set(&BUCKETS, there.max(1));
        }
        if places > 0 {
            // A log has places of its own beside those of the programs' lines.
            let mut layout = Layout::new(lines);
            drop(stack.build(&machine.settings, &mut layout));
            let there = layout.data_lines();
            let retired = there - places.saturating_sub(places_less).min(there);
            machine.settings.set(&RETIRED, retired);
        }
    };
    // Setup needs places as well, so a run may not even begin with as few as would end it.
    let mut begins = 0;
    for less in (short..short + MOST_NARROWED).chain((1..short).rev()) {
        take(machine, (less, less));
        match run(machine) {
            Ok(narrowed) if short == 1 => {
                // Where the log is full first, the medium alone is short.
                if narrowed.ended.is_some() && places > 0 {
                    take(machine, (less, 0));
                }
                return Ok(());
            }
            Ok(narrowed) if narrowed.ended.is_some() => return Ok(()),
            Ok(_) => begins = begins.max(less),
            Err(HistoryError::Exhausted(_)) => {}
            Err(why) => return Err(why),
        }
    }
    take(machine, (begins, begins));
    Ok(())
}
