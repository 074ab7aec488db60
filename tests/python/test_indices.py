"""Shares of variance, against functions whose Sobol' indices are known in closed form."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence

import indices_coverage
import pytest
import shares_coverage
from sardonyx.vary.indices import shares, split
from sardonyx.vary.intervals import crossed, proportion


def uniform(
    number: int, names: Sequence[str], low: float, high: float, seed: int = 1
) -> dict[str, list[float]]:
    generator = random.Random(seed)
    return {name: [generator.uniform(low, high) for _ in range(number)] for name in names}


def test_ishigamis_indices_are_found() -> None:
    x = uniform(4000, "abc", -math.pi, math.pi)
    rows = zip(x["a"], x["b"], x["c"], strict=True)
    y = [math.sin(a) + 7 * math.sin(b) ** 2 + 0.1 * c**4 * math.sin(a) for a, b, c in rows]
    found = {share.choices: share for share in shares(x, y)}
    # Ishigami and Homma (ISUMA 1990) with a = 7, b = 0.1.
    for names, known in ((("a",), 0.3139), (("b",), 0.4424), (("c",), 0.0)):
        assert found[names].value == pytest.approx(known, abs=0.04)
        assert found[names].low <= known + 0.02 and known - 0.03 <= found[names].high
    pair = next(share for names, share in found.items() if set(names) == {"a", "c"})
    # Of its 0.2437 a product of third degrees sees most: a lower bound.
    assert 0.2 < pair.value < 0.25


@pytest.mark.parametrize("name", list(indices_coverage.FUNCTIONS))
def test_intervals_of_a_samples_size_hold_what_is_true(name: str) -> None:
    # Of 200 trials they hold 93 to 100 %; fewer than 18 of 24 are then rarer than one in 1,000.
    assert min(indices_coverage.coverage(name, 200, 24)) >= 18 / 24


def test_intervals_over_workloads_and_cells_hold_the_share_of_new_workloads() -> None:
    found = []
    for effects in shares_coverage.EFFECTS[:3]:
        for share in (0.5, 0.9):
            world = shares_coverage.World(5, 60, effects, share)
            found.append(shares_coverage.coverage(world, 60))
            assert found[-1].both >= 0.85, world
    assert sum(each.both for each in found) / len(found) >= 0.93
    # One workload a cell says nothing of other workloads, where these differ.
    assert found[0].cells_new < 0.8 < found[0].cells_these


def test_workloads_that_differ_make_an_interval_wide_and_missing_pairs_none_narrow() -> None:
    differ = [[True] * 40, [True] * 40, [False] * 40, [True] * 40, [False] * 40]
    alike = [[cell % 5 < 3 for cell in range(40)]] * 5
    low, high = crossed(differ)
    assert low < 0.25 and high > 0.85
    low, high = crossed(alike)
    assert 0.4 < low < 0.5 and 0.7 < high < 0.8
    lacking = [[None, *row[1:]] for row in differ]
    assert crossed(lacking) == pytest.approx(crossed(differ), abs=0.03)
    assert crossed([[True, True]]) == (0.0, 1.0)


def test_words_are_classes_and_noise_explains_nothing() -> None:
    generator = random.Random(3)
    words = [generator.choice(["red", "green", "blue"]) for _ in range(400)]
    noise = [generator.gauss(0, 1) for _ in range(400)]
    y = [{"red": 0.0, "green": 1.0, "blue": 5.0}[word] for word in words]
    found = shares({"noise": noise, "word": words}, y)
    assert found[0].choices == ("word",) and found[0].value == pytest.approx(1)
    assert found[1].value < 0.05 and found[1].low == 0
    assert [share.choices for share in found if share.stands_out] == [("word",)]
    assert shares({"word": words}, [1.0] * 400) == []


def test_of_many_choices_that_explain_nothing_none_stands_out() -> None:
    wrong = 0
    for seed in range(12):
        x = uniform(60, [f"x{number}" for number in range(40)], 0, 1, seed)
        y = uniform(60, ["y"], 0, 1, seed + 100)["y"]
        wrong += any(share.stands_out for share in shares(x, y, seed))
    assert wrong <= 2


def test_a_proportion_is_wilsons() -> None:
    assert proportion(41, 100) == pytest.approx((0.3187, 0.5080), abs=1e-4)
    assert proportion(0, 40)[0] == 0 and proportion(0, 40)[1] == pytest.approx(0.0876, abs=1e-4)


def test_the_value_that_parts_cells_is_found() -> None:
    values = [str(5 * number) for number in range(20)]
    found = split("x", values, [float(value) < 37 for value in values])
    assert found is not None and found.value == "40"
    assert (found.within.number, found.within.of, found.beyond.number) == (8, 8, 0)
    words = split("w", ["a", "b", "c"] * 5, [False, True, False] * 5)
    assert words is not None and words.value == "b" and words.within.number == 5
    assert split("one", ["1", "1"], [True, False]) is None
