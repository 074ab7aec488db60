//! Ramulator 1 and 2, instruction traces: `BUBBLES LOAD [WRITEBACK]`, or `BUBBLES ADDRESS R|W`: that many
//! instructions, then one that accesses memory. Its frontend translates the addresses.

use crate::convert::foreign::{Foreign, Reads, TextFormat, TextLine};
use crate::convert::parse::{ParsedRequest, ParsedRequests, after, number, shape};

pub const FORMAT: Foreign = Foreign {
    is_physical: false,
    ..Foreign::at_bus(
        "ramulator-instructions",
        None,
        Reads::Text(|_| Box::new(Instructions::default())),
    )
};

#[derive(Default)]
struct Instructions {
    /// Instructions so far.
    moment: u64,
}

impl TextFormat for Instructions {
    fn line(&mut self, line: &TextLine<'_>, out: &mut ParsedRequests) -> Result<(), String> {
        const FORM: &str = "BUBBLES LOAD [WRITEBACK] or BUBBLES ADDRESS R|W";
        let [bubbles, address, more @ ..] = &line.words[..] else {
            return Err(shape(&line.words, FORM));
        };
        self.moment = after(self.moment, bubbles)?;
        let byte = number(address)?;
        let request = |write, byte| ParsedRequest {
            cycle: Some(self.moment),
            ..ParsedRequest::new(write, byte)
        };
        match more {
            [] | ["R"] => out.push_back(request(false, byte)),
            ["W"] => out.push_back(request(true, byte)),
            [written] => {
                let written = number(written)?;
                out.push_back(request(false, byte));
                out.push_back(request(true, written));
            }
            _ => return Err(shape(&line.words, FORM)),
        }
        Ok(())
    }
}
