//! What tests of a memory without cores have in common.

use sardonyx::engine::Request;
use sardonyx::memory::Memory;
use sardonyx::stats::Direction;
use sardonyx::units::Time;

/// The first core's request at `arrival`, which counts.
pub fn request(kind: Direction, tag: u64, arrival: Time) -> Request {
    Request {
        arrival,
        core: 0,
        tag,
        kind,
        counted: true,
    }
}

/// Goes on until the memory has nothing more to do and its queues are empty; its answers are dropped.
pub fn drain(memory: &mut Memory) {
    loop {
        while memory.next_event() != Time::NEVER {
            memory.advance_until(Time::NEVER);
        }
        if !memory.empty_queues(true) {
            break;
        }
    }
    memory.answers().for_each(drop);
}
