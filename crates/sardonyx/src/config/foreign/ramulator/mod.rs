//! Ramulator's machines: the YAML of 2.0 (parts and speeds by name, with what overrides them), the YAML or
//! JSON that 2.1 exports (all values resolved), and the .cfg of 1.0. The parts by name are in `ramulator.tsv`.

mod controller;
mod standards;
mod timings;

use std::collections::BTreeMap;

use super::tree::{self, Leaf};
use super::{Entries, Foreign, MachineKeys, PlacedValue};
use crate::config::error::{ConfigError, Result};
use crate::medium::params::MAX_BANKS;
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
    "timing.nCCDR", // of one stack
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
    (
        "timing.nRTW*",
        "a write in a bank group may follow a read as one in another",
    ),
    (
        "timing.nACU",
        "both commands of an activate may follow at once",
    ),
    (
        "timing.nCAS",
        "a column command follows at once when the data clock has been started",
    ),
    ("timing.nAAD", "an activate is one command"),
    ("timing.nWCK*", "the data clock runs always"),
    ("timing.nRCK*", "the data clock runs always"),
    ("timing.nRD2RCKSTOP", "the data clock runs always"),
    ("controllers.rck*", "the data clock runs always"),
    ("controllers.abo*", "nothing guards rows against hammering"),
    ("controllers.bf*", "nothing guards rows against hammering"),
    ("org.*", "no level of that name"),
];

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
        ["timing_constraints" | "read_latency", ..] => Some("derived".to_owned()),
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
    let shape = Shape::of(standard, &entries, &mut keys, bytes)?;
    timings::read(standard, &entries, &mut keys, &shape)?;
    geometry(&entries, &mut keys, &shape)?;
    keys.writes_do_not_turn("timing.nCS");
    controller::read(&entries, &mut keys, &shape)?;
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

/// How a line and its commands are laid out.
struct Shape {
    /// The bursts of a line in a channel.
    bursts: u64,
    channels: u64,
    ranks: u64,
    banks: u64,
    groups: u64,
    /// Lines of a row.
    lines: u64,
    /// Whether the pseudo-channels of a channel are its ranks.
    halves: bool,
    /// Cycles of the command bus that an activate, a precharge and a column command take.
    cycles: [u64; 3],
    both_edges: bool,
    stacks: u64,
}

impl Shape {
    fn of(
        standard: &Standard,
        entries: &Entries,
        keys: &mut MachineKeys,
        bytes: u64,
    ) -> Result<Shape> {
        let count = |name: &str, otherwise| entries.count(&format!("org.{name}"), otherwise);
        let (channels, halves) = (count("channel", 1)?, count("pseudochannel", 1)?);
        let columns = count("column", 1)?;
        // Successive bursts lie in successive channels, which then do the same as one of twice the width.
        let apart = entries.whole("channelmapper.interleavebits", 0)? > 0;
        let by_line =
            apart || !controller::channels_are_lowest(entries) || !channels.is_power_of_two();
        let wide = if by_line {
            1
        } else {
            channels.min(LINE / bytes)
        };
        let bursts = LINE / bytes / wide;
        if wide > 1 {
            keys.notes.push(format!(
                "a line of {LINE} bytes lies in {wide} channels, which act as one: commands are counted once for {wide}"
            ));
        }
        if bursts > 1 {
            let said = format!("a line of {LINE} bytes is {bursts} of its bursts, each a request");
            keys.notes.push(said);
        }
        let lines = columns / standard.prefetch * bytes * wide / LINE;
        if lines == 0 {
            let problem = format!("a row of {columns} columns holds no line of {LINE} bytes");
            return entries.fault("org.column", problem, "give more columns");
        }
        let (sids, bankgroups) = (count("sid", 1)?, count("bankgroup", 1)?);
        let banks = sids * bankgroups * count("bank", 8)?;
        let groups = match standard.name {
            "GDDR7" => count("bank", 8)?,
            _ => sids * bankgroups,
        };
        let ranks = count("rank", 1)?;
        let fits = halves == 1 || ranks * halves * banks <= MAX_BANKS as u64;
        if !fits {
            keys.notes.push(format!(
                "the {halves} pseudo-channels of a channel are channels here, with a command bus each"
            ));
        }
        let within = if fits { halves } else { 1 };
        let of_command = |at: usize| entries.whole(&format!("command_cycles.{at}"), 1);
        let cycles = [0, standard.precharge, standard.column].map(of_command);
        let [activate, precharge, column] = cycles;
        let cycles = [activate?, precharge?, column?];
        Ok(Shape {
            bursts,
            channels: channels / wide * (halves / within),
            ranks: ranks * within,
            banks,
            groups,
            lines,
            halves: within > 1,
            cycles,
            // The clock of its file has the cycles of both edges.
            both_edges: ["HBM3", "HBM4"].contains(&standard.name) && cycles[0] > 1,
            stacks: sids,
        })
    }
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

fn geometry(entries: &Entries, keys: &mut MachineKeys, shape: &Shape) -> Result<()> {
    for (ours, count, from) in [
        ("channels", shape.channels, "org.channel"),
        ("ranks", shape.ranks, "org.rank"),
        ("banks", shape.banks, "org.bank"),
        ("rows", entries.count("org.row", 1)?, "org.row"),
        ("columns", shape.lines, "org.column"),
        ("groups", shape.groups, "org.bankgroup"),
    ] {
        keys.put(&format!("geometry.{ours}"), count, from);
    }
    Ok(())
}

impl Leaf {
    fn ends(&self, names: &[&str]) -> bool {
        let path = self.path.iter().map(String::as_str);
        path.skip(self.path.len().saturating_sub(names.len()))
            .eq(names.iter().copied())
    }
}
