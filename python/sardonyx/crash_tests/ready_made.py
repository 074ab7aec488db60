"""Ready-made checks of a folder: ``python ready_made.py NAME TOOL DIR [ACKS]``.

Each lets the program's own recovery run and asks it whether the data are whole. Stores of keys are
also held to what was promised, lines ``KEY VALUE`` in ACKS. A recovery runs this file alone, many
times, so it needs nothing but Python, and the program or library that it asks; and it imports
what one check uses only there.
"""

from __future__ import annotations

import ctypes
import os
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    import subprocess

#: The items of a store: its keys and their values.
Items = Iterator[tuple[bytes, bytes]]


class Wrong(Exception):
    """Something is wrong with a folder, and what."""


def first(ran: subprocess.CompletedProcess[str], folder: Path) -> str:
    """The first line that a program printed of what is wrong."""
    said = [line for line in (ran.stderr + ran.stdout).splitlines() if line.strip()]
    said = [line for line in said if not line.startswith("notice")]
    return said[0].replace(f"{folder}/", "") if said else f"exit status {ran.returncode}"


HEADER = b"SQLite format 3\0"
#: Names that databases have, and files beside them that only databases have.
SQLITE_NAMES = {".db", ".db3", ".sqlite", ".sqlite3"}
BESIDE = ("-journal", "-wal")


def databases(folder: Path) -> Iterator[Path]:
    """The SQLite databases of a folder, by name, by header, or by a log beside them."""
    for path in sorted(folder.rglob("*")):
        if not path.is_file() or path.name.endswith((*BESIDE, "-shm")):
            continue
        with path.open("rb") as file:
            known = file.read(len(HEADER)) == HEADER
        logged = any(path.with_name(path.name + end).exists() for end in BESIDE)
        if known or logged or path.suffix in SQLITE_NAMES:
            yield path


def sqlite(path: Path, _: str) -> Items:
    """Let SQLite recover a database, and check it."""
    import sqlite3

    try:
        with sqlite3.connect(path) as database:
            found = [str(row[0]) for row in database.execute("PRAGMA integrity_check")]
    except sqlite3.Error as error:
        found = [str(error)]
    if found != ["ok"]:
        raise Wrong(f"{path.name}: {found[0]}")
    yield from ()


def repositories(folder: Path) -> Iterator[Path]:
    """The git repositories of a folder, bare or not, whose making was finished."""
    for head in sorted(folder.rglob("HEAD")):
        if (head.parent / "objects").is_dir() and (head.parent / "refs").is_dir():
            yield head.parent


def git(place: Path, tool: str) -> Items:
    """Read a repository's objects, references and index."""
    import subprocess

    environment = os.environ | {"GIT_CONFIG_NOSYSTEM": "1", "GIT_OPTIONAL_LOCKS": "0"}
    ask = [tool, "-c", "safe.directory=*", f"--git-dir={place}"]
    for what in (["fsck", "--full", "--no-dangling", "--no-progress"], ["ls-files", "-s"]):
        ran = subprocess.run(
            [*ask, *what], env=environment, capture_output=True, text=True, check=False
        )
        if ran.returncode:
            raise Wrong(f"git {what[0]}: {first(ran, place.parent)}")
    yield from ()


class Value(ctypes.Structure):
    """LMDB's ``MDB_val``."""

    _fields_ = (("size", ctypes.c_size_t), ("data", ctypes.c_void_p))

    def bytes(self) -> bytes:
        """The bytes that it points to."""
        return ctypes.string_at(self.data or 0, self.size)


class Statistics(ctypes.Structure):
    """LMDB's ``MDB_stat``."""

    _fields_ = (
        ("page", ctypes.c_uint),
        ("depth", ctypes.c_uint),
        ("branches", ctypes.c_size_t),
        ("leaves", ctypes.c_size_t),
        ("overflow", ctypes.c_size_t),
        ("entries", ctypes.c_size_t),
    )


#: Constants of ``lmdb.h``; a database in another is an item of 48 bytes.
NO_FOLDER, FIRST, NEXT, NO_MORE, NO_DATABASE, DATABASE = 0x4000, 0, 8, -30798, -30784, 48
LMDB_MAGIC, LMDB_PAGE = (0xBEEFC0DE).to_bytes(4, "little"), 4096


def environments(folder: Path) -> Iterator[Path]:
    """LMDB's files, by name or by the magic number of their first page, whose making was finished.

    LMDB writes the two pages of an empty environment without a sync.
    """
    for path in sorted(folder.rglob("*")):
        if path.is_file() and path.name != "lock.mdb":
            with path.open("rb") as file:
                pages = file.read(2 * LMDB_PAGE)
                marks = [pages[at:][16:20] == LMDB_MAGIC for at in (0, LMDB_PAGE)]
                is_empty = path.stat().st_size <= 2 * LMDB_PAGE
                is_its = marks[0] or path.name == "data.mdb"
                if is_its and (all(marks) or not is_empty):
                    yield path


def lmdb(path: Path, tool: str) -> Items:
    """Every item of an environment, and of the databases in it."""
    library = ctypes.CDLL(tool)
    library.mdb_strerror.restype = ctypes.c_char_p

    def ask(name: str, *arguments: Any) -> int:
        status: int = getattr(library, f"mdb_{name}")(*arguments)
        if status not in (0, NO_MORE, NO_DATABASE):
            raise Wrong(f"{path.name}: mdb_{name}: {library.mdb_strerror(status).decode()}")
        return status

    def walk(transaction: Any, database: ctypes.c_uint) -> Items:
        cursor, key, value, statistics = ctypes.c_void_p(), Value(), Value(), Statistics()
        ask("stat", transaction, database, ctypes.byref(statistics))
        ask("cursor_open", transaction, database, ctypes.byref(cursor))
        count = 0
        item = (ctypes.byref(key), ctypes.byref(value))
        while not ask("cursor_get", cursor, *item, NEXT if count else FIRST):
            count += 1
            yield key.bytes(), value.bytes()
        if count != statistics.entries:
            raise Wrong(f"{path.name}: {count} items, where its root says {statistics.entries}")

    environment, transaction, main = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_uint()
    ask("env_create", ctypes.byref(environment))
    ask("env_set_maxdbs", environment, 1024)
    ask("env_open", environment, bytes(path), NO_FOLDER, 0o644)
    ask("txn_begin", environment, None, 0x20000, ctypes.byref(transaction))
    ask("dbi_open", transaction, None, 0, ctypes.byref(main))
    for key, value in walk(transaction, main):
        inner = ctypes.c_uint()
        there = len(value) == DATABASE and 0 not in key
        if there and not ask("dbi_open", transaction, key, 0, ctypes.byref(inner)):
            yield from walk(transaction, inner)
        else:
            yield key, value


def with_current(folder: Path) -> Iterator[Path]:
    """Databases of LevelDB and RocksDB whose making was finished."""
    return (path.parent for path in sorted(folder.rglob("CURRENT")) if path.is_file())


class Levels:
    """The C interface that LevelDB and RocksDB share, but for the beginnings of its names."""

    def __init__(self, name: str, place: Path, tool: str) -> None:
        self.name, self.place = name, place
        self.library = ctypes.CDLL(tool)
        self.problem = ctypes.c_char_p()

    def ask(self, what: str, *arguments: Any, gives: Any = ctypes.c_void_p) -> Any:
        """Call a function."""
        function = getattr(self.library, f"{self.name}_{what}")
        function.restype = gives
        return function(*arguments)

    def may_fail(self, what: str, *arguments: Any) -> Any:
        """Call a function that reports what is wrong through its last argument."""
        given = self.ask(what, *arguments, ctypes.byref(self.problem))
        if self.problem.value is not None:
            said = self.problem.value.decode(errors="replace")
            raise Wrong(f"{self.name}: {said}".replace(f"{self.place}/", ""))
        return None if given is None else ctypes.c_void_p(given)

    def options(self) -> ctypes.c_void_p:
        """The options of a database that is there."""
        return ctypes.c_void_p(self.ask("options_create"))

    def walk(self, database: ctypes.c_void_p, *family: ctypes.c_void_p) -> Items:
        """Every item, by checksums."""
        how = ctypes.c_void_p(self.ask("readoptions_create"))
        self.ask("readoptions_set_verify_checksums", how, ctypes.c_ubyte(1), gives=None)
        begin = "create_iterator_cf" if family else "create_iterator"
        items = ctypes.c_void_p(self.ask(begin, database, how, *family))
        length = ctypes.c_size_t()
        self.ask("iter_seek_to_first", items, gives=None)
        while self.ask("iter_valid", items, gives=ctypes.c_ubyte):
            found = []
            for part in ("iter_key", "iter_value"):
                data = self.ask(part, items, ctypes.byref(length))
                found.append(ctypes.string_at(data or 0, length.value))
            yield found[0], found[1]
            self.ask("iter_next", items, gives=None)
        self.may_fail("iter_get_error", items)
        self.ask("iter_destroy", items, gives=None)


def leveldb(place: Path, tool: str) -> Items:
    """Every item of a database of LevelDB."""
    levels = Levels("leveldb", place, tool)
    database = levels.may_fail("open", levels.options(), bytes(place))
    yield from levels.walk(database)
    levels.ask("close", database, gives=None)


def rocksdb(place: Path, tool: str) -> Items:
    """Every item of all column families of a database of RocksDB."""
    levels, count = Levels("rocksdb", place, tool), ctypes.c_size_t()
    options, where = levels.options(), bytes(place)
    names = levels.may_fail("list_column_families", options, where, ctypes.byref(count))
    all_options = (ctypes.c_void_p * count.value)(*[options.value] * count.value)
    families = (ctypes.c_void_p * count.value)()
    number = ctypes.c_int(count.value)
    how = (options, where, number, names, all_options, families)
    database = levels.may_fail("open_column_families", *how)
    for family in families:
        yield from levels.walk(database, ctypes.c_void_p(family))
        levels.ask("column_family_handle_destroy", ctypes.c_void_p(family), gives=None)
    levels.ask("close", database, gives=None)


def redis_files(folder: Path) -> Iterator[Path]:
    """What a Redis server loads: its snapshots, and then what its append-only files begin with."""
    for end in ("*.rdb", "*.aof", "*.manifest"):
        for path in sorted(folder.rglob(end)):
            of_manifest = end != "*.manifest" and any(path.parent.glob("*.manifest"))
            if path.is_file() and not path.name.startswith("temp") and not of_manifest:
                yield path


def redis_options(path: Path) -> tuple[str, ...]:
    """What makes a server load a file."""
    if path.suffix == ".rdb":
        return ("--dir", str(path.parent), "--dbfilename", path.name)
    if path.suffix == ".aof":
        return ("--dir", str(path.parent), "--appendonly", "yes", "--appendfilename", path.name)
    place = ("--dir", str(path.parents[1]), "--appenddirname", path.parent.name)
    return (*place, "--appendonly", "yes", "--appendfilename", path.stem)


def redis_answer(stream: IO[bytes]) -> Any:
    """A server's answer: bytes, a list, or None."""
    line = stream.readline()[:-2]
    count = int(line[1:]) if line[:1] in (b"$", b"*") else 0
    if line[:1] == b"$":
        return None if count < 0 else stream.read(count + 2)[:-2]
    return [redis_answer(stream) for _ in range(count)] if line[:1] == b"*" else line


def redis_asked(server: subprocess.Popen[bytes], where: str) -> Items | None:
    """Every text that a server has, once it has loaded all; None if it refuses to."""
    import socket

    client = socket.socket(socket.AF_UNIX)
    while client.connect_ex(where):
        if server.poll() is not None:
            return None
        time.sleep(0.001)
    stream = client.makefile("rb")

    def ask(*words: bytes) -> Any:
        sent = [b"*%d\r\n" % len(words), *(b"$%d\r\n%s\r\n" % (len(w), w) for w in words)]
        client.sendall(b"".join(sent))
        return redis_answer(stream)

    try:
        while (answer := ask(b"PING")) != b"+PONG":
            if not answer:
                return None
            time.sleep(0.001)
        keys = ask(b"KEYS", b"*")
        values = ask(b"MGET", *keys) if keys else []
    except OSError:
        return None
    return ((key, value) for key, value in zip(keys, values, strict=True) if value is not None)


def redis(path: Path, tool: str) -> Items:
    """Every text in what a server loads, after ``redis-check-aof --fix`` if it refuses first."""
    import subprocess
    import tempfile

    with tempfile.TemporaryDirectory() as made:
        where = ("--port", "0", "--unixsocket", f"{made}/socket")
        words = [tool, *where, "--save", "", "--loglevel", "warning", *redis_options(path)]
        for again in (False, True):
            with open(f"{made}/said", "wb") as said:
                server = subprocess.Popen(words, stdout=said, stderr=said)
            try:
                found = redis_asked(server, f"{made}/socket")
            finally:
                server.kill()
                server.wait()
            if found is not None:
                yield from found
                return
            # A line that is a warning has a sign for it.
            reason = Path(made, "said").read_text(errors="replace").splitlines()
            reason = [line.split(" # ")[-1] for line in reason if " # " in line] or reason
            if again or path.suffix == ".rdb":
                break
            mend = ["redis-check-aof", "--fix", str(path)]
            subprocess.run(mend, input=b"y\n", capture_output=True, check=False)
        raise Wrong(f"{path.name}: {reason[-1] if reason else 'redis-server ends'}")


#: Reads every row of every table, and compares every B-tree with its table if amcheck is there.
POSTGRES_READ = (
    "DO $$ DECLARE r record; n int8; BEGIN FOR r IN SELECT oid::regclass AS t FROM pg_class "
    "WHERE relkind IN ('r','m') AND relpersistence = 'p' LOOP EXECUTE "
    "format('SELECT sum(length(t::text)) FROM %s t', r.t) INTO n; END LOOP; "
    "IF EXISTS (SELECT FROM pg_extension WHERE extname = 'amcheck') THEN "
    "FOR r IN SELECT i.oid AS i FROM pg_class i JOIN pg_am a ON a.oid = i.relam "
    "WHERE a.amname = 'btree' AND i.relpersistence = 'p' LOOP "
    "PERFORM bt_index_check(r.i, true); END LOOP; END IF; END $$;\n"
)


def clusters(folder: Path) -> Iterator[Path]:
    """PostgreSQL's data directories."""
    for path in sorted(folder.rglob("PG_VERSION")):
        if (path.parent / "global").is_dir():
            yield path.parent


def postgres(place: Path, tool: str) -> Items:
    """Let a cluster recover, read all its databases, and check all checksums of pages.

    A lock file that a cut while the server began has left empty is removed, as its message asks.
    """
    import subprocess

    # A server refuses root, which is another user in a namespace of its own.
    user = ["unshare", "--user", "--map-user=1000"] if os.getuid() == 0 else []

    def ask(database: str, what: str) -> str:
        words = [tool, "--single", "-j", "-c", "fsync=off", "-D", str(place), database]
        ran = subprocess.run(
            [*user, *words],
            input=what,
            capture_output=True,
            text=True,
            check=False,
        )
        wrong = [line for line in ran.stderr.splitlines() if " FATAL" in line or " PANIC" in line]
        wrong += [line for line in ran.stderr.splitlines() if " ERROR" in line]
        if wrong or ran.returncode:
            raise Wrong(f"{database}: {wrong[0] if wrong else first(ran, place)}")
        return ran.stdout

    place.chmod(0o700)
    lock = place / "postmaster.pid"
    if lock.is_file() and not lock.stat().st_size:
        lock.unlink()
    listed = ask("template1", "SELECT datname FROM pg_database WHERE datallowconn;\n")
    for database in (line.split('"')[1] for line in listed.splitlines() if "datname = " in line):
        ask(database, POSTGRES_READ)
    checksums = Path(tool).with_name("pg_checksums")
    if checksums.exists():
        command = [*user, str(checksums), "--check", "-D", str(place)]
        ran = subprocess.run(command, capture_output=True, text=True, check=False)
        if ran.returncode and "not enabled" not in ran.stderr:
            raise Wrong(first(ran, place))
    yield from ()


class Check(NamedTuple):
    """What a ready-made check looks at, and how it reads each."""

    what: str
    find: Callable[[Path], Iterator[Path]]
    read: Callable[[Path, str], Items]
    #: A program or, with ``lib`` before its name, a library, and the package of Debian that has it.
    tool: str = ""
    package: str = ""
    #: Whether its items are keys with values, which can be held to what was promised.
    keyed: bool = False


#: Every ready-made check.
CHECKS = {
    "git": Check("git repository", repositories, git, "git", "git"),
    "leveldb": Check(
        "LevelDB database", with_current, leveldb, "libleveldb", "libleveldb1d", keyed=True
    ),
    "lmdb": Check("LMDB environment", environments, lmdb, "liblmdb", "liblmdb0", keyed=True),
    "postgres": Check("PostgreSQL cluster", clusters, postgres, "postgres", "postgresql"),
    "redis": Check("Redis file", redis_files, redis, "redis-server", "redis-server", keyed=True),
    "rocksdb": Check(
        "RocksDB database", with_current, rocksdb, "librocksdb", "librocksdb-dev", keyed=True
    ),
    "sqlite": Check("SQLite database", databases, sqlite),
}


#: People are shown this many characters of a key's value.
SHOWN = 40


def promised(text: bytes) -> list[tuple[bytes, bytes]]:
    """The keys and values in what was printed; a line that is cut off promises nothing."""
    found = []
    for line in text.split(b"\n")[:-1]:
        key, blank, value = line.partition(b" ")
        if not blank:
            raise Wrong(f"'{line.decode(errors='replace')}' was printed, which is no 'KEY VALUE'")
        found.append((key, value))
    return found


def short(text: bytes) -> str:
    """The beginning of a text, for people."""
    told = text.decode(errors="replace")
    return told if len(told) <= SHOWN else f"{told[:SHOWN]}.."


def wrong(name: str, tool: str, folder: Path, acks: bytes = b"") -> str | None:
    """What is wrong with a folder, if anything is."""
    items: dict[bytes, bytes] = {}
    try:
        promises = promised(acks)
        for place in CHECKS[name].find(folder):
            items.update(CHECKS[name].read(place, tool))
    except Wrong as found:
        return str(found)
    for key, value in promises:
        held = items.get(key)
        if held != value:
            there = "it is gone" if held is None else f"it is '{short(held)}'"
            return f"'{short(key + b' ' + value)}' was promised, and {there}"
    return None


def main(name: str, tool: str, folder: str, acks: str | None = None) -> int:
    """1 if something is wrong, with a line that says what."""
    found = wrong(name, tool, Path(folder), b"" if acks is None else Path(acks).read_bytes())
    if found is not None:
        print(found)
    return int(found is not None)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
