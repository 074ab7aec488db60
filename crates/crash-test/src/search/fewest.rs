//! The fewest of some items that decide: delta debugging (Zeller and Hildebrandt, 2002).

use crate::Result;

/// Reduces `items` to the fewest for which `holds`, as it does for all of them, with at most this many questions.
pub fn fewest<T: Clone>(
    items: &mut Vec<T>,
    most: u32,
    mut holds: impl FnMut(&[T]) -> Result<bool>,
) -> Result<()> {
    let (mut parts, mut asked) = (2, 0);
    while items.len() > 1 && asked < most {
        let size = items.len().div_ceil(parts);
        let mut next = None;
        let halves = items.chunks(size).map(<[T]>::to_vec);
        // Of two halves each is what the other leaves.
        let rests = (0..items.len().div_ceil(size)).filter(|_| parts > 2);
        let rests = rests.map(|part| {
            let kept = items.iter().enumerate().filter(|(i, _)| i / size != part);
            kept.map(|(_, item)| item.clone()).collect::<Vec<T>>()
        });
        let tries = halves
            .map(|half| (half, 2))
            .chain(rests.map(|rest| (rest, parts - 1)));
        for (tried, then) in tries {
            if tried.is_empty() || tried.len() == items.len() || asked >= most {
                continue;
            }
            asked += 1;
            if holds(&tried)? {
                next = Some((tried, then));
                break;
            }
        }
        match next {
            Some((fewer, then)) => (*items, parts) = (fewer, then),
            None if parts >= items.len() => break,
            None => parts = (parts * 2).min(items.len()),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOST: u32 = 60;

    #[test]
    fn the_fewest_are_found_and_no_more_is_asked_than_may_be() {
        for wanted in [vec![3], vec![0, 9], vec![2, 3, 11], (0..12).collect()] {
            let mut items: Vec<u32> = (0..12).collect();
            let mut asked = 0;
            let has = |some: &[u32]| {
                asked += 1;
                Ok(wanted.iter().all(|one| some.contains(one)))
            };
            fewest(&mut items, MOST, has).unwrap();
            assert_eq!(items, wanted);
            assert!(asked <= MOST, "{asked}");
        }
        let (mut many, mut asked) = ((0..4000).collect::<Vec<u32>>(), 0);
        let odd = |some: &[u32]| {
            asked += 1;
            Ok(some.iter().filter(|one| *one % 2 == 1).count() == 2000)
        };
        fewest(&mut many, MOST, odd).unwrap();
        assert!(asked <= MOST && many.iter().filter(|one| *one % 2 == 1).count() == 2000);
    }
}
