"""Crash tests of programs of the distribution: those with a fault, and those without one.

``python tools/gallery.py [--write] [NAME..]`` runs each in an empty folder, and ends with status 1
if one that should fail does not, or the other way round; ``--write`` writes
docs/tables/crash-files-gallery.tsv. On Debian: apt-get install ed nano recutils zip binutils gnupg
tokyocabinet-bin kyotocabinet-utils sed rcs tinycdb openssh-client vim gdbmtool tdb-tools
taskwarrior logrotate crudini augeas-tools dpkg unzip.
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

TABLE = Path(__file__).parents[1] / "docs/tables/crash-files-gallery.tsv"
ORDERED, XFS = "ext4-ordered", "xfs"


@dataclass(frozen=True)
class Program:
    """A program: what comes before it, what it does, what must hold then, and why it does not."""

    package: str
    prepare: str
    run: str
    check: str
    #: What is lost and why; empty if nothing may be found.
    cause: str = ""
    #: The first file system on which that shows.
    platform: str = ORDERED


OLD = "echo old > data/f"
KEPT = "grep -qx -e old -e new {dir}/f"
KEYS = "-q -t ed25519 -N '' -f key"
KNOWN = "for n in old gone; do echo $n $(cut -d ' ' -f 1,2 key.pub); done > data/known"
GPG = "gpg -q --batch --no-autostart --homedir"
ALTERNATIVES = "--log /dev/null --altdir {}/alt --admindir {}/adm"
DPKG = (
    "mkdir data/updates data/info; touch data/available; printf 'Package: a\\nStatus: install ok "
    "installed\\nMaintainer: m <m@m>\\nArchitecture: all\\nVersion: 1\\nDescription: x\\n\\n' "
    "> data/status"
)
VIM = "vim -u NONE -es"
IN_PLACE = "The old file is cut to nothing before the new text is written"
TOO_EARLY = "The new file takes the old one's name before its data are synced"
AHEAD = "The header, which has the file's new size, is stored before the file's growth is synced"
PROGRAMS = {
    "ed": Program(
        "ed", OLD, "printf 's/old/new/\\nw\\nq\\n' | ed -s data/f", KEPT,
        f"{IN_PLACE}; neither text is left. It is not synced at all.",
    ),
    "nano": Program(
        "nano", OLD,
        "(for key in x '\\017' '\\r' '\\030'; do sleep 2; printf $key; done) | "
        "TERM=xterm script -qfc 'nano data/f' /dev/null",
        "grep -qx -e old -e xold {dir}/f", f"{IN_PLACE}; neither text is left until the sync.",
    ),
    "recins": Program(
        "recutils", "printf 'Name: a\\n' > data/r", "recins -f Name -v b data/r",
        "recsel {dir}/r | grep -q 'Name: a'",
        f"{IN_PLACE}: the finished temporary file is copied over it, unsynced.",
    ),
    "zip": Program(
        "zip", "echo old > f; zip -q data/a.zip f; echo new > h", "zip -q data/a.zip h",
        "unzip -p {dir}/a.zip f | grep -qx old",
        "The old archive is removed before the new one has its name, and the new one is not "
        "synced: both are lost.",
    ),
    "ar": Program(
        "binutils", "echo old > f; ar rcS data/l.a f; echo new > h", "ar r data/l.a h",
        "ar p {dir}/l.a f | grep -qx old", f"{IN_PLACE}; all members are lost. Nothing is synced.",
    ),
    "gpg": Program(
        "gpg",
        "chmod 700 data; for n in one two; do mkdir -m 700 $n; gpg -q --homedir $n --batch "
        "--passphrase '' --quick-gen-key $n rsa1024; gpg --homedir $n --export $n > $n.key; "
        f"gpgconf --homedir $n --kill all; done; {GPG} data --import one.key",
        f"{GPG} data --import two.key", f"{GPG} {{dir}} --list-keys one | grep -q one",
        "The key ring is renamed to its backup's name before the new one takes its place, and "
        "the new one is not synced: no key is found until the backup is renamed by hand.",
    ),
    "tchmgr": Program(
        "tokyocabinet-bin", "tchmgr create data/c; tchmgr put data/c k1 v1",
        "tchmgr put data/c k2 v2",
        "tchmgr optimize {dir}/c; tchmgr get {dir}/c k1 | grep -q v1",
        f"{AHEAD}: the database cannot be opened again.",
    ),
    "kchashmgr": Program(
        "kyotocabinet-utils", "kchashmgr create data/c.kch; kchashmgr set data/c.kch k1 v1",
        "kchashmgr set data/c.kch k2 v2",
        "kchashmgr set {dir}/c.kch k3 v3; kchashmgr get {dir}/c.kch k1 | grep -q v1",
        f"{AHEAD}: the database cannot be opened again.",
    ),
    "sed": Program(
        "sed", OLD, "sed -i s/old/new/ data/f", KEPT, f"{TOO_EARLY}: it is empty.", XFS
    ),
    "ci": Program(
        "rcs", "echo old > data/f; ci -q -l -t-x -m1 data/f; echo new > data/f",
        "ci -q -l -m2 data/f", "co -q -p1.1 {dir}/f | grep -q old",
        f"{TOO_EARLY}: all revisions are lost.", XFS,
    ),
    "cdb": Program(
        "tinycdb", "printf '+2,2:k1->v1\\n\\n' | cdb -c data/c",
        "printf '+2,2:k1->v1\\n+2,2:k2->v2\\n\\n' | cdb -c data/c",
        "cdb -q {dir}/c k1 | grep -q v1", f"{TOO_EARLY}: no key is left.", XFS,
    ),
    "ssh-keygen": Program(
        "openssh-client", f"ssh-keygen {KEYS}; {KNOWN}", "ssh-keygen -R gone -f data/known",
        "grep -q old {dir}/known", f"{TOO_EARLY}: no host is known.", XFS,
    ),
    "vim": Program(
        "vim", OLD, f"{VIM} -c s/old/new/ -c wq data/f",
        f"{KEPT} || {{ {VIM} -r {{dir}}/f -c 'w! {{dir}}/g' -c q!; grep -qx -e old -e new "
        "{dir}/g; }",
    ),
    "gdbmtool": Program(
        "gdbmtool", "gdbmtool -n data/g store k1 v1", "gdbmtool data/g store k2 v2",
        "gdbmtool -r {dir}/g fetch k1 | grep -q v1",
    ),
    "task": Program(
        "taskwarrior", "yes | task rc:/dev/null rc.data.location=data add first",
        "yes | task rc:/dev/null rc.data.location=data add second",
        "grep -q first {dir}/pending.data",
    ),
    "logrotate": Program(
        "logrotate",
        "chmod 755 data; echo old > data/log; echo $PWD/data/log '{\ncopytruncate\nrotate 1\n}' "
        "> conf; chmod 644 conf",
        "logrotate -f -s data/state conf", "cat {dir}/log {dir}/log.1 | grep -qx old",
    ),
    "crudini": Program(
        "crudini", "printf '[a]\\nk = old\\n' > data/c", "crudini --set data/c a j new",
        "grep -q 'k = old' {dir}/c",
    ),
    "augtool": Program(
        "augeas-tools", "mkdir data/etc; echo 1.1.1.1 old > data/etc/hosts",
        "printf 'set /files/etc/hosts/1/alias new\\nsave\\n' | augtool -r $PWD/data",
        "grep -q old {dir}/etc/hosts",
    ),
    "update-alternatives": Program(
        "dpkg",
        "mkdir data/alt data/adm; touch one two; update-alternatives "
        f"{ALTERNATIVES.replace('{}', '$PWD/data')} --install $PWD/data/x x $PWD/one 1",
        f"update-alternatives {ALTERNATIVES.replace('{}', '$PWD/data')} --install $PWD/data/x x "
        "$PWD/two 2",
        f"update-alternatives {ALTERNATIVES.replace('{}', '{dir}')} --query x | grep -q one",
    ),
    "dpkg": Program(
        "dpkg", DPKG, "echo a hold | dpkg --admindir=data --set-selections",
        "dpkg --admindir={dir} -s a | grep -q -e 'install ok' -e 'hold ok'",
    ),
}  # fmt: skip


def tested(program: Program, platform: str) -> dict[str, Any]:
    """What is found of a program on a file system."""
    environment = os.environ | {"LC_ALL": "C"}
    with tempfile.TemporaryDirectory() as place:
        (Path(place) / "data").mkdir()
        shell = ["sh", "-c", program.prepare]
        how = {"cwd": place, "env": environment, "stdin": subprocess.DEVNULL}
        subprocess.run(shell, capture_output=True, check=True, **how)  # type: ignore[call-overload]
        search = [sys.executable, "-m", "sardonyx", "crash-test", "files", "--files", "data"]
        search += ["--recover", shlex.join(["sh", "-c", program.check]), "--platform", platform]
        search += ["--json", "-", "--", "sh", "-c", program.run]
        ran = subprocess.run(search, capture_output=True, text=True, **how)  # type: ignore[call-overload]
        if ran.returncode not in (0, 1):
            raise SystemExit(ran.stderr + ran.stdout[-2000:])
        found: dict[str, Any] = json.loads(ran.stdout)
        return found


def version(package: str) -> str:
    """The version of a package of Debian."""
    ask = ["dpkg-query", "-W", "-f", "${Version}", package]
    return subprocess.run(ask, capture_output=True, text=True, check=True).stdout


def main() -> None:
    """Run the programs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--write", action="store_true")
    asked = parser.parse_args()
    rows, other = ["program\ton\twhat is lost, and why\tcommand\tcheck"], False
    for name in asked.names or PROGRAMS:
        program = PROGRAMS[name]
        platforms = (program.platform,) if program.cause else (ORDERED, XFS)
        found = [tested(program, platform) for platform in platforms]
        fails = any(one["violations"] for one in found)
        other |= fails != bool(program.cause)
        print(f"{name} {version(program.package)}: {found[-1]['verdict']}, "
              f"{sum(one['images'] for one in found)} images", flush=True)  # fmt: skip
        for cause in (cause for one in found for cause in one["causes"]):
            print(f"   {cause['summary']}")
        if program.cause:
            named = f"{name} {version(program.package)}"
            texts = (f"`{program.run}`", f"`{program.check}`")
            rows.append("\t".join((named, program.platform, program.cause, *texts)))
    if asked.write and not other:
        TABLE.write_text("\n".join(rows) + "\n")
    raise SystemExit(int(other))


if __name__ == "__main__":
    main()
