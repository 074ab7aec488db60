"""The HTML of pages: every text is escaped here, and nowhere else.

``content`` has the values that these functions write. A page fetches nothing: a content security
policy in its head sees to it.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import TypeAlias

from sardonyx.draw.figure import Figure, Missing
from sardonyx.report.content import (
    FEW,
    Block,
    Folded,
    Grid,
    Group,
    Row,
    Td,
    Text,
    Th,
    Timeline,
    Verbatim,
    figures_of,
)

Facts: TypeAlias = Iterable[tuple[str, str]]
#: The workloads and the designs of a page, which its reader may choose from.
Names: TypeAlias = Mapping[str, Sequence[str]]
#: Plotly's build with only bars and lines, a quarter of the whole: npm's plotly.js-basic-dist-min,
#: of the version that the Python package has, gzipped.
PLOTLY = "plotly-basic.min.js.gz"
#: A page of more figures than this shows one in each of the first sections, and folds the rest.
FIGURES, SECTIONS = 6, 4
#: The width and the size of type, in points, of a picture for paper.
STILL = (520, 9)
_ESCAPES = str.maketrans(
    {"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&#34;", "'": "&#39;"},
)


def esc(text: object) -> str:
    """Text that is no markup, wherever it stands."""
    return str(text).translate(_ESCAPES)


def plain_page(
    heading: str,
    source: str,
    facts: Facts,
    notes: Sequence[str],
    groups: Sequence[Group],
    names: Names,
) -> str:
    """A page without figures, and without a script where nothing can be chosen."""
    contents = "".join(f'<a href="#{esc(g.key)}">{esc(g.title)}</a>\n' for g in groups)
    scripted = any(len({*each}) > 1 for each in names.values())
    sections = "".join(_section(group, blocks(group.inner)) for group in groups)
    return _page(
        heading,
        heading,
        source,
        facts,
        notes,
        contents=contents,
        sections=sections,
        allowed="script-src 'unsafe-inline'; " if scripted else "",
        scripts=_filter(names) if scripted else "",
    )


def _filter(names: Names) -> str:
    """What lets a reader choose workloads and designs."""
    known = {kind: list(dict.fromkeys(names.get(kind, ()))) for kind in ("workload", "design")}
    return (
        f'<script type="application/json" id="names">{_embedded(known)}</script>\n'
        f"<script>\n{_resource('filter.js')}</script>\n"
    )


def page_of_figures(
    title: str,
    heading: str,
    source: str,
    facts: Facts,
    notes: Sequence[str],
    groups: Sequence[Group],
    absent: Sequence[Missing],
    values: Mapping[str, str],
    names: Names,
) -> str:
    """A page of figures, drawn by Plotly; ``values`` are those of assumed parameters."""
    drawn = {g.key: [f for f in g.figures if isinstance(f, Figure)] for g in groups}
    contents = "".join(
        f'<a href="#{esc(group.key)}">{esc(group.title)}</a>'
        + "".join(
            f'<a class="sub" href="#{esc(f.key)}"><span>{esc(f.title)}</span></a>'
            for f in drawn[group.key]
        )
        for group in groups
    )
    many = sum(map(len, drawn.values())) > FIGURES
    first = [group.key for group in groups if drawn[group.key]][:SECTIONS]
    sections = "".join(
        _section(
            group,
            blocks(group.inner)
            + _figures(drawn[group.key], values, group.key in first if many else len(groups)),
        )
        for group in groups
    )
    if absent:
        listed = "".join(f"<dt>{esc(f.title)}</dt><dd>{esc(f.reason)}</dd>" for f in absent)
        sections += (
            f'<section id="absent"><details><summary>{len(absent)} figures that these results '
            f"cannot fill</summary><dl>{listed}</dl></details></section>\n"
        )
    plots = {
        figure.key: {
            "views": [{"name": v.name, "data": v.data, "layout": v.layout} for v in figure.views]
        }
        for each in drawn.values()
        for figure in each
    }
    return _page(
        title,
        heading,
        source,
        facts,
        notes,
        contents=contents,
        sections=sections,
        allowed="script-src 'unsafe-inline'; img-src data: blob:; ",
        buttons='<button type="button" id="theme" title="Light, dark, or as the system says">'
        "Theme: system</button>\n",
        head="<noscript><style>.plot, .choose, #theme { display: none } .still { display: block }"
        "</style></noscript>\n",
        scripts='<noscript><p class="note">Pictures are still without JavaScript; below each is a '
        "table of all that it shows.</p></noscript>\n"
        f'<script type="application/json" id="plots">{_embedded(plots)}</script>\n'
        f"{_filter(names)}<script>{plotly()}</script>\n"
        f"<script>\n{_resource('report.js')}\n</script>\n",
    )


def _page(
    title: str,
    heading: str,
    source: str,
    facts: Facts,
    notes: Sequence[str],
    *,
    contents: str,
    sections: str,
    allowed: str = "",
    buttons: str = "",
    head: str = "",
    scripts: str = "",
) -> str:
    noted = "".join(f'<p class="note">{esc(note)}</p>\n' for note in notes)
    listed = "".join(f"<div><dt>{esc(n)}</dt><dd>{esc(value)}</dd></div>\n" for n, value in facts)
    return f"""\
<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; {allowed}style-src \
'unsafe-inline'">
<title>{esc(title)}</title>
<style>
{_resource("report.css")}
</style>
{head}</head>
<body>
<a class="skip" href="#main">Skip to the report</a>
<nav aria-label="Contents">
<p class="brand"><i></i>Sardonyx</p>
{contents}</nav>
<main id="main">
<header class="top">
<div class="title">
<h1>{esc(heading)}</h1>
{buttons}</div>
<p class="source">{esc(source)}</p>
{noted}<dl class="facts">
{listed}</dl>
</header>
{sections}</main>
{scripts}</body>
</html>
"""


@cache
def _resource(name: str) -> str:
    return files("sardonyx.report").joinpath(name).read_text(encoding="utf-8")


@cache
def plotly() -> str:
    """Plotly's script, which cannot end the element that holds it."""
    script = gzip.decompress(files("sardonyx.report").joinpath(PLOTLY).read_bytes()).decode()
    return script.replace("</script", "<\\/script")


def _embedded(value: object) -> str:
    """JSON that cannot end the script element that holds it."""
    text = json.dumps(value, allow_nan=False, separators=(",", ":"), ensure_ascii=False)
    return text.replace("<", "\\u003c")


def _section(group: Group, inside: str) -> str:
    return f'<section id="{esc(group.key)}"><h2>{esc(group.title)}</h2>{inside}</section>\n'


def _attribute(name: str, value: str) -> str:
    return f' {name}="{esc(value)}"' if value else ""


def blocks(parts: Iterable[Block]) -> str:
    """Paragraphs, tables and what else stands in a section."""
    return "".join(map(_block, parts))


def _block(part: Block) -> str:
    match part:
        case Text():
            code = f"<code>{esc(part.code)}</code>" if part.code else ""
            return f"<p{_attribute('class', part.kind)}>{esc(part.text)}{code}</p>"
        case Verbatim():
            return f"<pre>{esc(part.text)}</pre>"
        case Folded():
            opened = " open" if part.open else ""
            summary = f"<summary>{esc(part.summary)}</summary>"
            return f"<details{opened}>{summary}{blocks(part.inside)}</details>"
        case Timeline():
            return _timeline(part)
        case Grid():
            return _grid(part)


def _grid(table: Grid) -> str:
    tall = " tall" if table.tall else ""
    return (
        f'<div class="scroll{tall}" tabindex="0" role="group" '
        f'aria-label="{esc(table.name or "table")}"><table{_attribute("data-name", table.name)}'
        f"{_attribute('class', table.kind)}><thead><tr>{''.join(map(_heading, table.heads))}"
        f"</tr></thead><tbody>{''.join(map(_row, table.rows))}</tbody></table></div>"
    )


def _heading(th: Th) -> str:
    sign = f'&nbsp;<span class="sign">{esc(th.sign)}</span>' if th.sign else ""
    attributes = _attribute("class", th.kind) + _attribute("title", th.title)
    return f"<th{attributes}>{esc(th.text)}{sign}</th>"


def _row(row: Row) -> str:
    return f"<tr{_attribute('class', row.kind)}>{''.join(map(_cell, row.cells))}</tr>"


def _cell(td: Td) -> str:
    tag, scope = ("th", ' scope="row"') if td.head else ("td", "")
    number = "" if td.number is None else f' data-v="{esc(td.number)}"'
    number += _attribute("data-u", td.unit)
    number += "" if td.half is None else f' data-half="{esc(td.half)}"'
    swatch = f'<i class="swatch" style="background:{esc(td.swatch)}"></i>' if td.swatch else ""
    small = f"<small>{esc(td.small)}</small>" if td.small else ""
    lines = "".join(f"<li>{esc(line)}</li>" for line in td.listed)
    listed = f"<ul>{lines}</ul>" if td.listed else ""
    text = _named(td.text, td.as_)
    text = f'<a href="{esc(td.to)}">{text}</a>' if td.to else text
    return (
        f"<{tag}{scope}{_attribute('class', td.kind)}{number}>{swatch}{_dagger(td.rests)}"
        f"{text}{esc(td.beside)}{small}{listed}</{tag}>"
    )


def _named(text: str, kind: str) -> str:
    match kind:
        case "code" | "strong":
            return f"<{kind}>{esc(text)}</{kind}>"
        case "missing":
            return f'<span class="missing">{esc(text)}</span>'
        case _:
            return esc(text)


def _dagger(names: Sequence[str]) -> str:
    if not names:
        return ""
    listed = f": {esc(', '.join(names))}" if len(names) <= FEW else ""
    title = f"Rests on {len(names)} assumed parameters{listed}"
    return f'<a class="dagger" href="#assumed" title="{title}">†</a>'


def _figures(figures: Sequence[Figure], values: Mapping[str, str], shown: int) -> str:
    """A section's figures: so many, and a line that unfolds the others."""
    parts = [_drawn(each, values) for each in figures]
    if len(parts) <= shown:
        return "".join(parts)
    names = esc(", ".join(each.title for each in figures[shown:]))
    count = f"{len(parts) - shown}{' more' * bool(shown)} figure{'s' * (len(parts) - shown > 1)}"
    return (
        f'{"".join(parts[:shown])}<details class="more"><summary>{count}: {names}</summary>'
        f"{''.join(parts[shown:])}</details>"
    )


def _drawn(figure: Figure, values: Mapping[str, str]) -> str:
    """A figure with all that a reader needs to judge it."""
    choose = cf = rests = ""
    key, title, count = esc(figure.key), esc(figure.title), len(figure.assumed)
    if figure.cf:
        cf = f'<span class="cf">cf. {esc(figure.cf)}</span>'
    if len(figure.views) > 1:
        options = "".join(
            f'<option value="{index}">{esc(view.name)}</option>'
            for index, view in enumerate(figure.views)
        )
        choose = (
            f'<label class="choose">{esc(figure.choose)} <select data-for="{key}" '
            f'autocomplete="off">{options}</select></label>'
        )
    if figure.assumed:
        named = ", ".join(
            f"<code>{esc(name)}{esc(values.get(name, ''))}</code>" for name in figure.assumed
        )
        rests = (
            f'<details class="rests"><summary>† rests on {count} assumed parameters</summary>'
            f"<p>{named}</p></details>"
            if count > FEW
            else f'<p class="rests">† rests on assumed parameters: {named}</p>'
        )
    height = figure.views[0].layout["height"]
    return (
        f'<article id="{key}" class="figure"><header><h3>{title}{_dagger(figure.assumed)}</h3>{cf}'
        f"{choose}</header><p>{esc(figure.shows)}</p>"
        f'<div class="plot" data-plot="{key}" style="min-height:{esc(height)}px" role="figure" '
        f'aria-label="{title}; its figures are in the table below"></div>'
        f'<div class="still">{figure.svg(0, *STILL)}</div>'
        f'<p class="reading">{esc(figure.reading)}</p>{rests}'
        f"<details><summary>Figures as a table</summary>{_grid(figures_of(figure))}</details>"
        "</article>"
    )


def _timeline(line: Timeline) -> str:
    drawn = "".join(
        f'<line class="guide" x1="{line.left}" x2="{line.width}" y1="{guide.y}" y2="{guide.y}"/>'
        f'<text x="0" y="{guide.y + 4}">{esc(guide.text)}</text>'
        for guide in line.guides
    )
    for mark in line.marks:
        kind, title = esc(mark.kind), f"<title>{esc(mark.title)}</title>"
        if mark.radius:
            drawn += (
                f'<circle class="{kind}" cx="{mark.x}" cy="{mark.y}" r="{mark.radius}">{title}'
                "</circle>"
            )
            continue
        drawn += (
            f'<line class="{kind}" x1="{mark.x}" x2="{mark.x}" y1="{mark.y}" y2="{line.bottom}">'
            f"{title}</line>"
        )
        if mark.here:
            drawn += f'<text x="{mark.x - 4}" y="10">▼</text>'
    return (
        f'<div class="timeline"><svg width="{line.width}" height="{line.height}" role="img">'
        f"{drawn}</svg></div>"
    )
