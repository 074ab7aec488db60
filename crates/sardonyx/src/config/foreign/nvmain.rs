//! NVMain's .config files: `KEY VALUE`, and comments after `;`.

use std::collections::BTreeMap;

use std::path::Path;

use super::super::error::{ConfigError, Result};
use super::super::presets;
use super::{Currents, Entries, Foreign, MachineKeys, PlacedValue, order};

const RATE: u64 = 2;
const LINE: u64 = 64;
/// Bytes of a tag that lies in the row beside its line.
const TAG: u64 = 8;
/// Entries that change no figure: of NVMain's output, of traces and its own front end, of power-down, which is not
/// modelled and whose energies it does not count by default, of data that it has and we have ourselves, and those that
/// its own files have and it does not read.
const WITHOUT_EFFECT: &[&str] = &[
    "AddHook",
    "CPUFreq",
    "CTL_DUMP",
    "DataEncoder",
    "DeadlockTimer",
    "DebugClasses",
    "DebugLog",
    "DeviceWidth",
    "EIDD*",
    "Eactstdby",
    "EchoPreTrace",
    "EchoPostTrace",
    "Eclosed",
    "Eleak",
    "EnableDebug",
    "EnduranceDist*",
    "EnduranceModel",
    "Eopen",
    "Eopenrd",
    "Epda",
    "Epdpf",
    "Epdps",
    "Eprestdby",
    "Erd",
    "Eref",
    "Ewr",
    "Ewrpb",
    "FlipNWriteGranularity",
    "IgnoreBits",
    "IgnoreData",
    "IgnoreTraceCycle",
    "InitPD",
    "MULT_A",
    "MULT_B",
    "OffChipLatency", // of an OnChipBus
    "PeriodicStatsInterval",
    "PostTrace*",
    "PowerDownMode",
    "PreTraceFile",
    "PreTraceWriter",
    "PrintAllDevices",
    "PrintConfig",
    "PrintGraphs",
    "PrintPreTrace",
    "RBsize", // RBSize has another letter
    "RanksPerDIMM",
    "Rtt_*",
    "ScheduleScheme",
    "StaggerRefresh", // which it always does
    "StatsFile",
    "TraceReader",
    "UseLowPower",
    "VDDQ",
    "VSSQ",
    "Voltage",
    "tFAW", // NVMain's window is tRAW
    "tOST",
    "tPD",
    "tRDB",
    "tRDPDEN",
    "tWRAPDEN",
    "tWRPDEN",
    "tX*",
];
const LEFT_OUT: &[(&str, &str)] = &[
    ("BankType", "banks of the usual kind"),
    ("CHANNELS", "a cache has DRC_CHANNELS"),
    (
        "FillQueueSize",
        "lines that are brought share the queue of writes",
    ),
    ("PerfectFills", "bringing a line takes its time"),
    (
        "UseFillCache",
        "lines that are brought share the queue of writes",
    ),
    ("CachedRow*", "no cached rows"),
    ("DelayedRefreshThreshold", "refreshes are not put off"),
    ("DeviceConfig", "one kind of device"),
    ("Ereset", CELLS),
    ("Eset", CELLS),
    (
        "FRFCFS_StarvationThreshold",
        "NVMain does not read it: StarvationThreshold",
    ),
    (
        "MATHeight",
        "a bank has one row buffer, not one for each subarray",
    ),
    (
        "MATWidth",
        "a bank has one row buffer, not one for each subarray",
    ),
    ("MLCLevels", CELLS),
    ("MemoryPrefetcher", "nothing is prefetched"),
    ("PrefetchBufferSize", "nothing is prefetched"),
    ("ProgramMode", CELLS),
    ("QueueModel", "the usual queues"),
    ("RankType", "ranks of the usual kind"),
    ("MaxCancellations", PAUSING),
    ("Pause*", PAUSING),
    ("RBSize", "a row buffer holds a whole row"),
    (
        "SALP",
        "a bank has one row buffer, not one for each subarray",
    ),
    ("UniformWrites", CELLS),
    ("UsePrecharge", "refreshes close rows"),
    ("WPMaxVariance", CELLS),
    ("WPVariance", CELLS),
    ("WriteAllBits", CELLS),
    ("WriteMode", "a write goes to its array at once"),
    ("WritePausing", PAUSING),
    ("nWP*", CELLS),
    ("tCMD", "a command takes a cycle of the bus"),
    ("tRFI", "NVMain reads tREFW"),
    ("tWP0", CELLS),
    ("tWP1", CELLS),
];
/// Controllers whose own queues are one memory's. Others put a cache, or nothing, before it.
const CONTROLLERS: [&str; 3] = ["FRFCFS", "FRFCFS-WQF", "FCFS"];
const PAUSING: &str = "no read interrupts a write: medium.pausing does that";
const CELLS: &str = "each write takes tWP: medium.cells programs cells one by one";

pub(super) fn read(text: &str, file: &str) -> Result<Foreign> {
    let entries = Entries::new(file, parse(text, file)?);
    if let Some(name) = entries
        .all
        .keys()
        .find(|name| name.starts_with("CONFIG_CHANNEL"))
    {
        let other = &entries.all[name].text;
        return entries.fault(
            name,
            format!("the channel's timings are in {other}, and channels that differ are not read"),
            "give the file of one channel",
        );
    }
    let controller = entries.word("MEM_CTL", "FRFCFS");
    if controller == "DRC" {
        return cached(&entries);
    }
    if !CONTROLLERS.contains(&controller.as_str()) {
        let problem =
            format!("{controller} is no memory's own controller, and what it does is not modelled");
        return entries.fault("MEM_CTL", problem, "give FRFCFS, FRFCFS-WQF or FCFS");
    }
    let decoder = entries.word("Decoder", "Default");
    if !["Default", "AddressTranslator"].contains(&decoder.as_str()) {
        let problem = format!("{decoder} moves data between memories, which is not modelled");
        return entries.fault("Decoder", problem, "take it out");
    }
    let keys = medium(&entries, "CHANNELS", "QueueSize", &controller)?;
    keys.finish("NVMain", "nvmain-a", WITHOUT_EFFECT, LEFT_OUT)
}

/// A cache before the memory of another file, as `LO_Cache` has it: direct mapped, a tag of eight bytes in the row beside
/// each line; a write replaces what its line finds, without a look.
fn cached(entries: &Entries) -> Result<Foreign> {
    let variant = entries.word("DRCVariant", "");
    if variant != "LO_Cache" {
        let problem = format!("\"{variant}\" is no cache that is modelled");
        return entries.fault("DRCVariant", problem, "give LO_Cache");
    }
    let other = entries.word("MM_CONFIG", "");
    let path = Path::new(entries.file).with_file_name(&other);
    let path = path.to_string_lossy();
    if other.is_empty() {
        let problem = "the file of the memory behind the cache is not named".to_owned();
        return entries.fault("MM_CONFIG", problem, "name it, beside this one");
    }
    let text = presets::read_file(&path)?;
    // Two files may name each other.
    if Entries::new(&path, parse(&text, &path)?).word("MEM_CTL", "FRFCFS") == "DRC" {
        let problem = format!("{other} has a cache itself");
        return entries.fault("MM_CONFIG", problem, "name a memory without one");
    }
    let memory = read(&text, &path)?;
    entries.word("Decoder", "DRCDecoder");
    let mut keys = medium(entries, "DRC_CHANNELS", "DRCQueueSize", "FRFCFS")?;
    let count = |name| entries.count(name, 1);
    let slots = count("COLS")? * LINE / (LINE + TAG);
    let rows = ["DRC_CHANNELS", "RANKS", "BANKS", "ROWS"].map(count);
    let lines = rows
        .into_iter()
        .try_fold(slots, |lines, of| Ok(lines * of?))?;
    keys.notes.push(format!(
        "a row of the cache holds {slots} lines and their tags"
    ));
    let place = entries.place(1);
    let own = [
        ("near.form", "cache".to_owned()),
        ("near.lines", lines.to_string()),
        ("near.fills_on_write", "false".to_owned()),
        ("near.looks_before_write", "false".to_owned()),
    ];
    let own = own.map(|(key, value)| (key.to_owned(), value, place.clone()));
    let near = keys.finish("NVMain", "nvmain-a", WITHOUT_EFFECT, LEFT_OUT)?;
    let of_near = near.keys.into_iter();
    let of_near = of_near.map(|(key, value, place)| (format!("near.{key}"), value, place));
    Ok(Foreign {
        near: Some(near.base),
        keys: memory.keys.into_iter().chain(of_near).chain(own).collect(),
        notes: [
            near.notes,
            memory
                .notes
                .into_iter()
                .map(|note| format!("{other}: {note}"))
                .collect(),
        ]
        .concat(),
        ..memory
    })
}

/// The keys of one medium.
fn medium<'e, 'f>(
    entries: &'e Entries<'f>,
    channels: &str,
    queue: &str,
    controller: &str,
) -> Result<MachineKeys<'e, 'f>> {
    let mut keys = MachineKeys::new(entries);
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
    timing(entries, &mut keys)?;
    for (ours, theirs) in [
        ("channels", channels),
        ("ranks", "RANKS"),
        ("banks", "BANKS"),
        ("rows", "ROWS"),
        ("columns", "COLS"), // a column of NVMain's is a burst
    ] {
        let count = entries.count(theirs, 1)?;
        keys.put(&format!("geometry.{ours}"), count, theirs);
    }
    mapping(entries, &mut keys)?;
    queues(entries, &mut keys, controller, queue)?;
    energies(entries, &mut keys)?;
    Ok(keys)
}

/// The memory's clock in MHz.
fn clock(entries: &Entries) -> Result<f64> {
    let mhz = entries.real("CLK")?.filter(|mhz| *mhz > 0.0);
    let missing = || {
        let problem = "no clock is given".to_owned();
        entries.fault("CLK", problem, "give the memory's MHz")
    };
    mhz.map_or_else(missing, Ok)
}

/// A timing in cycles, or with a unit: `13.125ns`, `64ms`. Parts of a cycle are a whole one.
fn cycles(entries: &Entries, name: &str, otherwise: u64) -> Result<u64> {
    const UNITS: [(&str, f64); 3] = [("ns", 1e-3), ("us", 1.0), ("ms", 1e3)];
    let text = entries.word(name, "");
    let unit = UNITS
        .iter()
        .find_map(|(unit, in_us)| Some((text.strip_suffix(unit)?, in_us)));
    let Some((number, in_us)) = unit else {
        return entries.whole(name, otherwise);
    };
    match number.trim().parse::<f64>() {
        Ok(number) if (0.0..=1e12).contains(&number) => {
            Ok((number * in_us * clock(entries)?).ceil() as u64)
        }
        _ => {
            let problem = format!("\"{text}\" is not a number of ns, us or ms");
            entries.fault(name, problem, "give one, or cycles")
        }
    }
}

fn timing(entries: &Entries, keys: &mut MachineKeys) -> Result<()> {
    let clock_ns = 1000.0 / clock(entries)?;
    keys.put("timing.clock_ns", format!("{clock_ns:.6}"), "CLK");
    let cycles = |name: &str, otherwise| cycles(entries, name, otherwise);
    let additive = cycles("tAL", 0)?;
    keys.put("timing.tCL", additive + cycles("tCAS", 10)?, "tCAS");
    keys.put("timing.tCWD", additive + cycles("tCWD", 7)?, "tCWD");
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
        ("tPPD", 0),
    ] {
        keys.put(&format!("timing.{name}"), cycles(name, otherwise)?, name);
    }
    let (reads, writes) = (cycles("tRRDR", 5)?, cycles("tRRDW", 5)?);
    if reads != writes {
        let said = format!("tRRDR {reads} and tRRDW {writes} are one tRRD here, the longer");
        keys.notes.push(said);
    }
    keys.put("timing.tRRD", reads.max(writes), "tRRDR");
    let window = entries.whole("RAW", 4)?;
    let said = cycles("tRAW", 20)?;
    if window != 4 {
        let note = format!("RAW {window}: a window of activates holds 4 here; tRAW is left out");
        keys.notes.push(note);
    }
    keys.put("timing.tFAW", if window == 4 { said } else { 0 }, "tRAW");
    let refreshes = entries.word("UseRefresh", "true") == "true";
    let length = cycles("tRFC", 107)?;
    // All rows are refreshed in tREFW, so many of a bank at once.
    let (window, rows) = (
        cycles("tREFW", 42_666_667)?,
        entries.count("RefreshRows", 4)?,
    );
    let interval = window / (entries.count("ROWS", 65_536)? / rows).max(1);
    let banks = entries.count("BANKS", 1)?;
    let together = entries.count("BanksPerRefresh", banks)?;
    if refreshes && together < banks {
        keys.put("refresh.banks", together, "BanksPerRefresh");
        keys.put("timing.tRFCsb", length, "tRFC");
        keys.put("timing.tRREFD", 1, "tRFC");
    }
    for (key, cycles, from) in [("tRFC", length, "tRFC"), ("tREFI", interval, "tREFW")] {
        keys.put(
            &format!("timing.{key}"),
            if refreshes { cycles } else { 0 },
            from,
        );
    }
    let off_chip = match entries.word("INTERCONNECT", "OffChipBus").as_str() {
        "OffChipBus" => entries.whole("OffChipLatency", 10)?,
        _ => 0,
    };
    keys.put("timing.off_chip", off_chip, "OffChipLatency");
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
    let Some(ours) = order(&fields, &KNOWN) else {
        let problem = format!("\"{theirs}\" is not the fields R, RK, BK, CH and C");
        return entries.fault(NAME, problem, "give each once, the most significant first");
    };
    if theirs.split(':').any(|field| field.trim() == "SA") {
        keys.notes.push("subarrays (SA) are left out".to_owned());
    }
    keys.put("mapping", ours, NAME);
    Ok(())
}

fn queues(entries: &Entries, keys: &mut MachineKeys, controller: &str, size: &str) -> Result<()> {
    let page = match entries.whole("ClosePage", 1)? {
        0 => "open",
        _ => "closed",
    };
    keys.put("queues.page", page, "ClosePage");
    if controller == "FCFS" {
        keys.put("queues.scheduler", "fcfs", "MEM_CTL");
    } else {
        keys.put("queues.scheduler", "fr-fcfs-cap", "MEM_CTL");
        let hits = entries.count("StarvationThreshold", 4)?;
        keys.put("queues.starvation", hits, "StarvationThreshold");
    }
    let one = entries.count(size, 32)?;
    let (reads, writes, low) = match controller {
        "FRFCFS-WQF" => (
            entries.count("ReadQueueSize", 32)?,
            entries.count("WriteQueueSize", 8)?,
            0,
        ),
        _ => {
            let note = format!(
                "MEM_CTL {controller}: reads and writes have a queue each here, of QueueSize"
            );
            keys.notes.push(note);
            (
                entries.count("ReadQueueSize", one)?,
                entries.count("WriteQueueSize", one)?,
                one / 2,
            )
        }
    };
    keys.put("queues.reads", reads, "ReadQueueSize");
    keys.put("queues.writes", writes, "WriteQueueSize");
    let high = entries.count("HighWaterMark", writes)?.min(writes);
    let low = entries.whole("LowWaterMark", low)?.min(high - 1);
    keys.put("queues.high_watermark", high, "HighWaterMark");
    keys.put("queues.low_watermark", low, "LowWaterMark");
    Ok(())
}

/// Takes the energies of an access from the file, or computes them from its currents (NVMain's default). NVMain divides
/// a current's share by the banks, which Micron's calculator does not. Its own values, where the file has none, are of
/// another memory.
fn energies(entries: &Entries, keys: &mut MachineKeys) -> Result<()> {
    const CURRENTS: [&str; 6] = ["EIDD0", "EIDD2N", "EIDD3N", "EIDD4R", "EIDD4W", "EIDD5B"];
    if entries.word("EnergyModel", "current") == "current" {
        let [a, b, c, d, e, f] = CURRENTS;
        let [milliamperes @ .., volts] = match entries.reals([a, b, c, d, e, f, "Voltage"])? {
            Ok(numbers) => numbers,
            Err(lacks) => {
                keys.no_energies(&lacks);
                return Ok(());
            }
        };
        let (bus, width) = (
            entries.count("BusWidth", 64)?,
            entries.count("DeviceWidth", 8)?,
        );
        let part = Currents {
            milliamperes,
            volts,
            devices: bus.div_ceil(width) as f64,
            clock_ns: 1000.0 / clock(entries)?,
            ras: cycles(entries, "tRAS", 24)?,
            rp: cycles(entries, "tRP", 9)?,
            rfc: cycles(entries, "tRFC", 107)?,
            burst: cycles(entries, "tBURST", 4)?,
        };
        keys.currents(&part, CURRENTS);
        return Ok(());
    }
    let [opening, read, write] = match entries.reals(["Erd", "Eopenrd", "Ewr"])? {
        Ok(numbers) => numbers,
        Err(lacks) => {
            keys.no_energies(&lacks);
            return Ok(());
        }
    };
    let refresh = entries.real("Eref")?.unwrap_or(0.0) * entries.count("BANKS", 1)? as f64;
    for name in ["Eprestdby", "Eactstdby"] {
        if !entries.all.contains_key(name) {
            let note = format!("standby is not counted where the file has no {name}");
            keys.notes.push(note);
        }
    }
    let clock = clock(entries)?;
    let each_us = |name: &str| Ok::<f64, ConfigError>(entries.real(name)?.unwrap_or(0.0) * clock);
    for (key, value, from) in [
        ("read_nj", opening + read, "Erd"),
        ("row_hit_read_nj", read, "Eopenrd"),
        ("write_nj", opening + write, "Ewr"),
        ("row_hit_write_nj", write, "Ewr"),
        ("refresh_nj", refresh, "Eref"),
        ("standby_nj_per_us", each_us("Eprestdby")?, "Eprestdby"),
        ("active_nj_per_us", each_us("Eactstdby")?, "Eactstdby"),
    ] {
        let value = (value * 1e6).round() / 1e6;
        keys.put(&format!("energy.{key}"), value, from);
    }
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
