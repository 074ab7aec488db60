# Sardonyx: `make run` compares designs on the recorded traces, `make test` tests everything that has no mark.
# Needed: Rust (rustc, cargo), a C compiler, Python 3.11 or newer with venv; for tests rustfmt, clippy and git.
# Everything else comes from Cargo.lock and requirements/*.lock, and from apt where root asks. CONTRIBUTING.md has the
# tiers of tests.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# What the environment has: what `make run` needs, or the tools of tests and docs too.
RUN := $(VENV)/.run
DEV := $(VENV)/.dev
# That the crates of Cargo.lock are in cargo's folder.
CRATES := $(VENV)/.crates
# Which build of the native module is in python/sardonyx: the release's or the one for tests.
RELEASE := $(VENV)/.release
TESTING := $(VENV)/.testing
CARGO_FLAGS := --release --workspace --locked
CARGO_TESTING := cargo --config .cargo/testing.toml
SOURCES := Cargo.toml Cargo.lock pyproject.toml tools/build_native.py $(shell find .cargo crates -name '*.rs' -o -name '*.toml')
PYTHON_CODE := python tests/python tools research

export PIP_DISABLE_PIP_VERSION_CHECK := 1

.PHONY: build qemu wheel run docs check test test-all test-rust test-python design fresh lint fmt golden tables bench c-library \
  machine system system-all lock corpus clean

build: $(RELEASE)

PIP_INSTALL := tools/online.sh $(BIN)/python -m pip install --quiet --require-hashes --requirement
$(RUN): requirements/run.lock
	@tools/check_machine.sh $(PYTHON) $(VENV)
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV) || { rm -rf $(VENV); exit 1; }
	@echo "installing the packages of $<"
	@$(PIP_INSTALL) $<
	@touch $@

$(DEV): requirements/dev.lock $(RUN)
	@echo "installing the packages of $<"
	@$(PIP_INSTALL) $<
	@touch $@

$(CRATES): Cargo.lock $(RUN)
	@tools/online.sh cargo fetch --quiet --locked
	@touch $@

# The package, editable, with the native module of one of the two builds.
INSTALL := $(BIN)/python -m pip install --quiet --no-build-isolation --no-deps --editable .
$(RELEASE): $(RUN) $(CRATES) $(SOURCES)
	@echo "building the simulator, optimised"
	@$(INSTALL)
	@$(BIN)/python -m compileall -q python
	@rm -f $(TESTING) && touch $@

$(TESTING): $(DEV) $(CRATES) $(SOURCES)
	@echo "building the simulator with the profile for tests"
	@SARDONYX_CARGO_CONFIG=.cargo/testing.toml $(INSTALL)
	@$(BIN)/python -m compileall -q python
	@rm -f $(RELEASE) && touch $@

# The emulator in which programs are recorded, in target/qemu: built once from QEMU's source.
qemu: $(RUN)
	$(BIN)/python tools/qemu.py

# What others install: dist/*.whl, for every Python from 3.11, and dist/*.tar.gz, from which it can be built. For AArch64,
# with Rust's target and Debian's gcc-aarch64-linux-gnu: make wheel CARGO_BUILD_TARGET=aarch64-unknown-linux-gnu
CARGO_BUILD_TARGET ?=
ifneq ($(CARGO_BUILD_TARGET),)
wheel: export CARGO_BUILD_TARGET := $(CARGO_BUILD_TARGET)
wheel: export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER ?= aarch64-linux-gnu-gcc
endif
wheel: $(RUN) $(if $(filter x86_64%,$(or $(CARGO_BUILD_TARGET),$(shell uname -m))),qemu)
	$(BIN)/python -m hatchling build -d dist

run: build
	$(BIN)/sardonyx compare traces/*.parquet --out results

# The docs as a site, in target/docs; a link that leads nowhere is an error.
docs: $(DEV)
	$(BIN)/sphinx-build -q -W --keep-going -d target/doctrees docs target/docs

# The tiers: style; all that has no mark; everything.
check: lint

# All parts of `make test` are tried, whatever fails.
test: system
	@$(MAKE) --no-print-directory --keep-going lint docs test-rust test-python

test-rust: $(DEV) $(CRATES)
	$(BIN)/python tools/rust_tests.py

test-python: $(TESTING)
	$(BIN)/python -m pytest -m "not slow and not machine"
	$(BIN)/python tools/golden.py --quick

# One design alone, after each edit of it: contents of every kind go round, and the power is cut some thousand times.
# `python tools/new_design.py NAME` begins one.
design:
	@test -n "$(DESIGN)" || { echo "make: which design? as in: make design DESIGN=zero-lines" >&2; exit 2; }
	@SARDONYX_DESIGN=$(DESIGN) $(CARGO_TESTING) test $(CARGO_FLAGS) --quiet --test design -- --nocapture

# Everything, or some PARTS of it, as in `make test-all PARTS="rust golden"`. Tests try more cases, from a new seed; SEED=N
# repeats those of another run.
ifndef SEED
SEED := $(shell od -An -N4 -tu4 /dev/urandom | tr -d ' ')
endif
test-all: export SARDONYX_TEST_SEED := $(SEED)
test-all: export SARDONYX_TEST_TIMES := 4
test-all: system-all qemu lint docs $(TESTING)
	@echo "make: seed $(SEED); the same again: make test-all SEED=$(SEED)"
	$(BIN)/python tools/test_all.py $(PARTS)

# Both commands of the README in bare roots of Debian 12 and 13; as root.
fresh: system-all $(RUN)
	$(BIN)/python tools/fresh.py

lint: $(DEV) $(CRATES)
	git ls-files '*.rs' | xargs rustfmt --check --edition 2024
	$(CARGO_TESTING) clippy $(CARGO_FLAGS) --all-targets -- -D warnings
	$(BIN)/ruff format --check --quiet $(PYTHON_CODE)
	$(BIN)/ruff check --quiet $(PYTHON_CODE)
	$(BIN)/mypy
	git ls-files '*.md' '*.py' '*.rs' '*.toml' '*.h' '*.cc' '*.ipynb' Makefile | xargs $(BIN)/codespell

fmt: $(DEV)
	git ls-files '*.rs' | xargs rustfmt --edition 2024
	$(BIN)/ruff format $(PYTHON_CODE)
	$(BIN)/ruff check --fix $(PYTHON_CODE)

# Exact versions of all Python packages and the hashes of their files, valid for each Python from 3.11.0 on.
LOCK := target/lock/bin/uv pip compile --quiet --universal --python-version 3.11.0 --fork-strategy fewest \
  --upgrade --generate-hashes --no-header --no-annotate pyproject.toml
lock:
	$(PYTHON) -m venv target/lock
	target/lock/bin/pip install --quiet --upgrade uv
	$(LOCK) --group build --output-file requirements/run.lock
	$(LOCK) --group dev --constraints requirements/run.lock --output-file requirements/dev.lock

# All that the golden files hold; `make test` checks what is marked quick.
golden: build
	$(BIN)/python tools/golden.py

# The tables of the docs against their commands; `make test-all` checks those whose commands are quick.
tables: build
	$(BIN)/python tools/tables.py

bench:
	cargo bench --quiet --package sardonyx --locked --bench requests --bench programs

# The library for other simulators, its header, and DRAMsim3's face of it (docs/hosts/simulators.md).
PREFIX ?= target/c
CXX ?= c++
c-library:
	cargo build --release --locked --package sardonyx-c
	mkdir -p $(PREFIX)/include $(PREFIX)/lib
	cp crates/c/include/sardonyx.h crates/c/include/sardonyx_coupling.hh crates/c/dramsim3/dramsim3.h $(PREFIX)/include
	cp "$${CARGO_TARGET_DIR:-target}/release/libsardonyx_c.so" "$${CARGO_TARGET_DIR:-target}/release/libsardonyx_c.a" $(PREFIX)/lib
	$(CXX) -std=c++14 -O2 -fPIC -shared -I $(PREFIX)/include crates/c/dramsim3/config.cc crates/c/dramsim3/memory_system.cc -o $(PREFIX)/lib/libdramsim3.so \
	  -L $(PREFIX)/lib -lsardonyx_c -Wl,-rpath,'$$ORIGIN'

# Everything that tests cannot do without: looked for before anything is installed.
machine:
	@tools/check_machine.sh $(PYTHON) $(VENV) test

# What tests need of the system besides: installed where root and apt are there. `make test` skips by name what it lacks.
system: machine
	@tools/system_packages.sh test

system-all: machine
	@tools/system_packages.sh all

# Installs and records the programs of docs/simulator/corpus.md and writes its table.
corpus: build qemu
	$(BIN)/python research/corpus.py --out corpus

clean:
	cargo clean
	rm -rf $(VENV) results dist python/sardonyx/*.so .mypy_cache .ruff_cache .pytest_cache
