//! An upper bound of the host memory that a run and its cuts need, before they are made.

use crate::history::{HistoryError, Result};
use sardonyx::controller::designs::Stack;
use sardonyx::controller::mapping::DUPLICATE;
use sardonyx_workload::ProgramSpec;

const BASE: u64 = 64 << 20;
/// Bytes for each byte of a structure (measured: 60 on `sca`, 110 on `esd+sca`), and for each transaction of up to 256
/// bytes (measured: 42,000).
const A_BYTE: u64 = 64;
const A_BYTE_SHARED: u64 = 116;
const A_TRANSACTION: u64 = 45_000;

/// Estimates from above the bytes of host memory of a run of `specs` on `design`.
///
/// # Errors
/// They are not free, or there is no such design.
pub fn needed(design: &str, specs: &[ProgramSpec]) -> Result<u64> {
    let shares = Stack::named(design)?.tries().any(|m| *m == DUPLICATE);
    let a_byte = if shares { A_BYTE_SHARED } else { A_BYTE };
    let each = specs.iter().map(|spec| {
        let transaction = A_TRANSACTION * spec.item_bytes.div_ceil(256);
        let transactions = spec.transactions.saturating_mul(transaction);
        spec.footprint
            .saturating_mul(a_byte)
            .saturating_add(transactions)
    });
    let needed = each.fold(BASE, u64::saturating_add);
    match available() {
        Some(free) if needed > free => Err(HistoryError::Memory { needed, free }),
        _ => Ok(needed),
    }
}

/// The bytes of memory that the host can give, if it says so.
fn available() -> Option<u64> {
    let told = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = told
        .lines()
        .find(|line| line.starts_with("MemAvailable:"))?;
    let kilobytes: u64 = line.split_ascii_whitespace().nth(1)?.parse().ok()?;
    Some(kilobytes << 10)
}
