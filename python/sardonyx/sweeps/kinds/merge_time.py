"""What merging costs applications of generated virtual machines."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from sardonyx import _core
from sardonyx.questions import TimedQuestion
from sardonyx.runs.jobs import Setting
from sardonyx.runs.metrics import OF_MERGING
from sardonyx.runs.sources import check_known
from sardonyx.runs.tailbench import APPLICATIONS, PLAIN
from sardonyx.sweeps.inputs import Inputs
from sardonyx.sweeps.kinds.kind import Figure, Kind, Question, Subject, asked, flat, options_of
from sardonyx.sweeps.kinds.machines import effective, of_classes


class MergeTime(Kind):
    """What merging costs applications of generated virtual machines."""

    name = "merge-time"
    subject = "application"
    listed = ("applications",)
    #: ``design`` merges, ``memory`` is the memory's design.
    options = options_of("merge time", TimedQuestion, memory={"type": "string", "default": PLAIN})
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
        identity["machine"] = effective(options["machine"], ())
        identity |= of_classes(options["memory"])

        def ask(progress: _core.Progress | None) -> dict[str, Figure]:
            answer = json.loads(_core.merge_timed(question.json(), progress))
            return flat(answer["metrics"])

        words = ("merge", "time", question.application, "--designs", question.design)
        return Question(identity, ask, (), self.command(words, options, keys))

    def check(self, subject: Subject, options: Any, keys: tuple[Setting, ...], at: Inputs) -> None:
        _core.check_merge_timed(self._question(subject, options, keys).json())

    def _question(
        self, subject: Subject, options: Mapping[str, Any], keys: tuple[Setting, ...]
    ) -> TimedQuestion:
        own = {"application": subject, "sets": keys}
        return asked(TimedQuestion, TimedQuestion.fields(), options, **own)


KIND = MergeTime()
