"""Where the operations of a run come from: a trace file, a generated trace, or a program.

A source is a value: ``parse`` reads what users write, the native module gets it as JSON
(``crates/native/src/sources.rs``). Left out: opening one, which is native.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from sardonyx import _core
from sardonyx.questions import ProgramSource, Source, SynthSource, TraceSource
from sardonyx.runs.recordings import path_of, recordings

#: A program of the sizes that nobody has asked for otherwise.
PROGRAM = ProgramSource()
#: What marks a generated trace where users name a file.
SYNTH = "synth:"
#: The largest number that the native side counts to.
LARGEST = 2**64 - 1


def known_programs() -> list[str]:
    """The names of all persistent programs."""
    return [str(program["name"]) for program in json.loads(_core.programs())["programs"]]


def program_names(texts: Sequence[str]) -> set[str]:
    """Those that name programs: no file is called so."""
    known = set(known_programs())
    return {text for text in texts if text in known and not Path(text).exists()}


def named(
    texts: Sequence[str], limit: int | None = None, program: ProgramSource | None = None
) -> dict[str, Source]:
    """Sources by the shortest name that tells them apart: stem, else file name, else path.

    A program is named if no file is called so, and if ``program`` has sizes for it.
    """
    if not texts:
        raise _core.SardonyxError("no trace given; name at least one file, or synth:NAME")
    programs = program_names(texts) if program else set()

    def stem(text: str) -> str:
        return text if text in programs or text.startswith(SYNTH) else Path(text).stem

    readings: list[Callable[[str], str]] = [stem, lambda text: Path(text).name, str]
    for name_of in readings:
        names = [name_of(text) for text in texts]
        if len(set(names)) == len(names):
            break
    else:
        twice = next(text for text in texts if list(texts).count(text) > 1)
        raise _core.SardonyxError(f"{twice}: given twice; name each trace once")
    return {
        name: program.replace(name=text) if program and text in programs else parse(text, limit)
        for name, text in zip(names, texts, strict=True)
    }


def parse(text: str, limit: int | None = None) -> TraceSource | SynthSource:
    """A file, a recording by name, or ``synth:NAME[:RECORDS[:SEED]]`` with a known name."""
    if not text.startswith(SYNTH):
        return TraceSource(path=path_of(text), limit=limit)
    name, *numbers = text.removeprefix(SYNTH).split(":")
    known = [str(rung["name"]) for rung in json.loads(_core.ladder())]
    if name not in known:
        raise _core.SardonyxError(f"{text}: {unknown('generator', name, known)}")
    whole = all(part.isascii() and part.isdigit() and len(part) <= 20 for part in numbers)
    if len(numbers) > 2 or not whole or any(int(part) > LARGEST for part in numbers):
        raise _core.SardonyxError(
            f"{text}: is not of the form {SYNTH}NAME[:RECORDS[:SEED]]; give whole numbers"
        )
    records, seed = [*map(int, numbers), None, None][:2]
    return SynthSource(name=name, records=records, seed=seed or 0, limit=limit)


def check(source: Source) -> None:
    """An error unless the source can be opened and read."""
    if isinstance(source, TraceSource):
        recorded = f", a recording ({', '.join(recordings())})" if recordings() else ""
        check_file(source.path, f"{recorded}, a program, or {SYNTH}NAME to generate one")
    if not isinstance(source, ProgramSource):
        source = source.replace(limit=1)
    _core.trace_info(source.json(), None)


def whole(source: Source) -> Source:
    """All of a source of which a window runs: what is said of the trace."""
    if isinstance(source, ProgramSource) or source.window is None:
        return source
    return source.replace(limit=None, window=None)


def beyond(sources: Iterable[Source]) -> list[str]:
    """A line for each generated trace that ends before its ``limit``: what to name for more."""
    lengths = {str(rung["name"]): int(rung["records"]) for rung in json.loads(_core.ladder())}
    lines = []
    for source in dict.fromkeys(sources):
        if not isinstance(source, SynthSource) or source.limit is None:
            continue
        records = lengths[source.name] if source.records is None else source.records
        if source.limit > records:
            seed = f":{source.seed}" if source.seed else ""
            lines.append(
                f"--limit {source.limit}: {SYNTH}{source.name} has {records} records and all of "
                f"them run; {SYNTH}{source.name}:{source.limit}{seed} has more"
            )
    return lines


def check_file(path: str, otherwise: str = "") -> None:
    """An error unless there is such a file; ``otherwise`` ends the remedy."""
    if not path:
        raise _core.SardonyxError(f"the trace's name is empty; give a trace file{otherwise}")
    if Path(path).is_dir():
        raise _core.SardonyxError(f"{path}: is a directory; name the trace files in it")
    if not Path(path).exists():
        near = difflib.get_close_matches(path, [*recordings(), *known_programs()], n=1)
        meant = f"did you mean {near[0]}? " if near and otherwise else ""
        raise _core.SardonyxError(
            f"{path}: there is no such file; {meant}give a trace file{otherwise}"
        )


def parts(text: str) -> list[str]:
    """What stands between commas."""
    return [part.strip() for part in text.split(",") if part.strip()]


def unknown(kind: str, name: str, known: Sequence[str]) -> str:
    """What to say of a name that is not known."""
    near = difflib.get_close_matches(name, known, n=1)
    meant = f'did you mean "{near[0]}"? ' if near else ""
    return f'there is no {kind} "{name}"; {meant}known: {", ".join(known)}'
