"""``pack``: an artifact of saved results, and the repetition that its script starts.

The same results and files make the same bytes. A file is packed only if it is below the current
directory, through links too, and has the SHA-256 that the results recorded: results of somebody
else can name any file. Left out: files of other commands than ``compare`` and ``reproduce``.
"""

from __future__ import annotations

import contextlib
import gzip
import hashlib
import io
import json
import os
import re
import shutil
import sys
import tarfile
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from rich.console import Console

from sardonyx import _core
from sardonyx._core import SardonyxError
from sardonyx.answer import Answer
from sardonyx.api.asked import Pack, schema_of, whole
from sardonyx.api.command import ask
from sardonyx.files import FileError, check_target, open_regular, read_text, replacing
from sardonyx.runs import origin
from sardonyx.runs.differences import OF_THE_HOST
from sardonyx.runs.origin import Origin
from sardonyx.runs.recordings import path_of
from sardonyx.runs.results import Results
from sardonyx.runs.scheduler import Watch
from sardonyx.simulator import cite

#: What a question names as files that are read, and as places that are written.
READ = ("traces", "designs", "machine")
WRITTEN = ("out", "timeline", "timeline_window", "requests", "commands", "jobs")
#: The most bytes of a file that is packed; of a larger one only the hash is.
MOST = 1 << 30
#: The most differences that are listed.
LISTED = 40
ENDINGS = (".tar.gz", ".tgz")
REPEAT = '''\
"""Runs the command of these results again.

Status 0: equal. 1: what differs is listed. 2: it cannot be run.
"""
import sys
from pathlib import Path

try:
    from sardonyx.simulator.pack import repeat
except ImportError:
    print("error: this Python has no Sardonyx; install {version}{built}", file=sys.stderr)
    sys.exit(2)
sys.exit(repeat(Path(__file__).resolve().parent))
'''


def answer(asked: Pack, _: Watch | None) -> Answer:
    """What was packed, with its hashes."""
    folder = asked.result if asked.result.is_dir() else asked.result.parent
    results, known = cite.load(asked.result)
    command = known.question.get("command")
    if results.sardonyx != _core.VERSION:
        raise SardonyxError(
            f"{asked.result}: is of Sardonyx {results.sardonyx}, and this is {_core.VERSION}; pack "
            "it with that version, or give its command again"
        )
    if command not in ("compare", "reproduce"):
        raise SardonyxError(
            f"{folder / origin.NAME}: does not say what was asked; compare again and pack that"
        )
    question = _question(known, folder / origin.NAME)
    archive = asked.out.name.endswith(ENDINGS)
    if archive:
        check_target(asked.out, [], "--out ")
    elif os.path.lexists(asked.out):
        raise SardonyxError(f"--out {asked.out}: is there already; name a new directory")
    files, notes = _files(known, question)
    members = _members(asked.result, folder, results, known, question, files)
    sums = {name: _digest(member) for name, member in members.items()}
    lines = (f"{digest}  {name}\n" for name, digest in sums.items())
    members["SHA256SUMS"] = "".join(lines).encode()
    (_write_archive if archive else _write_folder)(asked.out, members)
    return Answer("pack", {"artifact": str(asked.out), "files": sums}, notes=notes)


def tell(people: Console, answer: Answer) -> None:
    """Where it is, and what to do with it."""
    people.print(
        f"artifact: {answer['artifact']} ({len(answer['files'])} files); in it: python repeat.py",
        soft_wrap=True,
    )


def _question(known: Origin, place: Path) -> dict[str, Any]:
    """What of the question has to be given, as the command takes it; checked, as somebody else may
    have written it.
    """
    command = known.question["command"]
    fields = schema_of(command)["properties"]
    try:
        found = {}
        for name, value in known.question.items():
            of = fields.get(name, {})
            if name in fields and name not in WRITTEN and value != of.get("default"):
                pairs = of.get("format") == "pairs"
                found[name] = [f"{key}={each}" for key, each in value] if pairs else value
        whole(command, json.dumps(found))
    except (TypeError, ValueError, SardonyxError) as error:
        raise SardonyxError(f"{place}: its question cannot be asked: {error}") from error
    return found


def _files(known: Origin, question: Mapping[str, Any]) -> tuple[list[dict[str, Any]], list[str]]:
    """The files that the question names, by their words there; and a note for each that is not
    packed.
    """
    hashes = {path: digest for path, digest in known.hashes.items() if path.isprintable()}
    recorded = {os.path.realpath(path): digest for path, digest in hashes.items()}
    here, found, notes = Path.cwd().resolve(), {}, []
    for name in READ:
        given = question.get(name) or ()
        for text in [given] if isinstance(given, str) else given:
            for word in [text, *re.split("[:,]", text)]:
                if word in found or not word or not word.isprintable():
                    continue
                path = Path(path_of(word))
                if (digest := recorded.get(os.path.realpath(path))) is None:
                    continue
                packed = path == Path(word) and _is_below(path, here)
                if packed and _digest(path) != digest:
                    raise SardonyxError(
                        f"{path}: is not the file of these results, its SHA-256 differs; put that "
                        "back, or compare again"
                    )
                if packed and path.stat().st_size > MOST:
                    packed = False
                if not packed:
                    notes.append(f"{word}: is packed as its SHA-256 alone")
                found[word] = {"word": word, "sha256": digest, "packed": packed}
    return list(found.values()), notes


def _is_below(path: Path, here: Path) -> bool:
    inside = not path.is_absolute() and ".." not in path.parts
    return inside and path.is_file() and path.resolve().is_relative_to(here)


def _members(
    result: Path,
    folder: Path,
    results: Results,
    known: Origin,
    question: dict[str, Any],
    files: list[dict[str, Any]],
) -> dict[str, bytes | Path]:
    """The files of the artifact by name, in order."""
    document = cite.document(results, known)
    commit = known.said.get("commit")
    asked = {
        "sardonyx": results.sardonyx,
        "commit": commit,
        "command": known.question["command"],
        "question": question,
        "files": files,
    }
    built = f" (commit {commit})" if commit and re.fullmatch(r"[\w.+-]{1,80}", commit) else ""
    kept = result if result.is_file() else folder / "results.json"
    members: dict[str, bytes | Path] = {
        "README.md": _readme(document, known, files, built).encode(),
        "asked.json": (json.dumps(asked, indent=1) + "\n").encode(),
        "method.tex": cite.text(document, as_latex=True).encode(),
        "origin.json": folder / origin.NAME,
        "repeat.py": REPEAT.format(version=results.sardonyx, built=built).encode(),
        "results.json": kept,
        "sardonyx.bib": document["bibtex"].encode(),
    }
    members |= {f"files/{each['word']}": Path(each["word"]) for each in files if each["packed"]}
    return dict(sorted(members.items()))


def _readme(
    document: Mapping[str, Any], known: Origin, files: list[dict[str, Any]], built: str
) -> str:
    left = [f"* `{each['word']}`: SHA-256 {each['sha256']}" for each in files if not each["packed"]]
    lines = [
        "# Artifact", "", cite.text(document, as_latex=False).replace("`", ""),
        f"`python repeat.py`, with Sardonyx {_core.VERSION}{built}, runs it again: status 0 if all "
        "is equal, 1 with the figures that differ. `sha256sum -c SHA256SUMS` checks the files.",
        *(["", "Not packed; repeat.py looks for them by these names:", "", *left] if left else []),
    ]  # fmt: skip
    return "\n".join([*lines, ""])


def _digest(member: bytes | Path) -> str:
    if isinstance(member, bytes):
        return hashlib.sha256(member).hexdigest()
    with open_regular(member) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _write_folder(out: Path, members: Mapping[str, bytes | Path]) -> None:
    out.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".sardonyx.", dir=out.parent) as scratch:
        whole = Path(scratch, "artifact")
        for name, member in members.items():
            target = whole / name
            target.parent.mkdir(parents=True, exist_ok=True)
            with target.open("wb") as file:
                _copy(member, file)
        whole.rename(out)


def _write_archive(out: Path, members: Mapping[str, bytes | Path]) -> None:
    stem = next(out.name.removesuffix(end) for end in ENDINGS if out.name.endswith(end))
    with (
        replacing(out) as scratch,
        scratch.open("wb") as plain,
        gzip.GzipFile("", "wb", fileobj=plain, mtime=0) as zipped,
        tarfile.open(fileobj=zipped, mode="w", format=tarfile.PAX_FORMAT) as tar,
    ):
        for name, member in members.items():
            info = tarfile.TarInfo(f"{stem}/{name}")
            info.mode = 0o644
            with contextlib.ExitStack() as stack:
                if isinstance(member, bytes):
                    file: Any = io.BytesIO(member)
                    info.size = len(member)
                else:
                    file = stack.enter_context(open_regular(member))
                    info.size = os.fstat(file.fileno()).st_size
                tar.addfile(info, file)


def _copy(member: bytes | Path, file: Any) -> None:
    if isinstance(member, bytes):
        file.write(member)
        return
    with open_regular(member) as source:
        shutil.copyfileobj(source, file)


# ---- in the artifact


def repeat(folder: Path) -> int:
    """Run what an artifact was asked again, and say what differs: its status."""
    try:
        asked = json.loads(read_text(folder / "asked.json"))
        if asked["sardonyx"] != _core.VERSION:
            raise SardonyxError(
                f"this is Sardonyx {_core.VERSION}; install {asked['sardonyx']}, of which the "
                "results are"
            )
        before = Results.load(folder / "results.json").to_document()
        changed = _changed(folder)
        after = _again(folder, asked)
    except (OSError, ValueError, KeyError, TypeError, SardonyxError, FileError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    lines = [f"{name}: is not what was packed" for name in changed]
    lines += _differing(before, after)
    more = [f"{len(lines) - LISTED} more"] if len(lines) > LISTED else []
    for line in [*lines[:LISTED], *more] or [f"equal: {len(before['runs'])} runs"]:
        print(re.sub(r"[\x00-\x1f\x7f-\x9f]", "?", line))  # they may be somebody else's words
    return int(bool(lines))


def _changed(folder: Path) -> list[str]:
    """The files that are not what SHA256SUMS says."""
    lines = read_text(folder / "SHA256SUMS").splitlines()
    sums = {name: digest for digest, _, name in (line.partition("  ") for line in lines)}
    return [
        name
        for name, digest in sums.items()
        if not (folder / name).is_file() or _digest(folder / name) != digest
    ]


def _again(folder: Path, asked: Mapping[str, Any]) -> dict[str, Any]:
    files = folder / "files"
    files.mkdir(exist_ok=True)
    question, command = asked["question"], asked["command"]
    if command not in ("compare", "reproduce"):
        raise SardonyxError(f"asked.json: {command}: is not a command that is packed")
    before = Path.cwd()
    try:
        os.chdir(files)
        for each in asked["files"]:
            path = Path(path_of(each["word"]))
            if not path.is_file():
                raise SardonyxError(f"{files / path}: is not there; put it there")
            if not each["packed"] and _digest(path) != each["sha256"]:
                raise SardonyxError(f"{path}: has another SHA-256 than {each['sha256']}")
        with tempfile.TemporaryDirectory(prefix="sardonyx.") as scratch:
            out = {"out": str(Path(scratch, "out"))} if command == "reproduce" else {}
            found = ask(command, question | out)
    finally:
        os.chdir(before)
    results = found if isinstance(found, Results) else found.shown[0].results
    document: dict[str, Any] = json.loads(json.dumps(results.to_document()))
    return document


def _differing(before: Any, after: Any) -> list[str]:
    """What differs, a line each with its place."""
    one, other = dict(_leaves(before)), dict(_leaves(after))
    return [
        f"{place}: {_said(one, place)}, again {_said(other, place)}"
        for place in dict.fromkeys([*one, *other])
        if one.get(place, other) != other.get(place, one)
    ]


def _said(leaves: Mapping[str, Any], place: str) -> str:
    return json.dumps(leaves[place]) if place in leaves else "nothing"


def _leaves(value: Any, place: str = "") -> Iterator[tuple[str, Any]]:
    """The values of a document by their places; a run by its trace, design and setting."""
    if isinstance(value, dict):
        for name, each in value.items():
            if name not in OF_THE_HOST:
                yield from _leaves(each, f"{place}.{name}" if place else name)
    elif isinstance(value, list):
        for at, each in enumerate(value):
            yield from _leaves(each, f"{place}[{_label(each) or at}]")
    else:
        yield place, value


def _label(value: Any) -> str:
    if not isinstance(value, dict):
        return ""
    words = [value.get(name) for name in ("trace", "design", "parameter", "name")]
    setting = [f"{key}={each}" for key, each in (value.get("variant") or {}).items()]
    return " ".join([*(word for word in words if isinstance(word, str)), *setting])
