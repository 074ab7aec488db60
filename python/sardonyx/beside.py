"""What a reproduction has beside its results: the paper's claims with ours, Table 1, what stood in
for what. Kept in ``beside_paper.json`` so that ``sardonyx report`` can draw the page again.

How claims are computed is each reproduction's own; results are ``sardonyx.results``.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from sardonyx.claims import ClaimRow
from sardonyx.results import ResultsError, write_text
from sardonyx.sca_stages import Table1

NAME = "beside_paper.json"


@dataclass(frozen=True, slots=True)
class BesidePaper:
    """Claims, a sentence on what stood in for the paper's programs, and SCA's Table 1."""

    claims: tuple[ClaimRow, ...] = ()
    note: str = ""
    table_1: Table1 | None = None

    def save(self, directory: Path) -> None:
        """Write it, complete or not at all."""
        text = _ADAPTER.dump_json(self, indent=1).decode()
        write_text(directory / NAME, text + "\n")

    @staticmethod
    def load(directory: Path) -> BesidePaper:
        """What was saved; nothing where there is none. ``ResultsError`` says what is wrong."""
        path = directory / NAME
        try:
            return _ADAPTER.validate_json(path.read_bytes())
        except FileNotFoundError:
            return BesidePaper()
        except OSError as error:
            raise ResultsError(str(path), f"cannot be read ({error})") from error
        except ValidationError as error:
            first = error.errors()[0]
            place = ".".join(str(part) for part in first["loc"])
            raise ResultsError(f"{path}, {place or 'as a whole'}", first["msg"]) from error


_ADAPTER = TypeAdapter(BesidePaper)
