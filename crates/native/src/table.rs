//! A table of results as Parquet, without pyarrow, whose import takes longer than a short run.
use std::sync::Arc;

use arrow_array::{ArrayRef, Float64Array, Int64Array, RecordBatch, StringArray};
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, ZstdLevel};
use parquet::errors::Result;
use parquet::file::properties::WriterProperties;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::bad;

/// Values of a column; only numbers may be missing.
#[derive(FromPyObject)]
pub enum Column {
    Texts(Vec<String>),
    Numbers(Vec<Option<f64>>),
}

/// The Parquet file with these columns. Those named in `whole` are whole numbers.
#[pyfunction]
pub fn parquet_of<'py>(
    py: Python<'py>,
    columns: Vec<(String, Column)>,
    whole: Vec<String>,
) -> PyResult<Bound<'py, PyBytes>> {
    let columns = columns.into_iter().map(|(name, column)| {
        let array: ArrayRef = match column {
            Column::Texts(texts) => Arc::new(StringArray::from(texts)),
            Column::Numbers(numbers) if whole.contains(&name) => {
                let numbers = numbers.into_iter().map(|number| number.map(|n| n as i64));
                Arc::new(numbers.collect::<Int64Array>())
            }
            Column::Numbers(numbers) => Arc::new(Float64Array::from(numbers)),
        };
        (name, array, true)
    });
    let rows = RecordBatch::try_from_iter_with_nullable(columns).map_err(bad)?;
    Ok(PyBytes::new(py, &file(&rows).map_err(bad)?))
}

fn file(rows: &RecordBatch) -> Result<Vec<u8>> {
    let properties = WriterProperties::builder()
        .set_compression(Compression::ZSTD(ZstdLevel::try_new(1)?))
        .set_created_by(concat!("sardonyx ", env!("CARGO_PKG_VERSION")).to_owned())
        .build();
    let mut writer = ArrowWriter::try_new(Vec::new(), rows.schema(), Some(properties))?;
    writer.write(rows)?;
    writer.into_inner()
}
