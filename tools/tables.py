"""Tables of the docs that commands write: run the commands, compare their tables, or write them.

A table stands between two markers, the first of which names the command, where its JSON has the
rows, and the columns; ``quick`` marks a command of seconds:

    <!-- table quick: sardonyx compare redis | results.runs: design, metrics.ipc=IPC -->
    <!-- /table -->

A column is a path into the row, with a heading after ``=``; ``%`` after the path makes a share a
percentage. A list is written as the first members of its members. A member that has members itself
is written as names and values, as the sizes of a candidate of ``explore``. Without columns the rows
are an exhibit's, of which each cell has ours and the paper's.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
MARKED = re.compile(
    r"^(<!-- table( quick)?: (.*?) \| (\S+?)(?:: (.*?))? -->)\n(.*?)^<!-- /table -->$", re.M | re.S
)
#: Units of a row whose figures are shares of 1.
SHARES = ("%", "pp")
#: Commands that would leave results in the folder where they run.
LEAVE_RESULTS = ("compare", "crash", "explore", "reproduce")


def pages() -> list[Path]:
    """The pages that may have tables."""
    return [ROOT / "README.md", ROOT / "traces/README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def ask(command: str, scratch: str) -> Any:
    """What the command says in JSON."""
    words = shlex.split(command)
    words[0] = str(Path(sys.executable).with_name("sardonyx"))
    if words[1] in LEAVE_RESULTS:
        words += ["--out", f"{scratch}/results"]
    done = subprocess.run([*words, "--json", "-"], cwd=ROOT, capture_output=True, text=True)
    if done.returncode not in (0, 1) or not done.stdout:
        raise SystemExit(f"tables: {command}: {done.stderr.strip()}")
    return json.loads(done.stdout)


def at(document: Any, path: str) -> Any:
    """The member that the path leads to; all of it for a dot."""
    for name in path.split(".") if path != "." else ():
        if name not in document:
            raise SystemExit(f"tables: no {name} in {path}; there are {', '.join(document)}")
        document = document[name]
    return document


def text(value: Any, percent: bool = False) -> str:
    """A cell: figures with four digits, names as they are."""
    if value is None:
        return ""
    if isinstance(value, list):
        return ", ".join(text(next(iter(one.values()))) for one in value)
    if isinstance(value, dict) and "ours" not in value:
        return ", ".join(f"{name} {text(one)}" for name, one in value.items())
    if isinstance(value, dict):
        apart = value["paper"] and not value["agrees"]
        return f"{value['ours']} (the paper: {value['paper']})" if apart else str(value["ours"])
    if isinstance(value, bool) or not isinstance(value, int | float):
        return str(value)
    if percent:
        return f"{100 * value:.3g} %"
    if isinstance(value, int) or abs(value) >= 1000:
        return f"{value:,.0f}"
    return f"{value:.3g}" if abs(value) < 100 else f"{value:.1f}"


def table(document: Any, place: str, columns: str | None) -> str:
    """The table in Markdown."""
    rows = at(document, place)
    rows = rows if isinstance(rows, list) else [rows]
    if columns is None:
        heads = [name for name in rows[0] if name != "in_the_paper"]
        lines = [heads, ["---"] * len(heads)]
        lines += [[text(row[name]) for name in heads] for row in rows]
    else:
        asked = [column.strip().partition("=") for column in columns.split(",")]
        heads = [head or path.rstrip("%") for path, _, head in asked]
        lines = [heads, ["---"] * len(heads)]
        for row in rows:
            share = row.get("unit") in SHARES
            cells = [
                text(at(row, path.rstrip("%")), share or path.endswith("%")) for path, _, _ in asked
            ]
            lines.append(cells)
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def found(page: str, quick: bool) -> Iterator[re.Match[str]]:
    """The marked tables of a page, or those of commands that take seconds."""
    return (each for each in MARKED.finditer(page) if each[2] or not quick)


def main() -> int:
    """Compare the tables; with ``--write`` put what the commands say into the pages."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="the commands marked quick only")
    parser.add_argument("--write", action="store_true", help="write what differs")
    parser.add_argument("pages", nargs="*", type=Path, help="default: all of the docs")
    given = parser.parse_args()
    answers: dict[str, Any] = {}
    count = wrong = 0
    for path in given.pages or pages():
        page = path.read_text()
        for each in list(found(page, given.quick)):
            command, count = each[3], count + 1
            if command not in answers:
                print(f"tables: {command}", file=sys.stderr, flush=True)
                with tempfile.TemporaryDirectory() as scratch:
                    answers[command] = ask(command, scratch)
            now = table(answers[command], each[4], each[5])
            if now != each[6]:
                wrong += 1
                print(f"{os.path.relpath(path)}: {command}: the table differs")
                page = page.replace(each[0], f"{each[1]}\n{now}<!-- /table -->")
        if given.write:
            path.write_text(page)
    print(f"tables: {wrong} of {count} differ")
    return 1 if wrong and not given.write else 0


if __name__ == "__main__":
    sys.exit(main())
