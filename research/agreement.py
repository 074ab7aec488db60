"""The same requests to this memory and to DRAMsim3: latencies, bandwidth and energy in parts.

``python research/agreement.py --dramsim3 DIR`` reads DIR/configs, a checkout whose owner has built
``libdramsim3.so`` there, gives four kinds of streams at 2, 50, 80 and 95 % of the bus to both, and
prints a row each: mean read latency there and here, and energies there (times tCK: its "pJ" are
mA x V x cycles) and here. Arrivals are Poisson's, each request is offered at its cycle. ``--write``
keeps the rows in ``research/agreement.tsv``, from which ``--table`` prints the docs' table, and the
machines in ``research/agreement.toml``.
``--ours`` runs our half alone, of the machines in ``research/agreement.toml``: it prints the rows
whose figures are others than the kept ones, and fails if there are any; ``--write`` keeps them.
"""

from __future__ import annotations

import argparse
import csv
import json
import math
import random
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from sardonyx import api

ROOT = Path(__file__).resolve().parent.parent
KEPT = ROOT / "research/agreement.tsv"
MACHINES = ROOT / "research/agreement.toml"
DRIVER = ROOT / "crates/c/tests/host/dramsim3_open.cc"
FILES = (
    "DDR3_4Gb_x8_1600",
    "DDR4_8Gb_x8_2400",
    "DDR4_8Gb_x16_2400",
    "LPDDR3_8Gb_x32_1600",
    "LPDDR4_8Gb_x16_2400",
    "GDDR5_8Gb_x32",
    "GDDR6_8Gb_x16",
    "HBM1_4Gb_x128",
    "HBM2_8Gb_x128",
)
KINDS = ("stream", "random", "stream 2:1", "random 2:1")
LOADS = (2, 50, 80, 95)
REQUESTS = 20_000
HEAD = ("file", "kind", "load", "theirs_ns", "ours_ns", "their_gbps", "our_gbps")
PARTS = ("standby", "activation", "read", "write", "refresh")
#: Our columns, as :func:`ours` returns them.
OURS = ("ours_ns", "our_gbps", *(f"our_{part}_nj" for part in PARTS))


def requests(kind: str, every: float, lines: int, seed: int) -> Iterator[tuple[int, bool, int]]:
    """Lines, whether they are written, and the cycles at which they are offered.

    Streams are eight of reads, and eight of writes where two of three requests are reads.
    """
    draw = random.Random(seed)
    streams = [[draw.randrange(lines) for _ in range(8)] for _ in range(2)]
    at = 0.0
    for number in range(REQUESTS):
        at += draw.expovariate(1 / every)
        write = kind.endswith("2:1") and draw.random() * 3 >= 2
        if kind.startswith("random"):
            line = draw.randrange(lines)
        else:
            stream = streams[write]
            line = stream[number % 8] = (stream[number % 8] + 1) % lines
        yield line, write, int(at)


def entries(file: Path) -> dict[str, str]:
    """The values of an .ini by name, whatever their section."""
    text = (line.split(";")[0].split("#")[0] for line in file.read_text().splitlines())
    pairs = (line.split("=", 1) for line in text if "=" in line)
    return {name.strip(): value.strip() for name, value in pairs}


def cycles_of_a_line(machine: Mapping[str, Any]) -> float:
    """Cycles of the clock in which all channels together move a line: a burst, or several."""
    length = int(machine["BL"])
    moves = {"GDDR5": 4, "GDDR5X": 8, "GDDR6": 16}.get(str(machine["protocol"]), 2)
    burst = max(length // moves, int(machine["tCCD_S"]))
    bursts = max(512 // (length * int(machine["bus_width"])), 1)
    return burst * bursts / int(machine["channels"])


def theirs(program: Path, file: Path, trace: Path, folder: Path) -> list[float]:
    """Mean read latency in ns, GB/s, and the energies of PARTS in nJ of DRAMsim3."""
    said = subprocess.run(
        [program, file, trace, folder], capture_output=True, text=True, check=True
    )
    return [float(word) for word in said.stdout.splitlines()[-1].split()]  # below its warnings


def ours(
    machine: str, trace: Path, folder: Path, mhz: float, varied: Sequence[str] = ()
) -> list[float]:
    """The same of this memory, of a machine by its name or file, with settings."""
    made = folder / "trace.parquet"
    api.trace_convert(str(trace), str(made), from_format="dramsim3", clock_mhz=mhz)
    # What waits for a queue is outside of it, there by kind and channel.
    settings = [f"engine.ingress={REQUESTS}", *varied]
    answer = api.compare(str(made), machine=machine, designs="no-encryption", set=settings)
    figures = answer.to_document()["runs"][0]["metrics"]
    names = ("mean_read_latency_ns", "medium_gb_per_s", *(f"energy_{part}_nj" for part in PARTS))
    return [float(figures[name] or 0) for name in names]


def offered(machine: Mapping[str, Any], kind: str, load: int, folder: Path) -> tuple[Path, float]:
    """A trace of such requests for a file's entries, in ``folder``, and the clock in MHz."""
    size = int(machine["channel_size"]) * int(machine["channels"])
    every = cycles_of_a_line(machine) * 100 / load
    lines = requests(kind, every, size << 14, seed=load)
    words = (f"{a * 64:#x} {'WRITE' if w else 'READ'} {t}\n" for a, w, t in lines)
    trace = folder / "in.trc"
    trace.write_text("".join(words))
    # A trace's clock is in whole kHz: this one brings no request before its cycle.
    return trace, math.floor(1e6 / float(machine["tCK"])) / 1000


def rows(program: Path, configs: Path) -> Iterator[list[str]]:
    """A row of HEAD and PARTS, theirs before ours, for each file, kind and load."""
    for name in FILES:
        file = configs / f"{name}.ini"
        for kind in KINDS:
            for load in LOADS:
                with tempfile.TemporaryDirectory() as made:
                    folder = Path(made)
                    trace, mhz = offered(entries(file), kind, load, folder)
                    their, our = (
                        theirs(program, file, trace, folder),
                        ours(str(file), trace, folder, mhz),
                    )
                both = [value for pair in zip(their, our, strict=True) for value in pair]
                yield [name, kind, str(load), *(f"{value:.5g}" for value in both)]


def kept() -> list[dict[str, str]]:
    """The kept rows, by column."""
    with KEPT.open() as file:
        return list(csv.DictReader(file, delimiter="\t"))


def ours_again() -> Iterator[list[str]]:
    """The kept rows with our half as it is now."""
    machines = tomllib.loads(MACHINES.read_text())
    for row in kept():
        machine = machines[row["file"]]
        words = {True: "true", False: "false"}
        settings = [
            f"{key}={words[value] if isinstance(value, bool) else value}"
            for key, value in machine["set"].items()
        ]
        with tempfile.TemporaryDirectory() as made:
            folder = Path(made)
            trace, mhz = offered(machine, row["kind"], int(row["load"]), folder)
            figures = ours("ddr4-2400", trace, folder, mhz, settings)
        now = dict(zip(OURS, figures, strict=True))
        yield [f"{now[name]:.5g}" if name in now else row[name] for name in row]


def table() -> Iterator[str]:
    """The docs' table: of each file and kind how much longer our reads take, and energies."""
    rows = kept()
    loads = [f"{load} %" for load in LOADS]
    yield f"| file | requests | {' | '.join(loads)} | energies |"
    yield "|---" * (len(LOADS) + 3) + "|"

    def differs(row: dict[str, str], there: str, here: str) -> float:
        return 100 * (float(row[here]) / float(row[there]) - 1)

    for name in FILES:
        for kind in KINDS:
            of_kind = [row for row in rows if (row["file"], row["kind"]) == (name, kind)]
            late = [f"{differs(row, 'theirs_ns', 'ours_ns'):+.0f}" for row in of_kind]
            # At 2 %, where a run is long: refreshes are counted whole there and by time here.
            # Streams open few rows, so one more is a large part of that energy.
            energies = [
                abs(differs(row, f"their_{part}_nj", f"our_{part}_nj"))
                for row in of_kind
                if row["load"] == "2"
                for part in ("standby", "read", "write", "refresh")
                if float(row[f"their_{part}_nj"])
            ]
            yield f"| {name} | {kind} | {' | '.join(late)} | {max(energies):.1f} |"


def machines(configs: Path) -> Iterator[str]:
    """The text of ``research/agreement.toml``."""
    yield """\
# The machines of agreement.tsv, for `agreement.py --ours`: what DRAMsim3's files say of their
# size and clock, and what `sardonyx show FILE` makes of them where ddr4-2400 has something else.
"""
    base = api.show("ddr4-2400").parameters
    for name in FILES:
        file = configs / f"{name}.ini"
        said, made = entries(file), api.show(str(file)).parameters
        yield f"\n[{name}]\n"
        yield f'protocol = "{said["protocol"]}"\n'
        for key in ("channel_size", "channels", "bus_width", "BL", "tCCD_S", "tCK"):
            yield f"{key} = {said[key].split()[0]}\n"
        yield f"\n[{name}.set]\n"
        idle = "_L" if made["medium.geometry.groups"] == 1 else "engine.ingress"
        for key, value in made.items():
            if value != base.get(key) and not key.endswith(("engine.ingress", idle)):
                yield f'"{key}" = {json.dumps(value)}\n'


def keep(head: list[str], rows: list[list[str]]) -> None:
    """Keeps rows for ``--table`` and ``--ours``."""
    with KEPT.open("w") as file:
        csv.writer(file, delimiter="\t", lineterminator="\n").writerows([head, *rows])


def main() -> None:
    """Prints the rows, and keeps them if asked to."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--dramsim3", type=Path, metavar="DIR", help="a built checkout")
    parser.add_argument("--table", action="store_true", help=f"the docs' table of {KEPT.name}")
    parser.add_argument("--write", action="store_true", help=f"keep the rows in {KEPT.name}")
    parser.add_argument("--ours", action="store_true", help="our half alone, against the kept rows")
    asked = parser.parse_args()
    if asked.table:
        print("\n".join(table()))
        return
    parts = [f"{whose}_{part}_nj" for part in PARTS for whose in ("their", "our")]
    head = [*HEAD, *parts]
    if asked.ours:
        now = list(ours_again())
        if asked.write:
            keep(head, now)
        is_new = [row for row, old in zip(now, kept(), strict=True) if row != list(old.values())]
        for row in is_new:
            print("\t".join(row))
        sys.exit(bool(is_new))
    if asked.dramsim3 is None:
        parser.error("give --dramsim3 DIR, --ours or --table")
    with tempfile.TemporaryDirectory() as made:
        program = Path(made) / "open"
        include = [f"-I{asked.dramsim3 / part}" for part in ("src", "ext/headers")]
        library = ["-L", str(asked.dramsim3), "-ldramsim3", f"-Wl,-rpath,{asked.dramsim3}"]
        subprocess.run(
            ["c++", "-O2", "-std=c++14", *include, DRIVER, *library, "-o", program], check=True
        )
        configs = asked.dramsim3 / "configs"
        found = list(rows(program, configs))
    csv.writer(sys.stdout, delimiter="\t", lineterminator="\n").writerows([head, *found])
    if asked.write:
        keep(head, found)
        MACHINES.write_text("".join(machines(configs)))


if __name__ == "__main__":
    main()
