"""``sardonyx store serve`` and ``check``: real clients on it, and ends of the server of every kind.

``SARDONYX_KILLS=100`` makes the server be killed so often instead of five times.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Thread

import pytest
from nbd import FLUSH, FUA, NO_HOLE, READ, TRIM, WRITE, ZEROES, Client
from sardonyx import _core
from sardonyx.stores.serve import PLUGIN
from test_cli_native import sardonyx

pytestmark = [
    pytest.mark.skipif(not shutil.which("nbdkit"), reason="no nbdkit; `make system-all`"),
]
KILLS = int(os.environ.get("SARDONYX_KILLS", "5"))
BLOCK = 4096
#: Where mke2fs is.
SYSTEM = os.environ | {"PATH": os.environ["PATH"] + ":/usr/sbin:/sbin"}


def ran(*command: str, where: Path) -> str:
    ended = subprocess.run(
        command, cwd=where, env=SYSTEM, capture_output=True, text=True, timeout=600
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return ended.stdout


def await_socket(path: Path, process: subprocess.Popen[str]) -> None:
    """Wait until a client is served."""
    for _ in range(600):
        try:
            Client(path).close()
            return
        except (FileNotFoundError, ConnectionRefusedError):
            pass  # not there, or bound and not listening yet
        assert process.poll() is None, process.communicate()
        time.sleep(0.05)
    raise TimeoutError(path)


@contextmanager
def serving(where: Path, *options: str) -> Iterator[subprocess.Popen[str]]:
    """``store serve`` on ``s`` from ``d``; ended as Ctrl-C would, with its report in ``r``."""
    command = [sys.executable, "-m", "sardonyx", "store", "serve", "--socket", "s", "--dir", "d"]
    process = subprocess.Popen(
        [*command, "--json", "r", *options],
        cwd=where,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        await_socket(where / "s", process)
        yield process
    finally:
        process.send_signal(signal.SIGINT)
        out, said = process.communicate(timeout=600)
        (where / "printed").write_text(out)
        (where / "said").write_text(said)


def uri(where: Path) -> str:
    return f"nbd+unix:///?socket={where / 's'}"


def child_of(process: subprocess.Popen[str]) -> int:
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    return int(children[0])


def gone(process: int) -> bool:
    """Whether it has ended, be it that nobody has asked for its status yet."""
    for _ in range(200):
        try:
            state = Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()[0]
        except FileNotFoundError:
            return True
        if state == "Z":
            return True
        time.sleep(0.05)
    return False


@pytest.mark.machine
@pytest.mark.parametrize("design", ["recam", "conventional"])
def test_a_file_system_goes_in_and_comes_out_as_it_was(tmp_path: Path, design: str) -> None:
    tree = Path(__file__).resolve().parents[2] / "docs"
    ran("mke2fs", "-q", "-t", "ext4", "-d", str(tree), "in", "64M", where=tmp_path)
    with serving(tmp_path, "--size", "64M", "--design", design):
        ran("nbdcopy", "--flush", "in", uri(tmp_path), where=tmp_path)
        ran("qemu-img", "compare", "-f", "raw", "-F", "raw", "in", uri(tmp_path), where=tmp_path)
    report = json.loads((tmp_path / "r").read_text())
    assert report["design"] == design and report["not_flushed"] is None
    metrics = report["metrics"]
    assert 0 < metrics["stored_blocks"] <= metrics["live_blocks"] <= metrics["writes"]
    assert (metrics["cycles"] > 0) == (design == "recam")
    assert metrics["energy_nj"] > 0 and metrics["operations_per_second"] > 0
    for key, asked in (
        ("read_time", "reads"),
        ("write_time", "writes"),
        ("flush_time", "flushes"),
    ):
        of = report[key]
        assert 0 < of["count"] <= report["requests"][asked]
        assert key == "flush_time" or of["count"] == report["requests"][asked]
        assert 0 < of["median_us"] <= of["p99_us"] <= of["p999_us"] <= of["most_us"]
    assert "time of a read" in (tmp_path / "printed").read_text()
    assert not (tmp_path / "s").exists()
    with serving(tmp_path):  # what it was made for stands in the folder
        ran("nbdcopy", uri(tmp_path), "out", where=tmp_path)
    ran("cmp", "in", "out", where=tmp_path)
    ran("e2fsck", "-fn", "out", where=tmp_path)
    checked = sardonyx("store", "check", "d", "--json", "c", where=tmp_path)
    assert checked.stdout.endswith("sound\n")
    found = json.loads((tmp_path / "c").read_text())
    assert found["live_blocks"] == metrics["live_blocks"] and found["faults"] == []


@pytest.mark.machine
@pytest.mark.skipif(not shutil.which("fio"), reason="no fio; `make system-all`")
@pytest.mark.parametrize("mix", ["randwrite", "randtrimwrite"])
def test_fio_finds_what_it_has_written(tmp_path: Path, mix: str) -> None:
    job = ("--ioengine=nbd", f"--uri={uri(tmp_path)}", f"--rw={mix}", "--verify=crc32c")
    sizes = ("--bs=4k", "--size=24M", "--iodepth=16", "--fsync=64", "--dedupe_percentage=30")
    with serving(tmp_path, "--size", "24M"):
        ran("fio", "--name=x", "--verify_fatal=1", *job, *sizes, where=tmp_path)
        odd = ("--bsrange=512-20k", "--bs_unaligned=1", "--offset=8M", "--size=4M")
        ran("fio", "--name=y", "--verify_fatal=1", *job, *odd, where=tmp_path)
    report = json.loads((tmp_path / "r").read_text())
    assert report["requests"]["flushes"] > 0
    if mix == "randtrimwrite":
        assert report["requests"]["trims"] > 0
    assert sardonyx("store", "check", "d", where=tmp_path).stdout.endswith("sound\n")


class Writer(Thread):
    """A connection with blocks of its own, and a log of what each may hold after a crash."""

    def __init__(self, path: Path, first: int, blocks: int, seed: int) -> None:
        super().__init__()
        self.path = path
        self.first = first
        self.draw = random.Random(seed)
        self.now = [bytes(BLOCK)] * blocks
        #: What was there at the last flush that was answered, and everything since.
        self.may_be = [{block} for block in self.now]
        self.flushes = 0
        self.problem: BaseException | None = None

    def run(self) -> None:
        try:
            client = Client(self.path)
            while True:
                self.step(client)
        except ConnectionError:
            pass  # the server was killed
        except BaseException as error:
            self.problem = error

    def step(self, client: Client) -> None:
        draw = self.draw
        number = draw.randrange(len(self.now))
        at = (self.first + number) * BLOCK
        fua = FUA if draw.random() < 0.05 else 0
        match draw.choices(["write", "part", "trim", "zero", "flush"], [60, 15, 8, 5, 12])[0]:
            case "write":
                # A few contents come again and again.
                content = draw.randbytes(8) if draw.random() < 0.6 else bytes([draw.randrange(9)])
                block = (content * BLOCK)[:BLOCK]
                self.expect(number, block)
                client.ask(WRITE, at, data=block, flags=fua)
            case "part":
                start = draw.randrange(BLOCK)
                data = draw.randbytes(draw.randrange(1, BLOCK - start + 1))
                old = self.now[number]
                self.expect(number, old[:start] + data + old[start + len(data) :])
                client.ask(WRITE, at + start, data=data, flags=fua)
            case "trim":
                self.expect(number, bytes(BLOCK))
                client.ask(TRIM, at, BLOCK, flags=fua)
            case "zero":
                self.expect(number, bytes(BLOCK))
                client.ask(ZEROES, at, BLOCK, flags=fua | draw.choice([0, NO_HOLE]))
            case "flush":
                client.ask(FLUSH)
                self.may_be = [{block} for block in self.now]
                self.flushes += 1
                fua = 0
        if fua:
            self.may_be[number] = {self.now[number]}

    def expect(self, number: int, block: bytes) -> None:
        self.now[number] = block
        self.may_be[number].add(block)

    def compare(self, client: Client) -> None:
        """Whether every block is one that it may be; that is what it is from now on."""
        for number, may_be in enumerate(self.may_be):
            found = client.ask(READ, (self.first + number) * BLOCK, BLOCK)
            assert found in may_be, f"block {self.first + number}"
            self.now[number] = found
        self.may_be = [{block} for block in self.now]


@pytest.mark.machine
@pytest.mark.parametrize("design", ["recam", "conventional"])
def test_kill_9_under_load_loses_nothing_that_was_flushed(tmp_path: Path, design: str) -> None:
    """The server is killed and started again; each block is what was flushed, or came later."""
    path, blocks, writers = tmp_path / "s", 160, 3
    settings = [f"dir={tmp_path / 'd'}", f"design={design}", f"size={writers * blocks * BLOCK}"]
    command = ["nbdkit", "--foreground", "--unix", str(path), str(PLUGIN), *settings]
    draw = random.Random(1)
    logs: list[Writer] = []
    flushes = 0
    for kill in range(KILLS + 1):
        path.unlink(missing_ok=True)
        server = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        try:
            await_socket(path, server)
            client = Client(path)
            for log in logs:
                log.compare(client)
            client.close()
            if kill == KILLS:
                break
            before, logs = logs, []
            for number in range(writers):
                log = Writer(path, number * blocks, blocks, draw.getrandbits(32))
                if before:
                    log.now, log.may_be = before[number].now, before[number].may_be
                log.start()
                logs.append(log)
            time.sleep(draw.uniform(0.02, 0.6))
        finally:
            server.kill()
            server.communicate()
        for log in logs:
            log.join()
            assert log.problem is None, log.problem
            flushes += log.flushes
        if kill % 10 == 0:
            found = json.loads(_core.store_check(str(tmp_path / "d"), None))
            assert found["faults"] == [], kill
    assert flushes >= KILLS, "too few flushes to show anything"
    assert json.loads(_core.store_check(str(tmp_path / "d"), None))["faults"] == []


@pytest.mark.machine
def test_the_server_ends_with_whoever_started_it(tmp_path: Path) -> None:
    with serving(tmp_path, "--size", "1M") as process:
        nbdkit = child_of(process)
        client = Client(tmp_path / "s")
        client.ask(WRITE, 0, data=b"x" * BLOCK)
        process.kill()
        process.wait()
        assert gone(nbdkit)
    refused = sardonyx("store", "serve", "--socket", "s", "--dir", "d", where=tmp_path, status=2)
    assert refused.stderr.startswith("error: --socket s: is left from a server that has ended")
    (tmp_path / "s").unlink()
    with serving(tmp_path) as process:  # it had the time to flush
        assert Client(tmp_path / "s").ask(READ, 0, BLOCK) == b"x" * BLOCK
        nbdkit = child_of(process)
        os.kill(nbdkit, signal.SIGKILL)
        assert process.wait(timeout=600) == 1
    assert "nbdkit ended with signal 9" in (tmp_path / "said").read_text()
    assert not (tmp_path / "s").exists()


@pytest.mark.machine
def test_what_cannot_be_served_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "thesis").write_text("mine")
    new = ("--dir", "new", "--size", "1M")
    long = "x" * 120
    cases = [
        (("--socket", "file", *new), "--socket file: exists and is not a socket"),
        (("--socket", "no/s", *new), "--socket no/s: its directory does not exist"),
        (("--socket", long, *new), "has at most 107 bytes"),
        (("--socket", "t", "--dir", "new"), "--size: give one, as 1G"),
        (("--socket", "t", "--dir", "file", "--size", "1M"), "--dir file: is no folder; name one"),
        (("--socket", "t", "--dir", "full", "--size", "1M"), "holds thesis and no store"),
        (("--socket", "t", "--dir", "new", "--size", "1K"), "is less than one block"),
        (("--socket", "t", *new, "--block", "3K"), "--block 3072: give 512 to 64K"),
        (
            ("--socket", "t", *new, "--design", "magic"),
            '--design: there is no store "magic"; known: recam',
        ),
    ]
    before = sorted(tmp_path.rglob("*"))
    for options, said in cases:
        ended = sardonyx("store", "serve", *options, where=tmp_path, status=2)
        assert ended.stderr.startswith("error: ") and ended.stderr.count("\n") == 1, ended.stderr
        assert said in ended.stderr, ended.stderr
        assert sorted(tmp_path.rglob("*")) == before, options
    with serving(tmp_path, "--size", "1M"):
        for options, said in [
            (("--socket", "s", *new), "--socket s: a server listens there"),
            (("--socket", "t", "--dir", "d"), "another server or check uses it"),
        ]:
            ended = sardonyx("store", "serve", *options, where=tmp_path, status=2)
            assert said in ended.stderr and ended.stderr.count("\n") == 1, ended.stderr
        ended = sardonyx("store", "check", "d", where=tmp_path, status=2)
        assert "another server or check uses it" in ended.stderr
    for option, value in (("--size", "2M"), ("--block", "8K"), ("--design", "conventional")):
        options = ("--socket", "t", "--dir", "d", option, value)
        ended = sardonyx("store", "serve", *options, where=tmp_path, status=2)
        wanted = "made with --design recam --size 1048576 --block 4096; ask for that"
        assert wanted in ended.stderr and ended.stderr.count("\n") == 1, ended.stderr


def test_no_nbdkit_is_one_line_with_the_remedy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    options = ("--socket", "s", "--dir", "d", "--size", "1M")
    ended = sardonyx("store", "serve", *options, where=tmp_path, status=2)
    assert ended.stderr == "error: no nbdkit in PATH; on Debian: apt-get install nbdkit\n"


@pytest.mark.machine
def test_a_damaged_block_is_an_error_to_the_client_and_a_line_of_the_check(tmp_path: Path) -> None:
    with serving(tmp_path, "--size", "1M"):
        client = Client(tmp_path / "s")
        client.ask(WRITE, 0, data=b"x" * BLOCK + b"y" * BLOCK)
    with (tmp_path / "d" / "blocks").open("r+b") as blocks:
        blocks.seek(BLOCK + 7)
        blocks.write(b"z")
    ended = sardonyx("store", "check", "d", where=tmp_path, status=1)
    fault, verdict = ended.stdout.splitlines()
    assert fault == "slot 1: is not what its checksum says; block 1 is lost"
    assert verdict.startswith("d: commit 1, ")
    assert verdict.endswith("2 blocks, 2 distinct, 8,192 bytes of contents read: 1 faults")
    with serving(tmp_path):
        client = Client(tmp_path / "s")
        assert client.ask(READ, 0, BLOCK) == b"x" * BLOCK
        with pytest.raises(OSError, match="refuses") as refused:
            client.ask(READ, BLOCK, BLOCK)
        assert refused.value.errno == errno.EIO
        client.ask(WRITE, 9 * BLOCK, data=b"y" * BLOCK)
        assert client.ask(READ, BLOCK, BLOCK) == b"y" * BLOCK
    assert sardonyx("store", "check", "d", where=tmp_path).stdout.endswith("sound\n")


@pytest.mark.machine
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can mount a small disk")
def test_a_full_disk_is_an_error_and_loses_nothing(tmp_path: Path) -> None:
    disk = tmp_path / "d"
    disk.mkdir()
    mounted = ("mount", "-t", "tmpfs", "-o", "size=24M", "none", str(disk))
    if subprocess.run(mounted, capture_output=True).returncode:
        pytest.skip("this machine does not let root mount")
    try:
        with serving(tmp_path, "--size", "256M"):
            client = Client(tmp_path / "s")
            flushed = 0
            refused = None
            while refused is None:
                block = flushed.to_bytes(8) * (BLOCK // 8)
                try:
                    client.ask(WRITE, flushed * BLOCK, data=block, flags=FUA)
                    flushed += 1
                except OSError as error:
                    refused = error.errno
            assert refused == errno.ENOSPC
            assert flushed > 1000
            last = client.ask(READ, (flushed - 1) * BLOCK, BLOCK)  # it goes on
            assert last == (flushed - 1).to_bytes(8) * (BLOCK // 8)
        with serving(tmp_path):
            client = Client(tmp_path / "s")
            for number in range(flushed):
                block = client.ask(READ, number * BLOCK, BLOCK)
                assert block == number.to_bytes(8) * (BLOCK // 8), number
    finally:
        subprocess.run(("umount", str(disk)), check=True)


@pytest.mark.machine
def test_a_reader_of_counters_that_stands_still_holds_nothing_up(tmp_path: Path) -> None:
    """A pipe of 4 KB is full after some lines; requests and the end go on."""
    read, write = os.pipe()
    fcntl.fcntl(write, fcntl.F_SETPIPE_SZ, 4096)
    settings = [f"dir={tmp_path / 'd'}", "size=1048576", f"counters=/dev/fd/{write}"]
    command = ["nbdkit", "--foreground", "--unix", str(tmp_path / "s"), str(PLUGIN), *settings]
    server = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, pass_fds=(write,))
    try:
        await_socket(tmp_path / "s", server)
        client = Client(tmp_path / "s")
        # Counters come every second: the pipe is full long before the last request.
        for _ in range(200):
            client.ask(WRITE, 0, data=b"x" * BLOCK, flags=FUA)
            time.sleep(0.02)
        client.close()
        server.terminate()
        assert server.wait() == 0
    finally:
        server.kill()
        server.communicate()
        os.close(read)
        os.close(write)


def pid_in(file: Path) -> int:
    """What the daemon writes there once it serves; its parent may have ended before."""
    end = time.monotonic() + 30
    while not (text := file.read_text() if file.exists() else "").endswith("\n"):
        assert time.monotonic() < end, f"no process wrote {file}"
        time.sleep(0.01)
    return int(text)


@pytest.mark.machine
@pytest.mark.parametrize("design", ["recam", "conventional"])
def test_nbdkit_serves_it_as_a_daemon(tmp_path: Path, design: str) -> None:
    settings = [f"dir={tmp_path / 'd'}", f"design={design}"]
    pid_file = tmp_path / "pid"
    command = ["nbdkit", "--pidfile", str(pid_file), "--unix", str(tmp_path / "s"), str(PLUGIN)]
    refused = subprocess.run([*command, *settings], capture_output=True, text=True, timeout=600)
    assert refused.returncode == 1 and "--size: give one" in refused.stderr
    for size in (["size=1048576"], []):
        subprocess.run(
            [*command, *settings, *size],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=600,
            check=True,
        )
        daemon = pid_in(pid_file)
        client = Client(tmp_path / "s")
        if not size:
            assert client.ask(READ, BLOCK, BLOCK) == b"d" * BLOCK
        client.ask(WRITE, BLOCK, data=b"d" * BLOCK, flags=FUA)
        client.close()
        spent = Path(f"/proc/{daemon}/stat").read_text().rsplit(")", 1)[1].split()[11:13]
        time.sleep(1)
        later = Path(f"/proc/{daemon}/stat").read_text().rsplit(")", 1)[1].split()[11:13]
        ticks = sum(map(int, later)) - sum(map(int, spent))
        assert ticks < 50, "half a processor while nobody asks for anything"
        os.kill(daemon, signal.SIGTERM)
        assert gone(daemon)
        for file in (tmp_path / "s", pid_file):
            file.unlink(missing_ok=True)


@pytest.mark.machine
def test_check_looks_at_a_copy_that_cannot_be_written(tmp_path: Path) -> None:
    with serving(tmp_path, "--size", "1M"):
        pass
    empty = sardonyx("store", "check", "d", where=tmp_path).stdout
    assert empty.endswith("the device is empty, no block was there to be read\n")
    with serving(tmp_path):
        Client(tmp_path / "s").ask(WRITE, 0, data=b"x" * BLOCK + b"y" * BLOCK)
    shutil.copytree(tmp_path / "d", tmp_path / "copy")
    (tmp_path / "copy" / "lock").unlink()
    for name in (tmp_path / "copy").iterdir():
        if name.is_file():
            name.chmod(0o400)
    (tmp_path / "copy").chmod(0o500)
    checked = sardonyx("store", "check", "copy", where=tmp_path).stdout
    assert "2 blocks, 2 distinct, 8,192 bytes of contents read: sound" in checked
    assert "note: there is no lock file" in checked
    assert not (tmp_path / "copy" / "lock").exists()
    (tmp_path / "copy").chmod(0o700)
    options = ("--socket", "t", "--dir", "copy", "--size", "1M")
    (tmp_path / "copy" / "blocks").rename(tmp_path / "blocks")
    refused = sardonyx("store", "serve", *options, where=tmp_path, status=2)
    assert "blocks: is missing; the store is refused" in refused.stderr
    assert "put the folder back from a copy" in refused.stderr
    (tmp_path / "blocks").rename(tmp_path / "copy" / "blocks")
    (tmp_path / "copy" / "mark").unlink()
    ended = sardonyx("store", "check", "copy", "--json", "c", where=tmp_path, status=1).stdout
    assert "mark: is missing" in ended and "no block was looked at" in ended
    assert "sound" not in ended
    found = json.loads((tmp_path / "c").read_text())
    assert found["commit"] is None and found["block_bytes_read"] == 0
    (tmp_path / "copy" / "store.json").unlink()
    refused = sardonyx("store", "serve", *options, where=tmp_path, status=2)
    assert "holds files of a store and no store.json" in refused.stderr
    assert (tmp_path / "copy" / "blocks").read_bytes() == b"x" * BLOCK + b"y" * BLOCK


@pytest.mark.machine
def test_a_folder_of_the_first_layout_is_refused_with_the_remedy(tmp_path: Path) -> None:
    (tmp_path / "d" / "tables").mkdir(parents=True)
    shape = {"format": 1, "design": "recam", "size_bytes": 1048576, "block_bytes": 4096}
    (tmp_path / "d" / "store.json").write_text(json.dumps(shape))
    ended = sardonyx("store", "serve", "--socket", "s", "--dir", "d", where=tmp_path, status=2)
    assert "has layout 1" in ended.stderr and "copy it to a new folder" in ended.stderr
    assert ended.stderr.count("\n") == 1


@pytest.mark.machine
def test_requests_are_written_down_and_compared(tmp_path: Path) -> None:
    with serving(tmp_path, "--size", "1M", "--trace", "requests"):
        client = Client(tmp_path / "s")
        for at in range(12):
            client.ask(WRITE, at * BLOCK, data=bytes([at % 5]) * BLOCK)
        client.ask(WRITE, 20 * BLOCK, data=b"x" * BLOCK + b"y" * BLOCK)
        for at in range(6):
            assert client.ask(READ, at * BLOCK, BLOCK) == bytes([at % 5]) * BLOCK
        client.ask(WRITE, 3 * BLOCK, data=b"z" * BLOCK)
        client.close()
    report = json.loads((tmp_path / "r").read_text())
    lines = (tmp_path / "requests").read_text().splitlines()
    assert len(lines) == report["requests"]["writes"] + report["requests"]["reads"]
    sardonyx(
        "store", "compare", "-d", "recam", "--trace", "requests", "--json", "c", where=tmp_path
    )
    (run,) = json.loads((tmp_path / "c").read_text())["runs"]
    for figure in ("writes", "duplicate_writes", "reads", "stored_blocks", "cycles"):
        assert run["metrics"][figure] == report["metrics"][figure], figure
    wrong = ("store", "serve", "--socket", "s", "--dir", "e", "--size", "1M")
    ended = sardonyx(*wrong, "--trace", "requests", where=tmp_path, status=2)
    assert "is there already" in ended.stderr
    ended = sardonyx(*wrong, "--trace", "new", "--block", "512", where=tmp_path, status=2)
    assert "leave it out, or make a device with --block 4K" in ended.stderr
    assert not (tmp_path / "new").exists() and not (tmp_path / "e").exists()


@pytest.mark.machine
def test_room_is_given_back_to_the_disk(tmp_path: Path) -> None:
    with serving(tmp_path, "--size", "8M"):
        client = Client(tmp_path / "s")
        for number in range(1024):
            client.ask(WRITE, number * BLOCK, data=number.to_bytes(8) * (BLOCK // 8))
        client.ask(FLUSH)
        held = (tmp_path / "d" / "blocks").stat().st_blocks * 512
        client.ask(TRIM, 0, 1000 * BLOCK)
    left = (tmp_path / "d" / "blocks").stat().st_blocks * 512
    assert held >= 4 << 20
    if left == held:
        pytest.skip("this file system cannot punch holes")
    assert left <= 1 << 20
    with serving(tmp_path):
        last = Client(tmp_path / "s").ask(READ, 1023 * BLOCK, BLOCK)
        assert last == (1023).to_bytes(8) * (BLOCK // 8)


@pytest.mark.machine
def test_room_is_given_back_while_it_serves(tmp_path: Path) -> None:
    blocks, kept = 16384, 2000
    with serving(tmp_path, "--size", "64M"):
        client = Client(tmp_path / "s")
        for number in range(blocks):
            client.ask(WRITE, number * BLOCK, data=number.to_bytes(8) * (BLOCK // 8))
        client.ask(FLUSH)
        held = (tmp_path / "d" / "blocks").stat().st_blocks * 512
        client.ask(TRIM, kept * BLOCK, (blocks - kept) * BLOCK)
        client.ask(FLUSH)
        # At most as many free slots keep their room as one commit may leave: 8,192.
        for _ in range(50_000):
            last = client.ask(READ, (kept - 1) * BLOCK, BLOCK)
            assert last == (kept - 1).to_bytes(8) * (BLOCK // 8)
            if (tmp_path / "d" / "blocks").stat().st_blocks * 512 < held * 3 // 4:
                break
        else:
            pytest.fail("nothing was given back while it serves")
