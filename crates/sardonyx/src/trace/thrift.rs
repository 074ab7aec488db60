//! Looks through Parquet's bookkeeping (Thrift's compact protocol) before the parquet crate believes it.
//!
//! The crate takes a field for what its number says, passes over unknown ones element by element, and
//! reserves room for as many elements as are announced: a few crafted bytes can cost it hours or
//! gigabytes. Here every field that it reads must have the type that the format gives it, and every
//! announced element must be there. What the numbers may be is for the caller (`footer`, `pages`).

/// Structs in structs, at most; the format's own need 7.
const DEPTH: u32 = 24;

/// What a value is, where somebody has to look at it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Claim {
    Nothing,
    /// An element of the schema begins.
    SchemaElement,
    Children,
    RowGroup,
    PageBytes,
    DictionaryValues,
    PageEncoding,
}

/// The type of a field, of those that the parquet crate reads.
pub(super) enum Shape {
    Bool,
    Byte,
    Int(Claim),
    Double,
    Binary,
    List(Claim, &'static Shape),
    /// Fields by number; others are passed over, whatever they are.
    Struct(&'static [(i16, Shape)]),
}

/// Why bytes are refused.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Fault {
    /// They end before the struct does.
    Short,
    /// What is wrong.
    Wrong(String),
}

type Outcome<T = ()> = Result<T, Fault>;
/// Told each claim and its value; an error ends the walk.
type See<'a> = &'a mut dyn FnMut(Claim, i64) -> Result<(), String>;

fn wrong<T>(what: &str) -> Outcome<T> {
    Err(Fault::Wrong(what.to_owned()))
}

/// Walks over the struct of `shape` that `bytes` begin with.
pub(super) fn walk(bytes: &[u8], shape: &'static Shape, see: See<'_>) -> Outcome {
    Walk { bytes, see }.known(STRUCT, shape, DEPTH)
}

const STRUCT: u8 = 12;

struct Walk<'a> {
    bytes: &'a [u8],
    see: See<'a>,
}

impl Walk<'_> {
    fn known(&mut self, kind: u8, shape: &'static Shape, depth: u32) -> Outcome {
        let fits = match shape {
            Shape::Bool => matches!(kind, 1 | 2),
            Shape::Byte => kind == 3,
            Shape::Int(_) => matches!(kind, 4..=6),
            Shape::Double => kind == 7,
            Shape::Binary => kind == 8,
            Shape::List(..) => matches!(kind, 9 | 10),
            Shape::Struct(_) => kind == STRUCT,
        };
        if !fits {
            return wrong("a field is not of the type that Parquet gives it");
        }
        match shape {
            Shape::Int(claim) => {
                let value = self.zigzag()?;
                self.tell(*claim, value)
            }
            Shape::List(claim, element) => {
                let (kind, count) = self.list()?;
                for index in 0..count {
                    self.tell(*claim, i64::from(index))?;
                    self.known(kind, element, depth)?;
                }
                Ok(())
            }
            Shape::Struct(fields) => self.fields(fields, depth),
            Shape::Bool | Shape::Byte | Shape::Double | Shape::Binary => self.any(kind, depth),
        }
    }

    fn tell(&mut self, claim: Claim, value: i64) -> Outcome {
        if claim == Claim::Nothing {
            return Ok(());
        }
        (self.see)(claim, value).map_err(Fault::Wrong)
    }

    fn fields(&mut self, fields: &'static [(i16, Shape)], depth: u32) -> Outcome {
        let Some(depth) = depth.checked_sub(1) else {
            return wrong("its structs are nested too deep");
        };
        let mut last = 0i16;
        loop {
            let head = self.byte()?;
            if head & 0xF == 0 {
                return Ok(());
            }
            last = match head >> 4 {
                0 => self.zigzag()? as i16, // truncated as the crate does it
                delta => match last.checked_add(i16::from(delta)) {
                    Some(id) => id,
                    None => return wrong("a field's number is out of range"),
                },
            };
            match fields.iter().find(|(id, _)| *id == last) {
                Some((_, shape)) => self.known(head & 0xF, shape, depth)?,
                None => self.any(head & 0xF, depth)?,
            }
        }
    }

    /// Passes over a value of a type, as the crate does.
    fn any(&mut self, kind: u8, depth: u32) -> Outcome {
        match kind {
            1 | 2 => Ok(()),
            3 => self.skip(1),
            4..=6 => self.number().map(drop),
            7 => self.skip(8),
            8 => {
                let length = self.number()?;
                self.skip(length)
            }
            9 | 10 => {
                let Some(depth) = depth.checked_sub(1) else {
                    return wrong("its lists are nested too deep");
                };
                let (kind, count) = self.list()?;
                (0..count).try_for_each(|_| self.any(kind, depth))
            }
            STRUCT => self.fields(&[], depth),
            13 => self.skip(16),
            _ => wrong("it has a map or an unknown type, and Parquet has neither"),
        }
    }

    /// The type and number of a list's elements. Of truth values the crate would take any number from
    /// no bytes at all; Parquet has no list of them here.
    fn list(&mut self) -> Outcome<(u8, u32)> {
        let head = self.byte()?;
        let count = match head >> 4 {
            15 => self.number()?,
            few => u64::from(few),
        };
        let kind = head & 0xF;
        if matches!(kind, 1 | 2) && count > 0 {
            return wrong("it has a list of truth values, and Parquet has none here");
        }
        // Every element takes a byte or more.
        match u32::try_from(count) {
            Ok(count) if count as usize <= self.bytes.len() => Ok((kind, count)),
            _ => Err(Fault::Short),
        }
    }

    fn byte(&mut self) -> Outcome<u8> {
        let (&first, rest) = self.bytes.split_first().ok_or(Fault::Short)?;
        self.bytes = rest;
        Ok(first)
    }

    fn skip(&mut self, count: u64) -> Outcome {
        let count = usize::try_from(count).map_err(|_| Fault::Short)?;
        self.bytes = self.bytes.get(count..).ok_or(Fault::Short)?;
        Ok(())
    }

    fn number(&mut self) -> Outcome<u64> {
        let mut value = 0;
        for shift in (0..70).step_by(7) {
            let byte = self.byte()?;
            value |= u64::from(byte & 0x7F).wrapping_shl(shift);
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        wrong("a number has more than ten bytes")
    }

    fn zigzag(&mut self) -> Outcome<i64> {
        let value = self.number()?;
        Ok((value >> 1) as i64 ^ -((value & 1) as i64))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    static EMPTY: Shape = Shape::Struct(&[]);
    static ONE: Shape = Shape::Struct(&[(1, Shape::Int(Claim::Children))]);

    fn over(bytes: &[u8]) -> Outcome {
        walk(bytes, &EMPTY, &mut |_, _| Ok(()))
    }

    #[test]
    fn known_fields_are_told_and_must_be_of_their_type() {
        let mut told = Vec::new();
        let mut see = |claim, value| {
            told.push((claim, value));
            Ok(())
        };
        // Field 1: zigzag 3; field 2, unknown: a binary of two bytes.
        assert_eq!(walk(&[0x15, 6, 0x18, 2, 9, 9, 0], &ONE, &mut see), Ok(()));
        assert_eq!(told, [(Claim::Children, 3)]);
        let binary = walk(&[0x18, 0, 0], &ONE, &mut |_, _| Ok(()));
        assert!(matches!(binary, Err(Fault::Wrong(_))));
    }

    #[test]
    fn every_prefix_is_short() {
        let whole = [
            0x19, 0x28, 1, b'a', 2, b'b', b'c', 0x1C, 0, 0x17, 0, 0, 0, 0, 0, 0, 0, 0, 0,
        ];
        assert_eq!(over(&whole), Ok(()));
        for end in 0..whole.len() {
            assert_eq!(over(&whole[..end]), Err(Fault::Short), "{end} bytes");
        }
    }

    #[test]
    fn announced_elements_must_be_there() {
        // 2^31 - 1 numbers, and as many truth values, which would take no bytes.
        let numbers = [0x19, 0xF5, 0xFF, 0xFF, 0xFF, 0xFF, 0x07, 0];
        assert_eq!(over(&numbers), Err(Fault::Short));
        let truths = [0x19, 0xF1, 0xFF, 0xFF, 0xFF, 0xFF, 0x07, 0];
        assert!(matches!(over(&truths), Err(Fault::Wrong(_))));
    }

    #[test]
    fn nesting_ends() {
        let deep = [0x1C; 100_000];
        assert!(matches!(over(&deep), Err(Fault::Wrong(_))));
        let lists = [[0x19].as_slice(), &[0x19; 100_000]].concat();
        assert!(matches!(over(&lists), Err(Fault::Wrong(_))));
    }
}
