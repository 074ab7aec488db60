//! Valgrind's lackey, --trace-mem=yes: `I ADDRESS,SIZE`, and indented `L`, `S` or `M` (load and store).

use crate::convert::foreign::{Foreign, Reads, TextFormat, TextLine};
use crate::convert::parse::{ParsedRequests, decimal, hex, shape, touch};

pub const FORMAT: Foreign =
    Foreign::at_core("lackey", Reads::Text(|_| Box::new(Lackey::default())));

#[derive(Default)]
struct Lackey {
    /// Instructions so far.
    moment: u64,
}

impl TextFormat for Lackey {
    fn line(&mut self, line: &TextLine<'_>, out: &mut ParsedRequests) -> Result<(), String> {
        if line.text.starts_with("==") || line.text.starts_with("--") {
            return Ok(()); // valgrind's own line.words
        }
        let [op, place] = &line.words[..] else {
            return Err(shape(&line.words, "I|L|S|M ADDRESS,SIZE"));
        };
        let (address, size) = place
            .split_once(',')
            .ok_or_else(|| format!("`{place}` is not ADDRESS,SIZE; correct or remove the line"))?;
        let (byte, size) = (hex(address)?, decimal(size, "size")?);
        let kinds: &[bool] = match *op {
            "I" => {
                self.moment += 1;
                return Ok(());
            }
            "L" => &[false],
            "S" => &[true],
            "M" => &[false, true],
            _ => return Err(format!("`{op}` is not I, L, S or M")),
        };
        for &write in kinds {
            touch(self.moment, (write, byte, size), &[], 0, out)?;
        }
        Ok(())
    }
}
