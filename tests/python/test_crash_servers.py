"""Crash tests of servers, by what their clients were told; faults of git, by their causes."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
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
