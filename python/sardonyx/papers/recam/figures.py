"""The figures of deduplicating stores: counterparts of ReCAM Figs. 9 and 10, and beyond them."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from sardonyx.draw.figure import (
    LINE_COLOURS,
    Cell,
    Figure,
    Head,
    Missing,
    Table,
    View,
    at_one,
    bars,
    layout,
    scatter,
)
from sardonyx.papers import recam
from sardonyx.papers.recam import (
    FINGERPRINT,
    NOMINAL,
    READS,
    TIMES_OVER,
    Stores,
    energy,
    metric,
)
from sardonyx.runs.comparison import Comparison
from sardonyx.runs.measures import assumed_by, divide
from sardonyx.runs.results import Run
from sardonyx.runs.stores import KB, designs

COLOURS = dict(zip(recam.DESIGNS, LINE_COLOURS, strict=False))
#: The place in a bracket that is read, and its name in a figure.
PLACES = {"": "middle", "low": "lower end", "high": "upper end"}


TITLE = "Deduplicating stores"


def figures(comparison: Comparison) -> list[Figure | Missing]:
    """Every figure, the paper's first; none but of stores."""
    results = comparison.results
    if not results.runs or any(run.design not in designs() for run in results.runs):
        return []
    stores = Stores(results)
    return [
        throughput(stores),
        energies(stores),
        compares(stores),
        reads(stores),
        cost_of_deduplication(stores),
        variants(stores),
        encrypted(stores),
        wear(stores),
    ]


def _size(block: int) -> str:
    return f"{block // KB} KB" if block >= KB else f"{block} B"


def _assumed(stores: Stores, *, energy: bool) -> list[str]:
    return assumed_by(stores.results.runs, "energy" if energy else "time")


def _lines(
    stores: Stores, of: Callable[[Run | None], float | None], hover: str
) -> list[dict[str, Any]]:
    x = [f"{share:.0%}" for share in stores.shares]
    return [
        scatter(
            "lines+markers",
            f"{design} {_size(block)}",
            x,
            [of(stores.run(design, block, share)) for share in stores.shares],
            f"<b>{design} {_size(block)}</b>, %{{x}} duplicates<br>{hover}",
            line={
                "color": LINE_COLOURS[index],
                "dash": "solid" if design == recam.RECAM.name else "dash",
                "width": 2.4,
            },
            marker={"size": 8},
        )
        for design in recam.DESIGNS
        for index, block in enumerate(stores.blocks)
    ]


def _grid(stores: Stores, of: Callable[[Run | None], float | None], unit: str = "") -> Table:
    columns = [("store and block", "")] + [(f"{s:.0%} duplicates", unit) for s in stores.shares]
    rows: list[list[Cell]] = [
        [f"{design} {_size(block)}", *(of(stores.run(design, block, s)) for s in stores.shares)]
        for design in recam.DESIGNS
        for block in stores.blocks
    ]
    return Table(tuple(columns), rows)


def _along(stores: Stores, title: str, **yaxis: Any) -> dict[str, Any]:
    shape = layout(title, yaxis={"type": "log", "rangemode": "normal", **yaxis})
    shape["xaxis"] = {
        "type": "category",
        "title": {"text": "share of writes that are duplicates"},
        "automargin": True,
    }
    return shape


def throughput(stores: Stores) -> Figure | Missing:
    head = Head("store-throughput", "Writes a second", "ReCAM Fig. 9")
    if not stores.shares:
        return head.missing("There is no run without variants.")

    def of(run: Run | None) -> float | None:
        return metric(run, "writes_per_second")

    shape = _along(stores, "writes a second")
    return head.figure(
        "Writes a second against the share of duplicates, by size of block.",
        "Solid lines are the resistive CAM by its cycles, dashed ones the conventional store by "
        "its costs. A duplicate costs the CAM half of a unique block's cycles.",
        [View("", _lines(stores, of, "%{y:,.0f} writes/s"), shape)],
        _grid(stores, of),
        _assumed(stores, energy=False),
    )


def energies(stores: Stores) -> Figure | Missing:
    head = Head("store-energy", "Energy of writing 50 GB", "ReCAM Fig. 10")
    if not stores.shares:
        return head.missing("There is no run without variants.")
    shape = _along(stores, "joules")
    views = [
        View(words, _lines(stores, lambda run, end=end: energy(run, end), "%{y:,.4g} J"), shape)  # type: ignore[misc]
        for end, words in PLACES.items()
    ]
    return head.figure(
        "Energy of writing 50 GB against the share of duplicates, with the brackets read at their "
        "middle or at one end.",
        "The order of the two stores rests on the brackets; that the CAM gains on its rival with "
        "the size of a block does not: a search costs about the same whatever its block.",
        views,
        _grid(stores, energy),
        _assumed(stores, energy=True),
        "Brackets at",
    )


_bars = partial(bars, paper="recam")


def compares(stores: Stores) -> Figure | Missing:
    def single(block: int) -> float | None:
        plain = stores.run("recam", block)
        every = stores.run("recam", block, variant={recam.COMPARE: "single"})
        return divide(energy(every), energy(plain))

    def starts(block: int) -> float | None:
        plain = stores.run("recam", block, variant={recam.FIRST: "starts"})
        every = stores.run("recam", block, variant={recam.COMPARE: "single"})
        return divide(energy(every), energy(plain))

    return _bars(
        Head("store-compare", "Single against continuous compare", "ReCAM Sec. IV"),
        "Energy without deactivating rows over that of continuous compare, 30 % duplicates.",
        "Every compare of a search costs what the first one does, so the ratio is about the "
        "number of rows of a block. It hardly rests on the energy of a bit. With block starts "
        "alone active in the first compare, continuous compare saves far more.",
        "energy of single / of continuous",
        [_size(block) for block in stores.blocks],
        {
            "every row in the first compare": [single(block) for block in stores.blocks],
            "block starts alone": [starts(block) for block in stores.blocks],
        },
        "x",
        _assumed(stores, energy=True),
        yaxis={"type": "log", "rangemode": "normal"},
    )


def reads(stores: Stores) -> Figure | Missing:
    more, block = f"{READS:.0%} reads", 8 * KB
    runs = {
        "recam": stores.run("recam", block, more=more),
        "recam, 8 modules": stores.run("recam", block, more=more, variant={recam.MODULES: 8}),
        "conventional": stores.run("conventional", block, more=more),
    }
    return _bars(
        Head("store-reads", "70 % reads", "ReCAM Sec. IV"),
        "Operations a second, 70 % of them reads, blocks of 8 KB. The paper names 150,000 for an "
        "all-flash appliance.",
        "A read searches one address field and takes as many cycles as a block has rows. Modules "
        "read at once, while a write's search takes all of them.",
        "operations a second",
        list(runs),
        {"operations a second": [metric(run, "operations_per_second") for run in runs.values()]},
        assumed=_assumed(stores, energy=False),
        yaxis={"type": "log", "rangemode": "normal"},
    )


def cost_of_deduplication(stores: Stores) -> Figure | Missing:
    off = {recam.DEDUPLICATE: False}
    pairs = [
        (stores.run("conventional", b), stores.run("conventional", b, variant=off))
        for b in stores.blocks
    ]
    return _bars(
        Head("store-off", "What deduplication costs the rival", "ReCAM Sec. IV"),
        "Writes a second of the conventional store with deduplication and without, 30 % "
        "duplicates.",
        "By the costs of what it does.",
        "writes a second",
        [_size(block) for block in stores.blocks],
        {
            "with deduplication": [metric(on, "writes_per_second") for on, _ in pairs],
            "without": [metric(without, "writes_per_second") for _, without in pairs],
        },
    )


def variants(stores: Stores) -> Figure | Missing:
    block = 8 * KB
    plain = stores.run("recam", block)
    named: dict[str, tuple[str, Any]] = {
        f"{FINGERPRINT}-bit fingerprint row": (recam.PRINT, FINGERPRINT),
        "compare for an empty row": (recam.FREE_ROW, True),
        "one cycle an address": (recam.ADDRESS, 1),
        **{f"{bits}-bit rows": (recam.WIDTH, bits) for bits in (128, 512, 1024)},
    }
    runs = {
        words: stores.run("recam", block, variant={key: value})
        for words, (key, value) in named.items()
    }

    def speed(run: Run | None) -> float | None:
        return divide(metric(run, "writes_per_second"), metric(plain, "writes_per_second"))

    return _bars(
        Head("store-variants", "Other arrays", "beyond ReCAM"),
        "Writes a second and energy of other arrays, relative to rows of 256 bits; blocks of "
        "8 KB, 30 % duplicates.",
        "A row with 40 bits of a hash before each block makes the first compare narrow, the one "
        "for which every row is active, at the price of a row and a cycle. Wide rows are fewer, "
        "so a search has fewer match lines and as many bits.",
        "relative to 256-bit rows",
        list(runs),
        {
            "writes a second": [speed(run) for run in runs.values()],
            "energy": [divide(energy(run), energy(plain)) for run in runs.values()],
        },
        "x",
        _assumed(stores, energy=True),
        shapes=[at_one()],
    )


def encrypted(stores: Stores) -> Figure | Missing:
    def found(design: str, more: str) -> float | None:
        run = stores.run(design, 8 * KB, more=more)
        return divide(metric(run, "duplicate_writes"), metric(run, "writes"))

    return _bars(
        Head("store-encrypted", "Encryption before deduplication", "beyond ReCAM"),
        f"Duplicates found in a stream of which {NOMINAL:.0%} are, plain and encrypted by its "
        "sender in counter mode.",
        "A pad is used once, so equal blocks differ once they are encrypted, and nothing below "
        "finds them. Who wants both encrypts below the deduplication, or derives keys from the "
        "content and tells who stores the same.",
        "share of writes found to be duplicates",
        ["plain", "encrypted"],
        {design: [found(design, ""), found(design, "encrypted")] for design in recam.DESIGNS},
        "%",
        yaxis={"tickformat": ".0%"},
    )


def wear(stores: Stores) -> Figure | Missing:
    block = 8 * KB
    run = stores.run("recam", block, more=f"{TIMES_OVER} times over")
    rows = metric(run, "rows")
    slots = divide(rows, metric(run, "rows_of_a_block"))
    used, each = metric(run, "slots_used"), metric(run, "mean_writes_of_a_row")
    total = None if used is None or each is None else used * each
    return _bars(
        Head("store-wear", "Wear of the array", "beyond ReCAM"),
        f"Writes of data that a row has seen after a stream that writes its blocks {TIMES_OVER} "
        "times over.",
        "`Tag topmost row having empty_bit=1` (Fig. 6) takes the rows just freed, so the top of "
        "the array wears and the rest stays new. The array's life is that of its most written "
        "row.",
        "writes of a row",
        ["mean of all rows", "mean of the rows used", "most written row"],
        {"writes": [divide(total, slots), each, metric(run, "most_writes_of_a_row")]},
    )
