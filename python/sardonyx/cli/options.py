"""Options that several commands take, with one help text each."""

from __future__ import annotations

from typing import Annotated

import typer

from sardonyx._core import SardonyxError
from sardonyx.cli import complete
from sardonyx.cli.common import MOST, size_in_bytes
from sardonyx.questions import ProgramSource
from sardonyx.runs.sensitivity import DRAWS
from sardonyx.runs.sources import PROGRAM
from sardonyx.sizes import size_text

Machine = Annotated[
    str,
    typer.Option(
        "--machine",
        "-m",
        help="A machine's name, or the path of its file: TOML, DRAMsim3's .ini, "
        "NVMain's .config, Ramulator's .yaml.",
        autocompletion=complete.machines,
    ),
]
Set = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        "-s",
        metavar="KEY=VALUE",
        help="Set a key of the machine; repeatable.",
        autocompletion=complete.keys,
    ),
]
Designs = Annotated[
    str,
    typer.Option(
        "--designs",
        "-d",
        help="Designs, separated by commas.",
        autocompletion=complete.designs,
    ),
]
Tear = Annotated[
    str,
    typer.Option(
        help="What a cut leaves whole while a line is being accepted: the line (lines) "
        "or each 8 bytes (words)."
    ),
]
Limit = Annotated[
    int | None,
    typer.Option("--limit", min=1, max=MOST, help="Use only the first N records of each trace."),
]
Addresses = Annotated[
    str | None,
    typer.Option(
        "--addresses",
        metavar="WHERE",
        help="Where a trace's addresses lie: as-traced, first-touch, scattered or wrapped; "
        "default: as-traced if they are physical, else first-touch. In sweeps: the key addresses.",
    ),
]
Arrivals = Annotated[
    str | None,
    typer.Option(
        "--arrivals",
        metavar="KIND",
        help="Whether a trace's cycles are stamps at which requests arrive (open), or gaps of a "
        "core that waits (closed); default: as the trace says. In sweeps: the key arrivals.",
    ),
]
Warmup = Annotated[
    str | None,
    typer.Option(
        "--warmup",
        metavar="N|N%",
        help="Warm up with N requests (programs: transactions) or N % of the run, "
        "excluded from the statistics.",
    ),
]
Sample = Annotated[
    str | None,
    typer.Option(
        "--sample",
        metavar="WINDOWSxREQUESTS",
        help="Simulate only some windows of each trace in time, as in 50x10000, and "
        "give figures with their 95 % intervals.",
    ),
]
Transactions = Annotated[
    int, typer.Option(min=1, max=MOST, help="Transactions of each core's program.")
]
TransactionSize = Annotated[
    str, typer.Option(metavar="BYTES", help="Size of a program's items: 64 to 4K.")
]
Footprint = Annotated[
    str, typer.Option(metavar="BYTES", help="Size of each program's structure, as in 100M.")
]
FOOTPRINT = size_text(PROGRAM.footprint)
Workers = Annotated[
    int | None,
    typer.Option("--jobs", "-j", min=1, max=1024, help="Runs at once; default: one a core."),
]
JsonTo = Annotated[
    str | None,
    typer.Option(
        "--json",
        metavar="FILE",
        help="Write the same numbers as JSON to this file, or to standard output for -.",
    ),
]
Sensitivity = Annotated[
    bool,
    typer.Option(
        "--sensitivity",
        help="Also run each assumed key at the ends of its range and all of them together, and say "
        "which conclusions flip.",
    ),
]
Draws = Annotated[
    int | None,
    typer.Option(
        "--draws",
        min=0,
        max=10_000,
        help=f"With --sensitivity: draws of all assumed keys together; default: {DRAWS}.",
    ),
]


def check_draws(sensitivity: bool, draws: int | None) -> int:
    """How many draws there are; an error if there is nothing that they could be of."""
    if draws is not None and not sensitivity:
        raise SardonyxError("--draws: are of --sensitivity; give both, or neither")
    return DRAWS if draws is None else draws


def sized(transactions: int, transaction_size: str, footprint: str, seed: int = 0) -> ProgramSource:
    """The sizes of programs, as the options have them."""
    return ProgramSource(
        item_bytes=size_in_bytes("--transaction-size", transaction_size),
        footprint=size_in_bytes("--footprint", footprint),
        transactions=transactions,
        seed=seed,
    )
