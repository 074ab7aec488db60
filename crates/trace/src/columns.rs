//! The five columns of a trace file: their types, and how a row of them becomes a record.
//!
//! A type check fails once, for the file; a bad value fails for its row, so that `check` can go on.

use arrow_array::cast::AsArray;
use arrow_array::types::{UInt8Type, UInt16Type, UInt32Type, UInt64Type};
use arrow_array::{
    Array, FixedSizeBinaryArray, RecordBatch, UInt8Array, UInt16Array, UInt32Array, UInt64Array,
};
use arrow_schema::{DataType, Field, Schema};

use super::{Level, Op, Record};
use crate::line::{LINE_BYTES, Virtual};

/// Line numbers end here, because the byte address of a higher line does not fit in 64 bits.
pub(super) const LINE_LIMIT: u64 = 1 << 58;

const DATA: DataType = DataType::FixedSizeBinary(LINE_BYTES as i32);

/// Name, Arrow type and description of each column, in file order.
pub(super) const COLUMNS: [(&str, DataType, &str); 5] = [
    ("gap", DataType::UInt32, "an unsigned 32-bit integer"),
    ("thread", DataType::UInt16, "an unsigned 16-bit integer"),
    ("op", DataType::UInt8, "an unsigned 8-bit integer"),
    ("line", DataType::UInt64, "an unsigned 64-bit integer"),
    ("data", DATA, "a fixed-size binary of 64 bytes"),
];

/// The column of recordings with `--pc`: the place in the program that a record came from.
pub(super) const SITE: &str = "site";

/// The schema of files that we write. Only `data` and `site` can be null.
pub(super) fn schema(sites: bool) -> Schema {
    let columns = COLUMNS.map(|(name, kind, _)| Field::new(name, kind, name == "data"));
    let site = sites.then(|| Field::new(SITE, DataType::UInt32, true));
    Schema::new(columns.into_iter().chain(site).collect::<Vec<_>>())
}

/// Says how `schema` differs from a trace's, if it does. Neither the order of columns nor further columns matter.
pub(super) fn check_schema(schema: &Schema) -> Result<(), String> {
    for (name, kind, words) in &COLUMNS {
        let found: Vec<_> = schema
            .fields()
            .iter()
            .filter(|f| f.name() == name)
            .collect();
        match found[..] {
            [] => {
                let names: Vec<_> = schema.fields().iter().map(|f| f.name().as_str()).collect();
                return Err(format!(
                    "there is no column `{name}` among [{}]; a trace has gap, thread, op, line \
                     and data (docs/simulator/trace-format.md)",
                    names.join(", ")
                ));
            }
            [field] if field.data_type() == kind => {}
            [field] => {
                return Err(format!(
                    "column `{name}` is {}, but must be {words}; convert it before writing \
                     (docs/simulator/trace-format.md shows how)",
                    field.data_type()
                ));
            }
            _ => {
                return Err(format!(
                    "column `{name}` is there {} times; keep one",
                    found.len()
                ));
            }
        }
    }
    Ok(())
}

pub(super) struct ColumnRows {
    gap: UInt32Array,
    thread: UInt16Array,
    op: UInt8Array,
    line: UInt64Array,
    data: FixedSizeBinaryArray,
    site: Option<UInt32Array>,
    any_null: bool,
    level: Level,
}

impl ColumnRows {
    /// Takes the typed columns out of `batch`, whose schema has passed [`check_schema`], of a trace of `level`.
    pub(super) fn new(batch: &RecordBatch, level: Level) -> ColumnRows {
        let column = |name| batch.column_by_name(name).expect("the schema was checked");
        let rows = ColumnRows {
            gap: column("gap").as_primitive::<UInt32Type>().clone(),
            thread: column("thread").as_primitive::<UInt16Type>().clone(),
            op: column("op").as_primitive::<UInt8Type>().clone(),
            line: column("line").as_primitive::<UInt64Type>().clone(),
            data: column("data").as_fixed_size_binary().clone(),
            site: (batch.column_by_name(SITE))
                .and_then(|site| site.as_primitive_opt::<UInt32Type>().cloned()),
            any_null: false,
            level,
        };
        let any_null = rows.required().iter().any(|(_, c)| c.null_count() > 0);
        ColumnRows { any_null, ..rows }
    }

    fn required(&self) -> [(&str, &dyn Array); 4] {
        [
            ("gap", &self.gap),
            ("thread", &self.thread),
            ("op", &self.op),
            ("line", &self.line),
        ]
    }

    pub(super) fn len(&self) -> usize {
        self.op.len()
    }

    pub(super) fn site(&self, i: usize) -> Option<u32> {
        let site = self.site.as_ref()?;
        site.is_valid(i).then(|| site.value(i))
    }

    /// Row `i` of this batch, or what is wrong with it.
    pub(super) fn record(&self, i: usize) -> Result<Record, String> {
        if self.any_null
            && let Some((name, _)) = self.required().iter().find(|(_, c)| c.is_null(i))
        {
            return Err(format!("`{name}` is null; only `data` may be"));
        }
        let code = self.op.value(i);
        let op = Op::from_code(code).ok_or_else(|| format!("op {code} is not one of 0-11"))?;
        self.level.allows(op)?;
        let line = self.line.value(i);
        if line >= LINE_LIMIT {
            return Err(format!(
                "line {line} is not below 2^58, so its byte address does not fit 64 bits; \
                 `line` is the byte address divided by 64"
            ));
        }
        let data = self.data.is_valid(i).then(|| self.data.value(i));
        if op.has_data() && data.is_none() {
            return Err(format!(
                "op {code} carries a line, but `data` is null; give its 64 bytes"
            ));
        }
        Ok(Record {
            gap: self.gap.value(i),
            thread: self.thread.value(i),
            op,
            line: Virtual(line),
            data: data.map(|data| data.try_into().expect("the schema was checked")),
        })
    }
}
