//! The KSM of the running kernel, driven over seeded random mixes and compared with the model pass by pass: eleven
//! counters and the page frames. The pages belong to a few processes, some of which exit between two passes; some fork,
//! and the children continue by themselves; others lose pages, which come back when they are written. It needs root,
//! python3, and that nobody else uses KSM meanwhile. The knobs are restored however it ends, short of SIGKILL.

mod holder;
mod kernel;
mod mix;

use std::collections::HashSet;
use std::fs::{self, File};
use std::ops::Range;

use rustix::fs::{FlockOperation, flock};
use sardonyx_merge::images::{ImageError, ModelMemory};
use sardonyx_merge::ksm::settings::{self, Knobs, Preset};
use sardonyx_merge::ksm::{Ksm, KsmCounters, Maps, Software};
use sardonyx_merge::{Page, PageBytes};
use sardonyx_property::{count, seed};

use holder::Holder;
use kernel::{
    KSM, LONG_MS, Restore, Result, available, error, number, one_pass, stop, thread_ns, write,
};
use mix::{Life, RandomMix};

/// The kernel's counters in sysfs; those that only grow are counted from `start`.
fn counters(start: &KsmCounters, holders: &[Holder]) -> Result<KsmCounters> {
    let count = |name| number(name).map(|value| value as u64);
    let [shared, sharing, unshared, volatile] = [
        count("pages_shared")?,
        count("pages_sharing")?,
        count("pages_unshared")?,
        count("pages_volatile")?,
    ];
    Ok(KsmCounters {
        pages_shared: shared,
        pages_sharing: sharing,
        pages_unshared: unshared,
        pages_volatile: volatile,
        pages_skipped: count("pages_skipped")? - start.pages_skipped,
        pages_scanned: count("pages_scanned")? - start.pages_scanned,
        ksm_zero_pages: count("ksm_zero_pages")?,
        stable_node_chains: count("stable_node_chains")?,
        stable_node_dups: count("stable_node_dups")?,
        general_profit: number("general_profit")?,
        rmap_items: holders.iter().map(Holder::items).sum::<Result<u64>>()?,
    })
}

fn frames(holders: &[Holder]) -> Result<u64> {
    let mut all = HashSet::new();
    for holder in holders {
        all.extend(holder.frames()?);
    }
    all.remove(&0);
    Ok(all.len() as u64)
}

/// Has the processes fork, write, lose pages and exit as the mix says, and the model follow.
fn change(
    mix: &mut RandomMix,
    pass: usize,
    mut holders: Vec<Holder>,
    model: &mut Ksm<ModelMemory, Software>,
) -> Result<Vec<Holder>> {
    if pass > 1 {
        forks(mix, pass, &mut holders, model)?;
        lose(mix.losses(), &mut holders, model)?;
        let writes = mix.writes(&model.contents.own);
        write_pages(writes, &mut holders, model)?;
    }
    holders.iter_mut().try_for_each(Holder::flush)?;
    let exits = |holder: &Holder| {
        let mut processes = mix.processes.iter();
        processes.any(|life| life.exits == Some(pass) && life.pages == holder.pages)
    };
    let (gone, left): (Vec<Holder>, Vec<Holder>) = holders.into_iter().partition(exits);
    let pages: Vec<Range<Page>> = gone.iter().map(|holder| holder.pages.clone()).collect();
    // Processes end in this order, because the kernel's list of those that it will forget is in the order of their
    // exits.
    gone.into_iter().for_each(drop);
    model.exit(&pages);
    Ok(left)
}

fn forks(
    mix: &RandomMix,
    pass: usize,
    holders: &mut Vec<Holder>,
    model: &mut Ksm<ModelMemory, Software>,
) -> Result<()> {
    for life in &mix.processes {
        let Some((parent, _)) = life.forked.filter(|(_, before)| *before == pass) else {
            continue;
        };
        let from = mix.processes[parent].pages.clone();
        let mut living = holders.iter_mut();
        if let Some(parent) = living.find(|holder| holder.pages == from) {
            let child = parent.fork(life.pages.clone())?;
            holders.push(child);
            for (parent, child) in from.zip(life.pages.clone()) {
                model.contents.own[child as usize] = model.contents.own[parent as usize];
                model.fork(parent, child);
            }
        }
    }
    Ok(())
}

fn lose(
    losses: Vec<(u32, Range<Page>)>,
    holders: &mut [Holder],
    model: &mut Ksm<ModelMemory, Software>,
) -> Result<()> {
    for (how, pages) in losses {
        let mut living = holders.iter_mut();
        if let Some(holder) = living.find(|holder| holder.pages.contains(&pages.start)) {
            holder.lose(how, pages.clone())?;
            pages.for_each(|page| model.unmap(page));
        }
    }
    Ok(())
}

fn write_pages(
    writes: Vec<(Page, PageBytes)>,
    holders: &mut [Holder],
    model: &mut Ksm<ModelMemory, Software>,
) -> Result<()> {
    for (page, bytes) in writes {
        let mut living = holders.iter_mut();
        if let Some(holder) = living.find(|holder| holder.pages.contains(&page)) {
            holder.write(page, &bytes)?;
            if model.maps(page) == Maps::Nothing {
                model.map(page);
            }
            model.write(page);
            model.contents.own[page as usize] = bytes;
        }
    }
    Ok(())
}

/// Drives the kernel and the model over mix number `index` of a seed.
fn compare(seed: u64, index: u64) -> Result<()> {
    let mut mix = RandomMix::new(seed, index);
    stop()?;
    // A sleeping thread is woken by a value that it has not seen, and finds that it shall not run.
    let sleep_ms = LONG_MS + 2 * index;
    write("sleep_millisecs", sleep_ms + 1)?;
    let mut settings = Preset::Linux6.settings();
    for (knob, key, value) in &mix.sets {
        write(knob, value)?;
        settings::set(&mut settings, &settings::rows(), key, value).map_err(ImageError)?;
    }
    let start = KsmCounters {
        pages_skipped: number("pages_skipped")? as u64,
        pages_scanned: number("pages_scanned")? as u64,
        ..KsmCounters::default()
    };
    let first = mix.start();
    let born = |life: &&Life| life.forked.is_none();
    let ranges = mix.processes.iter().filter(born);
    let ranges: Vec<Range<Page>> = ranges.map(|life| life.pages.clone()).collect();
    let mapped: Vec<Page> = ranges.iter().cloned().flatten().collect();
    let holders = ranges.into_iter().map(|pages| Holder::new(pages, &first));
    let mut holders = holders.collect::<Result<Vec<Holder>>>()?;
    let knobs = Knobs::from_settings(&settings);
    let search = Software::new(knobs.checksum);
    let mut model = Ksm::new(ModelMemory::new(first), search, knobs, mix.pages);
    mapped.into_iter().for_each(|page| model.map(page));
    let cpu = thread_ns();
    for pass in 1..=mix.passes {
        holders = change(&mut mix, pass, holders, &mut model)?;
        one_pass(pass, sleep_ms)?;
        model.pass(&mut |_| true);
        let of_kernel = (counters(&start, &holders)?, frames(&holders)?);
        let of_model = (model.counters(), model.frames());
        if of_kernel != of_model {
            let of = format!("seed {seed}, mix {index} ({:?}), pass {pass}", mix.sets);
            return Err(error(format!(
                "{of}: kernel {of_kernel:?}, model {of_model:?}"
            )));
        }
    }
    let cpu = thread_ns()
        .zip(cpu)
        .map(|(after, before)| after.saturating_sub(before));
    let a_page = |ns: u64| ns as f64 / model.counters().pages_scanned.max(1) as f64;
    println!(
        "mix {index}: {} passes over {} pages; ns a page scanned: kernel {:?}, model {:.0}",
        mix.passes,
        mix.pages,
        cpu.map(|ns| a_page(ns).round()),
        a_page(model.cpu_ns())
    );
    stop()
}

#[test]
#[ignore = "machine: drives the running kernel's KSM, as root"]
fn the_running_kernel_counts_as_the_model_does() {
    let compared = || {
        // Other checkouts may test on the same machine.
        let run = File::open(format!("{KSM}/run")).map_err(error)?;
        flock(&run, FlockOperation::LockExclusive).map_err(error)?;
        let knobs = || ["run", "sleep_millisecs", "smart_scan"].map(|knob| kernel::read(knob).ok());
        let before = knobs();
        let restore = Restore::new()?;
        if fs::exists(format!("{KSM}/advisor_mode")).unwrap_or(false) {
            write("advisor_mode", "none")?;
        }
        write("pages_to_scan", 4_000_000_000u64)?;
        write("stable_node_chains_prune_millisecs", 0)?;
        let mixes = 0..count(2, 20);
        mixes
            .into_iter()
            .try_for_each(|index| compare(seed().unwrap_or(3), index))?;
        drop(restore);
        assert_eq!(knobs(), before, "the knobs are as they were");
        Ok(())
    };
    match available() {
        Err(why) => println!("skipped: {why}"),
        Ok(()) => compared().unwrap_or_else(|problem: ImageError| panic!("{problem}")),
    }
}
