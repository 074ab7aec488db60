"""How ``crash`` shows what came of its runs. Left out: what is asked."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rich.console import Console
from rich.table import Column, Table
from rich.text import Text

from sardonyx.crashes.attacks import not_promised, show_attacks
from sardonyx.crashes.proofs import tell
from sardonyx.draw.grid import grid, numbers

#: The counts in the table's columns.
LEGEND = "nested: cuts after a recovery; lost, secrets: cuts at which data or a secret were lost"
#: This many runs have columns of their own in 80 columns of text.
SIDE_BY_SIDE = 4
#: The explorer's name for a run outside of a plan.
ONCE = "crash once"
#: Planted faults that say nothing of a plan, and why.
NOT_COUNTED = {
    "equivalent": "nothing comes out otherwise with it",
    "no_occasion": "never had an occasion",
}
VERDICTS = {"holds": "green", "caught": "yellow", "broken": "red", "not exercised": "red"}


def show(
    people: Console,
    runs: list[dict[str, Any]],
    again: Callable[[dict[str, Any], dict[str, Any]], str],
) -> None:
    """The verdicts, what they rest on, and each violation with the command that makes it again."""
    people.print(_verdicts(runs))
    seconds = sum(run["seconds"] for run in runs)
    speed = sum(run["cuts"] + run["recovery_cuts"] for run in runs) / max(seconds, 1e-9)
    people.print(Text(f"{LEGEND}; {speed:,.0f} cuts/s", style="dim"))
    people.print()
    show_attacks(people, runs)
    for run in runs:
        people.print(Text(_reached(run)), soft_wrap=True)
    people.print()
    people.print(_exercised(runs) if len(runs) <= SIDE_BY_SIDE else _folded(runs))
    for line in _beside(runs):
        people.print(Text(line, style="dim"), soft_wrap=True)
    for run in runs:
        for lack in _lacking(run):
            people.print(Text(lack, style="red"), soft_wrap=True)
    for run in runs:
        if further := _further(run):
            people.print(Text(further, style="dim"), soft_wrap=True)
        for words in _self_tested(run):
            people.print(words, soft_wrap=True)
    for run in runs:
        for violation in run["violations"]:
            tell(people, violation, again(run, violation))
        for lost in not_promised(run):
            tell(people, lost, again(run, lost))


def _reached(run: dict[str, Any]) -> str:
    """How far the runs have come, in one line: the verdict says nothing beyond that."""
    amounts = [f"{run['cuts']:,} cuts"]
    amounts += [f"{name} {count:,}" for name, count in run["reached"].items() if count]
    verdict = f"{_verdict(run)}{_beyond(run)}"
    return f"{run['program']}, {run['design']}: {verdict} at {', '.join(amounts)}"


def _verdict(run: dict[str, Any]) -> str:
    """The verdict, and the parts of its base that an option has removed."""
    if run["verdict"] != "holds":
        return str(run["verdict"])
    limits = (
        "without attacks" if what == "no attacks" else f"for {what} only"
        for what in run.get("narrowed", ())
    )
    return ", ".join([run["verdict"], *limits])


def _beyond(run: dict[str, Any]) -> str:
    """Attacks that came through and that no scheme promises to notice, and what was not judged."""
    rows = (run.get("attacks") or {"rows": ()})["rows"]
    beyond = [row for row in rows if not row["promised"]]
    undetected = sum(row["undetected"] for row in beyond)
    if run["verdict"] != "holds":
        return ""
    limits = ""
    if undetected:
        tried = sum(row["tried"] for row in beyond)
        limits = f"; of attacks it promises nothing against: {undetected:,} of {tried:,} undetected"
    if narrow := run.get("widths_not_judged"):
        limits += f"; widths not judged (fewer than 128 changes of a word): {', '.join(narrow)}"
    return limits


def _lacking(run: dict[str, Any]) -> list[str]:
    """What a verdict should rest on and does not, each with the reason, a line each."""
    if run["verdict"] != "not exercised":
        return []
    by: dict[str, list[str]] = {}
    reached: dict[str, list[str]] = {}
    for lack in run["lacks"]:
        kept = " and ".join(lack["kept_by"])
        reached.setdefault(kept, []).extend(lack["reached_by"])
        by.setdefault(kept, []).append(f"{lack['what']} {lack['had']:,} of {lack['least']:,}")
    return [
        f"{run['program']}, {run['design']}: no violation, but too little was tried: "
        f"{', '.join(each)}; " + _remedy(kept, reached[kept])
        for kept, each in by.items()
    ]


def _further(run: dict[str, Any]) -> str:
    """What followed a plan that lacked something."""
    further = run.get("further") or {"rounds": 0}
    if not (rounds := further["rounds"]):
        return ""
    how = f"went on for {rounds} {'round' if rounds == 1 else 'rounds'}"
    for word in ("without", "with"):
        if options := further[word]:
            how += f" {word} {' '.join(options)}"
    return f"{run['program']}, {run['design']}: {how}, under {', '.join(further['programs'])}"


def _self_tested(run: dict[str, Any]) -> list[Text]:
    """How many of the faults that were planted the plan finds, and those that it does not."""
    if not (tested := run.get("self_test")):
        return []
    whose = f"{run['program']}, {run['design']}: "
    if tested["itself"]:
        why = f"no fault was planted into it: without one it shows {tested['itself']}"
        return [Text(whose + why, style="red")]
    missed, caught = tested["missed"], tested["found"]
    found = f"its plan finds {caught} of {tested['planted']} faults planted into it"
    lines = [Text(whose + found, style="yellow" if missed or not caught else "green")]
    lines += [Text(f"  missed: {one['fault']}: {one['meaning']}", style="yellow") for one in missed]
    for name, why in NOT_COUNTED.items():
        if tested[name]:
            names = ", ".join(one["fault"] for one in tested[name])
            lines.append(Text(f"  not counted, {why}: {names}", style="dim"))
    return lines


def _remedy(kept: str, reached: list[str]) -> str:
    """The options that bring a plan to what it lacks."""
    if kept:
        give = "give sardonyx crash run" if kept == ONCE else "leave it out"
        return f"{kept} prevents more: {give}"
    options = " ".join(dict.fromkeys(reached))
    options = f"{options}, " if options else ""
    return f"the plan could not reach it: give {options}--until-exercised, or another --seed"


def _beside(runs: list[dict[str, Any]]) -> list[str]:
    """Notes next to the verdicts of a plan, a line a design: limits not reached, digests."""
    designs = {run["design"]: run for run in runs}
    lines = []
    for design, run in designs.items():
        never = [f"{name} ({why})" for name, why in run.get("not_reached", ())]
        if never:
            lines.append(f"{design}: no run comes to {'; '.join(never)}")
        if run.get("shows"):
            regions = ", ".join(run["shows"])
            lines.append(f"{design}: shows digests of contents under no key, in {regions}")
    return lines


def _verdicts(runs: list[dict[str, Any]]) -> Table:
    first = runs[0]
    planted = f", mutant {first['mutant']}" if first["mutant"] else ""
    runs_made = sum(run["reached"]["runs"] for run in runs)
    passes = f", {runs_made:,} runs" if "passes" in first else ""
    table = grid(
        *(Column(name, no_wrap=True) for name in ("program", "design")),
        *numbers("cuts", "nested", "lost", "secrets", no_wrap=True),
        Column("", no_wrap=True),
        title=f"{first['platform']}, seed {first['seed']}{passes}{planted}",
        header_style="dim",
    )
    for run in runs:
        table.add_row(
            Text(run["program"]),
            Text(run["design"]),
            f"{run['cuts']:,}",
            f"{run['recovery_cuts']:,}",
            f"{run['lost_cuts']:,}",
            f"{run['secret_cuts']:,}",
            Text(_verdict(run), style=VERDICTS[run["verdict"]]),
        )
    return table


def _exercised(runs: list[dict[str, Any]]) -> Table:
    """The base of the verdicts: a row a mechanism; a dash if the design does not have it."""
    several = len({run["program"] for run in runs}) > 1
    names = (f"{run['program']}\n{run['design']}" if several else run["design"] for run in runs)
    heads = (Column(Text(name), justify="right") for name in names)
    table = grid("mechanism", *heads, title="what was exercised", header_style="dim")
    for mechanism in runs[0]["exercised"]:
        counts = [run["exercised"][mechanism] for run in runs]
        needed = [mechanism in run["required"] for run in runs]
        short = [mechanism in run["not_exercised"] for run in runs]
        if not any(counts) and not any(needed):
            continue
        cells = [
            Text(f"{count:,}", style="red" if few else "")
            if count or need
            else Text("-", style="dim")
            for count, need, few in zip(counts, needed, short, strict=True)
        ]
        table.add_row(Text(mechanism), *cells)
    return table


def _folded(runs: list[dict[str, Any]]) -> Table:
    """The base of many verdicts: least and most of each mechanism, of designs that need it."""
    table = grid(
        "mechanism",
        *numbers("pairs", "least"),
        "in",
        *numbers("most"),
        title=f"what was exercised, in {len(runs)} pairs of program and design",
        header_style="dim",
    )
    for mechanism in runs[0]["exercised"]:
        own = [run for run in runs if mechanism in run["required"]]
        own = own or [run for run in runs if run["exercised"][mechanism]]
        if not own:
            continue
        least = min(own, key=lambda run: run["exercised"][mechanism])
        few = any(mechanism in run["not_exercised"] for run in own)
        table.add_row(
            Text(mechanism),
            str(len(own)),
            Text(f"{least['exercised'][mechanism]:,}", style="red" if few else ""),
            Text(f"{least['program']} {least['design']}"),
            f"{max(run['exercised'][mechanism] for run in own):,}",
        )
    return table


def show_stages(people: Console, runs: list[dict[str, Any]]) -> None:
    """The cuts by the stage of the transaction."""
    for run in runs:
        title = f"{run['program']}, {run['design']}, {run['platform']}, by stage"
        columns = [key for key in run["stages"][0] if key != "stage"]
        heads = numbers(*(column.replace("_", " ") for column in columns))
        table = grid("stage", *heads, title=title, header_style="dim")
        for row in run["stages"]:
            table.add_row(row["stage"], *(f"{row[column]:,}" for column in columns))
        people.print(table)
