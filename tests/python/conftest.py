"""What every test stands on, and what it costs.

Tests marked ``slow`` or ``machine`` run in ``make test-all`` only. The processor time of each test,
with the programs that it waited for, goes to ``target/times.tsv``; the rules are in
``tools/costs.py``.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Generator

import costs
import pytest
from test_cli_fixture import core, sardonyx, trace

# A background job of a shell ignores SIGINT, under nohup SIGHUP too. So would every program that a
# test starts and then ends by a signal. What has a handler or its default here starts with its
# default.
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGHUP, signal.SIG_DFL)

#: Fixtures of several files.
__all__ = ["core", "sardonyx", "trace"]
MARKS = ("machine", "slow")
_PATH = os.environ.get("PATH", os.defpath)
_measured: list[costs.Cost] = []
_BEGAN = pytest.StashKey[float]()


def _spent() -> float:
    """Seconds of processor time of this process and of those that it has waited for."""
    return sum(os.times()[:4])


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Measure a test; without the mark ``machine`` its PATH begins with the spies."""
    os.environ["SARDONYX_TEST"] = item.nodeid
    machine = item.get_closest_marker("machine") is not None
    os.environ["PATH"] = _PATH if machine else f"{costs.spies()}{os.pathsep}{_PATH}"
    item.stash[_BEGAN] = _spent()
    try:
        return (yield)
    finally:
        os.environ["PATH"] = _PATH


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Put what a test has cost into its last report, which xdist carries to the main process."""
    report = yield
    if call.when == "teardown":
        mark = next((mark for mark in MARKS if item.get_closest_marker(mark)), "")
        cost = (_spent() - item.stash[_BEGAN], mark)
        report.user_properties = [*item.user_properties, ("cost", cost)]
    return report


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Collect what tests have cost."""
    for name, value in report.user_properties:
        if name == "cost" and report.when == "teardown" and isinstance(value, list | tuple):
            seconds, mark = value
            _measured.append(costs.Cost("python", report.nodeid, seconds, mark or None))


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Judge the costs in the process that prints the summary."""
    if hasattr(session.config, "workerinput") or not _measured:
        return
    whole = not (session.config.option.keyword or session.config.option.file_or_dir)
    print()
    wrong = costs.judge("python", _measured, whole)
    for line in wrong:
        print(line)
    if wrong and session.exitstatus == 0:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
