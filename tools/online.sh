#!/bin/sh
# Runs a command that fetches packages: `tools/online.sh COMMAND ..`. If it fails because no network is there, the last
# line says so: pip's own says only that no version was found.
set -u
said=$(mktemp)
trap 'rm -f "$said"' EXIT
"$@" 2> "$said"
status=$?
if [ "$status" != 0 ] && grep -qiE 'name resolution|resolve host|name or service|network is unreachable|failed to connect|failed to establish|connection (refused|timed out)|spurious network' "$said"; then
    grep -iE '^(error|fatal)' "$said" | head -n 3 >&2
    echo "make: this machine is offline, or a proxy is missing: packages cannot be fetched. Connect it, or say where they are:" \
        "PIP_NO_INDEX=1 PIP_FIND_LINKS=FOLDER for Python's, a [source] of cargo's config for Rust's" >&2
    exit 2
fi
cat "$said" >&2
exit "$status"
