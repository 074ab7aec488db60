#!/bin/sh
# Installs what tests need of the system: `tools/system_packages.sh test` for `make test`, `all` for `make test-all`.
# `test` goes on without what cannot be installed, whose tests are then skipped by name; `all` ends with status 2.
set -u
tier=$1
# A line each: the tier, a file or program that shows that it is there, and Debian's package.
needed='test c++ g++
all chromium chromium
all sqlite3 sqlite3
all /usr/include/libpmemobj.h libpmemobj-dev
all nbdkit nbdkit
all fio fio
all qemu-img qemu-utils
all nbdcopy libnbd-bin
all mke2fs e2fsprogs
all mkfs.xfs xfsprogs
all mkfs.btrfs btrfs-progs
all losetup mount
all aarch64-linux-gnu-gcc gcc-aarch64-linux-gnu
all /usr/aarch64-linux-gnu/lib/libc.so libc6-dev-arm64-cross
all qemu-aarch64 qemu-user
all borg borgbackup
all redis-server redis-server
all /usr/include/lmdb.h liblmdb-dev
all /usr/include/leveldb/c.h libleveldb-dev
all /usr/include/rocksdb/c.h librocksdb-dev
all debootstrap debootstrap'
PATH=$PATH:/sbin:/usr/sbin
missing=$(echo "$needed" | while read -r who shows package; do
    [ "$who" = test ] || [ "$tier" = all ] || continue
    command -v "$shows" > /dev/null || [ -e "$shows" ] || echo "$package"
done)
[ -n "$missing" ] || exit 0
missing=$(echo $missing)
echo "make: installing what the tests need of the system: $missing" >&2
as_root=
[ "$(id -u)" = 0 ] || as_root="sudo -n"
if command -v apt-get > /dev/null && $as_root apt-get update -qq > /dev/null \
    && DEBIAN_FRONTEND=noninteractive $as_root apt-get install -qq --yes --no-install-recommends $missing > /dev/null; then
    exit 0
fi
echo "make: could not install them; on Debian, as root: apt-get install $missing" >&2
[ "$tier" = test ] || exit 2
