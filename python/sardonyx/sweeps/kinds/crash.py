"""Designs under programs whose power is cut everywhere."""

from __future__ import annotations

import json
from typing import Any, Literal

from sardonyx import _core
from sardonyx.layers import word
from sardonyx.questions import TrialQuestion
from sardonyx.runs.crashes import FULL_ONE_IN, RECOVERY_CUTS
from sardonyx.runs.jobs import Setting
from sardonyx.runs.sources import check_known
from sardonyx.sweeps.inputs import Inputs
from sardonyx.sweeps.kinds.kind import (
    Bytes,
    Cores,
    Designed,
    Figure,
    Kind,
    Question,
    Subject,
    figure_names,
    flat,
)
from sardonyx.sweeps.kinds.machines import check_design, effective, of_classes, programs


def listed(what: str) -> list[str]:
    """Names of the simulator's list of programs, mutants or amounts."""
    names: list[str] = json.loads(_core.programs())[what]
    return names


class CrashOptions(Designed):
    """As ``sardonyx crash run`` has them."""

    machine: str = "sca"
    seed: int = 1
    cores: Cores | None = None
    transactions: int | None = None
    transaction_size: Bytes | None = None
    footprint: Bytes | None = None
    mutant: str | None = None
    platform: str = "adr"
    tear: str = "lines"
    cuts: int | Literal["all"] = "all"
    recovery_cuts: int = RECOVERY_CUTS
    full: int = FULL_ONE_IN
    software_log: bool = True


class Crash(Kind):
    """Designs under programs whose power is cut everywhere."""

    name = "crash"
    subject = "program"
    listed = ("crash",)
    options = CrashOptions
    goals = ("min violations", "max cuts")
    figures = figure_names(
        "checked_in_full cuts distinct_states lost_cuts positions recovery_cuts runs secret_cuts "
        "violations"
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
        identity["machine"] = effective(options.machine, keys)
        identity |= of_classes(options.design)

        def ask(progress: _core.Progress | None) -> dict[str, Figure]:
            answer = json.loads(_core.crash_trial(trial.json(), progress))
            figures = flat({k: v for k, v in answer.items() if k not in self.ASKED})
            figures["violations"] = sum(each["count"] for each in answer["violations"])
            return figures

        return Question(identity, ask, (), self._command(trial))

    def check(self, subject: Subject, options: Any, keys: tuple[Setting, ...], at: Inputs) -> None:
        check_design(options.design)
        _core.crash_trial_memory(self._trial(subject, options, keys).json())

    def _trial(
        self, subject: Subject, options: CrashOptions, keys: tuple[Setting, ...]
    ) -> TrialQuestion:
        assert isinstance(subject, str)
        return TrialQuestion(
            **options.document("transaction_size", "cuts", "full"),
            program=subject,
            overrides=keys,
            item_bytes=options.transaction_size,
            cuts=None if options.cuts == "all" else options.cuts,
            full_one_in=options.full,
            threads=1,
        )

    def _command(self, trial: TrialQuestion) -> tuple[str, ...]:
        words = ["crash", "run", trial.program, "--designs", word(trial.design)]
        words += ["--machine", trial.machine]
        for key, text in trial.overrides:
            words += ["--set", f"{key}={text}"]
        for option, value in (
            ("--platform", trial.platform),
            ("--tear", trial.tear),
            ("--seed", trial.seed),
            ("--cores", trial.cores),
            ("--transactions", trial.transactions),
            ("--transaction-size", trial.item_bytes),
            ("--footprint", trial.footprint),
            ("--mutant", trial.mutant),
            ("--cuts", trial.cuts),
            ("--recovery-cuts", trial.recovery_cuts),
            ("--full", trial.full_one_in),
        ):
            words += [] if value is None else [option, str(value)]
        return tuple(words) if trial.software_log else ()


KIND = Crash()
