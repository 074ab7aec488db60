//! When commands may follow each other: constraints by their JEDEC names, in memory-clock cycles.

use super::cycles;
use crate::settings::{clock, section};
use crate::units::Time;

/// Memory-clock cycles.
pub type Cycles = u64;

section! {
    /// Timing constraints in memory-clock cycles, by their JEDEC names.
    #[allow(non_snake_case)]
    Timing "medium.timing.";
    [clock: Time] "clock_ns" clock(), "Length of a memory-clock cycle";
    [tRCD: Cycles] "tRCD" cycles(0), "Activate to column command";
    [tCL: Cycles] "tCL" cycles(0), "Column read to first data";
    [tCWD: Cycles] "tCWD" cycles(0), "Column write to first data";
    [tRP: Cycles] "tRP" cycles(0), "Precharge to activate";
    [tRAS: Cycles] "tRAS" cycles(0), "Activate to precharge";
    [tBURST: Cycles] "tBURST" cycles(1), "Data transfer of a line";
    [tCCD: Cycles] "tCCD" cycles(1), "Column command to column command";
    [tRRD: Cycles] "tRRD" cycles(0), "Activate to activate, other bank of the rank";
    [tFAW: Cycles] "tFAW" cycles(0), "Window of at most four activates of a rank; 0 for none";
    [tWTR: Cycles] "tWTR" cycles(0), "End of write data to column read";
    [tRTP: Cycles] "tRTP" cycles(0), "Column read to precharge, less tBURST - tCCD";
    [tRTRS: Cycles] "tRTRS" cycles(0), "Data-bus bubble, read to write or rank to rank";
    [tWR: Cycles] "tWR" cycles(0), "End of write data (and array write) to precharge";
    [tWP: Cycles] "tWP" cycles(0), "Array write of a PCM bank; 0 for DRAM";
    [tRFC: Cycles] "tRFC" cycles(0), "Length of a refresh";
    [tREFI: Cycles] "tREFI" cycles(0), "Time between refreshes of a rank; 0 for none";
    [off_chip: Cycles] "off_chip" cycles(0), "Added to every completion (links, pins)";
}
