# make demo       set up and run the main job             make test       set up and run all tests, on all cores
# make check      linters, import rules, site, tests, fuzz  make check-all  the same, tests with more repeats, the deep tests, notebooks, lowest versions, a longer fuzz
# make coverage   which lines of Python the tests run      make bench      compare with other solvers, into docs/benchmarks.md
# make bench-compare REV=hash  two commits in turn
# make docs       the site, into site/                     make docs-serve  the same, shown while you write
# make wheel      the wheel and the sdist, into dist/      make fuzz SECONDS=60  random and hostile input for every reader
# make notebooks  run the guides' notebooks                make test-minimum     the lowest declared versions
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
PIP    := $(BIN)/pip install --quiet --disable-pip-version-check --no-compile
BYTECODE = $(BIN)/python -m compileall -q -j 0 -x '/tests?/' $(VENV)/lib >/dev/null || true  # on all cores, where pip uses one, and without the tests of other packages
TORCH  ?= torch==2.13.0
CORES  ?= -n auto --dist worksteal
SECONDS ?= 60
SEED   ?= 0
REV    ?= HEAD~1
MINIMUM_TESTS ?= -m 'not slow' tests/kernels tests/model tests/planning tests/simulation tests/control tests/learners tests/envs tests/traces tests/studies tests/cli

.PHONY: demo test test-thorough test-deep coverage lint docs docs-serve katex wheel fuzz notebooks test-minimum check check-all bench bench-compare clean

demo: $(VENV)/.studies  # compiled first, each loop once and on all cores: the study's workers would each compile them all
	$(BIN)/oldlight compile delay loss delayed-ucbvi simulation posterior-sampling augmented-ucbvi augmented-q-learning memoryless loss-learners
	$(BIN)/oldlight paper --quick --out out/paper

test: $(VENV)/.dev  # compiled first, each loop once: the test processes would compile them side by side
	$(BIN)/oldlight compile
	$(BIN)/python -m pytest $(CORES)

test-thorough: $(VENV)/.dev  # all tests, random checks repeated as often as tests/repeats.py says
	$(BIN)/oldlight compile
	$(BIN)/python -m pytest $(CORES) --thorough

test-deep: $(VENV)/.deep
	$(BIN)/python -m pytest tests/deep

coverage: $(VENV)/.dev
	$(BIN)/python -m pytest $(CORES) --cov --cov-report=term:skip-covered

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

docs: $(VENV)/.dev katex  # tests/docs/test_site.py takes a site that was made without a fault after the last change of what it is made from
	rm -f site/.made
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet
	touch site/.made

docs-serve: $(VENV)/.dev katex
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs serve

KATEX := docs/assets/katex
katex:  # the typesetter of formulas; without npm the pages show them as they are written
	@if [ ! -d $(KATEX) ] && command -v npm >/dev/null; then \
	    rm -rf $(KATEX).part && mkdir -p $(KATEX).part && \
	    (cd $(KATEX).part && npm pack --silent katex@0.16 >/dev/null && tar -xzf katex-*.tgz) && \
	    (cd $(KATEX).part/package/dist && mkdir kept && mv katex.min.css katex.min.js fonts kept) && \
	    mv $(KATEX).part/package/dist/kept $(KATEX) || echo "KaTeX could not be had from npm; formulas stay as they are written"; \
	    rm -rf $(KATEX).part; \
	fi

wheel: $(VENV)/.dev
	$(BIN)/python tools/release.py dist

fuzz: $(VENV)/.dev
	$(BIN)/python tests/fuzz/run.py --seconds $(SECONDS) --seed $(SEED)

notebooks: $(VENV)/.notebooks
	$(BIN)/python docs/scripts/notebooks.py --run

test-minimum: export NUMBA_CACHE_DIR = $(CURDIR)/.venv-minimum/compiled  # its own: another numba would overwrite the code of .venv
test-minimum: .venv-minimum/.done
	.venv-minimum/bin/oldlight compile
	.venv-minimum/bin/python -m pytest $(CORES) $(MINIMUM_TESTS)

check: lint docs test
	$(MAKE) fuzz SECONDS=20

check-all: check test-thorough test-deep notebooks test-minimum
	$(MAKE) fuzz SECONDS=300

bench: $(VENV)/.dev
	-$(MAKE) .venv-rlberry/.done
	$(BIN)/python benchmarks/bench.py --docs docs/benchmarks.md

bench-compare: $(VENV)/.dev  # make bench-compare REV=20c8880
	$(BIN)/python benchmarks/compare.py $(REV)

$(VENV)/bin/python:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "oldlight needs Python 3.11 or later; try: make PYTHON=python3.11")'
	$(PYTHON) -m venv $(VENV)

$(VENV)/.studies: pyproject.toml | $(VENV)/bin/python
	$(PIP) -e '.[studies]'
	@$(BYTECODE)
	touch $@

$(VENV)/.dev: pyproject.toml | $(VENV)/bin/python
	$(PIP) -e '.[dev]'
	@$(BYTECODE)
	touch $(VENV)/.studies $@

$(VENV)/.deep: pyproject.toml $(VENV)/.dev
	$(PIP) '$(TORCH)'
	$(PIP) -e '.[dev,deep]'
	touch $@

$(VENV)/.notebooks: pyproject.toml $(VENV)/.dev
	$(PIP) -e '.[dev,notebooks]'
	touch $@

# the lowest versions that pyproject.toml declares, of the base and of the extra `studies`, all at once
.venv-minimum/.done: pyproject.toml tools/minimum.py | $(VENV)/bin/python
	$(PYTHON) -m venv .venv-minimum
	$(BIN)/python tools/minimum.py > .venv-minimum/constraints.txt
	.venv-minimum/bin/pip install --quiet --disable-pip-version-check -c .venv-minimum/constraints.txt -e '.[studies]' pytest hypothesis pytest-xdist
	touch $@

.venv-rlberry/.done:  # an old rlberry needs an environment of its own
	$(PYTHON) -m venv .venv-rlberry
	.venv-rlberry/bin/pip install --quiet --disable-pip-version-check 'rlberry==0.6.0' 'gymnasium==0.29.1' 'numpy<2' 'pandas<3' numba
	touch $@

clean:
	rm -rf $(VENV) .venv-rlberry .venv-minimum out build dist site $(KATEX) .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis .coverage
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
