//! Table 1 of SCA (HPCA 2018), measured: in each stage of an undo-logged transaction, from which
//! copy of the data a recovery could start, the backup in the log or the data in place, and which
//! of the two it takes. From the bytes of every cut alone.
//!
//! A copy is usable at a cut if a recovery that is told to take it (by the header of its log, as it
//! were) leaves every line as it was before the transaction or, in place, after it. Left out: cuts
//! within recovery, secrecy and the structure's own invariants, which [`super::explore`] looks at.

use super::golden::Expected;
use super::history::History;
use super::platform::{Platform, Survivors};
use crate::line::LINE_BYTES;
use crate::machine::UntimedMemory;
use crate::plan::journal::{Event, Mark};
use crate::workload::{Header, Memory, Workload};

crate::names::named! {
    /// Where a transaction is, by what its core has stored last.
    Stage {
        /// From its beginning: the old lines go to the log.
        Prepare = "prepare",
        /// The log's header makes the backup the version to use. The paper has this in *prepare*;
        /// it is a switch like *commit*, and so has a row of its own here.
        Validate = "validate",
        /// The data change in place.
        Mutate = "mutate",
        /// The log's header makes the data the version to use.
        Commit = "commit",
        /// Between two transactions.
        Between = "between",
    }
}

/// How many of a stage's cuts have shown what. Each core counts for itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Shown {
    /// Cuts.
    pub cuts: u64,
    /// At so many the backup is usable; not counted between transactions.
    pub backup_usable: u64,
    /// At so many the data are; not counted between transactions.
    pub data_usable: u64,
    /// At so many the program's recovery takes the backup.
    pub takes_backup: u64,
    /// At so many it takes the data as they are. At the rest it gives up.
    pub takes_data: u64,
    /// At so many every line is then what the last visible transaction left, and that one may and
    /// must be visible.
    pub recovered: u64,
}

/// What one cut shows of one core.
#[derive(Clone, Copy, Default)]
struct Seen {
    backup: bool,
    data: bool,
    takes: Option<bool>,
    /// The last visible transaction, if all lines are as it left them.
    visible: Option<u64>,
}

struct Core {
    workload: Workload,
    stage: Stage,
    number: u64,
    required: u64,
    allowed: u64,
    seen: Seen,
}

/// Cuts `history` at every position; the shown of each of [`Stage::ALL`]. `progress` is told the
/// cuts done and may end it by answering false, which gives nothing.
pub fn stages(
    history: &History,
    platform: Platform,
    progress: &dyn Fn(u64) -> bool,
) -> Option<[Shown; 5]> {
    let image = history.image.copy();
    let mut survivors = Survivors::new(&history.journal, image, platform, history.seed);
    let core = |expected: &Expected| Core {
        workload: expected.spec().build().expect("it has been run"),
        stage: Stage::Between,
        number: 0,
        required: 0,
        allowed: 0,
        seen: Seen::default(),
    };
    let mut cores: Vec<Core> = history.programs.iter().map(core).collect();
    let mut shown = [Shown::default(); 5];
    let mut changed = Vec::new();
    let mut fresh = true;
    loop {
        let torn = match platform {
            Platform::None => survivors.tear(),
            _ => Vec::new(),
        };
        for (index, core) in cores.iter_mut().enumerate() {
            if fresh {
                core.seen = look((history, index), &mut survivors, core);
            }
            core.count(&mut shown);
        }
        survivors.mend(torn);
        if survivors.position() + 1 == history.positions() {
            return Some(shown);
        }
        changed.clear();
        let event = survivors.advance(&mut changed);
        let begun = follow(history, &mut cores, event);
        fresh = begun || !changed.is_empty() || platform == Platform::None;
        let done = survivors.position();
        if done.is_multiple_of(256) && !progress(done) {
            return None;
        }
    }
}

/// Which stages the cores are in after `event`; whether a transaction has begun, which other lines
/// are in question then.
fn follow(history: &History, cores: &mut [Core], event: Event) -> bool {
    match event {
        Event::Mark { core, mark } => {
            let core = &mut cores[core as usize];
            match mark {
                Mark::Fence => {}
                Mark::Begin(number) => (core.stage, core.number) = (Stage::Prepare, number),
                Mark::Committing(number) => (core.stage, core.allowed) = (Stage::Commit, number),
                Mark::Committed(number) => (core.stage, core.required) = (Stage::Between, number),
            }
            matches!(mark, Mark::Begin(_))
        }
        Event::Store(index) => {
            let line = history.journal.stores[index as usize].line.0;
            if let Some(index) = history.core_of(line)
                && !matches!(cores[index].stage, Stage::Commit | Stage::Between)
            {
                let log = history.programs[index].log();
                cores[index].stage = match line {
                    _ if line == log.start => Stage::Validate,
                    _ if log.contains(&line) => Stage::Prepare,
                    _ => Stage::Mutate,
                };
            }
            false
        }
        _ => false,
    }
}

impl Core {
    fn count(&self, shown: &mut [Shown; 5]) {
        let shown = &mut shown[self.stage as usize];
        let seen = &self.seen;
        let under_way = self.stage != Stage::Between;
        shown.cuts += 1;
        shown.backup_usable += u64::from(under_way && seen.backup);
        shown.data_usable += u64::from(under_way && seen.data);
        shown.takes_backup += u64::from(seen.takes == Some(true));
        shown.takes_data += u64::from(seen.takes == Some(false));
        let due = self.required..=self.allowed.max(self.required);
        shown.recovered += u64::from(seen.visible.is_some_and(|number| due.contains(&number)));
    }
}

/// Three recoveries from the same bytes: as the header says, and as if it named each copy.
fn look((history, index): (&History, usize), survivors: &mut Survivors, core: &Core) -> Seen {
    let expected = &history.programs[index];
    let (takes, visible) = recover(history, survivors, expected, core, None);
    let mut seen = Seen {
        takes,
        visible,
        ..Seen::default()
    };
    if core.number > 0 {
        let before = core.number - 1;
        let header = |valid| Header {
            valid,
            transaction: core.number - u64::from(!valid),
            entries: expected.between(before, core.number).count() as u64,
        };
        let (_, backup) = recover(history, survivors, expected, core, Some(header(true)));
        let (_, data) = recover(history, survivors, expected, core, Some(header(false)));
        (seen.backup, seen.data) = (backup.is_some(), data.is_some());
    }
    seen
}

/// Lets the program recover, with `header` in place of its log's own if there is one. Gives whether
/// it took the backup, and the transaction that all lines are then of.
fn recover(
    history: &History,
    survivors: &mut Survivors,
    expected: &Expected,
    core: &Core,
    header: Option<Header>,
) -> (Option<bool>, Option<u64>) {
    let (region, log) = (expected.region(), expected.log());
    let mut controller = survivors.recover(history);
    let untimed = &mut survivors.untimed;
    let mut view = UntimedMemory::new(untimed, &mut controller, region.start, log.clone());
    if let Some(header) = header {
        let at = (log.start - region.start) * LINE_BYTES as u64;
        view.store(at, &header.bytes());
    }
    let recovered = core.workload.recover(&mut view);
    let mut is_of = |visible: u64| {
        let mut data = region.clone().filter(|line| !log.contains(line));
        data.all(|line| view.line(line) == *expected.content(line, visible))
    };
    let result = match recovered {
        Err(_) => (None, None),
        Ok(recovered) => {
            let visible = recovered.visible;
            let whole = match header {
                // In place, of either version.
                Some(Header { valid: false, .. }) => is_of(visible) || is_of(visible + 1),
                _ => visible <= expected.transactions() && is_of(visible),
            };
            (Some(recovered.restored > 0), whole.then_some(visible))
        }
    };
    survivors.untimed.forget();
    result
}
