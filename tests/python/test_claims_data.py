"""The papers' figures as data, and how a claim is written beside ours."""

from __future__ import annotations

from typing import get_args

import pytest
from sardonyx.papers.claims import (
    Claim,
    ClaimRow,
    Found,
    Kind,
    Statistic,
    Unit,
    judge,
    load_claims,
    written_claim,
    written_gap,
)
from sardonyx.studies import reproductions


def test_every_paper_has_its_claims_and_tables_of_our_own_have_none_here() -> None:
    papers = {claim.paper for claim in load_claims()}
    assert {"esd", "sca", "recam", "easy-pm"} <= set(reproductions())
    assert set(reproductions()) - papers == {"compositions", "field", "integrity"}
    for paper in papers:
        claims = load_claims(paper)
        assert claims and len({claim.key for claim in claims}) == len(claims)


def test_claims_are_well_formed() -> None:
    for claim in load_claims():
        assert claim.stat in get_args(Statistic)
        assert claim.kind in get_args(Kind)
        assert claim.where
        assert claim.metric
        assert claim.design
        if any(word in claim.metric for word in ("share", "reduction", "rate_", "_rate")):
            assert 0 <= claim.value <= 1, claim


def test_an_unknown_paper_is_named_with_those_there_are() -> None:
    with pytest.raises(ValueError, match="of a paper `esc`; there are those of easy-pm, esd, "):
        load_claims("esc")


def row(ours: float | None, unit: str, value: float) -> ClaimRow:
    return ClaimRow(Claim("esd", "Fig. 1", "m", "esd", "mean", value, "sign"), ours, unit, "n")  # type: ignore[arg-type]


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


def test_a_claim_of_all_workloads_is_a_bound_on_the_least() -> None:
    claim = Claim("esd", "Fig. 1", "m", "esd", "min", 1.0, "order")
    fails = Found({"a": 3.0, "b": 0.9}, "x", "n", "runs").beside(claim)
    assert (fails.ours, fails.reported) == (0.9, "> 1.00×")
    assert fails.note == "n; does not hold for b"
    kept = Found({"a": 3.0, "b": 1.1, "c": None}, "x", "n", "runs").beside(claim)
    assert kept.note == "n; over 2 of 3 workloads; holds for all"
    assert Found({"a": None}, "x", "n", "runs").beside(claim).note == "n"


def test_a_claim_that_none_is_above_is_a_bound_on_the_most() -> None:
    claim = Claim("integrity", "abstract", "m", "phoenix", "max", 0.0, "at_most")
    fails = Found({"a": 0.3, "b": -0.1}, "%", "n", "runs").beside(claim)
    assert (fails.ours, fails.reported) == (0.3, "≤ 0 %")
    assert fails.note == "n; does not hold for a"
    kept = Found({"a": 0.0, "b": -0.1}, "%", "n", "runs").beside(claim)
    assert kept.note == "n; holds for all"


@pytest.mark.parametrize(
    ("kind", "value", "ours", "holds", "sign", "near"),
    [
        # Run time of 1.117 times no encryption's is a cost: less is as the paper says, more is not.
        ("at_most", 1.117, 1.05, True, None, True),
        ("at_most", 1.117, 1.9, False, None, False),
        ("at_least", 5.0, 4.9, False, True, True),
        ("sign", 3.4, 1.1, True, True, False),
        ("sign", 0.8, 1.1, False, False, False),
        ("within", 2.0, 2.2, True, None, True),
        ("within", 2.0, 2.4, False, None, False),
        ("order", 1.0, 1.0, False, False, None),
        ("order", 1.0, 1.01, True, True, None),
    ],
)
def test_a_claim_is_judged_by_what_its_words_say(
    kind: Kind, value: float, ours: float, holds: bool, sign: bool | None, near: bool | None
) -> None:
    unit: Unit = "x"
    judged = ClaimRow(Claim("esd", "Fig. 1", "m", "esd", "mean", value, kind), ours, unit, "n")
    assert (judged.holds, judged.sign, judged.near) == (holds, sign, near)
    assert judged.verdict.startswith("as the paper says") == holds


def test_a_figure_that_should_be_nothing_is_near_only_if_it_is() -> None:
    assert judge("within", 0.0, 0.0, 0.0) and not judge("within", 0.0, 0.0, 0.001)
    assert judge("at_most", 0.0, 0.0, -0.2) and not judge("sign", 0.1, 0.0, -0.2)
