"""Crash tests of programs in languages without debug information: each fault at its own line."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from test_cli_hostile import ended
from test_crash_files import BOTH, search

#: Two records, each in a file of its own that nobody syncs, by a function that both share.
PYTHON = """\
import sys


def put(file, text):
    file.write(text)


def first(place):
    with open(f"{place}/a", "ab", 0) as file:
        put(file, b"a 0\\n")
        %s
    print("a 0", flush=True)


def second(place):
    with open(f"{place}/b", "ab", 0) as file:
        file.write(
            b"b 0\\n",
        )
        %s
    print("b 0", flush=True)


first(sys.argv[1])
second(sys.argv[1])
"""


def python(version: str) -> str:
    """An interpreter of a version; the test is skipped if there is none."""
    own = f"{sys.version_info.major}.{sys.version_info.minor}"
    places = [sys.executable] if version == own else []
    places += sorted(map(str, Path.home().glob(f".pyenv/versions/{version}.*/bin/python3")))
    for place in [*places, f"python{version}"]:
        if shutil.which(place) and not subprocess.run([place, "-c", ""], check=False).returncode:
            return place
    pytest.skip(f"there is no Python {version} here")


def faults(place: Path, program: str, *more: str) -> dict[str, Any]:
    """What is found of a program that writes to two empty files."""
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir()
    for name in "ab":
        (place / name).touch()
    return search(place, BOTH, program, *more)


def late(found: dict[str, Any]) -> list[str]:
    """The place of each cause's first late operation."""
    return sorted(cause["late"][0]["place"] for cause in found["causes"])


@pytest.mark.machine
@pytest.mark.parametrize("version", ["3.11", "3.12", "3.13"])
def test_two_faults_in_python_are_two_causes_with_their_lines(version: str, tmp_path: Path) -> None:
    interpreter, script = python(version), tmp_path / "two.py"
    place, base = tmp_path / "d", str(tmp_path / "base.json")

    def ran(first: str, *more: str) -> dict[str, Any]:
        script.write_text(PYTHON % (first, "pass"))
        return faults(place, f"{interpreter} {script} {place}", *more)

    found = ran("pass")
    assert found["status"] == 1 and late(found) == ["two.py:17", "two.py:5"], found
    stacks = {tuple(cause["late"][0]["calls"]) for cause in found["causes"]}
    assert stacks == {
        ("put two.py:5", "first two.py:10", "<module> two.py:24"),
        ("second two.py:17", "<module> two.py:25"),
    }
    one = ran("import os; os.fsync(file.fileno())", "--write-baseline", base)
    assert late(one) == ["two.py:17"]
    both = ran("pass", "--baseline", base)
    assert both["status"] == 1
    assert [cause["accepted"] for cause in both["causes"]].count(True) == 1


@pytest.mark.machine
def test_python_that_calls_a_library_is_named_by_its_own_line(tmp_path: Path) -> None:
    script = tmp_path / "box.py"
    script.write_text(
        "import pathlib, sys\nfor name in 'ab':\n"
        "    pathlib.Path(sys.argv[1], name).write_text(f'{name} 0\\n')\n"
        "    print(f'{name} 0', flush=True)\n"
    )
    found = faults(tmp_path / "d", f"{python('3.11')} {script} {tmp_path}/d")
    assert found["status"] == 1 and set(late(found)) == {"box.py:3"}


def listed(place: Path, *program: str) -> dict[str, str]:
    """The place of each operation of a program that works in a folder with a file ``a``."""
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir()
    (place / "a").write_text("old\n")
    status, out, err = ended(
        *("crash-test", "files", "--files", str(place), "--list", "--json", "-", "--", *program)
    )
    assert status == 0, err
    return {one["operation"]: one["place"] for one in json.loads(out)["list"]}


@pytest.mark.machine
@pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash here")
def test_a_script_of_bash_is_named_by_its_lines_and_by_the_commands_that_it_runs(
    tmp_path: Path,
) -> None:
    script = tmp_path / "save.sh"
    script.write_text(
        'cd "$1"\nsave() {\n    cp a "$1"\n    echo x >> $1\n}\nsave k\n'
        "for name in l m; do\n    mkdir $name\ndone\n(echo x > sub)\n"
    )
    found = listed(tmp_path / "d", "bash", str(script), str(tmp_path / "d"))
    assert found["open(k)"] == "'cp' of save.sh:3"
    assert found["write(k, [4, 6))"] == "save.sh:4"
    assert found["mkdir(l)"] == found["mkdir(m)"] == "'mkdir' of save.sh:8"
    assert found["write(sub, [0, 2))"] == "save.sh:10"


@pytest.mark.machine
def test_a_command_is_named_without_its_arguments_and_by_the_line_that_ran_it(
    tmp_path: Path,
) -> None:
    place = tmp_path / "d"
    found = listed(place, "sh", "-c", f"cd {place}; ln a b; ln a c; echo x > d")
    assert found["link(b)"] == found["link(c)"]
    assert re.fullmatch(r"'ln'\+0x[0-9a-f]+", found["link(b)"])
    assert found["write(d, [0, 2))"] == "'sh -c'"
    script = tmp_path / "run.py"
    script.write_text(
        "import subprocess, sys\n\n\ndef link(name):\n"
        "    subprocess.run(['ln', 'a', name], cwd=sys.argv[1])\n\n\nlink('b')\n"
    )
    found = listed(place, python("3.11"), str(script), str(place))
    assert found["link(b)"] == "'ln' of run.py:5"
    source = tmp_path / "run.c"
    source.write_text(
        "#include <stdlib.h>\n#include <unistd.h>\nint main(int n, char **words) {\n"
        '    return chdir(words[n - 1])\n        || system("ln a b");\n}\n'
    )
    subprocess.run(["cc", "-g", "-o", str(tmp_path / "run"), str(source)], check=True)
    found = listed(place, str(tmp_path / "run"), str(place))
    assert found["link(b)"] == "'ln' of run.c:5"


NODE = """const fs = require("fs");
const place = process.argv[2];
function first() {
    fs.appendFileSync(place + "/a", "a 0\\n");
    fs.writeSync(1, "a 0\\n");
}
function second() {
    fs.appendFileSync(place + "/b", "b 0\\n");
    fs.writeSync(1, "b 0\\n");
}
first();
second();
"""


@pytest.mark.machine
@pytest.mark.skipif(shutil.which("node") is None, reason="there is no Node here")
def test_two_faults_in_node_are_two_causes_with_their_functions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = "--perf-basic-prof --interpreted-frames-native-stack"
    monkeypatch.setenv("NODE_OPTIONS", options)
    monkeypatch.chdir(tmp_path)  # V8 leaves a log where it runs
    script = tmp_path / "two.js"
    script.write_text(NODE)
    found = faults(tmp_path / "d", f"node {script} {tmp_path}/d")
    assert found["status"] == 1 and late(found) == ["two.js:3", "two.js:7"], found


JAVA = """\
import java.io.*;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.*;

public class Two {
    static void put(FileChannel file, String text) throws IOException {
        file.write(ByteBuffer.wrap(text.getBytes())); // FAULT
    }

    static void first(String place) throws IOException {
        try (FileChannel file = FileChannel.open(Path.of(place, "a"), StandardOpenOption.WRITE)) {
            put(file, "a 0\\n");
        }
        System.out.println("a 0");
    }

    public static void main(String[] words) throws IOException {
        first(words[0]);
        try (FileOutputStream file = new FileOutputStream(words[0] + "/b", true)) {
            file.write("b 0\\n".getBytes()); // FAULT
        }
        System.out.println("b 0");
    }
}
"""


@pytest.mark.machine
@pytest.mark.skipif(shutil.which("javac") is None, reason="there is no Java compiler here")
def test_two_faults_in_java_are_two_causes_with_their_lines(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JAVA_TOOL_OPTIONS", "-Xint")
    (tmp_path / "Two.java").write_text(JAVA)
    subprocess.run(["javac", "-g", "-d", str(tmp_path), str(tmp_path / "Two.java")], check=True)
    found = faults(tmp_path / "d", f"java -cp {tmp_path} Two {tmp_path}/d")
    lines = [n for n, line in enumerate(JAVA.splitlines(), 1) if "FAULT" in line]
    assert found["status"] == 1 and late(found) == sorted(f"Two.java:{n}" for n in lines), found
    calls = {tuple(cause["late"][0]["calls"])[:2] for cause in found["causes"]}
    assert ("Two.put Two.java:8", "Two.first Two.java:13") in calls


@pytest.mark.machine
def test_a_call_that_promises_nothing_is_named(tmp_path: Path) -> None:
    source = tmp_path / "hint.c"
    source.write_text(
        "#define _GNU_SOURCE\n#include <fcntl.h>\n#include <unistd.h>\n"
        "int main(int n, char **words) {\n    if (chdir(words[n - 1])) return 2;\n"
        '    int f = open("a", O_WRONLY | O_APPEND);\n    if (write(f, "a 0\\n", 4) != 4)\n'
        "        return 2;\n    sync_file_range(f, 0, 0, SYNC_FILE_RANGE_WRITE);\n"
        '    return write(1, "a 0\\n", 4) != 4;\n}\n'
    )
    subprocess.run(["cc", "-g", "-o", str(tmp_path / "hint"), str(source)], check=True)
    found = faults(tmp_path / "d", f"{tmp_path}/hint {tmp_path}/d")
    (cause,) = found["causes"]
    fate = "sync_file_range(a) at hint.c:9 promises nothing; no fsync of a after it"
    assert cause["late"][0]["fate"] == fate


@pytest.mark.machine
def test_places_that_never_wrote_or_synced_are_listed(tmp_path: Path) -> None:
    source = tmp_path / "half.c"
    source.write_text(
        "#include <fcntl.h>\n#include <stdio.h>\n#include <unistd.h>\n"
        "static void __attribute__((noinline)) undo(int f) {\n"
        "    if (ftruncate(f, 0)) perror(0);\n    fsync(f);\n}\n"
        "int main(int n, char **words) {\n    if (chdir(words[n - 1])) return 2;\n"
        '    int f = open("a", O_WRONLY | O_APPEND);\n    if (n > 2) undo(f);\n'
        '    if (write(f, "a 0\\n", 4) != 4) return 2;\n    fsync(f);\n'
        '    return write(1, "a 0\\n", 4) != 4;\n}\n'
    )
    subprocess.run(["cc", "-g", "-o", str(tmp_path / "half"), str(source)], check=True)
    found = faults(tmp_path / "d", f"{tmp_path}/half {tmp_path}/d")
    assert found["status"] == 0, found
    listed = {(one["place"], one["what"]) for one in found["coverage"]["listed"]}
    assert listed == {("half.c:5", "ftruncate"), ("half.c:6", "fsync")}


@pytest.mark.machine
@pytest.mark.parametrize(
    ("after", "said"),
    [
        ("pass", "whose result it ignored"),
        ("os.fsync(f)", "which it tried again, though a failed sync's data are lost"),
    ],
)
def test_what_a_program_did_with_a_failed_call_is_said(
    after: str, said: str, tmp_path: Path
) -> None:
    script = tmp_path / "one.py"
    script.write_text(
        "import os, sys\nf = os.open(sys.argv[1] + '/a', os.O_WRONLY | os.O_APPEND)\n"
        f"os.write(f, b'a 0\\n')\ntry:\n    os.fsync(f)\nexcept OSError:\n    {after}\n"
        "os.write(1, b'a 0\\n')\n"
    )
    found = faults(tmp_path / "d", f"{python('3.11')} {script} {tmp_path}/d", "--errors")
    assert any(said in cause["summary"] for cause in found["causes"]), found["causes"]


@pytest.mark.machine
def test_people_read_short_lines_and_all_of_them_if_they_ask(tmp_path: Path) -> None:
    name = "a_function_with_a_name_that_is_far_too_long_for_a_line"
    script = tmp_path / "long.py"
    script.write_text(
        f"import sys\ndef {name}(depth):\n    if depth:\n        return {name}(depth - 1)\n"
        "    with open(sys.argv[1] + '/a', 'ab', 0) as file:\n        file.write(b'a 0\\n')\n"
        f"{name}(9)\nprint('a 0')\n"
    )
    told = []
    for more in ([], ["--verbose"]):
        place = tmp_path / "d"
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir()
        for each in "ab":
            (place / each).touch()
        line = ["crash-test", "files", "--files", str(place), "--recover", BOTH, *more, "--"]
        status, out, err = ended(*line, python("3.11"), str(script), str(place))
        assert status == 1, err
        told.append(out.splitlines())
    (late_line,) = (line for line in told[0] if line.startswith("   late: "))
    assert len(late_line) <= 100 and f"{name} long.py:6" in late_line
    assert sum(name in line for line in told[1]) > 10 > sum(name in line for line in told[0])
