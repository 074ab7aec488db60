# Sardonyx: `make build` gives .venv/bin/sardonyx, `make run` compares designs on the recorded traces.
# Needed: Rust (rustc, cargo), a C compiler, Python 3.11 or newer with venv. Everything else comes from
# Cargo.lock and requirements.lock. All Rust builds use the release profile, so dependencies build once.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed
BUILT := $(VENV)/.built
CARGO_FLAGS := --release --workspace --locked
RUST := Cargo.toml Cargo.lock $(shell find crates -name '*.rs' -o -name '*.toml')
PYTHON_CODE := python tests/python tools

export PIP_DISABLE_PIP_VERSION_CHECK := 1

.PHONY: build wheel run docs test test-rust test-planted test-checked test-python golden figures lint fmt bench c-library browser qemu store-tools corpus clean

build: $(BUILT)

$(INSTALLED): requirements.lock
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	  || { echo "make: $(PYTHON) is not Python 3.11 or newer; say which is: make PYTHON=python3.12" >&2; exit 1; }
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV) \
	  || { rm -rf $(VENV); echo "make: $(PYTHON) cannot make an environment; on Debian: apt-get install python3-venv" >&2; exit 1; }
	$(BIN)/python -m pip install --quiet --requirement requirements.lock
	@touch $@

$(BUILT): $(INSTALLED) pyproject.toml tools/build_native.py $(RUST)
	@command -v cargo > /dev/null || { echo "make: no cargo; install Rust 1.90 or newer" >&2; exit 1; }
	$(BIN)/python -m pip install --quiet --no-build-isolation --no-deps --editable .
	@$(BIN)/python -m compileall -q python
	@touch $@

# What others install: dist/*.whl, for every Python from 3.11, and dist/*.tar.gz, from which it can be built.
wheel: $(INSTALLED)
	$(BIN)/python -m hatchling build -d dist

run: build
	$(BIN)/sardonyx compare traces/*.parquet --out results

# The docs as a site, in target/docs; a link that leads nowhere is an error.
docs: $(INSTALLED)
	$(BIN)/sphinx-build -q -W --keep-going -d target/doctrees docs target/docs

test: lint docs test-rust test-planted test-python

test-rust: qemu
	cargo test $(CARGO_FLAGS) --no-fail-fast

# Each fault of crates/sardonyx/planted, in a copy of the sources, has to be caught by the crash explorer.
test-planted:
	$(PYTHON) tools/planted.py
	cargo test --release --locked --manifest-path target/planted/Cargo.toml --target-dir "$${CARGO_TARGET_DIR:-target}" \
	  --package sardonyx --test planted

# The simulator's tests with its debug assertions and with overflow as an error; `make test` has neither.
CHECKED := $(foreach check,debug-assertions overflow-checks,$(foreach package,sardonyx sardonyx-trace,\
	--config profile.release.package.$(package).$(check)=true))
test-checked:
	cargo $(CHECKED) test --release --locked --package sardonyx --package sardonyx-trace

test-python: build browser qemu store-tools
	$(BIN)/python -m pytest
	$(BIN)/python tools/golden.py --quick
	$(BIN)/python tools/figures.py --quick

# All that the golden files hold; `make test` checks what is marked quick.
golden: build
	$(BIN)/python tools/golden.py

# All figures of the docs against their commands, which takes hours; `make test` checks those whose commands are quick.
figures: build
	$(BIN)/python tools/figures.py

lint: $(INSTALLED)
	git ls-files '*.rs' | xargs rustfmt --check --edition 2024
	cargo clippy $(CARGO_FLAGS) --all-targets -- -D warnings
	$(BIN)/ruff format --check $(PYTHON_CODE)
	$(BIN)/ruff check $(PYTHON_CODE)
	$(BIN)/mypy
	git ls-files '*.md' '*.py' '*.rs' '*.toml' '*.h' '*.cc' '*.ipynb' Makefile | xargs $(BIN)/codespell

fmt: $(INSTALLED)
	git ls-files '*.rs' | xargs rustfmt --edition 2024
	$(BIN)/ruff format $(PYTHON_CODE)
	$(BIN)/ruff check --fix $(PYTHON_CODE)

bench:
	cargo bench --quiet --package sardonyx --locked --bench requests --bench programs

# The library for other simulators, its header, and DRAMsim3's face of it (docs/hosts.md).
PREFIX ?= target/c
CXX ?= c++
c-library:
	cargo build --release --locked --package sardonyx-c
	mkdir -p $(PREFIX)/include $(PREFIX)/lib
	cp crates/c/include/sardonyx.h crates/c/dramsim3/dramsim3.h $(PREFIX)/include
	cp "$${CARGO_TARGET_DIR:-target}/release/libsardonyx_c.so" "$${CARGO_TARGET_DIR:-target}/release/libsardonyx_c.a" $(PREFIX)/lib
	$(CXX) -std=c++14 -O2 -fPIC -shared -I $(PREFIX)/include crates/c/dramsim3/config.cc crates/c/dramsim3/memory_system.cc -o $(PREFIX)/lib/libdramsim3.so \
	  -L $(PREFIX)/lib -lsardonyx_c -Wl,-rpath,'$$ORIGIN'

# The reports are looked at in a real browser.
browser:
	@command -v chromium > /dev/null || command -v chromium-browser > /dev/null \
	  || command -v google-chrome > /dev/null || { \
	    echo "make: no chromium, which looks at the reports; installing it" >&2; \
	    as_root=; test "$$(id -u)" = 0 || as_root="sudo -n"; \
	    { $$as_root apt-get update -qq && $$as_root apt-get install -qq --yes chromium > /dev/null; } \
	    || { echo "make: could not install chromium; as root: apt-get install chromium" >&2; exit 1; }; }

# Programs are recorded in QEMU's user-mode emulation, among them sqlite3 and one with libpmemobj.
qemu:
	@{ command -v qemu-x86_64 && command -v sqlite3 && test -e /usr/include/libpmemobj.h; } > /dev/null || { \
	    echo "make: no qemu-user, sqlite3 or libpmemobj-dev, which the recorder's tests need; installing them" >&2; \
	    as_root=; test "$$(id -u)" = 0 || as_root="sudo -n"; \
	    { $$as_root apt-get update -qq && $$as_root apt-get install -qq --yes qemu-user sqlite3 libpmemobj-dev > /dev/null; } \
	    || { echo "make: could not install them; as root: apt-get install qemu-user sqlite3 libpmemobj-dev" >&2; exit 1; }; }

# The block device is served by nbdkit and tested by real clients; the estimator's counts are held against borg's.
STORE_TOOLS := nbdkit fio qemu-utils libnbd-bin e2fsprogs borgbackup
store-tools:
	@{ command -v nbdkit && command -v fio && command -v qemu-img && command -v nbdcopy && command -v borg \
	    && PATH="$$PATH:/sbin:/usr/sbin" command -v mke2fs; } > /dev/null || { \
	    echo "make: not all of $(STORE_TOOLS), which the block store's tests need; installing them" >&2; \
	    as_root=; test "$$(id -u)" = 0 || as_root="sudo -n"; \
	    { $$as_root apt-get update -qq && $$as_root apt-get install -qq --yes $(STORE_TOOLS) > /dev/null; } \
	    || { echo "make: could not install them; as root: apt-get install $(STORE_TOOLS)" >&2; exit 1; }; }

# Installs and records the programs of docs/corpus.md and writes its table.
corpus: build
	$(BIN)/python tools/corpus.py --out corpus

clean:
	cargo clean
	rm -rf $(VENV) results dist python/sardonyx/*.so .mypy_cache .ruff_cache .pytest_cache
