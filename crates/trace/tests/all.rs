//! All tests of the trace file in one program, because each program of tests links Parquet.

mod checksums;
mod common;
mod contents;
mod convert;
mod file;
mod hostile;
mod mix;
mod synth;
