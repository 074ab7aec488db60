"""Shares of variance, against functions whose Sobol' indices are known in closed form."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence

import pytest
from sardonyx.papers.indices import shares
from sardonyx.papers.intervals import proportion


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
    # Of its 0.2437, four classes of each see what is between their means: (2 / pi)^2 of the sine's,
    # and of the fourth power's that between its outer and its inner half.
    inner, outer = math.pi**4 / 80, (math.pi**5 - (math.pi / 2) ** 5) / 5 / (math.pi / 2)
    between = (2 / math.pi) ** 2 * (0.1 * (outer - inner) / 2) ** 2
    whole = 0.5 + 49 / 8 + 0.1 * math.pi**4 / 5 + 0.01 * math.pi**8 / 18
    assert pair.value == pytest.approx(between / whole, abs=0.03)


def test_intervals_of_small_samples_hold_what_is_true() -> None:
    coefficients = {"a": 4.0, "b": 2.0, "c": 1.0, "d": 0.0}
    whole = sum(each**2 for each in coefficients.values())
    held = tried = 0
    for seed in range(12):
        x = uniform(200, "abcd", 0, 1, seed)
        y = [sum(k * x[n][i] for n, k in coefficients.items()) for i in range(200)]
        for share in shares(x, y, seed):
            if len(share.choices) == 1:
                known = coefficients[share.choices[0]] ** 2 / whole
                tried += 1
                held += share.low - 0.02 <= known <= share.high + 0.02
    assert held / tried > 0.9


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
