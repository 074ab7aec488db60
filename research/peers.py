"""Host time of a simulated request: Sardonyx beside DRAMsim3, Ramulator 2.1 and NVMain.

``python research/peers.py --dramsim3 DIR --ramulator DIR --nvmain DIR`` gives the same requests to
each, one after the other, and prints processor nanoseconds a request. The folders are checkouts
that their owner has built as their own pages say; one that is not named is left out. Requests are
random lines of 1 GiB, half of them reads, and come as fast as the memory takes them, or those of a
recording (``--trace redis``).

A simulator's time is that of its process with 4 N requests less that with N, so starting, the
first pages of memory and reading its files count nowhere; of ``--runs`` such differences it is the
median, and the least and the most stand beside it. DRAMsim3 runs for a number of cycles and not of
requests: there N is what it has done in that many cycles.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import resource
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

SARDONYX = Path(sys.executable).with_name("sardonyx")
LINES = 1 << 24  # of 64 bytes: 1 GiB
#: A burst of DDR4 lasts four cycles, so no memory of one channel takes requests faster.
CYCLES_A_REQUEST = 4

RAMULATOR = """
import sys, ramulator
dram = ramulator.dram.DDR4(org_preset="DDR4_8Gb_x8", timing_preset="DDR4_2400R", rank=1)
controller = ramulator.controller.GenericDDR(
    dram=dram, scheduler=ramulator.scheduler.FRFCFS(),
    refresh_manager=ramulator.refresh_manager.AllBank(), row_policy=ramulator.row_policy.Open(),
    addr_mapper=ramulator.addr_mapper.RoBaRaCoCh())
memory = ramulator.memory_system.GenericDRAM(
    clock_ratio=1, controllers=[controller],
    channel_mapper=ramulator.channel_mapper.CacheLineInterleave())
ramulator.Simulation(
    ramulator.frontend.LoadStoreTrace(clock_ratio=1, path=sys.argv[1]), memory).run()
"""


class PeerError(Exception):
    """What one of the simulators lacks or says, and what would help."""


@dataclass(frozen=True)
class Requests:
    """The first requests of one sequence, as files in every format that somebody reads."""

    count: int
    folder: Path

    def file(self, kind: str) -> Path:
        """The file of a format: load-store, sardonyx, dramsim3 or nvmain."""
        return self.folder / f"{self.count}.{kind}"


@dataclass(frozen=True)
class Peer:
    """A simulator, and how it runs some requests: the processor seconds, and how many it did."""

    name: str
    memory: str
    carries: str
    run: Callable[[Requests], tuple[float, int]]


def seconds(command: list[str], folder: Path, more: dict[str, str] | None = None) -> float:
    """Processor seconds of a command that must succeed, run in ``folder``."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    environment = {**os.environ, **(more or {})}
    ended = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if ended.returncode:
        said = (ended.stderr or ended.stdout).strip().splitlines()[-1:]
        raise PeerError(f"{command[0]} ended with {ended.returncode}: {''.join(said)}")
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def built(path: Path, how: str) -> Path:
    """``path``, which its owner has to have built."""
    if not path.exists():
        raise PeerError(f"{path} is not there; {how}")
    return path.resolve()


def sardonyx(design: str, machine: str, carries: str) -> Peer:
    def run(requests: Requests) -> tuple[float, int]:
        source = str(requests.file("parquet"))
        words = ["compare", source, "--designs", design, "--machine", machine, "--jobs", "1"]
        words += ["--json", str(requests.folder / "sardonyx.json"), "--out", "results"]
        return seconds([str(SARDONYX), *words], requests.folder), requests.count

    return Peer(f"Sardonyx, `{design}`", f"`{machine}`", carries, run)


def dramsim3(checkout: Path) -> Peer:
    program = built(checkout / "build/dramsim3main", "build DRAMsim3 with cmake in its `build`")
    machine = built(checkout / "configs/DDR4_8Gb_x8_2400.ini", "name a checkout of DRAMsim3")

    def run(requests: Requests) -> tuple[float, int]:
        cycles = str(CYCLES_A_REQUEST * requests.count)
        trace = str(requests.file("dramsim3"))
        words = [str(program), str(machine), "-c", cycles, "-t", trace, "-o", "."]
        took = seconds(words, requests.folder)
        told = json.loads((requests.folder / "dramsim3.json").read_text())
        channels = told.values()
        done = sum(int(c["num_reads_done"] + c["num_writes_done"]) for c in channels)
        return took, done

    return Peer("DRAMsim3", "DDR4_8Gb_x8_2400", "no bytes", run)


def ramulator(checkout: Path) -> Peer:
    python = checkout / "python"
    if not list((python / "ramulator").glob("_ramulator*.so")):
        raise PeerError(f"{python} has no _ramulator*.so; build Ramulator with its Python bindings")

    def run(requests: Requests) -> tuple[float, int]:
        words = [sys.executable, "-c", RAMULATOR, str(requests.file("load-store"))]
        paths = {"PYTHONPATH": str(python.resolve())}
        return seconds(words, requests.folder, paths), requests.count

    return Peer("Ramulator 2.1", "DDR4_8Gb_x8, DDR4_2400R", "no bytes", run)


def nvmain(checkout: Path) -> Peer:
    program = built(checkout / "nvmain.fast", "build NVMain with `scons --build-type=fast`")
    machine = built(checkout / "Config/PCM_ISSCC_2012_4GB.config", "name a checkout of NVMain")

    def run(requests: Requests) -> tuple[float, int]:
        words = [str(program), str(machine), str(requests.file("nvmain")), "0"]
        words += ["IgnoreTraceCycle=true"]
        return seconds(words, requests.folder), requests.count

    return Peer("NVMain", "PCM_ISSCC_2012_4GB", "reads 64 bytes, keeps none", run)


def convert(source: Path, target: Path, *words: str) -> None:
    seconds([str(SARDONYX), "trace", "convert", str(source), str(target), *words], source.parent)


def generated(count: int, seed: int, folder: Path) -> Requests:
    """``count`` requests of random lines, half of them reads, as fast as they are taken."""
    drawn = random.Random(seed)
    requests = Requests(count, folder)
    with requests.file("load-store").open("w") as lines:
        for _ in range(count):
            bits = drawn.getrandbits(25)
            lines.write(f"{'LD' if bits & 1 else 'ST'} {(bits >> 1) % LINES * 64:#x}\n")
    convert(requests.file("load-store"), requests.file("parquet"), "--from", "ramulator-load-store")
    return requests


def recorded(trace: str, count: int, folder: Path) -> Requests:
    """The first ``count`` requests of a recording; their gaps are left out for the others."""
    requests = Requests(count, folder)
    words = ["trace", "cut", trace, str(requests.file("parquet")), "--limit", str(count)]
    seconds([str(SARDONYX), *words], Path.cwd())
    convert(requests.file("parquet"), requests.file("load-store"), "--to", "ramulator-load-store")
    return requests


def rewritten(requests: Requests) -> None:
    """The same requests for DRAMsim3 and NVMain, all due at once."""
    data = "0" * 128
    with (
        requests.file("load-store").open() as lines,
        requests.file("dramsim3").open("w") as for_dramsim3,
        requests.file("nvmain").open("w") as for_nvmain,
    ):
        for line in lines:
            kind, address = line.split()
            read = kind == "LD"
            for_dramsim3.write(f"{address} {'READ' if read else 'WRITE'} 0\n")
            for_nvmain.write(f"0 {'R' if read else 'W'} {address} {data} 0\n")


def measured(peer: Peer, part: Requests, whole: Requests, runs: int) -> list[float]:
    """Nanoseconds a request, one figure for each pair of runs."""
    taken = []
    for _ in range(runs):
        first, few = peer.run(part)
        second, many = peer.run(whole)
        taken.append(1e9 * (second - first) / (many - few))
    return taken


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    for name in ("dramsim3", "ramulator", "nvmain"):
        asked.add_argument(f"--{name}", type=Path, help="its checkout, built")
    asked.add_argument("--trace", help="a recording in place of random requests")
    asked.add_argument("--requests", type=int, default=500_000, help="N; default 500,000")
    asked.add_argument("--runs", type=int, default=3)
    asked.add_argument("--seed", type=int, default=1)
    chosen = asked.parse_args()
    if chosen.requests < 1 or chosen.runs < 1:
        asked.error("--requests and --runs are at least 1")
    try:
        peers = [
            make(folder.resolve())
            for make, folder in (
                (dramsim3, chosen.dramsim3),
                (ramulator, chosen.ramulator),
                (nvmain, chosen.nvmain),
            )
            if folder is not None
        ]
        peers[:0] = [
            sardonyx("no-encryption", "ddr4-2400", "64 bytes a line"),
            sardonyx("no-encryption", "pcm-isscc-2012", "64 bytes a line"),
            sardonyx("baseline", "pcm-isscc-2012", "64 bytes a line, AES"),
        ]
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            counts = (chosen.requests, 4 * chosen.requests)
            part, whole = (
                recorded(chosen.trace, count, folder)
                if chosen.trace
                else generated(count, chosen.seed, folder)
                for count in counts
            )
            rewritten(part)
            rewritten(whole)
            print("| simulator | memory | carries | ns a request | least, most |")
            print("|---|---|---|---|---|")
            for peer in peers:
                taken = measured(peer, part, whole, chosen.runs)
                middle, least, most = statistics.median(taken), min(taken), max(taken)
                print(
                    f"| {peer.name} | {peer.memory} | {peer.carries} "
                    f"| {middle:,.0f} | {least:,.0f}, {most:,.0f} |",
                    flush=True,
                )
    except PeerError as error:
        print(f"peers.py: {error}", file=sys.stderr)
        sys.exit(2)


if __name__ == "__main__":
    main()
