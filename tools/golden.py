"""The golden file: what the simulator says today, as text, so that a change of its inside can be
held against it. ``make golden`` checks all of it, ``--quick`` a part that takes a minute.

It knows nothing but the command line. A verdict of ``crash`` is kept as a word, and of the SCA
paper's Table 1 the cells, because the schedules behind them may change. Left out:
``requests_per_second``, which is the host's, and the latency distributions.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "tests" / "golden"
PARTS = ("compare", "programs", "reproduce", "crash")
#: What a line of causes holds for each of them, in this order.
QUANTITIES = (
    "latency_ns",
    "write_latency_ns",
    "read_latency_ns",
    "wait_ns",
    "energy_nj",
    "medium_reads",
    "medium_writes",
)
SHOWN_LINES, SHOWN_FIGURES = 40, 6

RECORDINGS = ("cc1", "pmdk-tx", "redis", "sqlite3", "stockfish", "x264")
SCA = "no-encryption,ideal,co-located,co-located-cc,fca,sca,no-atomicity"
PAIRS = (
    "identity+per-line,esd+sca,esd+fca,esd+no-encryption,esd-as-published+ideal,"
    "esd-sound+co-located,dewrite+fca,dewrite+no-encryption,dedup-sha1+sca,"
    "dedup-sha1-sound+no-atomicity,dewrite-sound+co-located-cc"
)
#: Caches so small that short runs evict from all of them.
SMALL = (
    "esd.efit_bytes=1792 esd.amt_bytes=2048 encryption.counter_cache.bytes=2048 "
    "dedup_sha1.fingerprint_cache.bytes=2048 dedup_sha1.mapping_cache.bytes=2048 "
    "dewrite.fingerprint_cache.bytes=2048 dewrite.mapping_cache.bytes=2048"
)
#: Settings, and the designs that they are about.
VARIANTS = (
    ("esd.reclaim=paper", "esd,esd-sound"),
    ("esd.collision=replace", "esd"),
    ("esd.collision=multi", "esd,esd-sound"),
    ("esd.matrix=hsiao-1970", "esd"),
    ("esd.policy=lru esd.efit_bytes=1792", "esd"),
    ("esd.amt_policy=lrcu esd.amt_bytes=2048", "esd,esd-sound"),
    ("esd.refer_max=3 esd.refresh_every=500 esd.efit_bytes=1792", "esd"),
    ("encryption.siblings=ride-along encryption.counter_cache.bytes=2048", "sca,fca"),
    ("encryption.global_counter=paper", "sca,fca,co-located"),
    ("encryption.mark_stride=64", "sca,fca,esd-sound"),
    ("encryption.enabled=false", "baseline,esd,dewrite,co-located-cc"),
    ("dedup_sha1.verify=false dedup_sha1.digest_bytes=2", "dedup-sha1,dedup-sha1-sound"),
    ("dewrite.history=16 dewrite.mapping_cache.bytes=2048", "dewrite,dewrite-sound"),
    ("medium.queues.page=closed", "baseline,esd,fca"),
    ("medium.queues.scheduler=fcfs", "baseline,dewrite,sca"),
    ("medium.queues.forwarding=false medium.queues.coalescing=false", "baseline,esd,sca"),
    ("medium.queues.idle_writes=false medium.queues.refill_in_drain=false", "baseline,esd"),
    ("medium.queues.counter_writes=4", "fca,sca,esd-sound"),
    ("medium.geometry.channels=2 medium.geometry.ranks=2", "baseline,esd"),
)
MISTAKES = (
    "log-not-flushed last-log-line-not-flushed valid-not-flushed data-not-flushed "
    "last-data-line-not-flushed no-fence-after-log no-fence-after-valid no-fence-after-data "
    "no-fence-after-commit no-counters-after-log no-counters-after-data valid-not-counter-atomic "
    "commit-not-counter-atomic valid-before-log data-before-log commit-before-data "
    "logs-new-values logs-one-line-less"
).split()
EQUIVALENT = ("prepare-counter-atomic", "mutate-counter-atomic")
SEEDS = ("1", "2", "3")
#: A run of a reproduction in a few figures; the claims are made of all.
BRIEF = (
    "simulated_ns energy_nj mean_read_latency_ns mean_write_latency_ns p99_write_latency_ns "
    "medium_reads medium_writes medium_write_bytes metadata_bytes ipc transactions_per_second"
).split()

Lines = dict[str, str]
#: Runs the command line with these arguments and reads its JSON.
Ask = Callable[[Sequence[str]], Any]


@dataclass(frozen=True)
class Task:
    """Lines of one file that are made together; ``quick`` ones belong to the short form."""

    part: str
    quick: bool
    make: Callable[[Ask], Lines]


def figure(value: Any) -> str:
    """A value as it is read back exactly; 5.0 and 5 are one."""
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        value = int(value)
    return value.replace(" ", "_") if isinstance(value, str) else json.dumps(value)


def figures(values: dict[str, Any]) -> str:
    return " ".join(f"{name}={figure(values[name])}" for name in sorted(values))


def run_key(label: str, run: dict[str, Any]) -> str:
    variant = [f"{name}={run['variant'][name]}" for name in sorted(run["variant"])]
    return " ".join([label, run["trace"], run["design"], f"x{run['copies']}", *variant])


def compare(
    part: str, quick: bool, sources: Iterable[str], designs: str, machine: str, options: str = ""
) -> Task:
    def make(ask: Ask) -> Lines:
        given = ["--designs", designs, "--machine", machine, *options.split()]
        document = ask(["compare", *sources, "--no-sensitivity", "--jobs", "1", *given])
        label = f"{machine} {options.replace('--set ', '').replace('--', '')}".strip()
        lines: Lines = {}
        for trace in document["traces"]:
            facts = {n: v for n, v in trace["info"].items() if isinstance(v, int | float)}
            lines[f"{label} {trace['name']} facts"] = figures(facts)
        assumed: dict[str, str] = {}  # of each design; a trace's own only where it differs
        for run in document["runs"]:
            key = run_key(label, run)
            del run["metrics"]["requests_per_second"]
            lines[f"{key} metrics"] = figures(run["metrics"])
            causes = {
                name: "/".join(figure(booked.get(quantity)) for quantity in QUANTITIES)
                for name, booked in run["causes"].items()
            }
            lines[f"{key} causes"] = figures(causes)
            names = " ".join(run["assumed"])
            if assumed.setdefault(run["design"], names) != names:
                lines[f"{key} assumed"] = names
        return lines | {f"{label} {name} assumed": text for name, text in assumed.items()}

    return Task(part, quick, make)


def reproduce(paper: str) -> Task:
    def make(ask: Ask) -> Lines:
        document = ask(["reproduce", paper, "--quick", "--jobs", "1"])
        lines: Lines = {}
        for claim in document["claims"]:
            key = " ".join(claim[n] for n in ("where", "metric", "design", "stat"))
            own = {f"of[{name}]": value for name, value in claim["workloads"].items()}
            shown = own | {n: claim[n] for n in ("reported", "ours", "gap", "unit")}
            shown |= {f"reading[{n}]": json.dumps(v) for n, v in claim["readings"].items()}
            lines[f"{paper} claim {key}"] = figures(shown)
            lines[f"{paper} claim {key} assumed"] = " ".join(claim["assumed"])
        for run in document["results"]["runs"]:
            metrics = {n: run["metrics"][n] for n in BRIEF if n in run["metrics"]}
            lines[run_key(f"{paper} run", run)] = figures(metrics)
        for row in document.get("table_1", {"rows": []})["rows"]:
            cells = {n: row[n]["ours"] for n in ("backup", "data", "counter_atomicity")}
            for column, cell in cells.items():
                lines[f"{paper} table-1 {row['stage']} {column}"] = figure(cell)
        return lines

    return Task("reproduce", False, make)


def crash(quick: bool, program: str, designs: str, options: str) -> Task:
    """Each design's verdict over all seeds: it holds if none of them has a violation."""

    def make(ask: Ask) -> Lines:
        given = ["crash", program, "--transactions", "40", "--designs", designs, *options.split()]
        runs = [run for seed in SEEDS for run in ask([*given, "--seed", seed])["runs"]]
        lines: Lines = {}
        for design in designs.split(","):
            own = [run for run in runs if run["design"] == design]
            words = {"promises": own[0]["guarantee"]}
            for kind in ("recoverability", "secrecy"):
                broken = any(run[f"{kind}_violations"] for run in own)
                words[kind] = "violated" if broken else "holds"
            label = options.replace("--set ", "").replace("--", "")
            lines[f"{label} {program} {design}"] = figures(words)
        return lines

    return Task("crash", quick, make)


def mutant(quick: bool, program: str, name: str) -> Task:
    def make(ask: Ask) -> Lines:
        given = ["crash", program, "--transactions", "40", "--designs", "sca", "--mutant", name]
        answers = (ask([*given, "--seed", seed])["runs"][0] for seed in SEEDS)
        caught = any(run["recoverability_violations"] for run in answers)
        return {f"mutant {program} {name}": "caught" if caught else "not-caught"}

    return Task("crash", quick, make)


def tasks(ask: Ask) -> list[Task]:
    """All that is asked, the longest first."""

    def names(command: str) -> list[str]:
        return [row["name"] for row in ask([command])]

    def sets(text: str) -> str:
        return " ".join(f"--set {setting}" for setting in text.split())

    designs, machines, programs = ",".join(names("designs")), names("machines"), names("programs")
    files = [f"traces/{name}.parquet" for name in RECORDINGS]
    rungs, two = ["synth:rung-60:20000", "synth:rung-99.8:20000:5"], [files[1], files[5]]
    stores = [str((FOLDER / "level-cpu.parquet").relative_to(ROOT))]
    brief = "--transactions 120 --footprint 256K"
    llc = "--set caches.l1.bytes=4096 --set caches.llc.bytes=65536"
    return [
        reproduce("sca"),
        reproduce("esd"),
        compare("compare", False, [*files, *rungs], designs, "esd", "--limit 20000"),
        *(
            compare("compare", True, [files[i % 6]], designs, machine, "--limit 5000")
            for i, machine in enumerate(machines)
        ),
        compare("compare", True, [files[2]], designs, "esd", f"--limit 4000 {sets(SMALL)}"),
        compare("compare", False, [*two, rungs[0]], designs, "sca", f"--limit 8000 {sets(SMALL)}"),
        compare("compare", True, two, PAIRS, "sca", "--limit 3000"),
        *(
            compare("compare", i % 3 == 0, two, chosen, "esd", f"--limit 3000 {sets(settings)}")
            for i, (settings, chosen) in enumerate(VARIANTS)
        ),
        compare("compare", False, two, designs, "esd", "--limit 2000 --copies 4 --warmup 1500"),
        compare("compare", True, two[:1], "esd,sca", "easy-pm", "--limit 2000 --copies 3"),
        compare("compare", False, two, "dewrite,fca", "esd", "--limit 2000 --copies 8 --distinct"),
        *(
            compare("programs", True, programs, SCA, "sca", f"{brief} --cores {cores}")
            for cores in (1, 4)
        ),
        compare("programs", False, programs, designs, "esd", f"{brief} --cores 2 {llc}"),
        compare(
            "programs",
            False,
            programs,
            "sca,fca,esd-sound",
            "easy-pm",
            "--transactions 60 --warmup 30 --transaction-size 1K --footprint 1M --seed 7",
        ),
        compare("programs", True, stores, designs, "sca", llc),
        compare("programs", False, stores, designs, "pageforge", f"--copies 2 {llc}"),
        *(
            crash(adr and program == "btree", program, f"{designs},esd+sca,dewrite+fca", options)
            for program in ("btree", "queue")
            for options in ("--platform adr", "--platform eadr", "--platform none")
            for adr in [options == "--platform adr"]
        ),
        crash(False, "hash", "sca,fca,esd+sca,no-atomicity", "--platform adr --cores 2"),
        crash(True, "btree", SCA, "--set encryption.global_counter=paper"),
        crash(True, "btree", "sca,fca", "--set encryption.siblings=ride-along"),
        *(
            mutant(program == "btree", program, name)
            for program in ("btree", "array-swap")
            for name in (*MISTAKES, *EQUIVALENT)
        ),
    ]


def asker(command: str) -> Ask:
    def ask(arguments: Sequence[str]) -> Any:
        out: list[str] = []
        with tempfile.TemporaryDirectory() as scratch:
            if arguments[0] in ("compare", "reproduce"):
                out = ["--out", scratch]
            line = [command, *arguments, *out, "--json", "-"]
            done = subprocess.run(line, cwd=ROOT, capture_output=True, text=True, check=False)
        if done.returncode not in (0, 1) or not done.stdout:
            raise SystemExit(f"golden: {' '.join(line)}: {done.stderr.strip()}")
        return json.loads(done.stdout)

    return ask


def read(part: str) -> Lines:
    text = (FOLDER / f"{part}.txt").read_text() if (FOLDER / f"{part}.txt").exists() else ""
    rows = (row for row in text.splitlines() if not row.startswith("#"))
    return {key: value for key, _, value in (row.partition(": ") for row in rows)}


def write(part: str, lines: Lines) -> None:
    head = f"# Made by tools/golden.py. Causes: {'/'.join(QUANTITIES)}.\n"
    rows = "".join(f"{key}: {lines[key]}\n" for key in sorted(lines))
    FOLDER.mkdir(parents=True, exist_ok=True)
    (FOLDER / f"{part}.txt").write_text(head + rows)


def differences(golden: str, now: str) -> str:
    """The first figures in which two lines differ, with both values."""
    was, has = (
        {name: value for name, _, value in (word.partition("=") for word in line.split())}
        for line in (golden, now)
    )
    names = [name for name in {**was, **has} if was.get(name) != has.get(name)]
    shown = [
        f"    {name}: golden {was.get(name, 'has none')}, now {has.get(name, 'has none')}"
        for name in names[:SHOWN_FIGURES]
    ]
    more = len(names) - len(shown)
    return "\n".join([*shown, *([f"    and {more} more"] if more else [])] or ["    order differs"])


def check(part: str, now: Lines, whole: bool) -> int:
    """Print what differs; the number of lines that do."""
    golden = read(part)
    keys = sorted({*golden, *now} if whole else now)
    wrong = [key for key in keys if golden.get(key) != now.get(key)]
    for key in wrong[:SHOWN_LINES]:
        print(f"{part}: {key}")
        if key in golden and key in now:
            print(differences(golden[key], now[key]))
        else:
            print("    " + ("golden only" if key in golden else "not in the golden file"))
    if len(wrong) > SHOWN_LINES:
        print(f"{part}: and {len(wrong) - SHOWN_LINES} more lines")
    return len(wrong)


def main() -> None:
    parser = argparse.ArgumentParser(description="Check (or write) the golden file.")
    parser.add_argument("--write", action="store_true", help="write it, whole")
    parser.add_argument("--check", action="store_true", help="check it: the default")
    parser.add_argument("--quick", action="store_true", help="check the short form only")
    parser.add_argument("--part", choices=PARTS, action="append", help="repeatable; default: all")
    parser.add_argument("--jobs", type=int, default=2, help="runs at once (default 2)")
    parser.add_argument("--sardonyx", default=str(ROOT / ".venv/bin/sardonyx"), metavar="FILE")
    given = parser.parse_args()
    if given.write and (given.quick or given.check):
        parser.error("--write writes all, so it goes without --quick and --check")
    parts = given.part or PARTS
    ask = asker(given.sardonyx)
    todo = [task for task in tasks(ask) if task.part in parts and (task.quick or not given.quick)]
    made: dict[str, Lines] = {part: {} for part in parts}
    with ThreadPoolExecutor(given.jobs) as pool:
        results = [(task.part, pool.submit(task.make, ask)) for task in todo]
        for done, (part, result) in enumerate(results, 1):
            lines = result.result()
            again = made[part].keys() & lines.keys()
            assert not again, f"two tasks make {sorted(again)[0]}"
            made[part] |= lines
            print(f"\rgolden: {done} of {len(todo)}", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    if given.write:
        for part, lines in made.items():
            write(part, lines)
        return
    wrong = sum(check(part, lines, not given.quick) for part, lines in made.items())
    total = sum(len(lines) for lines in made.values())
    print(f"golden: {total - wrong if wrong < total else 0} of {total} lines as they were")
    raise SystemExit(1 if wrong else 0)


if __name__ == "__main__":
    main()
