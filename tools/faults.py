"""Plant the faults of crates/crash-test/tests/faults.toml and crash-test each program.

``python tools/faults.py [--clean] [NAME..]`` builds, records, explores, and says what found each
fault, after how long, and the rank of the right line of code among those named. Names may also be
programs (``maps btree``), which are then tried unpatched; ``--clean`` tries all of them so.
Needs libpmemobj-dev with its examples, libpmem-dev, the emulator of ``make qemu`` and a C compiler.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
PROGRAMS = ROOT / "crates/crash-test/tests/programs"
EXAMPLES = Path("/usr/share/doc/libpmemobj-dev/examples")
SARDONYX = Path(sys.executable).parent / "sardonyx"
MAPS = (
    "maps.c map/map.c map/map_btree.c map/map_ctree.c map/map_rbtree.c map/map_skiplist.c "
    "map/map_hashmap_tx.c map/map_hashmap_atomic.c tree_map/btree_map.c tree_map/ctree_map.c "
    "tree_map/rbtree_map.c hashmap/hashmap_tx.c hashmap/hashmap_atomic.c "
    "hashmap/hashmap_rp.c list_map/skiplist_map.c map/map_hashmap_rp.c"
)
ALONE = ("queues", "fifo", "plog", "cells", "ring", "handoff", "cow", "undo", "workers")
#: Threads, whose other orders are tried too.
THREADS = ("slots", "stack", "waits", "bank")
#: Of creation, raw pointers, alignment and the like.
WIDER = ("born", "raw", "odd", "both", "grow", "past", "arena", "typed", "ledger",
         "mend", "wide", "names")  # fmt: skip
#: Indexes, caches and stores of the kinds that are published for persistent memory.
STRUCTURES = ("exthash", "leaves", "levels", "buckets", "radix", "deltas", "slabs", "hybrid",
              "mailbox")  # fmt: skip
#: The other files of programs with several, by what their names have after the first's.
POOLS = {"index": (".objects",), "split": (".log",), "logkv": (".check",)}
#: Without a check: their operations are in a file, and what they print is compared.
UNCHECKED = ("kv",)
SMALL = ALONE + THREADS + WIDER + STRUCTURES + (*POOLS,) + UNCHECKED
SOURCES = {"maps": MAPS} | {name: f"{name}.c" for name in SMALL}
SOURCES |= {name: f"{name}.cpp" for name in ("typed", "exthash", "leaves", "deltas", "hybrid")}
SOURCES |= {"ledger": "ledger.rs"}
#: Programs whose check takes what was printed.
ACKS = ("maps", "fifo", "plog", "ring", "cow", "logkv", *STRUCTURES)
FOLDERS = ("", "map", "tree_map", "hashmap", "list_map", "queue", "linkedlist")
UNPATCHED = (
    "maps btree",
    "maps ctree",
    "maps rbtree",
    "maps hashmap_tx",
    "maps skiplist",
    "maps hashmap_atomic",
    "maps hashmap_rp",
    *SMALL,
)
ENVIRONMENT = os.environ | {"PMEM_IS_PMEM_FORCE": "1"}


def build(folder: Path, program: str, edits: list[list[str]]) -> dict[str, set[int]]:
    """Build the patched program; the numbers of the marked lines by file."""
    for part in FOLDERS[1:]:
        shutil.copytree(EXAMPLES / part, folder / part)
    for source in PROGRAMS.iterdir():
        shutil.copy(source, folder)
    right: dict[str, set[int]] = {}
    for name, find, put in edits:
        file = folder / name
        text = file.read_text()
        if text.count(find) != 1:
            raise SystemExit(f"{name}: the edit's text is there {text.count(find)} times: {find!r}")
        file.write_text(text.replace(find, put))
    for name in {edit[0] for edit in edits}:
        lines = (folder / name).read_text().splitlines()
        right[Path(name).name] = {n for n, line in enumerate(lines, 1) if "/*@*/" in line}
    if SOURCES[program].endswith(".rs"):
        source = folder / SOURCES[program]
        options = ["-g", "-O", "--edition", "2024", "-A", "warnings"]
        subprocess.run(["rustc", *options, "-o", folder / program, source], check=True)
        return right
    subprocess.run(
        [
            "c++" if SOURCES[program].endswith(".cpp") else "cc",
            "-g",
            "-O2",
            "-w",
            *(f"-I{folder / part}" for part in FOLDERS),
            "-o",
            folder / program,
            *(folder / source for source in SOURCES[program].split()),
            "-lpmemobj",
            "-lpmem",
            "-lpthread",
        ],
        check=True,
    )
    return right


def explore(
    program: str, edits: list[list[str]], budget: str, sizes: list[str], depth: int = 0
) -> dict[str, Any]:
    """The report of one fault, or of its recovery that is cut; with ``rank`` and ``record_s``."""
    name, *kind = program.split()
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        right = build(folder, name, edits)
        words = [str(folder / name), *kind]
        begun = time.monotonic()
        recorded = subprocess.run(
            [
                SARDONYX,
                "trace",
                "record",
                "--level",
                "cpu",
                "--pc",
                "--acks",
                "-o",
                folder / "r.parquet",
                "--",
                *words,
                folder / "pool",
                *(("apply", folder / "kv.operations") if name in UNCHECKED else ("run",)),
                *(sizes if name == "maps" else ()),
            ],
            env=ENVIRONMENT,
            capture_output=True,
            text=True,
        )
        if recorded.returncode:
            raise SystemExit(recorded.stderr)
        record_s = time.monotonic() - begun
        acks = " {acks}" if name in ACKS else ""
        crashed = subprocess.run(
            [
                SARDONYX,
                "crash-test",
                "search",
                folder / "r.parquet",
                "--pool",
                folder / "pool",
                *(f"--pool={folder / 'pool'}{end}" for end in POOLS.get(name, ())),
                "--budget",
                budget,
                *(("--recovery", "--depth", str(depth)) if depth else ()),
                *(("--threads",) if name in THREADS and not depth else ()),
                "--recover",
                f"{' '.join(words)} {{pool}} {'dump' if name in UNCHECKED else 'check'}{acks}",
                *(
                    (
                        "--operations",
                        folder / "kv.operations",
                        "--apply",
                        f"{' '.join(words)} {{pool}} apply {{operations}}",
                    )
                    if name in UNCHECKED
                    else ()
                ),
                "--json",
                folder / "r.json",
            ],
            env=ENVIRONMENT,
            capture_output=True,
            text=True,
        )
        if crashed.returncode not in (0, 1, 3):
            raise SystemExit(crashed.stderr)
        if os.environ.get("FAULTS_SHOW"):
            print(crashed.stdout)
        found: dict[str, Any] = json.loads((folder / "r.json").read_text())
        if not found["violations"]:
            failed = [one for one in found.get("inside", ()) if one["violations"]]
            found |= failed[0] if failed else {}
        found["record_s"] = record_s
        found["rank"] = None
        for number, suspect in enumerate(found["suspects"], 1):
            file, _, line = suspect["place"].rpartition(":")
            if line.isdigit() and int(line) in right.get(file, ()):
                found["rank"] = number
                break
        return found


def main() -> None:
    """Run the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--budget", default="50s")
    parser.add_argument(
        "--sizes", nargs=2, default=["40", "20"], help="inserts and removals of the maps"
    )
    parser.add_argument(
        "--clean", action="store_true", help="only the unpatched programs, and how many images"
    )
    asked = parser.parse_args()
    faults = tomllib.loads((PROGRAMS.parent / "faults.toml").read_text())["fault"]
    chosen: list[tuple[str, str, str, list[list[str]], int]] = [
        (program, "unpatched", program, [], int(program == "mend"))
        for program in UNPATCHED
        if not asked.names or program in asked.names
    ] + [
        (f["name"], f["class"], f["program"], f["edits"], f.get("depth", 0))
        for f in faults
        if (not asked.names and not asked.clean) or f["name"] in asked.names
    ]
    print(
        "| fault | class | found by | first after, s | in all, s | images | a second | rank "
        "| named first |"
    )
    print("|---|---|---|---|---|---|---|---|---|")
    clean = [0, 0]
    for name, kind, program, edits, depth in chosen:
        found = explore(program, edits, asked.budget, asked.sizes, depth)
        first = found["first_violation_s"]
        cause = found["causes"][0]["kind"] if found["causes"] else ""
        place = found["suspects"][0]["place"] if found["suspects"] else ""
        print(
            f"| {name} | {kind} | {cause} | {'' if first is None else f'{first:.1f}'} | "
            f"{found['seconds']:.1f} | {found['images']} | {found['recoveries_per_second']:.0f} | "
            f"{found['rank'] or ('' if not edits else 'none')} | {place} |",
            flush=True,
        )
        if not edits:
            clean[0] += found["images"]
            clean[1] += found["violations"]
    if asked.clean:
        print(f"\n{clean[0]} images of unpatched programs, {clean[1]} violations")


if __name__ == "__main__":
    main()
