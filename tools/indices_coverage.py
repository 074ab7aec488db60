"""How often intervals of Sobol' shares hold the true share: ``python tools/indices_coverage.py
[TRIALS]``.

Of functions whose first-order indices are known: Ishigami's (ISUMA 1990), the g function (Saltelli
and Sobol', 1995), a linear one, and noise. All draws follow a seed.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from sardonyx.vary.indices import shares

Floats: TypeAlias = NDArray[np.float64]
G = np.array([0.0, 1.0, 4.5, 9.0])
LINEAR = np.array([4.0, 2.0, 1.0, 0.0])


def ishigami(x: Floats, _: np.random.Generator) -> Floats:
    """With a = 7 and b = 0.1, of three inputs from -pi to pi."""
    a, b, c = np.pi * (2 * x[:, :3].T - 1)
    found: Floats = np.sin(a) + 7 * np.sin(b) ** 2 + 0.1 * c**4 * np.sin(a)
    return found


def g_function(x: Floats, _: np.random.Generator) -> Floats:
    """A product of four kinked factors, of which the first matters most."""
    found: Floats = np.prod((np.abs(4 * x - 2) + G) / (1 + G), axis=1)
    return found


def linear(x: Floats, _: np.random.Generator) -> Floats:
    """A weighted sum, one weight zero."""
    found: Floats = x @ LINEAR
    return found


def noise(x: Floats, generator: np.random.Generator) -> Floats:
    """Nothing of the inputs."""
    return generator.standard_normal(len(x))


def _known() -> Mapping[str, tuple[Callable[[Floats, np.random.Generator], Floats], list[float]]]:
    parts = 1 / 3 / (1 + G) ** 2
    return {
        "ishigami": (ishigami, [0.3139, 0.4424, 0.0]),
        "g": (g_function, list(parts / (np.prod(1 + parts) - 1))),
        "linear": (linear, list(LINEAR**2 / (LINEAR**2).sum())),
        "noise": (noise, [0.0] * 4),
    }


FUNCTIONS = _known()


def coverage(name: str, number: int, trials: int, seed: int = 0) -> list[float]:
    """Of each input the share of trials whose interval holds its index, over samples of ``number``
    values.
    """
    function, true = FUNCTIONS[name]
    generator = np.random.default_rng(seed)
    held = [0] * len(true)
    for trial in range(trials):
        x = generator.uniform(0, 1, (number, 4))
        y = function(x, generator)
        drawn = {str(column): list(x[:, column]) for column in range(len(true))}
        for share in shares(drawn, list(y), trial):
            if len(share.choices) == 1:
                column = int(share.choices[0])
                held[column] += share.low - 1e-9 <= true[column] <= share.high + 1e-9
    return [each / trials for each in held]


def main() -> None:
    """Print a line for each function and size of sample."""
    trials = int(sys.argv[1]) if len(sys.argv) > 1 else 200
    for number in (40, 200, 2000):
        for name in FUNCTIONS:
            found = ", ".join(f"{each:.0%}" for each in coverage(name, number, trials))
            print(f"{number:4} {name:8}: {found}", flush=True)


if __name__ == "__main__":
    main()
