//! DRAMsim3's .ini files. The defaults are those of its own `configuration.cc`.

use std::collections::BTreeMap;

use super::super::error::{ConfigError, Result};
use super::{Currents, Entries, Foreign, MachineKeys, PlacedValue, order};

const LINE: u64 = 64;
/// Entries that the C library's interface reads itself begin like this.
const OURS: &str = "sardonyx.";
/// Entries that change no figure: of DRAMsim3's output; of temperatures, which change no timing there; of a Hybrid
/// Memory Cube's links in other protocols' files; of self-refresh, which is off unless `enable_self_refresh` says so; and
/// those that its own files have and its `configuration.cc` does not read, or reads and does not use.
const WITHOUT_EFFECT: &[&str] = &[
    "other.*",
    "thermal.*",
    "hmc.*",
    "dram_structure.device_width",
    "dram_structure.num_dies",
    "timing.tPPD",  // but of GDDR and LPDDR4
    "timing.t32AW", // but of GDDR
    "system.sref_threshold",
    "system.write_buf_size",
    "system.aggressive_precharging_enabled",
    "timing.tCKE",
    "timing.tCKESR",
    "timing.tCKSRE",
    "timing.tXS",
    "timing.tXP",
    "timing.tRPRE",
    "timing.tWPRE",
    "timing.tWR2",
    "timing.tRFC2",
    "timing.tRFC4",
    "timing.tRFCb",
    "timing.tREFIb",
    "timing.tRFCPB",
    "timing.tRTP_S",
    "timing.tRTP_L",
    "timing.tRREFD",
    "timing.tCWD",
    "timing.tCMD",
    "timing.tCAS",
    "timing.REFI",
    "timing.REFRESH_PERIOD",
    "timing.activation_window_depth",
    "timing.ideal_memory_latency",
    "timing.tRCD",
    "timing.tRCDRD",
    "timing.tRCDWR",
    // Without bank groups.
    "timing.tCCD_L",
    "timing.tRRD_L",
    "timing.tWTR_L",
    "power.IPP0",
    "power.IDD1",
    "power.IDD2P",
    "power.IDD2Q",
    "power.IDD3P",
    "power.IDD3Pf",
    "power.IDD3Ps",
    "power.IDD5",
    "power.IDD5AB", // where banks are refreshed one by one
    "power.IDD5PB",
    "power.IDD6",
    "power.IDD6L",
    "power.IDD6x",
    "power.IDD7",
];
const PROTOCOLS: [&str; 10] = [
    "DDR3", "DDR4", "GDDR5", "GDDR5X", "GDDR6", "LPDDR", "LPDDR3", "LPDDR4", "HBM", "HBM2",
];

pub(super) fn read(text: &str, file: &str) -> Result<Foreign> {
    let (entries, mut said) = parse(text, file)?;
    let entries = Entries::new(file, entries);
    let protocol = entries.word("dram_structure.protocol", "DDR3");
    let groups = bank_groups(&entries)?;
    let grouped = groups > 1;
    if protocol == "HMC" {
        let problem = "a Hybrid Memory Cube has links and vaults of its own".to_owned();
        return entries.fault(
            "dram_structure.protocol",
            problem,
            "give another protocol's file",
        );
    }
    if !PROTOCOLS.contains(&protocol.as_str()) {
        let problem = format!("DRAMsim3 has no protocol {protocol}");
        let remedy = format!("give one of {}", PROTOCOLS.join(", "));
        return entries.fault("dram_structure.protocol", problem, &remedy);
    }
    let mut keys = MachineKeys::new(&entries);
    keys.notes.append(&mut said);
    let bl = entries.count("dram_structure.BL", 8)?;
    let bus = entries.count("system.bus_width", 64)?;
    let bytes = bl * bus / 8;
    if bytes == 0 || !LINE.is_multiple_of(bytes) && !bytes.is_multiple_of(LINE) {
        let problem = format!("BL {bl} on {bus} bits moves {bytes} bytes, and a line has {LINE}");
        return entries.fault(
            "dram_structure.BL",
            problem,
            "give BL x bus_width of 512 bits, a part of it or a multiple",
        );
    }
    // A line of ours is several of its transactions, one after the other, or a part of one.
    let (bursts, lines) = ((LINE / bytes).max(1), (bytes / LINE).max(1));
    if bursts > 1 {
        keys.notes.push(format!(
            "a line of {LINE} bytes is {bursts} of its transactions, one after the other"
        ));
    } else if lines > 1 {
        keys.notes.push(format!(
            "a line of {LINE} bytes takes a burst of {bytes}, as in DRAMsim3: lines get 1/{lines} of the bus"
        ));
    }
    // Data move twice in a clock of most, and 4, 8 or 16 times in that of GDDR.
    let moves = match protocol.as_str() {
        "GDDR5" => 4,
        "GDDR5X" => 8,
        "GDDR6" => 16,
        _ => 2,
    };
    let burst = (bl / moves).max(1);
    timing(&entries, &mut keys, (burst, bursts), grouped)?;
    geometry(&entries, &mut keys, (bl, bus, bursts, lines), grouped)?;
    refreshes(&entries, &mut keys)?;
    keys.writes_do_not_turn("timing.tRTRS");
    queues(&entries, &mut keys, bursts)?;
    power(&entries, &mut keys, (burst * bursts, bus))?;
    keys.finish("DRAMsim3", "ddr4-2400", WITHOUT_EFFECT, &[])
}

/// The bank groups of a rank; GDDR may have them off.
fn bank_groups(entries: &Entries) -> Result<u64> {
    let groups = entries.count("dram_structure.bankgroups", 2)?;
    let enabled = entries.word("dram_structure.bankgroup_enable", "true");
    Ok(if enabled.eq_ignore_ascii_case("false") {
        1
    } else {
        groups
    })
}

/// Whether a flag is set, which `otherwise` says if the file does not have it.
fn is(entries: &Entries, name: &str, otherwise: &str) -> bool {
    let said = entries.word(name, otherwise);
    said.eq_ignore_ascii_case("true")
}

/// The banks that are refreshed one by one, and a bank's cycles, if the file asks for that.
fn bank_refreshes(entries: &Entries) -> Result<Option<(u64, u64)>> {
    if entries.word(POLICY, STAGGERED) != "BANK_LEVEL_STAGGERED" {
        return Ok(None);
    }
    let groups = entries.count("dram_structure.bankgroups", 2)?;
    let banks = groups * entries.count("dram_structure.banks_per_group", 2)?;
    Ok(Some((banks, entries.count("timing.tRFCb", 20)?)))
}

const POLICY: &str = "system.refresh_policy";
const STAGGERED: &str = "RANK_LEVEL_STAGGERED";

fn refreshes(entries: &Entries, keys: &mut MachineKeys) -> Result<()> {
    let length = entries.whole("timing.tRFC", 74)?;
    let mut every = entries.whole("timing.tREFI", 7800)?;
    let policy = entries.word(POLICY, STAGGERED);
    let turns = match policy.as_str() {
        STAGGERED | "BANK_LEVEL_STAGGERED" => "in-turn",
        "RANK_LEVEL_SIMULTANEOUS" => {
            let said = format!("{policy}: DRAMsim3 then refreshes the first rank alone");
            keys.notes.push(said);
            "together"
        }
        _ => {
            let remedy =
                "give RANK_LEVEL_STAGGERED, RANK_LEVEL_SIMULTANEOUS or BANK_LEVEL_STAGGERED";
            return entries.fault(POLICY, format!("DRAMsim3 has no {policy}"), remedy);
        }
    };
    if let Some((banks, of_bank)) = bank_refreshes(entries)? {
        let ranks = keys.number("geometry.ranks");
        every = entries.count("timing.tREFIb", 1950)? * banks * ranks;
        keys.put("refresh.banks", 1, POLICY);
        keys.put("timing.tRFCsb", of_bank, "timing.tRFCb");
        keys.put("timing.tRREFD", 1, "timing.tRFCb");
        let said = format!(
            "{policy}: a bank is busy for tRFCb, where DRAMsim3 keeps its rank's other banks from opening rows for tRFC"
        );
        keys.notes.push(said);
    }
    keys.put("refresh.ranks", turns, POLICY);
    keys.put("refresh.closes_singly", true, POLICY);
    keys.put("timing.tRFC", length, "timing.tRFC");
    keys.put("timing.tREFI", every, "timing.tREFI");
    if is(entries, "system.enable_self_refresh", "false") {
        let said = "enable_self_refresh: idle ranks stand by here and do not refresh themselves";
        keys.notes.push(said.to_owned());
    }
    Ok(())
}

fn timing(
    entries: &Entries,
    keys: &mut MachineKeys,
    (burst, bursts): (u64, u64),
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
    keys.put("timing.tBURST", burst * bursts, "dram_structure.BL");
    for (name, otherwise) in [("tCCD", [4, 6]), ("tRRD", [4, 4]), ("tWTR", [5, 5])] {
        let times = if name == "tCCD" { bursts } else { 1 };
        let [short, long] = ["S", "L"].map(|of| format!("timing.{name}_{of}"));
        let cycles = entries.whole(&short, otherwise[0])?;
        keys.put(&format!("timing.{name}"), cycles * times, &short);
        if grouped {
            let cycles = entries.whole(&long, otherwise[1])?;
            keys.put(&long, cycles * times, &long);
        }
    }
    for (name, otherwise) in [
        ("tRP", 10),
        ("tRAS", 24),
        ("tRTRS", 2),
        ("tFAW", 50),
        ("tWR", 10),
    ] {
        keys.same(name, &format!("timing.{name}"), otherwise)?;
    }
    // Here a precharge waits from the read's column slot on, there from its command.
    let column = entries.whole("timing.tCCD_S", 4)? * bursts;
    let to_precharge = additive + entries.whole("timing.tRTP", 5)?;
    let slot = (column + to_precharge).saturating_sub(burst * bursts);
    keys.put("timing.tRTP", slot, "timing.tRTP");
    let protocol = entries.word("dram_structure.protocol", "DDR3");
    let (read, write) = match protocol.starts_with("GDDR") || protocol.starts_with("HBM") {
        true => (
            entries.whole("timing.tRCDRD", 24)?,
            entries.whole("timing.tRCDWR", 20)?,
        ),
        false => [entries.whole("timing.tRCD", 10)?; 2].into(),
    };
    keys.put("timing.tRCD", read, "timing.tRCD");
    if read != write {
        keys.put("timing.tRCDWR", write, "timing.tRCDWR");
    }
    if protocol.starts_with("GDDR") || protocol == "LPDDR4" {
        let apart = entries.whole("timing.tPPD", 0)?;
        keys.put("timing.tPPD", apart, "timing.tPPD");
    }
    if protocol.starts_with("GDDR") {
        let window = entries.whole("timing.t32AW", 330)?;
        keys.put("timing.t32AW", window, "timing.t32AW");
    }
    for none in ["timing.tWP", "timing.off_chip"] {
        keys.put(none, 0, "timing.tCK");
    }
    Ok(())
}

fn geometry(
    entries: &Entries,
    keys: &mut MachineKeys,
    (bl, bus, bursts, in_burst): (u64, u64, u64, u64),
    grouped: bool,
) -> Result<()> {
    let groups = entries.count("dram_structure.bankgroups", 2)?;
    let banks = groups * entries.count("dram_structure.banks_per_group", 2)?;
    let groups = if grouped { groups } else { 1 };
    let rows = entries.count("dram_structure.rows", 1 << 16)?;
    let columns = entries.count("dram_structure.columns", 1 << 10)? * column_widths(entries, bl);
    let lines = columns / bl.max(1) / bursts * in_burst;
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
    keys.put("geometry.groups", groups, "dram_structure.bankgroups");
    keys.put("geometry.rows", rows, "dram_structure.rows");
    keys.put("geometry.columns", lines, "dram_structure.columns");
    mapping(entries, keys, in_burst)
}

/// The widths of the bus in a column of the file: its `configuration.cc` doubles the columns of HBM, and multiplies
/// GDDR's by BL.
fn column_widths(entries: &Entries, bl: u64) -> u64 {
    match entries.word("dram_structure.protocol", "DDR3").as_str() {
        "HBM" | "HBM2" => 2,
        "GDDR5" | "GDDR5X" | "GDDR6" => bl,
        _ => 1,
    }
}

fn mapping(entries: &Entries, keys: &mut MachineKeys, in_burst: u64) -> Result<()> {
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
    let Some(ours) = fields.and_then(|fields| order(&fields, &KNOWN)) else {
        let problem = format!("\"{theirs}\" is not the six fields ch, ra, bg, ba, ro and co");
        return entries.fault(NAME, problem, "give each once, the most significant first");
    };
    if in_burst > 1 && !theirs.ends_with("co") {
        let problem = format!("\"{theirs}\" parts the {in_burst} lines of a burst here");
        return entries.fault(NAME, problem, "give an order that ends with co");
    }
    keys.put("mapping", ours, NAME);
    Ok(())
}

/// Sizes the queues. DRAMsim3 moves transactions to a queue of commands for each bank, reads unless a drain moves
/// writes. One begins with a full queue, or with more than eight writes when no command is queued, and a row closes
/// after four accesses if its bank's oldest command wants another.
fn queues(entries: &Entries, keys: &mut MachineKeys, bursts: u64) -> Result<()> {
    const QUEUE: &str = "system.trans_queue_size";
    let closed = entries.word("system.row_buf_policy", "OPEN_PAGE") == "CLOSE_PAGE";
    let page = if closed { "closed" } else { "open" };
    keys.put("queues.page", page, "system.row_buf_policy");
    if closed {
        let said =
            "CLOSE_PAGE: after a read that closes its row DRAMsim3 opens the next a burst later";
        keys.notes.push(said.to_owned());
    }
    if is(entries, "system.unified_queue", "false") {
        let said = "unified_queue: reads and writes have queues of their own here";
        keys.notes.push(said.to_owned());
    }
    const OF_BANKS: &str = "system.cmd_queue_size";
    // An entry is a burst.
    let queue = (entries.count(QUEUE, 32)? / bursts).max(4);
    let of_bank = (entries.count(OF_BANKS, 16)? / bursts).max(1);
    const STRUCTURE: &str = "system.queue_structure";
    let owner = match &entries.word(STRUCTURE, "PER_BANK")[..] {
        "PER_BANK" => "bank",
        "PER_RANK" => "rank",
        other => {
            let problem = format!("DRAMsim3 has no structure of queues {other}");
            return entries.fault(STRUCTURE, problem, "give PER_BANK or PER_RANK");
        }
    };
    keys.put("queues.commands", of_bank, OF_BANKS);
    keys.put("queues.commands_of", owner, STRUCTURE);
    keys.put("queues.scheduler", "fr-fcfs-cap", STRUCTURE);
    keys.put("queues.starvation", 4, STRUCTURE);
    // A request waits for the queue of its kind alone.
    keys.put("queues.passing", true, QUEUE);
    const BUSES: &str = "dram_structure.hbm_dual_cmd";
    let protocol = entries.word("dram_structure.protocol", "DDR3");
    if protocol.starts_with("HBM") {
        keys.put("queues.row_bus", is(entries, BUSES, "true"), BUSES);
    }
    for (key, entries) in [
        ("reads", queue),
        ("writes", queue),
        ("high_watermark", queue),
        ("low_watermark", 8.min(queue - 1)),
    ] {
        keys.put(&format!("queues.{key}"), entries, QUEUE);
    }
    Ok(())
}

/// Computes energies from the part's currents. Without one of them nothing is computed.
fn power(entries: &Entries, keys: &mut MachineKeys, (burst, bus): (u64, u64)) -> Result<()> {
    let of_banks = bank_refreshes(entries)?;
    let names = [
        "power.IDD0",
        "power.IDD2N",
        "power.IDD3N",
        "power.IDD4R",
        "power.IDD4W",
        if of_banks.is_some() {
            "power.IDD5PB"
        } else {
            "power.IDD5AB"
        },
    ];
    let [a, b, c, d, e, f] = names;
    let [milliamperes @ .., volts] = match entries.reals([a, b, c, d, e, f, "power.VDD"])? {
        Ok(numbers) => numbers,
        Err(lacks) => {
            keys.no_energies(&lacks);
            return Ok(());
        }
    };
    let width = entries.count("dram_structure.device_width", 8)?.max(1);
    let cycles = |name: &str, otherwise| entries.whole(&format!("timing.{name}"), otherwise);
    let part = Currents {
        milliamperes,
        volts,
        devices: (bus / width).max(1) as f64,
        clock_ns: entries.real("timing.tCK")?.unwrap_or(1.0),
        ras: cycles("tRAS", 24)?,
        rp: cycles("tRP", 10)?,
        // All banks of a rank, one after the other.
        rfc: match of_banks {
            Some((banks, of_bank)) => banks * of_bank,
            None => cycles("tRFC", 74)?,
        },
        burst,
    };
    keys.currents(&part, names);
    Ok(())
}

/// The entries of a file, and what to say of those that are read as its own reader reads them: an empty one is not there,
/// and nothing counts after a number and a space.
fn parse(text: &str, file: &str) -> Result<(BTreeMap<String, PlacedValue>, Vec<String>)> {
    let (mut all, mut section) = (BTreeMap::new(), "sardonyx".to_owned());
    let mut notes = Vec::new();
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
        let mut text = value.trim();
        if name.starts_with(OURS) {
            continue;
        } else if text.is_empty() {
            notes.push(format!(
                "line {number}: {name} is empty: its default counts"
            ));
            continue;
        } else if let Some((first, rest)) = text.split_once(char::is_whitespace)
            && first.parse::<f64>().is_ok()
        {
            notes.push(format!(
                "line {number}: {name} is {first}; what follows is not read: {rest}"
            ));
            text = first;
        }
        let text = text.to_owned();
        all.insert(name, PlacedValue { text, line: number });
    }
    if !all
        .keys()
        .any(|name| name.starts_with("dram_structure.") || name.starts_with("timing."))
    {
        let remedy = "a machine's .ini has DRAMsim3's sections dram_structure, timing and system";
        return Err(ConfigError::file(file, "says nothing of a memory", remedy));
    }
    Ok((all, notes))
}
