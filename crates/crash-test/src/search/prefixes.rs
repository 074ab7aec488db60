//! What the program makes of each beginning of its operations, without a cut: the driver is run on it, and the recovery
//! prints what the pool holds.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock};

use rustc_hash::FxHashSet;

use crate::images::{copy, grounds};
use crate::question::Question;
use crate::recording::Recording;
use crate::recording::pools::Ground;
use crate::recovery::ending::Ended;
use crate::recovery::oracle::{Acknowledged, Oracle, difference};
use crate::recovery::{Recovery, RecoveryFiles, said};
use crate::{CrashTestError, Result};

fn refuse<T>(message: String) -> Result<T> {
    Err(CrashTestError::new(message))
}

/// Runs the driver and the recovery on every beginning of the operations; `None` if the question has none.
///
/// # Errors
/// They fail on a beginning, do not print the same twice, or print the same for all; or the program did not print a
/// line for each operation.
pub fn learn_oracle(
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
        let threads = self.question.options.workers();
        let folder = grounds::scratch()?;
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
