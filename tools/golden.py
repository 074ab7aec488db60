"""The golden files, tests/golden/*.txt: commands and what they said, as text, so that a change of
the simulator's inside can be held against it. Each command is run and its lines are compared.

A row has a few figures and a digest of all that was said of a design; ``--whole FOLDER`` writes all
of it, so that two checkouts can be compared figure by figure.

It knows nothing but the command line. Of ``crash`` it keeps whether any of three seeds violates
what is promised, and of the SCA paper's Table 1 the cells, because the schedules behind both may
change. Left out: ``requests_per_second``, which is the host's, and the latency distributions.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "tests" / "golden"
SEEDS = ("1", "2", "3")
#: What `crash` counts of each kind of violation.
CUTS = {"recoverability": "lost_cuts", "secrecy": "secret_cuts"}
#: What a line of causes holds for each of them, in this order.
QUANTITIES = ["latency_ns", "write_latency_ns", "read_latency_ns", "wait_ns", "energy_nj"]
QUANTITIES += ["medium_reads", "medium_writes"]
#: A run of a reproduction in a few figures; its claims are made of all.
BRIEF = {"simulated_ns", "energy_nj", "mean_read_latency_ns", "mean_write_latency_ns"}
BRIEF |= {"medium_reads", "medium_writes", "medium_write_bytes", "metadata_bytes", "ipc"}
#: Figures of a row beside its digest.
ROW = (
    "simulated_ns",
    "energy_nj",
    "mean_read_latency_ns",
    "mean_write_latency_ns",
    "medium_writes",
    "ipc",
)
CLAIM = ("reported", "ours", "gap", "unit")
SHOWN_LINES, SHOWN_FIGURES = 40, 6

#: What is said under a name.
Lines = dict[str, str]
#: Commands, each behind ``quick:`` or ``full:``, and their lines, in the order of the file.
Golden = dict[str, Lines]


def figure(value: Any) -> str:
    """A value as it is read back exactly; 5.0 and 5 are one."""
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        value = int(value)
    return value.replace(" ", "_") if isinstance(value, str) else json.dumps(value)


def figures(values: dict[str, Any]) -> str:
    return " ".join(f"{name}={figure(values[name])}" for name in sorted(values))


def run_key(run: dict[str, Any]) -> str:
    variant = [f"{name}={run['variant'][name]}" for name in sorted(run["variant"])]
    return " ".join([run["trace"], run["design"], f"x{run['copies']}", *variant])


def compared(document: dict[str, Any]) -> Lines:
    lines: Lines = {}
    for trace in document["traces"]:
        facts = {n: v for n, v in trace["info"].items() if isinstance(v, int | float)}
        lines[f"{trace['name']} facts"] = figures(facts)
    assumed: Lines = {}  # by design; a trace's own only where it differs
    for run in document["runs"]:
        key, metrics = run_key(run), run["metrics"]
        lines[f"{key} metrics"] = figures(
            {name: metrics[name] for name in metrics if name != "requests_per_second"}
        )
        causes = {
            cause: "/".join(figure(booked.get(name)) for name in QUANTITIES)
            for cause, booked in run["causes"].items()
        }
        lines[f"{key} causes"] = figures(causes)
        names = " ".join(run["assumed"]) or "none"
        if assumed.setdefault(f"{run['design']} assumed", names) != names:
            lines[f"{key} assumed"] = names
    return lines | assumed


def reproduced(document: dict[str, Any]) -> Lines:
    lines: Lines = {}
    for claim in document["claims"]:
        key = " ".join(claim[name] for name in ("where", "metric", "design", "stat"))
        shown = {name: claim[name] for name in ("reported", "ours", "gap", "unit")}
        shown |= {f"of[{name}]".replace(" ", "_"): v for name, v in claim["workloads"].items()}
        shown |= {f"reading[{name}]": json.dumps(v) for name, v in claim["readings"].items()}
        lines[f"claim {key}"] = figures(shown)
        lines[f"claim {key} assumed"] = " ".join(claim["assumed"]) or "none"
    for run in document["results"]["runs"]:
        metrics = {name: run["metrics"][name] for name in BRIEF & run["metrics"].keys()}
        lines[f"run {run_key(run)}"] = figures(metrics)
    for row in document.get("table_1", {"rows": []})["rows"]:
        cells = {name: row[name]["ours"] for name in ("backup", "data", "counter_atomicity")}
        lines[f"table-1 {row['stage']}"] = figures(cells)
    return lines


def verdicts(sardonyx: str, words: Sequence[str]) -> Lines:
    """Each design's verdict: it holds if no seed has a violation. A mutant that one seed catches
    is caught.
    """
    lines: Lines = {}
    for seed in SEEDS:
        for run in ask(sardonyx, [*words, "--jobs", "1", "--seed", seed])["runs"]:
            lines.setdefault(f"{run['design']} promises", run["guarantee"])
            for kind in CUTS:
                if kind == "secrecy" and run["mutant"]:
                    continue
                if run[CUTS[kind]]:
                    lines[f"{run['design']} {kind}"] = "violated"
                lines.setdefault(f"{run['design']} {kind}", "holds")
        if "--mutant" in words and "violated" in lines.values():
            break
    return lines


def condensed(whole: Lines) -> Lines:
    """A row for each run of a comparison, each claim and each design of a reproduction: a few
    figures and a digest of all that was said of it. Other lines stay as they are.
    """
    rows: dict[str, dict[str, str]] = {}
    for key, text in whole.items():
        words = key.split()
        if words[0] == "run":
            rows.setdefault(f"runs of {words[2]}", {})[key] = text
        elif words[0] == "claim" or words[-1] in ("metrics", "causes", "assumed"):
            name = key.removesuffix(" assumed").removesuffix(" metrics").removesuffix(" causes")
            rows.setdefault(name, {})[key] = text
        else:
            rows.setdefault(key, {})["itself"] = text
    lines: Lines = {}
    for name, said in rows.items():
        if "itself" in said:
            lines[name] = said["itself"]
            continue
        text = "\n".join(f"{key}: {said[key]}" for key in sorted(said))
        digest = hashlib.blake2b(text.encode(), digest_size=8).hexdigest()
        found = dict(word.partition("=")[::2] for word in text.split())
        shown = [f"{n}={found[n]}" for n in (*ROW, *CLAIM) if n in found]
        if name.startswith("runs of "):
            shown = [f"runs={len(said)}"]
        lines[name] = " ".join([*shown, f"digest={digest}"])
    return lines


def ask(sardonyx: str, words: Sequence[str]) -> Any:
    """What the command says in JSON."""
    line = [sardonyx, *words, "--json", "-"]
    done = subprocess.run(line, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode not in (0, 1) or not done.stdout:
        raise SystemExit(f"golden: {' '.join(line)}: {done.stderr.strip()}")
    return json.loads(done.stdout)


def said(sardonyx: str, command: str) -> Lines:
    """What the command says now."""
    words = command.split()[1:]
    if words[0] == "crash":
        return verdicts(sardonyx, words)
    if words[0] not in ("compare", "reproduce"):
        return {"names": " ".join(row["name"] for row in ask(sardonyx, words))}
    words += ["--jobs", "1"]
    with tempfile.TemporaryDirectory() as scratch:
        document = ask(sardonyx, [*words, "--out", scratch])
    return compared(document) if words[0] == "compare" else reproduced(document)


def read(path: Path) -> Golden:
    golden: Golden = {}
    lines: Lines = {}
    for row in path.read_text().splitlines():
        if row.startswith(("quick:", "full:")):
            lines = golden.setdefault(row, {})
        elif row.startswith("  "):
            key, _, text = row.strip().rpartition(": ")
            lines[key] = text
    return golden


def write(path: Path, golden: Golden) -> None:
    text = f"# Commands, and what they say: see tools/golden.py. Causes: {'/'.join(QUANTITIES)}\n"
    for command, lines in golden.items():
        text += f"\n{command}\n" + "".join(f"  {key}: {lines[key]}\n" for key in sorted(lines))
    path.write_text(text)


def difference(was: str, now: str) -> list[str]:
    """The first figures in which two lines differ, with both values."""
    old, new = (dict(word.partition("=")[::2] for word in line.split()) for line in (was, now))
    names = [name for name in {**old, **new} if old.get(name) != new.get(name)]
    values = [[side.get(n, "absent") or "present" for side in (old, new)] for n in names]
    words = [f"{n}: {a} -> {b}" for n, (a, b) in zip(names, values, strict=True)]
    more = [f"and {len(words) - SHOWN_FIGURES} more"] if len(words) > SHOWN_FIGURES else []
    return [*words[:SHOWN_FIGURES], *more] or ["in another order"]


def differences(command: str, golden: Lines, now: Lines) -> list[str]:
    """A text for each line that differs."""
    keys = [key for key in sorted({**golden, **now}) if golden.get(key) != now.get(key)]
    return [
        f"{command}\n  {key}\n    "
        + "\n    ".join(difference(golden.get(key, ""), now.get(key, "")))
        for key in keys
    ]


def main() -> None:
    files = {path.stem: path for path in sorted(FOLDER.glob("*.txt"))}
    parser = argparse.ArgumentParser(description="Run the golden files' commands and compare.")
    parser.add_argument("--write", action="store_true", help="put what is said now into the files")
    parser.add_argument("--quick", action="store_true", help="the commands marked quick only")
    parser.add_argument("--part", choices=files, action="append", help="a file; default: all")
    parser.add_argument("--jobs", type=int, default=2, help="commands at once; default 2")
    parser.add_argument("--whole", type=Path, metavar="FOLDER", help="write all that was said here")
    parser.add_argument("--sardonyx", default=f"{ROOT}/.venv/bin/sardonyx", metavar="FILE")
    given = parser.parse_args()
    golden = {part: read(files[part]) for part in given.part or files}
    todo = [(part, command) for part, commands in golden.items() for command in commands]
    todo = [(p, c) for p, c in todo if c.startswith("quick:") or not given.quick]
    todo.sort(key=lambda item: "reproduce" not in item[1])  # the longest first
    wrong: list[str] = []
    whole: dict[str, Golden] = {part: {} for part in golden}
    with ThreadPoolExecutor(given.jobs) as pool:
        asked = {pool.submit(said, given.sardonyx, item[1]): item for item in todo}
        for done, answer in enumerate(as_completed(asked), 1):
            part, command = asked[answer]
            if answer.exception():
                pool.shutdown(cancel_futures=True)
            whole[part][command] = answer.result()
            lines = condensed(answer.result())
            wrong += differences(command, golden[part][command], lines)
            golden[part][command] = lines
            print(f"\rgolden: {done} of {len(todo)} ", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    if given.whole:
        given.whole.mkdir(parents=True, exist_ok=True)
        for part, commands in whole.items():
            write(given.whole / f"{part}.txt", dict(sorted(commands.items())))
    if given.write:
        for part, commands in golden.items():
            write(files[part], commands)
    print("\n".join(sorted(wrong)[:SHOWN_LINES]))
    total = sum(len(golden[part][command]) for part, command in todo)
    print(f"golden: {len(wrong)} of {total} lines differ")
    raise SystemExit(bool(wrong) and not given.write)


if __name__ == "__main__":
    main()
