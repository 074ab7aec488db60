//! A recorded program under a design that it does not know: the lines that can be read after a power cut.
//!
//! The program's own recovery runs elsewhere, on what is read here. A line that reads as something that the program
//! never stored there is of no use to any recovery: its bytes are there, but the counter or the mapping that belongs to
//! them is not.

use crate::history::machine::{adverse, fresh, shrink, write_all};
use crate::history::{HistoryError, Result};
use crate::panics::caught;
use crate::platform::{Platform, Survivors};
use sardonyx::config::Machine;
use sardonyx::controller::Write;
use sardonyx::controller::designs::Stack;
use sardonyx::line::{Line, Logical};
use sardonyx::machine::{OpSource, read_untimed};
use sardonyx::medium::image::Image;
use sardonyx::medium::layout::Layout;
use sardonyx::plan::At;
use sardonyx::plan::script::Scripting;
use sardonyx::plan::untimed::Untimed;

pub type Lines = [(u64, Line)];

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Readable {
    pub unreadable: Vec<u64>,
    /// The number of lines that were read at each cut.
    pub lines: u64,
    pub writes: u64,
    /// The time from the first event to the last.
    pub nanoseconds: f64,
}

/// Cuts the power of a run of `source` at `cuts` positions, evenly spread. Memory begins with the lines `initial`.
/// `unreadable` is given these lines at each cut, as they then read, and returns how many hold what the program never
/// stored there.
///
/// # Errors
/// There is no such design, or the run cannot go on.
pub fn readable(
    (machine, design): (&Machine, &str),
    initial: &Lines,
    source: Box<dyn OpSource + '_>,
    unreadable: &mut dyn FnMut(&Lines) -> u64,
    (platform, cuts, seed): (Platform, u64, u64),
) -> Result<Readable> {
    let stack = Stack::under(design, &machine.settings)?;
    let end = initial.iter().map(|(line, _)| line + 1).max().unwrap_or(1);
    let mut machine = machine.with_cores(1);
    shrink(&mut machine, end * 2, 1);
    let data_lines = machine.engine.medium.geometry.lines();
    let small = fresh(&machine.settings);
    let run = || -> Result<Readable> {
        let controller = stack.build(&machine.settings, &mut Layout::new(data_lines));
        let mut untimed = Untimed::new(Image::new());
        let lines = initial.iter();
        let lines = lines.map(|(line, data)| Write::new(Logical(*line), At::past(data)));
        write_all(controller, &mut untimed, lines)?;
        untimed.settle();
        let image = untimed.into_image();
        let mut layout = Layout::new(data_lines);
        let controller = stack.build(&machine.settings, &mut layout);
        let levelling = controller.levelling().cloned();
        let power_fail = stack.power_fail(&machine.settings, &layout);
        let (journal, _) = adverse(
            &machine,
            (design, controller, layout),
            image.copy(),
            vec![source],
            (seed, &Scripting::default()),
        )?;
        let mut found = Readable {
            lines: initial.len() as u64,
            writes: journal.array.len() as u64,
            ..Readable::default()
        };
        if let (Some((first, _)), Some((last, _))) = (journal.events.first(), journal.events.last())
        {
            found.nanoseconds = (*last - *first).ns();
        }
        let positions = journal.events.len() as u64;
        let mut survivors = Survivors::new(&journal, image, platform, seed)
            .levelled(levelling)
            .guarded(power_fail);
        let mut changed = Vec::new();
        for cut in 1..=cuts.min(positions) {
            while survivors.position() < positions * cut / cuts.min(positions) {
                survivors.advance(&mut changed);
            }
            changed.clear();
            let mut controller = stack.build(&small, &mut Layout::new(data_lines));
            let untimed = &mut survivors.untimed;
            untimed.plan(|plan| controller.recover(plan));
            let reads = initial.iter().map(|(line, _)| {
                let read = read_untimed(&mut controller, untimed, *line);
                (*line, read)
            });
            let reads: Vec<(u64, Line)> = reads.collect();
            untimed.forget();
            found.unreadable.push(unreadable(&reads));
        }
        Ok(found)
    };
    caught(run).map_err(HistoryError::Broken)?
}
