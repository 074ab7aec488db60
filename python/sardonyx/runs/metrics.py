"""The metrics of one run of a trace or a program: their names, which are the simulator's, and what
they mean. A test holds them against real runs of all designs.
"""

from __future__ import annotations

from collections.abc import Mapping

_LATENCY = {
    "mean": "mean latency",
    "p50": "median latency: half are at least as fast",
    "p95": "95 of 100 are at least as fast",
    "p99": "99 of 100 are at least as fast",
    "p999": "999 of 1000 are at least as fast",
    "max": "the slowest",
}


def _latencies(kind: str) -> dict[str, str]:
    return {
        f"{point}_{kind}_latency_ns": f"of the program's {kind}s: {meaning}"
        for point, meaning in _LATENCY.items()
    }


def _service(kind: str) -> dict[str, str]:
    short_cuts = {
        "read": "reads that a queued write answered",
        "write": "writes that were merged with a queued one",
    }
    return {
        f"medium_{kind}_queue_ns": f"mean wait of the medium's {kind}s in the queue",
        f"medium_{kind}_total_ns": f"mean time of the medium's {kind}s, queue included",
        f"medium_{kind}_short_cuts": short_cuts[kind],
    }


#: Title of a group, and the metrics in it with their meanings.
GROUPS: Mapping[str, Mapping[str, str]] = {
    "Requests and traffic": {
        "requests": "reads and writes of the program that reached the controller",
        "reads": "reads of the program",
        "writes": "writes of the program",
        "duplicate_writes": "writes that stored no line, because the memory had an equal one",
        "write_reduction": "`duplicate_writes` / `writes`",
        "data_writes": "lines of the program written to the medium, after writes to one place "
        "that meet in the queue have become one",
        "medium_reads": "all reads of the medium: data, counters, mappings and other tables",
        "medium_writes": "all writes to the medium, likewise",
        "medium_write_reduction": "1 - `medium_writes` / `writes`; negative where counters and "
        "tables add more than deduplication saves",
        "footprint_pages": "pages of memory that the program touched",
        "skipped_fences_and_flushes": "fences and flushes of a trace, which have no effect there",
    },
    "Latency": _latencies("write") | _latencies("read"),
    "Time, energy and the core": {
        "simulated_ns": "simulated time from the begin of counting to the last answer",
        "instructions": "instructions of all cores; 0 where the trace does not count them",
        "ipc": "instructions per cycle, the mean of the cores; none where the trace counts cycles",
        "energy_nj": "energy of the medium and of the controller's units",
        "requests_per_second": "the simulator's own speed, in requests per second of real time",
    },
    "The medium": {
        **_service("read"),
        **_service("write"),
        "row_hit_rate": "share of the medium's accesses that found their row open",
        "medium_write_bytes": "bytes written to the cells",
        "bits_flipped": "bits that writes have changed",
        "max_line_writes": "writes of the line that was written most",
        "lifetime_ideal_years": "years until cells wear out at this rate, all lines worn alike",
        "lifetime_none_years": "the same of the line that was written most, never moved",
    },
    "Encryption": {
        "counter_cache_hit_rate": "share of look-ups in the counter cache that hit",
        "counter_bytes": "bytes of the counters of all lines that have one",
        "wasted_encryptions": "encryptions whose result was not used",
    },
    "Deduplication": {
        "amt_hit_rate": "share of look-ups in the cache of the address mapping table that hit",
        "collisions": "lines compared because of equal fingerprints, that were not equal",
        "efit_lookups": "look-ups in ESD's fingerprint table on chip",
        "efit_hit_rate": "share of them that hit",
        "saturated_rewrites": "writes that hit there and were stored anew, `referH` being full",
        "fingerprint_cache_hit_rate": "share of look-ups in the cache of the fingerprint index "
        "that hit",
        "duplicates_found_in_cache": "duplicates whose fingerprint was on chip",
        "duplicates_found_in_medium": "duplicates whose fingerprint was read from the medium",
        "leaked_lines": "places in the medium that can never be freed, their count being full",
        "metadata_bytes": "bytes of the tables, an entry for every mapped line, as ESD and DeWrite "
        "count them",
        "metadata_bytes_in_use": "bytes of the entries in use",
        "metadata_bytes_per_line": "bytes of the tables for one mapped line",
        "prediction_t1": "DeWrite guessed duplicate, and was right",
        "prediction_f2": "DeWrite guessed duplicate, and was wrong",
        "prediction_t3": "DeWrite guessed no duplicate, and was right",
        "prediction_f4": "DeWrite guessed no duplicate, and was wrong",
        "zero_writes_share": "`zero-lines`: share of the writes that were lines of zeros",
    },
    "Hardware log": {
        "log_entries": "old lines that went to the log",
        "log_records": "records that got their header",
        "log_records_forced": "of them, because a line whose old content they held was written",
        "log_records_timed_out": "of them, because time had run out",
        "log_buckets_most": "buckets that transactions held at one time, at most",
        "log_transactions_most": "transactions under way at one time, at most",
        "log_register_bytes": "on chip: registers that are dumped at a power cut",
        "log_open_header_bytes": "on chip: headers of the records that are being filled",
        "log_timer_bytes": "on chip: when these records are out of time",
        "log_rc_bytes": "on chip: the most recent ciphertext of each chain (`easy-pm`)",
    },
    "Programs on cores and caches": {
        "runtime_ns": "time until the last core has retired everything",
        "transactions": "transactions committed, all cores together",
        "transactions_per_second": "the same per second of simulated time",
        "memory_operations": "loads, stores, flushes, counter write-backs and fences",
        "cpu_cache_miss_rate": "share of accesses that missed the processor's caches",
        "mean_l1_latency_ns": "mean time of loads and stores until their line is in L1, waiting "
        "for memory that took no request included; without stores to a line that is on its way",
        "fences": "fences that the controller has seen",
        "core_fence_wait_ns": "time that a core waited at fences, the mean of the cores",
        "core_load_wait_ns": "time that a core waited for loads, the mean of the cores",
        "core_memory_wait_ns": "time that a core waited for a memory that took "
        "no request, the mean of the cores",
    },
}

#: All of them.
NAMES = frozenset(name for metrics in GROUPS.values() for name in metrics)
