//! Reduces an image that fails to the fewest parts of operations that were missing, and the fewest that were there.

use sardonyx_crash_test::Result;
use sardonyx_crash_test::recovery::ending::Ended;

use crate::image_choice::{Choice, FolderImage, ImageKind, OperationPart, parts};
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

/// Reduces the image; `None` if it does not fail again.
///
/// # Errors
/// As of a recovery; the time is over.
pub fn reduce(model: &Model, image: &FolderImage, run: &mut Try<'_>) -> Result<Option<Reduced>> {
    let (Some(_), Some(mut last)) = (run(image)?, run(image)?) else {
        return Ok(None);
    };
    let optional = model.optional(image.cut);
    let mut smallest = image.clone();
    let mut fails = |choice: &Choice<'_>| -> Result<bool> {
        let tried = FolderImage {
            cut: image.cut,
            kind: ImageKind::Missing,
            present: choice.list(),
            stale: image.stale,
        };
        let failed = run(&tried)?;
        let fails = failed.is_some();
        if let Some(ended) = failed {
            (smallest, last) = (tried, ended);
        }
        Ok(fails)
    };
    let whole = Choice::new(model, &optional, true);
    if fails(&whole)? {
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
    let gone = |number: &u32| image.present.binary_search(number).is_err();
    let missing: Vec<u32> = optional.iter().copied().filter(gone).collect();
    let missing = shrink(parts(model, &missing), &mut |some| {
        let mut choice = Choice::new(model, &optional, true);
        some.iter()
            .for_each(|(_, effects)| choice.set(effects, false));
        choice.drop_needy();
        fails(&choice)
    })?;
    let mut rest = Choice::new(model, &optional, true);
    missing
        .iter()
        .for_each(|(_, effects)| rest.set(effects, false));
    rest.drop_needy();
    let there = parts(model, &rest.list());
    let early = shrink(there, &mut |some| {
        let mut choice = Choice::new(model, &optional, false);
        some.iter()
            .for_each(|(_, effects)| choice.set(effects, true));
        choice.add_needed();
        fails(&choice)
    })?;
    // An image that fails by chance has led here by chance.
    let Some(last) = run(&smallest)? else {
        return Ok(None);
    };
    let names = |found: &[(OperationPart, Vec<u32>)]| {
        found.iter().map(|(part, _)| *part).collect::<Vec<_>>()
    };
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

/// A smallest part of some items for which a test holds, as it does for all of them.
fn shrink<T: Clone>(
    mut items: Vec<T>,
    test: &mut dyn FnMut(&[T]) -> Result<bool>,
) -> Result<Vec<T>> {
    if test(&[])? {
        return Ok(Vec::new());
    }
    let mut size = items.len().div_ceil(2);
    while size > 0 && !items.is_empty() {
        let mut from = 0;
        while from < items.len() && items.len() > 1 {
            let end = (from + size).min(items.len());
            let without = [&items[..from], &items[end..]].concat();
            if !without.is_empty() && test(&without)? {
                items = without;
            } else {
                from = end;
            }
        }
        size /= 2;
    }
    Ok(items)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_a_test_needs_is_left() {
        let needs = |some: &[u32]| Ok(some.contains(&3) && some.contains(&17));
        let left = shrink((0..40).collect(), &mut { needs }).unwrap();
        assert_eq!(left, [3, 17]);
        let none = shrink(vec![1, 2], &mut |_| Ok(true)).unwrap();
        assert!(none.is_empty());
    }
}
