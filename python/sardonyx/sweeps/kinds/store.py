"""Deduplicating stores: those that are simulated, and those that are executed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sardonyx import _core
from sardonyx.questions import BlockTrace, Stream, Tree, Workload
from sardonyx.runs import stores
from sardonyx.runs.jobs import Setting
from sardonyx.runs.stores import StoreDesign, StoreQuestion
from sardonyx.sweeps.inputs import Inputs
from sardonyx.sweeps.kinds.kind import Figure, Kind, Question, Subject, asked, flat, options_of


class Store(Kind):
    """Deduplicating stores: those that are simulated, and those that are executed."""

    name = "store"
    subject = "workload"
    listed = ("store",)
    options = options_of(
        "store compare",
        Stream,
        StoreQuestion,
        renamed={"block": "block_bytes"},
        duplicates={"type": "number", "default": 0.3, "minimum": 0, "maximum": 1},
        span={"type": ["integer", "string"], "format": "bytes", "default": 0},
    )
    goals = ("max writes_per_second", "min energy_nj")
    figures = frozenset(figure for design in stores.designs().values() for figure in design.figures)
    #: The generated stream; every other subject is a folder or a block trace.
    STREAM = "stream"

    def inputs(self, subject: Subject) -> tuple[str, ...]:
        assert isinstance(subject, str)
        return () if subject == self.STREAM else (subject,)

    def question(
        self, subject: Subject, options: Any, keys: tuple[Setting, ...], inputs: Inputs, repeat: int
    ) -> Question:
        assert isinstance(subject, str)
        question = self._question(subject, options, keys, inputs)
        identity = question.document("design")
        identity |= {"kind": self.name, "repeat": repeat, "design": question.design.name}
        identity["keys"] = question.design.values()
        names = self.inputs(subject)
        if names:
            identity["workload"] = {
                "kind": question.workload.kind,
                "sha256": inputs[subject].sha256,
            }

        def ask(progress: _core.Progress | None) -> dict[str, Figure]:
            return flat(stores.answer(question, None, progress)["metrics"])

        return Question(identity, ask, names, alone=self.times(options["design"]))

    def times(self, design: str) -> bool:
        return stores.known(design).executed

    def check(self, subject: Subject, options: Any, keys: tuple[Setting, ...], at: Inputs) -> None:
        assert isinstance(subject, str)
        _core.check_store(self._question(subject, options, keys, at).json())

    def _question(
        self, subject: str, options: Mapping[str, Any], keys: tuple[Setting, ...], inputs: Inputs
    ) -> StoreQuestion:
        return StoreQuestion(
            design=StoreDesign(name=stores.known(options["design"]).name).having(keys),
            workload=self._workload(subject, options, inputs),
            block_bytes=options["block"],
        )

    def _workload(self, subject: str, options: Mapping[str, Any], inputs: Inputs) -> Workload:
        if subject == self.STREAM:
            return asked(Stream, Stream.fields(), options)
        path = inputs[subject].path
        return (Tree if path.is_dir() else BlockTrace)(path=str(path))


KIND = Store()
