"""Whether a simulator and the memory behind it agree: the log of ``host.log``, judged.

A log has the same requests as up to three parties saw them: the controller (the library itself),
the port (the adapter) and the application (whoever waits in the host). Each request is matched by
its tag. Left out: what the host's caches do before the port, which no log shows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from io import StringIO
from itertools import pairwise

import numpy as np
import pandas as pd

from sardonyx._core import SardonyxError
from sardonyx.files import FileError, read_text

#: The views, from the memory outwards.
VIEWS = ("controller", "port", "application")
EVENTS = ("asked", "refused", "done", "end")
COLUMNS = ("view", "event", "tag", "ps", "bytes")
#: Fewer requests than this, in any view, are too few for a conclusion.
LEAST = 200
#: An open request is lost if it is this many times older than any that was answered.
PATIENCE = 4
POINTS = 10


@dataclass(frozen=True)
class Fault:
    """Something that must not be, and the first place of it."""

    kind: str
    view: str
    count: int
    tag: int
    line: int
    says: str


@dataclass(frozen=True)
class Load:
    """What one view saw at about one load: bandwidth in GB/s, mean latency in ns."""

    view: str
    gb_per_s: float
    latency_ns: float


@dataclass
class Verdict:
    """What was found: nothing is wrong if there are no faults."""

    path: str
    requests: dict[str, int] = field(default_factory=dict)
    faults: list[Fault] = field(default_factory=list)
    #: Points by load, each with its views.
    curve: list[list[Load]] = field(default_factory=list)
    #: For each outer view, relative to the controller: the worst error of bandwidth and of latency,
    #: and the ratio of the clocks.
    errors: dict[str, tuple[float, float, float]] = field(default_factory=dict)
    #: The reason why nothing can be said, if there is one.
    unsaid: str = ""
    #: Set if the log ends before the host did: its last requests are not judged.
    cut_off: bool = False


def read_log(path: str) -> pd.DataFrame:
    """The log's rows, ``line`` beside; `SardonyxError` with the line if it is none."""
    try:
        text = read_text(path)
        head = text.partition("\n")[0].strip()
        if tuple(head.split(",")) != COLUMNS:
            raise SardonyxError(
                f"{path}:1: not a log of host.log; its first line is {','.join(COLUMNS)}"
            )
        whole = text[: text.rfind("\n") + 1]  # a line that was cut off says nothing
        rows = pd.read_csv(StringIO(whole), dtype=str, keep_default_na=False)
    except FileError:
        raise
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "is no text"
        raise SardonyxError(f"{path}: {reason}; name the file that host.log has written") from None
    except pd.errors.ParserError as error:
        raise SardonyxError(f"{path}: {error}") from None
    rows["line"] = np.arange(2, len(rows) + 2)
    for column, known in (("view", VIEWS), ("event", EVENTS)):
        bad = rows[~rows[column].isin(known)]
        if len(bad):
            row = bad.iloc[0]
            raise SardonyxError(
                f"{path}:{row.line}: {column} {row[column]!r}; one of {', '.join(known)}"
            )
    for column in ("tag", "ps", "bytes"):
        bad = rows[~rows[column].str.fullmatch(r"\d{1,19}")]
        if len(bad):
            row = bad.iloc[0]
            raise SardonyxError(f"{path}:{row.line}: {column} {row[column]!r}: not a number")
        rows[column] = rows[column].astype("uint64").astype("int64")
    return rows


def judge(path: str, bound: float = 0.05, clocks: float = 0.001, path_ns: float = 0.0) -> Verdict:
    """Hold the views of a log against each other.

    ``bound`` is the largest relative difference of bandwidth and of latency at a load; ``clocks``
    that of the clocks' speeds; ``path_ns`` what a request is under way outside of the controller,
    there and back, in the host's own model.
    """
    rows = read_log(path)
    verdict = Verdict(path, cut_off=not len(rows) or rows["event"].iloc[-1] != "end")
    pairs: dict[str, pd.DataFrame] = {}
    for view in VIEWS:
        of = rows[rows["view"] == view]
        if len(of) or view == "controller":
            pairs[view] = _pairs(of, view, verdict)
            verdict.requests[view] = len(pairs[view])
    refused = rows[rows["event"] == "refused"]
    inner = pairs["controller"]
    if len(pairs) == 1:
        verdict.unsaid = "the log has the controller's view alone; the adapter has noted nothing"
    elif min(verdict.requests.values()) < LEAST:
        verdict.unsaid = f"fewer than {LEAST} requests in a view; run the host for longer"
    for view in VIEWS[1:]:
        if view in pairs:
            _between(view, pairs[view], inner, refused, verdict)
            _answers(view, pairs[view], inner, int(rows["ps"].max()), verdict)
    if not verdict.unsaid:
        _compare(pairs, verdict, bound, clocks, path_ns * 1000)
    return verdict


def _fault(verdict: Verdict, kind: str, view: str, bad: pd.DataFrame, says: str) -> None:
    if len(bad):
        first = bad.sort_values("line").iloc[0]
        where = Fault(kind, view, len(bad), int(first["tag"]), int(first["line"]), says)
        verdict.faults.append(where)


def _pairs(of: pd.DataFrame, view: str, verdict: Verdict) -> pd.DataFrame:
    """Each request of a view with its answer: the nth request of a tag with its nth answer."""
    parts = {}
    for event in ("asked", "done"):
        part = of[of["event"] == event][["tag", "ps", "bytes", "line"]].copy()
        part["nth"] = part.groupby("tag").cumcount()
        parts[event] = part
    both = parts["asked"].merge(
        parts["done"], on=["tag", "nth"], how="outer", suffixes=("", "_done"), indicator=True
    )
    extra = both[both["_merge"] == "right_only"].copy()
    extra["line"] = extra["line_done"]
    known = extra["tag"].isin(parts["asked"]["tag"])
    _fault(verdict, "answered twice", view, extra[known], "the answer had come before")
    _fault(verdict, "never asked", view, extra[~known], "an answer to nothing")
    both = both[both["_merge"] != "right_only"].copy()
    back = both[both["ps_done"] < both["ps"]]
    _fault(verdict, "time goes back", view, back, "the answer's time is before the asking")
    both["latency"] = both["ps_done"] - both["ps"]
    longest = both["latency"].max()
    last = of["ps"].max()
    if len(both):
        patience = PATIENCE * (longest if longest == longest else 0)
        lost = both[both["ps_done"].isna() & (last - both["ps"] > patience)]
        _fault(verdict, "lost", view, lost, f"no answer in {PATIENCE} times the longest latency")
    return both


def _between(
    view: str, outer: pd.DataFrame, inner: pd.DataFrame, refused: pd.DataFrame, verdict: Verdict
) -> None:
    """Requests that one party knows and the other does not."""
    missing = outer[~outer["tag"].isin(inner["tag"])]
    swallowed = missing["tag"].isin(refused["tag"])
    places = refused.drop_duplicates("tag", keep="last").set_index("tag")["line"]
    at = missing[swallowed].copy()
    at["line"] = at["tag"].map(places)
    # The head of a queue may still wait when the log ends, and then it has no answer anywhere.
    waits = at["ps_done"].isna() & (at["line"] > inner["line"].max())
    _fault(
        verdict,
        "swallowed",
        view,
        at[~waits],
        "a full controller refused it; it was not sent again",
    )
    _fault(verdict, "never reached the controller", view, missing[~swallowed], "nor was it refused")
    if view == "port":
        strange = inner[~inner["tag"].isin(outer["tag"])]
        _fault(verdict, "not from the port", "controller", strange, "the port knows nothing of it")
    both = outer.merge(inner, on=["tag", "nth"], suffixes=("", "_in"))
    sizes = both[both["bytes"] != both["bytes_in"]]
    _fault(verdict, "another size", view, sizes, "other bytes than the controller has")
    unanswered = both["ps_done_in"].isna() & both["ps_done"].notna()
    _fault(verdict, "answered by itself", view, both[unanswered], "the controller has no answer")


def _answers(
    view: str, outer: pd.DataFrame, inner: pd.DataFrame, end: int, verdict: Verdict
) -> None:
    """Answers that came before the controller had them, and those that only the controller gave."""
    both = outer.merge(inner, on=["tag", "nth"], suffixes=("", "_in"))
    early = both[both["ps_done"] < both["ps_done_in"]].copy()
    early["line"] = early["line_done"]
    _fault(verdict, "answered early", view, early, "before the controller's answer")
    given = both[both["ps_done_in"].notna()]
    longest = (given["ps_done"] - given["ps_done_in"]).max()
    # An answer may be under way when the log ends, but for no longer than any other was.
    since = end - given["ps_done_in"]
    kept = since > longest if verdict.cut_off or longest > 0 else since >= 0
    lost = given[given["ps_done"].isna() & kept].copy()
    lost["line"] = lost["line_done_in"]
    says = "the controller answered; the answer never arrived"
    _fault(verdict, "lost its answer", view, lost, says)


def _compare(
    pairs: dict[str, pd.DataFrame], verdict: Verdict, bound: float, clocks: float, path: float
) -> None:
    """Clocks, then bandwidth and latency load by load."""
    inner = pairs["controller"]
    everywhere = inner[["tag", "nth", "bytes", "ps", "ps_done", "latency", "line"]].dropna()
    for view, outer in pairs.items():
        if view != "controller":
            columns = outer[["tag", "nth", "ps", "ps_done", "latency", "line"]].dropna()
            everywhere = everywhere.merge(columns, on=["tag", "nth"], suffixes=("", f"_{view}"))
    if len(everywhere) < LEAST:
        verdict.unsaid = f"fewer than {LEAST} requests are answered in every view"
        return
    everywhere = everywhere.sort_values("ps_done", kind="stable").reset_index(drop=True)
    windows = _windows(everywhere)
    loads = {view: _loads(everywhere, view, windows) for view in pairs}
    order = np.argsort([load[0] for load in loads["controller"]], kind="stable")
    groups = [g for g in np.array_split(order, min(POINTS, len(order))) if len(g)]
    curve = {view: _grouped(load, groups) for view, load in loads.items()}
    verdict.curve = [
        [Load(view, *curve[view][index]) for view in pairs] for index in range(len(groups))
    ]
    for view in pairs:
        if view == "controller":
            continue
        speed = _speed(everywhere, view)
        bandwidth = latency = 0.0
        at = 0
        for index, (gb, ns) in enumerate(curve["controller"]):
            seen_gb, seen_ns = curve[view][index]
            off = abs(seen_ns - path / 1000 - ns) / ns if ns else 0.0
            if max(abs(seen_gb / gb - 1), off) > max(bandwidth, latency):
                at = int(everywhere[f"line_{view}"].iloc[windows[groups[index][0]].start])
            bandwidth = max(bandwidth, abs(seen_gb / gb - 1))
            latency = max(latency, off)
        verdict.errors[view] = (bandwidth, latency, speed)
        first = int(everywhere[f"line_{view}"].iloc[0])
        if abs(speed - 1) > clocks:
            says = f"it goes {speed:.6g} times as fast as the controller's; {clocks:g} is allowed"
            verdict.faults.append(Fault("clocks disagree", view, 1, 0, first, says))
        if max(bandwidth, latency) > bound:
            says = (
                f"bandwidth differs by up to {bandwidth:.1%} and latency by up to {latency:.1%} "
                f"from the controller's at the same load; {bound:.1%} is allowed"
            )
            verdict.faults.append(Fault("curves disagree", view, 1, 0, at, says))


def _windows(rows: pd.DataFrame) -> list[slice]:
    """Stretches of equally many answers, in the controller's order."""
    count = min(100, len(rows) // (LEAST // 4))
    edges = np.linspace(0, len(rows), count + 1).astype(int)
    return [slice(a, b) for a, b in pairwise(edges)]


def _loads(rows: pd.DataFrame, view: str, windows: Sequence[slice]) -> list[tuple[float, float]]:
    suffix = "" if view == "controller" else f"_{view}"
    done = rows[f"ps_done{suffix}"].to_numpy(float)
    latency = rows[f"latency{suffix}"].to_numpy(float)
    size = rows["bytes"].to_numpy(float)
    loads = []
    for window in windows:
        times = done[window]
        took = max(times.max() - times.min(), 1.0)
        loads.append((float(size[window][1:].sum() / took * 1000), float(latency[window].mean())))
    return [(gb, ps / 1000) for gb, ps in loads]


def _grouped(
    loads: Sequence[tuple[float, float]], groups: Sequence[np.ndarray]
) -> list[tuple[float, float]]:
    every = np.array(loads)
    return [(float(every[g, 0].mean()), float(every[g, 1].mean())) for g in groups]


def _speed(rows: pd.DataFrame, view: str) -> float:
    """The view's time relative to the controller's, by medians at both ends."""
    tenth = max(len(rows) // 10, 1)
    ours, theirs = rows["ps_done"], rows[f"ps_done_{view}"]
    span = ours.tail(tenth).median() - ours.head(tenth).median()
    seen = theirs.tail(tenth).median() - theirs.head(tenth).median()
    return float(seen / span) if span > 0 else 1.0
