"""Which choices decide a figure: the share of its variance that each explains, over a sample.

The share is the first-order Sobol' index, the variance of the mean of the figure given the choice,
over its variance. It is estimated from a sample in which the choices were drawn independently: the
choice's values are put into classes of equal size, and the variance between classes is corrected
for what chance puts there (the epsilon squared of an analysis of variance; Kelley, PNAS 1935). Of
a pair it is what both together explain beyond each alone. Intervals are of the basic bootstrap.
Left out: how the sample is drawn (``papers.sample``).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

#: Values in a class, at least. There are as many classes as the root of the sample's size.
LEAST = 10
#: Classes of each choice of a pair, and how many choices are tried in pairs.
PAIRED, TRIED = 4, 4
RESAMPLED = 400
#: What lies between a bootstrap's ends, of 1.
WITHIN = 0.95


@dataclass(frozen=True, slots=True)
class Share:
    """What a choice, or a pair beyond each alone, explains of the variance, with its interval."""

    choices: tuple[str, ...]
    value: float
    low: float
    high: float


def shares(
    drawn: Mapping[str, Sequence[float | str]], figure: Sequence[float], seed: int = 0
) -> list[Share]:
    """The choices by what they explain of a figure, most first, then pairs of the first ones.

    ``drawn`` has each choice's value for each value of the figure. Nothing of a figure that does
    not vary, or of fewer than two classes of values.
    """
    import numpy as np

    y = np.asarray(figure, dtype=np.float64)
    if len(y) < 2 * LEAST or np.ptp(y) == 0:
        return []
    generator = np.random.default_rng(seed)
    resampled = generator.multinomial(len(y), np.full(len(y), 1 / len(y)), RESAMPLED)
    weights = np.vstack([np.ones(len(y)), resampled.astype(np.float64)])
    found = []
    for name, values in drawn.items():
        classes = _classes(values, math.isqrt(len(y)))
        if classes is not None:
            found.append(_share((name,), _explained(classes, y, weights)))
    found.sort(key=lambda share: -share.value)
    pairs = []
    for a, b in itertools.combinations(found[:TRIED], 2):
        names = (*a.choices, *b.choices)
        classes = [_classes(drawn[name], PAIRED) for name in names]
        if classes[0] is None or classes[1] is None:
            continue
        both = np.unique(classes[0] * len(y) + classes[1], return_inverse=True)[1]
        if (both.max() + 1) * LEAST > 2 * len(y):
            continue
        alone = [_explained(each, y, weights) for each in classes if each is not None]
        pairs.append(_share(names, _explained(both, y, weights) - alone[0] - alone[1]))
    return [*found, *sorted(pairs, key=lambda share: -share.value)]


def _classes(values: Sequence[float | str], most: int) -> Any:
    """The class of each value: of words the word, of numbers one of several equally full ones;
    nothing if all are in one.
    """
    import numpy as np

    if any(isinstance(value, str) for value in values):
        codes = np.unique(np.asarray(values, dtype=str), return_inverse=True)[1]
    else:
        number = np.asarray(values, dtype=np.float64)
        known = np.unique(number)
        wanted = max(2, min(most, len(number) // LEAST))
        if len(known) <= wanted:
            codes = np.searchsorted(known, number)
        else:
            ends = np.quantile(number, np.linspace(0, 1, wanted + 1)[1:-1])
            codes = np.searchsorted(np.unique(ends), number, side="right")
    return codes if codes.max() > 0 else None


def _explained(classes: Any, y: Floats, weights: Floats) -> Floats:
    """What the classes explain of ``y``, under each row of weights."""
    import numpy as np

    members = np.eye(classes.max() + 1)[classes]
    count, total = weights @ members, weights @ (members * y[:, None])
    number = weights.sum(axis=1)
    mean = weights @ y / number
    squares = weights @ y**2 - number * mean**2
    with np.errstate(divide="ignore", invalid="ignore"):
        between = np.nansum(total**2 / count, axis=1) - number * mean**2
        filled = (count > 0).sum(axis=1)
        within = (squares - between) / np.maximum(number - filled, 1)
        explained = (between - (filled - 1) * within) / squares
    known: Floats = np.nan_to_num(explained)
    return known


def _share(names: tuple[str, ...], explained: Floats) -> Share:
    import numpy as np

    value = float(explained[0])
    tail = (1 - WITHIN) / 2
    low, high = np.quantile(explained[1:], [tail, 1 - tail])

    def within(number: float) -> float:
        return float(min(1.0, max(0.0, number)))

    return Share(names, within(value), within(2 * value - high), within(2 * value - low))


def proportion(number: int, of: int) -> tuple[float, float, float]:
    """A share of cases with its 95 % interval (Wilson, JASA 1927)."""
    z = 1.959964
    share = number / of
    middle = (share + z * z / (2 * of)) / (1 + z * z / of)
    half = z * ((share * (1 - share) + z * z / (4 * of)) / of) ** 0.5 / (1 + z * z / of)
    return share, max(0.0, middle - half), min(1.0, middle + half)
