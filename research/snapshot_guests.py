"""Boots small Debian guests under QEMU's software emulation and snapshots their memory over time.

Each guest runs redis, nginx and sqlite on its own seed. A folder a guest, for ``sardonyx merge``.
Needs root and, from Debian: debootstrap, e2fsprogs, qemu-system-x86. One root filesystem is made
once, in a folder that is kept; every guest boots a throw-away copy-on-write view of it.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

PACKAGES = "linux-image-amd64,systemd-sysv,redis-server,redis-tools,nginx-light,sqlite3"
NEEDED = ("debootstrap", "mke2fs", "qemu-system-x86_64")
READY = "GUEST-READY"
#: Debian's kernel and its initial memory disk need as much.
LEAST_MEGABYTES = 256
#: What a guest does once it is up: data of its own in redis and sqlite, and requests that go on.
WORK = f"""#!/bin/sh
seed=$(sed -n 's/.*guest=\\([0-9]*\\).*/\\1/p' /proc/cmdline)
until redis-cli ping > /dev/null 2>&1; do sleep 1; done
redis-cli debug populate 20000 key-$seed 256 > /dev/null
sqlite3 /tmp/own.db "create table t(a, b); with recursive c(x) as (values(1) union all
  select x+1 from c where x < 20000) insert into t select x, hex(randomblob(64)) from c"
echo {READY} > /dev/ttyS0
while :; do redis-benchmark -q -n 2000 -r 20000 -t set,get > /dev/null 2>&1
  sqlite3 /tmp/own.db "update t set b = hex(randomblob(64)) where a % 50 = $seed"; sleep 1; done
"""
UNIT = """[Unit]
After=redis-server.service nginx.service
[Service]
ExecStart=/usr/local/bin/guest-work
[Install]
WantedBy=multi-user.target
"""


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--out", type=Path, required=True, help="made; a folder a guest in it")
    parser.add_argument("--root", type=Path, required=True, help="folder of the guests' system")
    parser.add_argument("--guests", type=int, default=10, help="how many (10)")
    parser.add_argument("--at-once", type=int, default=3, help="how many run at the same time (3)")
    parser.add_argument("--megabytes", type=int, default=512, help="memory of each (512)")
    parser.add_argument("--count", type=int, default=2, help="snapshots of each (2)")
    parser.add_argument("--every", type=float, default=5.0, help="seconds between two (5)")
    parser.add_argument("--boot-seconds", type=float, default=900, help="patience with a guest")
    parser.add_argument("--mirror", default="http://deb.debian.org/debian")
    wanted = parser.parse_args()
    least = {"guests": 1, "at_once": 1, "megabytes": LEAST_MEGABYTES, "count": 1, "every": 0}
    for name, number in least.items():
        if getattr(wanted, name) < number:
            sys.exit(f"error: --{name.replace('_', '-')}: give {number} or more")
    missing = [name for name in NEEDED if shutil.which(name, path=f"{os.environ['PATH']}:/usr/sbin")
               is None]  # fmt: skip
    if missing:
        sys.exit(f"error: no {', '.join(missing)}; apt-get install debootstrap e2fsprogs "
                 "qemu-system-x86")  # fmt: skip
    if wanted.out.exists():
        sys.exit(f"error: {wanted.out}: is there already; name a folder that is not")
    make_root(wanted.root, wanted.mirror)
    for first in range(0, wanted.guests, wanted.at_once):
        together(wanted, range(first, min(first + wanted.at_once, wanted.guests)))


def make_root(root: Path, mirror: str) -> None:
    """The guests' filesystem, kernel and initial memory disk, unless they are there."""
    if (root / "disk.img").exists():
        return
    if os.geteuid():
        sys.exit("error: making the guests' system needs root")
    system = root / "system"
    shutil.rmtree(system, ignore_errors=True)
    system.mkdir(parents=True)
    print("installing Debian for the guests", file=sys.stderr)
    run("debootstrap", "--variant=minbase", f"--include={PACKAGES}", "bookworm", system, mirror)
    work = system / "usr/local/bin/guest-work"
    work.write_text(WORK)
    work.chmod(0o755)
    (system / "etc/systemd/system/guest-work.service").write_text(UNIT)
    (system / "etc/fstab").write_text("/dev/vda / ext4 rw 0 0\ntmpfs /tmp tmpfs rw 0 0\n")
    run("chroot", system, "systemctl", "enable", "guest-work.service", "nginx", "redis-server")
    for part in ("vmlinuz", "initrd.img"):
        shutil.copy(next((system / "boot").glob(f"{part}-*")), root / part)
    scratch = root / "disk.scratch"
    run("mke2fs", "-q", "-t", "ext4", "-d", system, scratch, "3G")
    scratch.rename(root / "disk.img")
    shutil.rmtree(system)


def run(*command: object) -> None:
    """A tool whose failure ends us."""
    environment = os.environ | {"PATH": f"{os.environ['PATH']}:/usr/sbin:/sbin"}
    with tempfile.TemporaryFile("w+") as said:
        words = [str(word) for word in command]
        if subprocess.run(words, env=environment, stdout=said, stderr=said).returncode:
            said.seek(0)
            sys.exit(f"error: {' '.join(words)}:\n{said.read()[-2000:]}")


class Guest:
    """A running guest."""

    def __init__(self, number: int, root: Path, megabytes: int, folder: Path) -> None:
        self.console = folder / f"console-{number}"
        place = str(folder / f"monitor-{number}")
        append = f"root=/dev/vda rw console=ttyS0 no_timer_check net.ifnames=0 guest={number}"
        append += " panic=-1"  # with -no-reboot, the end of QEMU
        self.process = subprocess.Popen(
            [
                "qemu-system-x86_64", "-accel", "tcg", "-m", str(megabytes), "-nographic",
                "-machine", "q35,mem-merge=off", "-cpu", "max", "-nic", "none",
                "-drive", f"file={root / 'disk.img'},if=virtio,format=raw,snapshot=on",
                "-kernel", str(root / "vmlinuz"), "-initrd", str(root / "initrd.img"),
                "-append", append, "-serial", f"file:{self.console}",
                "-no-reboot", "-monitor", "none", "-qmp", f"unix:{place},server=on,wait=off",
            ],
            stdin=subprocess.DEVNULL,
        )  # fmt: skip
        self.monitor = socket.socket(socket.AF_UNIX)
        for _ in range(100):
            try:
                self.monitor.connect(place)
                break
            except OSError:
                time.sleep(0.1)
        self.answers = self.monitor.makefile()
        self.answers.readline()
        self.ask("qmp_capabilities")

    def ask(self, command: str, **arguments: Any) -> None:
        """One command to the monitor."""
        message = {"execute": command, "arguments": arguments}
        self.monitor.sendall(json.dumps(message).encode())
        while answer := json.loads(self.answers.readline() or "null"):
            if "error" in answer:
                sys.exit(f"error: QEMU: {command}: {answer['error']['desc']}")
            if "return" in answer:
                return
        sys.exit("error: QEMU has ended")

    def wait(self, seconds: float) -> None:
        """Until its services have their data."""
        until = time.monotonic() + seconds
        while not self.console.exists() or READY not in self.console.read_text(errors="replace"):
            if self.process.poll() is not None or time.monotonic() > until:
                tail = self.console.read_text(errors="replace")[-500:]
                sys.exit(f"error: the guest is not ready; its console ends:\n{tail}")
            time.sleep(1)


def together(wanted: argparse.Namespace, numbers: range) -> None:
    """Boots some guests, snapshots them in turn, ends them."""
    with tempfile.TemporaryDirectory() as scratch:
        guests: dict[int, Guest] = {}
        try:
            for number in numbers:
                guests[number] = Guest(number, wanted.root, wanted.megabytes, Path(scratch))
            for number, guest in guests.items():
                guest.wait(wanted.boot_seconds)
                print(f"guest {number} is ready", file=sys.stderr)
            for count in range(wanted.count):
                time.sleep(wanted.every if count else 0)
                for number, guest in guests.items():
                    folder = (wanted.out / f"guest-{number:02}").resolve()
                    folder.mkdir(parents=True, exist_ok=True)
                    target = folder / f"{count + 1:02}.raw"
                    guest.ask("stop")
                    size = wanted.megabytes << 20
                    guest.ask("pmemsave", val=0, size=size, filename=str(target))
                    guest.ask("cont")
            for guest in guests.values():
                guest.ask("quit")
        finally:
            for guest in guests.values():
                if guest.process.poll() is None:
                    guest.process.terminate()
                guest.process.wait()


if __name__ == "__main__":
    main()
