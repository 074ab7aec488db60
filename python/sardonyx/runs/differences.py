"""What differs between two results: settings first, then figures, the largest change first.

Results are taken as subjects with figures (``Side``), so that comparisons, reproductions and
sweeps are one case. A subject that only one side has is named and never compared. Left out: whether
a change matters; there is no noise, so the same settings and traces give the same figures.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from sardonyx.runs.answers import Spread, of_figure
from sardonyx.runs.comparison import Comparison
from sardonyx.runs.measures import BASELINE, MEASURES
from sardonyx.runs.metrics import FIGURES
from sardonyx.runs.origin import Origin
from sardonyx.runs.results import Results, Run

#: The subject of figures: ``("redis", "esd")``, or the values of a sweep's axes.
Subject: TypeAlias = tuple[str, ...]

#: The speed of the simulator itself, which differs from call to call.
OF_THE_HOST = {"requests_per_second"}

#: Figures that come first if they have changed, because readers ask for them first.
HEADLINES = (
    "mean_write_latency_ns",
    "mean_read_latency_ns",
    "p99_write_latency_ns",
    "ipc",
    "runtime_ns",
    "transactions_per_second",
    "energy_nj",
    "medium_writes",
    "write_reduction",
)


@dataclass(frozen=True, slots=True)
class Side:
    """One of two results: what was set, and the figures of each subject."""

    name: str
    settings: Mapping[str, object]
    figures: Mapping[Subject, Mapping[str, float]]
    #: The names of the subject's elements.
    heads: tuple[str, ...]
    #: Ratios to the baseline by measure and subject, of a comparison.
    ratios: Mapping[tuple[str, Subject], float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Changed:
    """A setting that differs; ``None`` where a side has none of that name."""

    setting: str
    before: object
    after: object


@dataclass(frozen=True, slots=True)
class Moved:
    """A figure of a subject that both sides have, and that differs."""

    subject: Subject
    figure: str
    before: float
    after: float

    @property
    def ratio(self) -> float | None:
        """After over before; ``None`` from 0."""
        return self.after / self.before if self.before else None

    @property
    def size(self) -> float:
        """How far it moved: the ratio's logarithm either way; from or to 0 is furthest."""
        ratio = self.ratio
        return abs(math.log(ratio)) if ratio is not None and ratio > 0 else math.inf

    @property
    def better(self) -> bool | None:
        """Whether this is an improvement; ``None`` where neither direction is better."""
        known = FIGURES.get(self.figure)
        if known is None or not known.better:
            return None
        return (self.after > self.before) == (known.better == "more")


@dataclass(frozen=True, slots=True)
class Flipped:
    """A conclusion beside the baseline that is another one now: better is worse, or the reverse."""

    subject: Subject
    measure: str
    before: float
    after: float


@dataclass(frozen=True, slots=True)
class Differences:
    """What differs, and how much was compared."""

    heads: tuple[str, ...]
    settings: Sequence[Changed]
    moved: Sequence[Moved]
    flipped: Sequence[Flipped]
    only_before: Sequence[Subject]
    only_after: Sequence[Subject]
    #: The number of subjects of both sides, and of their figures.
    subjects: int
    compared: int
    #: How the figures of the headlines moved over all subjects, if any did.
    spreads: Sequence[Spread] = ()

    def to_document(self) -> dict[str, Any]:
        """Plain JSON, with each difference as an object."""
        return {
            "settings": [
                {"setting": each.setting, "before": each.before, "after": each.after}
                for each in self.settings
            ],
            "subjects": self.subjects,
            "figures_compared": self.compared,
            "answers": [each.text() for each in self.spreads],
            "changed": [
                dict(zip(self.heads, each.subject, strict=True))
                | {"figure": each.figure, "before": each.before, "after": each.after}
                | {"ratio": each.ratio, "better": each.better}
                for each in self.moved
            ],
            "conclusions_flipped": [
                dict(zip(self.heads, each.subject, strict=True))
                | {"measure": each.measure, "before": each.before, "after": each.after}
                for each in self.flipped
            ],
            "only_before": [dict(zip(self.heads, s, strict=True)) for s in self.only_before],
            "only_after": [dict(zip(self.heads, s, strict=True)) for s in self.only_after],
        }


def differences(before: Side, after: Side) -> Differences:
    """Compare two results. Figures of the headlines come first, each kind by the size of its
    change.
    """
    both = [subject for subject in before.figures if subject in after.figures]
    moved = []
    compared = 0
    for subject in both:
        a, b = before.figures[subject], after.figures[subject]
        for name in (a.keys() & b.keys()) - OF_THE_HOST:
            compared += 1
            if a[name] != b[name]:
                moved.append(Moved(subject, name, a[name], b[name]))
    moved.sort(key=lambda m: (m.figure not in HEADLINES, -m.size, m.subject, m.figure))
    flipped = [
        Flipped(subject, measure, value, now)
        for (measure, subject), value in before.ratios.items()
        if (now := after.ratios.get((measure, subject))) is not None and (value > 1) != (now > 1)
    ]
    names = dict.fromkeys([*before.settings, *after.settings])
    settings = [
        Changed(name, before.settings.get(name), after.settings.get(name))
        for name in names
        if before.settings.get(name) != after.settings.get(name)
    ]
    return Differences(
        before.heads,
        settings,
        moved,
        flipped,
        [s for s in before.figures if s not in after.figures],
        [s for s in after.figures if s not in before.figures],
        len(both),
        compared,
        [each for name in HEADLINES if (each := _spread(name, both, before, after)) is not None],
    )


def _spread(name: str, subjects: Sequence[Subject], before: Side, after: Side) -> Spread | None:
    """How a figure moved over the subjects; nothing if it did not, or no direction is better."""
    known = FIGURES.get(name)
    ratios = {}
    for subject in subjects:
        a, b = (side.figures[subject].get(name) for side in (before, after))
        if a and b and a > 0 and b > 0:
            ratios[" ".join(filter(None, subject))] = b / a
    if known is None or not known.better or all(ratio == 1 for ratio in ratios.values()):
        return None
    return of_figure(name, ratios, more=known.better == "more")


def side_of(results: Results, name: str, origin: Origin) -> Side:
    """A comparison's or a reproduction's results. ``origin`` says of which build and traces."""
    several = len({run.machine for run in results.runs}) > 1
    return Side(
        name,
        _settings(results, origin),
        {
            _subject(run, several): {
                key: float(v) for key, v in run.metrics.items() if v is not None
            }
            for run in results.runs
        },
        ("trace", "design", "setting"),
        _ratios(results, several),
    )


def _subject(run: Run, several: bool) -> Subject:
    """The subject of a run; with ``several`` the machine, too, tells runs apart."""
    cores = f"{run.cores} cores" if run.cores > 1 else ""
    machine = run.machine if several else ""
    return run.trace, run.design, " ".join(filter(None, (machine, cores, run.variant_label)))


def _settings(results: Results, origin: Origin) -> dict[str, object]:
    found: dict[str, object] = {"Sardonyx": results.sardonyx}
    found |= {name: origin.said[name] for name in ("commit", "command") if name in origin.said}
    found["machine"] = results.machine.name
    found |= results.machine.parameters
    for path, digest in origin.hashes.items():
        found[f"SHA-256 of {path.rsplit('/', 1)[-1]}"] = digest[:12]
    for trace in results.traces:
        found[f"records of {trace.name}"] = trace.facts.get("records")
    return found


def _ratios(results: Results, several: bool) -> dict[tuple[str, Subject], float]:
    comparison = Comparison(results)
    found = {}
    for measure in MEASURES.values():
        if measure.unit != "x":
            continue
        for workload in comparison.workloads:
            for design in comparison.beside_baseline:
                value = comparison.value(measure.of, workload, design, BASELINE)
                run = comparison.run(workload, design)
                if value is not None and run is not None:
                    found[measure.title, _subject(run, several)] = value
    return found
