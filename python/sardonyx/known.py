"""The commands: each with the module that answers it, and how its progress is shown.

A command is a question in Rust (a line in ``crates/native/src/commands.rs``), a line here, and a
module with two functions: ``answer(asked, watch)`` gives the answer to the
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
    """A command: its module, and what its progress counts."""

    module: str
    unit: str = "req"
    #: Whether it has a document for ``--json``.
    document: bool = True
    #: Whether a log has a line of its progress now and then.
    logged: bool = True
    #: Whether standard output is another program's, so that ours is standard error.
    aside: bool = False
    #: Whether an option of its own, or its folder, is for a report.
    page: bool = False
    #: Whether notes stand below its tables, which ``--notes`` prints.
    notes: bool = False


COMMANDS = {
    "trace record": Line("tracing.record", aside=True, logged=False),
    "trace info": Line("tracing.info", page=True),
    "trace check": Line("tracing.check"),
    "trace convert": Line("tracing.convert"),
    "trace synth": Line("tracing.synth"),
    "trace cut": Line("tracing.cut"),
    "trace mix": Line("tracing.mix"),
    "compare": Line("simulator.compare", page=True, notes=True),
    "report": Line("simulator.report", document=False, page=True, notes=True),
    "diff": Line("simulator.diff"),
    "cite": Line("simulator.cite"),
    "pack": Line("simulator.pack"),
    "sweep": Line("simulator.sweep", page=True),
    "explore": Line("simulator.explore", page=True),
    "curve": Line("simulator.curve", page=True),
    "reproduce": Line("simulator.reproduce", page=True),
    "check-host": Line("simulator.check_host"),
    "doctor": Line("simulator.doctor"),
    "designs": Line("simulator.lists"),
    "programs": Line("simulator.lists"),
    "recordings": Line("simulator.lists"),
    "machines": Line("simulator.lists"),
    "show": Line("simulator.show"),
    "crash-test search": Line("crash_tests.search", "recoveries", page=True),
    "crash-test replay": Line("crash_tests.replay", "recoveries"),
    "crash-test lint": Line("crash_tests.lint"),
    "crash-test files": Line("crash_tests.files", "recoveries"),
    "crash run": Line("crashes.run", ""),
    "crash once": Line("crashes.once", ""),
    "crash stages": Line("crashes.stages", ""),
    "crash exhaustive": Line("crashes.exhaustive", ""),
    "crash replay": Line("crashes.replay", ""),
    "merge": Line("merging.merge", "pages", page=True),
    "merge time": Line("merging.time"),
    "merge watch": Line("merging.watch", "", logged=False),
    "merge generate": Line("merging.generate", document=False),
    "store compare": Line("stores.compare"),
    "store serve": Line("stores.serve", "", logged=False),
    "store check": Line("stores.check", "blocks"),
    "store estimate": Line("stores.estimate", "B", page=True),
}
