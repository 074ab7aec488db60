//! Faults between the layers: a mark that is lost, a step that is not waited for, a call that is not handed on. Around
//! the library's layers.

use sardonyx::controller::{Class, Persist, Write};
use sardonyx::line::{Line, Logical, Place, ZERO_LINE};
use sardonyx::plan::{At, Plan, Step, Stored};

use crate::around::{Right, Wrong, logging, mapping, policy};
use crate::fault::{Fault, rows};
use crate::plans::{DUPLICATES, LOGGED, LOGGED_BRIEFLY, LONG_LIVES, MANY, SHARED};

/// Makes a faulty layer around a right one: a type with the one method that is wrong.
macro_rules! around {
    ($($name:ident of $right:literal over $Addr:ident { $($method:tt)* })+) => {
        $(
            #[derive(Default)]
            struct $name {
                #[allow(dead_code, reason = "few faults count")]
                count: u64,
            }

            impl Wrong for $name {
                type Addr = $Addr;
                const RIGHT: &'static str = $right;

                $($method)*
            }
        )+
    };
}

fn relaxed<A>(write: Write<A>) -> Write<A> {
    Write {
        order: Persist::Relaxed,
        ..write
    }
}

fn ungated<A>(write: Write<A>) -> Write<A> {
    Write {
        gate: Step::PAST,
        ..write
    }
}

/// Whether a hardware log's recovery writes: programs over such a log mark nothing.
fn puts_back<A>(write: &Write<A>) -> bool {
    write.class == Class::Data && write.order == Persist::CounterAtomic
}

// Programs and memory.
around! {
    MarkLost of "sca" over Place {
        fn write(&mut self, write: Write<Place>, right: &mut Right<Place>, plan: &mut Plan) -> Stored {
            right.write(relaxed(write), plan)
        }
    }

    SomeMarksLost of "sca" over Place {
        fn write(&mut self, write: Write<Place>, right: &mut Right<Place>, plan: &mut Plan) -> Stored {
            self.count += u64::from(write.order == Persist::CounterAtomic);
            match self.count % 8 {
                0 => right.write(relaxed(write), plan),
                _ => right.write(write, plan),
            }
        }
    }

    TakenForAccepted of "sca" over Place {
        fn write(&mut self, write: Write<Place>, right: &mut Right<Place>, plan: &mut Plan) -> Stored {
            let stored = right.write(write, plan);
            Stored { accepted: Step::PAST, ..stored }
        }
    }

    OneTakenForAccepted of "sca" over Place {
        fn write(&mut self, write: Write<Place>, right: &mut Right<Place>, plan: &mut Plan) -> Stored {
            self.count += 1;
            let stored = right.write(write, plan);
            match self.count % 16 {
                0 => Stored { accepted: Step::PAST, ..stored },
                _ => stored,
            }
        }
    }

    LastWordLost of "sca" over Place {
        fn write(&mut self, write: Write<Place>, right: &mut Right<Place>, plan: &mut Plan) -> Stored {
            self.count += 1;
            let mut line = *write.data.value;
            if self.count.is_multiple_of(32) {
                line[56..].fill(0);
            }
            right.write(Write { data: At::new(&line, write.data.at), ..write }, plan)
        }
    }
}

pub const BARE: &[Fault] = rows! { "identity+*", SHARED;
    "mark-lost" policy[MarkLost]
        "A marked write loses its mark on the way to memory." [Cuts: Unrecoverable]
    "some-marks-lost" policy[SomeMarksLost]
        "One marked write in eight loses its mark." [Cuts: Unrecoverable]
    "taken-for-accepted" policy[TakenForAccepted]
        "A fence waits for no write." [Cuts: Lost]
    "one-taken-for-accepted" policy[OneTakenForAccepted]
        "A fence does not wait for one write in sixteen." [Cuts: Lost]
    "last-word-lost" policy[LastWordLost]
        "One write in 32 loses the last word of its line." [Cuts: WrongLine, Requests: WrongLine]
};

// Lines of zeros that are a bit.
around! {
    BitsNotWrittenBack of "zero-lines" over Logical {
        fn persist_metadata(&mut self, (_, after): (Logical, Step), _: &mut Right<Logical>, _: &mut Plan) -> Stored {
            Stored::at(after)
        }
    }

    CountersBelowForgotten of "sca" over Place {
        fn persist_metadata(&mut self, (_, after): (Place, Step), _: &mut Right<Place>, _: &mut Plan) -> Stored {
            Stored::at(after)
        }
    }

    ZerosUngated of "zero-lines" over Logical {
        fn write(&mut self, write: Write<Logical>, right: &mut Right<Logical>, plan: &mut Plan) -> Stored {
            match *write.data.value == ZERO_LINE {
                true => right.write(ungated(write), plan),
                false => right.write(write, plan),
            }
        }
    }

    AcceptedAtOnce of "co-located" over Place {
        fn write(&mut self, write: Write<Place>, right: &mut Right<Place>, plan: &mut Plan) -> Stored {
            let stored = right.write(write, plan);
            Stored { accepted: Step::PAST, ..stored }
        }
    }
}

pub const ZEROS: &[Fault] = rows! { "*+sca", DUPLICATES;
    "bits-not-written-back" mapping[BitsNotWrittenBack]
        "Bits of lines of zeros are not written back on demand." [Cuts: WrongLine]
};
pub const BELOW_ZEROS: &[Fault] = rows! { "zero-lines+*", DUPLICATES;
    "counters-below-forgotten" policy[CountersBelowForgotten]
        "A write-back of bits writes no counters back." [Cuts: WrongLine]
    "bit-before-line" policy[AcceptedAtOnce]
        "A bit is cleared, and a fence passes, before the line is accepted." [Cuts: WrongLine]
};
pub const ZEROS_LOGGED: &[Fault] = rows! { "hw-log/*+sca", DUPLICATES;
    "zeros-ungated" mapping[ZerosUngated]
        "A line of zeros does not wait for the log of its line." [Cuts: WrongLine]
};

// The hardware log.
around! {
    LockIgnored of "identity" over Logical {
        fn write(&mut self, write: Write<Logical>, right: &mut Right<Logical>, plan: &mut Plan) -> Stored {
            match write.class {
                Class::Data => right.write(ungated(write), plan),
                _ => right.write(write, plan),
            }
        }
    }

    UndoRelaxed of "identity" over Logical {
        fn write(&mut self, write: Write<Logical>, right: &mut Right<Logical>, plan: &mut Plan) -> Stored {
            match puts_back(&write) {
                true => right.write(relaxed(write), plan),
                false => right.write(write, plan),
            }
        }
    }

    UndoNotAwaited of "identity" over Logical {
        fn write(&mut self, write: Write<Logical>, right: &mut Right<Logical>, plan: &mut Plan) -> Stored {
            let undone = puts_back(&write);
            let stored = right.write(write, plan);
            if undone { Stored { accepted: Step::PAST, ..stored } } else { stored }
        }
    }
}

pub const BELOW_LOG: &[Fault] = rows! { "hw-log/*+sca", LOGGED;
    "lock-ignored" mapping[LockIgnored]
        "A line does not wait until its log counts." [Cuts: Early]
    "undo-relaxed" mapping[UndoRelaxed]
        "What recovery puts back is not marked." [Cuts: WrongLine, Requests: WrongLine]
    "undo-not-awaited" mapping[UndoNotAwaited]
        "Recovery clears the registers before the old lines are accepted." [Lives: WrongLine]
};

const FIRST_LIFE: u64 = 1 << 32;
type Old<'l> = (u32, Logical, At<&'l Line>);

around! {
    EntryDropped of "hw-log" over Logical {
        fn log_old(&mut self, old: Old, right: &mut Right<Logical>, plan: &mut Plan) {
            self.count += 1;
            if !self.count.is_multiple_of(8) {
                right.log_old(old.0, old.1, old.2, plan);
            }
        }
    }

    // The first transaction of a later life is none of a program's first.
    ForgetsLater of "hw-log" over Logical {
        fn begin(&mut self, (core, number): (u32, u64), right: &mut Right<Logical>, plan: &mut Plan) {
            self.count += match self.count {
                0 if number == 1 => FIRST_LIFE,
                _ => 1,
            };
            right.begin(core, number, plan);
        }

        fn log_old(&mut self, old: Old, right: &mut Right<Logical>, plan: &mut Plan) {
            if self.count <= 8 || self.count >= FIRST_LIFE {
                right.log_old(old.0, old.1, old.2, plan);
            }
        }
    }

    OldHalf of "hw-log" over Logical {
        fn log_old(&mut self, (core, line, old): Old, right: &mut Right<Logical>, plan: &mut Plan) {
            let mut half = *old.value;
            half[32..].fill(0);
            right.log_old(core, line, At::new(&half, old.at), plan);
        }
    }

    NotTruncated of "hw-log" over Logical {
        fn commit(&mut self, _core: u32, _right: &mut Right<Logical>, _plan: &mut Plan) -> Stored {
            Stored::at(Step::PAST)
        }
    }

    NotUndone of "hw-log" over Logical {
        fn undo(&mut self, _right: &mut Right<Logical>, _plan: &mut Plan) -> Vec<Logical> {
            Vec::new()
        }
    }

    OneRecord of "hw-log" over Logical {
        fn log_old(&mut self, (_, line, old): Old, right: &mut Right<Logical>, plan: &mut Plan) {
            right.log_old(0, line, old, plan);
        }
    }

    CoreBit of "hw-log" over Logical {
        fn begin(&mut self, (core, number): (u32, u64), right: &mut Right<Logical>, plan: &mut Plan) {
            right.begin(core & 1, number, plan);
        }

        fn log_old(&mut self, (core, line, old): Old, right: &mut Right<Logical>, plan: &mut Plan) {
            right.log_old(core & 1, line, old, plan);
        }

        fn commit(&mut self, core: u32, right: &mut Right<Logical>, plan: &mut Plan) -> Stored {
            right.commit(core & 1, plan)
        }
    }

    TwoCores of "hw-log" over Logical {
        fn begin(&mut self, (core, number): (u32, u64), right: &mut Right<Logical>, plan: &mut Plan) {
            if core < 2 {
                right.begin(core, number, plan);
            }
        }
    }

    TwoBits of "hw-log" over Logical {
        fn begin(&mut self, (core, number): (u32, u64), right: &mut Right<Logical>, plan: &mut Plan) {
            right.begin(core, number & 3, plan);
        }
    }
}

pub const LOG: &[Fault] = rows! { "*/identity+sca", LOGGED;
    "entry-dropped" logging[EntryDropped]
        "One old line in eight is not logged." [Cuts: WrongLine, Requests: WrongLine]
    "old-half" logging[OldHalf]
        "The log has the first half of an old line." [Cuts: WrongLine, Requests: WrongLine]
    "log-not-undone" logging[NotUndone]
        "Recovery puts nothing back." [Cuts: WrongLine, Requests: WrongLine]
    "log-of-one-core" logging[OneRecord]
        "Old lines go to the record of the first core." [Cuts: WrongLine, Requests: RunEnded]
    "number-two-bits" logging[TwoBits]
        "Registers keep two bits of a transaction's number." [Cuts: WrongLine, Requests: WrongLine]
};

pub const LOG_OF_LONG_LIVES: &[Fault] = rows! { "*/identity+sca", LONG_LIVES;
    "log-forgets-later" logging[ForgetsLater]
        "After a power cut the log takes the old lines of eight transactions and no others." [Lives: WrongLine]
};

pub const LOG_OF_MANY: &[Fault] = rows! { "*/identity+sca", MANY;
    "core-one-bit" logging[CoreBit]
        "The log knows cores by one bit of their number." [Cuts: WrongLine, Requests: RunEnded]
    "two-cores-logged" logging[TwoCores]
        "The log begins no transaction of a third core." [Cuts: WrongLine, Requests: WrongLine]
};

pub const LOG_OF_FEW: &[Fault] = rows! { "*/identity+sca", LOGGED_BRIEFLY;
    "log-not-truncated" logging[NotTruncated]
        "A commit does not truncate the log." [Cuts: Lost, Requests: WrongLine]
};
