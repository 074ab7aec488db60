"""A sensitivity for the terminal: what flips and where, and a tornado of each headline figure."""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.text import Text

from sardonyx.papers.claims import Unit, written_claim
from sardonyx.runs.sensitivity import Flip, Headline, Sensitivity

#: The keys of a headline figure that are drawn, and the flips of a kind that are listed; the report
#: and ``--json`` have all.
KEYS, FLIPS = 5, 40
#: A smaller swing is not drawn.
LEAST = 0.005


def sensitivity_table(found: Sensitivity, width: int = 100) -> RenderableType:
    """Which conclusions flip and where, then what moves each headline figure most."""
    varied = [key for key in found.keys if key.tried]
    lines: list[Text] = [Text()]
    if found.note:
        lines.append(Text(found.note, style="dim"))
    lines.append(
        Text(
            f"Sensitivity: {len(varied)} assumed keys at both ends of their ranges, one at a time, "
            f"and {found.draws} draws of all together; {found.runs:,} runs.",
            style="bold",
        )
    )
    for kind in dict.fromkeys(flip.kind for flip in found.flips):
        lines += _flips(found, kind)
    if not found.flips:
        lines.append(Text(f"None of {found.conclusions} conclusions flips under one key alone."))
    drawn = [each for each in found.together if not each.workload or not found.flips]
    for each in sorted(drawn, key=lambda each: -each.flips / each.draws)[:FLIPS]:
        who = f"{each.design} over {each.over}" if each.over else each.design
        place = f", {each.workload}" if each.workload else ""
        lines.append(
            Text(
                f"  all together: {each.title}, {who}{place}: not {each.holds} in {each.flips} of "
                f"{each.draws} draws"
            )
        )
    for headline in found.headlines:
        lines += _tornado(found, headline, width)
    for failure in found.failures[:KEYS]:
        lines.append(Text(f"could not be run: {failure}", style="red"))
    return Group(*lines)


def value(number: float | None, unit: str) -> str:
    """A figure for people."""
    units: dict[str, Unit] = {"x": "x", "%": "%", "pp": "pp"}
    return written_claim(number, units.get(unit, ""))


def where(flip: Flip) -> str:
    """From which value of its key on a conclusion is another one."""
    if flip.until == flip.since or not _number(flip.since):
        return f"{flip.parameter} = {flip.since}"
    side = ">=" if float(flip.since) > float(flip.until) else "<="
    return f"{flip.parameter} {side} {flip.since} (holds at {flip.until})"


def _number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _flips(found: Sensitivity, kind: str) -> list[Text]:
    """The flips of one kind, a conclusion each with its keys."""
    groups = {name: flips for (name, of), flips in found.by_conclusion().items() if of == kind}
    means = {name: flips for name, flips in groups.items() if not flips[0].workload}
    shown = groups if kind == "sign" else means or groups
    lines = [
        Text(
            f"Flips by {kind}: {len(groups)} conclusions, {len(means)} of them about means"
            + ("" if shown is groups else "; those about means"),
            style="bold",
        )
    ]
    for flips in list(shown.values())[:FLIPS]:
        first = flips[0]
        who = f"{first.design} over {first.over}" if first.over else first.design
        what = ", ".join(each for each in (first.title, who, first.workload or "mean") if each)
        lines.append(Text(f"  {what}: {value(first.value, first.unit)}, {first.holds}"))
        for flip in flips:
            at = f"{value(flip.at_value, flip.unit)} at {flip.at}"
            lines.append(Text(f"    {flip.becomes} with {where(flip)}; {at}", style="dim"))
    if len(shown) > FLIPS:
        lines.append(Text(f"  and {len(shown) - FLIPS} more; the report has all", style="dim"))
    return lines


def _tornado(found: Sensitivity, headline: Headline, width: int) -> list[Text]:
    """The keys that move a figure most, as bars around its value."""
    rows = found.rows(headline)
    base = headline.value
    if base is None or not rows:
        return []
    rows = [row for row in rows if row[2] - row[1] >= LEAST * abs(base)][:KEYS]
    who = f"{headline.design} over {headline.over}" if headline.over else headline.design
    together = ""
    if headline.low is not None and headline.high is not None:
        least_of_all, most_of_all = (
            value(each, headline.unit) for each in (headline.low, headline.high)
        )
        together = f"; all together {least_of_all} to {most_of_all}"
    title = f"{headline.title}, {who}: {value(base, headline.unit)}{together}"
    if not rows:
        return [Text(title + f"; no key moves it by {LEAST:.1%}")]
    lines = [Text(title, style="bold")]
    least, most = min(row[1] for row in rows), max(row[2] for row in rows)
    name_width = max(len(row[0].parameter) for row in rows)
    size = max(10, min(40, width - name_width - 24))
    scale = (size - 1) / ((most - least) or 1)
    middle = round((base - least) * scale)
    for key, low, high in rows:
        a, b = round((low - least) * scale), round((high - least) * scale)
        bar = "".join("|" if at == middle else "█" if a <= at <= b else " " for at in range(size))
        ends = f"{value(low, headline.unit)} to {value(high, headline.unit)}"
        lines.append(Text(f"  {key.parameter:<{name_width}} {bar} {ends}"))
    return lines
