//! DynamoRIO's drmemtrace, the text of its view tool: `.. T12 read 8 byte(s) @ 0x1000 by PC ..`.

use rustc_hash::FxHashMap;

use crate::convert::foreign::{Foreign, Reads, TextFormat, TextLine};
use crate::convert::parse::{ParsedRequests, decimal, hex, shape, touch};

pub const FORMAT: Foreign =
    Foreign::at_core("dynamorio", Reads::Text(|_| Box::new(DynamoRio::default())));

#[derive(Default)]
struct DynamoRio {
    /// Instructions so far.
    moment: u64,
    /// By how the view tool calls them.
    threads: FxHashMap<String, usize>,
}

impl TextFormat for DynamoRio {
    fn line(&mut self, line: &TextLine<'_>, out: &mut ParsedRequests) -> Result<(), String> {
        let Some(at) = line
            .words
            .windows(2)
            .position(|two| two == ["byte(s)", "@"])
        else {
            // Headings, markers and the counts at the end.
            let known = line
                .words
                .iter()
                .any(|word| word.starts_with('<') || word.ends_with(':') || word.starts_with("--"));
            return match known {
                true => Ok(()),
                false => Err("is not a line of DynamoRIO's view tool".to_owned()),
            };
        };
        let (Some(kind), Some(size), Some(address)) = (
            at.checked_sub(2).map(|kind| line.words[kind]),
            at.checked_sub(1).map(|size| line.words[size]),
            line.words.get(at + 2),
        ) else {
            return Err(shape(&line.words, ".. KIND SIZE byte(s) @ ADDRESS"));
        };
        let write = match kind {
            "ifetch" | "non-fetched" => {
                self.moment += 1;
                return Ok(());
            }
            "read" => false,
            "write" => true,
            // Prefetches and flushes move no bytes of the program.
            _ => return Ok(()),
        };
        // The thread stands before the kind: `T12`, `W0.T12` or, in between, `12`. Threads have large numbers of the
        // system; here the first one is 0.
        let name = at.checked_sub(3).map_or("", |thread| line.words[thread]);
        let next = self.threads.len();
        let number = match self.threads.get(name) {
            Some(&number) => number,
            None => *self.threads.entry(name.to_owned()).or_insert(next),
        };
        let thread =
            u16::try_from(number).map_err(|_| "has more than 65,536 threads".to_owned())?;
        touch(
            self.moment,
            (write, hex(address)?, decimal(size, "size")?),
            &[],
            thread,
            out,
        )
    }
}
