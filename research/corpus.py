"""The corpus: real programs, recorded with inputs made here, and how often they write duplicates.

``make corpus`` installs the Debian packages, makes the inputs from
a fixed seed, records each program with and without a last-level cache, and writes the table of
docs/tables/corpus.tsv. The recordings stay in the output folder.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import random
import shutil
import struct
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

#: Below which each program is recorded: ESD's own last level (16 MB, HPCA 2023, Table I), and none.
CACHES = {"16M": "16M:16", "none": "none"}
#: ESD (HPCA 2023): the mean share of duplicate writes (Fig. 1), and of the distinct contents those
#: written more than 1000 times with their share of the writes (Fig. 3).
ESD_DUPLICATES = 0.629
ESD_HOT_CONTENTS = 0.0008
ESD_HOT_WRITES = 0.427
MILLION = 1_000_000


@dataclass(frozen=True)
class Subject:
    """A program of the corpus."""

    name: str
    what: str
    packages: tuple[str, ...]
    command: tuple[str, ...]
    #: Makes the input in the folder that is the working directory.
    prepare: Callable[[Path], None] = field(default=lambda _: None)
    #: Millions of instructions of start-up that are left out.
    skip: int = 100
    #: Runs beside the program, as a load on it.
    load: tuple[str, ...] = ()


def _words(path: Path, count: int, seed: int) -> None:
    chance = random.Random(seed)
    letters = "etaoinshrdlucmfwypvbgkqjxz"
    weights = [1 / (k + 1) for k in range(len(letters))]
    known = ["".join(chance.choices(letters, weights, k=chance.randint(2, 9))) for _ in range(9000)]
    ranks = [1 / (k + 1) for k in range(len(known))]
    with path.open("w") as file:
        for _ in range(count // 12):
            file.write(" ".join(chance.choices(known, ranks, k=12)) + "\n")


def _text(folder: Path) -> None:
    _words(folder / "text", 4 * MILLION, 1)


def _sql(folder: Path) -> None:
    (folder / "q.sql").write_text(
        "create table t(a integer primary key, b text, c integer);\n"
        "with recursive n(x) as (select 1 union all select x + 1 from n where x < 400000)\n"
        "insert into t select x, hex(x * 7919) || x, x * 31 % 1000 from n;\n"
        "create index i on t(c);\nupdate t set b = b || c where c % 7 = 0;\n"
        "select c, count(*), max(length(b)) from t group by c order by 2 desc limit 5;\n"
        "delete from t where c between 100 and 300; vacuum;\n"
    )


def _c_source(folder: Path) -> None:
    chance = random.Random(2)
    lines = ["typedef struct { int a[8]; double d; char *s; } T;", "int printf(const char *, ...);"]
    for k in range(6000):
        a, b, c = (chance.randint(1, 99) for _ in range(3))
        call = f"f{chance.randrange(k)}(t, x - {a})" if k else "x"
        lines.append(
            f"static int f{k}(T *t, int x) {{ int s = {a}; for (int i = 0; i < {b}; i++) {{ "
            f"t->a[i % 8] += s ^ i; if (t->a[{c % 8}] > {c}) s += {call}; else t->d *= 1.{c}; }} "
            f"switch (x % 5) {{ case 0: return s; case 1: return t->a[{a % 8}]; "
            f'default: printf("%d {k}\\n", s); }} return s / {b}; }}'
        )
    lines.append("int main(void) { T t = {0}; return f5999(&t, 7); }")
    (folder / "big.c").write_text("\n".join(lines) + "\n")


def _video(folder: Path) -> None:
    width, height = 640, 360
    chance = random.Random(3)
    noise = chance.randbytes(width * height)
    with (folder / "v.yuv").open("wb") as file:
        for frame in range(24):
            rows = []
            for y in range(height):
                shift = (frame * 3 + y // 4) % width
                gradient = bytes((x + y + 2 * frame) % 256 for x in range(0, width, 2))
                rows.append(noise[y * 7 + shift : y * 7 + shift + width // 2] + gradient)
            file.write(b"".join(rows).ljust(width * height, b"\x10"))
            file.write(bytes((frame * 5 + k // 160) % 256 for k in range(width * height // 2)))


def _sound(folder: Path) -> None:
    chance = random.Random(4)
    frames = 60 * 44100
    samples = bytearray()
    for i in range(frames):
        t = i / 44100
        value = 9000 * math.sin(t * 2764 + 3 * math.sin(t * 11)) + chance.randint(-900, 900)
        samples += struct.pack("<hh", int(value), int(value * 0.7) + chance.randint(-50, 50))
    head = struct.pack(
        "<4sI4s4sIHHIIHH4sI", b"RIFF", 36 + len(samples), b"WAVE", b"fmt ", 16, 1, 2, 44100,
        44100 * 4, 4, 16, b"data", len(samples),
    )  # fmt: skip
    (folder / "s.wav").write_bytes(head + samples)


def _script(folder: Path) -> None:
    (folder / "job.py").write_text(
        "import json, re\n"
        "words = open('text').read().split()\ncount = {}\n"
        "for at, word in enumerate(words):\n    count.setdefault(word, []).append(at)\n"
        "rows = [{'word': w, 'n': len(p), 'mean': sum(p) / len(p)} for w, p in count.items()]\n"
        "back = json.loads(json.dumps(rows))\nback.sort(key=lambda r: (-r['n'], r['word']))\n"
        "print(len(re.findall(r'[aeiou]{2}', ' '.join(words[:400000]))), back[:3])\n"
    )
    _words(folder / "text", MILLION, 5)


def _lua(folder: Path) -> None:
    (folder / "job.lua").write_text(
        "local t = {}\n"
        "for i = 1, 600000 do t[i] = {key = (i * 7919) % 1000003, name = 'n' .. i} end\n"
        "table.sort(t, function(a, b) return a.key < b.key end)\nlocal s = 0\n"
        "for i = 1, #t, 3 do t[i].next = t[(i * 31) % #t + 1]; s = s + t[i].key end\n"
        "local out = {}\nfor i = 1, #t do out[#out + 1] = t[i].name:upper() end\n"
        "print(s, #table.concat(out, ','))\n"
    )


def _scene(folder: Path) -> None:
    chance = random.Random(6)
    lines = [
        "camera { location <0, 6, -16> look_at 0 }",
        "light_source { <20, 30, -20> rgb 1 }",
        "plane { y, -2 pigment { checker rgb 1 rgb <0.2, 0.3, 0.4> } finish { reflection 0.2 } }",
    ]
    for _ in range(4000):
        x, y, z = (chance.uniform(-9, 9), chance.uniform(-2, 6), chance.uniform(-9, 9))
        color = ", ".join(f"{chance.random():.2f}" for _ in range(3))
        lines.append(
            f"sphere {{ <{x:.3f}, {y:.3f}, {z:.3f}>, {chance.uniform(0.1, 0.5):.2f} "
            f"pigment {{ rgb <{color}> }} finish {{ reflection 0.3 phong 0.6 }} }}"
        )
    (folder / "scene.pov").write_text("\n".join(lines) + "\n")


def _picture(folder: Path) -> None:
    chance = random.Random(7)
    width, height = 1600, 1200
    rows = bytearray()
    for y in range(height):
        base = chance.randrange(40)
        rows += bytes((x * (1 + c) // 9 + y + base) % 256 for x in range(width) for c in range(3))
    (folder / "p.ppm").write_bytes(b"P6\n%d %d\n255\n" % (width, height) + rows)


def _graph(folder: Path) -> None:
    chance = random.Random(8)
    edges = (f"n{chance.randrange(1500)} -- n{chance.randrange(1500)};" for _ in range(3000))
    (folder / "g.dot").write_text("graph g {\n" + "\n".join(edges) + "\n}\n")


def _program(folder: Path) -> None:
    chance = random.Random(9)
    rows = 700
    lines = [
        "Minimize",
        " cost: " + " + ".join(f"{chance.randint(1, 99)} x{k}" for k in range(900)),
    ]
    lines.append("Subject To")
    for row in range(rows):
        chosen = chance.sample(range(900), 12)
        terms = " + ".join(f"{chance.randint(1, 20)} x{k}" for k in chosen)
        lines.append(f" c{row}: {terms} >= {chance.randint(50, 900)}")
    lines += ["End", ""]
    (folder / "p.lp").write_text("\n".join(lines))


def _numbers(folder: Path) -> None:
    (folder / "job.gp").write_text(
        "m = matrix(160, 160, i, j, (i * j * 7919) % 1009 - 500);\nprint(matdet(m) % 10^9);\n"
        "print(vecsum(vector(300, k, bigomega(10^30 + k))));\nquit\n"
    )


def _redis_load() -> tuple[str, ...]:
    wait = (
        "for i in $(seq 600); do redis-cli -p 7379 ping > /dev/null 2>&1 && break; sleep 0.1; done"
    )
    bench = "redis-benchmark -q -p 7379 -n 300000 -r 200000 -d 200 -P 16 -t set,get,incr,lpush,hset"
    return ("sh", "-c", f"{wait}; {bench}; redis-cli -p 7379 shutdown nosave")


CC1 = "/usr/lib/gcc/x86_64-linux-gnu/12/cc1"
SUBJECTS = (
    Subject("sqlite3", "database: 400k rows, index, update, vacuum", ("sqlite3",),
            ("sqlite3", ":memory:", ".read q.sql"), _sql),
    Subject("redis", "key-value server under redis-benchmark, 200-byte values",
            ("redis-server", "redis-tools"),
            ("redis-server", "--port", "7379", "--save", "", "--appendonly", "no"),
            skip=50, load=_redis_load()),
    Subject("cc1", "GCC 12 -O2 on 6,000 C functions", ("gcc-12",),
            (CC1, "-quiet", "-O2", "big.c", "-o", "big.s"), _c_source, 300),
    Subject("x264", "video encoder, 24 frames of 640x360", ("x264",),
            ("x264", "--threads", "4", "--input-res", "640x360", "-o", "v.mkv", "v.yuv"), _video),
    Subject("flac", "audio encoder, a minute of stereo", ("flac",),
            ("flac", "-f", "-8", "s.wav", "-o", "s.flac"), _sound, 50),
    Subject("xz", "compressor -6 on words", ("xz-utils",),
            ("xz", "-k", "-f", "-6", "text"), _text, 50),
    Subject("zstd", "compressor -12 on words", ("zstd",),
            ("zstd", "-q", "-f", "-12", "--single-thread", "text", "-o", "text.zst"), _text, 400),
    Subject("sort", "coreutils sort of words by line", ("coreutils",),
            ("sort", "--parallel=2", "-S", "400M", "text", "-o", "sorted"), _text, 20),
    Subject("python3", "interpreter: count, JSON, sort, regular expressions", ("python3-minimal",),
            ("/usr/bin/python3", "job.py"), _script),
    Subject("lua", "interpreter: tables, sort, strings", ("lua5.4",),
            ("lua5.4", "job.lua"), _lua, 20),
    Subject("stockfish", "chess engine, bench 32 MB", ("stockfish",),
            ("/usr/games/stockfish", "bench", "32", "1", "9"), skip=1500),
    Subject("povray", "ray tracer, 4,000 spheres", ("povray",),
            ("povray", "+Iscene.pov", "+W320", "+H240", "-D", "+WT2", "-GA", "+Oscene.png"),
            _scene),
    Subject("imagemagick", "image processing: blur, resize, rotate, PNG", ("imagemagick",),
            ("convert-im6.q16", "-limit", "thread", "2", "p.ppm", "-blur", "0x2", "-resize", "70%",
             "-rotate", "7", "p.png"), _picture, 50),
    Subject("graphviz", "graph layout (sfdp) of 1,500 nodes", ("graphviz",),
            ("sfdp", "-Tplain", "g.dot", "-o", "g.plain"), _graph, 50),
    Subject("glpsol", "linear program, 900 by 700", ("glpk-utils",),
            ("glpsol", "--lp", "p.lp", "-o", "p.out"), _program, 20),
    Subject("pari-gp", "numerical: matrices, factoring", ("pari-gp",),
            ("gp", "-q", "-s", "200M", "job.gp"),
            _numbers),
)  # fmt: skip


class Failure(Exception):
    """One line that says what went wrong."""


def install(subjects: tuple[Subject, ...]) -> None:
    """Install what is missing; an error says what to do."""
    packages = sorted({p for subject in subjects for p in subject.packages})
    shown = subprocess.run(
        ["dpkg-query", "-W", "-f", "${Package} ${db:Status-Status}\n", *packages],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    there = {line.split()[0] for line in shown.stdout.splitlines() if line.endswith(" installed")}
    missing = [package for package in packages if package not in there]
    if not missing:
        return
    say(f"installing {', '.join(missing)}")
    as_root = [] if os.geteuid() == 0 else ["sudo", "-n"]
    command = [*as_root, "apt-get", "install", "-qq", "--yes", "--no-install-recommends", *missing]
    environment = os.environ | {"DEBIAN_FRONTEND": "noninteractive"}
    done = subprocess.run(command, env=environment, stdout=subprocess.DEVNULL, check=False)
    if done.returncode:
        raise Failure(f"could not install; as root: apt-get install {' '.join(missing)}")


def say(text: str) -> None:
    """Tell whoever waits."""
    print(text, file=sys.stderr, flush=True)


def sardonyx(arguments: list[str], facts: Path, folder: Path | None = None) -> dict[str, Any]:
    """Run a command of Sardonyx in `folder` and give what it writes as JSON."""
    facts.unlink(missing_ok=True)
    at = next((k for k, word in enumerate(arguments) if word == "--"), len(arguments))
    command = [*arguments[:at], "--json", str(facts), *arguments[at:]]
    done = subprocess.run(
        [sys.executable, "-m", "sardonyx", *command], cwd=folder, stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, check=False,
    )  # fmt: skip
    if not facts.is_file():
        errors = done.stderr.splitlines() or [f"status {done.returncode}"]
        raise Failure(next((e for e in errors if e.startswith("error")), errors[-1]))
    answer: dict[str, Any] = json.loads(facts.read_text())
    facts.unlink()
    return answer


def record(subject: Subject, cache: str, out: Path, limits: tuple[int, int]) -> dict[str, Any]:
    """Record one program below one cache and give the statistics of its trace."""
    target = (out / f"{subject.name}-{cache}.parquet").resolve()
    told = target.with_suffix(".json")
    folder = out / "inputs" / subject.name
    if not folder.is_dir():
        folder.mkdir(parents=True)
        subject.prepare(folder)
    load = None
    if subject.load:
        load = subprocess.Popen(
            subject.load, cwd=folder, start_new_session=True,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
    try:
        outcome = sardonyx(
            ["trace", "record", "--output", str(target), "--llc", CACHES[cache],
             "--limit", str(limits[0]), "--limit-instructions", str(limits[1] * MILLION),
             "--skip-instructions", str(subject.skip * MILLION), "--", *subject.command],
            told, folder,
        )  # fmt: skip
    finally:
        if load:
            with suppress(OSError):
                os.killpg(load.pid, 15)
            load.wait()
    facts = sardonyx(["trace", "info", str(target)], told)
    return facts | {"seconds": outcome["seconds"], "bytes": target.stat().st_size}


def _cells(rates: list[tuple[float, ...]]) -> list[str]:
    """The means of a trace's rates, as the table has them."""
    means = (sum(column) / len(rates) for column in zip(*rates, strict=True))
    return [f"{mean:.{digits}%}" for mean, digits in zip(means, (1, 1, 1, 3, 1), strict=True)]


def table(facts: dict[str, dict[str, dict[str, Any]]]) -> str:
    """docs/tables/corpus.tsv."""
    head = ["program"]
    rows = {s.name: [s.name] for s in SUBJECTS if s.name in facts}
    means = ["**mean**"]
    for cache in CACHES:
        place = "16 MiB" if cache == "16M" else "no LLC"
        head += [f"{place}: writes", "dup.", "zero", "silent", "hot contents", "their writes"]
        rates = []
        for name, row in rows.items():
            one = facts[name].get(cache)
            if one is None or not one["writes"]:
                row += ["-"] * 6
                continue
            hot = one["locality"][-1]
            of = [one[rate] for rate in ("duplicate_rate", "zero_rate", "silent_write_rate")]
            rates.append((*of, hot["contents_share"], hot["writes_share"]))
            row += [f"{one['writes']:,}", *_cells(rates[-1:])]
        means += ["", *(_cells(rates) if rates else ["-"] * 5)]
    paper = ["ESD's programs", "", f"{ESD_DUPLICATES:.1%}", "", ""]
    paper += [f"{ESD_HOT_CONTENTS:.2%}", f"{ESD_HOT_WRITES:.1%}", *[""] * 6]
    return "".join("\t".join(row) + "\n" for row in (head, *rows.values(), means, paper))


def main() -> None:
    """Record what was asked for and write the table."""
    parser = argparse.ArgumentParser(prog="make corpus", description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("corpus"))
    parser.add_argument("--only", nargs="*", choices=[s.name for s in SUBJECTS])
    parser.add_argument("--records", type=int, default=600_000, help="of each trace")
    parser.add_argument("--instructions", type=int, default=4000, help="millions, of each trace")
    chosen = parser.parse_args()
    subjects = tuple(s for s in SUBJECTS if not chosen.only or s.name in chosen.only)
    failed = []
    try:
        install(subjects)
    except Failure as error:
        say(f"error: {error}")
        sys.exit(2)
    chosen.out.mkdir(parents=True, exist_ok=True)
    kept = chosen.out / "facts.json"
    facts: dict[str, Any] = json.loads(kept.read_text()) if kept.is_file() else {}
    for subject in subjects:
        for cache in CACHES:
            started = time.monotonic()
            try:
                one = record(subject, cache, chosen.out, (chosen.records, chosen.instructions))
            except Failure as error:
                say(f"{subject.name}, {cache}: {error}")
                failed.append(subject.name)
                continue
            facts.setdefault(subject.name, {})[cache] = one
            say(
                f"{subject.name}, {cache}: {one['records']:,} records, {one['writes']:,} writes, "
                f"{one['duplicate_rate']:.1%} duplicates, {time.monotonic() - started:.0f} s"
            )
            kept.write_text(json.dumps(facts, indent=1) + "\n")
    (chosen.out / "corpus.tsv").write_text(table(facts))
    shutil.rmtree(chosen.out / "inputs", ignore_errors=True)
    say(f"{chosen.out / 'corpus.tsv'}")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
