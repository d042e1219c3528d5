# `make help` lists what there is. DynamoRIO and the tracer are built by
# `cargo xtask tracer`, the example programs by workloads/Makefile.
PREFIX ?= /usr/local
DESTDIR ?=
CARGO ?= cargo
export CARGO_TERM_COLOR ?= auto

BUILD_PACKAGES := build-essential cmake pkg-config libhwloc-dev libscotch-dev libudev-dev \
	gfortran openmpi-bin libopenmpi-dev python3
# Some install node and npm from elsewhere, which Debian's packages would break.
NODE_PACKAGES := $(if $(shell command -v npm),,nodejs npm)
TEST_PACKAGES := $(BUILD_PACKAGES) clang-format hpcc hwloc likwid numactl pigz xz-utils sqlite3 \
	busybox-static lz4 qemu-system-x86 zstd chromium \
	bzip2 valgrind $(NODE_PACKAGES)
C_FILES := $(wildcard tracer/*.h tracer/*/*.[ch] crates/hither/tests/field/*.c* \
	crates/hither/tests/map/*.c crates/profile/tests/bursts/*.c crates/hither/tests/run/*.[ch] \
	crates/hither/tests/auto/*.c crates/hither/tests/guest/*.c crates/hither/tests/hostile/*.c crates/hither/tests/fuzz/*.[ch] \
	workloads/*.[ch] workloads/*.cpp bench/*/*.[ch])

HITHER := target/release/hither
DEMO_PROGRAM := target/workloads/ondes 160 40
DEMO_MACHINE := xeon-x7550x4
DEMO_PROFILE := target/demo.hither
DEMO_PLACEMENT := target/demo.place.json

.PHONY: all build programs demo docs check test soak fuzz audit dist format install uninstall clean help
.PHONY: bench-trace bench-run bench-auto bench-map bench-report bench-sim bench-structures bench-lines bench-memory bench-fetches bench-communication bench-rebuild bench-growth bench-policies bench-harmless screenshots build-packages test-packages toolchain

all: build

help:
	@echo 'make demo                    trace an example program, say what ails it, place it'
	@echo 'make check                   format, clippy and unit tests: before each commit'
	@echo 'make test                    all checks and tests'
	@echo 'make docs                    docs/ as a book with search, in target/book'
	@echo 'make [build]                 the program and its tracer, in target/'
	@echo 'make programs                the example programs, in target/workloads/'
	@echo 'make install PREFIX=DIR      bin, lib, man pages, completions (default /usr/local)'
	@echo 'make uninstall PREFIX=DIR    remove them'
	@echo 'make dist                    packages to hand out: a tarball and a .deb, in target/dist'
	@echo 'make bench-trace             cost of tracing against native, valgrind, qemu-user'
	@echo 'make bench-run               cost of hither run beside a plain start'
	@echo 'make bench-auto              cost of hither auto beside a plain start, and what it sees; PROGRAMS=DIR: of yours'
	@echo 'make bench-map               placements and their cost against libscotch'
	@echo 'make bench-report            pages of known size: time, bytes, zoom in chromium'
	@echo 'make bench-sim               accesses simulated a second, beside cachegrind and pycachesim'
	@echo 'make bench-structures PROGRAMS=DIR  accesses by structure against the oracle, of your programs'
	@echo 'make bench-lines PROGRAMS=DIR  accesses by source line against the oracle, of your programs'
	@echo 'make bench-memory PROGRAMS=DIR      peak of memory beside that of your programs alone; needs root'
	@echo 'make bench-fetches PROGRAMS=DIR     fetches against misses of simulated private caches'
	@echo 'make bench-communication PROGRAMS=DIR  who shares with whom: alone, beside a load, sampled, oracle'
	@echo 'make bench-growth            how the cost of tracing grows, one size of a program at a time'
	@echo 'make bench-policies          policies against implementations from the papers'
	@echo 'make bench-harmless PROGRAMS=DIR    what map does without a policy against the system, simulated'
	@echo 'make bench-rebuild           processor time of a build after one constant changed'
	@echo 'make screenshots             pictures of the pages of the example programs'
	@echo 'make soak                    many runs in a row, slower than a test may be'
	@echo 'make fuzz SECONDS=60         hostile files and programs at random, so long for each kind'
	@echo 'make audit                   advisories, licences and sources of libraries'
	@echo 'make format                  format Rust and C'
	@echo 'make clean                   remove target/'

# --- what has to be there first

# Installs those of the packages $(1) that are missing, or says how.
define need
@missing=; \
if ! command -v dpkg-query >/dev/null; then \
  echo 'This is not Debian: make sure you have the equivalents of $(strip $(1)).'; exit 0; \
fi; \
for p in $(1); do \
  dpkg-query -W -f='$${Status}' $$p 2>/dev/null | grep -q 'ok installed' || missing="$$missing $$p"; \
done; \
if [ -z "$$missing" ]; then exit 0; fi; \
if [ "$$(id -u)" != 0 ]; then \
  echo "Some packages are missing. Run this, then make again:"; \
  echo "  sudo apt-get install$$missing"; exit 1; \
fi; \
echo "Installing$$missing"; \
apt-get update -qq && DEBIAN_FRONTEND=noninteractive \
  apt-get install -y -qq --no-install-recommends $$missing >/dev/null
endef

build-packages:
	$(call need,$(BUILD_PACKAGES))

test-packages:
	$(call need,$(TEST_PACKAGES))

toolchain:
	@command -v $(CARGO) >/dev/null || { \
	  echo 'There is no cargo on PATH: install Rust 1.88 or later from https://rustup.rs'; exit 1; }

# --- building

build: build-packages toolchain
	$(CARGO) xtask tracer
	$(CARGO) build --release --package hither

programs: build-packages
	$(MAKE) --no-print-directory -C workloads

# The commands of docs/first-session.md.
demo: build programs
	rm -rf $(DEMO_PROFILE)
	OMP_NUM_THREADS=4 $(HITHER) trace -o $(DEMO_PROFILE) -- $(DEMO_PROGRAM)
	$(HITHER) stat --topology $(DEMO_MACHINE) $(DEMO_PROFILE)
	$(HITHER) report --text --topology $(DEMO_MACHINE) $(DEMO_PROFILE)
	$(HITHER) map --topology $(DEMO_MACHINE) --explain -o $(DEMO_PLACEMENT) $(DEMO_PROFILE)

# docs/ as a book: target/book/index.html.
MDBOOK_VERSION := 0.4.52
MDBOOK := $(or $(shell command -v mdbook),target/tools/bin/mdbook)

docs: toolchain
	@test -x $(MDBOOK) || $(CARGO) install mdbook --quiet --locked --version $(MDBOOK_VERSION) \
	  --no-default-features --features search --root target/tools
	$(MDBOOK) build

# Those that a stranger may link: their documentation is checked. All are taken together, so that
# what they depend on has the features that it has for clippy, and is not compiled anew.
LIBRARIES := --workspace --lib

# --- checking; the development profile keeps overflow checks on

check: toolchain
	$(CARGO) fmt --all --check
	@command -v clang-format >/dev/null || { \
	  echo 'There is no clang-format on PATH: apt-get install clang-format'; exit 1; }
	clang-format --dry-run -Werror $(C_FILES)
	$(CARGO) clippy --workspace --all-targets -- -D warnings
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --quiet --no-deps $(LIBRARIES)
	$(CARGO) test --workspace --lib --bins

test: test-packages toolchain
	$(CARGO) fmt --all --check
	clang-format --dry-run -Werror $(C_FILES)
	$(CARGO) xtask tracer
	$(CARGO) xtask report-packages
	$(MAKE) --no-print-directory -C workloads
	$(CARGO) xtask guest --prepare
	$(CARGO) clippy --workspace --all-targets -- -D warnings
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --quiet --no-deps $(LIBRARIES)
	$(CARGO) xtask test

# A hundred runs in a row of a program with 64 threads: no hang, crash or leftover.
soak: toolchain
	$(CARGO) xtask tracer
	$(MAKE) --no-print-directory -C workloads
	HITHER_SOAK=100 $(CARGO) test --package hither --test field -- many_runs

# Files and programs that mean harm, at random: SECONDS of each kind, one after the other.
SECONDS ?= 60
SEED ?= 1
fuzz: toolchain
	$(CARGO) xtask tracer
	HITHER_FUZZ_SECONDS=$(SECONDS) HITHER_FUZZ_SEED=$(SEED) $(CARGO) test --package hither --test fuzz -- \
	  --test-threads 1 --nocapture

# Known weaknesses, licences and sources of libraries.
audit: toolchain
	.ci/audit

format: toolchain
	$(CARGO) fmt --all
	clang-format -i $(C_FILES)

bench-trace: build programs
	python3 bench/trace.py $(BENCH_ARGS)

bench-run: build programs
	$(MAKE) --no-print-directory -C bench/kernels
	python3 bench/run.py $(BENCH_ARGS)

bench-auto: build
	python3 bench/auto.py $(if $(PROGRAMS),--folder $(PROGRAMS)) $(BENCH_ARGS)

# Words in BENCH_ARGS keep machines, patterns, costs: BENCH_ARGS='-v hops 64 power-law'.
bench-map: build-packages toolchain
	$(CARGO) bench --package hither-model --features scotch --bench map -- $(BENCH_ARGS)

bench-report: test-packages toolchain
	$(CARGO) xtask report-packages
	$(CARGO) bench --package hither --bench report -- $(BENCH_ARGS)

# BENCH_ARGS=--scaling: also what more accesses and more caches cost.
bench-sim: build programs
	python3 bench/sim.py $(BENCH_ARGS)

bench-structures: build
	python3 bench/structures.py $(HITHER) "$(PROGRAMS)"

bench-lines: build
	python3 bench/lines.py $(HITHER) "$(PROGRAMS)"

bench-memory: build
	python3 bench/memory.py $(HITHER) "$(PROGRAMS)"

bench-fetches: build
	python3 bench/fetches.py $(HITHER) "$(PROGRAMS)" $(BENCH_ARGS)

bench-communication: build
	python3 bench/communication.py $(HITHER) "$(PROGRAMS)" $(BENCH_ARGS)

bench-policies: build
	python3 bench/policies.py $(HITHER) $(BENCH_ARGS)

bench-harmless: build
	python3 bench/harmless.py $(HITHER) "$(PROGRAMS)" $(BENCH_ARGS)

bench-rebuild: build
	python3 bench/rebuild.py

# BENCH_ARGS='--quick mappings threads': only these sizes, and the first of each range.
bench-growth: build
	mkdir -p target/growth
	$(CC) -O2 -g -Wall -Wextra -pthread -o target/growth/grow bench/growth/grow.c
	$(CARGO) build --release --package hither-profile --example wide
	python3 bench/growth.py $(BENCH_ARGS)

# Looked at by people: target/screenshots.
screenshots: test-packages build programs
	$(CARGO) xtask report-packages
	node report-ui/test/screenshots.mjs $(HITHER) target/workloads target/screenshots

# --- installing: `make && sudo make install`, so it builds only what was never built

BIN := $(DESTDIR)$(PREFIX)/bin
LIB := $(DESTDIR)$(PREFIX)/lib/hither
SHARE := $(DESTDIR)$(PREFIX)/share
MAN := $(SHARE)/man/man1
BASH_DIR := $(SHARE)/bash-completion/completions
ZSH_DIR := $(SHARE)/zsh/site-functions
FISH_DIR := $(SHARE)/fish/vendor_completions.d
DOC := $(SHARE)/doc/hither
FOLDERS := "$(BIN)" "$(LIB)" "$(MAN)" "$(BASH_DIR)" "$(ZSH_DIR)" "$(FISH_DIR)" "$(DOC)"
# Which of these and of their parents were not there before, the innermost first, without
# DESTDIR: uninstall removes them, where they are empty, and no other.
MADE := $(LIB)/installed-folders

install:
	@test -x $(HITHER) -a -e target/lib/hither/libhither_tracer.so || $(MAKE) build
	@made=$$(for folder in $(FOLDERS); do \
	  until [ -d "$$folder" ] || [ "$$folder" = "$(DESTDIR)" ]; do \
	    echo "$${folder#"$(DESTDIR)"}"; folder=$$(dirname "$$folder"); \
	  done; \
	done | LC_ALL=C sort -ru); \
	install -d $(FOLDERS) && printf '%s\n' "$$made" >> "$(MADE)"
	install -m 755 $(HITHER) "$(BIN)/hither"
	install -m 644 target/lib/hither/*.so "$(LIB)"
	chmod 755 "$(LIB)/libdynamorio.so"
	$(HITHER) man "$(MAN)"
	$(HITHER) completions bash > "$(BASH_DIR)/hither"
	$(HITHER) completions zsh > "$(ZSH_DIR)/_hither"
	$(HITHER) completions fish > "$(FISH_DIR)/hither.fish"
	install -m 644 README.md CHANGELOG.md LICENSE-MIT LICENSE-APACHE THIRD-PARTY.md $(filter-out docs/SUMMARY.md,$(wildcard docs/*.md)) \
	  target/lib/hither/LICENSE-DynamoRIO "$(DOC)"

uninstall:
	rm -f "$(BIN)/hither" "$(MAN)"/hither.1 "$(MAN)"/hither-*.1
	rm -f "$(BASH_DIR)/hither" "$(ZSH_DIR)/_hither" "$(FISH_DIR)/hither.fish"
	@made=$$(cat "$(MADE)" 2>/dev/null); \
	rm -rf "$(LIB)" "$(DOC)"; \
	printf '%s\n' "$$made" | LC_ALL=C sort -ru | while IFS= read -r folder; do \
	  if [ -n "$$folder" ] && [ -d "$(DESTDIR)$$folder" ]; then \
	    rmdir --ignore-fail-on-non-empty "$(DESTDIR)$$folder"; \
	  fi; \
	done

# --- handing out: what `install` installs, stripped and packed

dist: build
	$(CARGO) xtask dist

clean:
	rm -rf target
