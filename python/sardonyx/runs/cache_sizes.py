"""ESD's sensitivity (Fig. 18): hit rates over the size of EFIT under both policies, and over the
AMT cache: the settings of its runs, and those runs among results.
"""

from __future__ import annotations

from collections.abc import Sequence

from sardonyx.runs.results import Results, Run, Scalar

EFIT_BYTES = "esd.efit_bytes"
AMT_BYTES = "esd.amt_bytes"
POLICY = "esd.policy"
POLICIES = ("lrcu", "lru")
KB, MB = 1 << 10, 1 << 20
SIZES = (64 * KB, 128 * KB, 256 * KB, 512 * KB, MB, 2 * MB)


def variants(sizes: Sequence[int] = SIZES) -> list[dict[str, Scalar]]:
    """The settings of each run."""
    efit: list[dict[str, Scalar]] = [
        {EFIT_BYTES: size, POLICY: policy} for size in sizes for policy in POLICIES
    ]
    return efit + [{AMT_BYTES: size} for size in sizes]


def points(results: Results, size: str, policy: str | None = None) -> dict[str, dict[int, Run]]:
    """Runs of ``esd`` whose variant sets this size (and this policy) and nothing else."""
    wanted = {size} if policy is None else {size, POLICY}
    found: dict[str, dict[int, Run]] = {}
    for run in results.runs:
        if run.design != "esd" or set(run.variant) != wanted:
            continue
        if policy is not None and run.variant[POLICY] != policy:
            continue
        value = run.variant[size]
        if isinstance(value, int | float) and not isinstance(value, bool):
            found.setdefault(run.trace, {})[int(value)] = run
    return found
