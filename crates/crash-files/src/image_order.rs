//! Which effects and cuts come first: those by which an image differs in what the recovery reads.

use crate::model::Model;
use crate::operations::{Act, Operation};
use crate::reads::RecoveryReads;

/// What comes first; the rest comes in a pass of its own.
#[derive(Debug)]
pub struct ImageOrder {
    /// Whether the recovery reads what an effect changes.
    seen: Vec<bool>,
    /// Whether a cut differs from the one before it in what the recovery reads.
    fresh: Vec<bool>,
}

impl ImageOrder {
    /// Puts everything first.
    pub fn of_all(model: &Model) -> ImageOrder {
        ImageOrder {
            seen: vec![true; model.effects.len()],
            fresh: vec![true; model.of_operation.len() + 1],
        }
    }

    /// Puts first what the recovery reads, and what it is `held_to`, if that are promises.
    pub fn new(
        model: &Model,
        operations: &[Operation],
        (reads, held_to): (&RecoveryReads, bool),
    ) -> ImageOrder {
        let seen: Vec<bool> = (model.effects.iter())
            .map(|effect| reads.see(effect))
            .collect();
        let differs = |(number, operation): (usize, &Operation)| match &operation.act {
            Act::Acknowledge { text } => held_to && !text.is_empty(),
            Act::Fail { .. } => true,
            _ => {
                let done = model.of_operation[number].clone();
                let mut all = done.chain(model.made_sure[number].iter().copied());
                all.any(|effect| seen[effect as usize])
            }
        };
        let cuts = operations.iter().enumerate().map(differs);
        let fresh = std::iter::once(true).chain(cuts).collect();
        ImageOrder { seen, fresh }
    }

    pub fn cuts(&self) -> u32 {
        self.fresh.len() as u32
    }

    pub fn is_fresh(&self, cut: u32) -> bool {
        self.fresh[cut as usize]
    }

    pub fn sees_any(&self, effects: &[u32]) -> bool {
        effects.iter().any(|&effect| self.seen[effect as usize])
    }
}
