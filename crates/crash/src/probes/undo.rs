//! Transactions that a hardware log undoes, with more lines and on more cores than runs have.

use std::ops::Range;

use super::life::UntimedLife;
use super::{Crowded, content};
use crate::history::History;
use sardonyx::controller::Write;
use sardonyx::controller::logging::undo::{
    BUCKETS, MOST_BUCKETS, PER_RECORD, RECORDS, TRANSACTIONS,
};
use sardonyx::exhausted::Exhausted;
use sardonyx::line::{Logical, Persist};
use sardonyx::medium::image::Image;
use sardonyx::medium::layout::Layout;
use sardonyx::plan::At;
use sardonyx::settings::Settings;

/// The longest transaction that fits in the log is undone if a bucket has at most this many records.
const FEW_RECORDS: u64 = 8;
/// A record of a hardware log holds this many old lines.
const RECORD: u64 = PER_RECORD as u64;

impl History {
    /// Has a hardware log undo transactions, by controllers that find what a cut leaves: one transaction that takes all
    /// buckets which registers can name, and short ones with the given `numbers`. Returns the first line that does not
    /// read as before, with its transaction and the number of lines that were logged by then.
    pub fn undone(&self, numbers: &[u64]) -> Option<(Logical, u64, u64)> {
        // Logs of designs whose reserve power dumps past an integrity are left out: logic that is not called here gives
        // those lines their MACs.
        if !self.stack.keeps_log() || self.stack.integrity.power_fail.is_some() {
            return None;
        }
        let settings = &self.with_room();
        let (records, long) = (settings.get(&RECORDS), numbers.first().copied()?);
        // Lines that no transaction changes lie behind those that one does.
        let most = RECORD * (records.min(FEW_RECORDS) * MOST_BUCKETS).max(records + 1) + RECORD;
        let build = || self.stack.build(settings, &mut Layout::new(2 * most));
        let mut life = UntimedLife::recovered(build(), Image::sparse());
        let restore = |life: &mut UntimedLife, lines: u64| {
            for line in (0..lines).map(Logical) {
                life.write(line, &content(line.0, 0));
            }
            life.flush();
        };
        restore(&mut life, most);
        life.fits().ok()?;
        life.untimed.settle();
        for number in numbers.iter().copied() {
            life.begin(0, number);
            let chunks = match number == long {
                true if records <= FEW_RECORDS => records * MOST_BUCKETS,
                true => records + 1,
                false => 1,
            };
            for chunk in 0..chunks {
                change_chunk(&mut life, chunk, number).ok()?;
                // The ends of the first bucket and of the last are tried.
                let ends = [
                    0,
                    records - 1,
                    records,
                    chunks - records.min(chunks),
                    chunks - 1,
                ];
                if !ends.contains(&chunk) {
                    continue;
                }
                let mut left = life.cut(build());
                let changed = (chunk + 1) * RECORD;
                let mut lines = (0..most.min(changed + RECORD)).map(Logical);
                let wrong = lines.find(|line| left.read(*line) != Some(content(line.0, 0)));
                if let Some(line) = wrong {
                    return Some((line, number, changed));
                }
            }
            // The changed lines are put back for the next transaction.
            life.ask(|controller, plan| controller.commit(0, plan));
            restore(&mut life, chunks * RECORD);
            life.untimed.settle();
        }
        self.overlong()
    }

    /// Has the log undo a transaction of more lines than registers can name buckets for: it is refused, or it is undone.
    fn overlong(&self) -> Option<(Logical, u64, u64)> {
        let records = self.small.get(&RECORDS);
        if records > FEW_RECORDS {
            return None;
        }
        let changed = RECORD * (records * MOST_BUCKETS + 1);
        let mut log = Undoing::new(self, 2 * changed, 0..changed).ok()?;
        log.life.begin(0, 1);
        for line in 0..changed {
            log.log(0, line);
        }
        log.change().ok()?;
        Some((log.wrong_after_a_cut()?, 1, changed))
    }

    /// Has the hardware log undo as many transactions at once as it has registers or buckets for, one a core, of which half
    /// have committed. They take all buckets if these are small, and change lines up to the last of memory. Returns what is
    /// wrong, if anything is, with the number of transactions.
    pub fn undone_together(&self) -> Option<(Crowded, u64)> {
        if !self.stack.keeps_log() || self.stack.integrity.power_fail.is_some() {
            return None;
        }
        let settings = &*self.small;
        let (records, buckets) = (settings.get(&RECORDS), settings.get(&BUCKETS));
        let cores = settings.get(&TRANSACTIONS).min(buckets);
        let each = match records <= FEW_RECORDS {
            true => (buckets / cores).min(MOST_BUCKETS) * records * RECORD,
            false => 2,
        };
        let (lines, changed) = (2 * cores * each, |core: u64| core * each..(core + 1) * each);
        let first = lines - cores * each;
        let undo = || -> Result<Option<Logical>, Exhausted> {
            let mut log = Undoing::new(self, lines, first..lines)?;
            for core in 0..cores {
                log.life.begin(core as u32, core + 1);
            }
            for line in 0..each {
                for core in 0..cores {
                    log.log(core as u32, first + changed(core).start + line);
                }
            }
            log.change()?;
            for core in 0..cores / 2 {
                let changed = changed(core);
                log.commit(core as u32, first + changed.start..first + changed.end);
            }
            Ok(log.wrong_after_a_cut())
        };
        let wrong = match undo() {
            Ok(line) => Crowded::Misread(line?),
            Err(why) => Crowded::Full(why),
        };
        Some((wrong, cores))
    }
}

/// Logs and changes the lines of a record in transaction `number`; an error if the log has no room.
fn change_chunk(life: &mut UntimedLife, chunk: u64, number: u64) -> Result<(), Exhausted> {
    let lines = || (chunk * RECORD..(chunk + 1) * RECORD).map(Logical);
    for line in lines() {
        life.log(0, line, &content(line.0, 0));
    }
    life.fits()?;
    for line in lines() {
        life.write(line, &content(line.0, number));
    }
    Ok(())
}

struct Undoing<'h> {
    history: &'h History,
    settings: Settings,
    lines: u64,
    life: UntimedLife,
    /// The lines that are put back after a cut, and those that are not.
    logged: Vec<u64>,
    kept: Vec<u64>,
}

impl<'h> Undoing<'h> {
    /// Makes a medium of this many lines, of which those `held` have something in them.
    fn new(history: &'h History, lines: u64, held: Range<u64>) -> Result<Undoing<'h>, Exhausted> {
        let settings = history.with_room();
        let controller = history.stack.build(&settings, &mut Layout::new(lines));
        let mut undoing = Undoing {
            history,
            settings,
            lines,
            life: UntimedLife::recovered(controller, Image::sparse()),
            logged: Vec::new(),
            kept: Vec::new(),
        };
        held.for_each(|line| undoing.write(line, 0));
        undoing.life.flush();
        undoing.life.fits()?;
        undoing.life.untimed.settle();
        Ok(undoing)
    }

    fn write(&mut self, line: u64, number: u64) {
        self.life.handle(Write {
            order: Persist::CounterAtomic, // whoever commits has seen to it
            ..Write::new(Logical(line), At::past(&content(line, number)))
        });
    }

    fn log(&mut self, core: u32, line: u64) {
        self.life.log(core, Logical(line), &content(line, 0));
        self.logged.push(line);
    }

    /// Changes all lines that were logged; an error if the log has refused something.
    fn change(&mut self) -> Result<(), Exhausted> {
        for line in self.logged.clone() {
            self.life.fits()?;
            self.write(line, 1);
        }
        self.life.fits()
    }

    fn commit(&mut self, core: u32, lines: Range<u64>) {
        self.life
            .ask(|controller, plan| controller.commit(core, plan));
        self.logged.retain(|line| !lines.contains(line));
        self.kept.extend(lines);
    }

    /// Cuts the power. Returns the first line that does not read as it was before, or as a committed transaction left
    /// it.
    fn wrong_after_a_cut(self) -> Option<Logical> {
        let stack = &self.history.stack;
        let controller = stack.build(&self.settings, &mut Layout::new(self.lines));
        let old = self.logged.iter().map(|line| (*line, 0));
        let lines = old.chain(self.kept.iter().map(|line| (*line, 1)));
        let lines = lines.map(|(line, number)| (Logical(line), content(line, number)));
        self.life.cut(controller).misread(&lines.collect())
    }
}
