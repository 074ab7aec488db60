//! Pin's pinatrace: `PC: R|W ADDRESS`.

use crate::convert::foreign::{Foreign, Reads, TextFormat, TextLine};
use crate::convert::parse::{ParsedRequests, hex, is_write, shape, touch};

pub const FORMAT: Foreign =
    Foreign::at_core("pinatrace", Reads::Text(|_| Box::new(Pinatrace::default())));

#[derive(Default)]
struct Pinatrace {
    /// Accesses so far.
    moment: u64,
}

impl TextFormat for Pinatrace {
    fn line(&mut self, line: &TextLine<'_>, out: &mut ParsedRequests) -> Result<(), String> {
        let [place, op, address] = &line.words[..] else {
            return Err(shape(&line.words, "PC: R|W ADDRESS"));
        };
        hex(place.trim_end_matches(':'))?;
        self.moment += 1;
        touch(
            self.moment,
            (is_write(op, "R", "W")?, hex(address)?, 1),
            &[],
            0,
            out,
        )
    }
}
