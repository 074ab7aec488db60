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
from sardonyx.questions import MixSource, ProgramSource, Source, SynthSource, TraceSource
from sardonyx.runs.recordings import path_of, recordings

#: A program of the default sizes.
PROGRAM = ProgramSource()
#: The prefix of a generated trace where users name a file.
SYNTH = "synth:"
#: The generated trace that is like another.
LIKE = "like"
#: The prefix of traces that run together, each on a core of its own.
MIX = "mix:"
#: The largest number on the native side.
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
        made = text.startswith((SYNTH, MIX))
        return text if text in programs or made else Path(text).stem

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


def parse(text: str, limit: int | None = None) -> TraceSource | SynthSource | MixSource:
    """A file, a recording by name, ``synth:NAME[:RECORDS[:SEED]]`` with a known name, or
    ``mix:TRACE,TRACE,..`` of such.
    """
    if text.startswith(MIX):
        members = parts(text.removeprefix(MIX))
        if len(members) < 2 or any(member.startswith(MIX) for member in members):
            raise _core.SardonyxError(
                f"{text}: is not of the form {MIX}TRACE,TRACE,..; name two traces or more"
            )
        return MixSource(sources=tuple(parse(member, limit) for member in members))
    if not text.startswith(SYNTH):
        return TraceSource(path=path_of(text), limit=limit)
    name, *numbers = text.removeprefix(SYNTH).split(":")
    if name == LIKE:
        return _like(text, numbers, limit)
    known = [str(rung["name"]) for rung in json.loads(_core.ladder())]
    check_known("generator", name, known, f"{text}: ")
    whole = all(part.isascii() and part.isdigit() and len(part) <= 20 for part in numbers)
    if len(numbers) > 2 or not whole or any(int(part) > LARGEST for part in numbers):
        raise _core.SardonyxError(
            f"{text}: is not of the form {SYNTH}NAME[:RECORDS[:SEED]]; give whole numbers"
        )
    records, seed = [*map(int, numbers), None, None][:2]
    return SynthSource(name=name, records=records, seed=seed or 0, limit=limit)


def _like(text: str, words: Sequence[str], limit: int | None) -> SynthSource:
    """``synth:like:TRACE[:TIMES[:RECORDS[:SEED]]]``."""
    trace, *numbers = words or [""]
    whole = all(part.isascii() and part.isdigit() and len(part) <= 18 for part in numbers)
    if not trace or len(numbers) > 3 or not whole or numbers[:1] == ["0"]:
        raise _core.SardonyxError(
            f"{text}: is not of the form {SYNTH}{LIKE}:TRACE[:TIMES[:RECORDS[:SEED]]]; as in "
            f"{SYNTH}{LIKE}:redis:4"
        )
    path = path_of(trace)
    check_file(path, f", as in {SYNTH}{LIKE}:redis:4")
    times, records, seed = [*map(int, numbers), None, None, None][:3]
    return SynthSource(
        name=f"{LIKE}-{Path(path).stem}-x{times or 1}",
        like=path,
        times=times or 1,
        records=records,
        seed=seed or 0,
        limit=limit,
    )


def text_of(source: SynthSource) -> str:
    """A generated trace as users name it, but for its seed."""
    words = [source.name] if source.like is None else [LIKE, source.like, str(source.times)]
    words += [] if source.records is None else [str(source.records)]
    return SYNTH + ":".join(words)


def check(source: Source) -> None:
    """An error unless the source can be opened and read."""
    if isinstance(source, MixSource):
        for member in source.sources:
            check(member)
        return
    if isinstance(source, TraceSource):
        recorded = f", a recording ({', '.join(recordings())})" if recordings() else ""
        check_file(source.path, f"{recorded}, a program, or {SYNTH}NAME to generate one")
    if not isinstance(source, ProgramSource):
        source = source.replace(limit=1)
    _core.trace_info(source.json(), None)


def whole(source: Source) -> Source:
    """All of a source of which a window runs: what is said of the trace."""
    if isinstance(source, ProgramSource | MixSource) or source.window is None:
        return source
    return source.replace(limit=None, window=None)


def members(source: Source) -> tuple[Source, ...]:
    """The traces of a mix; else the source alone."""
    return source.sources if isinstance(source, MixSource) else (source,)


def beyond(sources: Iterable[Source]) -> list[str]:
    """A line for each generated trace that ends before its ``limit``: what to name for more."""
    lengths = {str(rung["name"]): int(rung["records"]) for rung in json.loads(_core.ladder())}
    lines = []
    alone = [one for each in sources for one in members(each)]
    for source in dict.fromkeys(alone):
        if not isinstance(source, SynthSource) or source.limit is None or source.like:
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


def check_known(kind: str, name: str, known: Sequence[str], place: str = "") -> None:
    """An error unless the name is one of those known; ``place`` says first where it was given."""
    if name not in known:
        raise _core.SardonyxError(place + unknown(kind, name, known))


def unknown(kind: str, name: str, known: Sequence[str]) -> str:
    """What to say of a name that is not known."""
    near = difflib.get_close_matches(name, known, n=1)
    meant = f'did you mean "{near[0]}"? ' if near else ""
    return f'there is no {kind} "{name}"; {meant}known: {", ".join(known)}'
