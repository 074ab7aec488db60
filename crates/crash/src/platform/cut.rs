//! One power cut of a run that is under way: the survivors of its journal. Here the cut is at the present moment, and
//! the program that drives the run continues with what is left; `explore` cuts a finished run at every position.

use crate::platform::{Platform, Survivors};
use sardonyx::config::Machine;
use sardonyx::controller::designs::{Stack, UnknownDesign};
use sardonyx::medium::image::Image;
use sardonyx::medium::layout::Layout;
use sardonyx::plan::journal::Journal;

/// Returns what a cut at the end of `journal`, which began with `image`, leaves in the medium of `design` if reserve
/// power drains what `platform` says. `seed` decides how lines tear, where they do. Lines of a host's own caches are
/// the host's to write.
///
/// # Errors
/// There is no such design.
pub fn survivors(
    machine: &Machine,
    design: &str,
    (image, journal): (Image, &Journal),
    platform: Platform,
    seed: u64,
) -> Result<Image, UnknownDesign> {
    let stack = Stack::under(design, &machine.settings)?;
    let mut layout = Layout::new(machine.engine.medium.geometry.lines());
    let controller = stack.build(&machine.settings, &mut layout);
    let levelling = controller.levelling().cloned();
    let power_fail = stack.power_fail(&machine.settings, &layout);
    let mut survivors = Survivors::new(journal, image, platform, seed)
        .levelled(levelling)
        .guarded(power_fail);
    let mut changed = Vec::new();
    while survivors.position() < journal.events.len() as u64 {
        survivors.advance(&mut changed);
        changed.clear();
    }
    survivors.tear();
    Ok(survivors.untimed.into_image())
}
