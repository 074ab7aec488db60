//! Checks a program that all cores share after a cut: all logs are rolled back, and then each line must be as the
//! visible transactions have left it ([`Joint`]).

use std::collections::BTreeSet;

use crate::check::Checker;
use crate::history::shared::{Joint, Who};
use crate::violation::Kind;
use sardonyx::controller::Controller;
use sardonyx::machine::UntimedMemory;

impl Checker<'_> {
    /// Runs the recovery of all cores, one after the other, and compares the lines that they share. Wrong lines are
    /// kept with the first core.
    pub(crate) fn together(
        &mut self,
        joint: &Joint,
        controller: &mut Controller,
        affected: &BTreeSet<u64>,
        full: bool,
    ) {
        let untimed = &mut self.survivors.untimed;
        let mut view = UntimedMemory::new(untimed, controller, &joint.region, &joint.logs);
        let before: Vec<u64> = self.cores.iter().map(|core| core.visible).collect();
        let mut own: BTreeSet<u64> = affected.iter().copied().collect();
        own.retain(|line| joint.region.contains(*line));
        let mut visible = Vec::new();
        for core in 0..self.cores.len() {
            let this = &mut self.cores[core];
            this.fault = None;
            match this.workload.recover(&mut view) {
                Ok(recovered) => visible.push(recovered.visible),
                Err(fault) => {
                    this.fault = Some((Kind::Unrecoverable, fault));
                    let first = &mut self.cores[0];
                    let restored = std::mem::take(&mut first.restored);
                    first.not_compared.extend(restored);
                    first.not_compared.extend(view.stored());
                    first.not_compared.append(&mut own);
                    return;
                }
            }
        }
        let stored = view.stored();
        for (core, visible) in self.cores.iter_mut().zip(&visible) {
            core.visible = *visible;
        }
        let first = &mut self.cores[0];
        let mut compared = own;
        compared.extend(&first.restored);
        compared.extend(&stored);
        compared.append(&mut first.wrong);
        compared.append(&mut first.not_compared);
        compared.extend(joint.between(&before, &visible));
        for line in compared
            .into_iter()
            .filter(|line| !joint.logs.contains(*line))
        {
            if view.line(line) != *joint.content(line, &visible) {
                first.wrong.insert(line);
            }
        }
        first.restored = stored;
        if full && first.wrong.is_empty() {
            let broken = first.workload.check(&mut view).err();
            first.fault = broken.map(|fault| (Kind::Broken, fault));
        }
    }

    pub(crate) fn out_of_order(&self) -> Option<(Who, Who, u64)> {
        let joint = self.history.joint.as_ref()?;
        let visible: Vec<u64> = self.cores.iter().map(|core| core.visible).collect();
        joint.out_of_order(&visible)
    }
}
