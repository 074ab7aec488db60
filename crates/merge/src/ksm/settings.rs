//! The keys of the merge, the kernel's knobs under the kernel's names, and the values of each preset.

use crate::Checksum;
use crate::keys::row_list;
use sardonyx::names::did_you_mean;
use sardonyx::settings::{Allowed, Key, Row, Settings, Value, Word, keys, words};

/// The place in a scan at which the checksum is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// Before both trees: kernels of today.
    GateFirst,
    /// Between the stable and the unstable tree: older kernels, and Algorithm 1 of PageForge's paper.
    StableFirst,
}

words!(Order {
    "gate-first" => GateFirst,
    "stable-first" => StableFirst,
});

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Advisor {
    /// The operator sets the knobs.
    None,
    /// The kernel sets them so that a pass takes the time asked for.
    ScanTime,
}

words!(Advisor {
    "none" => None,
    "scan-time" => ScanTime,
});

const NO_LIMIT: u64 = u32::MAX as u64;
const MOST_MS: u64 = 1_000_000_000;

keys! {
    CHECKSUM: Checksum = word("ksm.checksum", "xxhash64"),
        Source("Linux 6.18, mm/ksm.c"), "hash that tells whether a page has changed since the last pass";
    ORDER: Order = word("ksm.order", "gate-first"),
        Source("Linux 6.18, mm/ksm.c"), "whether the checksum is looked at before the stable tree or after it";
    SMART_SCAN: bool = flag("ksm.smart_scan", true),
        Source("Linux 6.18"), "pages that have not merged for long are skipped in most passes";
    USE_ZERO_PAGES: bool = flag("ksm.use_zero_pages", false),
        Source("Linux 6.18"), "pages of zeros are mapped to the kernel's own zero page";
    MAX_PAGE_SHARING: u32 = int("ksm.max_page_sharing", (2, NO_LIMIT), 256),
        Source("Linux 6.18"), "mappings that a merged frame may have; then a copy is kept";
    PAGES_TO_SCAN: u64 = int("ksm.pages_to_scan", (1, NO_LIMIT), 100),
        Source("Linux 6.18"), "pages between two sleeps";
    SLEEP_MILLISECS: u64 = int("ksm.sleep_millisecs", (0, MOST_MS), 20),
        Source("Linux 6.18"), "how long the thread sleeps then";
    TICK_US: u64 = int("ksm.tick_us", (0, 1_000_000), 4_000),
        Assumed("CONFIG_HZ=250, as Debian's and Ubuntu's kernels have it; --kernel host reads it. 0: sleeps are exact"),
        "the kernel's tick, at which sleeps end"
        in Between("1000", "10000", "CONFIG_HZ=1000 and 100");
    PRUNE_MILLISECS: u32 = int("ksm.stable_node_chains_prune_millisecs", (0, MOST_MS), 0),
        Assumed("the kernel's default is 2000; 0 looks at all of a chain in each walk, as the comparison with the kernel does"),
        "how often a chain of copies is looked at as a whole"
        in Between("0", "2000", "up to the kernel's default");
    ADVISOR_MODE: Advisor = word("ksm.advisor_mode", "none"),
        Source("Linux 6.18"), "whether the kernel sets pages_to_scan itself";
    ADVISOR_TARGET_SCAN_TIME: u64 = int("ksm.advisor_target_scan_time", (1, MOST_MS), 200),
        Source("Linux 6.18"), "seconds that a pass should take";
    ADVISOR_MAX_CPU: u64 = int("ksm.advisor_max_cpu", (1, 100), 70),
        Source("Linux 6.18"), "percent of a processor that the advisor may use";
    ADVISOR_MIN_PAGES: u64 = int("ksm.advisor_min_pages_to_scan", (1, NO_LIMIT), 500),
        Source("Linux 6.18"), "pages_to_scan of the advisor's first pass";
    ADVISOR_MAX_PAGES: u64 = int("ksm.advisor_max_pages_to_scan", (1, NO_LIMIT), 30_000),
        Source("Linux 6.18"), "most that the advisor sets pages_to_scan to";
    VISIT_NS: u64 = int("ksm.visit_ns", (0, 1_000_000), 400),
        Assumed("measured on one x86-64 machine with Linux 6.18: a pass over merged pages"),
        "processor time of finding a page and looking at its state"
        in Between("200", "1200", "half, and three times as long on another processor");
    CHECKSUM_NS: u64 = int("ksm.checksum_ns", (0, 1_000_000), 600),
        Assumed("the same machine: a first pass, less the visit"),
        "processor time of a page's checksum"
        in Between("300", "1800", "half, and three times as long on another processor");
    COMPARE_NS: u64 = int("ksm.compare_ns", (0, 1_000_000), 400),
        Assumed("the same machine: a steady pass over 4,096 unmerged pages, about ten comparisons each"),
        "processor time of one comparison in a tree"
        in Between("200", "1200", "half, and three times as long on another processor");
    MERGE_NS: u64 = int("ksm.merge_ns", (0, 1_000_000), 2_000),
        Assumed("no source: a comparison under write protection, two page tables, two flushes"),
        "processor time of merging a page"
        in Between("500", "8000", "a quarter, and four times as long");
}

pub fn rows() -> Vec<&'static Row> {
    row_list! {
        CHECKSUM ORDER SMART_SCAN USE_ZERO_PAGES MAX_PAGE_SHARING PAGES_TO_SCAN SLEEP_MILLISECS TICK_US
        PRUNE_MILLISECS ADVISOR_MODE ADVISOR_TARGET_SCAN_TIME ADVISOR_MAX_CPU ADVISOR_MIN_PAGES
        ADVISOR_MAX_PAGES VISIT_NS CHECKSUM_NS COMPARE_NS MERGE_NS
    }
}

/// Names of the keys that say how long the thread's work takes where no processor runs it.
pub fn times() -> [&'static str; 5] {
    [&TICK_US, &VISIT_NS, &CHECKSUM_NS, &COMPARE_NS, &MERGE_NS].map(|key| key.row.name)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Preset {
    /// Linux 6.18, whose counters were measured.
    Linux6,
    /// Linux 4.4, as Ubuntu 16.04 has it: PageForge's host.
    Linux44,
    /// Algorithm 1 of PageForge's paper, with its Table 2.
    Paper,
}

words!(Preset {
    "linux-6" => Linux6,
    "linux-4.4" => Linux44,
    "paper" => Paper,
});

impl Preset {
    pub fn named(name: &str) -> Result<Preset, String> {
        let index = Preset::WORDS.iter().position(|word| *word == name);
        let all = [Preset::Linux6, Preset::Linux44, Preset::Paper];
        index.map(|index| all[index]).ok_or_else(|| {
            let near = did_you_mean(name, Preset::WORDS);
            format!(
                "--kernel {name}: there is none; {near}they are {}",
                Preset::WORDS.join(", ")
            )
        })
    }

    pub fn settings(self) -> Settings {
        let mut settings = Settings::default();
        if self == Preset::Linux6 {
            return settings;
        }
        settings.set(&ORDER, Order::StableFirst);
        settings.set(&SMART_SCAN, false);
        settings.set(&MAX_PAGE_SHARING, u32::MAX); // the limit came with Linux 4.13
        settings.set(&CHECKSUM, Checksum::Jhash2);
        if self == Preset::Paper {
            settings.set(&CHECKSUM, Checksum::Jhash2Kilobyte); // 2.1
            settings.set(&PAGES_TO_SCAN, 400); // Table 2
            settings.set(&SLEEP_MILLISECS, 5);
        }
        settings
    }
}

/// Sets what a user wrote as `KEY=VALUE`.
///
/// # Errors
/// An unknown key with the nearest ones, or a value that the key does not take.
pub fn set(
    settings: &mut Settings,
    rows: &[&'static Row],
    key: &str,
    text: &str,
) -> Result<(), String> {
    let names: Vec<&str> = rows.iter().map(|row| row.name).collect();
    let row = rows.iter().find(|row| row.name == key).ok_or_else(|| {
        let near = did_you_mean(key, &names);
        format!(
            "--set {key}: no such key of the merge; {near}they are {}",
            names.join(", ")
        )
    })?;
    let wrong = || format!("--set {key}={text}: give {}", row.kind.range());
    let value = match row.kind {
        Allowed::Int { min, max } => {
            let number: u64 = text.parse().map_err(|_| wrong())?;
            if !(min..=max).contains(&number) {
                return Err(wrong());
            }
            Value::Int(number)
        }
        Allowed::Bool => Value::Bool(match text {
            "true" | "1" => true,
            "false" | "0" => false,
            _ => return Err(wrong()),
        }),
        Allowed::Word(words) => {
            let word = words.iter().find(|word| **word == text).ok_or_else(wrong)?;
            Value::Word(word)
        }
        other => unreachable!("{key} is a key of kind {other:?}"),
    };
    settings.put(row.name, value);
    Ok(())
}

/// Whether the checksum depends on more than a digest of the whole page.
pub fn looks_into_pages(settings: &Settings) -> bool {
    settings.get(&CHECKSUM) == Checksum::Jhash2Kilobyte
}

#[derive(Clone, Debug)]
pub struct Knobs {
    pub checksum: Checksum,
    pub order: Order,
    pub smart_scan: bool,
    pub use_zero_pages: bool,
    pub max_page_sharing: u32,
    /// See [`PAGES_TO_SCAN`]; the advisor changes it.
    pub pages_to_scan: u64,
    pub sleep_millisecs: u64,
    /// Nanoseconds.
    pub tick: u64,
    pub prune_millisecs: u32,
    pub advisor: Advisor,
    /// The advisor's target in seconds, the most percent of a core, and the least and the most pages.
    pub advice: [u64; 4],
    /// Processor time in nanoseconds of a visit, a checksum, a comparison and a merge.
    pub costs: [u64; 4],
}

impl Knobs {
    pub fn from_settings(settings: &Settings) -> Knobs {
        let number = |key: &Key<u64>| settings.get(key);
        let advisor = settings.get(&ADVISOR_MODE);
        Knobs {
            checksum: settings.get(&CHECKSUM),
            order: settings.get(&ORDER),
            smart_scan: settings.get(&SMART_SCAN),
            use_zero_pages: settings.get(&USE_ZERO_PAGES),
            max_page_sharing: settings.get(&MAX_PAGE_SHARING),
            pages_to_scan: match advisor {
                Advisor::None => number(&PAGES_TO_SCAN),
                Advisor::ScanTime => number(&ADVISOR_MIN_PAGES),
            },
            sleep_millisecs: number(&SLEEP_MILLISECS),
            tick: number(&TICK_US) * 1_000,
            prune_millisecs: settings.get(&PRUNE_MILLISECS),
            advisor,
            advice: [
                number(&ADVISOR_TARGET_SCAN_TIME),
                number(&ADVISOR_MAX_CPU),
                number(&ADVISOR_MIN_PAGES),
                number(&ADVISOR_MAX_PAGES),
            ],
            costs: [
                number(&VISIT_NS),
                number(&CHECKSUM_NS),
                number(&COMPARE_NS),
                number(&MERGE_NS),
            ],
        }
    }
}

/// The time at which a thread wakes that goes to sleep at `now` for so many milliseconds; all others are in
/// nanoseconds. A sleep is whole ticks, and ends at the first place of the kernel's timer wheel after them: its level l
/// has places of 8^l ticks, for sleeps of less than 63 x 8^l (Linux 6.18, kernel/time/timer.c).
pub fn wakes(now: u64, millisecs: u64, tick: u64) -> u64 {
    let sleep = millisecs * 1_000_000;
    if tick == 0 || sleep == 0 {
        return now + sleep;
    }
    let ticks = sleep.div_ceil(tick);
    let mut place = 1;
    while ticks >= 63 * place && place < 1 << 24 {
        place *= 8;
    }
    ((now / tick + ticks) / place + 1) * place * tick
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sleeps_end_at_places_of_the_timer_wheel() {
        const MS: u64 = 1_000_000;
        assert_eq!(wakes(7, 20, 0), 7 + 20 * MS);
        assert_eq!(wakes(7, 0, 4 * MS), 7);
        // The sleep is 5 ticks and the one that has begun, at any moment of it.
        assert_eq!(wakes(0, 20, 4 * MS), 24 * MS);
        assert_eq!(wakes(4 * MS - 1, 20, 4 * MS), 24 * MS);
        assert_eq!(wakes(4 * MS, 20, 4 * MS), 28 * MS);
        assert_eq!(wakes(0, 17, 4 * MS), 24 * MS);
        assert_eq!(wakes(0, 20, MS), 21 * MS);
        // 62 ticks belong to the first level, 63 to the second, whose places are eight apart.
        assert_eq!(wakes(0, 62, MS), 63 * MS);
        assert_eq!(wakes(0, 63, MS), 64 * MS);
        assert_eq!(wakes(MS, 63, MS), 72 * MS);
        assert_eq!(wakes(0, 1000, MS), 1024 * MS);
    }
}
