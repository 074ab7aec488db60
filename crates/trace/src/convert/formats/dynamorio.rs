//! DynamoRIO's drmemtrace, the text of its view tool: `.. T12 read 8 byte(s) @ 0x1000 by PC ..`. Recorded with
//! `-use_physical`, it has a pair of markers before the first access to a page: its physical and its virtual address.

use rustc_hash::FxHashMap;

use crate::convert::foreign::{Foreign, Reads, TextFormat, TextLine};
use crate::convert::parse::{ParsedRequests, decimal, hex, shape, touch};
use crate::convert::{Format, remedy};

pub const FORMAT: Foreign = Foreign {
    // The view tool prints to standard error.
    has_pc: true,
    text_by: Some("drrun -t drmemtrace -tool view -indir FOLDER 2> view.txt"),
    ..Foreign::at_core("dynamorio", Reads::Text(|_| Box::new(DynamoRio::new())))
};

/// Bytes of a page where no marker says it.
const PAGE: u64 = 4096;

struct DynamoRio {
    /// Instructions so far.
    moment: u64,
    page_bytes: u64,
    /// The physical address of the marker before.
    physical: Option<u64>,
    /// Physical pages, by workload and virtual page.
    pages: FxHashMap<(u64, u64), u64>,
    /// By how the view tool calls them.
    threads: FxHashMap<String, usize>,
}

impl DynamoRio {
    fn new() -> DynamoRio {
        DynamoRio {
            moment: 0,
            page_bytes: PAGE,
            physical: None,
            pages: FxHashMap::default(),
            threads: FxHashMap::default(),
        }
    }

    /// Notes what the marker `said` of a thread tells of the addresses.
    fn marker(&mut self, thread: &str, said: &str) -> Result<(), String> {
        let address = said.rsplit(' ').next().unwrap_or_default();
        let physical = self.physical.take();
        if said.starts_with("page size ") {
            let bytes = decimal(address, "page size")?;
            if !bytes.is_power_of_two() {
                return Err(format!("a page of {bytes} bytes is no power of two"));
            }
            self.page_bytes = bytes;
        } else if said.starts_with("physical address for following virtual: ") {
            self.physical = Some(hex(address)?);
        } else if said.starts_with("virtual address for prior physical: ") {
            let physical = physical.ok_or("has no marker of a physical address before it")?;
            let page = hex(address)? / self.page_bytes;
            let place = physical / self.page_bytes;
            self.pages.insert((workload(thread), page), place);
        } else if said.starts_with("physical address not available for ") {
            let page = hex(address)? / self.page_bytes;
            self.pages.remove(&(workload(thread), page));
        }
        Ok(())
    }
}

/// Threads of several workloads are called `W1.T12`, and each workload has addresses of its own.
fn workload(thread: &str) -> u64 {
    let number = thread
        .strip_prefix('W')
        .and_then(|rest| rest.split_once('.'));
    number.map_or(0, |(number, _)| number.parse().unwrap_or(0))
}

impl TextFormat for DynamoRio {
    fn line(&mut self, line: &TextLine<'_>, out: &mut ParsedRequests) -> Result<(), String> {
        if let Some((before, marker)) = line.text.split_once("<marker: ")
            && let Some(said) = marker.trim_end().strip_suffix('>')
        {
            let thread = before.split_whitespace().last().unwrap_or_default();
            return self.marker(thread, said);
        }
        let Some(at) = line
            .words
            .windows(2)
            .position(|two| two == ["byte(s)", "@"])
        else {
            // Headings, ends of threads and the counts at the end.
            let known = line
                .words
                .iter()
                .any(|word| word.starts_with('<') || word.ends_with(':') || word.starts_with("--"));
            return match known {
                true => Ok(()),
                false => Err(format!(
                    "is not a line of DynamoRIO's view tool; {}",
                    remedy(Format::DynamoRio)
                )),
            };
        };
        let (Some(kind), Some(size), Some(address)) = (
            at.checked_sub(2).map(|kind| line.words[kind]),
            at.checked_sub(1).map(|size| line.words[size]),
            line.words.get(at + 2),
        ) else {
            return Err(shape(&line.words, ".. KIND SIZE byte(s) @ ADDRESS"));
        };
        let write = match kind {
            "ifetch" | "non-fetched" => {
                self.moment += 1;
                return Ok(());
            }
            "read" => false,
            "write" => true,
            // Prefetches and flushes move no bytes of the program.
            _ => return Ok(()),
        };
        // The thread stands before the kind: `T12`, `W0.T12` or, in between, `12`. Threads have large numbers of the
        // system; here the first one is 0.
        let name = at.checked_sub(3).map_or("", |thread| line.words[thread]);
        let next = self.threads.len();
        let number = match self.threads.get(name) {
            Some(&number) => number,
            None => *self.threads.entry(name.to_owned()).or_insert(next),
        };
        let thread =
            u16::try_from(number).map_err(|_| "has more than 65,536 threads".to_owned())?;
        let access = (write, hex(address)?, decimal(size, "size")?);
        let before = out.len();
        touch(self.moment, access, &[], thread, out)?;
        let workload = workload(name);
        let pc = match line.words.get(at + 3..at + 6) {
            Some(["by", "PC", pc]) => Some(hex(pc)?),
            _ => None,
        };
        for request in out.range_mut(before..) {
            request.pc = pc;
            let page = request.byte / self.page_bytes;
            if let Some(place) = self.pages.get(&(workload, page)) {
                request.byte = place * self.page_bytes + request.byte % self.page_bytes;
                request.translated = true;
            }
        }
        Ok(())
    }
}
