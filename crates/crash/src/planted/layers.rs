//! A layer with something wrong around it: writes, reads, recoveries and calls of a hardware log.

use sardonyx::controller::{Class, Figures, Layer, Persist, Storey, Write};
use sardonyx::line::{LINE_BYTES, Line, Logical, ZERO_LINE};
use sardonyx::plan::storey::Unfinished;
use sardonyx::plan::{At, Fetched, Plan, Step, Stored, Timer};
use sardonyx::units::Time;

use super::{Slip, count_occasion};

/// Added to the transactions of a first life, where those of later ones are counted.
const FIRST_LIFE: u64 = 1 << 32;

pub struct Around<A> {
    slip: Slip,
    /// Calls of the kind that the slip is about, so far.
    count: u64,
    right: Box<dyn Layer<Addr = A>>,
}

impl<A> Around<A> {
    pub fn new(slip: Slip, right: Box<dyn Layer<Addr = A>>) -> Around<A> {
        Around {
            slip,
            count: 0,
            right,
        }
    }

    /// The core that the log is told of.
    fn core(&mut self, core: u32) -> u32 {
        match self.slips(Slip::CoreOneBit, core > 1) {
            true => core & 1,
            false => core,
        }
    }

    /// Whether `slip` is what goes wrong, now that it may.
    fn slips(&mut self, slip: Slip, may: bool) -> bool {
        self.slips_once_in(1, slip, may)
    }

    /// Whether `slip` is what goes wrong, as it does from the time on that it may have `count` times.
    fn slips_after(&mut self, count: u64, slip: Slip, may: bool) -> bool {
        let may = may && self.slip == slip;
        self.count += u64::from(may);
        let slips = may && self.count > count;
        if slips {
            count_occasion();
        }
        slips
    }

    /// Whether `slip` is what goes wrong, as it does once in `count` times that it may.
    fn slips_once_in(&mut self, count: u64, slip: Slip, may: bool) -> bool {
        let may = may && self.slip == slip;
        self.count += u64::from(may);
        let slips = may && self.count.is_multiple_of(count);
        if slips {
            count_occasion();
        }
        slips
    }
}

impl<A: Send> Storey for Around<A> {
    fn below(&self) -> Option<&dyn Storey> {
        self.right.below()
    }

    fn below_mut(&mut self) -> Option<&mut dyn Storey> {
        self.right.below_mut()
    }

    fn flush(&mut self, plan: &mut Plan) {
        if !self.slips(Slip::ShutdownForgotten, true) {
            self.right.flush(plan);
        }
    }

    fn recover(&mut self, plan: &mut Plan) {
        if !self.slips(Slip::RecoveryForgotten, true) {
            self.right.recover(plan);
        }
    }

    fn undo(&mut self, plan: &mut Plan) -> Vec<Logical> {
        match self.slips(Slip::NotUndone, true) {
            true => Vec::new(),
            false => self.right.undo(plan),
        }
    }

    fn unfinished(&mut self, plan: &mut Plan) -> Vec<Unfinished> {
        self.right.unfinished(plan)
    }

    fn begin(&mut self, core: u32, transaction: u64, plan: &mut Plan) {
        if self.slips(Slip::TwoCores, core >= 2) {
            return;
        }
        if self.slip == Slip::ForgetsLater {
            // The first transaction of a later life is none of a program's first.
            self.count += match self.count {
                0 if transaction == 1 => FIRST_LIFE,
                _ => 1,
            };
        }
        let core = self.core(core);
        let transaction = match self.slips(Slip::NumberTwoBits, transaction > 3) {
            true => transaction & 3,
            false => transaction,
        };
        self.right.begin(core, transaction, plan);
    }

    fn log_old(&mut self, core: u32, line: Logical, old: At<&Line>, plan: &mut Plan) {
        let forgets = self.slip == Slip::ForgetsLater && (9..FIRST_LIFE).contains(&self.count);
        if forgets {
            count_occasion();
        }
        if forgets
            || self.slips_once_in(8, Slip::EntryDropped, true)
            || self.slips_after(1_900, Slip::LateEntryDropped, true)
        {
            return;
        }
        let mut logged = *old.value;
        if self.slips(
            Slip::OldHalf,
            logged[LINE_BYTES / 2..] != [0; LINE_BYTES / 2],
        ) {
            logged[LINE_BYTES / 2..].fill(0);
        }
        let core = match self.slips(Slip::OfOneCore, core != 0) {
            true => 0,
            false => self.core(core),
        };
        self.right
            .log_old(core, line, At::new(&logged, old.at), plan);
    }

    fn commit(&mut self, core: u32, plan: &mut Plan) -> Stored {
        if self.slips(Slip::NotTruncated, true) {
            return Stored::at(Step::PAST);
        }
        let core = self.core(core);
        let stored = self.right.commit(core, plan);
        match self.slips(Slip::CommitNotAwaited, stored.accepted != Step::PAST) {
            true => Stored::at(Step::PAST),
            false => stored,
        }
    }

    fn wake(&mut self, timer: Timer, now: Time, plan: &mut Plan) -> bool {
        self.right.wake(timer, now, plan)
    }

    fn forget_figures(&mut self) {
        self.right.forget_figures();
    }

    fn figures(&self, out: &mut Figures) {
        self.right.figures(out);
    }
}

impl<A: Copy + Send> Layer for Around<A> {
    type Addr = A;

    fn read(&mut self, at: A, class: Class, after: Step, plan: &mut Plan) -> Fetched {
        let mut got = self.right.read(at, class, after, plan);
        let is_other = got.value.is_some_and(|line| line != ZERO_LINE);
        if self.slips_once_in(64, Slip::ReadOfZeros, is_other) {
            got.value = Some(ZERO_LINE);
        }
        got
    }

    fn write(&mut self, write: Write<A>, plan: &mut Plan) -> Stored {
        let is_marked = write.order == Persist::CounterAtomic;
        // Programs over a log mark nothing, so a marked write is what its recovery puts back.
        let puts_back = is_marked && write.class == Class::Data;
        let (mut order, mut gate) = (write.order, write.gate);
        if self.slips(Slip::MarkLost, is_marked)
            || self.slips_once_in(8, Slip::SomeMarksLost, is_marked)
            || self.slips(Slip::UndoRelaxed, puts_back)
        {
            order = Persist::Relaxed;
        }
        if self.slips(Slip::GateIgnored, gate != Step::PAST) {
            gate = Step::PAST;
        }
        let mut line = *write.data.value;
        if self.slips_once_in(32, Slip::LastWordLost, line[LINE_BYTES - 8..] != [0; 8]) {
            line[LINE_BYTES - 8..].fill(0);
        }
        if self.slips(Slip::OnesAsZeros, line == [0xff; LINE_BYTES]) {
            line = ZERO_LINE;
        }
        if self.slips_once_in(64, Slip::WriteDropped, true)
            || self.slips_after(1 << 16, Slip::LateDropped, true)
        {
            return Stored::at(gate);
        }
        let write = Write {
            data: At::new(&line, write.data.at),
            order,
            gate,
            ..write
        };
        let mut stored = self.right.write(write, plan);
        let waits = stored.accepted != Step::PAST;
        if self.slips(Slip::TakenForAccepted, waits)
            || self.slips_once_in(16, Slip::OneTakenForAccepted, waits)
            || self.slips(Slip::UndoNotAwaited, puts_back)
        {
            stored.accepted = Step::PAST;
        }
        stored
    }

    fn discard_encryption(&mut self, at: A, data: Step, plan: &mut Plan) {
        self.right.discard_encryption(at, data, plan);
    }

    fn persist_metadata(&mut self, at: A, after: Step, plan: &mut Plan) -> Stored {
        match self.slips(Slip::MetadataForgotten, true) {
            true => Stored::at(after),
            false => self.right.persist_metadata(at, after, plan),
        }
    }

    fn preload(&mut self, at: A, data: &Line, plan: &mut Plan) -> bool {
        self.right.preload(at, data, plan)
    }

    fn peek(&self, at: A, plan: &Plan) -> Option<Line> {
        self.right.peek(at, plan)
    }

    fn hint(&self, at: A, plan: &Plan) {
        self.right.hint(at, plan);
    }
}
