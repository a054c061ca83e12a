# Two commands on a fresh machine: `make demo` and `make test`. Both need only Python 3.11 or later
# and a network to the package index; what they install lives in .venv.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PYTEST_ARGS ?=
CHECK_ARGS ?=
# What the page of the view is built from, as part of the package.
PAGE_SOURCES := $(wildcard web/*.json web/*.ts web/*.html web/src/*.* web/src/views/*.*)

# What the helpers of the engine and of the model of time are compiled from.
HELPER_SOURCES := $(foreach part,simt cost texture asynchronous detector llvm abi helpers timing,\
  $(wildcard src/warploom/$(part)/*.py src/warploom/$(part)/*/*.py))

CLIENTS := .venv-clients
TORCH := .venv-torch
BUILD := .venv-wheel

# Each process would compile all that it imports again, which took longer than most tests of a process.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: check demo docs gallery reference test test-all test-environment test-clients test-ptxas test-torch test-numba
.PHONY: performance fuzz lint wheel clean

$(VENV)/installed: pyproject.toml $(PAGE_SOURCES)
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade "pip>=25.1"
	$(BIN)/python -m pip install --quiet --no-compile --editable ".[cuda,ptxas]" --group dev
	touch $@

# Without this the first launch compiles the helpers, and so does each worker of the tests.
$(VENV)/helpers: $(VENV)/installed $(HELPER_SOURCES)
	$(BIN)/python tools/build_helpers.py >/dev/null
	touch $@

# The package alone: what users install, without what its tests and linters need.
$(VENV)/package: pyproject.toml $(PAGE_SOURCES)
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade "pip>=25.1"
	$(BIN)/python -m pip install --quiet --no-compile --editable .
	touch $@

demo: $(VENV)/package
	$(BIN)/warploom run examples/saxpy.cu --kernel saxpy --grid 4096 --block 256 \
	  --arg 1048571 --arg 2.0 --arg 'f32[1048571]=arange' --arg 'f32[1048571]=ones'

# What belongs to the files that changed since the branch left main, in 90 s (tools/check.py).
check: $(VENV)/installed
	$(BIN)/python tools/check.py $(CHECK_ARGS)

test: $(VENV)/helpers
	$(BIN)/python -m pytest -n 2 --dist worksteal $(PYTEST_ARGS)

# Everything, with LLVM's full optimisation and more random kernels (docs/testing.md); takes an hour.
test-all: $(VENV)/helpers
	WARPLOOM_OPT_LEVEL=3 $(BIN)/python -m pytest -n 2 --dist worksteal --all --random-examples 40 $(PYTEST_ARGS)

# The tests in another environment: another locale, no home folder, warnings as errors and so on, one
# of the table in tools/environments.py or several with commas.
ENVIRONMENT ?= c-locale

test-environment: $(VENV)/helpers
	$(BIN)/python tools/environments.py $(ENVIRONMENT) -n 2 --dist worksteal $(PYTEST_ARGS)

# Unmodified programs of every client, in an environment of their own, and Kernel Tuner's tests, which
# its source distribution has. (Tests of numba-cuda want cffi, CUTLASS CCCL of its time.)
$(CLIENTS)/installed: pyproject.toml tools/build_pycuda.py tools/build_cupy.py
	test -x $(CLIENTS)/bin/python || $(PYTHON) -m venv $(CLIENTS)
	$(CLIENTS)/bin/python -m pip install --quiet --upgrade "pip>=25.1"
	$(CLIENTS)/bin/python -m pip install --quiet --editable ".[clients,ptxas]" --group dev cffi poetry-core
	$(CLIENTS)/bin/python tools/build_pycuda.py
	$(CLIENTS)/bin/python tools/build_cupy.py
	$(CLIENTS)/bin/python -m pip install --quiet --no-deps --target $(CLIENTS)/cccl \
	  nvidia-cuda-cccl==13.0.85
	rm -rf $(CLIENTS)/kernel_tuner && mkdir $(CLIENTS)/kernel_tuner
	$(CLIENTS)/bin/python -m pip download --quiet --no-deps --no-build-isolation \
	  --no-binary kernel-tuner --dest $(CLIENTS)/kernel_tuner kernel-tuner
	tar xzf $(CLIENTS)/kernel_tuner/kernel_tuner-*.tar.gz -C $(CLIENTS)/kernel_tuner --strip-components 1
	touch $@

test-clients: $(CLIENTS)/installed
	$(CLIENTS)/bin/python -m pytest tests/clients $(PYTEST_ARGS)

# PyTorch programs, in an environment of their own: its wheel and NVIDIA's take 5 GB.
$(TORCH)/installed: pyproject.toml
	test -x $(TORCH)/bin/python || $(PYTHON) -m venv $(TORCH)
	$(TORCH)/bin/python -m pip install --quiet --upgrade "pip>=25.1"
	$(TORCH)/bin/python -m pip install --quiet --editable ".[torch,nvcc,ptxas]" pytest hypothesis==6.170.15 \
	  expecttest ninja
	touch $@

# Every form of an instruction that ptxas takes, of a list made from the manual and of the wrappers
# in CCCL's headers, has to be decoded.
test-ptxas: $(VENV)/installed
	$(BIN)/python tools/ptxas_forms.py $(wildcard $(VENV)/lib/python3*/site-packages/nvidia/*/bin/ptxas)
	$(BIN)/python tools/cccl_wrappers.py $(wildcard $(VENV)/lib/python3*/site-packages/nvidia/*/bin/ptxas) \
	  $(wildcard $(VENV)/lib/python3*/site-packages/nvidia/*/include/cccl/cuda/__ptx/instructions/generated)

test-torch: $(TORCH)/installed
	$(TORCH)/bin/python -m pytest tests/pytorch --warploom=h100 $(PYTEST_ARGS)

# numba-cuda's own tests; writes docs/numba_tests.md. NUMBA_ARGS="--only REGEX" runs some modules.
test-numba: $(CLIENTS)/installed
	$(CLIENTS)/bin/python tools/numba_tests.py $(NUMBA_ARGS)

# Writes the tables of docs/performance.md; wants a computer with nothing else to do.
performance: $(VENV)/installed
	$(BIN)/python -m pip install --quiet --editable ".[bench]"
	$(BIN)/python benchmarks/peers.py --write --json benchmarks/peers.json
	$(BIN)/python benchmarks/overheads.py --write
	$(BIN)/python benchmarks/scaling.py --write

# The documentation as a site, in build/site; a warning is an error.
docs: $(VENV)/installed
	$(BIN)/python -m pip install --quiet --group docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet

# The pages, golden files and stored PTX that are written from the code, which tests compare with it.
reference: $(VENV)/helpers
	for page in command_reference architecture access_plans instruction_table glossary syllabus_table; do \
	  $(BIN)/python tools/$$page.py || exit 1; done
	$(BIN)/python tools/precompile.py

# Every lesson as a page that needs no server, in build/gallery, and the script by which the pages run
# edited kernels; takes minutes, because it compiles each kernel for other numbers.
gallery: $(VENV)/helpers
	$(BIN)/python tools/gallery.py build/gallery

lint: $(VENV)/installed
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/lint-imports
	$(BIN)/pyright
	$(BIN)/python tools/prose.py

# Random inputs of every kind for so many minutes, in FUZZ_WORKERS processes; exit status 1 if any
# shows an error, which is then in tests/regressions. FUZZ_SEED (a number) begins other ones, and
# FUZZ_ARGS are further options of tools/fuzz.py. docs/testing.md says more.
FUZZ_MINUTES ?= 10
FUZZ_SEED ?= 0
FUZZ_WORKERS ?= 2
FUZZ_ARGS ?=

fuzz: $(VENV)/installed
	$(BIN)/python tools/fuzz.py --minutes $(FUZZ_MINUTES) --seed $(FUZZ_SEED) \
	  --workers $(FUZZ_WORKERS) $(FUZZ_ARGS)

# What a wheel is built with: the package and NVIDIA's compiler, 0.5 GB instead of the 1.5 GB of
# what its tests and linters need.
$(BUILD)/helpers: pyproject.toml $(PAGE_SOURCES) $(HELPER_SOURCES)
	test -x $(BUILD)/bin/python || $(PYTHON) -m venv $(BUILD)
	$(BUILD)/bin/python -m pip install --quiet --upgrade "pip>=25.1"
	$(BUILD)/bin/python -m pip install --quiet --no-compile --editable ".[cuda]"
	$(BUILD)/bin/python tools/build_helpers.py >/dev/null
	touch $@

# The wheel that users install, with the helpers for every level of this kind of processor; by the
# environment of the tests, where that is there already.
wheel: $(if $(wildcard $(VENV)/helpers),$(VENV),$(BUILD))/helpers
	$(dir $<)bin/python -m pip wheel --quiet --no-deps --wheel-dir dist .

clean:
	rm -rf $(VENV) $(CLIENTS) $(TORCH) $(BUILD)
