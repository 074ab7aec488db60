//! The keys of the timed machine: the kernel's work on a processor, the moves of its thread, the contents of the
//! virtual machines, and the length of the window. Left out: the needs of a module beside the thread, which its
//! algorithm has.

use crate::keys::row_list;
use sardonyx::settings::{Row, keys, words};

/// The core to which the kernel's thread moves when it wakes up or has used its time slice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ThreadPlacement {
    /// To its last core if that is idle, else to an idle one, else to the next.
    Idle,
    Next,
    Drawn,
}

words!(ThreadPlacement { "idle" => Idle, "next" => Next, "drawn" => Drawn });

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScanAccess {
    /// Through the caches, as any program.
    Cached,
    /// Past the caches (4.3).
    Uncacheable,
}

words!(ScanAccess { "cached" => Cached, "uncacheable" => Uncacheable });

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Where {
    /// On the cores of the virtual machines.
    Shared,
    /// On an in-order core of its own (4.3).
    InOrder,
}

words!(Where { "shared" => Shared, "in-order" => InOrder });

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MergePhase {
    /// The savings have stayed the same for ten passes.
    Settled,
    /// In the middle of the second pass, the first in which pages can merge.
    Merging,
}

words!(MergePhase { "settled" => Settled, "merging" => Merging });

const MANY: u64 = 1_000_000;

keys! {
    PLACEMENT: ThreadPlacement = word("thread.placement", "idle"),
        Assumed("the paper: the scheduler keeps migrating it. Linux prefers the last core, then an idle one"),
        "where the kernel's thread goes when it wakes up or its slice is over";
    SLICE_US: u64 = int("thread.slice_us", (1, MANY), 3_000),
        Assumed("Linux 4.4's sched_min_granularity for eight cores and more, 0.75 ms x 4; the paper: queries queue until the thread migrates away, not when that is"),
        "microseconds that it keeps a core for which others wait, and on until the next tick"
        in Between("750", "20000", "from one sched_min_granularity without the factor of eight cores to an interval of 400 pages");
    TICK_US: u64 = int("thread.tick_us", (1, MANY), 4_000),
        Assumed("Ubuntu 16.04's kernel has HZ=250"),
        "microseconds between two ticks, at which the scheduler looks at the slice"
        in Between("1000", "10000", "HZ from 1000 to 100");
    PREEMPTED: bool = flag("thread.preempted", true),
        Assumed("Linux 4.4: ksmd has nice 5, so a guest that wakes preempts it once it is far enough ahead"),
        "a query that arrives at an idle guest takes the core from it at the next page line";
    PREEMPTED_AFTER_US: u64 = int("thread.preempted_after_us", (0, MANY), 1_300),
        Assumed("Linux 4.4's sched_wakeup_granularity for eight cores and more, 1 ms x 4, which a thread of nice 5 runs through three times as fast (weight 335 of 1024)"),
        "microseconds that it has had the core for at least when a query preempts it"
        in Between("0", "4000", "from at once to the granularity of a thread without a nice value");
    SWITCH: u32 = int("thread.switch_instructions", (0, MANY), 2_000),
        Assumed("no source: a microsecond for the scheduler and the switch there and back"),
        "instructions each time that it gets a core"
        in Between("500", "6000", "a quarter, and three times as many");
    COMPARE_LINE: u32 = int("ksm.compare_line_instructions", (1, MANY), 384),
        Assumed("Linux 4.4 compares byte by byte (lib/string.c); gcc -O2 makes 7 instructions of the loop, 5 where compare and branch are one"),
        "instructions that compare a line with a line"
        in Between("40", "448", "from whole words of eight bytes to seven instructions a byte");
    HASH_LINE: u32 = int("ksm.hash_line_instructions", (1, MANY), 208),
        Assumed("jhash2 takes three words a round (include/linux/jhash.h), of which gcc -O2 makes 39 instructions"),
        "instructions that hash a line"
        in Between("104", "416", "half, and twice as many");
    VISIT: u32 = int("ksm.visit_instructions", (0, MANY), 800),
        Assumed("ksm.visit_ns, 400 ns, at 2 GHz"),
        "instructions that find a page and look at its state"
        in Between("200", "2400", "a quarter, and three times as many");
    NODE: u32 = int("ksm.node_instructions", (0, MANY), 800),
        Assumed("ksm.compare_ns, 400 ns, at 2 GHz, of pages that differ in their first line: locks, the look-up of the mapping, a walk of the page table"),
        "instructions a node on the way down a tree, without the lines compared"
        in Between("100", "2400", "from the loop alone, an eighth, to three times as many");
    MERGE: u32 = int("ksm.merge_instructions", (0, MANY), 4_000),
        Assumed("ksm.merge_ns, 2,000 ns, at 2 GHz"),
        "instructions that protect and remap a page"
        in Between("1000", "12000", "a quarter, and three times as many");
    FAULT: u32 = int("ksm.fault_instructions", (0, MANY), 2_000),
        Assumed("no source: a trap and a new page; the copy itself comes on top"),
        "instructions of a store to a merged page, without the copy"
        in Between("500", "6000", "a quarter, and three times as many");
    ACCESS: ScanAccess = word("ksm.access", "cached"),
        Source("PageForge 4.3"), "whether the thread's reads of pages go past the caches";
    KSM_CORE: Where = word("ksm.core", "shared"),
        Source("PageForge 4.3"), "whether the thread has an in-order core of its own";
    VM_MIB: u64 = int("vms.mib", (1, 4_096), 64),
        Assumed("Table 2 has 512; a tree is three levels deeper then"),
        "memory of a virtual machine without an image, in MiB"
        in Between("16", "512", "up to what Table 2 has");
    VM_UNMERGEABLE: u64 = int("vms.unmergeable_permille", (0, 1_000), 450),
        Source("PageForge Fig. 7"), "of 1,000 of its pages, those that no other equals";
    VM_ZERO: u64 = int("vms.zero_permille", (0, 1_000), 50),
        Source("PageForge Fig. 7"), "of 1,000 of its pages, those of zeros";
    VM_DISTINCT: u64 = int("vms.distinct_permille", (1, 1_000), 66),
        Source("PageForge Fig. 7"), "contents of the others, for 1,000 pages of all machines";
    VM_FAMILIES: u64 = int("vms.families", (1, MANY), 256),
        Assumed("no source"), "pages that begin alike fall into so many families"
        in Between("16", "4096", "a sixteenth, and sixteen times as many");
    VM_ALIKE: u64 = int("vms.alike_lines", (0, 63), 12),
        Assumed("no source: how far a comparison of real pages reads"),
        "most lines with which a family's pages begin alike; the families have 0 to so many"
        in Between("1", "60", "from pages that differ at once to pages that differ at their end");
    CHURN: u64 = int("vms.churn_permille", (0, 1_000), 15),
        Assumed("measured: 1 to 2 % of the pages of Debian guests change in some seconds"),
        "of 1,000 pages that nobody equals, those that are written between two passes"
        in Between("5", "50", "a third, and three times as many");
    CHURN_LINES: u64 = int("vms.churn_lines", (1, 64), 5),
        Assumed("measured: jhash2 over the first KB misses a quarter of such pages"),
        "lines that are written in each"
        in Between("1", "20", "from one line to four times as many");
    WINDOW_MS: u64 = int("window.ms", (1, 100_000), 400),
        Assumed("20 intervals of the thread and more"), "simulated milliseconds that count"
        in Between("100", "1000", "five intervals of the thread, and fifty");
    PHASE: MergePhase = word("window.phase", "settled"),
        Assumed("the paper measures overheads after 10^9 instructions and does not say how much is merged then"),
        "whether merging has settled before the window or is in full swing";
    WARMUP_MS: u64 = int("window.warmup_ms", (0, 100_000), 30),
        Assumed("the paper: 10^9 instructions, 100 ms of ten cores half busy"), "those before them, which fill the caches"
        in Between("10", "100", "a third, and the paper's 10^9 instructions");
    SAMPLE_US: u64 = int("window.sample_us", (10, 1_000_000), 1_000),
        Assumed("the paper does not say how long its most memory-intensive phase is"),
        "microseconds over which bandwidth is taken"
        in Between("100", "10000", "a tenth, and ten times as long");
    LEAST_QUERIES: u64 = int("window.queries", (1, MANY), 40),
        Assumed("all designs have the same queries, so that few are enough to compare; more would shorten long ones, which tolerate the thread best"),
        "queries that should arrive in all; an application that is too slow is shortened and asked more often, by one factor"
        in Between("20", "400", "half, and ten times as many");
    TICK_NS: u64 = int("window.tick_ns", (100, MANY), 5_000),
        Assumed("no effect but on how soon an idle core notices the thread"),
        "nanoseconds after which an idle core looks again whether there is work"
        in Between("1000", "20000", "a fifth, and four times as long");
}

pub fn of_thread() -> Vec<&'static Row> {
    row_list! {
        PLACEMENT SLICE_US TICK_US PREEMPTED PREEMPTED_AFTER_US SWITCH COMPARE_LINE HASH_LINE VISIT NODE
        MERGE FAULT ACCESS KSM_CORE
    }
}

pub fn of_window() -> Vec<&'static Row> {
    row_list! {
        VM_MIB VM_UNMERGEABLE VM_ZERO VM_DISTINCT VM_FAMILIES VM_ALIKE CHURN CHURN_LINES WINDOW_MS PHASE
        WARMUP_MS SAMPLE_US LEAST_QUERIES TICK_NS
    }
}
