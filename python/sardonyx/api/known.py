"""The commands: each with the module that answers it, and what the command line says of its output.

A command is a question in Rust (``crates/native/src/commands.rs``), a line here and in
``sardonyx.api``, and a module with two functions: ``answer(asked, watch)`` gives the answer to the
whole question, ``tell(people, answer)`` prints what people read of it. ``groups(answer)``,
``report(answer, path)`` and ``FILE`` are of those whose answers have a report.
"""

from __future__ import annotations

from dataclasses import dataclass

#: What the help says of the words before several commands.
GROUPS = {
    "trace": "Record programs; look at traces, check, convert, generate, cut and mix them.",
    "crash": "Cut the power at every position of a run, recover, and check what is left.",
    "crash-test": (
        "Cut a recorded program at every fence, and run its own recovery on what could be left."
    ),
    "merge": "Merge equal pages of real page images, as the kernel does and as PageForge does.",
    "store": (
        "Block stores that keep equal blocks once: a resistive CAM and its conventional rival."
    ),
}


@dataclass(frozen=True)
class Line:
    """A command: its module, what ``--out`` is for if it has one, and what its progress counts."""

    module: str
    out: str = ""
    unit: str = "req"
    #: Whether it has a document for ``--json``.
    document: bool = True


COMMANDS = {
    "crash run": Line("crashes.run", unit=""),
    "crash once": Line("crashes.once", unit=""),
    "crash stages": Line("crashes.stages", unit=""),
    "crash exhaustive": Line("crashes.exhaustive", unit=""),
    "crash replay": Line("crashes.replay", unit=""),
    "crash-test search": Line("crash_tests.search", unit="recoveries"),
    "crash-test replay": Line("crash_tests.replay", unit="recoveries"),
    "crash-test lint": Line("crash_tests.lint"),
    "crash-test files": Line("crash_tests.files", unit="recoveries"),
    "merge": Line("merging.merge", "Directory for report.html and merge.json.", "pages"),
}
