"""What merging costs applications: one application under one design each, as results."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from sardonyx import _core
from sardonyx.questions import TimedQuestion
from sardonyx.runs import scheduler
from sardonyx.runs.jobs import Setting, texts
from sardonyx.runs.points import label, results
from sardonyx.runs.results import Results, Scalar
from sardonyx.runs.scheduler import Task, Watch

#: The default design of the memory.
PLAIN = TimedQuestion.memory
#: The applications in the order of PageForge's Table 3.
APPLICATIONS = ("img_dnn", "masstree", "moses", "silo", "sphinx")


@dataclass(frozen=True, slots=True)
class TimedPoint:
    """A run as results name it: ``trace`` is its application, ``settings`` come on top of what all
    runs share.
    """

    trace: str
    design: str
    settings: Mapping[str, Scalar] = field(default_factory=dict)
    memory: str = PLAIN

    @property
    def variant(self) -> dict[str, Scalar]:
        """What differs from the plain run, the memory's design among it."""
        return {**self.settings, **({} if self.memory == PLAIN else {"memory": self.memory})}


@dataclass(frozen=True, slots=True)
class TimedRuns:
    """Points to run, and what they share."""

    points: Sequence[TimedPoint]
    machine: str = "pageforge"
    sets: Sequence[Setting] = ()
    images: Sequence[str] = ()
    seed: int = 0
    #: Settings of one application only.
    own: Mapping[str, Sequence[Setting]] = field(default_factory=dict)

    def question(self, point: TimedPoint) -> TimedQuestion:
        """What is asked for a point; what the user sets comes last but for the variant."""
        return TimedQuestion(
            application=point.trace,
            design=point.design,
            memory=point.memory,
            machine=self.machine,
            sets=(*self.sets, *self.own.get(point.trace, ()), *texts(point.settings)),
            images=tuple(self.images),
            seed=self.seed,
        )

    def check(self) -> None:
        for point in self.points:
            _core.check_merge_timed(self.question(point).json())

    def run(self, workers: int | None = None, watch: Watch | None = None) -> Results:
        tasks = [
            Task(label(point), partial(_answer, self.question(point))) for point in self.points
        ]
        answers = scheduler.run(tasks, workers, watch)
        pairs = list(zip(self.points, answers, strict=True))
        _add_busiest_phase(pairs)
        first = answers[0]
        assumed = {row["parameter"]: row for answer in answers for row in answer["assumed"]}
        return results(
            {
                "name": first["machine"],
                "source": "PageForge (MICRO 2017) Table 2",
                "parameters": first["parameters"] | first["settings"],
                "assumed": list(assumed.values()),
            },
            [{"name": name} for name in dict.fromkeys(point.trace for point in self.points)],
            self.points,
            [
                {
                    "machine": answer["machine"],
                    "metrics": answer["metrics"],
                    "assumed": [row["parameter"] for row in answer["assumed"]],
                }
                for answer in answers
            ],
        )


def _answer(question: TimedQuestion, progress: _core.Progress) -> dict[str, Any]:
    answer: dict[str, Any] = json.loads(_core.merge_timed(question.json(), progress))
    return answer


#: The window lies while pages still merge.
MERGING: dict[str, Scalar] = {"window.phase": "merging"}


def _add_busiest_phase(pairs: Sequence[tuple[TimedPoint, dict[str, Any]]]) -> None:
    """Add the bandwidth of the phase in which merging requests most lines (Fig. 11); without
    merging, in the same phase of KSM, settled and while pages merge.
    """
    lines = {
        (point.trace, point.design, *point.variant.items()): answer["merging_lines"]
        for point, answer in pairs
    }
    for point, answer in pairs:
        phases = {"bandwidth_in_phase_gb_s": answer["merging_lines"]}
        if point.design == "none":
            settled = (point.trace, "ksm", *point.variant.items())
            merging = (*settled, *MERGING.items())
            phases = {
                "bandwidth_in_phase_gb_s": lines.get(settled, []),
                "bandwidth_in_merging_phase_gb_s": lines.get(merging, []),
            }
        bandwidths: list[float] = answer["bandwidths_gb_s"]
        for name, asked in phases.items():
            if any(asked) and len(asked) <= len(bandwidths):
                answer["metrics"][name] = bandwidths[asked.index(max(asked))]
