# `make demo` and `make test` work on a machine with only Python and make: each sets itself up first.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
JOBS ?= 2

.PHONY: demo test slow cluster readme matrix weights lint types docs setup clean

demo: $(READY)
	$(BIN)/fmtlbench run --algo fedhca2 --scenario st_mt_1 --format table

# In the order of names: small files, which xdist would do last, may be the slow ones.
test: $(READY)
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n $(JOBS) --dist loadfile --no-loadscope-reorder

# Tests of half a minute each: real compilers, many rounds, benches of whole processes.
slow: $(READY)
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n $(JOBS) -m slow tests/algorithms tests/bench tests/engine

# Runs on a Ray cluster of two nodes on this machine: equality with serial ones, lost processes and nodes, resuming.
cluster: $(READY)
	OMP_NUM_THREADS=1 timeout 900 $(BIN)/python -m pytest -m cluster tests/cluster

# The commands of the README and of docs/, as they are written, with a nano preset of seconds.
readme: $(READY)
	OMP_NUM_THREADS=1 timeout 900 $(BIN)/python -m pytest -m readme tests/readme

# Every scenario with every method, every network with every method, and every recipe: over an hour on two cores.
matrix: $(READY)
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n $(JOBS) -m matrix tests/test_matrix.py tests/test_recipes_end_to_end.py

# The encoder weights of the package, anew: some minutes each on one core. Interrupted, it goes on.
weights: $(READY)
	OMP_NUM_THREADS=1 $(BIN)/fmtlbench pretrain --backbone swin_nano -o fmtlbench/weights
	OMP_NUM_THREADS=1 $(BIN)/fmtlbench pretrain --backbone resnet_nano -o fmtlbench/weights

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

setup: $(READY)

# One pip call, so that torch, torchvision and timm come out of one resolution.
$(READY): pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --editable ".[dev]"
	touch $@

clean:
	rm -rf $(VENV) build docs/_generated *.egg-info .pytest_cache .ruff_cache .mypy_cache
