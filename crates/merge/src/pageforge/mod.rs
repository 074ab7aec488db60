//! PageForge (Skarlatos, Kim and Torrellas, MICRO 2017): page comparison and keys by hardware in the memory controller.
//! This part is functional; nothing has a time yet.

mod driver;
mod scan_table;

pub use driver::{CALL_NS, PageForge, rows};
pub use scan_table::{Info, OTHER_PAGES, SECTIONS, ScanTable};
