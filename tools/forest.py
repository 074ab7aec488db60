"""Draws a reproduction's sample as a picture: ``python tools/forest.py DIR SVG [KEY=WORDS ..]``.

``DIR`` is what ``sardonyx reproduce PAPER --out DIR`` wrote. Of all claims of its first world, or
of those whose keys are given, under these words. A row is a claim: the bar holds the middle 90 % of
cells, the dot their median, the diamond what the paper reports. On the right is in how many of the
cells that can say ours is as the paper's words say, has its sign, and is within 15 % of its figure,
and in how many pairs of a workload and a cell it is as the words say. All claims share one
logarithmic axis: 25 % more is 1.25, 80 % less is 5.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping
from html import escape
from pathlib import Path

from sardonyx.papers.reproduction import BesidePaper
from sardonyx.papers.sample import SampledClaim

#: The widths of the plot and of the columns behind it, the height of a row and what is above.
PLOT, COLUMNS, ROW, TOP = 330, (130, 75, 75, 140), 20, 30
HEADS = ("as the paper says", "its sign", "within 15 %", "on one workload")
#: The width of a character of a label at the size of the font, at most.
CHARACTER = 6.1
TEAL, RED, GREY = "#0f8f8a", "#c8452f", "#777d86"
#: Ratios beyond are drawn at the edge.
MOST = 10.0
#: Words in the names of shares of what was.
SAVED = frozenset({"reduction", "saving", "drop", "loss"})
TICKS = (0.1, 0.2, 0.5, 1, 2, 5, 10)


def ratio(value: float, claim: SampledClaim) -> float:
    """A figure as a ratio: a gain's of what is to what was, a saving's of what was to what is."""
    if claim.unit not in ("%", "pp"):
        return value
    if not SAVED & set(claim.title.replace(",", "").split()):
        return 1 + value
    return 1 / (1 - value) if value < 1 else math.inf


def at(value: float, left: float) -> float:
    """Where a ratio is drawn, right of the labels."""
    bounded = min(MOST, max(1 / MOST, value))
    return left + (math.log(bounded) / math.log(MOST) + 1) / 2 * PLOT


def columns(left: float) -> list[float]:
    """Where the columns behind the plot begin."""
    return [left + PLOT + 12 + sum(COLUMNS[:number]) for number in range(len(COLUMNS))]


def row(claim: SampledClaim, name: str, y: float, left: float) -> list[str]:
    """A claim's row."""
    ends = [ratio(end, claim) for end in (claim.least or 0.0, claim.most or 0.0)]
    dot, diamond = (at(ratio(each or 0.0, claim), left) for each in (claim.median, claim.paper))
    low, high = (at(end, left) for end in ends)
    return [
        f'<text x="{left - 8:.0f}" y="{y + 4}" text-anchor="end">{escape(name)}</text>',
        f'<rect x="{low:.1f}" y="{y - 4}" width="{high - low:.1f}" '
        f'height="8" rx="3" fill="{TEAL}" opacity="0.35"/>',
        f'<path d="M{diamond:.1f} {y - 6} l6 6 l-6 6 l-6 -6 z" fill="none" stroke="{RED}" '
        'stroke-width="2"/>',
        f'<circle cx="{dot:.1f}" cy="{y}" r="4" fill="{TEAL}"/>',
        *(
            f'<text x="{x}" y="{y + 4}">{held}</text>'
            for x, held in zip(columns(left), counts(claim), strict=True)
        ),
    ]


def counts(claim: SampledClaim) -> list[str]:
    """What is written behind a row, under ``HEADS``."""
    brief = (f"{n.number} of {n.of}" if n else "–" for n in (claim.sign, claim.near))
    held, pairs = (each.written if each else "–" for each in (claim.holds, claim.pairs))
    return [held, *brief, pairs]


def drawn(beside: BesidePaper, words: Mapping[str, str] | None = None) -> str:
    """The picture; ``words`` are names of claims by their keys, in the order of the rows."""
    if beside.sample is None:
        raise SystemExit("error: there is no sample; reproduce the paper with --cells")
    # Worlds have the same claims, and no reader would mix them: the first is drawn.
    world = beside.sample.claims[0].world
    of_world = [claim for claim in beside.sample.claims if claim.world == world]
    known = {claim.key: claim for claim in of_world if claim.holds is not None}
    unknown = [key for key in words or () if key not in known]
    if unknown:
        raise SystemExit(f"error: {unknown[0]}: not a claim's key; known: {', '.join(known)}")
    claims = [known[key] for key in words or known]
    names = [
        (words or {}).get(claim.key, f"{claim.where}: {claim.design} {claim.title}")
        for claim in claims
    ]
    left = 16 + CHARACTER * max(map(len, names))
    width = left + PLOT + 12 + sum(COLUMNS)
    height = TOP + ROW * (len(claims) + 3)
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height}" '
        'font-family="sans-serif" font-size="11">',
        f'<rect width="{width:.0f}" height="{height}" fill="white"/>',
        *(
            f'<text x="{x}" y="{TOP - 12}" fill="{GREY}">{head}</text>'
            for x, head in zip(columns(left), HEADS, strict=True)
        ),
    ]
    bottom = TOP + ROW * len(claims)
    for tick in TICKS:
        x, dash = at(tick, left), "" if tick == 1 else ' stroke-dasharray="2 4"'
        lines.append(
            f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{TOP - 6}" y2="{bottom}" stroke="{GREY}" '
            f'stroke-width="0.7"{dash}/>'
        )
        label = f'<text x="{x:.1f}" y="{bottom + 14}" text-anchor="middle">{tick:g}×</text>'
        lines.append(label)
    for number, (claim, name) in enumerate(zip(claims, names, strict=True)):
        lines += row(claim, name, TOP + ROW * number + ROW / 2, left)
    told = (
        f"{max(claim.cells for claim in claims)} cells, each with all workloads. Bar: the middle "
        "90 %; dot: the median; diamond: the paper. 25 % more is drawn as 1.25, 80 % less as 5.",
        "Counts: of the cells that can say, with 95 % intervals in per cent.",
    )
    for number, line in enumerate(told):
        y = bottom + 34 + 16 * number
        lines.append(f'<text x="8" y="{y}" fill="{GREY}">{line}</text>')
    return "\n".join([*lines, "</svg>\n"])


def main() -> None:
    """Draw it."""
    if len(sys.argv) < 3 or not all("=" in each for each in sys.argv[3:]):
        raise SystemExit("usage: python tools/forest.py DIR SVG [KEY=WORDS ..]")
    words = dict(each.split("=", 1) for each in sys.argv[3:])
    Path(sys.argv[2]).write_text(drawn(BesidePaper.load(Path(sys.argv[1])), words))


if __name__ == "__main__":
    main()
