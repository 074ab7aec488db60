//! A store that decides whether a recovery fails, with its line of code.

use serde::Serialize;

use crate::images::Over;
use crate::recording::source::{Frame, Sources, caller};
use crate::recording::{LINE, NOWHERE, Recording};
use crate::report::fate::fate;

#[derive(Clone, Debug, Serialize)]
pub struct Store {
    /// `file.c:12`, or another description if the line is not known.
    pub place: String,
    pub frame: Option<Frame>,
    /// The library's function that the user's line called, if the store is in a library.
    pub through: Option<String>,
    pub stack: Vec<Frame>,
    /// The offset in the pool of the first byte that it changed.
    pub offset: u64,
    pub pool: Option<String>,
    /// The number of bytes from there to the last that it changed.
    pub bytes: u64,
    pub row: u64,
    pub thread: u16,
    pub fate: Option<String>,
}

pub(crate) fn store(
    recording: &Recording,
    sources: &mut Option<Sources<'_>>,
    over: Over,
    late: Option<u32>,
) -> Store {
    let slot = &recording.lines[over.slot as usize];
    let (line, before, data) = slot.versions.change(over.version);
    let made = slot.versions.event(over.version);
    let event = recording.event(made);
    let differ = |i: &usize| data[*i] != before[*i];
    let first = (0..LINE).find(differ).unwrap_or(0);
    let last = (0..LINE).rev().find(differ).unwrap_or(0);
    let stack = match (&mut *sources, event.site) {
        (Some(sources), site) if site != NOWHERE => sources.stack(site),
        _ => Vec::new(),
    };
    let own = stack.iter().position(Frame::own);
    let frame = own.map(|at| stack[at].clone());
    let through = (own.unwrap_or(0) > 0)
        .then(|| {
            stack[..own.unwrap_or(0)]
                .iter()
                .rev()
                .find_map(|f| f.function.clone())
        })
        .flatten();
    let offset = u64::from(line) * LINE as u64 + first as u64;
    let pool = recording.pool_of(over.slot);
    Store {
        place: match &frame {
            Some(frame) => frame.place(),
            None => {
                let bare = || format!("{} offset {offset:#x}", pool.as_deref().unwrap_or("pool"));
                (stack.first()).map_or_else(bare, Frame::place)
            }
        },
        frame,
        through,
        stack,
        offset,
        pool,
        bytes: (last - first + 1) as u64,
        row: event.row,
        thread: event.thread,
        fate: late.and_then(|cut| {
            let fate = fate(recording, made, cut);
            fate.words(recording.platform.is_disk(), |number| {
                own_place(recording, sources, number)
            })
        }),
    }
}

/// The user's line that an event counts for, or another description.
pub(crate) fn own_place(
    recording: &Recording,
    sources: &mut Option<Sources<'_>>,
    number: u32,
) -> String {
    let event = recording.event(number);
    let stack = match sources {
        Some(sources) if event.site != NOWHERE => sources.stack(event.site),
        _ => Vec::new(),
    };
    let frame = caller(&stack).or(stack.first());
    frame.map_or_else(|| format!("row {}", event.row), Frame::place)
}
