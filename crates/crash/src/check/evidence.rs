//! Tells in words what a cut has left: which bytes of which lines are wrong, whose content they are, and what the undo
//! log held. It is collected for the first violation of each kind.

use crate::check::Checker;
use crate::history::History;
use crate::history::golden::Expected;
use crate::platform::drain_over;
use crate::violation::{Kind, Violation};
use sardonyx::line::{LINE_BYTES, Line, ZERO_LINE};
use sardonyx::machine::{UntimedMemory, noise, read_untimed};
use sardonyx_workload::{DurabilityKind, LoggedItems};

const MOST_LINES: usize = 8;
const MOST_ENTRIES: usize = 4;
const MOST_WORDS: usize = 3;

impl Checker<'_> {
    pub(crate) fn evidence(&mut self, violation: &Violation) -> Vec<String> {
        if violation.kind.is_secrecy() || violation.kind == Kind::RunEnded {
            return Vec::new();
        }
        self.torn = self.survivors.tear();
        let mut told = self.hardware_log();
        let (mut controller, restored) = self.survivors.recover_and_tell(self.history);
        if !told.is_empty() && restored.is_empty() {
            told.push("put back: nothing".into());
        } else if !restored.is_empty() {
            let lines = restored
                .iter()
                .take(MOST_LINES)
                .map(|line| line.0.to_string());
            let lines = lines.collect::<Vec<_>>().join(", ");
            let rest = more(restored.len(), MOST_LINES, "lines");
            let rest = rest.map_or(String::new(), |rest| format!(" {rest}"));
            told.push(format!("put back, in this order: lines {lines}{rest}"));
        }
        if violation.kind == Kind::LineLost {
            for line in self.lost.iter().take(MOST_LINES) {
                let read = read_untimed(&mut controller, &mut self.survivors.untimed, *line);
                told.push(self.lost_line(*line, &read));
            }
            told.extend(more(self.lost.len(), MOST_LINES, "lines"));
        }
        if let Some(index) = violation.core {
            let (expected, core) = (&self.history.programs[index], &self.cores[index]);
            let (region, log) = (&expected.region, &expected.log);
            let untimed = &mut self.survivors.untimed;
            let mut view = UntimedMemory::new(untimed, &mut controller, region, log);
            if expected.spec.durability != DurabilityKind::Hardware {
                told.extend(log_told(
                    self.history,
                    expected,
                    &core.workload.log(&mut view),
                ));
            }
            if violation.kind == Kind::WrongLine && core.workload.recover(&mut view).is_ok() {
                let visible: Vec<u64> = self.cores.iter().map(|core| core.visible).collect();
                for other in &self.cores {
                    // Lines that cores share are right only after all cores have recovered.
                    let _ = self
                        .history
                        .joint
                        .as_ref()
                        .map(|_| other.workload.recover(&mut view));
                }
                for line in core.wrong.iter().take(MOST_LINES) {
                    let read = view.line(*line);
                    let should = self.history.content(*line, &visible).unwrap_or(&ZERO_LINE);
                    told.push(format!(
                        "line {line}: {}",
                        differs(self.history, *line, &read, should)
                    ));
                }
                told.extend(more(core.wrong.len(), MOST_LINES, "lines"));
            }
        }
        self.settle();
        told
    }

    /// Tells what a hardware log holds of the transactions that were under way at the cut.
    fn hardware_log(&mut self) -> Vec<String> {
        let drained = self.survivors.drained();
        let untimed = &mut self.survivors.untimed;
        let mut controller = drain_over(self.history, untimed, &drained);
        let unfinished = untimed.plan(|plan| controller.unfinished(plan));
        untimed.forget();
        let mut told = Vec::new();
        for of in unfinished {
            let buckets: Vec<String> = of.buckets.iter().map(|(b, _)| b.to_string()).collect();
            told.push(format!(
                "the hardware log, registers {}: transaction {}, buckets {}, {} headers in the last",
                of.registers,
                of.transaction,
                buckets.join(", "),
                of.headers
            ));
            for (bucket, lines) in &of.buckets {
                let each = lines.iter().take(MOST_ENTRIES).map(|(line, old)| {
                    let of = match self.history.core_of(line.0) {
                        Some(_) => whose(self.history, line.0, old),
                        None => "of no program".into(),
                    };
                    format!("line {}, {of}", line.0)
                });
                let each = each.collect::<Vec<_>>().join("; ");
                let rest = more(lines.len(), MOST_ENTRIES, "lines");
                let rest = rest.map_or(String::new(), |rest| format!("; {rest}"));
                told.push(format!(
                    "bucket {bucket}: headers name {} lines: {each}{rest}",
                    lines.len()
                ));
            }
        }
        told
    }

    /// Tells what a line reads as that reads as none of the writes that it should.
    fn lost_line(&self, line: u64, read: &Line) -> String {
        let handled = &self.history.journal.handled;
        let requests = self.history.requests.get(&line).into_iter().flatten();
        let writes: Vec<&Line> = requests.map(|i| &handled[*i as usize].data).collect();
        let accepted = self.accepted.get(&line);
        let initial = self.history.initial(line).unwrap_or(&ZERO_LINE);
        let should = accepted.map_or(initial, |index| &handled[*index as usize].data);
        let of = match writes.iter().rposition(|data| *data == read) {
            Some(write) => format!("write {} of it, of {}", write + 1, writes.len()),
            None if read == initial => "what it held at first".into(),
            None if *read == noise(line) => "a line that was never written".into(),
            None => "no write of it".into(),
        };
        format!("line {line}: reads as {of}; {}", words(read, should))
    }
}

fn more(all: usize, told: usize, what: &str) -> Option<String> {
    (all > told).then(|| format!("and {} more {what}", all - told))
}

fn log_told(history: &History, expected: &Expected, log: &LoggedItems) -> Vec<String> {
    let mut told = vec![format!(
        "the log: valid flag {:#x}, transaction {}, {} entries",
        log.valid, log.transaction, log.entries
    )];
    for (index, (home, old)) in log.lines.iter().enumerate().take(MOST_ENTRIES) {
        let number = home / LINE_BYTES as u64;
        told.push(match number < expected.region.count {
            true => {
                let line = expected.region.at(number);
                let of = whose(history, line, old);
                format!("log entry {index}: line {line}, and its backup is {of}")
            }
            false => format!("log entry {index}: {home:#x}, which is not a line of the region"),
        });
    }
    told.extend(more(log.lines.len(), MOST_ENTRIES, "entries"));
    told
}

fn whose(history: &History, line: u64, read: &Line) -> String {
    match history.left_by(line, read) {
        Some(left) => left,
        None if *read == noise(line) => "a line that was never written".into(),
        None => "no content that it has ever had".into(),
    }
}

fn differs(history: &History, line: u64, read: &Line, should: &Line) -> String {
    format!("{}; {}", whose(history, line, read), words(read, should))
}

fn words(read: &Line, should: &Line) -> String {
    let pairs = read
        .as_chunks::<8>()
        .0
        .iter()
        .zip(should.as_chunks::<8>().0);
    let wrong: Vec<_> = pairs.enumerate().filter(|(_, (a, b))| a != b).collect();
    let hex = |word: &[u8; 8]| -> String { word.iter().map(|b| format!("{b:02x}")).collect() };
    let told = wrong.iter().take(MOST_WORDS);
    let told: Vec<String> = told
        .map(|(word, (a, b))| format!("from byte {} on {}, not {}", word * 8, hex(a), hex(b)))
        .collect();
    let more = more(wrong.len(), MOST_WORDS, "words");
    let more = more.map_or(String::new(), |more| format!(", {more}"));
    told.join(", ") + &more
}
