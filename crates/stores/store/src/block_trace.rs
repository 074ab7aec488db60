//! Recorded block traces: FIU's, which have a digest of each block, and MSR's, fio's, MQSim's and blkparse's, which have
//! no contents. What such a trace writes is then assumed: a share of duplicates, evenly spread. Left out: when requests
//! came, and discards.

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
/// The most bytes of one disk, in the smallest blocks.
const DISK_BYTES: u64 = DISK * 64;
const SECTOR: u64 = 512;

/// Requests to disks, a line each: FIU's `time pid process lba sectors W|R major minor digest..` with an MD5 of each
/// 4096 bytes, MSR's `timestamp,host,disk,Read|Write,offset,size,response`, a log of fio (`fio version 2 iolog`, or 3),
/// MQSim's `time disk sector sectors 0|1` (0 writes), or the text of blkparse.
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
    MqSim,
    Blkparse,
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
        let words: Vec<&str> = first.split_whitespace().collect();
        let numbers = words.iter().all(|word| number(word).is_ok());
        let commas = first.matches(',').count();
        Ok(if words.first().is_some_and(|word| is_device(word)) {
            Form::Blkparse
        } else if words.len() == 5 && numbers {
            Form::MqSim
        } else if commas >= 5 {
            Form::Msr
        } else {
            Form::Fiu
        })
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

fn mqsim<'a>(line: &str, disks: &mut Disks) -> Result<DiskRequest<'a>, String> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let [time, disk, sector, sectors, kind] = words[..] else {
        return Err("is not `time disk sector sectors 0|1`".into());
    };
    number(time)?;
    let write = match kind {
        "0" => true,
        "1" => false,
        other => return Err(format!("{other:.50} is neither 0, a write, nor 1, a read")),
    };
    Ok(DiskRequest {
        write,
        disk: disks.number(disk),
        at: number(sector)?.saturating_mul(SECTOR),
        bytes: number(sectors)?.saturating_mul(SECTOR),
        digests: Vec::new(),
    })
}

const NOT_BLKPARSE: &str =
    "is not `device cpu sequence time pid action RWBS sector + sectors [process]`";

/// Whether a word is a device's numbers, as `8,0`.
fn is_device(word: &str) -> bool {
    let numbers = word.split_once(',');
    numbers.is_some_and(|(major, minor)| number(major).is_ok() && number(minor).is_ok())
}

/// A read or write of blkparse's text, `device cpu sequence time pid action RWBS sector + sectors [process]`, if it is of
/// this action; else `None`, as for the counts at its end.
fn blkparse<'a>(
    line: &str,
    action: &str,
    disks: &mut Disks,
) -> Result<Option<DiskRequest<'a>>, String> {
    let words: Vec<&str> = line.split_whitespace().collect();
    if !words.first().is_some_and(|word| is_device(word)) {
        let heads = ["CPU", "Total", "Throughput", "Events", "Skips"];
        let counts = line.starts_with(char::is_whitespace);
        return match counts || heads.iter().any(|head| line.starts_with(head)) {
            true => Ok(None),
            false => Err(NOT_BLKPARSE.into()),
        };
    }
    let [device, _, _, _, _, what, kind, rest @ ..] = &words[..] else {
        return Err(NOT_BLKPARSE.into());
    };
    // A flush may go before (F); then there is the operation, and how it is done (FUA, synchronous, metadata).
    let write = match kind.trim_start_matches('F').chars().next() {
        Some('W') => true,
        Some('R') => false,
        _ => return Ok(None),
    };
    let [sector, "+", sectors, ..] = rest else {
        return Ok(None);
    };
    if *what != action {
        return Ok(None);
    }
    Ok(Some(DiskRequest {
        write,
        disk: disks.number(device),
        at: number(sector)?.saturating_mul(SECTOR),
        bytes: number(sectors)?.saturating_mul(SECTOR),
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
            (Form::Msr | Form::Fio { .. } | Form::MqSim | Form::Blkparse, None) => bad(format!(
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

    /// The action of blkparse's lines that stands for requests. What a device was given (D), if the trace has that;
    /// else what was queued (Q), as of devices without a queue of their own; else what was completed (C). A request has a
    /// line of each.
    fn action(&self) -> Result<&'static str, WorkloadError> {
        let mut seen = [false; 2];
        self.lines(&mut |_, line| {
            let action = line.split_whitespace().nth(5);
            let request = line.split_whitespace().nth(8) == Some("+");
            for (seen, known) in seen.iter_mut().zip(["D", "Q"]) {
                *seen |= request && action == Some(known);
            }
            Ok(!seen[0])
        })?;
        Ok(match seen {
            [true, _] => "D",
            [false, true] => "Q",
            [false, false] => "C",
        })
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
        let action = match form {
            Form::Blkparse => self.action()?,
            _ => "",
        };
        let mut disks = Disks::default();
        self.lines(&mut |number, line| {
            let header = number == 1 && matches!(form, Form::Fio { .. });
            if header || (form != Form::Fiu && line.trim().is_empty()) {
                return Ok(true);
            }
            let request = match form {
                Form::Fiu => fiu(line).map(Some),
                Form::Msr => msr(line, &mut disks).map(Some),
                Form::Fio { timed } => fio(line, timed, &mut disks),
                Form::MqSim => mqsim(line, &mut disks).map(Some),
                Form::Blkparse => blkparse(line, action, &mut disks),
            };
            let request = request.map_err(|problem| self.bad(number, &problem))?;
            let Some(request) = request.filter(|request| request.bytes > 0) else {
                return Ok(true);
            };
            let end = request.at.checked_add(request.bytes);
            if end.is_none_or(|end| end > DISK_BYTES) {
                let problem = "lies beyond a disk of 64 terabytes";
                return Err(self.bad(number, problem).into());
            }
            each(request)?;
            Ok(true)
        })
    }

    /// Gives every line with its number, until `each` says that it wants no more.
    fn lines<E: From<WorkloadError>>(
        &self,
        each: &mut dyn FnMut(u64, &str) -> Result<bool, E>,
    ) -> Result<(), E> {
        let (mut lines, mut line) = (BufReader::new(self.open()?), String::new());
        let mut number = 0;
        loop {
            line.clear();
            number += 1;
            let mut limited = (&mut lines).take(LONGEST_LINE);
            let read = limited.read_line(&mut line);
            if read.map_err(|e| self.failed(e))? == 0 || !each(number, &line)? {
                return Ok(());
            }
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

    const BLKPARSE: &str = "\
  8,0    3        1     0.000000000   697  Q  WS 8 + 16 [kworker/3:1 x]
  8,0    3        2     0.000001000   697  G  WS 8 + 16 [kworker/3:1 x]
  8,0    3        3     0.000002000     0  m   N cfq697 insert_request
  8,0    3        4     0.000003000   697  D  WS 8 + 16 [kworker/3:1 x]
259,1    1        1     0.000004000    12  Q   R 0 + 1 [fio]
259,1    1        2     0.000005000    12  D   R 0 + 1 [fio]
  8,0    3        5     0.000006000    12  D   D 64 + 8 [fio]
  8,0    3        6     0.000007000    12  Q  FF [fio]
  8,0    3        7     0.000008000    12  D FWFSM 16 + 8 [fio]
  8,0    3        8     0.000009000     0  C  WS 8 + 16 [0]
CPU3 (8,0):
 Reads Queued:           1,        4KiB  Writes Queued:           1,        8KiB
Total (8,0):
Throughput (R/W): 0KiB/s / 5KiB/s
Events (8,0): 8 entries
Skips: 0 forward (0 -   0.0%)
";

    #[test]
    fn mqsim_and_blkparse_name_sectors() {
        let mqsim = "4851300 1 8 16 0\n4864300 1 0 1 1\n4864300 2 0 1 0\n";
        let wanted = [(true, 1), (true, 2), (false, 0), (true, DISK)];
        assert_eq!(ran(mqsim, Some(0.0), 4096).unwrap(), wanted);
        let wanted = [(true, 1), (true, 2), (false, DISK), (true, 2)];
        assert_eq!(ran(BLKPARSE, Some(0.0), 4096).unwrap(), wanted);
        // Without what the devices were given: what was queued, or at last what was completed.
        let without = |actions: &[&str]| -> String {
            let word = |line: &&str| line.split_whitespace().nth(5).map(str::to_owned);
            let kept = |line: &&str| word(line).is_none_or(|it| !actions.contains(&&*it));
            BLKPARSE
                .lines()
                .filter(kept)
                .map(|line| format!("{line}\n"))
                .collect()
        };
        let queued = ran(&without(&["D"]), Some(0.0), 4096).unwrap();
        assert_eq!(queued, [(true, 1), (true, 2), (false, DISK)]);
        let completed = ran(&without(&["D", "Q"]), Some(0.0), 4096).unwrap();
        assert_eq!(completed, [(true, 1), (true, 2)]);
        assert!(ran(mqsim, None, 4096).unwrap_err().contains("--duplicates"));
        assert!(
            ran(BLKPARSE, None, 4096)
                .unwrap_err()
                .contains("--duplicates")
        );
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
        assert!(line("1 0 8 16 2\n").contains("line 1: 2 is neither 0, a write"));
        assert!(line("1 0 8 16 0\n1 0 8 16\n").contains("line 2: is not `time disk sector"));
        assert!(line(&format!("{BLKPARSE}nonsense\n")).contains("line 17: is not `device cpu"));
        assert!(line("8,0 3 1 0.0 697 D W x + 8 [a]\n").contains("line 1: x is not a number"));
        let far = format!("1 0 {} 1 0\n", 1_u64 << 37);
        assert!(line(&far).contains("beyond a disk of 64 terabytes"));
        let digests = format!("0 1 a b 8 8 W 8 0 {}\n", "0".repeat(32));
        assert!(line(&digests).contains("leave --duplicates out"));
    }
}
