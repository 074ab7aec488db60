//! USIMM and the memory scheduling championship, requests below the caches: `GAP R ADDRESS PC` and `GAP W ADDRESS`, after
//! that many other instructions. The address is physical.

use crate::convert::foreign::{Foreign, Reads, TextFormat, TextLine};
use crate::convert::parse::{ParsedRequest, ParsedRequests, after, number, shape};

pub const FORMAT: Foreign = Foreign {
    has_pc: true,
    ..Foreign::at_bus("usimm", None, Reads::Text(|_| Box::new(Usimm::default())))
};

#[derive(Default)]
struct Usimm {
    /// Instructions so far.
    moment: u64,
}

impl TextFormat for Usimm {
    fn line(&mut self, line: &TextLine<'_>, out: &mut ParsedRequests) -> Result<(), String> {
        let (gap, write, address, pc) = match line.words[..] {
            [gap, "R", address, pc] => (gap, false, address, Some(pc)),
            [gap, "W", address] => (gap, true, address, None),
            _ => return Err(shape(&line.words, "GAP R ADDRESS PC or GAP W ADDRESS")),
        };
        self.moment = after(self.moment, gap)?;
        out.push_back(ParsedRequest {
            cycle: Some(self.moment),
            pc: pc.map(number).transpose()?,
            ..ParsedRequest::new(write, number(address)?)
        });
        Ok(())
    }
}
