"""Which choices decide a figure: the share of its variance that each explains, over a sample.

The share is the first-order Sobol' index, the variance of the mean of the figure given the choice,
over its variance. It is estimated from a sample in which the choices were drawn independently: the
choice's values are put into classes of equal size, and the variance between classes is corrected
for what chance puts there (the epsilon squared of an analysis of variance; Kelley, PNAS 1935). Of
a pair it is what both together explain beyond each alone. Intervals are of the basic bootstrap. A
choice stands out if it explains more than the most that any choice explains of the figure's values
in another order, in 19 of 20 orders (the maximum's permutation test; Westfall and Young, 1993).
Left out: how the sample is drawn (``papers.sampling``).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from sardonyx.papers.sample import Share

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

#: The fewest values in a class. There are as many classes as the root of the sample's size.
LEAST = 10
#: The classes of each choice of a pair, and the number of choices that are tried in pairs.
PAIRED, TRIED = 4, 4
RESAMPLED = 400
#: The number of other orders of a figure's values.
ORDERS = 200
#: The share of draws between a bootstrap's ends, and the quantile of other orders that an
#: explanation must exceed.
WITHIN = 0.95


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
    orders = np.array([generator.permutation(y) for _ in range(ORDERS)])
    alone = {
        (name,): classes
        for name, values in drawn.items()
        if (classes := _classes(values, math.isqrt(len(y)))) is not None
    }
    most = _most(list(alone.values()), orders)
    found = [
        _share(names, _explained(classes, y, weights), most) for names, classes in alone.items()
    ]
    found.sort(key=lambda share: -share.value)
    pairs, parts = {}, {}
    for a, b in itertools.combinations(found[:TRIED], 2):
        names = (*a.choices, *b.choices)
        one, other = (_classes(drawn[name], PAIRED) for name in names)
        if one is None or other is None:
            continue
        both = np.unique(one * len(y) + other, return_inverse=True)[1]
        if (both.max() + 1) * LEAST <= 2 * len(y):
            pairs[names], parts[names] = both, (one, other)
    most = _most(list(pairs.values()), orders)
    together = []
    for names, both in pairs.items():
        beyond = _explained(both, y, weights)
        for part in parts[names]:
            beyond = beyond - _explained(part, y, weights)
        together.append(_share(names, beyond, most))
    return [*found, *sorted(together, key=lambda share: -share.value)]


def _most(classes: Sequence[Any], orders: Floats) -> float:
    """A high quantile of the share that the best of these classes explains of other orders."""
    import numpy as np

    if not classes:
        return 0.0
    total = ((orders - orders.mean(axis=1, keepdims=True)) ** 2).sum(axis=1)
    best = np.zeros(len(orders))
    for each in classes:
        members = np.eye(each.max() + 1)[each]
        count = members.sum(axis=0)
        between = ((orders @ members) ** 2 / count).sum(axis=1)
        between = between - orders.sum(axis=1) ** 2 / len(each)
        within = (total - between) / max(len(each) - len(count), 1)
        best = np.maximum(best, (between - (len(count) - 1) * within) / total)
    return float(np.quantile(best, WITHIN))


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
    """The share of ``y`` that the classes explain, under each row of weights."""
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


def _share(names: tuple[str, ...], explained: Floats, most: float) -> Share:
    import numpy as np

    value = float(explained[0])
    tail = (1 - WITHIN) / 2
    low, high = np.quantile(explained[1:], [tail, 1 - tail])

    def within(number: float) -> float:
        return float(min(1.0, max(0.0, number)))

    ends = within(2 * value - high), within(2 * value - low)
    return Share(names, within(value), *ends, value > most)
