//! Ramulator 2, ReadWriteTrace: `R 0,0,0,0,12,3`, the numbers of each level of the device.

use crate::convert::foreign::{Foreign, Reads, TextFormat, TextLine};
use crate::convert::parse::{ParsedRequest, ParsedRequests, decimal, is_write, shape};

pub const FORMAT: Foreign = Foreign::at_bus(
    "ramulator-read-write",
    None,
    Reads::Text(|options| {
        Box::new(ReadWrite {
            levels: options.levels.clone(),
        })
    }),
);

const LEVELS: [&str; 6] = ["channel", "rank", "bank group", "bank", "row", "column"];

/// The reader: the sizes of the device's levels.
struct ReadWrite {
    levels: Vec<u64>,
}

impl TextFormat for ReadWrite {
    fn line(&mut self, line: &TextLine<'_>, out: &mut ParsedRequests) -> Result<(), String> {
        let [op, address] = &line.words[..] else {
            return Err(shape(&line.words, "R|W CHANNEL,RANK,..,COLUMN"));
        };
        let write = is_write(op, "R", "W")?;
        let parts: Vec<&str> = address.split(',').collect();
        if parts.len() != self.levels.len() {
            return Err(format!(
                "address `{address}` has {} parts, and the device {} levels ({}); give its levels",
                parts.len(),
                self.levels.len(),
                LEVELS.join(", ")
            ));
        }
        let mut at = 0;
        for (i, (part, &size)) in parts.iter().zip(&self.levels).enumerate() {
            let value = decimal(part, "address part")?;
            if value >= size {
                let level = LEVELS.get(i).copied().unwrap_or("level");
                return Err(format!(
                    "{level} {value} is not below {size}; give the levels of your device"
                ));
            }
            at = at * size + value;
        }
        out.push_back(ParsedRequest::new(write, at * 64));
        Ok(())
    }
}
