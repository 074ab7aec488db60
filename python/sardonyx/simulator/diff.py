"""``diff``: what differs between two results, what changed most first."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console, Group
from rich.table import Column, Table
from rich.text import Text

from sardonyx._core import SardonyxError
from sardonyx.answer import Answer
from sardonyx.api.asked import Diff
from sardonyx.draw.grid import folded, grid, numbers
from sardonyx.report.tables import TONES
from sardonyx.runs import origin
from sardonyx.runs.differences import Changed, Differences, Moved, Side, differences, side_of
from sardonyx.runs.measures import plain, written
from sardonyx.runs.metrics import FIGURES
from sardonyx.runs.results import Results
from sardonyx.runs.scheduler import Watch

if TYPE_CHECKING:
    from sardonyx.sweeps.table import Swept

#: The units of figures by the suffix that ``written`` takes.
UNITS = {"ns": "ns", "nJ": "nj", "ratio": "%"}


def answer(asked: Diff, _: Watch | None) -> Answer:
    """What differs between the two."""
    sides = [_side(place) for place in (asked.before, asked.after)]
    if sides[0].heads != sides[1].heads:
        kinds = [", ".join(side.heads) for side in sides]
        raise SardonyxError(
            f"{asked.before} tells its runs apart by {kinds[0]}, {asked.after} by {kinds[1]}; name "
            "two results of one kind, and two sweeps of the same axes"
        )
    found = differences(*sides)
    differ = bool(found.moved or found.only_before or found.only_after)
    document = {"before": str(asked.before), "after": str(asked.after)} | found.to_document()
    return Answer("diff", document, int(asked.exit_code and differ), shown=(found, asked.most))


def _side(place: Path) -> Side:
    """The results at a path, of whatever kind."""
    if place.is_dir() and not (place / "results.json").exists():
        from sardonyx.sweeps.table import is_swept, load

        if is_swept(place):
            return _swept(place, load(place))
    return side_of(
        Results.load(place), str(place), origin.load(place if place.is_dir() else place.parent)
    )


def _swept(place: Path, swept: Swept) -> Side:
    if not swept.rows:
        raise SardonyxError(f"{place}: holds no finished point yet; run the sweep first")
    heads = tuple(dict.fromkeys((swept.subject, *swept.axes)))
    settings: dict[str, object] = {"Sardonyx": ", ".join(swept.versions)}
    first = swept.rows[0]
    settings |= {name: first.get(name) for name in swept.settings if name not in heads}
    figures = {
        tuple(str(row.get(name)) for name in heads): {
            name: float(value)
            for name, value in row.items()
            if name not in swept.settings
            and isinstance(value, int | float)
            and not isinstance(value, bool)
        }
        for row in swept.rows
    }
    return Side(str(place), settings, figures, heads)


def tell(people: Console, answer: Answer) -> None:
    """The answer, then settings and figures that differ."""
    found, most = answer.shown
    people.print(Text(_answer(found), style="bold"), soft_wrap=True)
    if found.settings:
        people.print(_settings(found.settings))
    if found.spreads:
        people.print()
    for spread in found.spreads:
        people.print(Text(spread.text() + ".", TONES[spread.tone]), soft_wrap=True)
    if found.flipped:
        table = _table("conclusion that flips", *filter(None, found.heads), "before", "after")
        for each in found.flipped:
            ratios = (written(value, "x") for value in (each.before, each.after))
            table.add_row(each.measure, *map(Text, each.subject), *ratios)
        people.print(Group(Text(), table))
    if found.moved:
        people.print(Group(Text(), _moved(found, most)))
        if len(found.moved) > most:
            people.print(Text(f"{len(found.moved) - most:,} more; --most shows them.", style="dim"))
    for where, subjects in (("before", found.only_before), ("after", found.only_after)):
        if subjects:
            names = ", ".join(" ".join(filter(None, each)) for each in subjects[:6])
            more = f" and {len(subjects) - 6} more" if len(subjects) > 6 else ""
            people.print(Text(f"only {where}: {names}{more}"), soft_wrap=True)


def _answer(found: Differences) -> str:
    if not found.subjects:
        return "No run is in both results; nothing was compared."
    runs = f"{found.subjects} {'run' if found.subjects == 1 else 'runs'}"
    settings = len(found.settings)
    beside = f"{settings} {'setting differs' if settings == 1 else 'settings differ'}"
    if not found.moved:
        return f"No figure differs in {runs} ({found.compared:,} figures); {beside}."
    first = found.moved[0]
    moved = len({each.subject for each in found.moved})
    return (
        f"{len(found.moved):,} of {found.compared:,} figures differ, in {moved} of {runs}; "
        f"{beside}. "
        f"The largest change: {first.figure} of {' '.join(filter(None, first.subject))}, "
        f"{_value(first.figure, first.before)} to {_value(first.figure, first.after)}"
        f" ({_ratio(first)})."
    )


def _settings(settings: Sequence[Changed]) -> Group:
    table = _table("setting that differs", "before", "after")
    for each in settings:
        table.add_row(each.setting, *(_said(value) for value in (each.before, each.after)))
    return Group(Text(), table)


def _moved(found: Differences, most: int) -> Table:
    # A column that is empty in every row is left out.
    shown = [i for i, _ in enumerate(found.heads) if any(each.subject[i] for each in found.moved)]
    figures = [*numbers("before", "after", "ratio", no_wrap=True), Column("")]
    table = _table("figure", *(found.heads[i] for i in shown), figures=figures)
    marks = {True: Text("better", "green"), False: Text("worse", "red"), None: Text()}
    for each in found.moved[:most]:
        values = (_value(each.figure, value) for value in (each.before, each.after))
        subject = (Text(each.subject[i]) for i in shown)
        table.add_row(each.figure, *subject, *values, _ratio(each), marks[each.better])
    return table


def _table(*heads: str, figures: Sequence[Column] = ()) -> Table:
    return grid(*folded(*heads), *figures, padding=(0, 2, 0, 0), header_style="bold")


def _ratio(moved: Moved) -> str:
    return "from 0" if moved.ratio is None else f"{moved.ratio:.4g}×"


def _value(figure: str, value: float) -> str:
    known = FIGURES.get(figure)
    unit = UNITS.get(known.unit, "") if known else ""
    return written(value, unit) if unit else plain(value)


def _said(value: object) -> Text:
    if value is None:
        return Text("–")
    if isinstance(value, float):
        return Text(plain(value))
    return Text(str(value).lower() if isinstance(value, bool) else str(value))
