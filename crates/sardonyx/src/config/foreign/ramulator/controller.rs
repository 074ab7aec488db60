//! Ramulator's controllers: the order of addresses, the page policy and the queues.

use super::super::{Entries, MachineKeys};
use super::Shape;
use crate::config::error::{ConfigError, Result};

const MAPPER: &str = "addrmapper.impl";

/// Whether successive bursts lie in successive channels, in 2.1 by a mapper of channels.
pub(super) fn channels_are_lowest(entries: &Entries) -> bool {
    let by_mapper = entries.all.contains_key("channelmapper.impl");
    by_mapper || entries.word(MAPPER, "RoBaRaCoCh") != "ChRaBaRoCo"
}

/// Sets the order of addresses. Pseudo-channels lie above the column.
fn mapping(entries: &Entries, keys: &mut MachineKeys, shape: &Shape) -> Result<()> {
    let theirs = entries.word(MAPPER, "RoBaRaCoCh");
    let halves = entries.count("org.pseudochannel", 1)? > 1 && !shape.halves;
    let halves_alone = halves && entries.count("org.channel", 1)? == 1;
    if halves && !halves_alone {
        let said = "pseudo-channels lie below the column, beside the channel";
        keys.notes.push(said.to_owned());
    }
    if entries.whole("channelmapper.interleavebits", 0)? > 0 {
        let said = "interleave_bits: successive lines lie in successive channels";
        keys.notes.push(said.to_owned());
    }
    let ours = match theirs.as_str() {
        "ChRaBaRoCo" if channels_are_lowest(entries) && !halves_alone => {
            "rank:group:bank:row:column:channel"
        }
        "ChRaBaRoCo" => "channel:rank:group:bank:row:column",
        _ if halves_alone => "row:bank:rank:channel:column",
        _ => "row:bank:rank:column:channel",
    };
    if !["RoBaRaCoCh", "ChRaBaRoCo"].contains(&theirs.as_str()) {
        let said = format!("addresses are in the order of RoBaRaCoCh, not of {theirs}");
        keys.notes.push(said);
    }
    keys.put("mapping", ours, MAPPER);
    Ok(())
}

/// Sets what Ramulator's controllers of HBM, GDDR7 and LPDDR do besides.
fn commands(entries: &Entries, keys: &mut MachineKeys, shape: &Shape) -> Result<()> {
    const CONTROLLER: &str = "controllers.impl";
    let controller = entries.word(CONTROLLER, &entries.word("controller.impl", "Generic"));
    if controller.starts_with("HBM") || controller == "GDDR7" {
        keys.put("queues.row_bus", true, CONTROLLER);
    }
    let names = ["activate", "precharge", "column"];
    for (name, cycles) in names.into_iter().zip(shape.cycles) {
        keys.put(&format!("queues.{name}_cycles"), cycles, CONTROLLER);
    }
    if shape.halves {
        keys.put("queues.rank_buses", true, "org.pseudochannel");
    }
    if shape.both_edges {
        keys.put("queues.rising_edges", true, "command_cycles.0");
    }
    if shape.stacks > 1 {
        keys.put("queues.stacks", shape.stacks, "org.sid");
    }
    if controller.starts_with("LPDDR") {
        const SECOND: &str = "timing.nAAD";
        const CLOCK: &str = "timing.nWCKPST";
        keys.put("queues.second_activate", entries.whole(SECOND, 0)?, SECOND);
        let always = entries.word("controllers.wcksyncmode", "need_sync") == "always_on";
        // 0 cycles after a burst are 1 here, where 0 stands for a clock that always runs.
        let stops = if always {
            0
        } else {
            entries.whole(CLOCK, 1)?.max(1)
        };
        keys.put("queues.data_clock", stops, CLOCK);
    }
    Ok(())
}

/// Sets the order of addresses, the page policy and the queues. `ddr4-2400` has first-ready scheduling, as FRFCFS is.
pub(super) fn read(entries: &Entries, keys: &mut MachineKeys, shape: &Shape) -> Result<()> {
    const POLICY: &str = "rowpolicy.impl";
    mapping(entries, keys, shape)?;
    let page = match entries.word(POLICY, "OpenRowPolicy") {
        policy if policy.starts_with("Open") => "open",
        policy => {
            keys.notes.push(format!(
                "{policy} is a closed page here: a row closes when nothing queued wants it"
            ));
            "closed"
        }
    };
    keys.put("queues.page", page, POLICY);
    let scheduler = entries.word("scheduler.impl", "FRFCFS");
    if scheduler != "FRFCFS" {
        let said = format!("accesses are scheduled first ready, first come, not by {scheduler}");
        keys.notes.push(said);
    }
    keys.put("queues.scheduler", "fr-fcfs", "scheduler.impl");
    let named = |name: &str| {
        let ends = |key: &&String| key.ends_with(&format!(".{name}"));
        entries.all.keys().find(ends).cloned().unwrap_or_default()
    };
    // An entry of theirs is a burst.
    let bursts = shape.bursts;
    let reads = (entries.count(&named("readbuffersize"), 32)? / bursts).max(2);
    let writes = (entries.count(&named("writebuffersize"), 32)? / bursts).max(2);
    let share = |name: &str, otherwise: f64| {
        let share = entries.real(&named(name))?.unwrap_or(otherwise);
        Ok::<f64, ConfigError>(share.min(1.0) * writes as f64)
    };
    let high = (share("wrhighwatermark", 0.8)?.floor() as u64 + 1).min(writes);
    let low = (share("wrlowwatermark", 0.2)?.ceil() as u64).max(1) - 1;
    for (key, value) in [
        ("reads", reads),
        ("writes", writes),
        ("high_watermark", high),
        ("low_watermark", low.min(high - 1)),
    ] {
        keys.put(&format!("queues.{key}"), value, "impl");
    }
    keys.put("queues.idle_writes", true, "impl");
    keys.put("queues.active", true, "impl");
    keys.put("queues.passing", true, "impl");
    keys.put("queues.bursts", bursts, "org.channel_width");
    commands(entries, keys, shape)
}
