"""A conclusion says on how many workloads it holds before it says a mean."""

from __future__ import annotations

import random

import pytest
from sardonyx.runs.answers import Spread
from sardonyx.runs.conclusions import EQUAL
from sardonyx.runs.measures import geometric_mean


def spread(**gains: float) -> Spread:
    return Spread("reads faster", "reads slower", gains, gains)


def test_a_mean_that_one_workload_makes_is_not_said_alone() -> None:
    found = spread(a=0.90, b=0.77, c=0.76, d=0.85, stockfish=4.94, e=0.84)
    assert found.text() == (
        "reads slower on 5 of 6, faster on 1 (0.76× to 4.94×; mean 1.11×, 0.82× without stockfish)"
    )
    assert found.tone == "mixed"


@pytest.mark.parametrize(
    ("gains", "said", "tone"),
    [
        ({"a": 1.02, "b": 13.0}, "reads faster on 2 of 2 (1.02× to 13.00×; mean 3.64×)", "better"),
        ({"a": 0.5}, "reads slower (0.50×)", "worse"),
        ({"a": 1.0}, "neither reads faster nor reads slower", "mixed"),
        (
            {"a": 1.0, "b": 1.0005, "c": 0.9995},
            "reads faster on 0 of 3 (1.00× to 1.00×; mean 1.00×)",
            "mixed",
        ),
        (
            {"a": 2.0, "b": 0.5, "c": 1.0},
            "reads faster on 1 of 3, slower on 1 (0.50× to 2.00×; mean 1.00×)",
            "mixed",
        ),
    ],
)
def test_words(gains: dict[str, float], said: str, tone: str) -> None:
    assert spread(**gains).text() == said
    assert spread(**gains).tone == tone


def test_less_is_better_is_written_as_the_ratio() -> None:
    ratios = {"a": 0.5, "b": 0.8, "c": 1.25}
    gains = {name: 1 / ratio for name, ratio in ratios.items()}
    found = Spread("takes less energy", "takes more energy", ratios, gains)
    said = "takes less energy on 2 of 3, more energy on 1 (0.50× to 1.25×; mean 0.79×"
    assert found.text().startswith(said)
    assert found.tone == "better"


def test_colour_needs_most_workloads_and_the_mean() -> None:
    chance = random.Random(5)
    for _ in range(500):
        gains = {str(n): 2 ** chance.gauss(0, 1) for n in range(chance.randint(1, 7))}
        found = spread(**gains)
        better = sum(gain > 1 + EQUAL for gain in gains.values())
        mean = geometric_mean(gains.values()) or 0.0
        assert (found.tone == "better") == (better > len(gains) / 2 and mean > 1)
        lifting = found.lifting()
        if lifting is not None:
            rest = [gain for name, gain in gains.items() if name != lifting[0]]
            assert ((geometric_mean(rest) or 0.0) > 1) != (mean > 1)
            assert f"without {lifting[0]}" in found.text()
