//! Table 1 of SCA (HPCA 2018), measured: in each stage of an undo-logged transaction, the copy of the data from which a
//! recovery could start (the backup in the log, or the data in place), and the copy that it takes. From the bytes of
//! every cut alone.
//!
//! A copy is usable at a cut if a recovery that is told to take it, by the header of its log, leaves every line as it
//! was before the transaction or, in place, after it. Left out: cuts within recovery, secrecy and the structure's own
//! invariants, which [`crate::explore`] checks.

use crate::history::History;
use crate::history::golden::{Expected, Window};
use crate::platform::{Platform, Survivors};
use sardonyx::machine::UntimedMemory;
use sardonyx::plan::journal::{Event, Mark};
use sardonyx_workload::{Bytes, Header, Workload};

sardonyx::names::named! {
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

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Shown {
    pub cuts: u64,
    /// Cuts at which the backup is usable; not counted between transactions.
    pub backup_usable: u64,
    /// Cuts at which the data in place are usable; not counted between transactions.
    pub data_usable: u64,
    /// Cuts at which the program's recovery takes the backup.
    pub takes_backup: u64,
    /// Cuts at which it takes the data in place. At the others it gives up.
    pub takes_data: u64,
    /// Cuts after which every line is what the last visible transaction left, and that transaction may and must be
    /// visible.
    pub recovered: u64,
}

#[derive(Clone, Copy, Default)]
struct AtCut {
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
    window: Window,
    shown: AtCut,
}

/// Cuts `history` at every position, and returns what the cuts of each of [`Stage::ALL`] have shown. `progress` is told
/// the cuts done; if it answers false this returns `None`.
pub fn stages(
    history: &History,
    platform: Platform,
    progress: &dyn Fn(u64) -> bool,
) -> Option<[Shown; 5]> {
    let image = history.image.copy();
    let mut survivors = Survivors::new(&history.journal, image, platform, history.seed)
        .levelled(history.levelling())
        .guarded(history.power_fail());
    let core = |expected: &Expected| Core {
        workload: expected.spec.build().expect("it has been run"),
        stage: Stage::Between,
        number: 0,
        window: Window::default(),
        shown: AtCut::default(),
    };
    let mut cores: Vec<Core> = history.programs.iter().map(core).collect();
    let mut shown = [Shown::default(); 5];
    let mut changed = Vec::new();
    let mut fresh = true;
    loop {
        let torn = survivors.tear();
        for (index, core) in cores.iter_mut().enumerate() {
            if fresh {
                core.shown = look(history, &history.programs[index], &mut survivors, core);
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
        fresh = begun || !changed.is_empty() || platform.tears();
        let done = survivors.position();
        if done.is_multiple_of(256) && !progress(done) {
            return None;
        }
    }
}

/// Notes which stage each core is in after `event`. Returns whether a transaction has begun, because other lines are in
/// question then.
fn follow(history: &History, cores: &mut [Core], event: Event) -> bool {
    match event {
        Event::Mark { core, mark } => {
            let core = &mut cores[core as usize];
            core.window.follow(mark);
            match mark {
                Mark::Fence => {}
                Mark::Begin(number) => (core.stage, core.number) = (Stage::Prepare, number),
                Mark::Committing(_) => core.stage = Stage::Commit,
                Mark::Committed(_) => core.stage = Stage::Between,
            }
            matches!(mark, Mark::Begin(_))
        }
        Event::Store(index) => {
            let line = history.journal.stores[index as usize].line.0;
            if let Some(index) = history.core_of(line)
                && !matches!(cores[index].stage, Stage::Commit | Stage::Between)
            {
                let log = &history.programs[index].log;
                cores[index].stage = match line {
                    _ if line == log.first => Stage::Validate,
                    _ if log.contains(line) => Stage::Prepare,
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
        let at_cut = &self.shown;
        let under_way = self.stage != Stage::Between;
        shown.cuts += 1;
        shown.backup_usable += u64::from(under_way && at_cut.backup);
        shown.data_usable += u64::from(under_way && at_cut.data);
        shown.takes_backup += u64::from(at_cut.takes == Some(true));
        shown.takes_data += u64::from(at_cut.takes == Some(false));
        let recovered = |visible| self.window.broken_by(visible).is_none();
        shown.recovered += u64::from(at_cut.visible.is_some_and(recovered));
    }
}

/// Recovers three times from the same bytes: as the log's header says, and as if it named each copy.
fn look(history: &History, expected: &Expected, survivors: &mut Survivors, core: &Core) -> AtCut {
    let mut recover = |header| recover(history, survivors, expected, core, header);
    let (takes, visible) = recover(None);
    let (mut backup, mut data) = (false, false);
    if core.number > 0 {
        let before = core.number - 1;
        let header = |valid| Header {
            valid,
            transaction: core.number - u64::from(!valid),
            entries: expected.between(before, core.number).count() as u64,
        };
        backup = recover(Some(header(true))).1.is_some();
        data = recover(Some(header(false))).1.is_some();
    }
    AtCut {
        backup,
        data,
        takes,
        visible,
    }
}

/// Lets the program recover, with `header` in place of its log's own if there is one. Returns whether it took the
/// backup, and the transaction that all lines are then of.
fn recover(
    history: &History,
    survivors: &mut Survivors,
    expected: &Expected,
    core: &Core,
    header: Option<Header>,
) -> (Option<bool>, Option<u64>) {
    let (region, log) = (&expected.region, &expected.log);
    let mut controller = survivors.recover(history);
    let untimed = &mut survivors.untimed;
    let mut view = UntimedMemory::new(untimed, &mut controller, region, log);
    if let Some(header) = header {
        view.store(expected.header, &header.bytes());
    }
    let recovered = core.workload.recover(&mut view);
    let mut is_of = |visible: u64| {
        let mut data = region.iter().filter(|line| !log.contains(*line));
        data.all(|line| view.line(line) == *expected.content(line, visible))
    };
    let result = match recovered {
        Err(_) => (None, None),
        Ok(recovered) => {
            let visible = recovered.visible;
            let whole = match header {
                // Data in place may be of either version.
                Some(Header { valid: false, .. }) => is_of(visible) || is_of(visible + 1),
                _ => visible <= expected.changes.len() as u64 && is_of(visible),
            };
            (Some(recovered.restored > 0), whole.then_some(visible))
        }
    };
    survivors.untimed.forget();
    result
}
