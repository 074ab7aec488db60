"""The price of freshness: every scheme of integrity over four designs, and what papers say of some.

Costs are simulated, attacks are the crash explorer's, recoveries are executed and extended by a law
(``recoveries``). The schemes are those that the simulator has. The papers' figures are in
``claims.toml``, from their abstracts; a scheme that is not built has no figure of ours.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, partial
from importlib.resources import files
from typing import Any

from sardonyx import _core
from sardonyx.papers.claims import WITHIN, Claim, ClaimRow, Found, Statistic, Unit, statistic
from sardonyx.papers.reproduction import Asked, Cell, Exhibit, Plan, Reproduction
from sardonyx.questions import CrashQuestion, ProgramSource
from sardonyx.runs import scheduler
from sardonyx.runs.comparison import Comparison
from sardonyx.runs.jobs import Point, Settings
from sardonyx.runs.measures import arithmetic_mean, divide
from sardonyx.runs.points import results
from sardonyx.runs.programs import KB
from sardonyx.runs.results import Results, Scalar
from sardonyx.runs.scheduler import Task, Watch
from sardonyx.runs.sources import known_programs
from sardonyx.studies.integrity import recoveries
from sardonyx.studies.integrity.recoveries import Recovery, Sizes, written_seconds

MACHINE = "sca"
#: The designs below every scheme, each with its name in the table.
BASES = {
    "identity+no-encryption": "no-encryption",
    "esd": "esd",
    "sca": "sca",
    "easy-pm": "easy-pm",
}
#: The design of the tables of recoveries and of the verdict.
PLAIN = "sca"
#: The design over which papers' figures are computed. Schemes have versions of their own next to an
#: encryption's counters, where papers have one number for both: without encryption their traffic is
#: that of a paper's system, and over ``PLAIN`` it is a bound from above.
CLAIMED = "identity+no-encryption"
NONE = "none"


WHOLE = Sizes(
    tuple(1 << bits for bits in (16, 17, 18, 19)),
    (16 * KB, 64 * KB, 256 * KB),
    (0.0, 0.25, 1.0, 4.0, 16.0),
    1 << 17,
)


@dataclass(frozen=True, slots=True)
class Scale:
    """How much is run: programs for costs, one program for attacks, and media for recoveries."""

    programs: Sequence[str] = field(default_factory=known_programs)
    footprint: int = 1024 * KB
    transactions: int = 600
    warmup: int = 200
    attacked: str = "btree"
    attacked_footprint: int = 8 * KB
    attacked_transactions: int = 48
    cuts: int = 400
    seeds: int = 4
    seed: int = 0
    sizes: Sizes = WHOLE
    #: The designs over which recoveries are tried.
    recovered: Sequence[str] = field(default_factory=lambda: tuple(BASES))


FULL = Scale()
QUICK = Scale(
    programs=("queue", "bplus-tree"),
    footprint=256 * KB,
    transactions=150,
    warmup=50,
    attacked_transactions=16,
    cuts=40,
    seeds=1,
    sizes=Sizes(
        tuple(1 << bits for bits in (16, 17, 18)), (16 * KB, 64 * KB, 128 * KB), (0.0, 1.0, 4.0)
    ),
    recovered=(CLAIMED, PLAIN),
)


@cache
def schemes() -> dict[str, dict[str, Any]]:
    """The schemes that the simulator has, by name; ``none`` first."""
    known = json.loads(_core.integrities())
    ordered = sorted(known, key=lambda scheme: scheme["name"] != NONE)
    return {str(scheme["name"]): scheme for scheme in ordered}


def stack(base: str, scheme: str) -> str:
    """The scheme below the design, as the native module calls it."""
    return base if scheme == NONE else f"{base}@{scheme}"


# ---- costs

#: Possible causes of a gap to a paper, as settings that are changed one at a time.
CAUSES: Mapping[str, Mapping[str, Scalar]] = {
    "used before it is verified": {"integrity.verify": "speculate"},
    "accepted before the root": {"integrity.accepts": "before-root"},
    "a cache of 512 KB": {"integrity.cache.bytes": 512 * KB},
    "hashes of 2.5 ns": {"units.mac.latency_ns": 2.5},
}


def points(scale: Scale) -> list[Point]:
    """A run of each scheme below each design, for what a transaction costs; below ``CLAIMED`` also
    with each cause changed alone.
    """

    def point(program: str, base: str, scheme: str, variant: Mapping[str, Scalar]) -> Point:
        source = ProgramSource(
            name=program,
            footprint=scale.footprint,
            transactions=scale.transactions,
            seed=scale.seed,
        )
        return Point(program, source, stack(base, scheme), variant)

    def variants(base: str, scheme: str) -> list[Mapping[str, Scalar]]:
        if base != CLAIMED:
            return [{}]
        own = [one.under for one in published() if one.under and scheme in one.schemes()]
        once = [under for at, under in enumerate(own) if under not in own[:at]]
        return [{}, *CAUSES.values(), *once]

    return [
        point(program, base, scheme, variant)
        for program in scale.programs
        for base in BASES
        for scheme in schemes()
        for variant in variants(base, scheme)
    ]


def why_not(error: BaseException) -> str:
    """Why a stack does not stand, if that is what the error says; else it is raised again.

    A panic is a bug of a stack, which is said in its cell and costs no other stack its row.
    """
    if isinstance(error, _core.SardonyxError):
        return str(error)
    if type(error).__name__ == "PanicException":
        return f"a bug: {str(error).splitlines()[0]}"
    raise error


@dataclass(frozen=True, slots=True)
class Standing:
    """Simulations of which some may not stand: those are left out, and ``refused`` says why."""

    settings: Settings
    points: Sequence[Point]
    refused: dict[tuple[str, str], str] = field(default_factory=dict)

    def check(self) -> None:
        """An error unless there is such a machine."""
        _core.machine(self.settings.machine, list(self.settings.overrides))

    def run(self, workers: int | None = None, watch: Watch | None = None) -> Results:
        """Run what stands."""
        machine = json.loads(_core.machine(self.settings.machine, list(self.settings.overrides)))
        simulations = [self._task(point) for point in self.points]
        sources = {point.trace: point.source for point in self.points}
        facts = [
            Task(f"{name}, facts", partial(_core.trace_info, source.json()))
            for name, source in sources.items()
        ]
        answers = scheduler.run([*simulations, *facts], workers, watch)
        simulated = answers[: len(simulations)]
        known = [
            {"name": name, "info": json.loads(answer)}
            for name, answer in zip(sources, answers[len(simulations) :], strict=True)
        ]
        ran = [
            (point, json.loads(answer))
            for point, answer in zip(self.points, simulated, strict=True)
            if answer
        ]
        return results(machine, known, [point for point, _ in ran], [found for _, found in ran])

    def _task(self, point: Point) -> Task[str]:
        question = point.job(self.settings).json()
        call = partial(self._simulate, question, (point.trace, point.design))
        return Task(f"{point.trace} {point.design}", call)

    def _simulate(self, question: str, key: tuple[str, str], progress: Any) -> str:
        try:
            return _core.simulate(question, progress)
        except BaseException as error:
            self.refused[key] = why_not(error)
            return ""


# ---- attacks


@dataclass(frozen=True, slots=True)
class Attacked:
    """What an attacker found of a stack, and what honest cuts did."""

    design: str
    answers: tuple[dict[str, Any], ...]
    why_not: str = ""

    def _sum(self, of: str, promised: bool | None = None) -> int:
        rows = [row for answer in self.answers for row in answer["attacks"]["rows"]]
        wanted = [row for row in rows if promised is None or row["promised"] == promised]
        return sum(int(row[of]) for row in wanted)

    @property
    def tried(self) -> int:
        return self._sum("tried")

    @property
    def unkept(self) -> int:
        """Attacks that nobody noticed though the scheme promises it."""
        return self._sum("undetected", promised=True)

    @property
    def undetected(self) -> int:
        return self._sum("undetected")

    @property
    def honest_refused(self) -> int:
        return sum(int(answer["attacks"]["honest_refused"]) for answer in self.answers)

    @property
    def honest(self) -> int:
        """Honest recoveries before which there were attacks."""
        return sum(int(answer["attacks"]["cuts"]) for answer in self.answers)

    @property
    def cuts(self) -> int:
        return sum(int(answer["cuts"]) for answer in self.answers)

    def of(self, kind: str) -> tuple[int, int]:
        """Undetected of tried, of one kind of attack."""
        rows = [
            row
            for answer in self.answers
            for row in answer["attacks"]["rows"]
            if row["kind"] == kind
        ]
        return sum(int(row["undetected"]) for row in rows), sum(int(row["tried"]) for row in rows)

    def to_document(self) -> dict[str, Any]:
        kinds = _kinds()
        return {
            "design": self.design,
            "why_not": self.why_not or None,
            "cuts": self.cuts,
            "attacks": self.tried,
            "undetected": self.undetected,
            "undetected_though_promised": self.unkept,
            "honest_recoveries_refused": self.honest_refused,
            "kinds": {
                kind: dict(zip(("undetected", "tried"), self.of(kind), strict=True))
                for kind in kinds
            },
        }


def _kinds() -> list[str]:
    return list(schemes()[NONE]["refuses"])


def attack(
    scale: Scale,
    machine: str,
    overrides: Sequence[tuple[str, str]],
    watch: Watch | None = None,
) -> dict[str, Attacked]:
    """Cuts and attacks on every stack, by the explorer; a run a seed."""
    designs = [stack(base, scheme) for base in BASES for scheme in schemes()]
    tasks: list[Task[str]] = []
    for design in designs:
        for seed in range(scale.seeds):
            question = CrashQuestion(
                design=design,
                machine=machine,
                program=ProgramSource(
                    name=scale.attacked,
                    footprint=scale.attacked_footprint,
                    transactions=scale.attacked_transactions,
                    seed=scale.seed + seed,
                ),
                overrides=tuple(overrides),
                attack=True,
                cuts=scale.cuts,
                recovery_cuts=0,
                threads=1,
            )
            tasks.append(Task(f"attacks on {design}", _asked(question.json())))
    answers = iter(scheduler.run(tasks, watch=watch))
    found = {}
    for design in designs:
        of = [json.loads(next(answers)) for _ in range(scale.seeds)]
        failed = [str(one["error"]) for one in of if "error" in one]
        whole = tuple(one for one in of if "error" not in one)
        found[design] = Attacked(design, whole, failed[0] if failed else "")
    return found


def _asked(question: str) -> Callable[[Any], str]:
    def call(progress: Any) -> str:
        try:
            return _core.crash(question, progress)
        except BaseException as error:
            return json.dumps({"error": why_not(error)})

    return call


# ---- the table


@dataclass(frozen=True, slots=True)
class World:
    """All that was found."""

    comparison: Comparison
    attacked: Mapping[str, Attacked]
    recovered: Mapping[str, Recovery]
    refused: Mapping[tuple[str, str], str]
    rooms: Mapping[str, Mapping[str, Any]]
    programs: Sequence[str]

    def over(
        self, metric: str, design: str, other: str, variant: Mapping[str, Scalar] | None = None
    ) -> dict[str, float | None]:
        """The metric of a transaction over that of the other design, by program."""
        wanted = dict(variant or {})
        runs = {
            (run.trace, run.design): run
            for run in self.comparison.results.runs
            if dict(run.variant) == wanted
        }

        def of(program: str, name: str) -> float | None:
            run = runs.get((program, name))
            if run is None:
                return None
            return divide(run.metric(metric), run.metric("transactions"))

        return {
            program: divide(of(program, design), of(program, other)) for program in self.programs
        }


def promise(scheme: str) -> str:
    """What the scheme says that it notices."""
    refuses = schemes()[scheme]["refuses"]
    kept = [kind for kind, refused in refuses.items() if refused]
    if not kept:
        return "nothing"
    return "all" if len(kept) == len(refuses) else ", ".join(kept)


def freshness(world: World, scale: Scale) -> Exhibit:
    """A row for each design and scheme: its costs, its promises, what the attacker found."""
    rows: dict[str, dict[str, Cell]] = {}
    documents: list[dict[str, Any]] = []
    for base, called in BASES.items():
        for scheme in schemes():
            design = stack(base, scheme)
            why_not = next((why for (_, name), why in world.refused.items() if name == design), "")
            price = {
                name: arithmetic_mean(world.over(metric, design, base).values())
                for name, metric in PRICES.items()
            }
            room = world.rooms[design]
            regions = sum(room["regions"].values())
            share = regions / room["data_bytes"]
            recovery = world.recovered.get(stack(base, scheme))
            seconds = recovery.seconds() if recovery else None
            attacked = world.attacked[design]
            row = {name: _times(value, why_not) for name, value in price.items()}
            on_chip = room["register_bytes"] + room["cache_bytes"]
            row["room"] = _cell(f"{on_chip / KB:,.4g} KB, {share:.0%}")
            honest = not attacked.honest_refused
            words = "not in --quick" if seconds is None else written_seconds(seconds)
            words = written_seconds(0.0) if scheme == NONE else words
            words = words if honest else "refuses what is honest"
            row["recovery"] = _cell(words)
            row["promises"] = _cell(promise(scheme))
            row["undetected"] = _found(attacked)
            rows[f"{called}, {scheme}"] = row
            documents.append(
                {"design": design, "base": called, "scheme": scheme}
                | {f"{name}_over_none": value for name, value in price.items()}
                | {"why_not": why_not or None, "on_chip_bytes": on_chip, "in_memory_bytes": regions}
                | {"register_bytes": room["register_bytes"], "data_bytes": room["data_bytes"]}
                | {"recovery_at_8_tb_seconds": seconds, "promises": schemes()[scheme]["refuses"]}
                | {"attacked": attacked.to_document()}
            )
    attacks = sum(one.tried for one in world.attacked.values())
    cuts = sum(one.cuts for one in world.attacked.values())
    note = (
        "Time, writes and energy are of a transaction over the same design without integrity: the "
        f"mean over {', '.join(scale.programs)} on one core of "
        f"{world.comparison.results.machine.name}, structures of {scale.footprint // KB} KB. Room "
        "is on chip (registers and the cache of MACs and nodes) and in memory, as a share of the "
        "data. Recovery is of 8 TB, by the law of the next table. Undetected are attacks that "
        f"nobody noticed though the scheme promises it, of {attacks:,} at {cuts:,} cuts of "
        f"{scale.attacked}, and in brackets those that it does not promise to notice; honest are "
        f"honest recoveries that were refused. Again: `sardonyx crash run {scale.attacked} "
        "--designs DESIGN@SCHEME --attack`."
    )
    facts = {"cuts": cuts, "attacks": attacks, "stacks": documents}
    return Exhibit("freshness", "The price of freshness", "design, scheme", rows, note, facts)


PRICES = {"time": "runtime_ns", "writes": "medium_writes", "energy": "energy_nj"}


def _cell(ours: str, evidence: str = "") -> Cell:
    return Cell(None, ours, evidence, {}, {})


def _times(value: float | None, why_not: str) -> Cell:
    if value is None:
        return _cell("does not stand" if why_not else "not run", why_not)
    return _cell(f"{value:.2f}×")


def _found(of: Attacked) -> Cell:
    if not of.answers:
        return _cell("does not stand", of.why_not)
    loose = of.undetected - of.unkept
    words = f"{of.unkept:,}/{of.tried:,}" + (f" ({loose:,})" if loose else "")
    honest = f"honest {of.honest_refused}/{of.honest:,}" if of.honest_refused else ""
    counts = {"tried": of.tried, "undetected": of.undetected, "unkept": of.unkept}
    return Cell(None, words, honest, counts, {})


# ---- the papers


@dataclass(frozen=True, slots=True)
class Published:
    """A figure of a paper, and whose it is here."""

    claim: Claim
    of: tuple[str, ...]
    over: tuple[str, ...]
    sure: str
    source: str
    reading: str
    #: Settings that give both the paper's setup; they are not our defaults.
    under: Mapping[str, Scalar]

    def schemes(self) -> tuple[str | None, str | None]:
        """Those that are held against each other."""
        return _built(self.of), _built(self.over) if self.over else NONE


UNITS: Mapping[str, Unit] = {
    "recovery_seconds": "",
    "time": "x",
    "lifetime": "x",
    "time_more": "%",
    "writes_more": "%",
    "writes_saved": "%",
}


@cache
def published() -> tuple[Published, ...]:
    """What the abstracts of papers report."""
    text = files("sardonyx.studies.integrity").joinpath("claims.toml").read_text(encoding="utf-8")
    found = []
    for row in tomllib.loads(text)["claim"]:
        stat: Statistic = row["stat"]
        metric = row["metric"] if "over" not in row else f"{row['metric']} over {row['over'][0]}"
        under: dict[str, Scalar] = row.get("under", {})
        metric += "".join(f", {key}={value}" for key, value in under.items())
        claim = Claim(
            row["paper"].lower(),
            f"{row['paper']}, abstract",
            metric,
            row["of"][0],
            stat,
            row["value"],
            row["kind"],
        )
        found.append(
            Published(
                claim,
                tuple(row["of"]),
                tuple(row.get("over", ())),
                row["sure"],
                row["source"],
                row["reading"],
                under,
            )
        )
    return tuple(found)


def beside(world: World) -> list[ClaimRow]:
    """Every published figure beside ours."""
    return [_beside(world, one) for one in published()]


def _built(names: Sequence[str]) -> str | None:
    return next((name for name in names if name in schemes()), None)


def _beside(world: World, one: Published) -> ClaimRow:
    of, over = _built(one.of), _built(one.over)
    metric = one.claim.metric.split(" over ")[0]
    unit = UNITS[metric]
    missing = [names[0] for names, built in ((one.of, of), (one.over, over)) if names and not built]
    if of is None or missing:
        needs = f"a scheme that is not built: {', '.join(missing)}"
        row = Found({}, unit, "", needs).beside(one.claim)
        return _noted(row, f"not built: {', '.join(missing)}; {one.sure}")
    design = stack(CLAIMED, of)
    values: dict[str, float | None]
    readings: dict[str, float | None] = {}
    if metric == "recovery_seconds":
        recovery = world.recovered[design]
        values = {"8 TB": recovery.seconds()}
        readings[ONE_BY_ONE] = recovery.one_by_one()
    else:
        other = stack(CLAIMED, over or NONE)

        def of_all(
            variant: Mapping[str, Scalar], a: str = design, b: str = other
        ) -> dict[str, float | None]:
            found = world.over(COUNTED[metric], a, b, variant)
            shaped = {program: _shaped(metric, value) for program, value in found.items()}
            if one.claim.stat == "value":
                return {"mean": arithmetic_mean(shaped.values())}
            return shaped

        values = of_all(one.under)
        if one.under:
            settings = ", ".join(f"{key}={value}" for key, value in one.under.items())
            readings[f"without {settings}"] = statistic(one.claim, of_all({}).values())
        else:
            for cause, variant in CAUSES.items():
                readings[cause] = statistic(one.claim, of_all(variant).values())
            encrypted = of_all({}, stack(PLAIN, of), stack(PLAIN, over or NONE))
            readings[f"over {PLAIN}"] = statistic(one.claim, encrypted.values())
    runs = [run for run in world.comparison.results.runs if run.design == design]
    whose = f"ours is {design}" + (f" over {stack(CLAIMED, over)}" if over else "")
    note = f"{one.reading}; {whose}; the paper's figure {one.sure}"
    found = Found(values, unit, note, "a run of it that stands", readings, runs=runs)
    row = found.beside(one.claim)
    return row if row.ours is None else replace(row, note=f"{judged(row)}: {row.note}")


#: A reading is nearer to the paper's figure if this much of our distance to it is gone.
NEARER = 0.25


def judged(row: ClaimRow) -> str:
    """Whether a published figure holds, and if it does not, what of ours comes nearest to it."""
    ours, paper = row.ours or 0.0, row.claim.value
    if row.holds and (row.near or row.claim.kind != "sign"):
        return "holds"
    way = "the same way, " if row.holds else ""
    nearest = min(row.readings, key=lambda name: abs(row.readings[name] - paper), default="")
    if nearest and abs(row.readings[nearest] - paper) < abs(ours - paper) * (1 - NEARER):
        return f"{way}does not hold; nearer with {nearest}"
    return f"{way}does not hold"


#: The usual way of papers to count a recovery: from memory, and not checked.
ONE_BY_ONE = "one access after another, 100 ns each"
COUNTED = {
    "time": "runtime_ns",
    "time_more": "runtime_ns",
    "writes_more": "medium_writes",
    "writes_saved": "medium_writes",
    "lifetime": "medium_writes",
}


def _shaped(metric: str, ratio: float | None) -> float | None:
    match metric:
        case "time_more" | "writes_more":
            return None if ratio is None else ratio - 1
        case "writes_saved":
            return None if ratio is None else 1 - ratio
        case "lifetime":
            return divide(1.0, ratio)
        case _:
            return ratio


def _noted(row: ClaimRow, reason: str) -> ClaimRow:
    return ClaimRow(row.claim, row.ours, row.unit, reason, reason)


# ---- the verdict


def verdict(world: World, rows: Sequence[ClaimRow]) -> tuple[str, ...]:
    """What holds, in a few sentences."""
    tried = sum(one.tried for one in world.attacked.values())
    unkept = sum(one.unkept for one in world.attacked.values())
    refused = sum(one.honest_refused for one in world.attacked.values())
    cuts = sum(one.cuts for one in world.attacked.values())
    whole = len(_kinds())

    def stands(name: str) -> bool:
        of = [world.attacked[stack(base, name)] for base in BASES]
        return not any(one.unkept or one.honest_refused for one in of)

    promising = [name for name, one in schemes().items() if sum(one["refuses"].values()) == whole]
    fresh = [name for name in promising if stands(name)]
    broken = [name for name in schemes() if not stands(name)]
    sentences = [
        f"{len(schemes()) - 1} schemes of integrity over {len(BASES)} designs: {unkept:,} of "
        f"{tried:,} attacks at {cuts:,} cuts went unnoticed though the scheme promises to notice "
        f"them, {refused:,} honest recoveries were refused.",
    ]
    if broken:
        sentences.append(
            f"Broken, by an attack that was promised to be noticed or a cut: {', '.join(broken)}."
        )
    prices = [
        (price, name)
        for name in fresh
        if (price := arithmetic_mean(world.over("runtime_ns", stack(PLAIN, name), PLAIN).values()))
        is not None
    ]
    if prices:
        price, name = min(prices)
        seconds = world.recovered[stack(PLAIN, name)].seconds()
        sentences.append(
            f"The cheapest that notices all over {PLAIN} is {name}: {price:.2f} times the time of "
            f"a transaction, and {written_seconds(seconds)} for a recovery of 8 TB."
        )
        quick = min(fresh, key=lambda name: world.recovered[stack(PLAIN, name)].seconds())
        if quick != name:
            seconds = world.recovered[stack(PLAIN, quick)].seconds()
            words = f"in {written_seconds(seconds)}" if seconds else "with nothing to do"
            sentences.append(f"The one that recovers fastest is {quick}, {words}.")
    if fallen := sorted({design for _, design in world.refused}):
        sentences.append(f"Do not stand: {', '.join(fallen)}.")
    missing = sorted({row.claim.design for row in rows if row.reason.startswith("not built")})
    beside_them = [row for row in rows if row.ours is not None]
    held = sum(row.note.startswith("holds") for row in beside_them)
    sentences.append(
        f"{len(beside_them)} of {len(rows)} published figures have one of ours beside them, and "
        f"{held} hold: within a limit, or within {WITHIN:.0%} of a figure; all of them are "
        "from abstracts." + (f" Not built: {', '.join(missing)}." if missing else "")
    )
    return tuple(sentences)


class Integrity:
    """Several papers', and a table that none of them has."""

    name = "integrity"
    machine = MACHINE
    takes: tuple[str, ...] = ("machine",)
    instead = ""

    def plan(self, asked: Asked) -> Plan:
        base = QUICK if asked.quick else FULL
        return planned(replace(base, seed=asked.seed), asked.machine, asked.overrides)


def planned(scale: Scale, machine: str, overrides: Sequence[tuple[str, str]]) -> Plan:
    """What is run at this scale."""
    runs = Standing(Settings(machine, overrides, scale.warmup), points(scale))
    made: list[World] = []

    def measure(comparison: Comparison, watch: Watch | None) -> tuple[Exhibit, ...]:
        designs = [stack(base, scheme) for base in BASES for scheme in schemes()]
        rooms = {
            design: json.loads(_core.integrity_room(design, machine, list(overrides)))
            for design in designs
        }
        attacked = attack(scale, machine, overrides, watch)
        recovering = [
            stack(base, scheme)
            for base in BASES
            for scheme in schemes()
            if scheme != NONE and base in scale.recovered
        ]
        shown = [stack(PLAIN, scheme) for scheme in schemes() if scheme != NONE]
        recovered = recoveries.measured(recovering, machine, overrides, scale.sizes, shown, watch)
        world = World(comparison, attacked, recovered, runs.refused, rooms, scale.programs)
        made.append(world)
        laws = recoveries.exhibits(recovered, shown, scale.sizes)
        return (freshness(world, scale), *laws)

    def said(_: Comparison, rows: Sequence[ClaimRow]) -> tuple[str, ...]:
        return verdict(made[0], rows)

    return Plan(
        runs,
        f"Structures of {scale.footprint // KB} KB and items of 64 bytes, {scale.transactions} "
        f"transactions of which {scale.warmup} warm up. The papers' figures are those of their "
        "abstracts.",
        lambda _: beside(made[0]),
        measure,
        said,
    )


REPRODUCTION: Reproduction = Integrity()
