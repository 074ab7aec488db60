//! Checks combinations: values that are each in range and impossible together. Every error names the key to change and
//! where it was set. Left out: ranges of single keys, which `layers` checks first.

use crate::controller::designs;
use crate::line::LINE_BYTES;
use crate::medium::cells::Coding;
use crate::medium::mapping::Field;
use crate::medium::near::{
    BLOCK_LINES, FORM, NearForm, NearTables, SURVIVES, TABLES, TAGS, WAYS, counted_on, on_chip,
};
use crate::medium::params::{
    ACTIVE, COMMANDS, MAX_BANKS, MediumParams, RANK_BUSES, STACKS, Scheduler,
};
use crate::medium::pausing::POLICY;
use crate::settings::CacheParams;
use crate::units::Time;

use super::Machine;
use super::error::Result;
use super::layers::Layers;

/// Most lines a medium may hold: 40-bit line numbers (ESD's AMT entry), 64 TB.
const MAX_LINES: u128 = 1 << 40;

pub(super) fn consistent(machine: &Machine, layers: &Layers) -> Result<()> {
    geometry(machine, layers)?;
    queues(machine, layers)?;
    cells(machine, layers)?;
    pausing(machine, layers)?;
    timing(machine, layers)?;
    cache_levels(machine, layers)?;
    near(machine, layers)?;
    for key in designs::caches() {
        let names = [key.bytes.row.name, key.ways.row.name];
        cache(names, key.entry_bytes, machine.settings.cache(key), layers)?;
    }
    Ok(())
}

/// Refuses a cache of lines whose size is no whole number of sets. A table of other entries must hold at least one set.
fn cache(
    [bytes, ways]: [&str; 2],
    entry_bytes: u64,
    cache: CacheParams,
    layers: &Layers,
) -> Result<()> {
    let set = entry_bytes * cache.ways as u64;
    let of_lines = entry_bytes == LINE_BYTES as u64;
    if cache.bytes >= set && (!of_lines || cache.bytes.is_multiple_of(set)) {
        return Ok(());
    }
    let CacheParams {
        bytes: size,
        ways: many,
    } = cache;
    let (problem, amount) = if of_lines {
        let problem = format!("{size} bytes are no whole number of sets of {many} lines");
        (problem, format!("a multiple of {set}"))
    } else {
        let problem = format!("{size} bytes do not hold one set of {many} entries");
        (problem, format!("at least {set} bytes"))
    };
    Err(layers.fault(
        &[bytes, ways],
        problem,
        format!("give {amount}, or fewer {ways}"),
    ))
}

fn geometry(machine: &Machine, layers: &Layers) -> Result<()> {
    let g = &machine.engine.medium.geometry;
    let (ranks, banks) = (g.ranks, g.banks);
    if ranks * banks > MAX_BANKS as u64 {
        return Err(layers.fault(
            &["medium.geometry.banks", "medium.geometry.ranks"],
            format!("{ranks} ranks x {banks} banks are more than {MAX_BANKS} a channel"),
            "use fewer of either, or more channels",
        ));
    }
    let groups = machine.engine.medium.groups.count;
    if groups > banks {
        return Err(layers.fault(
            &["medium.geometry.groups", "medium.geometry.banks"],
            format!("{groups} groups of {banks} banks"),
            "use as many groups as banks, or fewer",
        ));
    }
    let order = machine.engine.medium.mapping.fields;
    let at = |wanted| order.iter().position(|field| *field == wanted);
    if !g.channels.is_power_of_two() && at(Field::Channel) < at(Field::Row) {
        return Err(layers.fault(
            &["medium.geometry.channels", "medium.mapping"],
            format!(
                "{} channels, no power of two, lie above the row",
                g.channels
            ),
            "use a power of two, or an order with the channel behind the row",
        ));
    }
    let parts = [g.channels, ranks, banks, g.rows, g.columns];
    let lines: u128 = parts.map(u128::from).iter().product();
    if lines > MAX_LINES {
        return Err(layers.fault(
            &[
                "medium.geometry.rows",
                "medium.geometry.columns",
                "medium.geometry.channels",
            ],
            format!("the medium would hold {lines} lines"),
            "at most 2^40 lines (64 TB) fit the mapping entries; use fewer rows",
        ));
    }
    Ok(())
}

fn cells(machine: &Machine, layers: &Layers) -> Result<()> {
    let medium = &machine.engine.medium;
    let Some(cells) = &medium.cells else {
        return Ok(());
    };
    if medium.buffer.is_some() {
        return Err(layers.fault(
            &["medium.cells.coding", "medium.buffer.blocks"],
            "cells behind a module's buffer are written by the block, at one rate".to_owned(),
            "use a machine without medium.buffer.blocks, or leave medium.cells out",
        ));
    }
    if cells.bits > 1 && cells.coding == Coding::FlipNWrite {
        return Err(layers.fault(
            &["medium.cells.coding", "medium.cells.bits"],
            "Flip-N-Write compares bits, and a cell of two bits is programmed whole".to_owned(),
            "use changed, or cells of one bit",
        ));
    }
    let (pulse, untimed) = (&medium.timing.tWP, cells.set.max(cells.reset) == Time::ZERO);
    if cells.bits > 1 && *pulse == 0 && cells.set.min(cells.reset) == Time::ZERO {
        return Err(layers.fault(
            &["medium.cells.bits", "medium.timing.tWP"],
            "a SET or a RESET of cells of two bits takes no time".to_owned(),
            "give medium.cells.set_ns and medium.cells.reset_ns, or tWP in the place of tWR",
        ));
    }
    if cells.budget > 0 && *pulse == 0 && untimed {
        return Err(layers.fault(
            &["medium.cells.budget", "medium.timing.tWP"],
            "a power budget makes rounds of an array write that takes no time".to_owned(),
            "give medium.cells.set_ns or medium.cells.reset_ns, or tWP in the place of tWR",
        ));
    }
    Ok(())
}

/// Refuses interruptions of writes where writes take no time in banks.
fn pausing(machine: &Machine, layers: &Layers) -> Result<()> {
    let medium = &machine.engine.medium;
    let (policy, fault) = (
        POLICY.name(),
        |keys: &[&str], problem: &str, remedy: &str| {
            Err(layers.fault(keys, problem.to_owned(), remedy))
        },
    );
    let (Some(pausing), cells) = (medium.pausing, medium.cells) else {
        return Ok(());
    };
    if medium.buffer.is_some() {
        return fault(
            &[policy, "medium.buffer.blocks"],
            "a module's buffer writes blocks for which no read waits",
            "use a machine without medium.buffer.blocks, or leave medium.pausing out",
        );
    }
    let timed = cells.is_some_and(|cells| cells.set.max(cells.reset) > Time::ZERO);
    if medium.timing.tWP == 0 && !timed {
        return fault(
            &[policy, "medium.timing.tWP"],
            "an array write that takes no time cannot be interrupted",
            "give medium.timing.tWP a value in the place of tWR",
        );
    }
    if pausing.threshold > 0 && cells.is_some_and(|cells| cells.coding != Coding::Whole) {
        return fault(
            &[policy, "medium.cells.coding"],
            "which cells a cancelled write has changed is not known",
            "use pause, or whole",
        );
    }
    Ok(())
}

/// Refuses near media that are more than banks, and a cache on this side of a link.
fn near(machine: &Machine, layers: &Layers) -> Result<()> {
    let Some(near) = &machine.engine.near else {
        return Ok(());
    };
    if near.buffer.is_some() || near.cells.is_some() || near.pausing.is_some() {
        return Err(layers.fault(
            &[
                "near.medium.buffer.blocks",
                "near.medium.cells.coding",
                FORM.name(),
            ],
            "the near medium has cells or a buffer".to_owned(),
            "name a machine of DRAM, such as near.extends=ddr4-2400",
        ));
    }
    if machine.settings.get(&TABLES) != NearTables::None && !counted_on(&machine.settings) {
        return Err(layers.fault(
            &[TABLES.name(), SURVIVES.name()],
            "a power cut loses the near medium, and no line is found or decrypted again without its table".to_owned(),
            "set near.survives=yes, a module that reserve power saves, or leave the tables where they are",
        ));
    }
    if on_chip(&machine.settings) {
        near_blocks(machine, near.geometry.lines(), layers)?;
    }
    if machine.engine.link.is_some() && machine.settings.get(&FORM) == NearForm::Cache {
        return Err(layers.fault(
            &[FORM.name(), "link.down_ns"],
            "a cache before a memory behind a link is not modelled".to_owned(),
            "use near.form=beside, or a machine without a link",
        ));
    }
    Ok(())
}

/// Refuses a cache in a near medium of `lines` lines that is smaller than a set, or whose tags a power cut loses alone.
fn near_blocks(machine: &Machine, lines: u64, layers: &Layers) -> Result<()> {
    if counted_on(&machine.settings) {
        return Err(layers.fault(
            &[SURVIVES.name(), TAGS.name()],
            "tags on chip do not outlive a power cut, and no line is found again without them"
                .to_owned(),
            "set near.tags=beside, or near.survives=no",
        ));
    }
    let (ways, block) = (
        machine.settings.get(&WAYS),
        machine.settings.get(&BLOCK_LINES),
    );
    if ways * block > lines {
        return Err(layers.fault(
            &[WAYS.name(), BLOCK_LINES.name()],
            format!("a set of {ways} blocks of {block} lines is more than the {lines} lines of the near medium"),
            "lower near.ways, or name a larger machine in near.extends",
        ));
    }
    Ok(())
}

fn queues(machine: &Machine, layers: &Layers) -> Result<()> {
    let queues = &machine.engine.medium.queues;
    let (writes, high, low) = (queues.writes, queues.high_watermark, queues.low_watermark);
    if high > writes {
        return Err(layers.fault(
            &["medium.queues.high_watermark", "medium.queues.writes"],
            format!("a high watermark of {high} is more than the {writes} write entries"),
            "a drain begins when the queue is full at the latest: lower high_watermark or raise writes",
        ));
    }
    if low >= high {
        return Err(layers.fault(
            &[
                "medium.queues.low_watermark",
                "medium.queues.high_watermark",
            ],
            format!("a low watermark of {low} is not below the high one, {high}"),
            "a drain ends below where it begins: lower low_watermark",
        ));
    }
    let medium = &machine.engine.medium;
    let (commands, active) = (medium.command_queues.entries > 0, medium.active.is_some());
    let others = [
        (
            "medium.queues.scheduler",
            queues.scheduler == Scheduler::Fcfs,
        ),
        ("medium.pausing.policy", medium.pausing.is_some()),
        ("medium.buffer.blocks", medium.buffer.is_some()),
        (COMMANDS.name(), commands && active),
    ];
    let clash = others.iter().find(|(_, there)| *there);
    let (key, what, remedy) = match active {
        true => (
            ACTIVE.name(),
            "active accesses",
            "set medium.queues.active to false",
        ),
        false => (
            COMMANDS.name(),
            "queues of commands",
            "set medium.queues.commands to 0",
        ),
    };
    if (active || commands)
        && let Some((other, _)) = clash
    {
        return Err(layers.fault(
            &[key, other],
            format!("{other} and {what} both say which access goes next"),
            remedy,
        ));
    }
    active_queue(medium, layers)
}

/// Refuses what would do nothing beside the medium's ranks and groups.
fn active_queue(medium: &MediumParams, layers: &Layers) -> Result<()> {
    let Some(queue) = medium.active else {
        return Ok(());
    };
    if queue.rank_buses && medium.geometry.ranks == 1 {
        return Err(layers.fault(
            &[RANK_BUSES.name(), "medium.geometry.ranks"],
            "one rank has the data bus for itself".to_owned(),
            "set medium.queues.rank_buses to false",
        ));
    }
    if queue.stacks > medium.groups.count {
        return Err(layers.fault(
            &[STACKS.name(), "medium.geometry.groups"],
            format!(
                "{} stacks are more than the {} bank groups of a rank",
                queue.stacks, medium.groups.count
            ),
            "set medium.queues.stacks to 1",
        ));
    }
    Ok(())
}

fn timing(machine: &Machine, layers: &Layers) -> Result<()> {
    let t = &machine.engine.medium.timing;
    let closed = t.tBURST + t.tRTP;
    if closed < t.tCCD {
        return Err(layers.fault(
            &[
                "medium.timing.tRTP",
                "medium.timing.tBURST",
                "medium.timing.tCCD",
            ],
            format!("tBURST + tRTP ({closed}) is less than tCCD ({})", t.tCCD),
            "the row would be closed before the read: raise tRTP",
        ));
    }
    if t.tCL + t.tBURST + t.tRTRS < t.tCWD {
        return Err(layers.fault(
            &[
                "medium.timing.tCWD",
                "medium.timing.tCL",
                "medium.timing.tBURST",
            ],
            format!("tCWD ({}) is more than tCL + tBURST + tRTRS", t.tCWD),
            "a write would be ordered before the read that it follows: lower tCWD",
        ));
    }
    let (length, every) = (t.tRFC, t.tREFI);
    if every > 0 && (length == 0 || length >= every) {
        return Err(layers.fault(
            &["medium.timing.tRFC", "medium.timing.tREFI"],
            format!("a refresh of {length} cycles every {every} is impossible"),
            "give 0 < tRFC < tREFI, or tREFI = 0 for a medium without refresh",
        ));
    }
    refreshes(machine, layers)
}

/// The sets of a rank take turns.
fn refreshes(machine: &Machine, layers: &Layers) -> Result<()> {
    const BANKS: &str = "medium.refresh.banks";
    let medium = &machine.engine.medium;
    let (of, every, banks) = (
        &medium.refreshes,
        medium.timing.tREFI,
        medium.geometry.banks,
    );
    if of.banks > 0 && !banks.is_multiple_of(of.banks) {
        let problem = format!("sets of {} are no part of {banks} banks", of.banks);
        return Err(layers.fault(
            &[BANKS, "medium.geometry.banks"],
            problem,
            "give a part of them",
        ));
    }
    let sets = banks / of.together(banks, &medium.groups);
    if every > 0
        && of.tRFCsb > 0
        && (of.apart().saturating_mul(sets) >= every || of.tRFCsb >= every)
    {
        return Err(layers.fault(
            &["medium.timing.tRFCsb", "medium.timing.tREFI"],
            format!(
                "{sets} refreshes of {} cycles every {every} are impossible",
                of.apart()
            ),
            "give a tRFCsb below tREFI / (banks / groups), or 0 for refreshes of all banks at once",
        ));
    }
    Ok(())
}

fn cache_levels(machine: &Machine, layers: &Layers) -> Result<()> {
    let c = &machine.caches;
    for (section, level) in [("l1", c.l1), ("l2", c.l2), ("llc", c.llc)] {
        let (bytes, ways) = (level.bytes, level.ways);
        if section != "l2" || bytes > 0 {
            let names = ["bytes", "ways"].map(|key| format!("caches.{section}.{key}"));
            let names = names.each_ref().map(String::as_str);
            cache(
                names,
                LINE_BYTES as u64,
                CacheParams { bytes, ways },
                layers,
            )?;
        }
    }
    let last = c.llc.bytes;
    if last < c.l1.bytes.max(c.l2.bytes) {
        return Err(layers.fault(
            &["caches.llc.bytes", "caches.l2.bytes", "caches.l1.bytes"],
            format!("a last level of {last} bytes is smaller than a private one"),
            "it holds what any core has: make it larger",
        ));
    }
    Ok(())
}
