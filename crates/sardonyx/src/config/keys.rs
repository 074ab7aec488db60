//! All keys, section by section: the machine's own, which every machine must give, and those that the
//! controller's layers declare, with their defaults.

use std::sync::LazyLock;

use crate::controller::designs;
use crate::medium::buffer::{BufferParams, VICTIM};
use crate::medium::cells::{CODING, CellParams};
use crate::medium::layout::REGIONS_SKEW;
use crate::medium::levelling::{FIRST_MOVE, REGION_LINES, REGISTERS, SCHEME, WRITES_PER_MOVE};
use crate::medium::link::{FIRST, LinkParams};
use crate::medium::mapping::MAPPING;
use crate::medium::near;
use crate::medium::params::drain;
use crate::medium::params::{
    ACTIVATE_CYCLES, ACTIVE, ADDRESSES, ARRIVALS, AccessEnergy, BETWEEN_STACKS, BURSTS, BankGroups,
    COLUMN_CYCLES, COMMANDS, COMMANDS_OF, COPIES_SKEW, CRASH_CACHED, CRASH_ENDURED, CRASH_FIRST,
    CRASH_SHORT, CRASH_SPARE, CachesParams, CoreParams, DATA_CLOCK, EngineParams, GROUP_MERGING,
    Geometry, MediumParams, PASSING, PAST, PRECHARGE_CYCLES, PROGRAMS_FIRST, PROGRAMS_SKEW, Queues,
    RANK_BUSES, REMERGING, REOPENS, RISING_EDGES, ROW_BUS, RankEnergy, Refreshes, SECOND_ACTIVATE,
    SINGLY, STACKS, TURNS, Think, Timing, UnitParams, WRITES_TURN,
};
use crate::medium::pausing::{ITERATIONS, POLICY, THRESHOLD, TIMES};
use crate::settings::{Allowed, Key, Row};

const CORE_COUNT: Allowed = Allowed::Int { min: 1, max: 1024 };

pub(super) static CORES: Key<usize> = Key::required("cores", CORE_COUNT, "Cores");

static BUILT_IN: LazyLock<Vec<&'static Row>> = LazyLock::new(|| {
    let tables = [
        std::slice::from_ref(&CORES.row),
        std::slice::from_ref(&ADDRESSES.row),
        std::slice::from_ref(&ARRIVALS.row),
        std::slice::from_ref(&PAST.row),
        CoreParams::ROWS,
        EngineParams::ROWS,
        MediumParams::ROWS,
        std::slice::from_ref(&MAPPING.row),
        std::slice::from_ref(&REGIONS_SKEW.row),
        CachesParams::ROWS,
        Geometry::ROWS,
        Timing::ROWS,
        BankGroups::ROWS,
        std::slice::from_ref(&WRITES_TURN.row),
        Refreshes::ROWS,
        std::slice::from_ref(&TURNS.row),
        std::slice::from_ref(&SINGLY.row),
        Queues::ROWS,
        std::slice::from_ref(&GROUP_MERGING.row),
        std::slice::from_ref(&COMMANDS.row),
        std::slice::from_ref(&COMMANDS_OF.row),
        std::slice::from_ref(&ROW_BUS.row),
        std::slice::from_ref(&ACTIVE.row),
        std::slice::from_ref(&BURSTS.row),
        std::slice::from_ref(&ACTIVATE_CYCLES.row),
        std::slice::from_ref(&PRECHARGE_CYCLES.row),
        std::slice::from_ref(&COLUMN_CYCLES.row),
        std::slice::from_ref(&SECOND_ACTIVATE.row),
        std::slice::from_ref(&DATA_CLOCK.row),
        std::slice::from_ref(&RANK_BUSES.row),
        std::slice::from_ref(&RISING_EDGES.row),
        std::slice::from_ref(&STACKS.row),
        std::slice::from_ref(&REOPENS.row),
        std::slice::from_ref(&BETWEEN_STACKS.row),
        std::slice::from_ref(&PASSING.row),
        std::slice::from_ref(&REMERGING.row),
        BufferParams::ROWS,
        std::slice::from_ref(&VICTIM.row),
        CellParams::ROWS,
        std::slice::from_ref(&CODING.row),
        std::slice::from_ref(&POLICY.row),
        std::slice::from_ref(&ITERATIONS.row),
        std::slice::from_ref(&THRESHOLD.row),
        std::slice::from_ref(&TIMES.row),
        std::slice::from_ref(&SCHEME.row),
        std::slice::from_ref(&WRITES_PER_MOVE.row),
        std::slice::from_ref(&REGION_LINES.row),
        std::slice::from_ref(&FIRST_MOVE.row),
        std::slice::from_ref(&REGISTERS.row),
        AccessEnergy::ROWS,
        RankEnergy::ROWS,
        UnitParams::ROWS,
        LinkParams::ROWS,
        std::slice::from_ref(&FIRST.row),
        std::slice::from_ref(&drain::LINES.row),
        std::slice::from_ref(&drain::BY.row),
        std::slice::from_ref(&COPIES_SKEW.row),
        std::slice::from_ref(&PROGRAMS_FIRST.row),
        std::slice::from_ref(&CRASH_FIRST.row),
        std::slice::from_ref(&CRASH_SPARE.row),
        std::slice::from_ref(&CRASH_SHORT.row),
        std::slice::from_ref(&CRASH_CACHED.row),
        std::slice::from_ref(&CRASH_ENDURED.row),
        std::slice::from_ref(&PROGRAMS_SKEW.row),
        std::slice::from_ref(&near::FORM.row),
        std::slice::from_ref(&near::DESIGN.row),
        std::slice::from_ref(&near::SURVIVES.row),
        std::slice::from_ref(&near::TABLES.row),
        std::slice::from_ref(&near::LINES.row),
        std::slice::from_ref(&near::WRITES.row),
        std::slice::from_ref(&near::FILLS.row),
        std::slice::from_ref(&near::LOOKS.row),
        std::slice::from_ref(&near::TAGS.row),
        std::slice::from_ref(&near::BLOCK_LINES.row),
        std::slice::from_ref(&near::WAYS.row),
        std::slice::from_ref(&near::ADMIT_AFTER.row),
        std::slice::from_ref(&near::ADMIT_SAMPLE.row),
        std::slice::from_ref(&near::ADMIT_EVERY.row),
        std::slice::from_ref(&near::PAGES.row),
        std::slice::from_ref(&near::NEAR_WEIGHT.row),
        std::slice::from_ref(&near::FAR_WEIGHT.row),
    ];
    let mut rows: Vec<&Row> = tables.into_iter().flatten().collect();
    let layers = designs::built_in().flat_map(|layer| layer.about().keys);
    let layers = layers.copied().chain(Think::KEYS);
    for row in layers.flat_map(|key| key.rows()) {
        if !rows.iter().any(|known| known.name == row.name) {
            rows.push(row);
        }
    }
    // A section is written in one piece, wherever its keys are declared.
    let sections: Vec<&str> = rows.iter().map(|row| row.split().0).collect();
    let first = |row: &&Row| sections.iter().position(|known| *known == row.split().0);
    rows.sort_by_key(first);
    let of_near: &'static [Row] = near::rows(rows.iter().copied()).leak();
    rows.extend(of_near);
    rows
});

/// Every key; the memory's clock comes before the timings that it is needed to read, and keys of layers that were
/// registered while the program runs come last.
pub fn all() -> impl DoubleEndedIterator<Item = &'static Row> + Clone {
    let mut rows = BUILT_IN.clone();
    for row in designs::registered()
        .flat_map(|layer| layer.about().keys)
        .flat_map(|key| key.rows())
    {
        if !rows.iter().any(|known| known.name == row.name) {
            rows.push(row);
        }
    }
    rows.into_iter()
}
