"""Where the operations of a run come from: a trace file, a generated trace, or a program.

What users write is read by the native module (``crates/native/src/texts.rs``), which opens sources
too (``crates/native/src/sources.rs``).
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Sequence
from typing import Any

from sardonyx import _core
from sardonyx.questions import ProgramSource, Source, SynthSource
from sardonyx.runs.mixes import refusal
from sardonyx.runs.recordings import known
from sardonyx.values import read

#: The prefix of a generated trace where users name a file.
SYNTH = "synth:"
#: The generated trace that is like another.
LIKE = "like"
#: The prefix of traces that run together, each on a core of its own.
MIX = "mix:"


def known_programs() -> list[str]:
    """The names of all persistent programs."""
    return [str(program["name"]) for program in json.loads(_core.programs())["programs"]]


def named(
    texts: Sequence[str], limit: int | None = None, program: ProgramSource | None = None
) -> dict[str, Source]:
    """Sources by the shortest name that tells them apart: stem, else file name, else path.

    A program is named if no file is called so, and if ``program`` has sizes for it.
    """
    sizes = None if program is None else json.dumps(program.document("kind"))
    found = json.loads(_core.sources(list(texts), limit, sizes, known()))
    kinds: Any = Source
    return {name: read(kinds, source) for name, source in found}


def parse(text: str, limit: int | None = None) -> Source:
    """A file, a recording by name, ``synth:NAME[:RECORDS[:SEED]]`` with a known name, or
    ``mix:TRACE,TRACE,..`` of such.
    """
    (source,) = named([text], limit).values()
    return source


def text_of(source: SynthSource) -> str:
    """A generated trace as users name it, but for its seed."""
    words = [source.name] if source.like is None else [LIKE, source.like, str(source.times)]
    words += [] if source.records is None else [str(source.records)]
    return SYNTH + ":".join(words)


def trace(option: str, text: str, limit: int | None = None) -> tuple[str, list[str]]:
    """One trace: its source as JSON, and what to say of it; a mix is refused."""
    ((name, source),) = json.loads(_core.sources([text], limit, None, known()))
    if source["kind"] == "mix":
        raise refusal(option, name)
    return json.dumps(source), _core.check_sources(json.dumps([source]), known())


def check_file(path: str) -> None:
    """An error unless there is such a file."""
    _core.check_trace_file(path, known())


def check_known(kind: str, name: str, known: Sequence[str], place: str = "") -> None:
    """An error unless the name is one of those known; ``place`` says first where it was given."""
    if name not in known:
        raise _core.SardonyxError(place + unknown(kind, name, known))


def unknown(kind: str, name: str, known: Sequence[str]) -> str:
    """What to say of a name that is not known."""
    near = difflib.get_close_matches(name, known, n=1)
    meant = f'did you mean "{near[0]}"? ' if near else ""
    return f'there is no {kind} "{name}"; {meant}known: {", ".join(known)}'
