//! Writes a trace's columns as Parquet, with a checksum of each page in its header. The parquet crate checks these and
//! writes none, so its pages pass through here on their way to the file.

use std::fs::File;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use parquet::arrow::ArrowSchemaConverter;
use parquet::column::page::{CompressedPage, PageWriteSpec, PageWriter};
use parquet::column::writer::{ColumnWriter, get_column_writer};
use parquet::data_type::{ByteArray, FixedLenByteArray};
use parquet::errors::{ParquetError, Result};
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedFileWriter, SerializedPageWriter, TrackedWrite};

use super::Record;
use super::columns::schema;
use super::pages::{Claims, NEXT_FIELD_I32};
use crate::line::LINE_BYTES;

pub(super) const ROW_GROUP: usize = 65_536;

pub(super) struct Chunks {
    file: SerializedFileWriter<File>,
    group: Vec<OpenChunk>,
    rows: usize,
}

struct OpenChunk {
    encoder: ColumnWriter<'static>,
    bytes: Arc<Mutex<Vec<u8>>>,
}

impl Chunks {
    pub(super) fn new(file: File, properties: WriterProperties, sites: bool) -> Result<Chunks> {
        let schema = ArrowSchemaConverter::new().convert(&schema(sites))?;
        let root = schema.root_schema_ptr();
        Ok(Chunks {
            file: SerializedFileWriter::new(file, root, Arc::new(properties))?,
            group: Vec::new(),
            rows: 0,
        })
    }

    pub(super) fn write(&mut self, rows: &[Record], sites: &[Option<u32>]) -> Result<()> {
        let mut done = 0;
        while done < rows.len() {
            let end = rows.len().min(done + ROW_GROUP - self.rows);
            let sites = sites.get(done..end).unwrap_or_default();
            self.encode(&rows[done..end], sites)?;
            self.rows += end - done;
            done = end;
            if self.rows == ROW_GROUP {
                self.close_group()?;
            }
        }
        Ok(())
    }

    fn encode(&mut self, rows: &[Record], sites: &[Option<u32>]) -> Result<()> {
        if self.group.is_empty() {
            self.open_group();
        }
        // Parquet has no unsigned numbers of its own: the schema says that they are, the bits are the same.
        let present = rows.iter().filter_map(|r| r.data.as_ref());
        let lines = Bytes::from(present.flatten().copied().collect::<Vec<u8>>());
        let line = |start| {
            let line = lines.slice(start..start + LINE_BYTES);
            FixedLenByteArray::from(ByteArray::from(line))
        };
        let lines: Vec<_> = (0..lines.len()).step_by(LINE_BYTES).map(line).collect();
        let has_line: Vec<_> = rows.iter().map(|r| i16::from(r.data.is_some())).collect();
        let known: Vec<_> = sites.iter().flatten().map(|site| *site as i32).collect();
        let has_site: Vec<_> = sites.iter().map(|s| i16::from(s.is_some())).collect();
        for (index, column) in self.group.iter_mut().enumerate() {
            let numbers = |of: fn(&Record) -> i32| rows.iter().map(of).collect::<Vec<_>>();
            match (index, &mut column.encoder) {
                (0, ColumnWriter::Int32ColumnWriter(gap)) => {
                    gap.write_batch(&numbers(|r| r.gap as i32), None, None)?
                }
                (1, ColumnWriter::Int32ColumnWriter(thread)) => {
                    thread.write_batch(&numbers(|r| i32::from(r.thread)), None, None)?
                }
                (2, ColumnWriter::Int32ColumnWriter(op)) => {
                    op.write_batch(&numbers(|r| i32::from(r.op.code())), None, None)?
                }
                (3, ColumnWriter::Int64ColumnWriter(line)) => {
                    let numbers: Vec<_> = rows.iter().map(|r| r.line.0 as i64).collect();
                    line.write_batch(&numbers, None, None)?
                }
                (4, ColumnWriter::FixedLenByteArrayColumnWriter(data)) => {
                    data.write_batch(&lines, Some(&has_line), None)?
                }
                (5, ColumnWriter::Int32ColumnWriter(site)) => {
                    site.write_batch(&known, Some(&has_site), None)?
                }
                _ => unreachable!("the columns follow the schema"),
            };
        }
        Ok(())
    }

    fn open_group(&mut self) {
        let properties = self.file.properties();
        let columns = self.file.schema_descr().columns().iter();
        let column = |descriptor: &Arc<_>| {
            let bytes = Arc::<Mutex<Vec<u8>>>::default();
            let pages = Box::new(Summed(Arc::clone(&bytes)));
            let properties = Arc::clone(properties);
            let encoder = get_column_writer(Arc::clone(descriptor), properties, pages);
            OpenChunk { encoder, bytes }
        };
        self.group = columns.map(column).collect();
    }

    fn close_group(&mut self) -> Result<()> {
        let mut group = self.file.next_row_group()?;
        for column in std::mem::take(&mut self.group) {
            let close = column.encoder.close()?;
            let bytes = std::mem::take(&mut *column.bytes.lock().expect("no writer panics"));
            group.append_column(&Bytes::from(bytes), close)?;
        }
        group.close()?;
        self.rows = 0;
        Ok(())
    }

    pub(super) fn finish(mut self, entry: KeyValue) -> Result<File> {
        if self.rows > 0 {
            self.close_group()?;
        }
        self.file.append_key_value_metadata(entry);
        self.file.into_inner()
    }
}

/// Concatenates the pages of a column chunk, each with its checksum in its header.
struct Summed(Arc<Mutex<Vec<u8>>>);

impl PageWriter for Summed {
    fn write_page(&mut self, page: CompressedPage) -> Result<PageWriteSpec> {
        let data = page.data().len();
        let mut plain = TrackedWrite::new(Vec::new());
        let mut spec = SerializedPageWriter::new(&mut plain).write_page(page)?;
        let plain = plain.into_inner()?;
        let (header, data) = plain.split_at(plain.len() - data);
        let summed = with_checksum(header, crc32fast::hash(data))
            .ok_or_else(|| ParquetError::General("a page header of another kind".to_owned()))?;
        let mut bytes = self.0.lock().expect("no writer panics");
        spec.offset = bytes.len() as u64;
        bytes.extend(&summed);
        bytes.extend(data);
        let more = summed.len() - header.len();
        spec.uncompressed_size += more;
        spec.compressed_size += more;
        spec.bytes_written += more as u64;
        Ok(spec)
    }

    fn close(&mut self) -> Result<()> {
        Ok(())
    }
}

/// Adds a field `crc`, the fourth, to a page `header`; `None` if the header has one already or is malformed. In
/// Thrift's compact protocol the following field gives its distance in the upper four bits, which becomes one less.
fn with_checksum(header: &[u8], crc: u32) -> Option<Vec<u8>> {
    let claims = Claims::parse(header)?;
    let (sizes, rest) = header.split_at(claims.end);
    let (next, rest) = rest.split_first()?;
    if claims.checksum || *next < 0x20 {
        return None;
    }
    let mut summed = [sizes, &[NEXT_FIELD_I32]].concat();
    let crc = crc as i32;
    let mut zigzag = (crc << 1 ^ crc >> 31) as u32;
    while zigzag >= 0x80 {
        summed.push(zigzag as u8 | 0x80);
        zigzag >>= 7;
    }
    summed.push(zigzag as u8);
    summed.push(next - 0x10);
    summed.extend(rest);
    Some(summed)
}
