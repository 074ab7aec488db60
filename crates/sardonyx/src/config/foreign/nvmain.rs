//! NVMain's .config files: `KEY VALUE`, and comments after `;`.

use std::collections::BTreeMap;

use super::super::error::{ConfigError, Result};
use super::{Entries, Foreign, MachineKeys, PlacedValue, order};

const RATE: u64 = 2;
const LINE: u64 = 64;
/// Entries of NVMain's output, and of its own front end.
const SILENT: [&str; 8] = [
    "CPUFreq",
    "DeviceWidth",
    "EnergyModel",
    "INTERCONNECT",
    "MULT_A",
    "MULT_B",
    "PrintGraphs",
    "PrintPreTrace",
];

pub(super) fn read(text: &str, file: &str) -> Result<Foreign> {
    let entries = Entries::new(file, parse(text, file)?);
    let mut keys = MachineKeys::new(&entries);
    let (bus, burst) = (entries.count("BusWidth", 64)?, entries.count("tBURST", 4)?);
    let rate = entries.count("RATE", RATE)?;
    if bus / 8 * burst * rate != LINE {
        let bytes = bus / 8 * burst * rate;
        let problem = format!("a burst moves {bytes} bytes, and lines have {LINE}");
        return entries.fault(
            "BusWidth",
            problem,
            "give BusWidth, tBURST and RATE of 64 bytes",
        );
    }
    timing(&entries, &mut keys)?;
    for (ours, theirs) in [
        ("channels", "CHANNELS"),
        ("ranks", "RANKS"),
        ("banks", "BANKS"),
        ("rows", "ROWS"),
        ("columns", "COLS"), // a column of NVMain's is a burst
    ] {
        let count = entries.count(theirs, 1)?;
        keys.put(&format!("geometry.{ours}"), count, theirs);
    }
    mapping(&entries, &mut keys)?;
    queues(&entries, &mut keys)?;
    Ok(keys.finish("NVMain", "nvmain-a", &SILENT))
}

fn timing(entries: &Entries, keys: &mut MachineKeys) -> Result<()> {
    let mhz = entries.real("CLK")?.filter(|mhz| *mhz > 0.0);
    let Some(mhz) = mhz else {
        return entries.fault(
            "CLK",
            "no clock is given".to_owned(),
            "give the memory's MHz",
        );
    };
    keys.put("timing.clock_ns", format!("{:.6}", 1000.0 / mhz), "CLK");
    let additive = entries.whole("tAL", 0)?;
    keys.put("timing.tCL", additive + entries.whole("tCAS", 10)?, "tCAS");
    keys.put("timing.tCWD", additive + entries.whole("tCWD", 7)?, "tCWD");
    for (name, otherwise) in [
        ("tRCD", 9),
        ("tRP", 9),
        ("tRAS", 24),
        ("tBURST", 4),
        ("tCCD", 4),
        ("tWTR", 5),
        ("tRTP", 5),
        ("tRTRS", 1),
        ("tWR", 10),
        ("tWP", 0),
    ] {
        keys.same(name, name, otherwise)?;
    }
    let (reads, writes) = (entries.whole("tRRDR", 5)?, entries.whole("tRRDW", 5)?);
    if reads != writes {
        let said = format!("tRRDR {reads} and tRRDW {writes} are one tRRD here, the longer");
        keys.notes.push(said);
    }
    keys.put("timing.tRRD", reads.max(writes), "tRRDR");
    let window = entries.whole("RAW", 4)?;
    let said = entries.whole("tRAW", 20)?;
    if window != 4 {
        let note = format!("RAW {window}: a window of activates holds 4 here; tRAW is left out");
        keys.notes.push(note);
    }
    keys.put("timing.tFAW", if window == 4 { said } else { 0 }, "tRAW");
    let refreshes = entries.word("UseRefresh", "false") == "true";
    let (length, interval) = (entries.whole("tRFC", 0)?, entries.whole("tRFI", 0)?);
    // NVMain's tRFI is the time in which all rows are refreshed, in groups of RefreshRows.
    keys.put("timing.tRFC", if refreshes { length } else { 0 }, "tRFC");
    keys.put("timing.tREFI", 0, "tRFI");
    if refreshes {
        let note = format!(
            "refreshes are left out (tRFI {interval}): give --set medium.timing.tREFI=CYCLES"
        );
        keys.notes.push(note);
    }
    Ok(())
}

fn mapping(entries: &Entries, keys: &mut MachineKeys) -> Result<()> {
    const NAME: &str = "AddressMappingScheme";
    const KNOWN: [(&str, &str); 5] = [
        ("CH", "channel"),
        ("RK", "rank"),
        ("BK", "bank"),
        ("R", "row"),
        ("C", "column"),
    ];
    let theirs = entries.word(NAME, "R:RK:BK:CH:C");
    let fields: Vec<&str> = theirs
        .split(':')
        .map(str::trim)
        .filter(|field| *field != "SA")
        .collect();
    let Some((ours, _)) = order(&fields, &KNOWN) else {
        let problem = format!("\"{theirs}\" is not the fields R, RK, BK, CH and C");
        return entries.fault(NAME, problem, "give each once, the most significant first");
    };
    if theirs.split(':').any(|field| field.trim() == "SA") {
        keys.notes.push("subarrays (SA) are left out".to_owned());
    }
    keys.put("mapping", ours, NAME);
    Ok(())
}

fn queues(entries: &Entries, keys: &mut MachineKeys) -> Result<()> {
    let page = match entries.whole("ClosePage", 0)? {
        0 => "open",
        _ => "closed",
    };
    keys.put("queues.page", page, "ClosePage");
    if entries.all.contains_key("StarvationThreshold") {
        let hits = entries.count("StarvationThreshold", 4)?;
        keys.put("queues.starvation", hits, "StarvationThreshold");
    }
    let one = entries.count("QueueSize", 32)?;
    let (reads, writes) = (
        entries.count("ReadQueueSize", one)?,
        entries.count("WriteQueueSize", one)?,
    );
    keys.put("queues.reads", reads, "ReadQueueSize");
    keys.put("queues.writes", writes, "WriteQueueSize");
    let high = entries.count("HighWaterMark", writes)?.min(writes);
    let low = entries.whole("LowWaterMark", writes / 2)?.min(high - 1);
    keys.put("queues.high_watermark", high, "HighWaterMark");
    keys.put("queues.low_watermark", low, "LowWaterMark");
    Ok(())
}

fn parse(text: &str, file: &str) -> Result<BTreeMap<String, PlacedValue>> {
    let mut all = BTreeMap::new();
    for (number, line) in text.lines().enumerate() {
        let line = line.split(';').next().unwrap_or_default().trim();
        let mut words = line.split_whitespace();
        let (Some(name), Some(value)) = (words.next(), words.next()) else {
            continue; // NVMain takes a key without a value for one that is not there
        };
        let entry = PlacedValue {
            text: value.to_owned(),
            line: number + 1,
        };
        all.insert(name.to_owned(), entry);
    }
    if !all.contains_key("BANKS") || !all.contains_key("ROWS") {
        let remedy = "an NVMain configuration has CLK, BANKS, ROWS, COLS and timings";
        return Err(ConfigError::file(file, "says nothing of a memory", remedy));
    }
    Ok(all)
}
