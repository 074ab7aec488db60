//! Pin's pinatrace: `PC: R|W ADDRESS`.

use crate::convert::foreign::{Foreign, Reads, TextFormat, TextLine};
use crate::convert::parse::{ParsedRequests, hex, is_write, shape, touch};

pub const FORMAT: Foreign = Foreign {
    has_pc: true,
    ..Foreign::at_core("pinatrace", Reads::Text(|_| Box::new(Pinatrace::default())))
};

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
        let pc = hex(place.trim_end_matches(':'))?;
        self.moment += 1;
        let before = out.len();
        touch(
            self.moment,
            (is_write(op, "R", "W")?, hex(address)?, 1),
            &[],
            0,
            out,
        )?;
        for request in out.range_mut(before..) {
            request.pc = Some(pc);
        }
        Ok(())
    }
}
