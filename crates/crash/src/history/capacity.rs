//! Capacity: machines that a run fills, whose medium or hardware log has as much room as the programs take, or less.

use crate::history::error::{HistoryError, Result};
use crate::history::golden::Golden;
use crate::history::machine::{adverse, set_up};
use crate::panics::caught;
use sardonyx::config::Machine;
use sardonyx::controller::designs::Stack;
use sardonyx::controller::logging::undo::BUCKETS;
use sardonyx::controller::mapping::FULL_MEDIUM;
use sardonyx::controller::mapping::places::{RETIRED, least_lines};
use sardonyx::machine::OpSource;
use sardonyx::mechanisms::Value;
use sardonyx::medium::layout::Layout;
use sardonyx::medium::params::CRASH_SHORT;
use sardonyx::plan::journal::Journal;
use sardonyx::plan::script::Scripting;
use sardonyx_workload::ProgramSpec;

/// At most this many places or buckets are taken away beyond those asked for, until a run ends for want of them.
const MOST_NARROWED: u64 = 16;

/// Takes places or buckets away from `machine`, so many that `specs` fill it. The number in use depends on which lines
/// share and on who goes first, so a run with enough of them tells it; where the run has to end, further runs tell with
/// how few it does.
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
        // Each bucket in use takes places, so the log is made as small as will do before places are counted.
        machine.settings.set(&BUCKETS, buckets + 1);
        enough = run(machine)?;
    }
    let places = enough.reached.of(Value::PlacesInUse);
    let short = machine.settings.get(&CRASH_SHORT);
    let most = places.max(buckets);
    if most == 0 {
        return Ok(()); // nothing of it can be full
    }
    // The search makes one run for each number up to it, so the number has a bound.
    let most = most + MOST_NARROWED;
    if short > most {
        return Err(HistoryError::Short { short, most });
    }
    let used = Used {
        lines,
        places,
        buckets,
    };
    // Setup needs places as well, so a run with as few as would end it may not even begin.
    let mut begins = 0;
    for less in (short..short + MOST_NARROWED).chain((1..short).rev()) {
        used.take(machine, &stack, (less, less));
        match run(machine) {
            Ok(narrowed) if short == 1 => {
                if narrowed.ended.is_some() && places > 0 {
                    used.fill_medium(machine, &stack, &run);
                }
                return Ok(());
            }
            Ok(narrowed) if narrowed.ended.is_some() => return Ok(()),
            Ok(_) => begins = begins.max(less),
            Err(HistoryError::Exhausted(_)) => {}
            Err(why) => return Err(why),
        }
    }
    used.take(machine, &stack, (begins, begins));
    Ok(())
}

/// The room that a run with enough of it uses, in a medium of so many lines.
struct Used {
    lines: u64,
    places: u64,
    buckets: u64,
}

impl Used {
    /// Has a run that may have ended because the log was full end for want of places: the log gets its buckets back. It
    /// has as many places more then, so the medium may have to lose some to be full.
    fn fill_medium(
        &self,
        machine: &mut Machine,
        stack: &Stack,
        run: &impl Fn(&Machine) -> Result<Box<Journal>>,
    ) {
        let fills = |run: Box<Journal>| run.exercised.of(&FULL_MEDIUM) > 0;
        for less in 1..=MOST_NARROWED {
            self.take(machine, stack, (less, 0));
            if run(machine).is_ok_and(fills) {
                return;
            }
        }
        self.take(machine, stack, (1, 0));
    }

    /// Leaves `machine` so many places and buckets less than are used.
    fn take(&self, machine: &mut Machine, stack: &Stack, (places_less, buckets_less): (u64, u64)) {
        if self.buckets > 0 {
            let there = (self.buckets + 1).saturating_sub(buckets_less);
            machine.settings.set(&BUCKETS, there.max(1));
        }
        if self.places > 0 {
            // A log has places of its own, beyond those of the programs' lines.
            let mut layout = Layout::new(self.lines);
            drop(stack.build(&machine.settings, &mut layout));
            let there = layout.data_lines();
            // Places that hold contents of others' lines are none of ours.
            let needed = self.places.saturating_sub(places_less);
            let needed = least_lines(needed, &machine.settings);
            machine.settings.set(&RETIRED, there - needed.min(there));
        }
    }
}
