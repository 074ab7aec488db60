//! Reduces an image that fails to the fewest parts of operations that were missing, and the fewest that were there.

use sardonyx_crash_test::Result;
use sardonyx_crash_test::recovery::ending::Ended;
use sardonyx_crash_test::search::fewest::fewest;

use crate::image_choice::{Choice, FolderImage, OperationPart, Part, parts};
use crate::model::Model;

/// The reason for an image's failure: the early parts are there, and the late parts are missing.
#[derive(Clone, Debug)]
pub struct Reduced {
    pub early: Vec<OperationPart>,
    pub late: Vec<OperationPart>,
    pub image: FolderImage,
    pub ended: Ended,
    pub said: String,
    /// Set if it fails with all that the program had done by then, in the program's own order.
    pub in_order: bool,
}

/// Runs the recovery on an image. Returns its end if that is a violation.
pub type Try<'a> = dyn FnMut(&FolderImage) -> Result<Option<(Ended, String)>> + 'a;

/// Reduces an image that failed, with this end; `None` if the result does not fail again.
///
/// The image with everything until the cut decides what is looked for: if it fails, the fault is in the program's own
/// order. Else the fewest parts are looked for without which everything fails, and then the fewest that must be there
/// for it.
///
/// # Errors
/// As of a recovery; the time is over.
pub fn reduce(
    model: &Model,
    image: &FolderImage,
    mut last: (Ended, String),
    run: &mut Try<'_>,
) -> Result<Option<Reduced>> {
    let optional = model.optional(image.cut);
    let mut smallest = image.clone();
    let mut fails = |choice: &Choice<'_>| -> Result<bool> {
        let tried = FolderImage {
            present: choice.list(),
            ..image.clone()
        };
        let failed = run(&tried)?;
        let fails = failed.is_some();
        if let Some(ended) = failed {
            (smallest, last) = (tried, ended);
        }
        Ok(fails)
    };
    if fails(&Choice::new(model, &optional, true))? {
        let (early, late) = beside(model, image.cut);
        return Ok(Some(Reduced {
            early,
            late,
            image: smallest,
            ended: last.0,
            said: last.1,
            in_order: true,
        }));
    }
    let without = |some: &[Part]| {
        let mut choice = Choice::new(model, &optional, true);
        some.iter()
            .for_each(|(_, effects)| choice.set(effects, false));
        choice.drop_needy();
        choice
    };
    let gone = |number: &u32| image.present.binary_search(number).is_err();
    let missing: Vec<u32> = optional.iter().copied().filter(gone).collect();
    let mut missing = parts(model, &missing);
    fewest(&mut missing, u32::MAX, |some| fails(&without(some)))?;
    let mut early = parts(model, &without(&missing).list());
    let mut with = |some: &[Part]| {
        let mut choice = Choice::new(model, &optional, false);
        some.iter()
            .for_each(|(_, effects)| choice.set(effects, true));
        choice.add_needed();
        fails(&choice)
    };
    // What is sure may fail by itself: then nothing was early.
    match with(&[])? {
        true => early.clear(),
        false => fewest(&mut early, u32::MAX, with)?,
    }
    // An image that fails by chance has led here by chance.
    let Some(last) = run(&smallest)? else {
        return Ok(None);
    };
    let names = |found: &[Part]| found.iter().map(|(part, _)| *part).collect();
    Ok(Some(Reduced {
        early: names(&early),
        late: names(&missing),
        image: smallest,
        ended: last.0,
        said: last.1,
        in_order: false,
    }))
}

/// The last part before a cut, and the first after it.
fn beside(model: &Model, cut: u32) -> (Vec<OperationPart>, Vec<OperationPart>) {
    let part = |number: u32| {
        let effect = &model.effects[number as usize];
        (effect.operation, effect.class())
    };
    let end = match cut {
        0 => 0,
        cut => model.of_operation[cut as usize - 1].end,
    };
    let before = end.checked_sub(1).map(part);
    let after = (end < model.effects.len() as u32).then(|| part(end));
    (before.into_iter().collect(), after.into_iter().collect())
}
