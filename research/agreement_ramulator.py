"""The same requests to this memory and to Ramulator 2.1: latencies and bandwidth.

``python research/agreement_ramulator.py --ramulator DIR`` exports presets of DIR, a checkout whose
owner has built it with its Python bindings, and gives the streams of ``agreement.py`` to both. It
prints a row each; ``--write`` keeps them in ``research/agreement-ramulator.tsv``, from which
``--table`` prints the docs' table.
"""

from __future__ import annotations

import argparse
import csv
import math
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import agreement
from sardonyx import api

KEPT = agreement.ROOT / "research/agreement-ramulator.tsv"
DRIVER = agreement.ROOT / "crates/c/tests/host/ramulator_open.cc"
#: The name of a row, its standard, controller, parts and speed, and channels.
MACHINES = (
    ("DDR3", "DDR3", "GenericDDR", "DDR3_4Gb_x8", "DDR3_1600K", 1),
    ("DDR4", "DDR4", "GenericDDR", "DDR4_8Gb_x8", "DDR4_2400R", 1),
    ("DDR5", "DDR5", "GenericDDR", "DDR5_16Gb_x8", "DDR5_4800BN", 1),
    ("LPDDR5", "LPDDR5", "LPDDR5", "LPDDR5_8Gb_x16", "LPDDR5_6400", 1),
    ("LPDDR6", "LPDDR6", "LPDDR6", "LPDDR6_16Gb_x12", "LPDDR6_10667_BL24", 1),
    ("GDDR6", "GDDR6", "GenericDDR", "GDDR6_8Gb_x16", "GDDR6_14000_1250mV_quad", 1),
    ("GDDR7", "GDDR7", "GDDR7", "GDDR7_16Gb_x8", "GDDR7_28000_PAM3", 1),
    ("HBM1", "HBM1", "HBM12", "HBM1_4Gb", "HBM1_2Gbps", 1),
    ("HBM2", "HBM2", "HBM12", "HBM2_4Gb", "HBM2_2400Mbps", 1),
    ("HBM2, 8 channels", "HBM2", "HBM12", "HBM2_4Gb", "HBM2_2400Mbps", 8),
    ("HBM3", "HBM3", "HBM34", "HBM3_8Gb_8hi", "HBM3_6400Mbps", 1),
    ("HBM4", "HBM4", "HBM34", "HBM4_32Gb_8Hi", "HBM4_16000Mbps", 1),
)
HEAD = ("machine", "kind", "load", "theirs_ns", "ours_ns", "their_gbps", "our_gbps")
#: Run in a process of its own, since the package is the checkout's.
EXPORT = """
import sys
sys.path.insert(0, sys.argv[1])
import ramulator as r
from ramulator.export import dict_to_yaml
_, standard, controller, part, speed, channels = sys.argv[2:8]
def channel():
    dram = getattr(r.dram, standard)(org_preset=part, timing_preset=speed)
    return getattr(r.controller, controller)(
        dram=dram, scheduler=r.scheduler.FRFCFS(), refresh_manager=r.refresh_manager.AllBank(),
        row_policy=r.row_policy.Open(), addr_mapper=r.addr_mapper.RoBaRaCoCh())
memory = r.memory_system.GenericDRAM(
    clock_ratio=1, controllers=[channel() for _ in range(int(channels))],
    channel_mapper=r.channel_mapper.CacheLineInterleave())
frontend = r.frontend.External(clock_ratio=1)
print(dict_to_yaml({"frontend": frontend.to_config(), "memory_system": memory.to_config()}))
"""


def exported(checkout: Path, machine: tuple[str, str, str, str, str, int], folder: Path) -> Path:
    """The file of a machine, in ``folder``."""
    words = [str(word) for word in machine]
    command = [sys.executable, "-c", EXPORT, str(checkout / "python"), *words]
    made = subprocess.run(command, capture_output=True, text=True, check=True)
    file = folder / "machine.yaml"
    file.write_text(made.stdout)
    return file


def rows(program: Path, checkout: Path) -> Iterator[list[str]]:
    """A row of HEAD for each machine, kind and load."""
    for machine in MACHINES:
        with tempfile.TemporaryDirectory() as made:
            folder = Path(made)
            file = exported(checkout, machine, folder)
            known = api.show(str(file)).parameters
            geometry = {
                name: int(known[f"medium.geometry.{name}"])
                for name in ("channels", "ranks", "banks", "rows", "columns")
            }
            buses = geometry["channels"]
            if known["medium.queues.rank_buses"]:
                buses *= geometry["ranks"]
            every = int(known["medium.timing.tBURST"]) / buses
            lines = min(math.prod(geometry.values()), 1 << 24)
            for kind in agreement.KINDS:
                for load in agreement.LOADS:
                    drawn = agreement.requests(kind, every * 100 / load, lines, seed=load)
                    words = (f"{a * 64:#x} {'WRITE' if w else 'READ'} {t}\n" for a, w, t in drawn)
                    trace = folder / "in.trc"
                    trace.write_text("".join(words))
                    said = subprocess.run(
                        [program, file, trace, str(machine[-1])],
                        capture_output=True,
                        text=True,
                        check=True,
                    )
                    late, rate, clock = map(float, said.stdout.split()[-3:])
                    mhz = math.floor(1e6 / clock) / 1000
                    here = agreement.ours(str(file), trace, folder, mhz)
                    both = (late, here[0], rate, here[1])
                    yield [machine[0], kind, str(load), *(f"{value:.5g}" for value in both)]


def table() -> Iterator[str]:
    """The docs' table: how much longer a read takes here, in percent."""
    with KEPT.open() as file:
        kept = list(csv.DictReader(file, delimiter="\t"))
    loads = [f"{load} %" for load in agreement.LOADS]
    yield f"| machine | requests | {' | '.join(loads)} |"
    yield "|---" * (len(loads) + 2) + "|"
    for name, *_ in MACHINES:
        for kind in agreement.KINDS:
            of_kind = [row for row in kept if (row["machine"], row["kind"]) == (name, kind)]
            late = [100 * (float(row["ours_ns"]) / float(row["theirs_ns"]) - 1) for row in of_kind]
            yield f"| {name} | {kind} | {' | '.join(f'{one:+.1f}' for one in late)} |"


def main() -> None:
    """Prints the rows, and keeps them if asked to."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ramulator", type=Path, metavar="DIR", help="a built checkout")
    parser.add_argument("--table", action="store_true", help=f"the docs' table of {KEPT.name}")
    parser.add_argument("--write", action="store_true", help=f"keep the rows in {KEPT.name}")
    asked = parser.parse_args()
    if asked.table:
        print("\n".join(table()))
        return
    if asked.ramulator is None:
        parser.error("give --ramulator DIR or --table")
    root = asked.ramulator
    with tempfile.TemporaryDirectory() as made:
        program = Path(made) / "open"
        parts = ("src", "ext/yaml-cpp/include", "ext/fmt/include")
        include = [f"-I{root / part}" for part in parts]
        library = ["-L", str(root), "-lramulator", f"-Wl,-rpath,{root}"]
        words = ["c++", "-O2", "-std=c++20", "-DFMT_HEADER_ONLY", *include, DRIVER, *library]
        subprocess.run([*words, "-o", program], check=True)
        found = list(rows(program, root))
    writer = csv.writer(sys.stdout, delimiter="\t", lineterminator="\n")
    writer.writerows([HEAD, *found])
    if asked.write:
        with KEPT.open("w") as file:
            csv.writer(file, delimiter="\t", lineterminator="\n").writerows([HEAD, *found])


if __name__ == "__main__":
    main()
