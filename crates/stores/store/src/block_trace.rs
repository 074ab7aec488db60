//! Recorded block traces: FIU's, which have a digest of each block, and MSR's and fio's, which have no contents. What
//! such a trace writes is then assumed: a share of duplicates, evenly spread. Left out: when requests came, and discards.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::PathBuf;

use sardonyx_base::random::mix;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::fiu::FiuRequest;
use crate::operation::{Content, Operation, WorkloadError, failed};
use crate::synthetic::Made;

/// The bytes that a digest of FIU's traces stands for.
const DIGESTED: u64 = 4096;
/// A line that is longer is not of a trace.
const LONGEST_LINE: u64 = 1 << 16;
/// The most blocks of one disk, after which the next disk's come.
const DISK: u64 = 1 << 40;

/// Requests to disks, a line each: FIU's `time pid process lba sectors W|R major minor digest..` with an MD5 of each
/// 4096 bytes, MSR's `timestamp,host,disk,Read|Write,offset,size,response`, or a log of fio (`fio version 2 iolog`, or 3).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BlockTrace {
    /// The file.
    pub path: PathBuf,
    /// Of a trace without contents: the share of writes whose content was written before.
    pub duplicates: Option<f64>,
    /// The seed that chooses the duplicates.
    #[serde(default)]
    pub seed: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    Fiu,
    Msr,
    /// Whether lines begin with a time.
    Fio {
        timed: bool,
    },
}

impl Form {
    fn of(first: &str) -> Result<Form, String> {
        if let Some(rest) = first.strip_prefix("fio version ") {
            return match rest.trim() {
                "2 iolog" => Ok(Form::Fio { timed: false }),
                "3 iolog" => Ok(Form::Fio { timed: true }),
                _ => Err("is a log of fio of another version; versions 2 and 3 are read".into()),
            };
        }
        let commas = first.matches(',').count();
        Ok(if commas >= 5 { Form::Msr } else { Form::Fiu })
    }
}

struct DiskRequest<'a> {
    write: bool,
    disk: u64,
    at: u64,
    bytes: u64,
    digests: Vec<&'a str>,
}

/// Disks by name, in the order in which they come.
#[derive(Default)]
struct Disks(Vec<String>);

impl Disks {
    fn number(&mut self, name: &str) -> u64 {
        let known = self.0.iter().position(|known| known == name);
        known.unwrap_or_else(|| {
            self.0.push(name.to_owned());
            self.0.len() - 1
        }) as u64
    }
}

fn number(word: &str) -> Result<u64, String> {
    let word = word.trim();
    word.parse()
        .map_err(|_| format!("{word:.50} is not a number"))
}

fn msr<'a>(line: &str, disks: &mut Disks) -> Result<DiskRequest<'a>, String> {
    let words: Vec<&str> = line.trim().split(',').collect();
    let [time, host, disk, way, at, bytes, ..] = words[..] else {
        return Err("is not `timestamp,host,disk,Read|Write,offset,size,response`".into());
    };
    number(time)?;
    let write = match way.trim().to_ascii_lowercase().as_str() {
        "write" | "w" => true,
        "read" | "r" => false,
        other => return Err(format!("{other:.50} is neither Read nor Write")),
    };
    Ok(DiskRequest {
        write,
        disk: disks.number(&format!("{host},{disk}")),
        at: number(at)?,
        bytes: number(bytes)?,
        digests: Vec::new(),
    })
}

/// A request of fio, or `None` for other lines: files that are added, opened and closed, waits, syncs, discards.
fn fio<'a>(line: &str, timed: bool, disks: &mut Disks) -> Result<Option<DiskRequest<'a>>, String> {
    let mut words = line.split_whitespace();
    if timed {
        number(words.next().unwrap_or_default())?;
    }
    let form = "is not `file action [offset length]`";
    let (Some(file), Some(action)) = (words.next(), words.next()) else {
        return Err(form.into());
    };
    let write = match action {
        "write" => true,
        "read" => false,
        "add" | "open" | "close" | "wait" | "sync" | "datasync" | "sync_file_range" | "trim" => {
            return Ok(None);
        }
        other => return Err(format!("{other:.50} is no action of fio's")),
    };
    let (Some(at), Some(bytes)) = (words.next(), words.next()) else {
        return Err(form.into());
    };
    Ok(Some(DiskRequest {
        write,
        disk: disks.number(file),
        at: number(at)?,
        bytes: number(bytes)?,
        digests: Vec::new(),
    }))
}

fn fiu(line: &str) -> Result<DiskRequest<'_>, String> {
    let request = FiuRequest::parse(line)?;
    let blocks = request.digests.len() as u64;
    if request.at % DIGESTED != 0 || request.bytes != blocks * DIGESTED {
        return Err(format!(
            "{} bytes from byte {} on with {blocks} digests are no whole blocks of {DIGESTED}",
            request.bytes, request.at
        ));
    }
    Ok(DiskRequest {
        write: request.write,
        disk: 0,
        at: request.at,
        bytes: request.bytes,
        digests: request.digests,
    })
}

impl BlockTrace {
    /// An error unless the trace can be written as blocks of that size.
    pub(crate) fn check(&self, block_bytes: u32) -> Result<(), WorkloadError> {
        let bad = |problem: String| Err(WorkloadError::Bad(problem));
        let path = self.path.display();
        let form = self.form()?;
        match (form, self.duplicates) {
            (Form::Fiu, _) if u64::from(block_bytes) != DIGESTED => bad(format!(
                "{path}: has a digest for each {DIGESTED} bytes; take blocks of that size, not of {block_bytes}"
            )),
            (Form::Fiu, Some(_)) => bad(format!(
                "{path}: has digests, which say what is a duplicate; leave --duplicates out"
            )),
            (Form::Msr | Form::Fio { .. }, None) => bad(format!(
                "{path}: has no contents; say what share of its writes are duplicates, as in --duplicates 0.3"
            )),
            (_, Some(share)) if !(0.0..=1.0).contains(&share) => {
                bad(format!("duplicates = {share}: give 0 to 1"))
            }
            _ => Ok(()),
        }
    }

    fn form(&self) -> Result<Form, WorkloadError> {
        let mut first = String::new();
        let file = self.open()?;
        let mut limited = BufReader::new(file).take(LONGEST_LINE);
        limited.read_line(&mut first).map_err(|e| self.failed(e))?;
        Form::of(&first).map_err(|problem| self.bad(1, &problem))
    }

    fn open(&self) -> Result<File, WorkloadError> {
        File::open(&self.path).map_err(|e| self.failed(e))
    }

    fn failed(&self, error: io::Error) -> WorkloadError {
        failed(&self.path, error)
    }

    fn bad(&self, line: u64, problem: &str) -> WorkloadError {
        WorkloadError::Bad(format!("{}, line {line}: {problem}", self.path.display()))
    }

    /// The bytes that are written, with the ends of blocks that are written in part.
    pub(crate) fn bytes_at_most(&self, block_bytes: u32) -> Result<u64, WorkloadError> {
        let block = u64::from(block_bytes);
        let mut bytes = 0;
        self.requests(&mut |request| {
            let end = (request.at + request.bytes).next_multiple_of(block);
            bytes += u64::from(request.write) * (end - request.at / block * block);
            Ok::<(), WorkloadError>(())
        })?;
        Ok(bytes)
    }

    fn requests<E: From<WorkloadError>>(
        &self,
        each: &mut dyn FnMut(DiskRequest<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        let form = self.form()?;
        let (mut lines, mut line) = (BufReader::new(self.open()?), String::new());
        let (mut disks, mut number) = (Disks::default(), 0);
        loop {
            line.clear();
            number += 1;
            let mut limited = (&mut lines).take(LONGEST_LINE);
            let read = limited.read_line(&mut line);
            if read.map_err(|e| self.failed(e))? == 0 {
                return Ok(());
            }
            let header = number == 1 && matches!(form, Form::Fio { .. });
            if header || (form != Form::Fiu && line.trim().is_empty()) {
                continue;
            }
            let request = match form {
                Form::Fiu => fiu(&line).map(Some),
                Form::Msr => msr(&line, &mut disks).map(Some),
                Form::Fio { timed } => fio(&line, timed, &mut disks),
            };
            let request = request.map_err(|problem| self.bad(number, &problem))?;
            let Some(request) = request.filter(|request| request.bytes > 0) else {
                continue;
            };
            let end = request.at.checked_add(request.bytes);
            if end.is_none_or(|end| end > DISK) {
                let problem = "lies beyond a disk of a terabyte of blocks";
                return Err(self.bad(number, problem).into());
            }
            each(request)?;
        }
    }

    /// Runs every request, block by block; a block that is written in part is written whole.
    pub(crate) fn run<E: From<WorkloadError>>(
        &self,
        block_bytes: u32,
        each: &mut dyn FnMut(Operation<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        let block = u64::from(block_bytes);
        let share = self.duplicates.unwrap_or_default();
        let (mut writes, mut unique, mut duplicates) = (0_u64, 0_u64, 0_u64);
        self.requests(&mut |request| {
            let first = request.disk * DISK + request.at / block;
            let blocks = (request.at + request.bytes).div_ceil(block) - request.at / block;
            for number in 0..blocks {
                if !request.write {
                    each(Operation::Read(first + number))?;
                    continue;
                }
                let content = match request.digests.get(number as usize) {
                    Some(digest) => u128::from_str_radix(digest, 16).expect("digits, as parsed"),
                    None => {
                        let due = ((writes + 1) as f64 * share) as u64;
                        let again = duplicates < due && unique > 0;
                        duplicates += u64::from(again);
                        unique += u64::from(!again);
                        let chosen = match again {
                            true => mix(self.seed ^ mix(writes)) % unique,
                            false => unique - 1,
                        };
                        u128::from(self.seed) << 64 | u128::from(chosen)
                    }
                };
                writes += 1;
                each(Operation::Write(
                    first + number,
                    Content::Made(Made::new(content)),
                ))?;
            }
            Ok(())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn ran(text: &str, duplicates: Option<f64>, block: u32) -> Result<Vec<(bool, u64)>, String> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("trace");
        fs::write(&path, text).unwrap();
        let trace = BlockTrace {
            path,
            duplicates,
            seed: 1,
        };
        trace.check(block).map_err(|e| e.to_string())?;
        let mut seen = Vec::new();
        let ended = trace.run(block, &mut |one| {
            seen.push(match one {
                Operation::Write(lba, _) => (true, lba),
                Operation::Read(lba) => (false, lba),
            });
            Ok::<(), WorkloadError>(())
        });
        ended.map_err(|e| e.to_string())?;
        let bytes = trace.bytes_at_most(block).unwrap();
        let written = seen.iter().filter(|(write, _)| *write).count() as u64;
        assert_eq!(bytes, written * u64::from(block));
        Ok(seen)
    }

    #[test]
    fn msr_and_fio_name_bytes_and_cover_blocks() {
        let msr = "128166372003061629,hm,1,Read,8192,4096,413\n128166372016382155,hm,1,Write,4095,4098,9\n\
                   128166372026382245,hm,2,Write,0,512,9\n";
        let other = DISK;
        // Bytes 4095 to 8193 touch three blocks.
        assert_eq!(
            ran(msr, Some(0.0), 4096).unwrap(),
            [(false, 2), (true, 0), (true, 1), (true, 2), (true, other)]
        );
        let fio = "fio version 2 iolog\n/dev/sda add\n/dev/sda open\n/dev/sda write 4096 8192\n/dev/sda sync 0 0\n\
                   /dev/sda trim 0 4096\n/dev/sdb read 0 1\n/dev/sda close\n";
        assert_eq!(
            ran(fio, Some(0.5), 4096).unwrap(),
            [(true, 1), (true, 2), (false, other)]
        );
        let timed = "fio version 3 iolog\n0 f add\n12 f write 0 4096\n";
        assert_eq!(ran(timed, Some(0.5), 4096).unwrap(), [(true, 0)]);
    }

    #[test]
    fn the_share_of_duplicates_is_met_and_named() {
        let lines: String = (0..1000)
            .map(|n| format!("{n},h,0,Write,{},4096,1\n", n * 4096))
            .collect();
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("trace");
        fs::write(&path, &lines).unwrap();
        let trace = BlockTrace {
            path,
            duplicates: Some(0.3),
            seed: 5,
        };
        let mut contents = std::collections::HashSet::new();
        trace
            .run(4096, &mut |one| {
                if let Operation::Write(_, Content::Made(made)) = one {
                    contents.insert(made.content);
                }
                Ok::<(), WorkloadError>(())
            })
            .unwrap();
        assert_eq!(contents.len(), 700);
        assert!(
            ran(&lines, None, 4096)
                .unwrap_err()
                .contains("--duplicates 0.3")
        );
    }

    #[test]
    fn what_is_wrong_has_its_line() {
        let line = |text: &str| ran(text, Some(0.3), 4096).unwrap_err();
        assert!(
            line("1,h,0,Write,0,4096,1\n1,h,0,Copy,0,4096,1\n").contains("line 2: copy is neither")
        );
        assert!(line("1,h,0,Write,x,4096,1\n").contains("line 1: x is not a number"));
        assert!(line("fio version 4 iolog\n").contains("line 1: is a log of fio of another"));
        assert!(line("fio version 2 iolog\nf jump 0 1\n").contains("line 2: jump is no action"));
        assert!(line("fio version 2 iolog\nf write 0\n").contains("line 2: is not `file action"));
        let digests = format!("0 1 a b 8 8 W 8 0 {}\n", "0".repeat(32));
        assert!(line(&digests).contains("leave --duplicates out"));
    }
}
