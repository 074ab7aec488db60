//! Timings of Ramulator's machines: in cycles or nanoseconds, by the file, its presets or the standards' tables.

use super::standards::{STANDARDS, Standard};
use super::{Entries, MachineKeys, Shape};
use crate::config::error::Result;

/// Converts nanoseconds to cycles, rounded as the standards say (JESD79-4's and JESD79-5's corrections).
fn cycles(ns: f64, clock_ps: u64, standard: &Standard) -> u64 {
    let ps = (ns * 1000.0) as u64;
    match standard.name {
        "DDR5" => (ps * 997 / clock_ps + 1000) / 1000,
        _ => (ps * 1000 / clock_ps + 974) / 1000,
    }
}

struct Timings<'e, 'f> {
    entries: &'e Entries<'f>,
    standard: &'static str,
    clock_ps: u64,
    rate: u64,
    dq: u64,
    density: u64,
}

impl Timings<'_, '_> {
    /// The timing that the file gives in cycles or, as `tNAME`, in nanoseconds; else the standard's for such a part.
    fn of(&self, name: &str) -> Result<Option<u64>> {
        let in_ns = format!("timing.t{}", &name[1..]);
        if let Some(ns) = self.entries.real(&in_ns)? {
            self.entries.find(&format!("timing.{name}")); // a preset's, which this replaces
            let standard = STANDARDS.iter().find(|each| each.name == self.standard);
            return Ok(standard.map(|standard| cycles(ns, self.clock_ps, standard)));
        }
        let name = format!("timing.{name}");
        if self.entries.all.contains_key(&name) {
            return self.entries.whole(&name, 0).map(Some);
        }
        Ok(None)
    }

    /// The cycles by which a burst in a bank group of LPDDR, which has gaps, is over later than others.
    fn gaps(&self) -> Result<u64> {
        let least = self.of("nBL_min")?.or(self.of("nBL")?);
        let over = self.of("nBL_max")?.or(least);
        Ok(over.unwrap_or(0).saturating_sub(least.unwrap_or(0)))
    }

    fn needed(&self, names: &[&str]) -> Result<(u64, String)> {
        self.longer(names, 0)
    }

    /// The first of these timings that is known, so many of the file's cycles longer.
    fn longer(&self, names: &[&str], by: i64) -> Result<(u64, String)> {
        for name in names {
            if let Some(cycles) = self.of(name)?.or_else(|| self.by_table(name)) {
                return Ok((cycles.saturating_add_signed(by), format!("timing.{name}")));
            }
        }
        let problem = format!("no timing {} is given", names[0]);
        self.entries
            .fault("timing.preset", problem, "add it to timing, in cycles")
    }

    /// Looks a timing up in JEDEC's tables by the part's width, its density and the data rate.
    fn by_table(&self, name: &str) -> Option<u64> {
        let wide = usize::from(self.dq > 8);
        let of_rate = |rates: &[u64], table: &[u64]| {
            let at = rates.iter().position(|rate| *rate == self.rate)?;
            table.get(at).copied()
        };
        let ddr3 = [800, 1066, 1333, 1600, 1866, 2133];
        let ddr4 = [1600, 1866, 2133, 2400, 2666, 2933, 3200];
        let ns = |densities: &[u64], table: &[f64]| {
            let at = densities
                .iter()
                .position(|density| *density == self.density)?;
            let standard = STANDARDS.iter().find(|each| each.name == self.standard)?;
            Some(cycles(table[at], self.clock_ps, standard))
        };
        match (self.standard, name) {
            ("DDR3", "nRRD") => of_rate(&ddr3, &[[4, 4, 4, 5, 5, 6], [4, 6, 5, 6, 6, 7]][wide]),
            ("DDR3", "nFAW") => of_rate(
                &ddr3,
                &[[16, 20, 20, 24, 26, 27], [20, 27, 30, 32, 33, 34]][wide],
            ),
            ("GDDR7", "nFAW") => Some(0), // it has none
            ("DDR3", "nRFC") => ns(&[1024, 2048, 4096, 8192], &[110.0, 160.0, 260.0, 350.0]),
            ("DDR4", "nRRDS") => of_rate(&ddr4, &[[4; 7], [5, 5, 6, 7, 8, 8, 9]][wide]),
            ("DDR4", "nRRDL") => of_rate(
                &ddr4,
                &[[5, 5, 6, 6, 7, 8, 8], [6, 6, 7, 8, 9, 10, 11]][wide],
            ),
            ("DDR4", "nFAW") if self.dq <= 4 => Some(16),
            ("DDR4", "nFAW") => of_rate(
                &ddr4,
                &[[20, 22, 23, 26, 28, 31, 34], [28, 28, 32, 36, 40, 44, 48]][wide],
            ),
            ("DDR4", "nRFC") => ns(&[2048, 4096, 8192, 16384], &[160.0, 260.0, 360.0, 550.0]),
            ("DDR5", "nRRDL") => Some(5),
            ("DDR5", "nFAW") => Some(if self.dq <= 4 { 40 } else { 32 }),
            ("DDR5", "nRFC") => ns(&[8192, 16384, 32768], &[195.0, 295.0, 410.0]),
            ("DDR5", "nREFI") => ns(&[self.density], &[3900.0]),
            ("DDR3" | "DDR4", "nREFI") => ns(&[self.density], &[7800.0]),
            (_, "nCS") => Some(0), // one rank: nothing to switch
            _ => None,
        }
    }
}

pub(super) fn read(
    standard: &Standard,
    entries: &Entries,
    keys: &mut MachineKeys,
    shape: &Shape,
) -> Result<()> {
    let rate = entries.whole("timing.rate", 0)?;
    let clock_ps = match entries.whole("timing.tCK_ps", 0)? {
        0 if rate > 1 => 1_000_000 / (rate / 2),
        0 => return entries.fault("timing.rate", "no rate is given".to_owned(), "give MT/s"),
        clock => clock,
    };
    keys.put("timing.clock_ns", clock_ps as f64 / 1000.0, "timing.rate");
    let timings = Timings {
        entries,
        standard: standard.name,
        clock_ps,
        rate,
        dq: entries.count("org.dq", 8)?,
        density: entries.whole("org.density", 0)?,
    };
    let bursts = shape.bursts;
    let (burst, from) = timings.needed(&["nBL", "nBL_min"])?;
    keys.put("timing.tBURST", burst * bursts, &from);
    // A command takes effect when it has been sent, which takes several cycles of some.
    let [activate, precharge, column] = shape.cycles.map(|cycles| cycles as i64);
    let written = match standard.name {
        "LPDDR6" => timings.gaps()? as i64,
        _ => 0,
    };
    for (ours, theirs, by) in [
        ("tCL", &["nCL", "nRL"] as &[&str], 0),
        ("tCWD", &["nCWL", "nWL"], 0),
        ("tRP", &["nRP"], precharge - activate),
        ("tRAS", &["nRAS"], activate - precharge),
        ("tRRD", &["nRRDS", "nRRD"], 0),
        ("tFAW", &["nFAW"], 0),
        ("tWTR", &["nWTRS", "nWTR"], 0),
        ("tWR", &["nWR", "nWTP"], column - precharge + written),
        ("tRTRS", &["nCS"], 0),
    ] {
        let (cycles, from) = timings.longer(theirs, by)?;
        keys.put(&format!("timing.{ours}"), cycles, &from);
    }
    if let Some(cycles) = timings.of("nRC")? {
        let sum = timings.needed(&["nRAS"])?.0 + timings.needed(&["nRP"])?.0;
        keys.put(
            "timing.tRC",
            if cycles > sum { cycles } else { 0 },
            "timing.nRC",
        );
    }
    columns(&timings, keys, shape)?;
    refreshes(&timings, keys, shape)?;
    for none in ["timing.tWP", "timing.off_chip"] {
        keys.put(none, 0, "timing.preset");
    }
    Ok(())
}

/// The distances of column commands, and of those that open and close rows from them.
fn columns(timings: &Timings, keys: &mut MachineKeys, shape: &Shape) -> Result<()> {
    let [activate, precharge, column] = shape.cycles.map(|cycles| cycles as i64);
    let bursts = shape.bursts;
    let (burst, _) = timings.needed(&["nBL", "nBL_min"])?;
    turns(timings, keys)?;
    let (distance, from) = timings.needed(&["nCCDS", "nCCD"])?;
    keys.put("timing.tCCD", distance * bursts, &from);
    // Here a precharge waits from the read's column slot on, there from its command.
    let (to_precharge, from) = timings.longer(&["nRTP", "nRTPSB"], column - precharge)?;
    let slot = (distance + to_precharge).saturating_sub(burst);
    keys.put("timing.tRTP", slot, &from);
    within_groups(timings, keys, bursts)?;
    if shape.stacks > 1 {
        let (distance, from) = timings.needed(&["nCCDR", "nCCDS"])?;
        keys.put("timing.tCCDR", distance, &from);
    }
    let (read, from) = timings.longer(&["nRCD", "nRCDRD", "nRCDr"], activate - column)?;
    keys.put("timing.tRCD", read, &from);
    for name in ["nRCDWR", "nRCDw"] {
        if timings.of(name)?.is_some() {
            let (write, from) = timings.longer(&[name], activate - column)?;
            keys.put("timing.tRCDWR", write, &from);
        }
    }
    Ok(())
}

/// The distances of commands that some standards have: the longer ones in a bank group, and those of precharges.
fn within_groups(timings: &Timings, keys: &mut MachineKeys, bursts: u64) -> Result<()> {
    for (ours, theirs, times) in [
        ("tCCD_L", "nCCDL", bursts),
        ("tCCD_L_WR", "nCCDL_WR", bursts),
        ("tRRD_L", "nRRDL", 1),
        ("tWTR_L", "nWTRL", 1),
        ("tPPD", "nPPD", 1),
        // GDDR7's banks are groups of one.
        ("tCCD_L", "nCCDSB", bursts),
        ("tWTR_L", "nWTRSB", 1),
    ] {
        if timings
            .of(theirs)?
            .or_else(|| timings.by_table(theirs))
            .is_some()
        {
            let (mut cycles, from) = timings.needed(&[theirs])?;
            if theirs.starts_with("nWTR") {
                cycles += timings.gaps()?;
            }
            keys.put(&format!("timing.{ours}"), cycles * times, &from);
        }
    }
    Ok(())
}

/// The way of GDDR7's data, and the time from a read to a write, for which Ramulator has a formula where no file says it.
fn turns(timings: &Timings, keys: &mut MachineKeys) -> Result<()> {
    if let Some(sent) = timings.of("nDQERL")? {
        let (latency, from) = timings.needed(&["nRL"])?;
        keys.put("timing.tCL", 1 + latency + sent, &from);
    }
    for name in ["nRTW", "nRTW_S"] {
        if timings.of(name)?.is_some() {
            let (turn, from) = timings.needed(&[name])?;
            keys.put("timing.tRTW", turn, &from);
            return Ok(());
        }
    }
    let (read, from) = timings.needed(&["nCL", "nRL"])?;
    let (write, _) = timings.needed(&["nCWL", "nWL"])?;
    let (burst, _) = timings.needed(&["nBL", "nBL_min"])?;
    let turn = match timings.standard {
        "GDDR6" => read + 1,
        "DDR5" => (read + burst + 4).saturating_sub(write),
        _ => (read + burst + 2).saturating_sub(write),
    };
    keys.put("timing.tRTW", turn, &from);
    Ok(())
}

/// Sets refreshes: of whole ranks or of one bank at a time, each nREFIpb the next of all.
fn refreshes(timings: &Timings, keys: &mut MachineKeys, shape: &Shape) -> Result<()> {
    const MANAGER: &str = "refreshmanager.impl";
    let entries = timings.entries;
    let manager = entries.word(MANAGER, "AllBank");
    let (ranks, banks) = (shape.ranks, shape.banks);
    let mut turns = "together";
    let mut every = timings.needed(&["nREFI"])?;
    match manager.as_str() {
        "NoRefresh" | "No" => every.0 = 0,
        "AllBank" => {
            let apart = entries.whole("refreshmanager.scatterinterval", 0)?;
            if apart > 0 {
                turns = "in-turn";
            }
            if apart > 0 && apart * ranks != every.0 {
                keys.notes.push(format!(
                    "scatter_interval {apart}: refreshes of {ranks} ranks are nREFI / {ranks} apart here"
                ));
            }
        }
        "PerBank" | "HBM34PerBankRefresh" => {
            let (next, from) = timings.needed(&["nREFIpb"])?;
            // The one goes through both pseudo-channels' banks, the other refreshes one of each.
            let at_once = shape.halves && manager != "PerBank";
            turns = if at_once { "together" } else { "in-turn" };
            every = (next * banks * if at_once { 1 } else { ranks }, from);
            keys.put("refresh.banks", 1, MANAGER);
            for (ours, theirs) in [
                ("tRFCsb", ["nRFCpb"; 2]),
                ("tREFSBRD", ["nPBR2ACT", "nRREFD"]),
                ("tRREFD", ["nPBR2PBR", "nRREFD"]),
            ] {
                let (cycles, from) = timings.needed(&theirs)?;
                keys.put(&format!("timing.{ours}"), cycles, &from);
            }
        }
        other => {
            let said = format!("refreshes of {other} are those of all banks of a rank here");
            keys.notes.push(said);
        }
    }
    keys.put("refresh.ranks", turns, MANAGER);
    let [activate, precharge, _] = shape.cycles.map(|cycles| cycles as i64);
    let (length, from) = timings.longer(&["nRFC", "nRFCab"], precharge - activate)?;
    keys.put("timing.tRFC", if every.0 > 0 { length } else { 0 }, &from);
    keys.put("timing.tREFI", every.0, &every.1);
    Ok(())
}
