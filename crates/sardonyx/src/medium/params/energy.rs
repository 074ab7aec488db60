//! Energy of one line's access, and of ranks beside that.

use crate::settings::{Allowed, Origin, Row, Settings, Value, section};
use crate::units::Energy;

section! {
    /// Energy of one line's access.
    AccessEnergy "medium.energy.";
    [read: Energy] "read_nj" Allowed::Nj, "Reading a line that is not in the row buffer";
    [row_hit_read: Energy] "row_hit_read_nj" Allowed::Nj,
        "Reading a line that is in the row buffer";
    [write: Energy] "write_nj" Allowed::Nj, "Writing a line";
}

/// Energy of parts besides reading and writing, as the currents of their data sheets give it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RankEnergy {
    /// The energy of writing a line of an open row.
    pub row_hit_write: Energy,
    /// The energy of refreshing a rank once.
    pub refresh: Energy,
    /// The energy of a rank whose rows are closed in a microsecond.
    pub standby: Energy,
    /// The energy of a rank with an open row in a microsecond.
    pub active: Energy,
}

impl RankEnergy {
    const NONE: Origin = Origin::Source("not counted, as in the machines of the papers");

    const fn none(name: &'static str, meaning: &'static str) -> Row {
        Row {
            default: Some((Value::Energy(Energy::ZERO), RankEnergy::NONE)),
            ..Row::required(name, Allowed::Nj, meaning)
        }
    }

    /// The parameters of a rank's energy.
    pub const ROWS: &'static [Row] = &[
        RankEnergy::none(
            "medium.energy.row_hit_write_nj",
            "Writing a line of an open row; 0 is `write_nj`",
        ),
        RankEnergy::none("medium.energy.refresh_nj", "Refreshing a rank once"),
        RankEnergy::none(
            "medium.energy.standby_nj_per_us",
            "A rank whose rows are closed, each microsecond: its milliwatts",
        ),
        RankEnergy::none(
            "medium.energy.active_nj_per_us",
            "A rank with an open row, each microsecond; 0 is `standby_nj_per_us`",
        ),
    ];

    pub(super) fn from_settings(settings: &Settings, write: Energy) -> RankEnergy {
        let get = |name| settings.named::<Energy>(name);
        let or = |name, otherwise| match get(name) {
            Energy::ZERO => otherwise,
            known => known,
        };
        let standby = get("medium.energy.standby_nj_per_us");
        RankEnergy {
            row_hit_write: or("medium.energy.row_hit_write_nj", write),
            refresh: get("medium.energy.refresh_nj"),
            standby,
            active: or("medium.energy.active_nj_per_us", standby),
        }
    }
}
