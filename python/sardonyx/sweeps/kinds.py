"""What a point asks, by the kind of its subject: a simulation, a crash trial, a merge or a store.

A kind turns a point's settings into a ``Question``: everything that determines the result, the
call that gives it, and a command that asks the same. Left out: which points there are (``plan``).
"""

from __future__ import annotations

import hashlib
import json
import shlex
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import lru_cache
from pathlib import Path
from typing import Any, ClassVar, Literal, TypeAlias

from pydantic import ConfigDict, ValidationError, field_validator

from sardonyx import _core
from sardonyx.runs import origin, stores
from sardonyx.runs.crashes import TrialQuestion
from sardonyx.runs.jobs import Job, Setting, parse_warmup, texts
from sardonyx.runs.merging import MergeQuestion
from sardonyx.runs.metrics import NAMES
from sardonyx.runs.results import CAUSES, Cause, Scalar
from sardonyx.runs.sources import SYNTH, ProgramSource, Source, TraceSource, Value, parse, unknown
from sardonyx.runs.stores import Conventional, Recam, StoreQuestion, Stream
from sardonyx.runs.tailbench import APPLICATIONS, PLAIN, TimedQuestion
from sardonyx.sizes import parse_size
from sardonyx.sweeps.inputs import Inputs

#: A figure of a result; text where it is a verdict.
Figure: TypeAlias = float | str | bool | None
#: What a merge takes: one image or folder, or several.
Subject: TypeAlias = str | tuple[str, ...]
#: What is booked under a cause.
BOOKED = tuple(field.name for field in fields(Cause))


@dataclass(frozen=True, slots=True)
class Question:
    """What one point asks. ``identity`` is all that determines the result."""

    identity: Mapping[str, Any]
    ask: Callable[[_core.Progress | None], dict[str, Figure]]
    inputs: tuple[str, ...] = ()
    #: Words of the command line that ask the same; none if there is no such command.
    command: tuple[str, ...] = ()
    #: Its time is measured, so nothing else may run beside it.
    alone: bool = False

    @property
    def name(self) -> str:
        """The hash by which the point is known everywhere."""
        whole = {"sardonyx": build(), **self.identity}
        text = json.dumps(whole, sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()[:32]


def refused(settings: Mapping[str, Any], problem: str) -> Question:
    """A point that the simulator does not take: it has a name, and fails with this problem."""

    def ask(_: _core.Progress | None) -> dict[str, Figure]:
        raise _core.SardonyxError(problem)

    return Question({"refused": problem, "settings": dict(settings)}, ask)


@lru_cache
def build() -> str:
    """The program version: the release and the commit, or the library where no commit is known."""
    commit = origin.commit()
    if commit is None or commit.endswith("-dirty"):
        library = Path(str(_core.__file__))
        commit = hashlib.sha256(library.read_bytes()).hexdigest()
    return f"{_core.VERSION} {commit}"


@lru_cache(4096)
def effective(machine: str, overrides: tuple[Setting, ...]) -> tuple[str, str]:
    """A machine's name, and a hash of all its parameters."""
    whole = json.loads(_core.machine(machine, list(overrides)))
    text = json.dumps(whole["parameters"], sort_keys=True)
    return str(whole["name"]), hashlib.sha256(text.encode()).hexdigest()


class Options(Value):
    """What a point may set besides the keys of its machine."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)
    design: str


def in_bytes(value: object) -> object:
    """Bytes from a number, or from ``4K``, ``16M`` or ``1G``."""
    return parse_size(value) if isinstance(value, str) else value


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


class Kind:
    """One kind of subject. ``listed`` are the lists of a sweep's file that name its subjects."""

    name: ClassVar[str]
    subject: ClassVar[str]
    listed: ClassVar[tuple[str, ...]]
    options: ClassVar[type[Options]]
    goals: ClassVar[tuple[str, ...]]
    #: Names of numbers that its answers may have: what a goal can be.
    figures: ClassVar[frozenset[str]]
    #: Other names of options, as the command line has them.
    aliases: ClassVar[Mapping[str, str]] = {}
    seeded: ClassVar[bool] = True

    def check_subject(self, subject: Subject, listed: str) -> None:
        """An error unless there can be such a subject; files are looked for elsewhere."""

    def inputs(self, subject: Subject) -> tuple[str, ...]:
        """The files that this subject reads, as it names them."""
        raise NotImplementedError

    def question(
        self, subject: Subject, options: Any, keys: tuple[Setting, ...], inputs: Inputs, repeat: int
    ) -> Question:
        """What is asked of the subject with these options and keys."""
        raise NotImplementedError

    def check(self, subject: Subject, options: Any, keys: tuple[Setting, ...], at: Inputs) -> None:
        """An error if the simulator would refuse it; nothing is computed."""

    def read(self, settings: Mapping[str, Any]) -> Any:
        """The options, checked."""
        try:
            return self.options.model_validate(settings)
        except ValidationError as error:
            first = error.errors()[0]
            name = str(first["loc"][0])
            if first["type"] == "extra_forbidden":
                known = [*self.options.model_fields, *self.aliases]
                raise _core.SardonyxError(f"{unknown('setting', name, known)}") from error
            if first["type"] == "missing":
                raise _core.SardonyxError(
                    f"there is no {name}; give {name}s = [..] under [sweep]"
                ) from error
            problem = (
                str(first["ctx"]["error"]) if "error" in first.get("ctx", {}) else first["msg"]
            )
            raise _core.SardonyxError(f"{name} = {first['input']!r}: {problem}") from error


# ---- simulations of traces and programs


class SimulateOptions(Options):
    """As ``sardonyx compare`` has them."""

    machine: str = "esd"
    limit: int | None = None
    middle: bool = False
    warmup: int | str = 0
    software_log: bool = True
    copies: int = 1
    distinct: bool = False
    transactions: int = 10_000
    transaction_size: int = 64
    footprint: int = 16 << 20
    seed: int | None = None

    _bytes = field_validator("transaction_size", "footprint", mode="before")(in_bytes)

    @field_validator("limit", "copies", "transactions")
    @classmethod
    def _some(cls, value: int | None) -> int | None:
        if value is not None and value < 1:
            raise ValueError("give a whole number of at least 1")
        return value

    @field_validator("seed")
    @classmethod
    def _natural(cls, value: int | None) -> int | None:
        if value is not None and value < 0:
            raise ValueError("give a whole number of at least 0")
        return value

    @property
    def warmed(self) -> tuple[int, float]:
        """Requests, and the share of the run, that count nowhere."""
        return parse_warmup(str(self.warmup))


class Simulate(Kind):
    """Designs on traces and programs."""

    name = "simulate"
    subject = "trace"
    listed = ("traces", "programs")
    options = SimulateOptions
    goals = ("max ipc", "min energy_nj")
    aliases: ClassVar[Mapping[str, str]] = {"cores": "copies"}
    #: What a run says of the host, which differs from run to run.
    HOST = ("requests_per_second",)
    figures = frozenset(NAMES.difference(HOST)).union(
        f"cause.{cause}.{name}" for cause in CAUSES for name in BOOKED
    )

    def check_subject(self, subject: Subject, listed: str) -> None:
        assert isinstance(subject, str)
        if listed == "programs" and subject not in _programs():
            raise _core.SardonyxError(unknown("program", subject, _programs()))
        if subject.startswith(SYNTH):
            parse(subject)

    def inputs(self, subject: Subject) -> tuple[str, ...]:
        assert isinstance(subject, str)
        return () if subject.startswith(SYNTH) or subject in _programs() else (subject,)

    def question(
        self, subject: Subject, options: Any, keys: tuple[Setting, ...], inputs: Inputs, repeat: int
    ) -> Question:
        assert isinstance(subject, str)
        source = self._source(subject, options, inputs)
        machine = effective(options.machine, keys)
        warmup, warmup_share = options.warmed
        job = Job(
            source=source,
            design=options.design,
            machine=options.machine,
            overrides=keys,
            warmup=warmup,
            warmup_share=warmup_share,
            copies=options.copies,
            distinct=options.distinct,
        )
        said = source.model_dump(exclude={"path"})
        names = self.inputs(subject)
        if names:
            said["sha256"] = inputs[subject].sha256
        identity = job.model_dump(exclude={"source", "machine", "overrides"})
        identity |= {"kind": self.name, "source": said, "machine": machine, "repeat": repeat}

        def ask(progress: _core.Progress | None) -> dict[str, Figure]:
            answer = json.loads(_core.simulate(job.model_dump_json(), progress))
            figures: dict[str, Figure] = dict(answer["metrics"])
            for name in self.HOST:
                figures.pop(name, None)
            for cause, booked in answer["causes"].items():
                figures |= {f"cause.{cause}.{name}": booked.get(name) for name in BOOKED}
            return figures

        return Question(identity, ask, names, self._command(subject, options, keys))

    def check(self, subject: Subject, options: Any, keys: tuple[Setting, ...], at: Inputs) -> None:
        assert isinstance(subject, str)
        _check_design(options.design)
        effective(options.machine, keys)
        _ = options.warmed
        source = self._source(subject, options, at)
        if isinstance(source, ProgramSource):
            job = Job(
                source=source.model_copy(update={"seed": 0}),
                design=options.design,
                machine=options.machine,
                overrides=keys,
                copies=options.copies,
            )
            _check_job(job.model_dump_json())

    def _source(self, subject: str, options: SimulateOptions, inputs: Inputs) -> Source:
        if subject in _programs() and subject not in inputs.known:
            return ProgramSource(
                name=subject,
                item_bytes=options.transaction_size,
                footprint=options.footprint,
                transactions=options.transactions,
                seed=options.seed or 0,
                software_log=options.software_log,
            )
        if subject.startswith(SYNTH):
            source = parse(subject, options.limit)
            return (
                source if options.seed is None else source.model_copy(update={"seed": options.seed})
            )
        if options.seed is not None:
            raise _core.SardonyxError(
                f"{subject}: a recorded trace has no seed; leave seeds out, or name programs or "
                f"{SYNTH}NAME"
            )
        path = str(inputs[subject].path)
        return TraceSource(path=path, limit=options.limit, middle=options.middle)

    def _command(
        self, subject: str, options: SimulateOptions, keys: tuple[Setting, ...]
    ) -> tuple[str, ...]:
        named = subject
        if subject.startswith(SYNTH) and options.seed is not None:
            synth = self._source(subject, options, Inputs())
            rungs = {rung["name"]: rung["records"] for rung in json.loads(_core.ladder())}
            records = getattr(synth, "records", None) or rungs[getattr(synth, "name", "")]
            named = f"{SYNTH}{getattr(synth, 'name', '')}:{records}:{options.seed}"
        program = subject in _programs()
        words = ["compare", named, "--designs", options.design, "--machine", options.machine]
        for key, text in keys:
            words += ["--set", f"{key}={text}"]
        for option, value, default in (
            ("--limit", options.limit, None),
            ("--warmup", options.warmup, 0),
            ("--copies", options.copies, 1),
            ("--transactions", options.transactions if program else 10_000, 10_000),
            ("--transaction-size", options.transaction_size if program else 64, 64),
            ("--footprint", options.footprint if program else 16 << 20, 16 << 20),
            ("--seed", (options.seed or 0) if program else 0, 0),
        ):
            words += [] if value == default else [option, str(value)]
        if options.middle or not options.software_log:
            return ()  # `compare` has no such option
        return (*words, *(["--distinct"] if options.distinct else []))


@lru_cache
def _programs() -> list[str]:
    return [str(program["name"]) for program in json.loads(_core.programs())["programs"]]


@lru_cache(4096)
def _check_job(job: str) -> None:
    _core.check_job(job)


@lru_cache
def _check_design(name: str) -> None:
    known = [str(design["name"]) for design in json.loads(_core.designs())]
    if "+" in name:
        _core.guarantee(name)
    elif name not in known:
        raise _core.SardonyxError(unknown("design", name, known))


# ---- crash plans


class CrashOptions(Options):
    """As ``sardonyx crash`` has them."""

    machine: str = "sca"
    seed: int = 1
    cores: int | None = None
    transactions: int | None = None
    transaction_size: int | None = None
    footprint: int | None = None
    mutant: str | None = None
    platform: str = "adr"
    tear: str = "lines"
    cuts: int | Literal["all"] = "all"
    recovery_cuts: int = 64
    full: int = 509
    software_log: bool = True

    _bytes = field_validator("transaction_size", "footprint", mode="before")(in_bytes)


class Crash(Kind):
    """Designs under programs whose power is cut everywhere."""

    name = "crash"
    subject = "program"
    listed = ("crash",)
    options = CrashOptions
    goals = ("min violations", "max cuts")
    figures = _names(
        "checked_in_full cuts distinct_states exercised.collisions exercised.duplicates lost_cuts "
        "positions recovery_cuts runs secret_cuts violations"
    )
    #: What an answer repeats of its question, and the host's speed.
    ASKED = ("program", "design", "platform", "tear", "seed", "mutant", "seconds")

    def check_subject(self, subject: Subject, listed: str) -> None:
        assert isinstance(subject, str)
        if subject not in _programs():
            raise _core.SardonyxError(unknown("program", subject, _programs()))

    def inputs(self, subject: Subject) -> tuple[str, ...]:
        return ()

    def question(
        self, subject: Subject, options: Any, keys: tuple[Setting, ...], inputs: Inputs, repeat: int
    ) -> Question:
        trial = self._trial(subject, options, keys)
        identity = trial.model_dump(exclude={"machine", "overrides", "threads"})
        identity |= {"kind": self.name, "repeat": repeat}
        identity["machine"] = effective(options.machine, keys)

        def ask(progress: _core.Progress | None) -> dict[str, Figure]:
            answer = json.loads(_core.crash_trial(trial.model_dump_json(), progress))
            figures = flat({k: v for k, v in answer.items() if k not in self.ASKED})
            figures["violations"] = sum(each["count"] for each in answer["violations"])
            return figures

        return Question(identity, ask, (), self._command(trial))

    def check(self, subject: Subject, options: Any, keys: tuple[Setting, ...], at: Inputs) -> None:
        _check_design(options.design)
        _core.crash_trial_memory(self._trial(subject, options, keys).model_dump_json())

    def _trial(
        self, subject: Subject, options: CrashOptions, keys: tuple[Setting, ...]
    ) -> TrialQuestion:
        assert isinstance(subject, str)
        return TrialQuestion(
            program=subject,
            design=options.design,
            machine=options.machine,
            overrides=keys,
            seed=options.seed,
            cores=options.cores,
            transactions=options.transactions,
            item_bytes=options.transaction_size,
            footprint=options.footprint,
            mutant=options.mutant,
            platform=options.platform,
            tear=options.tear,
            cuts=None if options.cuts == "all" else options.cuts,
            recovery_cuts=options.recovery_cuts,
            full_one_in=options.full,
            software_log=options.software_log,
            threads=1,
        )

    def _command(self, trial: TrialQuestion) -> tuple[str, ...]:
        words = ["crash", trial.program, "--designs", trial.design, "--machine", trial.machine]
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


# ---- merges


class MergeOptions(Options):
    """As ``sardonyx merge`` has them."""

    kernel: str = "linux-6"
    passes: int | None = None


class Merge(Kind):
    """Same-page merging over page images."""

    name = "merge"
    subject = "images"
    listed = ("merge",)
    options = MergeOptions
    goals = ("max saving", "min settled_cpu_seconds")
    figures = _names(
        "cpu_seconds cpu_share frames_saving hardware.calls hardware.compared_lines "
        "hardware.comparisons hardware.key_lines hardware.tables keys.false_matches keys.matches "
        "keys.mismatches machines pages.frames pages.merged pages.merged_frames pages.merged_zero "
        "pages.pages pages.unmerged pages.zero_frames saved_bytes saved_pages saved_zero_pages "
        "saving settled_after_passes settled_after_seconds settled_cpu_seconds"
    )
    seeded = False

    def inputs(self, subject: Subject) -> tuple[str, ...]:
        return (subject,) if isinstance(subject, str) else subject

    def question(
        self, subject: Subject, options: Any, keys: tuple[Setting, ...], inputs: Inputs, repeat: int
    ) -> Question:
        names = self.inputs(subject)
        question = self._question(
            tuple({"path": str(inputs[name].path)} for name in names), options, keys
        )
        identity = question.model_dump(exclude={"machines"})
        identity |= {"kind": self.name, "repeat": repeat, "sets": sorted(keys)}
        identity["machines"] = [inputs[name].sha256 for name in names]

        def ask(progress: _core.Progress | None) -> dict[str, Figure]:
            answer = json.loads(_core.merge(question.model_dump_json(), progress))
            return flat(answer["runs"][0]["metrics"])

        words = ["merge", *names, "--designs", options.design, "--kernel", options.kernel]
        words += [] if options.passes is None else ["--passes", str(options.passes)]
        for key, text in keys:
            words += ["--set", f"{key}={text}"]
        return Question(identity, ask, names, (*words, "--no-what-if", "--no-why"))

    def check(self, subject: Subject, options: Any, keys: tuple[Setting, ...], at: Inputs) -> None:
        _try_merge(self._question(({"path": ""},), options, keys))

    def _question(
        self,
        machines: tuple[dict[str, str | int], ...],
        options: MergeOptions,
        keys: tuple[Setting, ...],
    ) -> MergeQuestion:
        return MergeQuestion(
            machines=machines,
            designs=(options.design,),
            kernel=options.kernel,
            passes=options.passes,
            sets=keys,
        )


def _try_merge(question: MergeQuestion) -> None:
    """The question of a few generated pages: what is refused there is refused everywhere."""
    with tempfile.NamedTemporaryFile(suffix=".raw") as image:
        image.write(_core.merge_snapshot(_core.merge_mixes()[0], 8, 1))
        image.flush()
        tiny = question.model_copy(update={"machines": ({"path": image.name},), "passes": 1})
        _core.merge(tiny.model_dump_json(), None)


# ---- merging in time


class MergeTimeOptions(Options):
    """As ``sardonyx merge time`` has them: ``design`` merges, ``memory`` is the memory's design."""

    machine: str = "pageforge"
    memory: str = PLAIN
    seed: int = 0

    @field_validator("seed")
    @classmethod
    def _natural(cls, value: int) -> int:
        if value < 0:
            raise ValueError("give a whole number of at least 0")
        return value


class MergeTime(Kind):
    """What merging costs applications of generated virtual machines."""

    name = "merge-time"
    subject = "application"
    listed = ("applications",)
    options = MergeTimeOptions
    goals = ("min geomean_sojourn_ns", "min p95_sojourn_ns")
    figures = _names(
        "bandwidth_busiest_gb_s bandwidth_gb_s check_period_cycles comparisons duplicate_writes "
        "encryption_energy_nj energy_nj factor geomean_sojourn_ns intervals key_comparisons "
        "key_false_matches key_matches lines_a_comparison llc_accesses llc_miss_rate loaded_lines "
        "loaded_lines_stored mean_executed_ns mean_interrupted_ns mean_interval_ns "
        "mean_read_latency_ns mean_sojourn_ns mean_waited_ns mean_write_latency_ns medium_reads "
        "medium_writes mergeable_nonzero_pages mergeable_zero_pages merged_nonzero_frames "
        "p50_sojourn_ns p95_sojourn_ns p99_sojourn_ns pages pages_copied pages_merged "
        "pages_scanned passes_until_settled queries queries_per_second reads saving "
        "scan_table_cycles scan_table_cycles_deviation scan_tables thread_compare_cycles_a_page "
        "thread_compare_share thread_hash_cycles_a_page thread_hash_share thread_moves "
        "thread_other_cycles_a_page thread_share_mean thread_share_most unmergeable_pages "
        "utilisation write_reduction writes"
    )

    def check_subject(self, subject: Subject, listed: str) -> None:
        assert isinstance(subject, str)
        if subject not in APPLICATIONS:
            raise _core.SardonyxError(unknown("application", subject, list(APPLICATIONS)))

    def inputs(self, subject: Subject) -> tuple[str, ...]:
        return ()

    def question(
        self, subject: Subject, options: Any, keys: tuple[Setting, ...], inputs: Inputs, repeat: int
    ) -> Question:
        question = self._question(subject, options, keys)
        identity = question.model_dump(exclude={"machine"})
        identity |= {"kind": self.name, "repeat": repeat}
        identity["machine"] = effective(options.machine, ())

        def ask(progress: _core.Progress | None) -> dict[str, Figure]:
            answer = json.loads(_core.merge_timed(question.model_dump_json(), progress))
            return flat(answer["metrics"])

        words = ["merge", "time", question.application, "--designs", options.design]
        words += ["--memory", options.memory, "--machine", options.machine]
        words += ["--seed", str(options.seed)]
        for key, text in keys:
            words += ["--set", f"{key}={text}"]
        return Question(identity, ask, (), tuple(words))

    def check(self, subject: Subject, options: Any, keys: tuple[Setting, ...], at: Inputs) -> None:
        _core.check_merge_timed(self._question(subject, options, keys).model_dump_json())

    def _question(
        self, subject: Subject, options: MergeTimeOptions, keys: tuple[Setting, ...]
    ) -> TimedQuestion:
        assert isinstance(subject, str)
        return TimedQuestion(
            application=subject,
            design=options.design,
            memory=options.memory,
            machine=options.machine,
            sets=keys,
            seed=options.seed,
        )


# ---- stores


class StoreOptions(Options):
    """As ``sardonyx store compare`` has them."""

    block: int = 4096
    bytes: int = 2 << 30
    span: int = 0
    duplicates: float = 0.3
    reads: float = 0.0
    encrypted: bool = False
    seed: int = 0

    _bytes = field_validator("block", "bytes", "span", mode="before")(in_bytes)


class Store(Kind):
    """Deduplicating stores: the resistive CAM, and its rival, which is executed."""

    name = "store"
    subject = "workload"
    listed = ("store",)
    options = StoreOptions
    goals = ("max writes_per_second", "min energy_nj")
    figures = _names(
        "active_rows bloom_answers bytes cache_answers collisions compared_bits cycles "
        "drive_bytes_read drive_bytes_written drive_energy_nj duplicate_writes elapsed_seconds "
        "energy_nj energy_nj_high energy_nj_low engine_lookups erase_cycles erase_energy_nj "
        "free_cycles free_energy_nj hash_seconds mean_writes_of_a_row memory_energy_nj "
        "most_writes_of_a_row operations_per_second processor_energy_nj read_cycles "
        "read_energy_nj reads rows rows_of_a_block search_active_rows search_cycles "
        "search_energy_nj share_of_time_in_line slots_used store_cycles store_energy_nj "
        "stored_blocks sync_seconds translate_cycles translate_energy_nj writes "
        "writes_per_second writes_per_second_alone written_bits"
    )
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
        identity = question.model_dump()
        identity |= {"kind": self.name, "repeat": repeat}
        names = self.inputs(subject)
        if names:
            identity["workload"] = {
                "kind": question.workload.kind,
                "sha256": inputs[subject].sha256,
            }
        alone = isinstance(question.design, Conventional)

        def ask(progress: _core.Progress | None) -> dict[str, Figure]:
            return flat(stores.answer(question, None, progress)["metrics"])

        return Question(identity, ask, names, alone=alone)

    def check(self, subject: Subject, options: Any, keys: tuple[Setting, ...], at: Inputs) -> None:
        assert isinstance(subject, str)
        _core.check_store(self._question(subject, options, keys, at).model_dump_json())

    def _question(
        self, subject: str, options: StoreOptions, keys: tuple[Setting, ...], inputs: Inputs
    ) -> StoreQuestion:
        return StoreQuestion(
            design=self._design(options.design, keys),
            workload=self._workload(subject, options, inputs),
            block_bytes=options.block,
        )

    def _workload(self, subject: str, options: StoreOptions, inputs: Inputs) -> stores.Workload:
        if subject == self.STREAM:
            return Stream(
                bytes=options.bytes,
                span=options.span,
                duplicates=options.duplicates,
                reads=options.reads,
                seed=options.seed,
                encrypted=options.encrypted,
            )
        path = inputs[subject].path
        return (stores.Tree if path.is_dir() else stores.BlockTrace)(path=str(path))

    def _design(self, name: str, keys: tuple[Setting, ...]) -> Recam | Conventional:
        """The design with those of the keys that are its own."""
        if name not in stores.DESIGNS:
            raise _core.SardonyxError(unknown("store", name, stores.DESIGNS))
        rival = [key for key in Conventional.model_fields if key not in ("name", "folder")]
        settings: dict[str, bool] = {}
        for key, text in keys:
            whose, _, own = key.partition(".")
            if whose not in stores.DESIGNS or (whose == "conventional" and own not in rival):
                known = [f"conventional.{each}" for each in rival]
                known += [f"recam.{each}" for each in Recam.model_fields if each != "name"]
                raise _core.SardonyxError(unknown("key", key, known))
            if whose == "conventional":
                if text not in ("true", "false"):
                    raise _core.SardonyxError(f"{key} = {text}: give true or false")
                settings[own] = text == "true"
        array = stores.overridden(Recam(), [pair for pair in keys if pair[0].startswith("recam.")])
        return array if name == "recam" else Conventional(**settings)  # type: ignore[arg-type]


#: Every kind, in the order in which messages name their lists.
KINDS: tuple[Kind, ...] = (Simulate(), Crash(), Merge(), MergeTime(), Store())


def flat(document: Mapping[str, Any], within: str = "") -> dict[str, Figure]:
    """Figures under dotted names; lists are left out."""
    found: dict[str, Figure] = {}
    for name, value in document.items():
        if isinstance(value, Mapping):
            found |= flat(value, f"{within}{name}.")
        elif not isinstance(value, Sequence) or isinstance(value, str):
            found[f"{within}{name}"] = value
    return found


def labels(subjects: Sequence[Subject]) -> dict[Subject, str]:
    """Subjects by the shortest names that tell them apart: stem, else file name, else as given."""

    def each(name_of: Callable[[str], str]) -> list[str]:
        return [
            ", ".join(map(name_of, (subject,) if isinstance(subject, str) else subject))
            for subject in subjects
        ]

    def stem(text: str) -> str:
        return text if text.startswith(SYNTH) else Path(text).stem

    names = next(
        (
            found
            for of in (stem, lambda text: Path(text).name)
            if len(set(found := each(of))) == len(found)
        ),
        each(str),
    )
    return dict(zip(subjects, names, strict=True))


def as_settings(keys: Mapping[str, Scalar]) -> tuple[Setting, ...]:
    """Keys and values as the simulator takes them, in the order of names."""
    return tuple(sorted(texts(keys)))


def shown(words: Sequence[str]) -> str:
    """A command as a shell takes it."""
    return shlex.join(["sardonyx", *words])
