# `make demo` and `make test` work on a machine with only Python and make: each sets itself up first.
PYTHON ?= python3
VENV := .venv
NEWEST := .venv-newest
BIN := $(VENV)/bin
READY := $(VENV)/.ready
JOBS ?= 2
# The tested versions; `make setup CONSTRAINTS=` takes the newest.
CONSTRAINTS ?= constraints.txt
# Where the demo's run goes.
OUT := runs
# An index with other builds of torch, for example without CUDA: `make setup TORCH_INDEX=URL`.
TORCH_INDEX ?=
PIP := -m pip --disable-pip-version-check install --quiet
FROM := $(if $(TORCH_INDEX),--extra-index-url "$(TORCH_INDEX)")

.PHONY: demo test leaderboard slow mutants cluster readme matrix weights shape frozen lint types docs wheel setup constraints newest
.PHONY: clean

demo: $(READY)
	$(BIN)/fmtlbench run --algo fedhca2 --scenario st_mt_1 --out "$(OUT)" --format table

# In the order of names: small files, which xdist would do last, may be the slow ones.
# MARKED="not matrix" would do more than usual.
test: $(READY)
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n $(JOBS) --dist loadfile --no-loadscope-reorder $(if $(MARKED),-m "$(MARKED)")

# Tests of half a minute each: real compilers, many rounds, benches of whole processes.
slow: $(READY)
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n $(JOBS) -m slow

# Runs on a Ray cluster of two nodes on this machine: equality with serial ones, lost processes and nodes, resuming.
cluster: $(READY)
	OMP_NUM_THREADS=1 timeout 900 $(BIN)/python -m pytest -m cluster tests/cluster

# Every command and snippet of README.md and docs/, as it is written, with a nano preset of seconds.
readme: $(READY)
	OMP_NUM_THREADS=1 timeout 1200 $(BIN)/python -m pytest -n $(JOBS) --dist worksteal -m readme tests/readme

# Every scenario with every method, every network with every method, and every recipe: over an hour on two cores.
matrix: $(READY)
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n $(JOBS) -m matrix

# Which of the hand-made defects in benchmarks/mutants.yml the tests find. Stopped, the same command goes on, unless product
# or tests have changed; ONLY="--room data" or ONLY="--base CHECKOUT" asks for less or for other tests.
mutants: $(READY)
	$(BIN)/python benchmarks/mutants.py --jobs $(JOBS) $(ONLY)

# Our own leaderboard: runs what is missing of results/leaderboard/grids, then of the probes, and writes docs/leaderboard
# and the pages that count our runs. Networks are not kept: the pages are to say the same in every clone.
# BUDGET=2h is the time for each, DRY_RUN=1 shows the plan and touches nothing. Stopped, or out of time, the same command
# goes on.
leaderboard: MANY = --jobs $(JOBS) $(if $(BUDGET),--budget $(BUDGET)) $(if $(DRY_RUN),--dry-run)
leaderboard: $(READY)
	@for grid in results/leaderboard/grids/*.yml; do \
	    echo "$$grid"; \
	    OMP_NUM_THREADS=1 $(BIN)/fmtlbench bench $$grid --out results/leaderboard --keep none $(MANY) || { test $$? -eq 1 || exit 2; break; }; \
	done
	OMP_NUM_THREADS=1 $(BIN)/fmtlbench probe --out results/probes --keep none $(MANY) $(if $(DRY_RUN),,--format md -o results/probes.md) \
	    || test $$? -eq 1
	$(if $(DRY_RUN),,$(BIN)/python docs/write_leaderboard.py)
	$(if $(DRY_RUN),,$(BIN)/python docs/write_method_cards.py)
	$(if $(DRY_RUN),,$(BIN)/python docs/write_reproduce.py --keep-hours)

# The encoder weights of the package, anew: some minutes each on one core.
weights: $(READY)
	OMP_NUM_THREADS=1 $(BIN)/python benchmarks/make_weights.py

# How large the house is: rooms, rules, verbs, lines, and the way of a config through it.
shape: $(READY)
	$(BIN)/python benchmarks/shape.py $(if $(AGAINST),--against "$(AGAINST)")

# Tiny runs, tables, pages and hashes of this checkout and of another, byte for byte: make frozen AGAINST=REPOSITORY
frozen: $(READY)
	$(BIN)/python benchmarks/frozen.py --against "$(AGAINST)"

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

# mypy reads packages from folders, and four of ours lie beside fmtlbench/: links lay them out as they install.
types: $(READY)
	rm -rf build/types && mkdir -p build/types/fmtlbench
	@ln -s $(addprefix $(CURDIR)/,$(wildcard fmtlbench/*) algorithms metrics reports scenarios) build/types/fmtlbench
	$(BIN)/python -m mypy

# The site of docs/, in build/docs; a warning, a dead link among them, is an error.
docs: $(READY)
	OMP_NUM_THREADS=1 $(BIN)/python -m sphinx -b html -E -W --keep-going -q docs build/docs

# The archives of a release; each is installed in an environment of its own and tried outside the checkout.
wheel: $(READY)
	rm -rf dist
	$(BIN)/python -m build --outdir dist
	$(BIN)/python .ci/check_wheel.py dist

setup: $(READY)

# One pip call, so that torch, torchvision and timm come out of one resolution. The index of TORCH_INDEX comes beside
# pip's own: of one version, a build with a local suffix (2.9.0+cpu) is the higher one, so it is taken.
$(READY): pyproject.toml $(wildcard constraints.txt)
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python $(PIP) $(FROM) $(if $(CONSTRAINTS),--constraint $(CONSTRAINTS)) --editable ".[dev]"
	touch $@

# The versions of .venv become the tested ones: after `make test` has passed with them.
constraints: $(READY)
	$(BIN)/python .ci/write_constraints.py

# Does it work with the newest of everything? In an environment of its own, anew each time.
newest:
	rm -rf $(NEWEST) && $(PYTHON) -m venv $(NEWEST)
	$(NEWEST)/bin/python $(PIP) $(FROM) .
	$(NEWEST)/bin/python -m pip check
	$(NEWEST)/bin/fmtlbench --version
	$(NEWEST)/bin/fmtlbench run --algo fedhca2 --scenario st_mt_1 --rounds 2 --out $(NEWEST)/runs --format table

clean:
	rm -rf $(VENV) $(NEWEST) build dist docs/_generated *.egg-info .pytest_cache .ruff_cache .mypy_cache
