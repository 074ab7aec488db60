"""What the commands of the docs say: run once, kept, and asked by short expressions.

An answer is kept in ``target/figures`` under the command and the program that gave it (package,
machines, claims, recordings), so it is found again until one of them changes.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shlex
import subprocess
import tempfile
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import exp, isfinite, prod
from pathlib import Path
from typing import Any

from figures_pages import ROOT, Command, Figure, Page, Wrong

KEPT = ROOT / "target" / "figures"
#: Commands that would leave results in the folder where they run.
LEAVE_RESULTS = ("compare", "reproduce")
#: Files of the program that decide what it says.
DECIDE = (".py", ".so", ".toml", ".parquet", ".csv")
#: Prefixes of figures with three digits.
PREFIXES = ((1e9, "G"), (1e6, "M"), (1e3, "k"), (1.0, ""))


class NotRun(Exception):
    """A figure needs a command that was not run."""


class Node(dict[str, Any]):
    """An object of an answer; its members are attributes."""

    def __getattr__(self, name: str) -> Any:
        try:
            return self[name]
        except KeyError:
            raise LookupError(f"no {name}; there are {', '.join(self)}") from None


@dataclass(frozen=True, slots=True)
class Answer:
    """What a command said: its JSON, its terminal, and how long it took."""

    document: Any
    terminal: str
    seconds: float
    processor_seconds: float


def fits(row: Mapping[str, Any], wanted: Mapping[str, Any]) -> bool:
    return all(row.get(name) == value for name, value in wanted.items())


def every(rows: Iterable[Any], **wanted: Any) -> list[Any]:
    """The rows with these members."""
    return [row for row in rows if fits(row, wanted)]


def one(rows: Iterable[Any], **wanted: Any) -> Any:
    """The row with these members; an error unless it is one."""
    rows = list(rows)
    found = every(rows, **wanted)
    if len(found) != 1:
        name = next(iter(wanted))
        there = ", ".join(sorted({str(row.get(name)) for row in rows}))
        raise LookupError(f"{len(found)} rows have {wanted}; of {name} there are {there}")
    return found[0]


class Asked:
    """A command's answer as expressions see it."""

    def __init__(self, command: Command, answers: Answers) -> None:
        self._command = command
        self._answers = answers

    @property
    def json(self) -> Any:
        """The whole document."""
        return self._answers.of(self._command).document

    @property
    def terminal(self) -> str:
        return self._answers.of(self._command).terminal

    def runs(self, **wanted: Any) -> list[Any]:
        """Runs of ``compare``, ``crash``, ``store compare`` or, of a reproduction, its results."""
        document = self.json
        return every(document.get("results", document)["runs"], **wanted)

    def run(self, trace: str = "", design: str = "", **wanted: Any) -> Any:
        """The one run of a trace or program under a design, of the machine as it is unless
        ``variant`` says otherwise.
        """
        wanted |= ({"trace": trace} if trace else {}) | ({"design": design} if design else {})
        runs = self.runs()
        if "variant" not in wanted and runs and "variant" in runs[0]:
            wanted["variant"] = {}
        return one(runs, **wanted)

    def claim(self, where: str, metric: str = "", design: str = "", stat: str = "") -> Any:
        """A claim of a reproduction; what is left empty may be anything."""
        given = {"where": where, "metric": metric, "design": design, "stat": stat}
        return one(self.json["claims"], **{name: value for name, value in given.items() if value})

    def cell(self, exhibit: str, row: str, column: str) -> Any:
        """A cell of a reproduction's table: what it says of ours, and its evidence."""
        rows = [one for one in self.json[exhibit]["rows"] if row in one.values()]
        if len(rows) != 1 or column not in rows[0]:
            raise LookupError(f"{exhibit} has no {row}, {column}")
        return rows[0][column]


def mean(values: Iterable[float]) -> float:
    found = list(values)
    return sum(found) / len(found)


def geomean(values: Iterable[float]) -> float:
    found = list(values)
    return float(prod(found) ** (1 / len(found)))


def three(value: float) -> str:
    """Three digits: 8.87, 33.1, 119."""
    size = abs(value)
    return f"{value:.0f}" if size >= 99.95 else f"{value:.1f}" if size >= 9.995 else f"{value:.2f}"


def prefixed(value: float) -> str:
    """Three digits and a prefix: 8.87 M, 119 k."""
    size, prefix = next(((s, p) for s, p in PREFIXES if abs(value) >= s), PREFIXES[-1])
    return f"{three(value / size)} {prefix}".rstrip()


def found(pattern: str, text: str) -> str:
    """What the pattern's first group has in a text that an answer holds; not there: an error."""
    match = re.search(pattern, text)
    if not match:
        raise LookupError(f"no {pattern} in: {text}")
    return match[1]


def parts(text: str, separator: str = ",") -> list[str]:
    return [part.strip() for part in text.split(separator)]


def written(value: Any, spec: str) -> str:
    """A figure as the page writes it; nothing, or no number, is an error."""
    if value is None or (isinstance(value, float) and not isfinite(value)):
        raise LookupError(f"its expression gives {value}")
    text = format(value, spec) if spec else str(value)
    if not text:
        raise LookupError("its expression gives nothing")
    return text[1:] if text.startswith("-") and not text.strip("-0.,") else text


WORDS: dict[str, Any] = {
    "every": every,
    "one": one,
    "exp": exp,
    "mean": mean,
    "geomean": geomean,
    "three": three,
    "prefixed": prefixed,
    "parts": parts,
    "found": found,
    "written": written,
}


class Answers:
    """The answers that there are, and which of them a figure has used."""

    def __init__(self, program: Path) -> None:
        self.program = program
        self._found: dict[tuple[str, ...], Answer] = {}
        self._version = ""
        self.used: set[str] = set()

    def of(self, command: Command) -> Answer:
        self.used.add(command.shown)
        if command.key not in self._found:
            raise NotRun(command.shown)
        return self._found[command.key]

    def has(self, command: Command) -> bool:
        return command.key in self._found

    def put(self, command: Command, answer: Answer) -> None:
        self._found[command.key] = answer

    def version(self) -> str:
        """A digest of all that decides what the program says."""
        if not self._version:
            digest = hashlib.sha256()
            folders = [ROOT / name for name in ("python/sardonyx", "traces", "papers")]
            for path in sorted(path for folder in folders for path in folder.rglob("*")):
                if path.is_file() and path.suffix in DECIDE:
                    digest.update(str(path.relative_to(ROOT)).encode())
                    digest.update(hashlib.sha256(path.read_bytes()).digest())
            self._version = digest.hexdigest()
        return self._version

    def kept(self, command: Command, version: str) -> Path:
        key = hashlib.sha256(json.dumps(command.key).encode())
        return KEPT / f"{key.hexdigest()[:16]}-{version[:16]}.json"

    def recall(self, command: Command, stale: bool = False) -> bool:
        """Take the answer that was kept, an older program's too if ``stale``; whether there is
        one.
        """
        paths = [self.kept(command, self.version())]
        if stale:
            pattern = self.kept(command, "*").name
            paths += sorted(KEPT.glob(pattern), key=lambda p: -p.stat().st_mtime)
        for path in paths:
            if path.exists():
                self.put(command, answer_of(json.loads(path.read_text())))
                return True
        return False

    def ask(self, command: Command) -> None:
        """Run the command, in a folder that vanishes, and keep what it says."""
        given = run(command, self.program)
        KEPT.mkdir(parents=True, exist_ok=True)
        path = self.kept(command, self.version())
        partial = path.with_suffix(f".{os.getpid()}")
        partial.write_text(json.dumps(given))
        partial.replace(path)
        self.put(command, answer_of(given))


def nodes(document: Any) -> Any:
    """A document whose objects are nodes."""
    return json.loads(json.dumps(document), object_hook=Node)


def answer_of(given: Mapping[str, Any]) -> Answer:
    times = given["seconds"], given["processor_seconds"]
    return Answer(nodes(given["document"]), given["terminal"], *times)


def run(command: Command, program: Path) -> dict[str, Any]:
    environment = os.environ | {"COLUMNS": str(command.width), "NO_COLOR": "1"}
    environment["PATH"] = f"{program.parent}:{environment['PATH']}"
    with tempfile.TemporaryDirectory(prefix="figures-") as scratch:
        here = Path(scratch)
        for path in ROOT.iterdir():
            if not path.name.startswith(".") and path.name not in ("target", "results"):
                (here / path.name).symlink_to(path)
        for line in command.before:
            done = subprocess.run(
                shlex.split(line), cwd=here, env=environment, capture_output=True, text=True
            )
            if done.returncode:
                raise Wrong(f"{line}: {done.stderr.strip()}")
        words = shlex.split(command.run)
        words += ["--json", "answer.json"]
        if words[1] in LEAVE_RESULTS and "--out" not in words:
            words += ["--out", "answer"]
        begun = time.monotonic()
        with open(here / "said", "w+") as said, open(here / "errors", "w+") as errors:
            process = subprocess.Popen(words, cwd=here, env=environment, stdout=said, stderr=errors)
            _, status, usage = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
        answer = here / "answer.json"
        if process.returncode not in (0, 1) or not answer.exists():
            raise Wrong(f"{command.run}: {(here / 'errors').read_text().strip()}")
        return {
            "command": command.run,
            "document": json.loads(answer.read_text()),
            "terminal": (here / "said").read_text(),
            "seconds": time.monotonic() - begun,
            "processor_seconds": usage.ru_utime + usage.ru_stime,
        }


def given_answer(path: Path) -> Answer:
    """An answer from a command's JSON, or from the folder of its results."""
    if not path.is_dir():
        return Answer(nodes(json.loads(path.read_text())), "", 0, 0)
    results = json.loads((path / "results.json").read_text())
    beside = path / "beside_paper.json"
    if not beside.exists():
        return Answer(nodes(results), "", 0, 0)
    from sardonyx.papers.reproduction import BesidePaper

    saved = BesidePaper.load(path)
    document: dict[str, Any] = {e.key: e.to_document() for e in saved.exhibits}
    document |= {"verdict": list(saved.verdict), "results": results}
    document["claims"] = [row.to_document() for row in saved.claims]
    return Answer(nodes(document), "", 0, 0)


class Values:
    """The values of one page's figures."""

    def __init__(self, page: Page, answers: Answers) -> None:
        self._page = page
        self._answers = answers
        self._names: dict[str, Any] = dict(WORDS)
        self._names |= {name: Asked(command, answers) for name, command in page.commands.items()}
        for left, expression in page.names.items():
            name, _, rest = left.partition("(")
            arguments = rest.removesuffix(")")
            meant = f"lambda {arguments}: {expression}" if rest else expression
            self._names[name] = self._evaluated(meant, {})

    def _evaluated(self, expression: str, names: Mapping[str, Any]) -> Any:
        code = compile(" ".join(expression.split()), expression, "eval")
        return eval(code, self._names | dict(names) if names else self._names)

    def value(self, figure: Figure) -> str:
        """What the figure ought to say; ``NotRun`` if its command was not run."""
        if figure.head:
            command = self._page.commands[figure.command]
            return self._shown(self._answers.of(command).terminal, figure)
        try:
            return written(self._evaluated(figure.slot.expression, figure.names), figure.slot.spec)
        except NotRun:
            raise
        except Exception as error:
            words = f"{figure.slot.expression}: {type(error).__name__}: {error}"
            raise Wrong(f"{self._page.place(figure)}: {words}") from error

    def _shown(self, terminal: str, figure: Figure) -> str:
        if not terminal:
            raise NotRun(f"{figure.command}: only its JSON is given")
        lines = [line.rstrip() for line in terminal.splitlines()]
        begins = [n for n, line in enumerate(lines) if line.startswith(figure.head)]
        if not begins:
            raise Wrong(f"{self._page.place(figure)}: no line begins with: {figure.head}")
        return "\n".join(lines[begins[0] :][: figure.said.count("\n") + 1])
