"""Ready-made checks of a folder: ``python ready_made.py sqlite DIR``.

Each lets the program's own recovery run and asks it whether the data are whole. A recovery runs
this file alone, many times, so it needs nothing but Python. It says nothing of promises.
"""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

HEADER = b"SQLite format 3\0"
#: Names that databases have, and files beside them that only databases have.
SQLITE_NAMES = {".db", ".db3", ".sqlite", ".sqlite3"}
BESIDE = ("-journal", "-wal")


def databases(folder: Path) -> Iterator[Path]:
    """The SQLite databases of a folder, by name, by header, or by a log beside them."""
    for path in sorted(folder.rglob("*")):
        if not path.is_file() or path.name.endswith((*BESIDE, "-shm")):
            continue
        with path.open("rb") as file:
            known = file.read(len(HEADER)) == HEADER
        logged = any(path.with_name(path.name + end).exists() for end in BESIDE)
        if known or logged or path.suffix in SQLITE_NAMES:
            yield path


def sqlite(folder: Path) -> str | None:
    """What is wrong with a folder's SQLite databases, once SQLite has recovered them."""
    for path in databases(folder):
        try:
            with sqlite3.connect(path) as database:
                found = [str(row[0]) for row in database.execute("PRAGMA integrity_check")]
        except sqlite3.Error as error:
            found = [str(error)]
        if found != ["ok"]:
            return f"{path.name}: {found[0]}"
    return None


def repositories(folder: Path) -> Iterator[Path]:
    """The git repositories of a folder, bare or not, whose making was finished."""
    for head in sorted(folder.rglob("HEAD")):
        if (head.parent / "objects").is_dir() and (head.parent / "refs").is_dir():
            yield head.parent


def git(folder: Path) -> str | None:
    """What is wrong with a folder's git repositories: objects, references and the index."""
    environment = os.environ | {"GIT_CONFIG_NOSYSTEM": "1", "GIT_OPTIONAL_LOCKS": "0"}
    for place in repositories(folder):
        ask = ["git", "-c", "safe.directory=*", f"--git-dir={place}"]
        for what in (["fsck", "--full", "--no-dangling", "--no-progress"], ["ls-files", "-s"]):
            ran = subprocess.run(
                [*ask, *what], env=environment, capture_output=True, text=True, check=False
            )
            if ran.returncode:
                said = (ran.stderr + ran.stdout).splitlines()
                said = [line for line in said if not line.startswith("notice")]
                first = said[0].replace(f"{folder}/", "") if said else ran.returncode
                return f"git {what[0]}: {first}"
    return None


#: Every ready-made check, and what it looks at in a folder.
CHECKS: dict[str, Callable[[Path], str | None]] = {"git": git, "sqlite": sqlite}
LOOKED_AT: dict[str, tuple[str, Callable[[Path], Iterator[Path]]]] = {
    "git": ("git repository", repositories),
    "sqlite": ("SQLite database", databases),
}


def main(name: str, folder: str) -> int:
    """1 if something is wrong, with a line that says what."""
    wrong = CHECKS[name](Path(folder))
    if wrong is not None:
        print(wrong)
    return int(wrong is not None)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
