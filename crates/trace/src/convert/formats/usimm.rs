//! USIMM and the memory scheduling championship, requests below the caches: `GAP R ADDRESS PC` and `GAP W ADDRESS`, after
//! that many other instructions. The address is physical.

use crate::convert::foreign::{Foreign, Reads, TextFormat, TextLine};
use crate::convert::parse::{ParsedRequest, ParsedRequests, decimal, number, shape};

pub const FORMAT: Foreign =
    Foreign::at_bus("usimm", None, Reads::Text(|_| Box::new(Usimm::default())));

#[derive(Default)]
struct Usimm {
    /// Instructions so far.
    moment: u64,
}

impl TextFormat for Usimm {
    fn line(&mut self, line: &TextLine<'_>, out: &mut ParsedRequests) -> Result<(), String> {
        let (gap, write, address) = match line.words[..] {
            [gap, "R", address, _] => (gap, false, address),
            [gap, "W", address] => (gap, true, address),
            _ => return Err(shape(&line.words, "GAP R ADDRESS PC or GAP W ADDRESS")),
        };
        self.moment += decimal(gap, "count of other instructions")? + 1;
        out.push_back(ParsedRequest {
            cycle: Some(self.moment),
            ..ParsedRequest::new(write, number(address)?)
        });
        Ok(())
    }
}
