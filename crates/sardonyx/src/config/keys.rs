//! All keys, section by section: the machine's own, which every machine must give, and those that the
//! controller's layers declare, with their defaults.

use std::sync::LazyLock;

use crate::controller::designs;
use crate::medium::params::{
    AccessEnergy, CachesParams, CoreParams, EngineParams, FRAMES, Geometry, MediumParams, Queues,
    Think, Timing, UnitParams,
};
use crate::settings::{Key, Kind, Row};

const CORE_COUNT: Kind = Kind::Int { min: 1, max: 1024 };

/// How many cores.
pub(super) static CORES: Key<usize> = Key::required("cores", CORE_COUNT, "Cores");

static ALL: LazyLock<Vec<&'static Row>> = LazyLock::new(|| {
    let tables = [
        std::slice::from_ref(&CORES.row),
        CoreParams::ROWS,
        EngineParams::ROWS,
        MediumParams::ROWS,
        CachesParams::ROWS,
        Geometry::ROWS,
        Timing::ROWS,
        Queues::ROWS,
        AccessEnergy::ROWS,
        UnitParams::ROWS,
        std::slice::from_ref(&FRAMES.row),
    ];
    let mut rows: Vec<&Row> = tables.into_iter().flatten().collect();
    let layers = designs::keys().chain(Think::KEYS);
    for row in layers.flat_map(|key| key.rows()) {
        if !rows.iter().any(|known| known.name == row.name) {
            rows.push(row);
        }
    }
    // A section is written in one piece, wherever its keys are declared.
    let sections: Vec<&str> = rows.iter().map(|row| row.split().0).collect();
    let first = |row: &&Row| sections.iter().position(|known| *known == row.split().0);
    rows.sort_by_key(first);
    rows
});

/// Every key; the memory's clock comes before the timings that it is needed to read.
pub fn all() -> impl DoubleEndedIterator<Item = &'static Row> + Clone {
    ALL.iter().copied()
}
