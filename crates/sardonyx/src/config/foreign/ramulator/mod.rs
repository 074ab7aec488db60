//! Ramulator's machines: the YAML of 2.0 (parts and speeds by name, with what overrides them), the YAML or
//! JSON that 2.1 exports (all values resolved), and the .cfg of 1.0. The parts by name are in `ramulator.tsv`.

mod controller;
mod standards;

use std::collections::BTreeMap;

use super::tree::{self, Leaf};
use super::{Entries, Foreign, MachineKeys, PlacedValue};
use crate::config::error::{ConfigError, Result};
use standards::{STANDARDS, Standard};

const LINE: u64 = 64;
/// Of the 24 beats of 12 bits of a burst, as Ramulator has it; the rest is metadata.
const LPDDR6_PAYLOAD: u64 = 32;
const PRESETS: &str = include_str!("../ramulator.tsv");

/// Entries whose meaning other keys have, or that follow from others; names, whose values are in the entries; and
/// refreshes of other kinds than the file's.
const WITHOUT_EFFECT: &[&str] = &[
    "org.density",
    "org.dq",
    "org.preset",
    "timing.preset",
    "timing.nRC",
    "timing.rate",
    "timing.tCK_ps",
    "timing.nBL_max",
    "timing.nBL_min_L",
    "timing.nBL_max_L",
    "timing.nCCDL_L",
    "timing.nCCDL_WR_L",
    "timing.nRTP_L",
    "timing.nRPab",
    "timing.nRREFD",
    "timing.nRFCpb",
    "timing.nREFIpb",
    "timing.nPBR2*",
    "timing.nRFM*",
    "timing.nODT*",
    "timing.nRPST",
    "timing.nRDREFab",
    "controller.impl",
    "controllers.impl",
    "controller.prioritybuffersize",
    "controllers.prioritybuffersize",
    "controller.plugins",
    "controllers.debug",
    "refreshmanager.debug",
];
const LEFT_OUT: &[(&str, &str)] = &[
    ("timing.nRPD", "precharges may follow each other at once"),
    ("timing.nCCDS_WR", "writes follow each other as reads do"),
    ("timing.nCCDR", "stacks are ranks"),
    (
        "timing.nRTW*",
        "a write in a bank group may follow a read as one in another",
    ),
    ("timing.nACU", TWO),
    ("timing.nAAD", TWO),
    ("timing.nCAS", TWO),
    ("timing.nWCK*", "the data clock runs always"),
    ("timing.nRCK*", "the data clock runs always"),
    ("timing.nRD2RCKSTOP", "the data clock runs always"),
    ("controllers.wcksyncmode", "the data clock runs always"),
    ("controllers.rck*", "the data clock runs always"),
    ("controllers.abo*", "nothing guards rows against hammering"),
    ("controllers.bf*", "nothing guards rows against hammering"),
    ("org.*", "no level of that name"),
];
const TWO: &str = "an activate, and a column command, is one command";

pub(super) fn read(text: &str, file: &str) -> Result<Foreign> {
    let leaves = tree::read(text, file)?;
    let Some(at) = leaves.iter().position(|leaf| leaf.ends(&["dram", "impl"])) else {
        let remedy = "a Ramulator configuration names its DRAM's impl, org and timing";
        return Err(ConfigError::file(file, "says nothing of a memory", remedy));
    };
    let first = &leaves[at];
    let standard = standard(&first.text, first.line, file)?;
    let drams = leaves.iter().filter(|leaf| leaf.ends(&["dram", "impl"]));
    let roots: Vec<&[String]> = drams
        .map(|leaf| &leaf.path[..leaf.path.len() - 1])
        .collect();
    let mut all: BTreeMap<String, PlacedValue> = BTreeMap::new();
    for leaf in &leaves {
        let of = roots.iter().position(|root| leaf.path.starts_with(root));
        let name = match of {
            Some(channel) => name_of(standard, &leaf.path[roots[channel].len()..]),
            None => name_besides(&leaf.path),
        };
        if let (Some(1..), Some(known)) = (of, all.get(&name)) {
            if known.text != leaf.text && name != "derived" {
                return Err(ConfigError {
                    line: Some(leaf.line),
                    key: Some(name),
                    ..ConfigError::file(
                        file,
                        format!(
                            "{} here and {} in the first channel, and channels that differ are not read",
                            leaf.text, known.text
                        ),
                        "give the file of one channel",
                    )
                });
            }
            continue;
        }
        let entry = PlacedValue {
            text: leaf.text.clone(),
            line: leaf.line,
        };
        all.entry(name).or_insert(entry);
    }
    let channels = roots.len();
    if channels > 1 {
        let entry = PlacedValue {
            text: channels.to_string(),
            line: first.line,
        };
        all.insert("org.channel".to_owned(), entry);
    }
    machine(standard, all, file)
}

/// Reads a machine in 1.0's .cfg, whose parts and speeds have the names of 2.0.
pub(super) fn read_first(text: &str, file: &str) -> Result<Foreign> {
    const NAMES: [(&str, &str); 5] = [
        ("standard", "impl"),
        ("channels", "org.channel"),
        ("ranks", "org.rank"),
        ("org", "org.preset"),
        ("speed", "timing.preset"),
    ];
    let mut all = BTreeMap::new();
    for (number, line) in text.lines().enumerate() {
        let line = line.split('#').next().unwrap_or_default();
        let Some((key, value)) = line.split_once('=') else {
            continue;
        };
        let key = key.trim();
        if let Some((_, name)) = NAMES.iter().find(|(theirs, _)| *theirs == key) {
            let entry = PlacedValue {
                text: value.trim().to_owned(),
                line: number + 1,
            };
            all.insert((*name).to_owned(), entry);
        }
    }
    let Some(named) = all.get("impl") else {
        let remedy = "a Ramulator 1 configuration has standard, org and speed";
        return Err(ConfigError::file(file, "says nothing of a memory", remedy));
    };
    machine(standard(&named.text, named.line, file)?, all, file)
}

fn standard(name: &str, line: usize, file: &str) -> Result<&'static Standard> {
    let known = STANDARDS.iter().find(|standard| standard.name == name);
    known.ok_or_else(|| {
        let names: Vec<&str> = STANDARDS.iter().map(|standard| standard.name).collect();
        ConfigError {
            line: Some(line),
            ..ConfigError::file(
                file,
                format!("\"{name}\" is a standard that is not read"),
                format!("known are {}", names.join(", ")),
            )
        }
    })
}

/// The name of an entry of another part: the part's and its own, whatever its place in a list.
fn name_besides(path: &[String]) -> String {
    let named = path.iter().filter(|part| part.parse::<usize>().is_err());
    let named: Vec<&str> = named.map(String::as_str).collect();
    named[named.len().saturating_sub(2)..].join(".")
}

/// The name of an entry below the DRAM's. Ramulator 2.1 has lists there: levels without names, and timings.
fn name_of(standard: &Standard, path: &[String]) -> String {
    let named = |names: &str, at: &str| {
        let at: usize = at.parse().ok()?;
        names.split(' ').nth(at).map(str::to_owned)
    };
    let path: Vec<&str> = path.iter().map(String::as_str).collect();
    let name = match path.as_slice() {
        ["org", "count", at] => named(standard.levels, at).map(|level| format!("org.{level}")),
        ["timing", at] => named(standard.timings, at).map(|name| format!("timing.{name}")),
        ["channel_width"] => Some("org.channel_width".to_owned()),
        ["timing_constraints" | "command_cycles" | "read_latency", ..] => {
            Some("derived".to_owned())
        }
        _ => None,
    };
    name.unwrap_or_else(|| path.join("."))
}

fn machine(
    standard: &Standard,
    mut all: BTreeMap<String, PlacedValue>,
    file: &str,
) -> Result<Foreign> {
    for table in ["org", "timing"] {
        fill(&mut all, table, file)?;
    }
    let latency = ["timing.nCL", "timing.nRL"]
        .iter()
        .any(|name| all.contains_key(*name));
    if !all.contains_key("org.row") || !latency {
        let problem = format!("says no rows or timings of its {}", standard.name);
        let remedy = "give org.preset and timing.preset, or export it with Ramulator 2.1 \
                      (python -m ramulator export)";
        return Err(ConfigError::file(file, problem, remedy));
    }
    let entries = Entries::new(file, all);
    let mut keys = MachineKeys::new(&entries);
    let width = entries.count(
        "org.channel_width",
        if standard.prefetch == 8 { 64 } else { 32 },
    )?;
    let bytes = match entries.whole("data_payload_bytes", 0)? {
        0 if standard.name == "LPDDR6" => LPDDR6_PAYLOAD,
        0 => standard.prefetch * width / 8,
        payload => payload,
    };
    if bytes == 0 || !LINE.is_multiple_of(bytes) {
        let problem = format!("a burst moves {bytes} bytes, and {LINE} are no multiple of that");
        return entries.fault("org.channel_width", problem, "give 64, 32 or 16");
    }
    let bursts = LINE / bytes;
    if bursts > 1 {
        keys.notes.push(format!(
            "a line of {LINE} bytes is {bursts} of its bursts, one after the other"
        ));
    }
    timing(standard, &entries, &mut keys, bursts)?;
    geometry(standard, &entries, &mut keys, bytes)?;
    keys.writes_do_not_turn("timing.nCS");
    controller::read(&entries, &mut keys, bursts)?;
    keys.no_energies("currents");
    // Programs, plugins and the controller's parts have keys of their own, which the parts' names say.
    let own = [
        "org.",
        "timing.",
        "controller.",
        "controllers.",
        "refreshmanager.",
    ];
    let besides = entries.all.keys().map(String::as_str);
    let besides = besides.filter(|name| !own.iter().any(|part| name.starts_with(part)));
    let known: Vec<&str> = WITHOUT_EFFECT.iter().copied().chain(besides).collect();
    keys.finish("Ramulator", "ddr4-2400", &known, LEFT_OUT)
}

/// Adds the entries of a preset that the file does not give itself. They get the line of the preset's name.
fn fill(all: &mut BTreeMap<String, PlacedValue>, table: &str, file: &str) -> Result<()> {
    let Some(preset) = all.get(&format!("{table}.preset")).cloned() else {
        return Ok(());
    };
    let rows = PRESETS.lines().filter_map(|line| line.split_once('\t'));
    let Some((_, values)) = rows.clone().find(|(name, _)| *name == preset.text) else {
        let standard = all.get("impl").map_or("", |entry| entry.text.as_str());
        let kind = if table == "org" { "density=" } else { "rate=" };
        let known = rows.filter(|(name, values)| {
            name.starts_with(&format!("{standard}_")) && values.starts_with(kind)
        });
        let known: Vec<&str> = known.map(|(name, _)| name).collect();
        let remedy = match known.is_empty() {
            true => "export the machine with Ramulator 2.1 (python -m ramulator export)".to_owned(),
            false => format!("known are {}", known.join(", ")),
        };
        return Err(ConfigError {
            line: Some(preset.line),
            key: Some(format!("{table}.preset")),
            ..ConfigError::file(
                file,
                format!("no preset \"{}\" is known", preset.text),
                remedy,
            )
        });
    };
    for (name, value) in values.split(' ').filter_map(|each| each.split_once('=')) {
        let entry = PlacedValue {
            text: value.to_owned(),
            line: preset.line,
        };
        all.entry(format!("{table}.{name}")).or_insert(entry);
    }
    Ok(())
}

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

    fn needed(&self, names: &[&str]) -> Result<(u64, String)> {
        for name in names {
            if let Some(cycles) = self.of(name)?.or_else(|| self.by_table(name)) {
                return Ok((cycles, format!("timing.{name}")));
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

fn timing(
    standard: &Standard,
    entries: &Entries,
    keys: &mut MachineKeys,
    bursts: u64,
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
    let (burst, from) = timings.needed(&["nBL", "nBL_min"])?;
    keys.put("timing.tBURST", burst * bursts, &from);
    for (ours, theirs) in [
        ("tCL", &["nCL", "nRL"] as &[&str]),
        ("tCWD", &["nCWL", "nWL"]),
        ("tRP", &["nRP"]),
        ("tRAS", &["nRAS"]),
        ("tRRD", &["nRRDS", "nRRD"]),
        ("tFAW", &["nFAW"]),
        ("tWTR", &["nWTRS", "nWTR"]),
        ("tWR", &["nWR", "nWTP"]),
        ("tRTRS", &["nCS"]),
    ] {
        let (cycles, from) = timings.needed(theirs)?;
        keys.put(&format!("timing.{ours}"), cycles, &from);
    }
    turns(&timings, keys, burst)?;
    let (column, from) = timings.needed(&["nCCDS", "nCCD"])?;
    keys.put("timing.tCCD", column * bursts, &from);
    // Here a precharge waits from the read's column slot on, there from its command.
    let (to_precharge, from) = timings.needed(&["nRTP", "nRTPSB"])?;
    let slot = (column * bursts + to_precharge).saturating_sub(burst * bursts);
    keys.put("timing.tRTP", slot, &from);
    within_groups(&timings, keys, bursts)?;
    let (read, from) = timings.needed(&["nRCD", "nRCDRD", "nRCDr"])?;
    let write = timings
        .of("nRCDWR")?
        .or(timings.of("nRCDw")?)
        .unwrap_or(read);
    keys.put("timing.tRCD", read, &from);
    if read != write {
        keys.put("timing.tRCDWR", write, &from);
    }
    refreshes(&timings, keys)?;
    for none in ["timing.tWP", "timing.off_chip"] {
        keys.put(none, 0, "timing.preset");
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
        if let Some(cycles) = timings.of(theirs)?.or_else(|| timings.by_table(theirs)) {
            let from = format!("timing.{theirs}");
            keys.put(&format!("timing.{ours}"), cycles * times, &from);
        }
    }
    Ok(())
}

/// The way of GDDR7's data, and the turn of the bus from reads to writes where the file gives it.
fn turns(timings: &Timings, keys: &mut MachineKeys, burst: u64) -> Result<()> {
    if let Some(sent) = timings.of("nDQERL")? {
        let (latency, from) = timings.needed(&["nRL"])?;
        keys.put("timing.tCL", 1 + latency + sent, &from);
    }
    for name in ["nRTW", "nRTW_S"] {
        if let Some(turn) = timings.of(name)? {
            let (read, _) = timings.needed(&["nCL", "nRL"])?;
            let (write, _) = timings.needed(&["nCWL", "nWL"])?;
            if turn + write < read + burst {
                let free = read + burst - write;
                let said = format!(
                    "{name} {turn}: a write follows a read when the bus is free, {free} cycles later at least"
                );
                keys.notes.push(said);
            }
            let bubble = (turn + write).saturating_sub(read + burst);
            keys.put("timing.tRTRS", bubble, &format!("timing.{name}"));
        }
    }
    Ok(())
}

/// Sets refreshes: of whole ranks or of one bank at a time, each nREFIpb the next of all.
fn refreshes(timings: &Timings, keys: &mut MachineKeys) -> Result<()> {
    const MANAGER: &str = "refreshmanager.impl";
    let entries = timings.entries;
    let manager = entries.word(MANAGER, "AllBank");
    let ranks = entries.count("org.rank", 1)? * entries.count("org.sid", 1)?;
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
            let banks = entries.count("org.bankgroup", 1)? * entries.count("org.bank", 8)?;
            // The one goes through both pseudo-channels' banks, the other refreshes one of each.
            let halves = match manager.as_str() {
                "PerBank" => entries.count("org.pseudochannel", 1)?,
                _ => 1,
            };
            let (next, from) = timings.needed(&["nREFIpb"])?;
            every = (next * banks * ranks * halves, from);
            turns = "in-turn";
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
    let (length, from) = timings.needed(&["nRFC", "nRFCab"])?;
    keys.put("timing.tRFC", if every.0 > 0 { length } else { 0 }, &from);
    keys.put("timing.tREFI", every.0, &every.1);
    Ok(())
}

fn geometry(
    standard: &Standard,
    entries: &Entries,
    keys: &mut MachineKeys,
    bytes: u64,
) -> Result<()> {
    let groups = entries.count("org.bankgroup", 1)?;
    let columns = entries.count("org.column", 1)?;
    let lines = columns / standard.prefetch * bytes / LINE;
    if lines == 0 {
        let problem = format!("a row of {columns} columns holds no line of {LINE} bytes");
        return entries.fault("org.column", problem, "give more columns");
    }
    let halves = entries.count("org.pseudochannel", 1)?;
    if halves > 1 {
        keys.notes.push(format!(
            "the {halves} pseudo-channels of a channel are channels here, with a command bus each"
        ));
    }
    let stacks = entries.count("org.sid", 1)?;
    for (ours, count, from) in [
        (
            "channels",
            entries.count("org.channel", 1)? * halves,
            "org.channel",
        ),
        ("ranks", entries.count("org.rank", 1)? * stacks, "org.rank"),
        ("banks", groups * entries.count("org.bank", 8)?, "org.bank"),
        ("rows", entries.count("org.row", 1)?, "org.row"),
        ("columns", lines, "org.column"),
    ] {
        keys.put(&format!("geometry.{ours}"), count, from);
    }
    let groups = match standard.name {
        "GDDR7" => entries.count("org.bank", 8)?,
        _ => groups,
    };
    keys.put("geometry.groups", groups, "org.bankgroup");
    Ok(())
}

impl Leaf {
    fn ends(&self, names: &[&str]) -> bool {
        let path = self.path.iter().map(String::as_str);
        path.skip(self.path.len().saturating_sub(names.len()))
            .eq(names.iter().copied())
    }
}
