"""The papers' figures as data, and how a claim is written beside ours."""

from __future__ import annotations

import pytest
from sardonyx.claims import Claim, ClaimRow, load_claims, written_claim, written_gap


def test_the_papers_are_all_there() -> None:
    count: dict[str, int] = {}
    for claim in load_claims():
        count[claim.paper] = count.get(claim.paper, 0) + 1
    assert count == {"esd": 44, "sca": 24, "easy-pm": 10, "pageforge": 53, "recam": 4}


def test_claims_are_well_formed() -> None:
    for claim in load_claims():
        assert claim.stat in ("min", "mean", "max", "value")
        assert claim.where
        assert claim.metric
        assert claim.design
        if any(word in claim.metric for word in ("share", "reduction", "rate_", "_rate")):
            assert 0 <= claim.value <= 1, claim


def test_an_unknown_paper_is_named_with_those_there_are() -> None:
    with pytest.raises(ValueError, match="of a paper `esc`; there are those of easy-pm, esd, "):
        load_claims("esc")


def row(ours: float | None, unit: str, value: float) -> ClaimRow:
    return ClaimRow(Claim("esd", "Fig. 1", "m", "esd", "mean", value), ours, unit, "n")  # type: ignore[arg-type]


def test_values_and_gaps_are_written_with_their_units() -> None:
    assert written_claim(0.478, "%") == "47.8 %"
    assert written_claim(0.0008, "%") == "0.08 %"
    assert written_claim(0.0025, "pp") == "+0.25 pp"
    assert written_claim(3.4, "x") == "3.40×"
    assert written_claim(None, "x") == "–"
    assert written_gap(row(0.5, "%", 0.4)) == ("+10.0 pp", "+25 %")
    assert written_gap(row(0.0009, "%", 0.0008)) == ("+0.01 pp", "+12 %")
    assert written_gap(row(3.0, "x", 4.0)) == ("-1.00", "-25 %")
    assert written_gap(row(None, "x", 4.0)) == ("–", "–")
