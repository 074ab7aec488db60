//! What an answer without a violation does not rest on: promises before which nothing became durable, values that no cut
//! has to leave, and stores of which only the last is known.

use serde::Serialize;

use crate::model::{Effect, EffectKind};
use crate::operations::{Act, Operation};
use crate::search::findings::Explored;

/// At most this many places are listed.
const LISTED: usize = 100;

#[derive(Debug, Default, Serialize)]
pub struct Untested {
    /// Acknowledgements with text that is kept, after the program has changed something since the one before.
    pub acknowledgements: usize,
    /// Those of them by which nothing of that was durable, and where they are, each place once.
    pub not_durable: usize,
    pub not_durable_at: Vec<String>,
    /// Written sectors, and those whose values were overwritten before they were durable.
    pub sectors: usize,
    pub overwritten: usize,
    /// Records of stores to mapped files: values that were overwritten between two operations are in none.
    pub mapped: usize,
}

pub(crate) fn untested(explored: &Explored) -> Untested {
    let operations = &explored.recording.operations;
    let mut found = Untested {
        mapped: operations.iter().filter(|one| of_mapped(one)).count(),
        ..Untested::default()
    };
    hollow_promises(explored, &mut found);
    overwritten(&explored.model.effects, &mut found);
    found
}

fn of_mapped(operation: &Operation) -> bool {
    matches!(operation.act, Act::Write { .. }) && operation.shown.starts_with("stores(")
}

fn hollow_promises(explored: &Explored, found: &mut Untested) {
    let (model, mut from) = (&explored.model, 0);
    for (number, operation) in explored.recording.operations.iter().enumerate() {
        let end = model.of_operation[number].start;
        let Act::Acknowledge { text } = &operation.act else {
            continue;
        };
        if text.is_empty() || from == end {
            continue;
        }
        let since = &model.effects[from as usize..end as usize];
        let durable = |effect: &Effect| effect.sure.is_some_and(|sure| (sure as usize) < number);
        from = end;
        found.acknowledgements += 1;
        if since.iter().any(durable) {
            continue;
        }
        found.not_durable += 1;
        let place = &explored.places[number].text;
        if found.not_durable_at.len() < LISTED && !found.not_durable_at.contains(place) {
            found.not_durable_at.push(place.clone());
        }
    }
}

/// Counts data that later data of their sector cover, which come before any sync that makes them durable.
fn overwritten(effects: &[Effect], found: &mut Untested) {
    let bytes = |effect: &Effect| match effect.what {
        EffectKind::Data { offset, length, .. } => Some(offset..offset + length as u64),
        _ => None,
    };
    for effect in effects {
        let Some(new) = bytes(effect) else {
            continue;
        };
        found.sectors += 1;
        let covered = |before: &&u32| {
            let before = &effects[**before as usize];
            let within = |old: std::ops::Range<u64>| new.start <= old.start && old.end <= new.end;
            bytes(before).is_some_and(within)
                && before.sure.is_none_or(|sure| sure >= effect.operation)
        };
        found.overwritten += effect.needs.iter().filter(covered).count();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn data(
        operation: u32,
        offset: u64,
        length: usize,
        needs: &[u32],
        sure: Option<u32>,
    ) -> Effect {
        Effect {
            operation,
            what: EffectKind::Data {
                inode: 1,
                offset,
                from: 0,
                length,
                fresh: false,
            },
            needs: needs.to_vec(),
            after: None,
            sure,
        }
    }

    #[test]
    fn a_value_that_is_overwritten_before_its_sync_is_counted_and_no_other() {
        let effects = [
            data(0, 0, 8, &[], Some(1)),  // synced in time
            data(2, 0, 8, &[0], Some(5)), // overwritten by the next
            data(3, 0, 8, &[1], Some(5)), // overwritten in part
            data(4, 0, 4, &[2], Some(5)),
        ];
        let mut found = Untested::default();
        overwritten(&effects, &mut found);
        assert_eq!((found.sectors, found.overwritten), (4, 1));
    }
}
