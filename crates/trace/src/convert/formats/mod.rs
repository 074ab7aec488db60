//! Every format of another simulator, each in its own file, which says all that is known of it. To add one: its file
//! and its line in the list.

use std::fmt;
use std::str::FromStr;

use serde::{Serialize, Serializer};

use super::foreign::Foreign;
use crate::{Arrivals, GapUnit};

macro_rules! formats {
    ($($file:ident $name:ident)*) => {
        $(mod $file;)*

        /// A format of another simulator.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Format {
            $(
                #[doc = concat!("`", stringify!($file), "`")]
                $name
            ),*
        }

        impl Format {
            /// Every format.
            pub const ALL: [Format; [$(stringify!($file)),*].len()] = [$(Format::$name),*];

            pub(super) const fn foreign(self) -> &'static Foreign {
                match self {
                    $(Format::$name => &$file::FORMAT),*
                }
            }
        }
    };
}

formats! {
    nvmain NvMain
    ramulator_load_store RamulatorLoadStore
    ramulator_read_write RamulatorReadWrite
    ramulator_instructions RamulatorInstructions
    ramulator_memory RamulatorMemory
    dramsim2 DramSim2
    dramsim3 DramSim3
    dramsys DramSys
    dramsys_relative DramSysRelative
    pinatrace Pinatrace
    lackey Lackey
    dynamorio DynamoRio
    champsim ChampSim
    usimm Usimm
    gem5_packets Gem5Packets
}

impl Format {
    /// The name on the command line.
    pub const fn name(self) -> &'static str {
        self.foreign().name
    }

    /// Whether moments are arrivals at memory. Cycles are stamps of a memory bus; a trace that counts instructions, or
    /// nothing, is played by a core.
    pub(super) fn arrivals(self) -> Arrivals {
        match self.gap_unit() {
            GapUnit::Cycles => Arrivals::Open,
            GapUnit::Instructions => Arrivals::Closed,
        }
    }

    pub(super) fn gap_unit(self) -> GapUnit {
        match self.foreign().clock_mhz {
            Some(_) => GapUnit::Cycles,
            None => GapUnit::Instructions,
        }
    }
}

impl Serialize for Format {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(self.name())
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Format {
    type Err = String;
    fn from_str(name: &str) -> Result<Format, String> {
        Format::ALL
            .into_iter()
            .find(|f| f.name() == name)
            .ok_or_else(|| {
                let names = Format::ALL.map(Format::name).join(", ");
                format!("`{name}` is not a trace format; choose {names}")
            })
    }
}
