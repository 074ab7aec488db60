"""Ready-made checks, of real programs as they are, and of the same programs without one sync."""

from __future__ import annotations

import os
import shlex
import shutil
import sqlite3
import subprocess
from pathlib import Path
from typing import Any

import pytest
from sardonyx import _core
from sardonyx.crash_tests import files, ready_made
from sardonyx.crash_tests.ready_made import CHECKS
from test_cli_hostile import ended
from test_crash_servers import search

PROGRAMS = Path(__file__).parents[2] / "crates/crash-files/tests/programs"
#: Each check, and parts of the names of files without whose syncs it has to fail.
SYNCS = {
    "git": ["/objects/"],
    "leveldb": [".log", ".ldb", "MANIFEST"],
    "lmdb": ["data.mdb"],
    "postgres": ["pg_wal"],
    "redis": [".incr.aof", "temp-rewriteaof"],
    "rocksdb": [".log", ".sst", "MANIFEST"],
    "sqlite": ["-journal"],
}
LIBRARIES = ("leveldb", "lmdb", "rocksdb")


def check(name: str) -> str:
    """What is given to ``--check``, with promises where there are keys; skips without its tool."""
    acks = " {acks}" if CHECKS[name].keyed else ""
    try:
        files.ready_made(name, acks.strip())
    except _core.SardonyxError as error:
        pytest.skip(str(error))
    return name + acks


def wrong(name: str, folder: Path, acks: bytes = b"") -> str:
    """What a check finds wrong, if anything."""
    check(name)
    tool = shlex.split(files.ready_made(name, ""))[5]
    return ready_made.wrong(name, tool, folder, acks) or ""


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of what is compiled."""
    place = tmp_path_factory.mktemp("made")
    library = ["cc", "-shared", "-fPIC", "-o", "no_sync.so", str(PROGRAMS / "no_sync.c")]
    subprocess.run(library, cwd=place, check=True)
    return place


def store(name: str, made: Path) -> str:
    """The program that puts items into a library's database."""
    source = str(PROGRAMS / "stores.c")
    words = ["cc", "-g", "-w", f"-DSTORE={name}", "-o", name, source, f"-l{name}"]
    if subprocess.run(words, cwd=made, capture_output=True, check=False).returncode:
        pytest.skip(f"there are no headers of {name} here; on Debian: lib{name}-dev")
    return str(made / name)


def cluster(place: Path) -> str:
    """Make a cluster of PostgreSQL with a table; the server's command, whose user is not root."""
    tool = Path(shlex.split(files.ready_made("postgres", ""))[5])
    user = ["unshare", "--user", "--map-user=1000"] if os.getuid() == 0 else []
    words = [*user, str(tool.with_name("initdb")), "-k", "-N", "--wal-segsize=1", "-D", str(place)]
    if subprocess.run(words, capture_output=True, check=False).returncode:
        pytest.skip("initdb does not run here")
    words = [*user, str(tool), "--single", "-j", "-D", str(place), "postgres"]
    made = b"CREATE TABLE t (n int PRIMARY KEY, text text);\n"
    subprocess.run(words, input=made, capture_output=True, check=True)
    return shlex.join([*user, str(tool)])


def program(name: str, place: Path, made: Path) -> tuple[list[str], list[str]]:
    """Options, and a program that syncs all that it promises, in a folder that it may prepare."""
    if name in LIBRARIES:
        puts = [store(name, made), str(place)]
        if name == "lmdb":  # what a cut leaves of one that is being made it never opens again
            subprocess.run([*puts, "made"], check=True)
        return [], puts
    if name == "redis":
        where = place.parent / "s"
        ask = f"redis-cli -s {where}"
        put = f"for n in 1 2 3 4 5; do {ask} set key$n {'x' * 500}$n >&2; echo key$n {'x' * 500}$n"
        client = f"{put}; test $n != 3 || {ask} bgrewriteaof >&2; done; sleep 1; {ask} ping >&2"
        words = f"redis-server --port 0 --unixsocket {where} --dir {place} --appendonly yes"
        always = [*words.split(), "--appendfsync", "always", "--save", ""]
        return ["--client", client, "--ready", f"{ask} ping"], always
    if name == "postgres":
        server = cluster(place / "c")
        insert = "INSERT INTO t SELECT g, 'x' FROM generate_series(1, 300) g;"
        shell = f'echo "{insert}" | {server} --single -j -D {place}/c postgres'
        return [], ["sh", "-c", shell]
    if name == "git":
        git = "git -c user.name=a -c user.email=b -c core.fsyncMethod=fsync -c core.fsync=all"
        subprocess.run(["git", "init", "-q", str(place)], check=True)
        one = f"echo $n > f; {git} add f; {git} commit -q -m c$n"
        return [], ["sh", "-c", f"cd {place}; for n in 1 2; do {one}; done"]
    with sqlite3.connect(place / "a.db") as database:
        database.execute("CREATE TABLE t (n INTEGER PRIMARY KEY, text)")
        database.executemany("INSERT INTO t (text) VALUES (?)", [("x" * 900,)] * 8)
    row = f"UPDATE t SET text = '{'y' * 900}'"
    return [], ["sqlite3", str(place / "a.db"), f"PRAGMA synchronous=FULL; {row};"]


def found(name: str, tmp_path: Path, made: Path, *before: str) -> dict[str, Any]:
    """What a check finds of its program, run behind some words."""
    given = check(name)
    if name == "sqlite" and shutil.which("sqlite3") is None:
        pytest.skip("there is no sqlite3 here")
    place = tmp_path / "d"
    place.mkdir()
    options, words = program(name, place, made)
    return search(place, "--check", given, *options, "--", *before, *words)


@pytest.mark.machine
@pytest.mark.parametrize("name", SYNCS)
def test_a_program_that_syncs_is_not_flagged(name: str, tmp_path: Path, made: Path) -> None:
    told = found(name, tmp_path, made)
    assert told["status"] == 0 and told["images"] > 0, told


@pytest.mark.machine
@pytest.mark.parametrize(("name", "sync"), [(name, s) for name in SYNCS for s in SYNCS[name]])
def test_a_sync_that_is_left_out_is_found(name: str, sync: str, tmp_path: Path, made: Path) -> None:
    left_out = ["env", f"LD_PRELOAD={made / 'no_sync.so'}", f"NO_SYNC={sync}"]
    told = found(name, tmp_path, made, *left_out)
    assert told["status"] == 1, told
    named = {
        one["path"] for cause in told["causes"] for role in ("early", "late") for one in cause[role]
    }
    assert named


@pytest.mark.parametrize("name", CHECKS)
def test_a_check_that_has_nothing_to_look_at_is_no_green_answer(name: str, tmp_path: Path) -> None:
    check(name)
    place = tmp_path / "d"
    place.mkdir()
    words = ("--check", name, "--budget", "5s", "--", "sh", "-c", f"echo a > {place}/f")
    status, _, err = ended("crash-test", "files", "--files", str(place), *words)
    assert status == 2
    assert f"--check {name}: the program leaves no" in err


def test_a_check_without_its_tool_or_keys_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(_core.SardonyxError, match="holds nothing to what was printed"):
        files.ready_made("git", "{acks}")
    monkeypatch.setenv("PATH", "/none")
    with pytest.raises(_core.SardonyxError, match="apt-get install redis-server"):
        files.ready_made("redis", "")


def test_the_check_of_sqlite_tells_what_is_wrong(tmp_path: Path) -> None:
    assert not wrong("sqlite", tmp_path)
    with sqlite3.connect(tmp_path / "a.db") as database:
        database.execute("CREATE TABLE t (n)")
        database.executemany("INSERT INTO t VALUES (?)", [("x" * 500,)] * 50)
    assert not wrong("sqlite", tmp_path)
    whole = (tmp_path / "a.db").read_bytes()
    (tmp_path / "a.db").write_bytes(whole[:4096] + bytes(4096) + whole[8192:])
    assert "a.db" in wrong("sqlite", tmp_path)
    (tmp_path / "a.db").write_bytes(bytes(100) + whole[100:])
    assert "not a database" in wrong("sqlite", tmp_path)


def test_the_check_of_git_reads_objects_and_the_index(tmp_path: Path) -> None:
    check("git")
    place = tmp_path / "r"
    subprocess.run(["git", "init", "-q", str(place)], check=True)
    assert not wrong("git", tmp_path)
    (place / "f").write_text("f\n")
    subprocess.run(["git", "-C", str(place), "add", "f"], check=True)
    assert not wrong("git", tmp_path)
    index = place / ".git" / "index"
    held = index.read_bytes()
    index.write_bytes(b"")
    assert "index" in wrong("git", tmp_path)
    index.write_bytes(held)
    (loose,) = (place / ".git" / "objects").glob("??/*")
    loose.chmod(0o644)
    loose.write_bytes(b"")
    assert "fsck" in wrong("git", tmp_path)


@pytest.mark.machine
@pytest.mark.parametrize("name", LIBRARIES)
def test_a_check_of_keys_reads_every_item_and_what_was_promised(
    name: str, tmp_path: Path, made: Path
) -> None:
    check(name)
    ran = subprocess.run([store(name, made), str(tmp_path)], capture_output=True, check=True)
    lines = ran.stdout
    assert lines.count(b"\n") == 8
    assert not wrong(name, tmp_path, lines)
    assert not wrong(name, tmp_path, lines + b"key1 cut o")
    assert "it is gone" in wrong(name, tmp_path, b"none value\n")
    assert "'key1 other' was promised, and it is '" in wrong(name, tmp_path, b"key1 other\n")
    assert "which is no 'KEY VALUE'" in wrong(name, tmp_path, b"OK\n")
    for path in tmp_path.iterdir():
        if path.suffix in (".mdb", ".ldb", ".sst"):
            whole, kept = path.read_bytes(), 8192 if path.suffix == ".mdb" else 50
            path.write_bytes(whole[:kept] + bytes(len(whole) - kept))
    assert wrong(name, tmp_path).startswith(("data.mdb", f"{name}: "))


@pytest.mark.machine
def test_an_environment_that_was_never_finished_is_wrong_only_where_something_was_promised(
    tmp_path: Path,
) -> None:
    (tmp_path / "data.mdb").write_bytes(bytes(8192))
    assert wrong("lmdb", tmp_path) == ""
    assert "it is gone" in wrong("lmdb", tmp_path, b"key value\n")
    (tmp_path / "data.mdb").write_bytes(bytes(3 * 4096))
    assert "MDB_INVALID" in wrong("lmdb", tmp_path)


@pytest.mark.machine
def test_the_check_of_redis_mends_a_torn_end_and_nothing_else(tmp_path: Path) -> None:
    check("redis")
    place = tmp_path / "appendonlydir"
    place.mkdir()
    (place / "a.manifest").write_text("file a.1 seq 1 type i\n")
    put = b"*3\r\n$3\r\nset\r\n$1\r\nk\r\n$1\r\nv\r\n"
    for text, fault in ((put + b"*3\r\n$3", ""), (put + bytes(40), ""), (bytes(9) + put, "gone")):
        (place / "a.1").write_bytes(text)
        assert fault in wrong("redis", tmp_path, b"k v\n")
        assert bool(wrong("redis", tmp_path, b"k v\n")) == bool(fault)
    (place / "a.manifest").write_text("file b.1 seq 1 type b\n")
    assert "a.manifest: " in wrong("redis", tmp_path)


@pytest.mark.machine
def test_the_check_of_postgres_reads_every_page(tmp_path: Path) -> None:
    check("postgres")
    place = tmp_path / "d"
    cluster(place)
    assert not wrong("postgres", tmp_path)
    (place / "postmaster.pid").write_bytes(b"")
    assert not wrong("postgres", tmp_path)
    largest = max((place / "base/1").iterdir(), key=lambda path: path.stat().st_size)
    whole = largest.read_bytes()
    largest.write_bytes(whole[:20000] + bytes(100) + whole[20100:])
    assert "invalid page" in wrong("postgres", tmp_path)
