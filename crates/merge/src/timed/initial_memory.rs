//! The contents of memory before the window. A design that keeps something about its lines, such as a counter or a
//! place, is given the machines' pages first, as if they had been written long ago, so that it reads and shares them as
//! it would. A design that keeps only bytes holds them without a write. Frames that merging frees stay in memory,
//! because nobody tells the memory.

use std::sync::Arc;

use crate::images::Images;
use crate::{Page, PageBytes};
use sardonyx::config::Machine;
use sardonyx::controller::designs::Stack;
use sardonyx::controller::integrity;
use sardonyx::controller::layers::{Counters, Placement};
use sardonyx::line::{LINE_BYTES, Line, Logical, Place, ZERO_LINE};
use sardonyx::machine::{Backing, PAGE_LINES, RunError};
use sardonyx::medium::layout::Layout;
use sardonyx::memory::Memory;

/// The bytes of frames before anybody writes them: page k of all machines lies in frame k.
pub struct Initial {
    images: Arc<Images>,
    contents: Vec<Option<u32>>,
}

impl Initial {
    pub fn new(images: &Arc<Images>) -> Initial {
        let pages = 0..images.pages() as Page;
        Initial {
            contents: pages.map(|page| images.last(page)).collect(),
            images: images.clone(),
        }
    }

    fn bytes(&self, frame: u64) -> Option<&PageBytes> {
        let content = self.contents.get(frame as usize)?;
        Some(self.images.bytes((*content)?))
    }
}

impl Backing for Initial {
    fn line(&self, line: Logical) -> Line {
        let (frame, at) = (line.0 / PAGE_LINES, line.0 % PAGE_LINES);
        let lines = |bytes: &PageBytes| bytes.as_chunks::<LINE_BYTES>().0[at as usize];
        self.bytes(frame).map_or(ZERO_LINE, lines)
    }
}

/// The lines that a memory was given before the window, and those that it stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Loaded {
    pub lines: u64,
    /// The stored lines; the others share the place of an equal one.
    pub stored: u64,
}

/// Whether a stack keeps nothing of a line except its bytes, at its own place.
fn keeps_bytes_alone(stack: &Stack, machine: &Machine) -> bool {
    let mut layout = Layout::new(machine.engine.medium.geometry.lines());
    stack.build(&machine.settings, &mut layout);
    let placement = (stack.mapping.placement)(&machine.settings, &layout);
    matches!(placement, Placement::Home)
        && stack.policy.counters == Counters::None
        && stack.integrity.about.name == integrity::DEFAULT
}

/// A memory of that design that holds the pages, and the lines that it was given, if any.
///
/// # Errors
/// There is no such design; or `go_on` ended it.
pub fn memory(
    design: &str,
    machine: &Machine,
    pages: &Initial,
    go_on: &mut dyn FnMut() -> bool,
) -> Result<(Memory, Option<Loaded>), RunError> {
    let mut memory = Memory::new(machine, design)?;
    memory.check(Some(Box::default()));
    if keeps_bytes_alone(&Stack::named(design)?, machine) {
        return Ok((memory, None));
    }
    let mut lines = 0;
    for frame in 0..pages.contents.len() as u64 {
        let Some(bytes) = pages.bytes(frame) else {
            continue;
        };
        if !go_on() {
            return Err(RunError::Cancelled);
        }
        for (at, line) in (frame * PAGE_LINES..).zip(bytes.as_chunks::<LINE_BYTES>().0) {
            memory.write_at_once(Logical(at), line);
            lines += 1;
        }
    }
    memory.settle();
    let data = Place(machine.engine.medium.geometry.lines());
    let stored = memory.image().written_lines();
    let stored = stored.filter(|(place, _)| *place < data).count() as u64;
    Ok((memory, Some(Loaded { lines, stored })))
}
