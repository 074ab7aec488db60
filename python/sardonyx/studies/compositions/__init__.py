"""Every logging over every mapping over every counter policy: does it survive each power cut, does
it keep its pads secret, what does a transaction cost. No paper has this table, so no claims.

Cuts are the crash explorer's, by its default plan, of which each run takes so many; costs are
simulated on the machine as it is. Left out: what a cut is held against
(``docs/crash/explorer.md``).
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import product
from typing import Any

from sardonyx import _core
from sardonyx.papers.claims import ClaimRow
from sardonyx.papers.reproduction import Asked, Cell, Exhibit, Plan, Reproduction
from sardonyx.questions import ProgramSource, TrialQuestion
from sardonyx.runs import scheduler
from sardonyx.runs.comparison import Comparison
from sardonyx.runs.jobs import Point, Setting, Settings, Simulations
from sardonyx.runs.measures import arithmetic_mean, divide
from sardonyx.runs.programs import KB
from sardonyx.runs.results import Run
from sardonyx.runs.scheduler import Task, Watch
from sardonyx.runs.sources import known_programs

NONE, SOFTWARE = "none", "software undo"
#: With the first two, which keep no log in hardware, programs keep none either, or SCA's.
LOGGINGS = (NONE, SOFTWARE, "hw-log", "alc", "easy-pm")
MAPPINGS = ("identity", "esd", "esd-sound", "dedup-sha1-sound", "dewrite-sound")
POLICIES = (
    "no-encryption",
    "per-line",
    "ideal",
    "fca",
    "sca",
    "no-atomicity",
    "co-located",
    "co-located-cc",
)
PLAIN = POLICIES[0]
MACHINE = "sca"


@dataclass(frozen=True, slots=True)
class Scale:
    """How much is run: ``cuts`` of each of a plan's runs, and ``recovery_cuts``, after which life
    goes on and is cut as well; one of those takes ten times as long as all cuts.
    """

    programs: Sequence[str] = field(default_factory=known_programs)
    cuts: int = 40
    recovery_cuts: int = 0
    footprint: int = 256 * KB
    transactions: int = 300
    warmup: int = 100
    seed: int = 0


FULL = Scale()
QUICK = Scale(programs=("queue", "bplus-tree"), cuts=6, transactions=150, warmup=50)


@dataclass(frozen=True, slots=True, order=True)
class Composition:
    """A logging over a mapping over a policy."""

    logging: str
    mapping: str
    policy: str

    @property
    def design(self) -> str:
        """The stack as the native module calls it."""
        hardware = f"{self.logging}/" if self.in_hardware else ""
        return f"{hardware}{self.mapping}+{self.policy}"

    @property
    def in_hardware(self) -> bool:
        return self.logging not in (NONE, SOFTWARE)

    @property
    def software_log(self) -> bool:
        """Whether programs keep a log of their own where the hardware keeps none."""
        return self.logging != NONE

    @property
    def row(self) -> str:
        return f"{self.logging}, {self.mapping}"


ALL = [Composition(*layers) for layers in product(LOGGINGS, MAPPINGS, POLICIES)]


def _name(program: str, composition: Composition) -> str:
    return program if composition.software_log else f"{program} without a log"


def points(scale: Scale, compositions: Sequence[Composition] = ALL) -> list[Point]:
    """A run of each composition and program, for what a transaction costs."""
    return [
        Point(
            _name(program, composition),
            ProgramSource(
                name=program,
                footprint=scale.footprint,
                transactions=scale.transactions,
                seed=scale.seed,
                software_log=composition.software_log,
            ),
            composition.design,
        )
        for program in scale.programs
        for composition in compositions
    ]


@dataclass(frozen=True, slots=True)
class Tried:
    """What a plan has shown of a composition under a program."""

    composition: Composition
    program: str
    answer: Mapping[str, Any]
    question: TrialQuestion

    @property
    def replay(self) -> str:
        """The command that makes the same cuts again, and tells what they break."""
        asked = self.question
        words = ["sardonyx", "crash", "run", asked.program, "--designs", asked.design]
        words += [] if asked.software_log else ["--no-log"]
        words += ["--seed", str(asked.seed), "--cuts", str(asked.cuts)]
        words += ["--recovery-cuts", str(asked.recovery_cuts), "--machine", asked.machine]
        for key, value in asked.overrides:
            words += ["--set", f"{key}={value}"]
        return shlex.join(words)

    @property
    def survives(self) -> bool:
        return not self.answer["lost_cuts"]

    @property
    def secret(self) -> bool:
        """Whether no cut gave a pad or a plaintext away; without encryption there is no secret."""
        return self.composition.policy != PLAIN and not self.answer["secret_cuts"]

    @property
    def cuts(self) -> int:
        return int(self.answer["cuts"])

    def to_document(self) -> dict[str, Any]:
        wanted = ("guarantee", "verdict", "cuts", "lost_cuts", "secret_cuts", "not_exercised")
        return {
            "logging": self.composition.logging,
            "mapping": self.composition.mapping,
            "policy": self.composition.policy,
            "program": self.program,
            **{name: self.answer[name] for name in wanted},
            "violations": {v["kind"]: v["count"] for v in self.answer["violations"]},
            "replay": self.replay,
        }


def attempt(
    scale: Scale,
    machine: str,
    overrides: Sequence[Setting],
    watch: Watch | None = None,
    compositions: Sequence[Composition] = ALL,
) -> list[Tried]:
    """Every composition under every program, by the explorer's plan."""
    pairs = list(product(compositions, scale.programs))
    tasks, questions = [], []
    for composition, program in pairs:
        question = TrialQuestion(
            program=program,
            design=composition.design,
            machine=machine,
            overrides=tuple(overrides),
            seed=scale.seed + 1,
            cuts=scale.cuts,
            recovery_cuts=scale.recovery_cuts,
            threads=1,
            software_log=composition.software_log,
        )
        questions.append(question)
        label = f"{program} {composition.row}, {composition.policy}"
        tasks.append(Task(label, partial(_core.crash_trial, question.json())))
    answers = scheduler.run(tasks, watch=watch)
    return [
        Tried(composition, program, json.loads(answer), question)
        for (composition, program), question, answer in zip(pairs, questions, answers, strict=True)
    ]


def cost(runs: Sequence[Run], programs: Sequence[str], composition: Composition) -> Cost:
    """What a transaction takes, mean over the programs."""
    names = {_name(program, composition) for program in programs}
    of = [run for run in runs if run.trace in names and run.design == composition.design]
    time = arithmetic_mean(
        divide(run.metric("runtime_ns"), run.metric("transactions")) for run in of
    )
    writes = arithmetic_mean(
        divide(run.metric("medium_writes"), run.metric("transactions")) for run in of
    )
    return Cost(time, writes)


@dataclass(frozen=True, slots=True)
class Cost:
    """Of a transaction: nanoseconds, and writes to the medium."""

    time_ns: float | None
    writes: float | None

    @property
    def words(self) -> str:
        if self.time_ns is None or self.writes is None:
            return "not run"
        return f"{self.time_ns:,.0f} ns, {self.writes:.1f} writes"


def matrix(comparison: Comparison, tried: Sequence[Tried], scale: Scale) -> Exhibit:
    """A row for each logging and mapping, a column for each policy."""
    by: dict[Composition, list[Tried]] = {}
    for one in tried:
        by.setdefault(one.composition, []).append(one)
    rows: dict[str, dict[str, Cell]] = {}
    documents = []
    for composition, of in by.items():
        price = cost(comparison.results.runs, scale.programs, composition)
        lost = [one.program for one in of if not one.survives]
        open_ = [one.program for one in of if not one.secret]
        words = "survives" if not lost else f"lost in {len(lost)} of {len(of)}"
        secret = "secret" if not open_ else f"not secret in {len(open_)} of {len(of)}"
        secret = "plaintext" if composition.policy == PLAIN else secret
        counts = {
            "cuts": sum(one.cuts for one in of),
            "lost_cuts": sum(int(one.answer["lost_cuts"]) for one in of),
            "secret_cuts": sum(int(one.answer["secret_cuts"]) for one in of),
        }
        each = {one.program: str(one.answer["verdict"]) for one in of}
        cell = Cell(None, words, f"{secret}; {price.words}", counts, each)
        rows.setdefault(composition.row, {})[composition.policy] = cell
        document = {"logging": composition.logging, "mapping": composition.mapping}
        documents.append(
            {**document, "policy": composition.policy, **counts}
            | {"survives": not lost, "secret": not open_}
            | {"ns_a_transaction": price.time_ns, "medium_writes_a_transaction": price.writes}
        )
    cuts = sum(one.cuts for one in tried)
    note = (
        f"{len(by)} compositions under {len(scale.programs)} programs "
        f"({', '.join(scale.programs)}), {cuts:,} cuts by the explorer's plan, {scale.cuts} of "
        "each run: survives means that no cut that was made broke what every transaction is to "
        "have, whatever the layers promise. A cost is the mean over the programs, on one core of "
        f"{comparison.results.machine.name}. Each cell's cuts again: `sardonyx crash run PROGRAM "
        f"--designs LOGGING/MAPPING+POLICY --cuts {scale.cuts} --recovery-cuts "
        f"{scale.recovery_cuts}`, without LOGGING/ for the first two loggings and with --no-log "
        "for the first."
    )
    facts = {
        "cuts": cuts,
        "compositions": documents,
        "trials": [one.to_document() for one in tried],
    }
    return Exhibit("compositions", "Compositions", "logging, mapping", rows, note, facts)


def verdict(table: Exhibit) -> tuple[str, ...]:
    """Which loggings survive over which policies, in a few sentences."""
    found: Sequence[Mapping[str, Any]] = table.facts["compositions"]

    def where(logging: str) -> str:
        of = [one for one in found if one["logging"] == logging]
        good = {
            policy: [one for one in of if one["policy"] == policy and one["survives"]]
            for policy in POLICIES
        }
        whole = [policy for policy, ones in good.items() if len(ones) == len(MAPPINGS)]
        some = [policy for policy, ones in good.items() if 0 < len(ones) < len(MAPPINGS)]
        parts = [
            f"over {which} mapping{'s' if which == 'some' else ''} with {', '.join(policies)}"
            for which, policies in (("every", whole), ("some", some))
            if policies
        ]
        return f"{logging} {', '.join(parts) or 'nowhere'}"

    both = [one for one in found if one["survives"] and one["secret"]]
    cheap = sorted(both, key=lambda one: one["ns_a_transaction"] or float("inf"))
    sentences = [
        f"{len(both)} of {len(found)} compositions survive every cut that was made and keep their "
        "pads secret.",
        "Survives: " + "; ".join(where(logging) for logging in LOGGINGS) + ".",
    ]
    if cheap:
        best = cheap[0]
        stack = f"{best['logging']} over {best['mapping']}+{best['policy']}"
        sentences.append(
            f"The cheapest that does both is {stack}: {best['ns_a_transaction'] or 0:,.0f} ns a "
            "transaction."
        )
    return tuple(sentences)


class Compositions:
    """Not a paper's: what all of them leave out."""

    name = "compositions"
    machine = MACHINE
    takes: tuple[str, ...] = ("machine",)
    instead = ""

    def plan(self, asked: Asked) -> Plan:
        base = QUICK if asked.quick else FULL
        scale = Scale(
            base.programs,
            base.cuts,
            base.recovery_cuts,
            base.footprint,
            base.transactions,
            base.warmup,
            asked.seed,
        )
        made: list[Exhibit] = []

        def measure(comparison: Comparison, watch: Watch | None) -> tuple[Exhibit, ...]:
            tried = attempt(scale, asked.machine, asked.overrides, watch)
            made.append(matrix(comparison, tried, scale))
            return tuple(made)

        def said(_: Comparison, __: Sequence[ClaimRow]) -> tuple[str, ...]:
            return verdict(made[0])

        return Plan(
            Simulations(Settings(asked.machine, asked.overrides, scale.warmup), points(scale)),
            f"Structures of {scale.footprint // KB} KB and items of 64 bytes, "
            f"{scale.transactions} transactions of which {scale.warmup} warm up.",
            lambda _: [],
            measure,
            said,
        )


REPRODUCTION: Reproduction = Compositions()
