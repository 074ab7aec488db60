"""What merging costs applications of generated virtual machines."""

from __future__ import annotations

import json
from typing import Any

from sardonyx import _core
from sardonyx.questions import TimedQuestion
from sardonyx.runs.jobs import Setting
from sardonyx.runs.metrics import OF_MERGING
from sardonyx.runs.sources import check_known
from sardonyx.runs.tailbench import APPLICATIONS, PLAIN
from sardonyx.sweeps.inputs import Inputs
from sardonyx.sweeps.kinds.kind import Designed, Figure, Kind, Natural, Question, Subject, flat
from sardonyx.sweeps.kinds.machines import effective, of_classes


class MergeTimeOptions(Designed):
    """As ``sardonyx merge time`` has them: ``design`` merges, ``memory`` is the memory's design."""

    machine: str = "pageforge"
    memory: str = PLAIN
    seed: Natural = 0


class MergeTime(Kind):
    """What merging costs applications of generated virtual machines."""

    name = "merge-time"
    subject = "application"
    listed = ("applications",)
    options = MergeTimeOptions
    goals = ("min geomean_sojourn_ns", "min p95_sojourn_ns")
    figures = frozenset(OF_MERGING)

    def check_subject(self, subject: Subject, listed: str) -> None:
        assert isinstance(subject, str)
        check_known("application", subject, APPLICATIONS)

    def inputs(self, subject: Subject) -> tuple[str, ...]:
        return ()

    def question(
        self, subject: Subject, options: Any, keys: tuple[Setting, ...], inputs: Inputs, repeat: int
    ) -> Question:
        question = self._question(subject, options, keys)
        identity = question.document("machine")
        identity |= {"kind": self.name, "repeat": repeat}
        identity["machine"] = effective(options.machine, ())
        identity |= of_classes(options.memory)

        def ask(progress: _core.Progress | None) -> dict[str, Figure]:
            answer = json.loads(_core.merge_timed(question.json(), progress))
            return flat(answer["metrics"])

        words = ["merge", "time", question.application, "--designs", options.design]
        words += ["--memory", options.memory, "--machine", options.machine]
        words += ["--seed", str(options.seed)]
        for key, text in keys:
            words += ["--set", f"{key}={text}"]
        return Question(identity, ask, (), tuple(words))

    def check(self, subject: Subject, options: Any, keys: tuple[Setting, ...], at: Inputs) -> None:
        _core.check_merge_timed(self._question(subject, options, keys).json())

    def _question(
        self, subject: Subject, options: MergeTimeOptions, keys: tuple[Setting, ...]
    ) -> TimedQuestion:
        assert isinstance(subject, str)
        return TimedQuestion(application=subject, sets=keys, **options.document())


KIND = MergeTime()
