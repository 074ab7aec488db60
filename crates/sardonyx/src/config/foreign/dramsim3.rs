//! DRAMsim3's .ini files. The defaults are those of its own `configuration.cc`.

use std::collections::BTreeMap;

use super::super::error::{ConfigError, Result};
use super::{Entries, Foreign, MachineKeys, PlacedValue, order};

const LINE: u64 = 64;
/// Entries that the C library's interface reads itself begin like this.
const OURS: &str = "sardonyx.";
/// Protocols that begin like this have bank groups.
const GROUPED: [&str; 7] = ["DDR4", "DDR5", "GDDR5", "GDDR5X", "GDDR6", "HBM", "HBM2"];
/// Entries that concern DRAMsim3's output and models that no figure here has.
const SILENT: [&str; 4] = [
    "other.epoch_period",
    "other.output_level",
    "other.output_prefix",
    "dram_structure.device_width",
];

pub(super) fn read(text: &str, file: &str) -> Result<Foreign> {
    let entries = Entries::new(file, parse(text, file)?);
    let protocol = entries.word("dram_structure.protocol", "DDR3");
    let groups = entries.count("dram_structure.bankgroups", 2)?;
    let grouped = GROUPED.contains(&protocol.as_str()) && groups > 1;
    if protocol == "HMC" {
        let problem = "a Hybrid Memory Cube has links and vaults of its own".to_owned();
        return entries.fault(
            "dram_structure.protocol",
            problem,
            "give another protocol's file",
        );
    }
    let mut keys = MachineKeys::new(&entries);
    let bl = entries.count("dram_structure.BL", 8)?;
    let bus = entries.count("system.bus_width", 64)?;
    let bytes = bl * bus / 8;
    if bytes == 0 || !LINE.is_multiple_of(bytes) {
        let problem = format!(
            "BL {bl} on {bus} bits moves {bytes} bytes, and {LINE} are no multiple of that"
        );
        return entries.fault(
            "dram_structure.BL",
            problem,
            "give BL x bus_width of 512 bits, or a part of it",
        );
    }
    // A line of ours is several of its transactions, one after the other.
    let bursts = LINE / bytes;
    if bursts > 1 {
        keys.notes.push(format!(
            "a line of {LINE} bytes is {bursts} of its transactions, one after the other"
        ));
    }
    timing(&entries, &mut keys, (bl, bursts), grouped)?;
    geometry(&entries, &mut keys, (bl, bus, bursts), grouped)?;
    queues(&entries, &mut keys)?;
    power(&entries, &mut keys, (bl, bus, bursts))?;
    Ok(keys.finish("DRAMsim3", "ddr4-2400", &SILENT))
}

fn timing(
    entries: &Entries,
    keys: &mut MachineKeys,
    (bl, bursts): (u64, u64),
    grouped: bool,
) -> Result<()> {
    let clock = entries.real("timing.tCK")?.unwrap_or(1.0);
    keys.put("timing.clock_ns", clock, "timing.tCK");
    let additive = entries.whole("timing.AL", 0)?;
    keys.put(
        "timing.tCL",
        additive + entries.whole("timing.CL", 12)?,
        "timing.CL",
    );
    keys.put(
        "timing.tCWD",
        additive + entries.whole("timing.CWL", 12)?,
        "timing.CWL",
    );
    keys.put(
        "timing.tBURST",
        (bl / 2).max(1) * bursts,
        "dram_structure.BL",
    );
    for (ours, short, long, otherwise) in [
        ("tCCD", "tCCD_S", "tCCD_L", 4),
        ("tRRD", "tRRD_S", "tRRD_L", 4),
        ("tWTR", "tWTR_S", "tWTR_L", 5),
    ] {
        let times = if ours == "tCCD" { bursts } else { 1 };
        let from = |name: &str| format!("timing.{name}");
        let of_any = from(if grouped { short } else { long });
        let cycles = entries.whole(&of_any, otherwise)?;
        keys.put(&from(ours), cycles * times, &of_any);
        if grouped {
            let cycles = entries.whole(&from(long), otherwise)?;
            keys.put(&from(&format!("{ours}_L")), cycles * times, &from(long));
        }
    }
    for (name, otherwise) in [
        ("tRP", 10),
        ("tRAS", 24),
        ("tRTP", 5),
        ("tRTRS", 2),
        ("tFAW", 50),
        ("tWR", 10),
        ("tRFC", 74),
        ("tREFI", 7800),
    ] {
        keys.same(name, &format!("timing.{name}"), otherwise)?;
    }
    let (read, write) = match entries.all.contains_key("timing.tRCDRD") {
        true => ("timing.tRCDRD", "timing.tRCDWR"),
        false => ("timing.tRCD", "timing.tRCD"),
    };
    let (read, write) = (entries.whole(read, 10)?, entries.whole(write, 10)?);
    if read != write {
        let said = format!("tRCDRD {read} and tRCDWR {write} are one tRCD here, the longer");
        keys.notes.push(said);
    }
    keys.put("timing.tRCD", read.max(write), "timing.tRCD");
    for none in ["timing.tWP", "timing.off_chip"] {
        keys.put(none, 0, "timing.tCK");
    }
    Ok(())
}

fn geometry(
    entries: &Entries,
    keys: &mut MachineKeys,
    (bl, bus, bursts): (u64, u64, u64),
    grouped: bool,
) -> Result<()> {
    let groups = entries.count("dram_structure.bankgroups", 2)?;
    let banks = groups * entries.count("dram_structure.banks_per_group", 2)?;
    let rows = entries.count("dram_structure.rows", 1 << 16)?;
    let columns = entries.count("dram_structure.columns", 1 << 10)?;
    let lines = columns / bl.max(1) / bursts;
    if lines == 0 {
        let problem = format!("a row of {columns} columns holds no line of {LINE} bytes");
        return entries.fault("dram_structure.columns", problem, "give more columns");
    }
    // The part's columns are as wide as the bus.
    let rank = u128::from(banks) * u128::from(rows) * u128::from(columns) / 8 * u128::from(bus);
    let channel = u128::from(entries.count("system.channel_size", 1024)?) << 20;
    let ranks = (channel / rank.max(1)).max(1);
    if channel % rank.max(1) != 0 {
        let said =
            format!("{ranks} ranks of {rank} bytes stand for the channel_size of {channel} bytes");
        keys.notes.push(said);
    }
    keys.put(
        "geometry.channels",
        entries.count("system.channels", 1)?,
        "system.channels",
    );
    keys.put("geometry.ranks", ranks, "system.channel_size");
    keys.put("geometry.banks", banks, "dram_structure.bankgroups");
    if grouped {
        keys.put("geometry.groups", groups, "dram_structure.bankgroups");
    }
    keys.put("geometry.rows", rows, "dram_structure.rows");
    keys.put("geometry.columns", lines, "dram_structure.columns");
    mapping(entries, keys)
}

fn mapping(entries: &Entries, keys: &mut MachineKeys) -> Result<()> {
    const NAME: &str = "system.address_mapping";
    const KNOWN: [(&str, &str); 6] = [
        ("ch", "channel"),
        ("ra", "rank"),
        ("bg", "group"),
        ("ba", "bank"),
        ("ro", "row"),
        ("co", "column"),
    ];
    let theirs = entries.word(NAME, "chrobabgraco");
    let fields: Option<Vec<&str>> = (0..theirs.len())
        .step_by(2)
        .map(|at| theirs.get(at..at + 2))
        .collect();
    let Some((ours, kept)) = fields.and_then(|fields| order(&fields, &KNOWN)) else {
        let problem = format!("\"{theirs}\" is not the six fields ch, ra, bg, ba, ro and co");
        return entries.fault(NAME, problem, "give each once, the most significant first");
    };
    if !kept {
        let said = format!(
            "address_mapping {theirs}: banks and bank groups are one field here, where the banks are, with the group below"
        );
        keys.notes.push(said);
    }
    keys.put("mapping", ours, NAME);
    Ok(())
}

/// Sizes the queues. DRAMsim3 moves transactions to a queue of commands for each bank, where writes wait as well. Here
/// writes stay in one queue, which gets the room of both. The watermark was fitted to DRAMsim3's curves
/// (docs/hosts/simulators.md).
fn queues(entries: &Entries, keys: &mut MachineKeys) -> Result<()> {
    const QUEUE: &str = "system.trans_queue_size";
    let closed = entries.word("system.row_buf_policy", "OPEN_PAGE") == "CLOSE_PAGE";
    let page = if closed { "closed" } else { "open" };
    keys.put("queues.page", page, "system.row_buf_policy");
    let queue = entries.count(QUEUE, 32)?;
    for (key, entries) in [
        ("reads", queue),
        ("writes", 2 * queue),
        ("high_watermark", queue),
        ("low_watermark", queue / 4),
    ] {
        keys.put(&format!("queues.{key}"), entries, QUEUE);
    }
    Ok(())
}

/// Computes energies from the part's currents (mA) and its voltage, as DRAMsim3 does: what a command takes beyond an
/// open rank's standby, and the standby of a rank whose rows are closed. Without a current nothing is computed.
fn power(
    entries: &Entries,
    keys: &mut MachineKeys,
    (bl, bus, bursts): (u64, u64, u64),
) -> Result<()> {
    let mut known = [0.0; 7];
    let names = ["VDD", "IDD0", "IDD2N", "IDD3N", "IDD4R", "IDD4W", "IDD5AB"];
    for (value, name) in known.iter_mut().zip(names) {
        match entries.real(&format!("power.{name}"))? {
            Some(number) => *value = number,
            None => return Ok(()),
        }
    }
    let [vdd, idd0, idd2n, idd3n, idd4r, idd4w, idd5] = known;
    let width = entries.count("dram_structure.device_width", 8)?.max(1);
    let clock = entries.real("timing.tCK")?.unwrap_or(1.0);
    let cycles = |name: &str, otherwise| entries.whole(&format!("timing.{name}"), otherwise);
    let (ras, rp) = (cycles("tRAS", 24)? as f64, cycles("tRP", 10)? as f64);
    let devices = (bus / width).max(1) as f64;
    // A milliampere at a volt for a nanosecond is a thousandth of a nanojoule.
    let spent =
        |current: f64, cycles: f64| (current * cycles * clock * vdd * devices * 1e-3).max(0.0);
    let burst = ((bl / 2).max(1) * bursts) as f64;
    let opened = spent(idd0 * (ras + rp) - idd3n * ras - idd2n * rp, 1.0);
    let (read, write) = (spent(idd4r - idd3n, burst), spent(idd4w - idd3n, burst));
    let refresh = spent(idd5 - idd3n, cycles("tRFC", 74)? as f64);
    for (key, value, from) in [
        ("read_nj", opened + read, "IDD4R"),
        ("row_hit_read_nj", read, "IDD4R"),
        ("write_nj", opened + write, "IDD4W"),
        ("row_hit_write_nj", write, "IDD4W"),
        ("refresh_nj", refresh, "IDD5AB"),
        ("standby_nj_per_us", idd2n * vdd * devices, "IDD2N"),
    ] {
        let value = (value * 1e4).round() / 1e4;
        keys.put(&format!("energy.{key}"), value, &format!("power.{from}"));
    }
    Ok(())
}

fn parse(text: &str, file: &str) -> Result<BTreeMap<String, PlacedValue>> {
    let (mut all, mut section) = (BTreeMap::new(), "sardonyx".to_owned());
    for (number, line) in text.lines().enumerate() {
        let number = number + 1;
        let line = line.split([';', '#']).next().unwrap_or_default().trim();
        if line.is_empty() {
            continue;
        }
        if let Some(name) = line
            .strip_prefix('[')
            .and_then(|line| line.strip_suffix(']'))
        {
            name.trim().clone_into(&mut section);
            continue;
        }
        let Some((key, value)) = line.split_once('=') else {
            return Err(ConfigError {
                line: Some(number),
                ..ConfigError::file(
                    file,
                    format!("\"{line}\" is no KEY = VALUE"),
                    "mend the line",
                )
            });
        };
        let name = format!("{section}.{}", key.trim());
        if !name.starts_with(OURS) {
            let text = value.trim().to_owned();
            all.insert(name, PlacedValue { text, line: number });
        }
    }
    if !all
        .keys()
        .any(|name| name.starts_with("dram_structure.") || name.starts_with("timing."))
    {
        let remedy = "a machine's .ini has DRAMsim3's sections dram_structure, timing and system";
        return Err(ConfigError::file(file, "says nothing of a memory", remedy));
    }
    Ok(all)
}
