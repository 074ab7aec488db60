//! What tests of a memory without cores have in common.

use sardonyx::memory::Memory;
use sardonyx::units::Time;

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
