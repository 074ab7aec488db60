"""Draws a reproduction's sample as a picture: ``python tools/forest.py DIR SVG [KEY=WORDS ..]``.

``DIR`` is what ``sardonyx reproduce PAPER --out DIR`` wrote. Of all claims, or of those whose keys
are given, under these words. A row is a claim: the bar holds the
middle 90 % of cells, the dot their median, the diamond what the paper reports, and on the right is
in how many cells ours has the paper's sign. All claims share one logarithmic axis: 25 % more is
1.25, 80 % less is 5.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping
from html import escape
from pathlib import Path

from sardonyx.papers.reproduction import BesidePaper
from sardonyx.papers.sample import SampledClaim

WIDTH, LEFT, RIGHT, ROW, TOP = 860, 380, 150, 20, 30
TEAL, RED, GREY = "#0f8f8a", "#c8452f", "#777d86"
#: Ratios beyond are drawn at the edge.
MOST = 10.0
#: Words in the names of shares of what was.
SAVED = frozenset({"reduction", "saving", "drop", "loss"})
TICKS = (0.1, 0.2, 0.5, 1, 2, 5, 10)


def ratio(value: float, claim: SampledClaim) -> float:
    """A figure as a ratio: a gain's of what is to what was, a saving's of what was to what is."""
    if claim.unit == "x":
        return value
    if not SAVED & set(claim.title.replace(",", "").split()):
        return 1 + value
    return 1 / (1 - value) if value < 1 else math.inf


def at(value: float) -> float:
    """Where a ratio is drawn."""
    bounded = min(MOST, max(1 / MOST, value))
    return LEFT + (math.log(bounded) / math.log(MOST) + 1) / 2 * (WIDTH - LEFT - RIGHT)


def row(claim: SampledClaim, name: str, y: float) -> list[str]:
    """A claim's row."""
    ends = [ratio(end, claim) for end in (claim.least or 0.0, claim.most or 0.0)]
    dot, diamond = at(ratio(claim.median or 0.0, claim)), at(ratio(claim.paper, claim))
    held = f"{claim.holds:.0%} [{100 * (claim.low or 0):.0f}, {100 * (claim.high or 0):.0f}]"
    return [
        f'<text x="{LEFT - 8}" y="{y + 4}" text-anchor="end">{escape(name)}</text>',
        f'<rect x="{at(ends[0]):.1f}" y="{y - 4}" width="{at(ends[1]) - at(ends[0]):.1f}" '
        f'height="8" rx="3" fill="{TEAL}" opacity="0.35"/>',
        f'<path d="M{diamond:.1f} {y - 6} l6 6 l-6 6 l-6 -6 z" fill="none" stroke="{RED}" '
        'stroke-width="2"/>',
        f'<circle cx="{dot:.1f}" cy="{y}" r="4" fill="{TEAL}"/>',
        f'<text x="{WIDTH - RIGHT + 10}" y="{y + 4}">{held}</text>',
    ]


def drawn(beside: BesidePaper, words: Mapping[str, str] | None = None) -> str:
    """The picture; ``words`` are names of claims by their keys, in the order of the rows."""
    if beside.sample is None:
        raise SystemExit("error: there is no sample; reproduce the paper with --cells")
    known = {claim.key: claim for claim in beside.sample.claims if claim.holds is not None}
    unknown = [key for key in words or () if key not in known]
    if unknown:
        raise SystemExit(f"error: {unknown[0]}: not a claim's key; known: {', '.join(known)}")
    claims = [known[key] for key in words or known]
    height = TOP + ROW * (len(claims) + 2)
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" '
        'font-family="sans-serif" font-size="11">',
        f'<rect width="{WIDTH}" height="{height}" fill="white"/>',
        f'<text x="{WIDTH - RIGHT + 10}" y="{TOP - 12}" fill="{GREY}">as the paper says</text>',
    ]
    bottom = TOP + ROW * len(claims)
    for tick in TICKS:
        x, dash = at(tick), "" if tick == 1 else ' stroke-dasharray="2 4"'
        lines.append(
            f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{TOP - 6}" y2="{bottom}" stroke="{GREY}" '
            f'stroke-width="0.7"{dash}/>'
        )
        label = f'<text x="{x:.1f}" y="{bottom + 14}" text-anchor="middle">{tick:g}×</text>'
        lines.append(label)
    for number, claim in enumerate(claims):
        name = (words or {}).get(claim.key, f"{claim.where}: {claim.design} {claim.title}")
        lines += row(claim, name, TOP + ROW * number + ROW / 2)
    told = (
        f"{beside.sample.cells} cells. Bar: the middle 90 %; dot: the median; diamond: the paper. "
        "25 % more is drawn as 1.25, 80 % less as 5."
    )
    lines.append(f'<text x="8" y="{bottom + 34}" fill="{GREY}">{told}</text>')
    return "\n".join([*lines, "</svg>\n"])


def main() -> None:
    """Draw it."""
    if len(sys.argv) < 3 or not all("=" in each for each in sys.argv[3:]):
        raise SystemExit("usage: python tools/forest.py DIR SVG [KEY=WORDS ..]")
    words = dict(each.split("=", 1) for each in sys.argv[3:])
    Path(sys.argv[2]).write_text(drawn(BesidePaper.load(Path(sys.argv[1])), words))


if __name__ == "__main__":
    main()
