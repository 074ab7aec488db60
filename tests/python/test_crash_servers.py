"""Crash tests of servers, by what their clients were told; ready-made checks of real programs."""

from __future__ import annotations

import json
import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from sardonyx.crash_tests import ready_made
from sardonyx.crash_tests.served import served
from test_cli_hostile import ended

#: Appends each line that a client sends to DIR/log, and answers; it syncs first, or not.
SERVER = """\
import os, socketserver, sys

log = os.open(sys.argv[1] + "/log", os.O_CREAT | os.O_WRONLY | os.O_APPEND)


class Handler(socketserver.StreamRequestHandler):
    def handle(self):
        for line in self.rfile:
            os.write(log, line)
            if sys.argv[3] == "syncs":
                os.fsync(log)
            self.wfile.write(line)


print("starting", flush=True)
socketserver.UnixStreamServer(sys.argv[2], Handler).serve_forever()
"""
CLIENT = """\
import socket, sys

with socket.socket(socket.AF_UNIX) as server:
    server.connect(sys.argv[1])
    answers = server.makefile()
    for number in range(3):
        server.sendall(b"record %d\\n" % number)
        print(answers.readline(), end="", flush=True)
"""
KEPT = (
    "sh -c 'touch {dir}/log; while read -r line; do "
    'grep -qx "$line" {dir}/log || exit 4; done < {acks}\''
)


def search(place: Path, *words: str) -> dict[str, Any]:
    """What is found in a new folder, with the status that the command ended with."""
    line = ["crash-test", "files", "--files", str(place), "--budget", "40s", "--json", "-"]
    status, out, err = ended(*line, *words)
    assert status in (0, 1, 3), err
    found: dict[str, Any] = json.loads(out)
    return found | {"status": status}


@pytest.mark.machine
@pytest.mark.parametrize(("how", "status"), [("syncs", 0), ("hopes", 1)])
def test_a_server_is_held_to_what_its_client_was_told(
    how: str, status: int, tmp_path: Path
) -> None:
    for name, text in (("server.py", SERVER), ("client.py", CLIENT)):
        (tmp_path / name).write_text(text)
    place, socket = tmp_path / "d", tmp_path / "s"
    place.mkdir()
    client = f"{sys.executable} {tmp_path}/client.py {socket}"
    server = [sys.executable, f"{tmp_path}/server.py", str(place), str(socket), how]
    more = ["--recover", KEPT, "--client", client, "--ready", f"test -S {socket}"]
    found = search(place, *more, "--", *server)
    assert found["status"] == status, found
    assert found["acknowledgements"] >= 3 and found["ended"] == "exit status 0"
    places = {one["place"] for cause in found["causes"] for one in cause["late"]}
    assert ("server.py:9" in places) == (status == 1)


def test_a_server_that_ends_too_early_fails_the_run() -> None:
    words = served(["false"], "true", "false", None)
    ran = subprocess.run(words, capture_output=True, timeout=60, check=False)
    assert ran.returncode == 125
    words = served(["sleep", "98"], "echo told; exit 3", None, None)
    ran = subprocess.run(words, capture_output=True, timeout=60, check=False)
    assert (ran.returncode, ran.stdout) == (3, b"told\n")


@pytest.mark.machine
@pytest.mark.skipif(shutil.which("sqlite3") is None, reason="there is no sqlite3 here")
@pytest.mark.parametrize(("synchronous", "status"), [("FULL", 0), ("OFF", 1)])
def test_sqlite_is_checked_by_a_ready_made_check(
    synchronous: str, status: int, tmp_path: Path
) -> None:
    place = tmp_path / "d"
    place.mkdir()
    with sqlite3.connect(place / "a.db") as database:
        database.execute("CREATE TABLE t (n INTEGER PRIMARY KEY, text)")
        database.executemany("INSERT INTO t (text) VALUES (?)", [("x" * 900,)] * 8)
    row = f"INSERT INTO t (text) VALUES ('{'y' * 900}');"
    script = f"PRAGMA synchronous={synchronous}; BEGIN; {row * 5} COMMIT;"
    found = search(place, "--check", "sqlite", "--", "sqlite3", str(place / "a.db"), script)
    assert found["status"] == status, found


@pytest.mark.machine
@pytest.mark.skipif(shutil.which("git") is None, reason="there is no git here")
@pytest.mark.parametrize(("fsync", "status"), [("all", 0), ("none", 1)])
def test_git_is_checked_by_a_ready_made_check(fsync: str, status: int, tmp_path: Path) -> None:
    place = tmp_path / "d"
    place.mkdir()
    git = "git -c user.name=a -c user.email=b -c core.fsyncMethod=fsync -c core.fsync=" + fsync
    subprocess.run(["git", "init", "-q", str(place)], check=True)
    script = tmp_path / "commit.sh"
    script.write_text(
        f"cd {place}\nfor n in 1 2; do\n    echo $n > f\n    {git} add f\n"
        f"    {git} commit -q -m c$n\ndone\n"
    )
    found = search(place, "--check", "git", "--", "sh", str(script))
    assert found["status"] == status, found


@pytest.mark.parametrize("check", ready_made.CHECKS)
def test_a_check_that_has_nothing_to_look_at_is_no_green_answer(check: str, tmp_path: Path) -> None:
    place = tmp_path / "d"
    place.mkdir()
    words = ("--check", check, "--budget", "5s", "--", "sh", "-c", f"echo a > {place}/f")
    status, _, err = ended("crash-test", "files", "--files", str(place), *words)
    assert status == 2
    assert f"--check {check}: the program leaves no" in err


def test_ready_made_checks_tell_what_is_wrong(tmp_path: Path) -> None:
    assert ready_made.sqlite(tmp_path) is None
    with sqlite3.connect(tmp_path / "a.db") as database:
        database.execute("CREATE TABLE t (n)")
        database.executemany("INSERT INTO t VALUES (?)", [("x" * 500,)] * 50)
    assert ready_made.sqlite(tmp_path) is None
    whole = (tmp_path / "a.db").read_bytes()
    (tmp_path / "a.db").write_bytes(whole[:4096] + bytes(4096) + whole[8192:])
    assert "a.db" in (ready_made.sqlite(tmp_path) or "")
    (tmp_path / "a.db").write_bytes(bytes(100) + whole[100:])
    assert "not a database" in (ready_made.sqlite(tmp_path) or "")


@pytest.mark.skipif(shutil.which("git") is None, reason="there is no git here")
def test_the_check_of_git_reads_objects_and_the_index(tmp_path: Path) -> None:
    place = tmp_path / "r"
    subprocess.run(["git", "init", "-q", str(place)], check=True)
    assert ready_made.git(tmp_path) is None
    (place / "f").write_text("f\n")
    subprocess.run(["git", "-C", str(place), "add", "f"], check=True)
    assert ready_made.git(tmp_path) is None
    index = place / ".git" / "index"
    held = index.read_bytes()
    index.write_bytes(b"")
    assert "index" in (ready_made.git(tmp_path) or "")
    index.write_bytes(held)
    (loose,) = (place / ".git" / "objects").glob("??/*")
    loose.chmod(0o644)
    loose.write_bytes(b"")
    assert "fsck" in (ready_made.git(tmp_path) or "")


@pytest.mark.machine
@pytest.mark.skipif(shutil.which("git") is None, reason="there is no git here")
def test_a_fault_of_git_is_one_cause_in_each_run_whatever_is_committed(tmp_path: Path) -> None:
    place, base = tmp_path / "d", str(tmp_path / "base.json")

    def found(message: str, *more: str) -> dict[str, Any]:
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir()
        subprocess.run(["git", "init", "-q", str(place)], check=True)
        git = "git -c user.name=a -c user.email=b -c core.fsync=none"
        script = f"cd {place}; echo {message} > f; {git} add f; {git} commit -q -m {message}"
        return search(place, "--check", "git", *more, "--", "sh", "-c", script)

    first = found("c1", "--write-baseline", base)
    assert first["status"] == 1
    objects = [
        one
        for cause in first["causes"]
        for role in ("early", "late")
        for one in cause[role]
        if "/objects/" in one["path"]
    ]
    assert objects and {one["key"][1] for one in objects} == {".git/objects/#/#"}
    again = found("c2", "--baseline", base)
    assert any(cause["accepted"] for cause in again["causes"]), again["causes"]
