//! DRAMSys, .rstl: as .stl, with cycles since the request before.

use crate::convert::foreign::{Foreign, Reads};
use crate::convert::formats::dramsys::{self, DramSys};

pub const FORMAT: Foreign = Foreign {
    name: "dramsys-relative",
    reads: Reads::Text(|_| Box::new(DramSys::<true>::default())),
    ..dramsys::FORMAT
};
