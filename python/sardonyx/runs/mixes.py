"""Mixes: traces that run together, each on a core of its own, beside each of them alone.

A program's slowdown is its IPC alone on the same machine, with as many cores, by its IPC in the
mix. Weighted speed-up is the sum of the inverse slowdowns (Snavely and Tullsen, ASPLOS 2000);
fairness is the least slowdown by the greatest. Each runs its trace once, so that the end of the
longest is its own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sardonyx._core import SardonyxError
from sardonyx.questions import MixSource, Source


def refuse(option: str, sources: Mapping[str, Source]) -> None:
    """An error where a mix is what cannot be one."""
    for name, source in sources.items():
        if isinstance(source, MixSource):
            raise refusal(option, name)


def refusal(option: str, name: str) -> SardonyxError:
    """The error."""
    return SardonyxError(
        f"{option}: {name} is a mix, which runs as a whole; name its traces one by one"
    )


def judge(answer: dict[str, Any], names: Sequence[str], alone: Sequence[Any]) -> None:
    """Say in a mix's answer what each of its programs loses beside its run alone."""
    mix = [
        {"trace": name, "ipc": ipc, "alone": single["metrics"].get("ipc")}
        for name, ipc, single in zip(names, answer.pop("core_ipc"), alone, strict=True)
    ]
    answer["mix"] = mix
    slowdowns = [one["alone"] / one["ipc"] for one in mix if one["alone"] and one["ipc"]]
    if len(slowdowns) == len(mix):
        answer["metrics"] |= {
            "weighted_speedup": sum(1 / slowdown for slowdown in slowdowns),
            "max_slowdown": max(slowdowns),
            "fairness": min(slowdowns) / max(slowdowns),
        }
