//! What the parquet crate reads a trace's pages through: no page header reaches it unchecked.
//!
//! Pages are decompressed whole, so the sizes that their headers claim bound what reading takes.

use std::fs::File;
use std::io::{Cursor, Error, ErrorKind, Read, Seek, SeekFrom};

use bytes::Bytes;
use parquet::errors::{ParquetError, Result};
use parquet::file::reader::{ChunkReader, Length};

use super::footer::STATISTICS;
use super::thrift::Claim::{DictionaryValues, Nothing, PageBytes, PageEncoding};
use super::thrift::Shape::{Bool, Int, Struct};
use super::thrift::{Claim, Fault, Shape, walk};

/// Bytes of a page, compressed or not; writers aim at 1 MB and few go beyond a row group of 100 MB.
const PAGE_BYTES: i64 = 128 << 20;
/// Bytes of a page's header, at most; ours have 30, with statistics of a line 300.
const HEADER_BYTES: u64 = 64 << 10;
/// As many are read first.
const USUAL_HEADER_BYTES: u64 = 1 << 10;
/// The parquet crate makes room for as many values as such a page claims, without end.
const DELTA_BYTE_ARRAY: i64 = 7;
/// The smallest value in a dictionary of a column of ours.
const VALUE_BYTES: i64 = 4;

/// A trace file whose pages are to be read.
pub(super) struct Pages {
    file: File,
    bytes: u64,
}

impl Pages {
    pub(super) fn new(file: File) -> std::io::Result<Pages> {
        let bytes = file.metadata()?.len();
        Ok(Pages { file, bytes })
    }
}

impl Length for Pages {
    fn len(&self) -> u64 {
        self.bytes
    }
}

impl ChunkReader for Pages {
    type T = Header;

    fn get_read(&self, start: u64) -> Result<Header> {
        Ok(Header {
            file: self.file.try_clone()?,
            start,
            checked: None,
        })
    }

    fn get_bytes(&self, start: u64, length: usize) -> Result<Bytes> {
        // Said before room is made for them.
        if start
            .checked_add(length as u64)
            .is_none_or(|end| end > self.bytes)
        {
            return Err(ParquetError::EOF(format!(
                "a page of {length} bytes at byte {start} goes beyond the file"
            )));
        }
        let mut bytes = vec![0; length];
        let mut file = &self.file;
        file.seek(SeekFrom::Start(start))?;
        file.read_exact(&mut bytes)?;
        Ok(bytes.into())
    }
}

/// The page header at `start`, checked when its first byte is asked for: the crate also makes readers
/// where no header is, and does not use them.
pub(super) struct Header {
    file: File,
    start: u64,
    checked: Option<Cursor<Vec<u8>>>,
}

impl Read for Header {
    fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
        if self.checked.is_none() {
            let bytes = header(&mut self.file, self.start)?;
            self.checked = Some(Cursor::new(bytes));
        }
        self.checked
            .as_mut()
            .map_or(Ok(0), |bytes| bytes.read(into))
    }
}

/// The bytes at `start`, which begin with a page header that may be believed.
fn header(file: &mut File, start: u64) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let mut outcome = Err(Fault::Short);
    for most in [USUAL_HEADER_BYTES, HEADER_BYTES] {
        file.seek(SeekFrom::Start(start + bytes.len() as u64))?;
        let more = most - bytes.len() as u64;
        file.take(more).read_to_end(&mut bytes)?;
        outcome = check(&bytes);
        if outcome != Err(Fault::Short) {
            break;
        }
    }
    let refused = |what: String| Error::new(ErrorKind::InvalidData, what);
    match outcome {
        Ok(()) => Ok(bytes),
        Err(Fault::Short) => Err(refused(format!(
            "the page header at byte {start} has no end"
        ))),
        Err(Fault::Wrong(what)) => Err(refused(format!(
            "in the page header at byte {start}, {what}"
        ))),
    }
}

fn check(bytes: &[u8]) -> std::result::Result<(), Fault> {
    let (mut size, mut values) = (0, 0);
    let mut see = |claim: Claim, value: i64| {
        match claim {
        PageBytes if !(0..=PAGE_BYTES).contains(&value) => Err(format!(
            "a page claims {value} bytes, and a trace's pages have at most {PAGE_BYTES}; write smaller ones"
        )),
        PageBytes => {
            size = value.max(size);
            Ok(())
        }
        DictionaryValues => {
            values = value.max(values);
            Ok(())
        }
        PageEncoding if value == DELTA_BYTE_ARRAY => Err(
            "the encoding is DELTA_BYTE_ARRAY, which is not read; write `data` as PLAIN or with a dictionary"
                .to_owned(),
        ),
        _ => Ok(()),
    }
    };
    walk(bytes, &PAGE, &mut see)?;
    if values > size / VALUE_BYTES {
        return Err(Fault::Wrong(format!(
            "a dictionary claims {values} values in {size} bytes"
        )));
    }
    Ok(())
}

const INT: Shape = Int(Nothing);
static PAGE: Shape = Struct(&[
    (1, INT),
    (2, Int(PageBytes)),
    (3, Int(PageBytes)),
    (4, INT),
    (5, DATA),
    (6, Struct(&[])),
    (7, DICTIONARY),
    (8, DATA_V2),
]);
const DATA: Shape = Struct(&[
    (1, INT),
    (2, Int(PageEncoding)),
    (3, INT),
    (4, INT),
    (5, STATISTICS),
]);
const DICTIONARY: Shape = Struct(&[(1, Int(DictionaryValues)), (2, INT), (3, Bool)]);
const DATA_V2: Shape = Struct(&[
    (1, INT),
    (2, INT),
    (3, INT),
    (4, Int(PageEncoding)),
    (5, INT),
    (6, INT),
    (7, Bool),
    (8, STATISTICS),
]);

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    /// A page header: type, sizes (zigzag), and the field that says what kind of page it is.
    fn page(size: &[u8], kind: &[u8]) -> Vec<u8> {
        [&[0x15, 0, 0x15], size, &[0x15, 2], kind, &[0]].concat()
    }

    const TINY: &[u8] = &[20];
    const HALF_THE_LIMIT: &[u8] = &[0x80, 0x80, 0x80, 0x40];
    const BEYOND_IT: &[u8] = &[0x82, 0x80, 0x80, 0x80, 0x01];
    const PLAIN: &[u8] = &[0x2C, 0x15, 6, 0x15, 0, 0x15, 6, 0x15, 6, 0];
    const DELTAS: &[u8] = &[0x2C, 0x15, 6, 0x15, 14, 0x15, 6, 0x15, 6, 0];
    const DICTIONARY_OF_2: &[u8] = &[0x4C, 0x15, 4, 0x15, 0, 0];
    const DICTIONARY_OF_3: &[u8] = &[0x4C, 0x15, 6, 0x15, 0, 0];

    #[test]
    fn headers_that_claim_too_much_are_refused() {
        for (bytes, word) in [
            (page(TINY, PLAIN), None),
            (page(HALF_THE_LIMIT, PLAIN), None),
            (page(BEYOND_IT, PLAIN), Some("claims 134217729 bytes")),
            (page(&[1], PLAIN), Some("claims -1 bytes")),
            (page(TINY, DELTAS), Some("DELTA_BYTE_ARRAY")),
            (page(TINY, DICTIONARY_OF_2), None),
            (page(TINY, DICTIONARY_OF_3), Some("3 values in 10 bytes")),
        ] {
            match (check(&bytes), word) {
                (Ok(()), None) => (),
                (Err(Fault::Wrong(what)), Some(word)) => assert!(what.contains(word), "{what}"),
                (outcome, word) => panic!("{outcome:?}, not {word:?}"),
            }
        }
    }

    #[test]
    fn a_header_without_end_is_refused_after_a_bounded_read() {
        let mut file = tempfile::tempfile().unwrap();
        // A field of number 100 and one byte, again and again.
        file.write_all(&[3, 0xC8, 1, 7].repeat(1 << 16)).unwrap();
        let error = header(&mut file, 0).unwrap_err().to_string();
        assert!(error.contains("has no end"), "{error}");
    }
}
