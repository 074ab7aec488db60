//! The resistive CAM, simulated.

use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::{Assumed, Bears, Design, Job, Key, KeyKind, Room, Running};
use crate::ledger::Purpose;
use crate::operation::Content;
use crate::outcome::{RunError, object, rate, years};
use crate::parameters::{Bracket, Compare, Energies, First, Overwrite, Parameters};
use crate::recam::{BlockContents, InMemory, Recam, Regenerated};
use crate::store::{Error, Lba, Outcome};

pub(super) static DESIGN: Design = Design {
    name: "recam",
    source: "Kaplan et al., Deduplication in Resistive CAM Based SSD, Sec. IV",
    line: "recam is simulated, by Sec. III-C's cycles at 1 GHz.",
    executed: false,
    energy_from: "energy of a compared bit, a match line and a written bit",
    keys: keys! {
        "capacity_bytes": KeyKind::Bytes, "256G", "Sec. IV", "bytes of data in the array.";
        "row_bits": SOME, "256", "Sec. III-C's example", "data bits of a row.";
        "modules": SOME, "1", "Fig. 2", "modules that work in parallel.";
        "compare": KeyKind::Choice { words: &["continuous", "single"] }, "continuous", "Sec. III-C", "single: no compare deactivates a row.";
        "first": KeyKind::Choice { words: &["rows", "starts"] }, "rows", "*assumed*",
            "starts: the first compare activates block starts alone.";
        "free_row_compare": KeyKind::Flag, "false", "Sec. III-C; Fig. 6 has one", "a write compares for an empty row first.";
        "overwrite": KeyKind::Choice { words: &["deletes", "searches"] }, "deletes", "*assumed*: the paper has no overwrite",
            "searches: an overwrite does so before it deletes.";
        "address_cycles": SOME, "", "Sec. III-C; by width *assumed*", "cycles for each of LBA and PA.", follows();
        "fingerprint_bits": KeyKind::Count { least: 0 }, "0", "none in the paper",
            "bits of a hash in a row of its own, first.";
        "compared_bit_fj": KeyKind::Bracket, "0.1-17", "*assumed*", "femtojoules of a bit compared, or A-B.";
        "match_line_fj": KeyKind::Bracket, "0", "*assumed*", "femtojoules of a match line, or A-B.";
        "written_bit_fj": KeyKind::Bracket, "1000-10000", "*assumed*", "femtojoules of a bit written, or A-B.";
        "endurance_writes": KeyKind::Bracket, "1e6-1e12", "*assumed*", "writes that a row survives, or A-B.";
    },
    assumed: &[
        Assumed {
            parameter: "recam.compared_bit_fj",
            value: "0.1 to 17",
            why: "published CAM cells, a bit and search; the paper prints no energy. `energy_nj` takes \
                  the bracket's geometric middle",
            bears_on: Bears::Energy,
        },
        Assumed {
            parameter: "recam.match_line_fj",
            value: "0",
            why: "the published figures of a bit contain its match line",
            bears_on: Bears::Energy,
        },
        Assumed {
            parameter: "recam.written_bit_fj",
            value: "1000 to 10000",
            why: "1 to 10 pJ a bit of resistive memory",
            bears_on: Bears::Energy,
        },
        Assumed {
            parameter: "recam.endurance_writes",
            value: "1e6 to 1e12",
            why: "from common resistive cells to the best published (M.-J. Lee et al., Nature Materials 2011: \
                  more than 1e12, tantalum oxide)",
            bears_on: Bears::Life,
        },
        Assumed {
            parameter: "recam.address_cycles",
            value: "2 below 512-bit rows, else 1",
            why: "Sec. III-C: 1-2 cycles for each of LBA and PA, depending on the width",
            bears_on: Bears::All,
        },
        Assumed {
            parameter: "recam.overwrite",
            value: "deletes",
            why: "Sec. III-C has a write and a deletion; a content that a block writes again is a duplicate only if \
                  the search comes first. A stream that writes each block once does not turn on it",
            bears_on: Bears::All,
        },
        Assumed {
            parameter: "recam.first",
            value: "rows",
            why: "a search's first compare precharges every row; the paper may mean block starts alone",
            bears_on: Bears::Energy,
        },
    ],
    figures: names! {
        writes duplicate_writes reads stored_blocks bytes cycles elapsed_seconds writes_per_second
        operations_per_second energy_nj energy_nj_low energy_nj_high active_rows search_active_rows
        compared_bits written_bits rows rows_of_a_block slots_used mean_writes_of_a_row most_writes_of_a_row
        years_low years_high years_levelled_low years_levelled_high free_energy_nj free_cycles
        search_energy_nj search_cycles store_energy_nj store_cycles translate_energy_nj translate_cycles
        read_energy_nj read_cycles erase_energy_nj erase_cycles
    },
    check: |keys, job| Ok(keys.read::<Array>().written(job)?.check()?),
    run: |keys, job| {
        let parameters = keys.read::<Array>().written(job)?;
        let endures = keys.read::<Array>().endurance_writes;
        Ok(if job.workload.has_bytes() {
            Box::new(OnArray {
                endures,
                store: Recam::new(parameters, InMemory::default())?,
                put: |store, lba, content| match content {
                    Content::Bytes(bytes) => store.put(lba, bytes),
                    Content::Made(_) => unreachable!("a tree has bytes"),
                },
                into: vec![0; job.block_bytes as usize],
            })
        } else {
            Box::new(OnArray {
                endures,
                store: Recam::new(parameters, Regenerated::default())?,
                put: |store, lba, content| match content {
                    Content::Made(made) => store.put(lba, &made),
                    Content::Bytes(_) => unreachable!("only a tree has bytes"),
                },
                into: vec![0; job.block_bytes as usize],
            })
        })
    },
    store: |keys, room| {
        let parameters = keys.read::<Array>().within(&room);
        Ok(match room.contents {
            Some(contents) => Box::new(Recam::new(parameters, contents)?),
            None => Box::new(Recam::new(parameters, InMemory::default())?),
        })
    },
};

const SOME: KeyKind = KeyKind::Count { least: 1 };

/// The array as it is asked for; see [`Parameters`].
#[derive(Deserialize)]
struct Array {
    capacity_bytes: u64,
    row_bits: u32,
    modules: u32,
    compare: Compare,
    first: First,
    free_row_compare: bool,
    overwrite: Overwrite,
    address_cycles: Option<u32>,
    fingerprint_bits: u32,
    compared_bit_fj: Bracket,
    match_line_fj: Bracket,
    written_bit_fj: Bracket,
    endurance_writes: Bracket,
}

impl Array {
    fn parameters(&self, capacity_bytes: u64, block_bytes: u32) -> Parameters {
        let usual = Parameters::new(capacity_bytes, block_bytes, self.row_bits);
        Parameters {
            modules: self.modules,
            compare: self.compare,
            first: self.first,
            free_row_compare: self.free_row_compare,
            overwrite: self.overwrite,
            address_cycles: self.address_cycles.unwrap_or(usual.address_cycles),
            fingerprint_bits: self.fingerprint_bits,
            energies: Energies {
                compared_bit_fj: self.compared_bit_fj,
                match_line_fj: self.match_line_fj,
                written_bit_fj: self.written_bit_fj,
            },
            ..usual
        }
    }

    fn written(&self, job: &Job<'_>) -> Result<Parameters, RunError> {
        let usual = self.parameters(self.capacity_bytes, job.block_bytes);
        let written = job.bytes_at_most()? / u64::from(job.block_bytes);
        Ok(Parameters {
            logical_blocks: usual.logical_blocks.max(written),
            ..usual
        })
    }

    fn within(&self, room: &Room<'_>) -> Parameters {
        self.parameters(room.capacity_bytes, room.block_bytes)
    }
}

/// The fast model on a workload whose contents are bytes, or made of numbers.
struct OnArray<C: BlockContents> {
    endures: Bracket,
    store: Recam<C>,
    put: fn(&mut Recam<C>, Lba, Content<'_>) -> Result<Outcome, Error>,
    into: Vec<u8>,
}

impl<C: BlockContents> Running for OnArray<C> {
    fn write(&mut self, lba: Lba, content: Content<'_>) -> Result<(), Error> {
        (self.put)(&mut self.store, lba, content).map(drop)
    }

    fn read(&mut self, lba: Lba) -> Result<(), Error> {
        self.store.get(lba, &mut self.into);
        Ok(())
    }

    fn figures(&mut self) -> Result<Map<String, Value>, Error> {
        let store = &self.store;
        let (totals, ledger) = (store.totals(), store.ledger());
        let p = store.parameters();
        let work = ledger.total();
        let seconds = store.elapsed_cycles() as f64 / p.clock_ghz / 1e9;
        let energy = |place| work.energy_fj(&p.energies, place) / 1e6;
        let wear: (u64, u64, u32) = store.wear().fold((0, 0, 0), |(slots, sum, most), wear| {
            (slots + 1, sum + u64::from(wear), most.max(wear))
        });
        // The rates are writes a second of the row that is written most, and of each row if all were written alike.
        let most = rate(wear.2.into(), seconds);
        let levelled = rate(wear.1, seconds) / p.slots() as f64;
        let mut figures = object(json!({
            "writes": totals.writes,
            "duplicate_writes": totals.duplicate_writes,
            "reads": totals.reads,
            "stored_blocks": totals.stored_blocks,
            "bytes": totals.writes * u64::from(p.block_bytes),
            "cycles": totals.cost.cycles,
            "elapsed_seconds": seconds,
            "writes_per_second": rate(totals.writes, seconds),
            "operations_per_second": rate(totals.writes + totals.reads, seconds),
            "energy_nj": energy(Bracket::middle),
            "energy_nj_low": energy(|b| b.low),
            "energy_nj_high": energy(|b| b.high),
            "active_rows": work.active_rows as f64,
            "search_active_rows": ledger.of(Purpose::Search).active_rows as f64,
            "compared_bits": work.compared_bits as f64,
            "written_bits": work.written_bits as f64,
            "rows": p.rows(),
            "rows_of_a_block": p.block_rows(),
            "slots_used": wear.0,
            "mean_writes_of_a_row": rate(wear.1, wear.0 as f64),
            "most_writes_of_a_row": wear.2,
            "years_low": years(self.endures.low, most),
            "years_high": years(self.endures.high, most),
            "years_levelled_low": years(self.endures.low, levelled),
            "years_levelled_high": years(self.endures.high, levelled),
        }));
        for (purpose, name) in Purpose::ALL {
            let work = ledger.of(purpose);
            let energy = work.energy_fj(&p.energies, Bracket::middle) / 1e6;
            figures.insert(format!("{name}_energy_nj"), json!(energy));
            figures.insert(format!("{name}_cycles"), json!(work.cycles));
        }
        Ok(figures)
    }
}
