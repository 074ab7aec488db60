"""Files that are nearly right, to every command that reads one.

``python tests/python/hostile_files.py --cases 10000 --seed 1`` mutates traces, recordings, results,
sweeps, replays and machines, by bytes and by fields, and runs the commands that read them. Each
case has to end with a status from 0 to 3 and a line or a few, within its memory and its time. With
``--watch`` the system calls are followed (by strace), and nothing may be written, made or removed
but in the folder of the case.
"""

from __future__ import annotations

import argparse
import copy
import io
import json
import multiprocessing
import os
import random
import re
import resource
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pyarrow
import pyarrow.parquet as pq
from sardonyx import cli

ROOT = Path(__file__).resolve().parents[2]
RECORDED = Path(__file__).parent / "recorded"
METADATA = b"sardonyx.trace"
#: Where the program of ``recorded`` had its two files.
POOLS = "/tmp/recorded/pools"
FIRST = f"--pool {POOLS}/one --no-source"
BOTH = f"--pool {POOLS}/two {FIRST}"
#: The most memory, in bytes, and seconds that a case may take.
MEMORY, SECONDS = 1 << 30, 60
#: Cases that one process runs.
BATCH = 40
#: Numbers and words where others stood.
NUMBERS = (
    *(0, 1, -1, 2, 63, 64, 255, 2**16, 2**31 - 1, 2**31, 2**32, 2**53, 2**63 - 1, 2**63),
    *(2**64 - 1, 2**64, 10**30, -(2**63), 0.5, 1e308, 5e-324),
)
WORDS = (
    *("", "x", "../../../../etc/passwd", "/etc/passwd", "..", ".", "/", "a/../..", "~", "a\0b"),
    *("\x1b]0;x\x07", "%s%n", "</script><script>alert(1)</script>", "=1+1", "x" * 5000, "ÿ", "nan"),
    *("-0", "1e999", "esd", "null", "/dev/zero", "/proc/self/mem", "file:///etc/passwd"),
)
OTHERS: tuple[Any, ...] = (None, True, [], {}, [[]], {"": 0}, [1] * 1000)

MACHINES = {
    "m.ini": """[dram_structure]
protocol = DDR4
bankgroups = 4
banks_per_group = 4
rows = 65536
columns = 1024
device_width = 8
BL = 8
[timing]
tCK = 0.83
CL = 17
CWL = 12
tRCD = 17
tRP = 17
tRAS = 39
tRFC = 420
tREFI = 9360
[power]
VDD = 1.2
IDD0 = 43
[system]
channel_size = 4096
channels = 1
bus_width = 64
""",
    "m.config": """CLK 400
BusWidth 64
DeviceWidth 8
BANKS 8
RANKS 1
CHANNELS 1
ROWS 65536
COLS 32
tBURST 4
tRCD 48
tCAS 10
tCWD 4
tWP 60
tRP 0
Erd 0.081200
EnergyModel energy
""",
    "m.toml": """extends = "esd"
[medium]
geometry.channels = 2
queues.reads = 32
""",
}
SWEEPS = {
    "s.toml": """[sweep]
traces = ["t.parquet", "synth:rung-60"]
designs = ["baseline", "esd"]
limit = 200
repeats = 2
where = "design == 'esd'"
[axes]
"esd.efit_bytes" = [65536, 131072]
""",
    "c.toml": """[sweep]
programs = ["btree"]
designs = ["sca"]
transactions = 10
footprint = "8K"
""",
}
TEXTS = {
    "a.trc": "".join(f"{n * 64:#x} {'READ' if n % 3 else 'WRITE'} {n * 200}\n" for n in range(60)),
    "a.ram": "R 0,0,0,0,0,0\nW 0,0,1,2,3,8\n" * 20,
}
#: What is read, and the commands that read it; `{}` is the file.
COMMANDS: dict[str, tuple[str, ...]] = {
    "t.parquet": (
        "trace info {}",
        "trace check {}",
        "trace cut {} out.parquet --limit 10",
        "compare {} --designs baseline,esd --limit 100 --out out",
        "compare {} --designs no-encryption --limit 100 --out out --addresses wrapped",
        "trace convert {} out.nvt --to nvmain",
    ),
    "cpu.parquet": ("trace info {}", "compare {} --designs baseline --limit 100 --out out"),
    "two.parquet": (
        "trace info {}",
        f"crash-test lint {{}} {BOTH}",
        f"crash-test search {{}} {FIRST} --recover 'cat {{{{pool}}}}' --budget 2s",
        f"crash-test search {{}} {BOTH} --recover 'ls {{{{pools}}}}' --budget 2s",
    ),
    "r1/results.json": ("report r1", "diff r1 r2"),
    "r.json": ("crash replay {}",),
    "a.trc": ("trace convert {} out.parquet --from dramsim3 --to sardonyx",),
    "a.ram": ("trace convert {} out.parquet --from ramulator-read-write --to sardonyx",),
    "s.toml": ("sweep {} --plan", "sweep {} --out out --jobs 1"),
    "c.toml": ("sweep {} --plan",),
    "m.ini": ("show ./{}", "compare t.parquet --machine {} --designs no-encryption --limit 50"),
    "m.config": ("show ./{}", "compare t.parquet --machine {} --designs no-encryption --limit 50"),
    "m.toml": ("show ./{}", "compare t.parquet --machine {} --designs esd --limit 50"),
}


def ran(line: str) -> tuple[int, str, str]:
    """The status of a command line run in this process, and what it wrote."""
    words = shlex.split(line)
    with (
        io.StringIO() as out,
        io.StringIO() as err,
        patch.object(sys, "argv", ["sardonyx", *words]),
    ):
        with redirect_stdout(out), redirect_stderr(err):
            status = cli._run()
        return status, out.getvalue(), err.getvalue()


def seeds(folder: Path) -> None:
    """Put a right file of each kind into a folder."""
    before = Path.cwd()
    os.chdir(folder)
    try:
        for name, text in (MACHINES | SWEEPS | TEXTS).items():
            Path(name).write_text(text)
        for line in (
            f"trace cut {ROOT}/traces/redis.parquet t.parquet --limit 300",
            f"trace cut {ROOT}/tests/golden/level-cpu.parquet cpu.parquet --limit 300",
            "trace convert t.parquet a.nvt --to nvmain",
            "compare t.parquet --designs baseline,esd --out r1",
            "compare t.parquet --designs baseline,esd --out r2 --set esd.efit_bytes=65536",
        ):
            status, _, said = ran(line)
            assert status == 0, (line, said)
        shutil.copytree(RECORDED, ".", dirs_exist_ok=True)
        program = {"kind": "program", "name": "btree", "transactions": 5, "footprint": 8192}
        cut = {"design": "sca", "machine": "sca", "program": program, "cut": 3}
        version = json.loads(Path("r1/results.json").read_text())["sardonyx"]
        Path("r.json").write_text(json.dumps({"sardonyx": version, "replay": cut}))
    finally:
        os.chdir(before)


# ---- mutations


def by_bytes(content: bytes, draw: random.Random) -> bytes:
    """Some bytes changed, taken, doubled, moved or cut off."""
    made = bytearray(content)
    for _ in range(draw.choice([1, 1, 1, 2, 8])):
        at = draw.randrange(len(made) + 1)
        length = draw.choice([1, 2, 4, 8, 64])
        match draw.randrange(7):
            case 0 if made:
                made[at % len(made)] ^= 1 << draw.randrange(8)
            case 1:
                made[at : at + length] = draw.randbytes(length)
            case 2:
                del made[at : at + length]
            case 3:
                made[at:at] = made[at : at + length] * draw.choice([1, 2, 50])
            case 4:
                del made[at:]
            case 5:
                made[at : at + length] = b"\xff" * length
            case 6:
                made = bytearray(
                    re.sub(
                        rb"\d+(?:\.\d+)?",
                        lambda found: (
                            str(draw.choice(NUMBERS)).encode() if draw.random() < 0.1 else found[0]
                        ),
                        bytes(made),
                    )
                )
    return bytes(made)


def by_lines(content: bytes, draw: random.Random) -> bytes:
    """A word of a text exchanged for another, or a line taken, doubled or moved."""
    lines = content.decode("utf-8", "replace").splitlines()
    at = draw.randrange(len(lines))
    match draw.randrange(5):
        case 0:
            del lines[at]
        case 1:
            lines[at:at] = [lines[at]] * draw.choice([1, 3, 2000])
        case 2:
            lines.insert(draw.randrange(len(lines)), lines.pop(at))
        case _:
            words = re.split(r"(\s+|=|,|\[|\])", lines[at])
            spots = [n for n, word in enumerate(words) if word.strip(" =,[]")]
            if spots:
                value = draw.choice([*NUMBERS, *WORDS, *OTHERS[:4]])
                words[draw.choice(spots)] = draw.choice([str(value), json.dumps(value)])
            lines[at] = "".join(words)
    return "\n".join(lines).encode("utf-8", "surrogatepass") + b"\n"


def mutated(value: Any, draw: random.Random) -> Any:
    """A JSON value with one field exchanged, added, doubled or taken."""
    value = copy.deepcopy(value)
    spots: list[tuple[Any, Any]] = []

    def walk(at: Any) -> None:
        pairs = (
            at.items() if isinstance(at, dict) else enumerate(at) if isinstance(at, list) else ()
        )
        for key, below in list(pairs):
            spots.append((at, key))
            walk(below)

    walk(value)
    for _ in range(draw.choice([1, 1, 2])):
        if not spots:
            return draw.choice([*NUMBERS, *WORDS, *OTHERS])
        at, key = draw.choice(spots)
        with suppress(IndexError, KeyError):
            old = at[key]
            near: list[Any] = (
                [old + 1, old - 1, -old, old << 40, old * 1.5] if isinstance(old, int) else []
            )
            near += [old[:-1], old[:3], old * 40, f"../{old}"] if isinstance(old, str) else []
            match draw.randrange(6):
                case 0:
                    del at[key]
                case 1 if isinstance(at, dict):
                    at[draw.choice(WORDS)] = old
                case 2 if isinstance(at, list):
                    at.insert(0, copy.deepcopy(old))
                case _:
                    at[key] = draw.choice([*near, *near, *near, *NUMBERS, *WORDS, *OTHERS])
    return value


def by_fields(path: Path, draw: random.Random) -> bool:
    """Exchange a field of a JSON file, or of what a Parquet file says of itself or holds."""
    if path.suffix == ".json":
        path.write_text(json.dumps(mutated(json.loads(path.read_text()), draw)))
        return True
    if path.suffix != ".parquet":
        return False
    table = pq.read_table(path)
    metadata = dict(table.schema.metadata or {})
    if draw.random() < 0.7:
        metadata[METADATA] = json.dumps(mutated(json.loads(metadata[METADATA]), draw)).encode()
        table = table.replace_schema_metadata(metadata)
    else:
        name = draw.choice(table.column_names)
        match draw.randrange(4):
            case 0:
                table = table.drop_columns([name])
            case 1:
                table = table.slice(0, draw.choice([0, 1]))
            case 2:
                column = table.column(name).to_pylist()
                column[draw.randrange(len(column))] = None
                field = table.schema.field(name).with_nullable(True)
                table = table.set_column(
                    table.column_names.index(name), field, [type_of(column, field)]
                )
            case 3:
                column = table.column(name).to_pylist()
                if isinstance(column[0], int):
                    at = draw.randrange(len(column))
                    column[at] = draw.choice([0, 1, 200, 2**32 - 1, 2**64 - 1])
                field = table.schema.field(name)
                with suppress(Exception):
                    table = table.set_column(
                        table.column_names.index(name), field, [type_of(column, field)]
                    )
    pq.write_table(table, path, compression="zstd")
    return True


def type_of(column: list[Any], field: Any) -> Any:
    """The column as an array of the field's type."""
    return pyarrow.array(column, field.type)


# ---- cases


@dataclass(frozen=True)
class Case:
    """One mutated file and a command that reads it."""

    number: int
    seed: int

    def prepare(self, right: Path, here: Path) -> str:
        """Put the files into a new folder; the command line."""
        draw = random.Random(self.seed * 1_000_003 + self.number)
        name = draw.choice(list(COMMANDS))
        shutil.copytree(right, here)
        path = here / name
        if draw.random() < 0.4 or not by_fields(path, draw):
            texts = path.suffix != ".parquet" and draw.random() < 0.7
            change: Callable[[bytes, random.Random], bytes] = by_lines if texts else by_bytes
            path.write_bytes(change(path.read_bytes(), draw))
        return draw.choice(COMMANDS[name]).format(name)

    def check(self, right: Path, here: Path) -> str | None:
        """Run it; what is wrong with how it ended."""
        line = self.prepare(right, here)
        before = Path.cwd()
        os.chdir(here)
        try:
            status, said, error = ran(line)
        except BaseException as escaped:  # a panic of the native module is one too
            return f"{line}: {type(escaped).__name__}: {escaped}"
        finally:
            os.chdir(before)
        if status not in range(4):
            return f"{line}: status {status}"
        if "Traceback" in said + error or "panicked" in error:
            return f"{line}: {error}"
        if status == 2 and (error.count("\n") > 4 or not error.startswith("error: ")):
            # Notes may come before the one line.
            lines = [each for each in error.splitlines() if not each.startswith("note: ")]
            if len(lines) > 3 or not any(each.startswith("error: ") for each in lines):
                return f"{line}: {len(lines)} lines: {error[:500]}"
        if re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f]", said + error):
            return f"{line}: a control character reaches the terminal"
        return None


def batch(numbers: list[int], seed: int, right: Path, scratch: Path, told: Any) -> None:
    """Run cases in this process, and tell of each before and after it."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(os.open(scratch / "said", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), 2)
    for number in numbers:
        told.send(("begins", number))
        here = scratch / f"case-{number}"
        shutil.rmtree(here, ignore_errors=True)
        wrong = Case(number, seed).check(right, here)
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
        shutil.rmtree(here, ignore_errors=True)
        told.send(("ended", number, wrong, peak))


def campaign(cases: int, seed: int, right: Path, scratch: Path) -> list[tuple[int, str]]:
    """Run many cases in processes of their own; the number of each that is wrong, and why."""
    found: list[tuple[int, str]] = []
    rest = list(range(cases))
    context = multiprocessing.get_context("fork")
    began = time.monotonic()
    while rest:
        numbers, rest = rest[:BATCH], rest[BATCH:]
        hears, tells = context.Pipe(duplex=False)
        process = context.Process(target=batch, args=(numbers, seed, right, scratch, tells))
        process.start()
        tells.close()
        at: int | None = None
        while True:
            if not hears.poll(SECONDS):
                process.kill()
                found.append((at if at is not None else -1, f"takes more than {SECONDS} s"))
                break
            try:
                word, number, *more = hears.recv()
            except EOFError:
                process.join()
                if process.exitcode:
                    said = (scratch / "said").read_text(errors="replace")[-500:]
                    why = f"its process ended by {process.exitcode}: {said}"
                    found.append((at if at is not None else -1, why))
                break
            at = number
            if word == "ended":
                wrong, peak = more
                if wrong is not None:
                    found.append((number, wrong))
                if peak > MEMORY:
                    found.append((number, f"takes {peak >> 20} MiB"))
                    process.kill()
                    break
        process.join()
        if at is not None:
            rest = [number for number in numbers if number > at] + rest
        if cases >= 1000 and (cases - len(rest)) % 1000 < BATCH:
            done = cases - len(rest)
            print(f"{done} of {cases}, {time.monotonic() - began:.0f} s", file=sys.stderr)
    return found


#: System calls that write, make or remove a file, with its name; not those of descriptors.
_CALLS = "open,openat,creat,unlink,unlinkat,rename,renameat,renameat2,mkdir,mkdirat,rmdir,symlink,"
_CALLS += "symlinkat,link,linkat,truncate,chmod,fchmodat,chown,mknod,mknodat"
_NAMED = re.compile(r'"((?:[^"\\]|\\.)*)"')
#: Where anybody of ours may write: scratch files have names of their own there.
_OURS = re.compile(r"/dev/(null|tty|shm/(sardonyx-|\.?pym)[^/]*(/.*)?|shm/sem\..*)|/proc/self/.*")


def written_outside(log: Path, allowed: Path) -> list[str]:
    """Lines of strace that write, make or remove something outside of a folder."""
    outside = []
    for line in log.read_text(errors="replace").splitlines():
        if " = -1 " in line or "+++" in line or "---" in line:
            continue
        if re.search(r"\bopen(at)?\(", line) and not re.search(
            r"O_(WRONLY|RDWR|CREAT|TRUNC)", line
        ):
            continue
        for name in _NAMED.findall(line):
            whole = os.path.normpath(name) if name.startswith("/") else ""
            if not whole and ".." not in name.split("/"):
                continue  # below the folder of the case, which is where it runs
            if whole.startswith(str(allowed)) or _OURS.fullmatch(whole):
                continue
            outside.append(line)
            break
    return outside


def main() -> int:
    """Run a campaign."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--case", type=int, help="this one alone, with what it says")
    parser.add_argument("--watch", action="store_true", help="follow the system calls, by strace")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="hostile-") as name:
        scratch = Path(name)
        (scratch / "right").mkdir()
        seeds(scratch / "right")
        if asked.case is not None:
            case = Case(asked.case, asked.seed)
            line = case.prepare(scratch / "right", scratch / "case")
            os.chdir(scratch / "case")
            print(line, *ran(line), sep="\n")
            return 0
        if asked.watch:
            log = scratch / "calls"
            inner = [
                sys.executable,
                __file__,
                "--cases",
                str(asked.cases),
                "--seed",
                str(asked.seed),
            ]
            environment = os.environ | {"TMPDIR": name, "PYTHONDONTWRITEBYTECODE": "1"}
            command = ["strace", "-f", "-qq", "-o", str(log), "-e", f"trace={_CALLS}", *inner]
            status = subprocess.run(command, env=environment, check=False).returncode
            outside = written_outside(log, scratch)
            print(*outside[:20], sep="\n")
            print(f"{len(outside)} files were touched outside of the folder")
            return status or bool(outside)
        found = campaign(asked.cases, asked.seed, scratch / "right", scratch)
    for number, wrong in found:
        print(f"case {number}: {wrong}")
    print(f"{asked.cases} cases, {len(found)} wrong (seed {asked.seed})")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
