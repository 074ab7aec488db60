//! Where the pages of programs and of copies lie, in runs and in those of the crash explorer.

use crate::settings::keys;

keys! {
    COPIES_SKEW: u64 = int("pages.copies_skew", (0, 1 << 20), 37),
        Assumed("odd, so that copies that run in step do not all meet in one bank"),
        "Pages by which a copy's first page lies further into its share of memory than the copy before's"
        in Between("0", "74", "no skew, and twice the default");
    PROGRAMS_FIRST: u64 = int("pages.programs_first", (0, 1 << 20), 126),
        Assumed("found by search: on machine sca with 1 to 8 cores no two logs, nor a log and its counters, \
                 share a bank"),
        "Pages of memory before the first program's"
        in Between("0", "252", "none, and twice the default");
    CRASH_FIRST: u64 = int("pages.crash_first", (0, 1 << 32), 0),
        Source("for the crash explorer"),
        "Pages of memory before the first program's in a run of `crash`, whose medium is then as large as that takes";
    CRASH_SPARE: u64 = int("pages.crash_spare", (0, 100), 100),
        Source("for the crash explorer"),
        "Lines of the medium beyond those of the programs in a run of `crash`, in percent of these, beside a row";
    CRASH_SHORT: u64 = int("pages.crash_short", (0, 1 << 20), 0),
        Source("for the crash explorer"),
        "In a run of `crash`, places of the medium or buckets of a hardware log that lack, plus 1: at 1 it gets \
         full; from 2 on the run ends because it is full; 0 for room enough";
    CRASH_CACHED: u64 = int("pages.crash_cached", (0, 1 << 20), 0),
        Source("for the crash explorer"),
        "Lines that the processor's caches hold for each core in a run of `crash`; 0 for what its seed draws";
    CRASH_ENDURED: u64 = int("pages.crash_endured", (0, 1 << 20), 0),
        Source("for the crash explorer"),
        "Write requests of a life without a clock beside a run of `crash`, most of them of one line";
    PROGRAMS_SKEW: u64 = int("pages.programs_skew", (0, 1 << 20), 110),
        Assumed("found with pages.programs_first"),
        "Pages by which a program lies further into its share of memory than the core's before"
        in Between("0", "220", "no skew, and twice the default");
}
