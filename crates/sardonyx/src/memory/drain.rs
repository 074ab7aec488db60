//! What reserve power has a memory do at a power cut, in time. Left out: the count of drains, by which no vault has the
//! pads of an earlier one, and the register that it takes.

use siphasher::sip::SipHasher24;

use super::Memory;
use crate::controller::Write;
use crate::controller::designs::Stack;
use crate::controller::encryption::pad::{self, Pads};
use crate::controller::integrity;
use crate::engine::Request;
use crate::line::{LINE_BYTES, Line, Logical, Place, ZERO_LINE};
use crate::medium::params::Unit;
use crate::plan::observe::Observers;
use crate::plan::{At, Plan, Step};
use crate::settings::Settings;
use crate::stats::{Cause, Direction};
use crate::units::Time;

/// Addresses, or MACs, in a line of the vault.
const BESIDE: usize = LINE_BYTES / 8;
/// So many lines of a vault are planned at once, which bounds the plan.
const AT_ONCE: usize = 64 * BESIDE;

impl Memory {
    /// Does `work` on a memory at rest without its listeners, whose run is over.
    pub fn unheard<T>(&mut self, work: impl FnOnce(&mut Memory) -> T) -> T {
        let observers = self.engine.exchange_observers(Observers::default());
        let value = work(self);
        self.engine.exchange_observers(observers);
        value
    }

    /// Writes `lines` through the controller, and then all that its metadata caches hold.
    pub fn drain_through(&mut self, lines: &[(Logical, Line)]) {
        self.resume();
        for (number, (line, data)) in (0..).zip(lines) {
            while !self.accepts() {
                match self.next_event() {
                    Time::NEVER => assert!(self.empty_queues(false), "it takes requests again"),
                    _ => self.advance_until(Time::NEVER),
                }
            }
            let request = Request {
                arrival: self.now(),
                core: 0,
                tag: number,
                kind: Direction::Write,
                counted: false,
            };
            self.write(request, self.now(), Write::new(*line, At::past(data)));
            self.answers().for_each(drop);
        }
        let controller = &mut self.controller;
        self.engine.background(|plan| controller.flush(plan));
        self.come_to_rest();
    }

    /// Writes `lines` into a region of their own: encrypted under their places there, if `stack` encrypts, with their
    /// addresses beside them, and with MACs if it has an integrity. Then all that the metadata caches hold.
    pub fn drain_into_vault(
        &mut self,
        lines: &[(Logical, Line)],
        stack: &Stack,
        settings: &Settings,
    ) {
        self.resume();
        let pads = stack.encrypts(settings).then(|| Pads::new(settings));
        let keyed = SipHasher24::new_with_key(&pad::other(*b"sardonyx: vault!", settings));
        let has_macs = stack.integrity.about.name != integrity::DEFAULT;
        let groups = lines.len().div_ceil(BESIDE);
        let beside = if has_macs { 2 } else { 1 };
        let vault = self
            .layout
            .reserve("vault", (lines.len() + beside * groups) as u64);
        let mut next = (0..vault.lines).map(|line| vault.line(line));
        let mut place = || next.next().expect("the vault has room");
        for chunk in lines.chunks(AT_ONCE) {
            self.engine.background(|plan| {
                for group in chunk.chunks(BESIDE) {
                    let (mut written, mut macs) = (Step::PAST, Vec::new());
                    for (line, data) in group {
                        let at = place();
                        let sealed = seal(pads.as_ref(), at, data, plan);
                        plan.write(at, At::new(&sealed.value, sealed.at), Step::PAST);
                        if has_macs {
                            let mac = plan.because(Cause::Integrity).unit(Unit::Mac, sealed.at);
                            written = plan.both(written, mac);
                            macs.push(
                                keyed.hash(&[&sealed.value[..], &line.0.to_le_bytes()].concat()),
                            );
                        }
                    }
                    let addresses = group.iter().map(|(line, _)| line.0);
                    plan.write(place(), At::past(&words(addresses)), Step::PAST);
                    if has_macs {
                        let mut plan = plan.because(Cause::Integrity);
                        let macs = words(macs.into_iter());
                        plan.write(place(), At::new(&macs, written), Step::PAST);
                    }
                }
            });
            self.come_to_rest();
        }
        let controller = &mut self.controller;
        self.engine.background(|plan| controller.flush(plan));
        self.come_to_rest();
    }

    fn come_to_rest(&mut self) {
        loop {
            match self.next_event() {
                Time::NEVER if !self.empty_queues(true) => break,
                Time::NEVER => {}
                _ => self.advance_until(Time::NEVER),
            }
        }
        self.answers().for_each(drop);
    }
}

fn seal(pads: Option<&Pads>, at: Place, line: &Line, plan: &mut Plan) -> At<Line> {
    let Some(pads) = pads else {
        return At::past(*line);
    };
    let pad = plan.because(Cause::Encryption).unit(Unit::Aes, Step::PAST);
    At::new(pads.crypt(at, 1, line), pad)
}

fn words(values: impl Iterator<Item = u64>) -> Line {
    let mut line = ZERO_LINE;
    for (bytes, value) in line.chunks_exact_mut(8).zip(values) {
        bytes.copy_from_slice(&value.to_le_bytes());
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Machine;

    const LINES: u64 = 300;

    fn lines() -> Vec<(Logical, Line)> {
        let line = |number: u64| {
            let data = words([number, 1, number % 7].into_iter());
            (Logical(number * 70), data)
        };
        (0..LINES).map(line).collect()
    }

    #[test]
    fn drained_lines_are_what_memory_holds_afterwards() {
        let machine = Machine::load("sca", &[] as &[(&str, &str)]).unwrap();
        for design in [
            "no-encryption",
            "sca",
            "esd-sound",
            "sca@bonsai",
            "silo/esd+sca",
        ] {
            let mut memory = Memory::new(&machine, design).unwrap();
            memory.drain_through(&lines());
            assert!(memory.failure().is_none() && memory.refused().is_none());
            let image = memory.image().copy();
            let mut restarted = Memory::over(&machine, design, image).unwrap();
            restarted.come_to_rest();
            for (line, data) in lines() {
                assert_eq!(restarted.read_at_once(line), Some(data), "{design}");
            }
        }
    }

    #[test]
    fn a_vault_has_each_line_its_address_and_its_mac() {
        let machine = Machine::load("sca", &[] as &[(&str, &str)]).unwrap();
        for (design, sealed, beside) in [("no-encryption", false, 1), ("sca@bonsai", true, 2)] {
            let mut memory = Memory::new(&machine, design).unwrap();
            let stack = Stack::named(design).unwrap();
            let mut idle = Memory::new(&machine, design).unwrap();
            idle.drain_into_vault(&[], &stack, &machine.settings);
            let metadata = idle.ledger().grand_total().medium_writes;
            memory.drain_into_vault(&lines(), &stack, &machine.settings);
            let regions = memory.layout.regions().iter();
            let vault = regions
                .clone()
                .find(|region| region.name == "vault")
                .unwrap();
            assert_eq!(vault.lines, LINES + beside * LINES.div_ceil(8));
            let total = memory.ledger().grand_total();
            assert_eq!(total.medium_writes, vault.lines + metadata);
            assert_eq!(total.medium_reads, 0);
            let held: Vec<Line> = (0..vault.lines)
                .map(|line| memory.image().read(vault.line(line)).unwrap())
                .collect();
            let first = lines();
            assert_eq!(held[0] == first[0].1, !sealed);
            assert_eq!(held[8], words(first[..8].iter().map(|(line, _)| line.0)));
            let pads = Pads::new(&machine.settings);
            let plain = if sealed {
                pads.crypt(vault.line(0), 1, &held[0])
            } else {
                held[0]
            };
            assert_eq!(plain, first[0].1);
        }
    }
}
