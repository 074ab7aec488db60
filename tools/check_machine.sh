#!/bin/sh
# Says what this machine lacks before anything is installed or built: a line each, with the remedy, and status 2.
# `tools/check_machine.sh PYTHON VENV [test]`: the Python to use, and the environment, which need not exist yet; with
# `test` also what tests need.
set -u
python=${1:-python3} venv=${2:-.venv} tier=${3:-run}
lacking=0
lacks() {
    echo "make: $1" >&2
    lacking=1
}

# `1.90` and `1.95.0 (5980..)` as numbers that can be compared.
number() { echo "$1" | awk -F '[. -]' '{ print $1 * 1000 + $2 }'; }

wanted=$(sed -n 's/^rust-version = "\(.*\)"/\1/p' Cargo.toml)
rust="install Rust $wanted or newer as rustup.rs says, then: rustup default stable"
if ! command -v cargo > /dev/null || ! command -v "${RUSTC:-rustc}" > /dev/null; then
    lacks "no cargo and rustc; $rust"
elif found=$("${RUSTC:-rustc}" --version 2>&1); then
    found=$(echo "$found" | awk '{ print $2 }')
    [ "$(number "$found")" -ge "$(number "$wanted")" ] || lacks "rustc $found is older than $wanted; $rust"
else
    lacks "rustc does not run ($(echo "$found" | head -n 1)); $rust"
fi

object=$(mktemp -d)
trap 'rm -rf "$object"' EXIT
echo '#include <stdio.h>
int main(void) { return puts("") < 0; }' > "$object/main.c"
"${CC:-cc}" -o "$object/main" "$object/main.c" 2> /dev/null \
    || lacks "no C compiler that can link a program; on Debian, as root: apt-get install gcc libc6-dev"

if ! command -v "$python" > /dev/null; then
    lacks "no $python; on Debian, as root: apt-get install python3 python3-venv"
elif ! "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))'; then
    lacks "$python is older than Python 3.11; say which is newer: make PYTHON=python3.12"
elif [ ! -x "$venv/bin/python" ] && ! "$python" -c 'import ensurepip, venv' 2> /dev/null; then
    lacks "$python cannot make an environment; on Debian, as root: apt-get install python3-venv"
fi

if [ "$tier" = test ]; then
    { rustfmt --version && cargo clippy --version; } > /dev/null 2>&1 \
        || lacks "no rustfmt or no clippy; with rustup: rustup component add rustfmt clippy"
    if ! git --version > /dev/null 2>&1; then
        lacks "no git; on Debian, as root: apt-get install git"
    elif ! said=$(git ls-files --error-unmatch Makefile 2>&1); then
        lacks "git does not know the files here ($(echo "$said" | head -n 1)); test in a clone"
    fi
fi
[ "$lacking" = 0 ] || exit 2
