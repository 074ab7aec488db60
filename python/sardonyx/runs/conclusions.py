"""What comparisons conclude: who is better than whom, by sign and by 5 %, on each workload and on
the mean. Left out: what else it could be (``vary``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from sardonyx.runs.measures import BASELINE, Two, gain_of, geometric_mean, ratio_of
from sardonyx.runs.results import Run
from sardonyx.runs.sensitivity import MEAN

#: Gains closer to 1 than this are neither better nor worse.
EQUAL = 0.001
#: A gain this much above or below 1 is another conclusion than a smaller one.
MUCH = 0.05
SIGN, BY_MUCH = "sign", "5 %"


@dataclass(frozen=True, slots=True)
class Conclusion:
    """One thing that runs say: a figure, and what it comes to in words by kind.

    ``design`` beside ``over`` by ``measure`` on ``workload``, or on the mean of all; of a claim of
    a paper ``measure`` is the claim alone. ``needs`` are numbers of the points that it rests on.
    """

    measure: str
    title: str
    design: str
    over: str
    workload: str
    value: float | None
    unit: str
    says: Mapping[str, str]
    needs: frozenset[int]

    @property
    def name(self) -> str:
        """What tells it from others."""
        return "|".join((self.measure, self.design, self.over, self.workload))


def differs(one: str, other: str) -> bool:
    """Whether two words for a conclusion contradict each other; equality contradicts nothing."""
    return one != other and "equal" not in (one, other)


@dataclass(frozen=True, slots=True)
class Compared:
    """What is concluded of two designs: ``of`` is the figure, ``gain`` above 1 is better.

    ``better`` and ``worse`` say what the design does then.
    """

    key: str
    title: str
    of: Two
    gain: Two
    better: str
    worse: str


def _less(key: str, title: str, metric: str, better: str, worse: str) -> Compared:
    return Compared(key, title, ratio_of(metric), gain_of(metric), better, worse)


def _more(key: str, title: str, of: Two, better: str, worse: str) -> Compared:
    return Compared(key, title, of, of, better, worse)


_ENERGY = _less("energy_ratio", "Energy", "energy_nj", "takes less energy", "takes more energy")
TRACES = (
    _more(
        "write_speedup", "Write speed-up", gain_of("mean_write_latency_ns"),
        "writes faster", "writes slower",
    ),
    _more(
        "read_speedup", "Read speed-up", gain_of("mean_read_latency_ns"),
        "reads faster", "reads slower",
    ),
    _more("ipc_ratio", "IPC", ratio_of("ipc"), "has more IPC", "has less IPC"),
    _more(
        "p99_write", "p99 write speed-up", gain_of("p99_write_latency_ns"),
        "has shorter slow writes", "has longer slow writes",
    ),
    _ENERGY,
)  # fmt: skip
PROGRAMS = (
    _more(
        "runtime", "Transactions a second", ratio_of("transactions_per_second"),
        "is faster", "is slower",
    ),
    _less(
        "bytes", "Bytes written", "medium_write_bytes", "writes fewer bytes", "writes more bytes"
    ),
    _ENERGY,
)  # fmt: skip


def says(gain: float | None) -> dict[str, str]:
    """A gain in words; none of what is not known."""
    if gain is None:
        return {}
    sign = "equal" if abs(gain - 1) <= EQUAL else "better" if gain > 1 else "worse"
    much = (
        f"better by {BY_MUCH}"
        if gain >= 1 + MUCH
        else f"worse by {BY_MUCH}"
        if gain <= 1 / (1 + MUCH)
        else f"within {BY_MUCH}"
    )
    return {SIGN: sign, BY_MUCH: much}


def conclusions(
    points: Sequence[tuple[str, str]], runs: Sequence[Run | None]
) -> dict[str, Conclusion]:
    """What runs say of every pair of designs, by workload and on the mean over workloads.

    ``points`` are workloads and designs, ``runs`` theirs; nothing of one that failed.
    """
    at = {point: number for number, point in enumerate(points)}
    workloads = list(dict.fromkeys(workload for workload, _ in points))
    designs = list(dict.fromkeys(design for _, design in points))
    if BASELINE in designs:
        designs = [BASELINE, *(each for each in designs if each != BASELINE)]
    programs = any(run and run.metric("transactions") for run in runs)
    found: dict[str, Conclusion] = {}

    def keep(
        kind: Compared, design: str, over: str, workload: str, values: Sequence[float | None],
        gains: Sequence[float | None], needs: frozenset[int],
    ) -> None:  # fmt: skip
        whole = None not in values
        value, gain = (geometric_mean(each) if whole else None for each in (values, gains))
        each = Conclusion(
            kind.key, kind.title, design, over, workload, value, "x", says(gain), needs
        )
        found[each.name] = each

    def of(measure: Callable[..., float | None], a: int, b: int) -> float | None:
        run, base = runs[a], runs[b]
        return None if run is None or base is None else measure(run, base)

    for kind in PROGRAMS if programs else TRACES:
        for index, design in enumerate(designs):
            for over in designs[:index]:
                values: list[float | None] = []
                gains: list[float | None] = []
                needs: set[int] = set()
                for workload in workloads:
                    a, b = at.get((workload, design)), at.get((workload, over))
                    if a is None or b is None:
                        continue
                    value, gain = of(kind.of, a, b), of(kind.gain, a, b)
                    values.append(value)
                    gains.append(gain)
                    needs |= {a, b}
                    keep(kind, design, over, workload, [value], [gain], frozenset((a, b)))
                if len(values) > 1:
                    keep(kind, design, over, MEAN, values, gains, frozenset(needs))
    return found
