"""Designs under programs whose power is cut everywhere."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, ClassVar

from sardonyx import _core
from sardonyx.layers import word
from sardonyx.questions import TrialQuestion
from sardonyx.runs.jobs import Setting
from sardonyx.runs.sources import check_known
from sardonyx.sweeps.inputs import Inputs
from sardonyx.sweeps.kinds.kind import (
    Figure,
    Kind,
    Question,
    Subject,
    asked,
    figure_names,
    flat,
    options_of,
)
from sardonyx.sweeps.kinds.machines import check_design, effective, of_classes, programs


def listed(what: str) -> list[str]:
    """Names of the simulator's list of programs, mutants or amounts."""
    names: list[str] = json.loads(_core.programs())[what]
    return names


class Crash(Kind):
    """Designs under programs whose power is cut everywhere."""

    name = "crash"
    subject = "program"
    listed = ("crash",)
    #: The fields of options with other names.
    FIELDS: ClassVar[Mapping[str, str]] = {"transaction_size": "item_bytes", "full": "full_one_in"}
    options = options_of(
        "crash run",
        TrialQuestion,
        renamed=FIELDS,
        cuts={"type": ["integer", "string"], "default": "all", "minimum": 0},
        software_log={"type": "boolean", "default": True},
    )
    goals = ("min violations", "max cuts")
    figures = figure_names(
        "checked_in_full cuts distinct_states later_lives later_lives_in_full lost_cuts positions "
        "recovery_cuts runs secret_cuts violations"
    ).union(f"{amount}.{name}" for amount in ("exercised", "reached") for name in listed(amount))
    #: The parts of an answer that repeat its question, and the host's speed.
    ASKED = ("program", "design", "platform", "tear", "seed", "mutant", "seconds")

    def check_subject(self, subject: Subject, listed: str) -> None:
        assert isinstance(subject, str)
        if subject == "all":
            raise _core.SardonyxError(
                "name the programs one by one; `sardonyx programs` lists them"
            )
        check_known("program", subject, programs())

    def inputs(self, subject: Subject) -> tuple[str, ...]:
        return ()

    def question(
        self, subject: Subject, options: Any, keys: tuple[Setting, ...], inputs: Inputs, repeat: int
    ) -> Question:
        trial = self._trial(subject, options, keys)
        identity = trial.document("machine", "overrides", "threads")
        identity |= {"kind": self.name, "repeat": repeat}
        identity["machine"] = effective(options["machine"], keys)
        identity |= of_classes(options["design"])

        def ask(progress: _core.Progress | None) -> dict[str, Figure]:
            answer = json.loads(_core.crash_trial(trial.json(), progress))
            figures = flat({k: v for k, v in answer.items() if k not in self.ASKED})
            figures["violations"] = sum(each["count"] for each in answer["violations"])
            return figures

        words = ("crash", "run", trial.program, "--designs", word(trial.design))
        return Question(identity, ask, (), self.command(words, options, keys))

    def check(self, subject: Subject, options: Any, keys: tuple[Setting, ...], at: Inputs) -> None:
        check_design(options["design"])
        _core.crash_trial_memory(self._trial(subject, options, keys).json())

    def _trial(
        self, subject: Subject, options: Mapping[str, Any], keys: tuple[Setting, ...]
    ) -> TrialQuestion:
        fields = {self.FIELDS.get(name, name): value for name, value in options.items()}
        cuts = None if options["cuts"] == "all" else int(options["cuts"])
        own = {"program": subject, "overrides": keys, "cuts": cuts, "threads": 1}
        return asked(TrialQuestion, TrialQuestion.fields(), fields, **own)


KIND = Crash()
