"""The figures of the docs against the commands that give them, and the docs written anew.

Each page with figures has a file of ties, ``docs/figures/PAGE.toml``: its commands, and for each
figure the words around it and an expression over a command's JSON. This runs the commands, once
each, and compares. docs/architecture.md says how a figure is tied.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, field
from pathlib import Path

from figures_answers import Answers, NotRun, Values, given_answer
from figures_pages import ROOT, UNBOUND, Command, Figure, Page, Wrong, page_of, read, sidecars


@dataclass(slots=True)
class Outcome:
    """What was found: figures that differ, ties that fail, and how many figures of each kind."""

    differ: list[str] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)


def pages(wanted: Sequence[str]) -> tuple[list[Page], list[str]]:
    """The pages asked for, and what is wrong with their ties."""
    found: list[Page] = []
    wrong: list[str] = []
    paths = {str(page_of(sidecar).relative_to(ROOT)): sidecar for sidecar in sidecars()}
    for name in wanted or paths:
        if name not in paths:
            raise SystemExit(f"figures: {name} has no ties; there are {', '.join(paths)}")
        try:
            found.append(read(paths[name]))
        except Wrong as error:
            wrong.append(str(error))
    return found, wrong


def answer(
    commands: Sequence[Command], answers: Answers, given: argparse.Namespace, wrong: list[str]
) -> None:
    """Ask all commands, or take what was kept; the longest first."""
    todo = [command for command in commands if not answers.has(command)]
    if not given.fresh:
        todo = [command for command in todo if not answers.recall(command, given.stale)]
    todo.sort(key=lambda command: -command.minutes)
    if given.kept:
        return
    with ThreadPoolExecutor(given.jobs) as pool:
        asked = {pool.submit(answers.ask, command): command for command in todo}
        for done, future in enumerate(as_completed(asked), 1):
            try:
                future.result()
            except Wrong as error:
                wrong.append(str(error))
            line = f"figures: {done} of {len(todo)} commands: {asked[future].run}"
            print(line, file=sys.stderr, flush=True)


def compared(page: Page, answers: Answers, outcome: Outcome) -> dict[Figure, str]:
    """The page's figures that differ, each with what it ought to say."""
    values = Values(page, answers)
    anew: dict[Figure, str] = {}
    for figure in page.figures:
        if figure.slot.kind != "bound":
            outcome.counts[figure.slot.kind] += 1
            continue
        answers.used.clear()
        try:
            value = values.value(figure)
        except NotRun:
            outcome.counts["not run"] += 1
            continue
        except Wrong as error:
            outcome.wrong.append(str(error))
            continue
        outcome.counts["compared"] += 1
        if value != figure.said:
            anew[figure] = value
            outcome.differ.append(difference(page, figure, value, sorted(answers.used)))
    return anew


def difference(page: Page, figure: Figure, value: str, commands: Sequence[str]) -> str:
    said = figure.said
    if "\n" in said:  # lines of a terminal: those that differ
        both = zip(said.split("\n"), [*value.split("\n"), *said.split("\n")], strict=False)
        said, value = next((one, other) for one, other in both if one != other)
    by = "; ".join(commands) or "no command"
    return f"{page.place(figure)}: said {said}, found {value}: {by}"


def listed(found: Sequence[Page]) -> None:
    """Each page's commands and how many figures it has, and each figure that is not checked."""
    totals: Counter[str] = Counter()
    for page in found:
        counts = Counter(figure.slot.kind for figure in page.figures)
        totals += counts
        print(f"{page.path.relative_to(ROOT)}: {words(counts)}")
        for command in page.commands.values():
            takes = "quick" if command.quick else f"{command.minutes:g} min"
            print(f"  {takes:>9}  {command.shown}")
        for figure in page.figures:
            if figure.slot.kind != "bound":
                shown = page.commands[figure.command].shown if figure.command else ""
                why = "; ".join(text for text in (figure.why, shown) if text)
                said = figure.said.partition("\n")[0]
                print(f"  {figure.slot.kind:>9}  line {page.line(figure)}: {said}: {why}")
    print(f"figures: {words(totals)}")


def words(counts: Counter[str]) -> str:
    names = {"bound": "bound", "host": "of the host", UNBOUND: "unbound"}
    return ", ".join(f"{counts[kind]} {name}" for kind, name in names.items())


def parsed(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--write", action="store_true", help="put what is found into the pages")
    parser.add_argument("--quick", action="store_true", help="only commands that end in seconds")
    parser.add_argument("--page", action="append", metavar="FILE", help="a page; default: all")
    parser.add_argument(
        "--from",
        dest="given",
        action="append",
        default=[],
        metavar="COMMAND=FILE",
        help="take a command's answer from its JSON or from the folder of its results",
    )
    parser.add_argument(
        "--kept", action="store_true", help="run nothing: only answers that are kept or given"
    )
    parser.add_argument(
        "--stale", action="store_true", help="take what is kept of an older program as well"
    )
    parser.add_argument("--fresh", action="store_true", help="run also what is kept")
    parser.add_argument("--list", action="store_true", help="what is tied, and what is not checked")
    parser.add_argument("--jobs", type=int, default=2, help="commands at once; default 2")
    parser.add_argument(
        "--sardonyx", default=ROOT / ".venv/bin/sardonyx", type=Path, metavar="FILE"
    )
    return parser.parse_args(arguments)


def take_given(given: Sequence[str], commands: Sequence[Command], answers: Answers) -> None:
    """Take answers from files; an error where no page that could be read has the command."""
    for text in given:
        wanted, _, path = text.rpartition("=")
        fitting = [c for c in commands if " ".join(wanted.split()) in (c.run, c.shown)]
        if not fitting:
            raise SystemExit(f"figures: --from {wanted}: no page has this command")
        try:
            for command in fitting:
                answers.put(command, given_answer(Path(path)))
        except (OSError, ValueError) as error:
            raise SystemExit(f"figures: --from {path}: {error}") from error


def main(arguments: Sequence[str] | None = None) -> None:
    given = parsed(arguments)
    found, wrong = pages([path.removeprefix("./") for path in given.page or ()])
    if given.list:
        listed(found)
        for line in wrong:
            print(line)
        raise SystemExit(2 if wrong else 0)
    for line in wrong:
        print(line)
    outcome, unread = Outcome(wrong=wrong), len(wrong)
    answers = Answers(given.sardonyx.absolute())
    unique = {command.key: command for page in found for command in page.needed()}
    take_given(given.given, list(unique.values()), answers)
    todo = [command for command in unique.values() if command.quick or not given.quick]
    answer(todo, answers, given, outcome.wrong)
    for page in found:
        try:
            anew = compared(page, answers, outcome)
        except Wrong as error:
            outcome.wrong.append(str(error))
            continue
        if given.write and anew:
            page.path.write_text(page.replaced(anew))
            outcome.wrong += pages([str(page.path.relative_to(ROOT))])[1]
    for line in [*outcome.differ, *outcome.wrong[unread:]]:
        print(line)
    counts = outcome.counts
    done = "written" if given.write else "differ"
    print(
        f"figures: {len(outcome.differ)} of {counts['compared']} {done}; {counts['not run']} not "
        f"compared, as their commands were not run; {counts['host']} are the host's, "
        f"{counts[UNBOUND]} unbound; {len(outcome.wrong)} errors"
    )
    if outcome.wrong:
        raise SystemExit(2)
    raise SystemExit(bool(outcome.differ) and not given.write)


if __name__ == "__main__":
    main()
