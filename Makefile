# `make` tells what there is to do. Every target does its own set-up: nothing is needed before it.

# Settings of another environment that would reach into this one.
# PYTHONDONTWRITEBYTECODE would have every process compile all of the package again.
unexport PYTHONPATH PYTHONHOME PYTHONDONTWRITEBYTECODE VIRTUAL_ENV CONDA_PREFIX PYTEST_ADDOPTS

# PATH, so that this environment's mpiexec and mpicxx are found first; realpath, because .venv can be a link
# (scripts/setup.sh says when); not :=, because .venv may not exist before `setup` has run.
IN_VENV = env PATH="$(realpath .venv)/bin:$$PATH"

# Which random cases the long tests try; a run says it, so that it can be repeated.
SEED := $(shell date +%Y%m%d)

# Two at a time, a file's tests in one process, for they share what they have built. Files in the order of their names: by
# number of tests, those that take longest would come last. A process that dies is a failure and is not started again: it
# would run the same test again. A test stuck in compiled code, which nothing can interrupt, ends its process.
PYTEST = $(IN_VENV) python -m pytest -q -n 2 --max-worker-restart=0
BY_FILE := --dist loadfile --no-loadscope-reorder
BENCHMARKS := $(sort $(filter-out bench/papers/%,$(wildcard bench/*/[a-z]*.py)))
C_FILES := find src -name '*.[ch]' -o -name '*.[ch]pp'

# Of the lab.
HOSTS := 2
RATE := 200mbit

.PHONY: help setup setup-tests setup-docs demo test test-long lint format bench papers docs lab-up lab-down clean

help: ## this text
	@echo "Lapwing runs plain loop nests across MPI ranks and hides communication behind computation."
	@echo
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' Makefile
	@echo
	@echo "Start with 'make demo'. The first command also builds .venv: a minute or two, once."
	@echo "Another Python (3.11 or later): make setup PYTHON=/path/to/python3.12"

setup: ## .venv with Lapwing, MPI and the tools, and the system packages they need
	@scripts/setup.sh

demo: setup ## align two genomes on 2 ranks with all engines, check the result, draw it and what each rank did
	@mkdir -p out
	@$(IN_VENV) lapwing run examples/alignment.py -n 2 --engine blocking,overlap,onesided,helper --check \
		--repeat 3 --json out/alignment.json --timeline out/alignment.html
	@$(IN_VENV) python examples/alignment.py --picture out/alignment.png

setup-tests: # a target of its own: make expands all lines of a recipe, and $(realpath .venv) in them, before it runs one
	@scripts/setup.sh --tests

test: setup-tests ## the tests, ten minutes on two cores; as root on Debian it first installs what they need
	@$(PYTEST) -m "not long" $(BY_FILE) -o faulthandler_timeout="$$(.venv/bin/python tests/limits.py 900)"

test-long: setup-tests ## thousands of random cases, for hours: MINUTES=40 begins none later, SEED=20261122 repeats a day's
	@echo "long tests, SEED=$(SEED)"
	@LAPWING_SEED=$(SEED) $(PYTEST) -m long --dist worksteal -o faulthandler_timeout=0 -o timeout=7200 $(MINUTES:%=--minutes %)

lint: setup ## style and types, changing nothing
	@$(IN_VENV) ruff check
	@$(IN_VENV) ruff format --check
	@$(IN_VENV) mypy
	@$(C_FILES) | $(IN_VENV) xargs -r clang-format --dry-run -Werror

format: setup ## put the style right
	@$(IN_VENV) ruff check --fix
	@$(IN_VENV) ruff format
	@$(C_FILES) | $(IN_VENV) xargs -r clang-format -i

bench: ## time against plain C, numba and one rank; prints figures, tests nothing
	@scripts/setup.sh bench
	@set -e; for program in $(BENCHMARKS); do $(IN_VENV) python "$$program"; done

papers: setup ## the papers' figures again, as tables and pictures (docs/papers); needs SimGrid (apt install libsimgrid-dev)
	@mkdir -p out/papers
	@set -e; for paper in p0 p1 p4; do \
		$(IN_VENV) python bench/papers/$$paper.py --json out/papers/$$paper.json --pictures docs/papers; done
	@$(IN_VENV) python bench/papers/p3.py --json out/papers/p3.json --pictures docs/papers --disk out/papers

setup-docs: # a target of its own, as setup-tests is
	@scripts/setup.sh docs

docs: setup-docs ## the documentation as a site, which needs no network: out/docs/index.html; warnings are errors
	@$(IN_VENV) python docs/site/gallery.py
	@$(IN_VENV) sphinx-build -q -W --keep-going -c docs/site -d out/docs-cache docs out/docs
	@echo "out/docs/index.html"

lab-up: ## a cluster in this machine, for `lapwing run --hosts lab`: HOSTS=2 RATE=200mbit (as root)
	@python3 lab/lab.py up --hosts="$(HOSTS)" --rate="$(RATE)"

lab-down: ## remove it
	@python3 lab/lab.py down

clean: ## remove all that the other targets made, .venv too
	@scripts/setup.sh --remove
	@rm -rf out docs/_gallery build dist .pytest_cache .hypothesis .mypy_cache .ruff_cache
	@find . -name __pycache__ -prune -exec rm -rf {} +
