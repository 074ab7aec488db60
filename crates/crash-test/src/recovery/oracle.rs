//! The contents that a pool may have after a cut if there is no check: those that the program itself makes of a
//! beginning of its operations.
//!
//! The driver takes its operations from a file, one a line. It is run without a cut on each beginning of that file, and
//! the recovery prints what each pool holds. After a cut the recovery must print one of these: of no fewer operations
//! than were acknowledged, and of at most one more, which had begun. Left out: operations of several threads, which
//! have no one order.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock};

use rustc_hash::{FxHashMap, FxHashSet};
use serde_json::{Value, json};

use crate::images::copy;
use crate::question::Question;
use crate::recording::Recording;
use crate::recording::pools::Ground;
use crate::recovery::ending::Ended;
use crate::recovery::{Recovery, RecoveryFiles, said};
use crate::{CrashTestError, Result};

/// A difference names at most this many lines of each side.
const NAMED: usize = 2;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Acknowledged {
    /// The program printed a line for each operation that was done.
    Lines,
    /// Nothing was acknowledged, so any beginning will do.
    None,
}

#[derive(Clone, Debug)]
pub struct Oracle {
    outputs: Vec<Vec<u8>>,
    acknowledged: Acknowledged,
}

fn refuse<T>(message: String) -> Result<T> {
    Err(CrashTestError::new(message))
}

impl Oracle {
    /// Runs the driver and the recovery on every beginning of the operations; `None` if the question has none.
    ///
    /// # Errors
    /// They fail on a beginning, do not print the same twice, or print the same for all; or the program did not print a
    /// line for each operation.
    pub fn learn(
        question: &Question,
        recording: &Recording,
        dump: &Recovery,
    ) -> Result<Option<Oracle>> {
        let Some(file) = &question.operations else {
            return Ok(None);
        };
        let text = std::fs::read_to_string(file).map_err(CrashTestError::io(file.display()))?;
        let operations: Vec<&str> = text.lines().collect();
        if operations.is_empty() {
            return refuse(format!(
                "--operations {}: holds no operation; give one a line, those of the recorded run",
                file.display()
            ));
        }
        let acknowledged = match question.acknowledged.as_str() {
            "lines" => Acknowledged::Lines,
            "none" => Acknowledged::None,
            _ => return refuse("--acknowledged: give lines or none".to_owned()),
        };
        if acknowledged == Acknowledged::Lines {
            check_lines(recording, operations.len())?;
        }
        let run = Prefixes {
            question,
            recording,
            dump,
            operations: &operations,
        };
        let outputs = run.all()?;
        let distinct: FxHashSet<&Vec<u8>> = outputs.iter().collect();
        if distinct.len() == 1 {
            return refuse(format!(
                "--recover: it prints the same of every beginning of {}, so that no loss would show; have it print what the pool holds",
                file.display()
            ));
        }
        Ok(Some(Oracle {
            outputs,
            acknowledged,
        }))
    }

    pub fn wants_acks(&self) -> bool {
        self.acknowledged == Acknowledged::Lines
    }

    /// The reason why an output may not be printed after this many acknowledged operations; `None` if it may.
    pub fn differs(&self, output: &[u8], acknowledged: usize) -> Option<String> {
        let last = self.outputs.len() - 1;
        let (from, to) = match self.acknowledged {
            Acknowledged::Lines => (acknowledged.min(last), (acknowledged + 1).min(last)),
            Acknowledged::None => (0, last),
        };
        if self.outputs[from..=to].iter().any(|one| one == output) {
            return None;
        }
        if let Some(other) = self.outputs.iter().rposition(|one| one == output) {
            return Some(match other < from {
                true => format!(
                    "it prints what the first {other} operations leave, and {acknowledged} were acknowledged"
                ),
                false => {
                    format!("it prints what the first {other} operations leave, and {to} had begun")
                }
            });
        }
        let differences = |number: &usize| {
            let (lacks, has) = difference(&self.outputs[*number], output);
            // The later of two equally near beginnings counts: against it a line differs, and is not one too many.
            (lacks.len().max(has.len()), last - *number)
        };
        // The nearest beginning of those allowed is named, and one of all only if it is nearer by half.
        let within = (from..=to).map(|n| differences(&n)).min();
        let anywhere = (0..=last).map(|n| differences(&n)).min();
        let (within, anywhere) = (within.unwrap_or_default(), anywhere.unwrap_or_default());
        let near = match anywhere.0 * 2 < within.0 {
            true => last - anywhere.1,
            false => last - within.1,
        };
        let (lacks, has) = difference(&self.outputs[near], output);
        let mut parts = Vec::new();
        for (what, lines) in [("lacks", &lacks), ("has", &has)] {
            if !lines.is_empty() {
                let named: Vec<String> = (lines.iter().take(NAMED))
                    .map(|line| format!("`{}`", String::from_utf8_lossy(line).trim_end()))
                    .collect();
                let more = match lines.len().saturating_sub(NAMED) {
                    0 => String::new(),
                    more => format!(" and {more} more"),
                };
                parts.push(format!("{what} {}{more}", named.join(", ")));
            }
        }
        if parts.is_empty() {
            parts.push("has the same lines in another order".to_owned());
        }
        let may = match from == to {
            true => format!("{from}"),
            false => format!("{from} to {to}"),
        };
        let kind = match (lacks.is_empty(), has.is_empty()) {
            (false, true) => "less",
            (true, false) => "more",
            _ => "else",
        };
        Some(format!(
            "it prints {kind} than the first {may} operations leave: against the first {near} it {}",
            parts.join(" and ")
        ))
    }

    pub fn told(&self) -> Value {
        let distinct: FxHashSet<&Vec<u8>> = self.outputs.iter().collect();
        json!({
            "operations": self.outputs.len() - 1, "prefixes": self.outputs.len(), "outputs": distinct.len(),
            "acknowledged": match self.acknowledged { Acknowledged::Lines => "lines", Acknowledged::None => "none" },
        })
    }
}

/// The lines that the first has and the second lacks, and those that the second has and the first lacks, in their
/// order.
fn difference<'a>(whole: &'a [u8], other: &'a [u8]) -> (Vec<&'a [u8]>, Vec<&'a [u8]>) {
    let lines = |bytes: &'a [u8]| bytes.split_inclusive(|&b| b == b'\n');
    let mut counts: FxHashMap<&[u8], i64> = FxHashMap::default();
    lines(whole).for_each(|line| *counts.entry(line).or_default() += 1);
    lines(other).for_each(|line| *counts.entry(line).or_default() -= 1);
    let mut take = |bytes: &'a [u8], sign: i64| -> Vec<&'a [u8]> {
        let left = lines(bytes).filter(|line| {
            let count = counts.get_mut(line).expect("all are there");
            let over = *count * sign > 0;
            *count -= if over { sign } else { 0 };
            over
        });
        left.collect()
    };
    let lacks = take(whole, 1);
    let has = take(other, -1);
    (lacks, has)
}

fn check_lines(recording: &Recording, operations: usize) -> Result<()> {
    let path = recording.path.display();
    if !recording.has_acks {
        return refuse(format!(
            "--operations: {path} does not keep what the program printed, and so not which operations it had acknowledged; record it with \
             --acks, or hold it to no promise with --acknowledged none"
        ));
    }
    let printed = recording.printed(recording.acked(u64::MAX));
    let lines = printed.iter().filter(|&&byte| byte == b'\n').count();
    if lines != operations {
        return refuse(format!(
            "--operations: the program printed {lines} line{} while it was recorded ({path}), and there are {operations} operations; have it \
             print one line when an operation is done (and flush it), give the operations of that run, or hold it to no promise with \
             --acknowledged none",
            if lines == 1 { "" } else { "s" }
        ));
    }
    Ok(())
}

struct Prefixes<'a> {
    question: &'a Question,
    recording: &'a Recording,
    dump: &'a Recovery,
    operations: &'a [&'a str],
}

impl Prefixes<'_> {
    /// Runs every beginning once, and half of them and the whole once more, because the outputs of a recovery that
    /// prints something else at each run cannot be compared.
    fn all(&self) -> Result<Vec<Vec<u8>>> {
        let count = self.operations.len();
        let numbers: Vec<usize> = (0..=count).chain([count / 2, count]).collect();
        let outputs: Vec<OnceLock<Vec<u8>>> = numbers.iter().map(|_| OnceLock::new()).collect();
        let (next, problem) = (AtomicUsize::new(0), Mutex::new(None));
        let threads = match self.question.threads {
            0 => std::thread::available_parallelism().map_or(1, |n| n.get()),
            threads => threads,
        };
        let folder = copy::scratch()?;
        std::thread::scope(|scope| {
            for _ in 0..threads {
                scope.spawn(|| {
                    loop {
                        let at = next.fetch_add(1, Ordering::Relaxed);
                        let Some(&number) = numbers.get(at) else {
                            return;
                        };
                        match self.one(number, &folder.path().join(format!("{at}"))) {
                            Ok(output) => drop(outputs[at].set(output)),
                            Err(e) => {
                                next.store(numbers.len(), Ordering::Relaxed);
                                let mut problem = problem.lock().expect("nobody panics with it");
                                // The earliest problem counts, so that the workers' turns do not matter.
                                if problem.as_ref().is_none_or(|(least, _)| at < *least) {
                                    *problem = Some((at, e));
                                }
                                return;
                            }
                        }
                    }
                });
            }
        });
        if let Some((_, problem)) = problem.into_inner().expect("nobody panics with it") {
            return Err(problem);
        }
        let mut outputs: Vec<Vec<u8>> = outputs
            .into_iter()
            .map(|output| output.into_inner().expect("all were run"))
            .collect();
        let again = outputs.split_off(count + 1);
        for (output, number) in again.iter().zip([count / 2, count]) {
            if *output != outputs[number] {
                let (lacks, has) = difference(&outputs[number], output);
                let line = |lines: &[&[u8]]| {
                    lines.first().map_or_else(
                        || "nothing".to_owned(),
                        |line| format!("`{}`", String::from_utf8_lossy(line).trim_end()),
                    )
                };
                return refuse(format!(
                    "--apply: two runs of the first {number} operations do not end alike (one has {}, the other {}), so that nothing could be told \
                     by them; have it print nothing that is of the moment: times, addresses, what is drawn",
                    line(&lacks),
                    line(&has)
                ));
            }
        }
        Ok(outputs)
    }

    fn one(&self, number: usize, folder: &Path) -> Result<Vec<u8>> {
        std::fs::create_dir(folder).map_err(CrashTestError::io(folder.display()))?;
        let file = folder.join("operations");
        let text: String = (self.operations[..number].iter())
            .map(|line| format!("{line}\n"))
            .collect();
        std::fs::write(&file, text).map_err(CrashTestError::io(file.display()))?;
        let place = folder.join("pools");
        let paths = copy::paths(self.recording, &place)?;
        for (pool, path) in self.recording.pools.iter().zip(&paths) {
            if let Ground::File(ground) = &pool.ground {
                std::fs::copy(ground, path).map_err(CrashTestError::io(path.display()))?;
            }
        }
        let time = self.dump.time;
        let driver = Recovery {
            words: (self.question.apply.iter())
                .map(|word| word.replace("{operations}", &file.to_string_lossy()))
                .collect(),
            ok: vec![0],
            time,
            memory: self.dump.memory,
            oracle: None,
            interrupt: self.dump.interrupt.clone(),
        };
        let (none, output) = (PathBuf::from("/dev/null"), folder.join("output"));
        let given = RecoveryFiles {
            pools: &paths,
            folder: &place,
            acks: &none,
        };
        let of = |ended: Ended| {
            let said = said(&output);
            let colon = if said.is_empty() { "" } else { ": " };
            format!("({ended}{colon}{said})")
        };
        let ended = driver.run(given, &output, time)?;
        if driver.fails(ended) {
            return refuse(format!(
                "--apply: fails on the first {number} operations {}; it must make {{pool}}, apply {{operations}} to it, and end with 0",
                of(ended)
            ));
        }
        let ended = self.dump.run_apart(given, &output, time)?;
        if self.dump.fails(ended) {
            return refuse(format!(
                "--recover: fails on what --apply leaves of the first {number} operations {}, without any cut; correct one of them",
                of(ended)
            ));
        }
        let printed = std::fs::read(&output).map_err(CrashTestError::io(output.display()))?;
        std::fs::remove_dir_all(folder).map_err(CrashTestError::io(folder.display()))?;
        Ok(printed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn oracle(acknowledged: Acknowledged) -> Oracle {
        let outputs = ["", "a 1\n", "a 1\nb 2\n", "b 2\n", "b 2\nc 3\n"];
        Oracle {
            outputs: outputs.map(|text| text.as_bytes().to_vec()).to_vec(),
            acknowledged,
        }
    }

    #[test]
    fn an_output_is_that_of_what_was_acknowledged_or_of_one_operation_more() {
        let held = oracle(Acknowledged::Lines);
        assert_eq!(held.differs(b"a 1\n", 1), None);
        assert_eq!(held.differs(b"a 1\nb 2\n", 1), None);
        let lost = held.differs(b"", 1).unwrap();
        assert_eq!(
            lost,
            "it prints what the first 0 operations leave, and 1 were acknowledged"
        );
        let early = held.differs(b"b 2\n", 1).unwrap();
        assert_eq!(
            early,
            "it prints what the first 3 operations leave, and 2 had begun"
        );
        assert_eq!(held.differs(b"b 2\nc 3\n", 4), None);
    }

    #[test]
    fn without_a_promise_any_beginning_will_do_and_nothing_else() {
        let free = oracle(Acknowledged::None);
        assert_eq!(free.differs(b"", 3), None);
        assert_eq!(free.differs(b"b 2\n", 0), None);
        assert!(free.differs(b"c 3\n", 4).is_some());
    }

    #[test]
    fn a_difference_names_the_nearest_beginning_and_the_lines() {
        let held = oracle(Acknowledged::Lines);
        let torn = held.differs(b"a 1\nb 0\n", 1).unwrap();
        assert_eq!(
            torn,
            "it prints else than the first 1 to 2 operations leave: against the first 2 it lacks `b 2` and has `b 0`"
        );
        let less = held.differs(b"c 3\n", 4).unwrap();
        assert_eq!(
            less,
            "it prints less than the first 4 operations leave: against the first 4 it lacks `b 2`"
        );
        let (lacks, has) = difference(b"x\nx\ny\n", b"x\nz\n");
        assert_eq!((lacks, has), (vec![&b"x\n"[..], b"y\n"], vec![&b"z\n"[..]]));
    }
}
