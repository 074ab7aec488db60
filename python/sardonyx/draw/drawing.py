"""A drawing of lines and words, as SVG and as PDF with its font in it.

Lengths are points (1/72 inch), y grows downwards. The font is DejaVu Sans Condensed in code page
1252, which PDF calls WinAnsiEncoding. The same drawing makes the same bytes. Left out: compression.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from html import escape
from importlib.resources import files
from typing import Literal, TypeAlias

Point: TypeAlias = tuple[float, float]
Anchor: TypeAlias = Literal["start", "middle", "end"]
FONT = "dejavu-condensed.ttf"
#: What code page 1252 lacks.
_SPELLED = str.maketrans({"≥": ">=", "≤": "<=", "→": "->", "\u2011": "-", "\u2212": "-", "μ": "µ"})


@dataclass(frozen=True, slots=True)
class Stroke:
    """A line through points, or an area of them."""

    points: Sequence[Point]
    stroke: str = ""
    width: float = 1.0
    fill: str = ""
    dash: bool = False
    opacity: float = 1.0


@dataclass(frozen=True, slots=True)
class Words:
    """A line of text at a point of its baseline, turned by ``turn`` degrees against the clock."""

    at: Point
    text: str
    size: float
    anchor: Anchor = "start"
    turn: float = 0.0
    colour: str = "#222222"


@dataclass(slots=True)
class Drawing:
    """Marks on a sheet, the later ones on top."""

    width: float
    height: float
    title: str = ""
    marks: list[Stroke | Words] = field(default_factory=list)

    def svg(self) -> str:
        """It as an SVG of its size."""
        w, h = _number(self.width), _number(self.height)
        inside = "".join(map(_svg, self.marks))
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{w}pt" height="{h}pt" '
            f'viewBox="0 0 {w} {h}" role="img" aria-label="{escape(self.title)}" '
            "font-family=\"'DejaVu Sans Condensed', 'Arial Narrow', Arial, sans-serif\">"
            f"<title>{escape(self.title)}</title>{inside}</svg>\n"
        )

    def pdf(self) -> bytes:
        """It as a PDF of one page, with the font in it."""
        opacities = sorted({m.opacity for m in self.marks if isinstance(m, Stroke)})
        states = " ".join(f"/O{at} << /ca {each:g} /CA {each:g} >>" for at, each in
                          enumerate(opacities))  # fmt: skip
        page = "".join(_pdf(each, self.height, opacities) for each in self.marks).encode("cp1252")
        font = _font()
        name = "AAAAAA+DejaVuSansCondensed"
        box = " ".join(str(font.scaled(each)) for each in font.box)
        size = f"{_number(self.width)} {_number(self.height)}"
        objects = [
            b"<< /Type /Catalog /Pages 2 0 R >>",
            b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
            f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 {size}] /Contents 4 0 R /Resources << "
            f"/Font << /F 5 0 R >> /ExtGState << {states} >> >> >>".encode(),
            _stream(page, ""),
            f"<< /Type /Font /Subtype /TrueType /BaseFont /{name} /Encoding /WinAnsiEncoding "
            f"/FirstChar 32 /LastChar 255 /Widths [{' '.join(map(str, font.widths))}] "
            "/FontDescriptor 6 0 R >>".encode(),
            f"<< /Type /FontDescriptor /FontName /{name} /Flags 32 /FontBBox [{box}] /ItalicAngle 0"
            f" /Ascent {font.scaled(font.ascent)} /Descent {font.scaled(font.descent)} /CapHeight "
            "729 /StemV 80 /FontFile2 7 0 R >>".encode(),
            _stream(font.file, f" /Length1 {len(font.file)}"),
        ]
        out, places = b"%PDF-1.4\n%\xe2\xe3\xcf\xd3\n", []
        for number, each in enumerate(objects, 1):
            places.append(len(out))
            out += f"{number} 0 obj\n".encode() + each + b"\nendobj\n"
        table = "".join(f"{place:010} 00000 n \n" for place in places)
        count = len(objects) + 1
        head = f"xref\n0 {count}\n0000000000 65535 f \n{table}"
        end = f"trailer\n<< /Size {count} /Root 1 0 R >>\nstartxref\n{len(out)}\n%%EOF\n"
        return out + (head + end).encode()


def width_of(text: str, size: float) -> float:
    """How wide a text is."""
    widths = _font().widths
    return sum(widths[each - 32] for each in _encoded(text) if each >= 32) * size / 1000


def _encoded(text: str) -> bytes:
    return text.translate(_SPELLED).encode("cp1252", "replace")


def _number(value: float) -> str:
    return f"{value + 0.0:.2f}".rstrip("0").rstrip(".")


def _svg(mark: Stroke | Words) -> str:
    if isinstance(mark, Words):
        x, y = map(_number, mark.at)
        turned = f' transform="rotate({_number(-mark.turn)} {x} {y})"' if mark.turn else ""
        return (
            f'<text x="{x}" y="{y}" font-size="{_number(mark.size)}" text-anchor="{mark.anchor}" '
            f'fill="{escape(mark.colour)}"{turned}>{escape(mark.text)}</text>'
        )
    way = "M" + "L".join(f"{_number(x)} {_number(y)}" for x, y in mark.points)
    dash = f' stroke-dasharray="{_number(2 * mark.width)}"' if mark.dash else ""
    opacity = f' opacity="{mark.opacity:g}"' if mark.opacity < 1 else ""
    stroke = f' stroke="{escape(mark.stroke)}" stroke-width="{_number(mark.width)}"{dash}'
    return (
        f'<path d="{way}{"Z" if mark.fill else ""}" fill="{escape(mark.fill) or "none"}"'
        f"{stroke if mark.stroke else ''}{opacity}/>"
    )


def _pdf(mark: Stroke | Words, height: float, opacities: Sequence[float]) -> str:
    if isinstance(mark, Words):
        text = _encoded(mark.text).decode("cp1252")
        for sign in "\\()":
            text = text.replace(sign, f"\\{sign}")
        room = width_of(mark.text, mark.size)
        back = {"start": 0.0, "middle": room / 2, "end": room}[mark.anchor]
        cos, sin = (f(math.radians(mark.turn)) for f in (math.cos, math.sin))
        x, y = mark.at[0] - back * cos, height - mark.at[1] - back * sin
        matrix = " ".join(f"{each:.4f}" for each in (cos, sin, -sin, cos, x, y))
        return f"{_colour(mark.colour)} rg BT /F {mark.size:g} Tf {matrix} Tm ({text}) Tj ET\n"
    way = " l ".join(f"{_number(x)} {_number(height - y)}" for x, y in mark.points)
    way = way.replace(" l ", " m ", 1) + " l" if len(mark.points) > 1 else way + " m"
    paint = {(True, True): "b", (True, False): "f", (False, True): "S", (False, False): "n"}
    dash = f"[{2 * mark.width:g}] 0 d" if mark.dash else "[] 0 d"
    return (
        f"/O{opacities.index(mark.opacity)} gs "
        + (f"{_colour(mark.fill)} rg " if mark.fill else "")
        + (f"{_colour(mark.stroke)} RG {mark.width:g} w {dash} 1 j " if mark.stroke else "")
        + f"{way} {paint[bool(mark.fill), bool(mark.stroke)]}\n"
    )


def _colour(name: str) -> str:
    return " ".join(f"{int(name[at : at + 2], 16) / 255:.3f}" for at in (1, 3, 5))


def _stream(data: bytes, more: str) -> bytes:
    return f"<< /Length {len(data)}{more} >>\nstream\n".encode() + data + b"\nendstream"


@dataclass(frozen=True, slots=True)
class _Font:
    """What a TrueType file says: widths of the codes 32 to 255 in thousandths of the size."""

    file: bytes
    unit: int
    box: tuple[int, ...]
    ascent: int
    descent: int
    widths: tuple[int, ...]

    def scaled(self, value: int) -> int:
        return round(value * 1000 / self.unit)


@cache
def _font() -> _Font:
    """The font, read as OpenType has it: tables head, hhea, hmtx and cmap (format 4)."""
    file = files("sardonyx.draw").joinpath(FONT).read_bytes()
    count = struct.unpack_from(">H", file, 4)[0]
    tables = {
        file[at : at + 4]: struct.unpack_from(">I", file, at + 8)[0]
        for at in range(12, 12 + 16 * count, 16)
    }
    head, hhea, hmtx, cmap = (tables[name] for name in (b"head", b"hhea", b"hmtx", b"cmap"))
    unit = struct.unpack_from(">H", file, head + 18)[0]
    box = struct.unpack_from(">4h", file, head + 36)
    ascent, descent = struct.unpack_from(">2h", file, hhea + 4)
    metrics = struct.unpack_from(">H", file, hhea + 34)[0]
    sub = cmap + struct.unpack_from(">I", file, cmap + 8)[0]
    half = struct.unpack_from(">H", file, sub + 6)[0]
    ends, starts, deltas, offsets = (
        struct.unpack_from(f">{half // 2}H", file, sub + 14 + at)
        for at in (0, half + 2, 2 * half + 2, 3 * half + 2)
    )

    def glyph(code: int) -> int:
        at = next(index for index, end in enumerate(ends) if end >= code)
        if starts[at] > code:
            return 0
        if not offsets[at]:
            return int(code + deltas[at]) & 0xFFFF
        place = sub + 16 + 3 * half + 2 * at + offsets[at] + 2 * (code - starts[at])
        found = int(struct.unpack_from(">H", file, place)[0])
        return found + int(deltas[at]) & 0xFFFF if found else 0

    def width(code: int) -> int:
        letter = bytes([code]).decode("cp1252", "replace")
        at = min(glyph(ord(letter)), metrics - 1)
        return round(int(struct.unpack_from(">H", file, hmtx + 4 * at)[0]) * 1000 / int(unit))

    return _Font(file, unit, box, ascent, descent, tuple(map(width, range(32, 256))))
