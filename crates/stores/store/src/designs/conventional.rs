//! The conventional rival: it stores in files, and its time is counted.

use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::{Assumed, Bears, Design, Job, Key, KeyKind, Keys, Needs, Running};
use crate::conventional::{Conventional, ConventionalOptions, CostModel, PowerDraw};
use crate::operation::Content;
use crate::outcome::{RunError, object, rate, years};
use crate::parameters::Bracket;
use crate::store::{Error, Lba, Store};

/// Bytes that an 800 GB P3700 takes in its life, as specified. *assumed*
const DRIVE_ENDURES: f64 = 14.6e15;

pub(super) static DESIGN: Design = Design {
    name: "conventional",
    source: "Kaplan et al., Deduplication in Resistive CAM Based SSD, Sec. III-B and Fig. 7",
    line: "conventional stores in files here; its time is counted, for the paper's server.",
    executed: true,
    energy_from: "power of processor and memory while they work, energy of the drive's bytes",
    keys: keys! {
        "deduplicate": KeyKind::Flag, "true", "Fig. 7", "find duplicates; without, store all.";
        "verify": KeyKind::Flag, "true", "ours: a fingerprint decides nothing",
            "compare bytes before believing a hash.", needs(Needs::Flag("deduplicate"));
        "by_content": KeyKind::Flag, "false", "the paper has blocks", "cut the tree's files by content.", needs(Needs::Files);
        "cache_entries": KeyKind::Count { least: 1 }, "262144", "*assumed*", "chunks whose places are kept in memory.";
        "clock_mhz": KeyKind::Count { least: 1 }, "2700", "Sec. IV: Xeon E5-4650", "the processors' clock.";
        "cores": KeyKind::Count { least: 1 }, "1", "*assumed*", "cores that share the work.";
        "request_cycles": KeyKind::Bracket, "5000-50000", "*assumed*", "cycles of a request's file system, or A-B.";
        "hash_cycles_per_byte": KeyKind::Bracket, "4.99-7.7", "OpenSSL's SHA-1 on Sandy Bridge", "cycles of SHA-1 a byte, or A-B.";
        "compare_cycles_per_byte": KeyKind::Bracket, "0.1-1", "*assumed*", "cycles of a compare a byte, or A-B.";
        "lookup_cycles": KeyKind::Bracket, "300-3000", "*assumed*", "cycles of a look-up in memory, or A-B.";
        "fetch_us": KeyKind::Bracket, "20-100", "*assumed*", "microseconds of a look-up on the drive, or A-B.";
        "overlap": KeyKind::Flag, "false", "*assumed*", "the drive works while the processors do.";
        "processor_w": KeyKind::Bracket, "16.25-520", "*assumed*", "watts of its processors, or A-B.";
        "memory_w": KeyKind::Bracket, "3-24", "*assumed*", "watts of its memory, or A-B.";
    },
    assumed: &[
        Assumed {
            parameter: "conventional.request_cycles",
            value: "5000 to 50000",
            why: "2 to 19 us of system calls, file system and benchmark; opendedup's is in user space",
            bears_on: Bears::All,
        },
        Assumed {
            parameter: "conventional.cores",
            value: "1",
            why: "the server has 32; its benchmark writes one block after the other",
            bears_on: Bears::All,
        },
        Assumed {
            parameter: "conventional.compare_cycles_per_byte",
            value: "0.1 to 1",
            why: "from a vector a cycle to a byte a cycle",
            bears_on: Bears::All,
        },
        Assumed {
            parameter: "conventional.lookup_cycles",
            value: "300 to 3000",
            why: "one to ten misses of the last cache",
            bears_on: Bears::All,
        },
        Assumed {
            parameter: "conventional.fetch_us",
            value: "20 to 100",
            why: "a P3700's 20 us of a read, to five of them",
            bears_on: Bears::All,
        },
        Assumed {
            parameter: "conventional.overlap",
            value: "false",
            why: "the paper does not say whether requests are under way at once",
            bears_on: Bears::All,
        },
        Assumed {
            parameter: "conventional.processor_w",
            value: "16.25 to 520",
            why: "from a core's share of an E5-4650's 130 W to four packages",
            bears_on: Bears::Energy,
        },
        Assumed {
            parameter: "conventional.memory_w",
            value: "3 to 24",
            why: "from one memory module to eight",
            bears_on: Bears::Energy,
        },
        Assumed {
            parameter: "conventional.drive_nj_per_byte",
            value: "13.2 written, 4.3 read",
            why: "an 800 GB P3700's watts",
            bears_on: Bears::Energy,
        },
        Assumed {
            parameter: "conventional.drive_endures",
            value: "14.6 PB",
            why: "an 800 GB P3700, as specified; what its own controller writes beyond what it is given is in \
                  that figure, the tables' engine is not in ours",
            bears_on: Bears::Life,
        },
        Assumed {
            parameter: "conventional.cache_entries",
            value: "262144",
            why: "the paper gives no cache for 2 GB of data",
            bears_on: Bears::All,
        },
    ],
    figures: names! {
        writes duplicate_writes reads stored_blocks bytes cycles elapsed_seconds processor_seconds writes_per_second
        operations_per_second energy_nj energy_nj_low energy_nj_high drive_bytes_written drive_bytes_read
        years bloom_answers cache_answers engine_lookups collisions processor_energy_nj memory_energy_nj
        drive_energy_nj
    },
    check,
    run: |keys, job| {
        let asked: ConventionalKeys = keys.read();
        let folder = job.folder.ok_or_else(|| {
            RunError::Bad("conventional: needs a folder for its files; name one".to_owned())
        })?;
        let options = ConventionalOptions {
            block_bytes: job.block_bytes,
            capacity_bytes: job.bytes_at_most()?,
            sync_commits: false, // as IOzone, which asks for one flush at the end
            ..asked.options()
        };
        Ok(Box::new(OnFiles {
            store: Conventional::open(folder, options)?,
            by_content: asked.by_content,
            made: vec![0; job.block_bytes as usize],
            bytes: 0,
        }))
    },
    store: |keys, room| {
        let asked: ConventionalKeys = keys.read();
        let options = asked.options();
        // A replaced chunk keeps its place until the commit.
        let uncommitted = options.commit_every as u64 * u64::from(room.block_bytes);
        let options = ConventionalOptions {
            block_bytes: room.block_bytes,
            capacity_bytes: room.capacity_bytes + uncommitted,
            ..options
        };
        Ok(Box::new(Conventional::open(room.folder, options)?))
    },
};

/// The store as it is asked for; see [`ConventionalOptions`].
#[derive(Deserialize)]
struct ConventionalKeys {
    deduplicate: bool,
    verify: bool,
    by_content: bool,
    cache_entries: usize,
    clock_mhz: u32,
    cores: u32,
    request_cycles: Bracket,
    hash_cycles_per_byte: Bracket,
    compare_cycles_per_byte: Bracket,
    lookup_cycles: Bracket,
    fetch_us: Bracket,
    overlap: bool,
    processor_w: Bracket,
    memory_w: Bracket,
}

impl ConventionalKeys {
    fn options(&self) -> ConventionalOptions {
        let usual = ConventionalOptions::default();
        ConventionalOptions {
            deduplicate: self.deduplicate,
            verify: self.verify,
            cache_entries: self.cache_entries,
            costs: CostModel {
                clock_mhz: self.clock_mhz,
                cores: self.cores,
                request_cycles: self.request_cycles,
                hash_cycles_per_byte: self.hash_cycles_per_byte,
                compare_cycles_per_byte: self.compare_cycles_per_byte,
                lookup_cycles: self.lookup_cycles,
                fetch_us: self.fetch_us,
                overlap: self.overlap,
            },
            draw: PowerDraw {
                processor_w: self.processor_w,
                memory_w: self.memory_w,
                ..usual.draw
            },
            ..usual
        }
    }
}

fn check(keys: &Keys, job: &Job<'_>) -> Result<(), RunError> {
    if !keys.read::<ConventionalKeys>().by_content {
        return Ok(());
    }
    if !job.workload.has_bytes() {
        return Err(RunError::Bad(
            "chunks by content need files to cut: give a directory tree".to_owned(),
        ));
    }
    if job.block_bytes < 256 {
        return Err(RunError::Bad(format!(
            "block_bytes = {}: chunks by content have 256 bytes or more on average",
            job.block_bytes
        )));
    }
    Ok(())
}

struct OnFiles {
    store: Conventional,
    by_content: bool,
    made: Vec<u8>,
    bytes: u64,
}

impl Running for OnFiles {
    fn cuts_by_content(&self) -> bool {
        self.by_content
    }

    fn write(&mut self, lba: Lba, content: Content<'_>) -> Result<(), Error> {
        let block = match content {
            Content::Bytes(bytes) => bytes,
            Content::Made(of) => {
                of.bytes(0, &mut self.made);
                &self.made
            }
        };
        self.bytes += block.len() as u64;
        self.store.put(lba, block).map(drop)
    }

    fn read(&mut self, lba: Lba) -> Result<(), Error> {
        self.store.get(lba).map(drop)
    }

    fn figures(&mut self) -> Result<Map<String, Value>, Error> {
        self.store.flush()?;
        let (totals, done) = (self.store.totals(), *self.store.activity());
        let (seconds, working) = self.store.seconds();
        let energy = |place| {
            let parts = self.store.energy_by(place);
            parts.iter().map(|(_, energy)| energy).sum::<f64>()
        };
        let mut figures = object(json!({
            "writes": totals.writes,
            "duplicate_writes": totals.duplicate_writes,
            "reads": totals.reads,
            "stored_blocks": totals.stored_blocks,
            "bytes": self.bytes,
            "cycles": null,
            "elapsed_seconds": seconds,
            "processor_seconds": working,
            "writes_per_second": rate(totals.writes, seconds),
            "operations_per_second": rate(totals.writes + totals.reads, seconds),
            "energy_nj": energy(Bracket::middle),
            "energy_nj_low": energy(|b| b.low),
            "energy_nj_high": energy(|b| b.high),
            "drive_bytes_written": done.bytes_written,
            "drive_bytes_read": done.bytes_read,
            "years": years(DRIVE_ENDURES, rate(done.bytes_written, seconds)),
            "bloom_answers": done.bloom_answers,
            "cache_answers": done.cache_answers,
            "engine_lookups": done.engine_lookups,
            "collisions": done.collisions,
        }));
        for (name, energy) in totals.energy_by {
            figures.insert(format!("{name}_energy_nj"), json!(energy));
        }
        Ok(figures)
    }
}
