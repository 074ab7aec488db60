"""Make target/planted, the sources with faults in them, for the test of the crash explorer.

``python tools/planted.py`` copies the crates to target/planted and applies ``faults.patch`` of
crates/sardonyx/planted there. Files that stay what they are keep their times, so that cargo builds
only what has changed. ``python tools/planted.py --save`` writes the patch anew from target/planted:
so whoever adds a fault, or has changed a line near one, edits the files there. Needs git, but no
repository.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NoReturn

ROOT = Path(__file__).parents[1]
FAULTS = "crates/sardonyx/planted/"
PATCH = FAULTS + "faults.patch"
COPY = "target/planted"
#: The copy before the patch, which has its own patch in it.
CLEAN = "target/planted/.clean"

#: What files hold, by path.
Files = dict[str, bytes]


def workspace(root: Path) -> Files:
    """What cargo reads of the workspace in ``root``; nothing if there is none."""
    found = (root / "Cargo.toml", root / "Cargo.lock", *(root / "crates").rglob("*"))
    return {str(file.relative_to(root)): file.read_bytes() for file in found if file.is_file()}


def told_apart(files: Files) -> Files:
    """``files`` with a version of their own.

    Cargo would otherwise take the copies for the originals, which have been moved, and build the
    crates anew at each change from one to the other.
    """
    ours = rb'^(\[workspace\.package\]\n|name = "sardonyx[\w-]*"\n)version = "[^"]+'
    versions = re.compile(ours, re.MULTILINE)
    return files | {
        name: versions.sub(rb"\g<0>-planted", files[name]) for name in ("Cargo.toml", "Cargo.lock")
    }


def write(files: Files, folder: Path) -> None:
    """Make the workspace in ``folder`` that of ``files``; writes what differs and nothing else."""
    known = workspace(folder)
    for name in known.keys() - files.keys():
        (folder / name).unlink()
    for name, text in files.items():
        if known.get(name) != text:
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_bytes(text)


def git(folder: Path, *arguments: str) -> subprocess.CompletedProcess[bytes]:
    """Run git in ``folder``, which is in no repository as far as git can tell."""
    environment = {name: value for name, value in os.environ.items() if name[:4] != "GIT_"}
    environment |= {"GIT_CEILING_DIRECTORIES": str(folder.parent), "LC_ALL": "C"}
    try:
        return subprocess.run(
            ("git", *arguments), cwd=folder, env=environment, capture_output=True, check=False
        )
    except FileNotFoundError:
        stop("no git, which applies the patch; install it")


def with_faults(clean: Files) -> tuple[Files, list[str]]:
    """``clean`` with its patch applied, and the hunks that do not apply."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name).resolve()
        write(clean, folder)
        said = git(folder, "apply", "--reject", "--whitespace=nowarn", PATCH).stderr.decode()
        refused = re.findall("^error: (?!while)(?:patch failed: )?(.+)$", said, re.MULTILINE)
        return workspace(folder), refused


def difference(clean: Files, faulty: Files) -> bytes:
    """The patch that makes ``faulty`` of ``clean``."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name).resolve()
        write(clean, folder / "a")
        write(faulty, folder / "b")
        options = ("--no-prefix", "--no-ext-diff", "--no-color", "--no-renames", "--unified=3")
        patch = git(folder, "diff", "--no-index", "--diff-algorithm=histogram", *options, "a", "b")
        return re.sub(rb"^index .*\n", b"", patch.stdout, flags=re.MULTILINE)


def stop(why: str) -> NoReturn:
    """End with ``why`` on standard error and status 2."""
    print(f"planted.py: {why}", file=sys.stderr)
    raise SystemExit(2)


def make(root: Path) -> None:
    """Make the copy of the workspace in ``root``; refuse to write over edits."""
    before = workspace(root / CLEAN)
    if before and with_faults(before)[0] != workspace(root / COPY):
        stop(
            f"{COPY} has been edited: `python tools/planted.py --save` writes the edits to "
            f"{PATCH}, `rm -r {COPY}` drops them"
        )
    make_anew(root)


def make_anew(root: Path) -> None:
    """Make the copy, whatever is in it."""
    clean = told_apart(workspace(root))
    faulty, refused = with_faults(clean)
    write(faulty, root / COPY)
    write(clean, root / CLEAN)
    if refused:
        stop(
            f"{PATCH} does not apply at {', '.join(refused)}: {COPY} has all other hunks, and "
            "beside the file each that was refused (.rej); put them in there by hand, remove the "
            ".rej, then `python tools/planted.py --save`"
        )


def save(root: Path) -> None:
    """Write the patch of ``root`` anew, and what has been edited of the files beside it."""
    clean, faulty = workspace(root / CLEAN), workspace(root / COPY)
    if not clean:
        stop(f"no {COPY}; `python tools/planted.py` makes it")
    for name in faulty:
        if name.endswith(".rej"):
            stop(f"{COPY}/{name} is left: put its hunk in by hand, then remove it")
        if name.startswith(FAULTS) and name != PATCH and faulty[name] != clean.get(name):
            (root / name).write_bytes(faulty[name])
    clean, faulty = (
        {name: text for name, text in files.items() if not name.startswith(FAULTS)}
        for files in (clean, faulty)
    )
    (root / PATCH).write_bytes(difference(clean, faulty))
    make_anew(root)


def main() -> None:
    """Make the copy, or save the patch."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--save", action="store_true", help="write the patch anew from the copy")
    (save if parser.parse_args().save else make)(ROOT)


if __name__ == "__main__":
    main()
