# Every target sets up .venv by itself; `make help` lists them.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/installed
export JUPYTER_PLATFORM_DIRS = 1

.DEFAULT_GOAL := help
.PHONY: help setup book read check test golden mutants lower-bounds notebooks lab lint rooms bench quality \
	reproduce scoreboard repository publish-check assignments grade slides clean

# The tests that open the rendered book, and those that need more than what a user of smelib installs.
PAGE_TESTS := tests/test_accessible.py tests/test_frames.py tests/test_front_page.py tests/test_pages.py \
	tests/test_playground.py tests/test_small_playgrounds.py
BOOK_TESTS := $(PAGE_TESTS) tests/test_assignments.py tests/test_grading.py tests/test_book.py tests/test_chapters.py tests/test_colab.py \
	tests/test_contest.py tests/test_dark_twins.py tests/test_dlfa_in_jax.py tests/test_extensions.py \
	tests/test_places.py tests/test_publish_check.py tests/test_repository.py
# Python 3.10 where there is one: the oldest that pyproject.toml allows.
OLDEST_PYTHON ?= $(shell python3.10 -c 'print("python3.10")' 2>/dev/null || echo $(PYTHON))
LOWER := _build/lower-bounds
# The tests run in as many processes as there are cores, and at most JOBS: a notebook takes up to 2 GB of memory.
# A file stays in one process, and each process has one thread: two with two threads each hold each other up.
JOBS ?= 4
PYTEST = OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n logical --maxprocesses $(JOBS) --dist loadfile

help: ## list the targets
	@echo "What the Server Sees: make TARGET"
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | expand -t 14

$(STAMP): requirements.txt pyproject.toml
	@echo "== setting up $(VENV) from requirements.txt (once; a few minutes)"
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --requirement requirements.txt
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@touch $(STAMP)

setup: $(STAMP) ## create .venv with everything the book needs

book: $(STAMP) ## render the book to _build/html
	@echo "== rendering the book from the stored outputs"
	@$(BIN)/jupyter-book build . -W -n --keep-going --quiet
	@echo "== done: open _build/html/index.html, or serve it with make read, so that its playgrounds run"

read: book ## render the book and serve it on this machine: make read [PORT=8000]
	@$(BIN)/python book/read.py $(PORT)

check: $(STAMP) ## before each commit: lint and the quick unit tests (at most three minutes)
	@echo "== lint"
	@$(BIN)/ruff check . && $(BIN)/ruff format --check --quiet .
	@echo "== unit tests, without the slow ones"
	@$(PYTEST) tests -m "not slow" $(PAGE_TESTS:%=--ignore=%)

test: $(STAMP) ## unit tests, every notebook under nbval, the pages in a browser: make test [JOBS=4]
	@echo "== lint"
	@$(BIN)/ruff check . && $(BIN)/ruff format --check --quiet .
	@echo "== unit tests"
	@$(PYTEST) tests $(PAGE_TESTS:%=--ignore=%)
	@echo "== notebooks, executed and compared with their stored outputs"
	@$(PYTEST) --no-loadscope-reorder --nbval-lax --nbval-current-env notebooks
	@$(MAKE) --no-print-directory book
	@echo "== the rendered pages, in a browser"
	@$(PYTEST) $(PAGE_TESTS) -rs
	@echo "== done: all tests passed"

golden: $(STAMP) ## store the golden numbers anew, after raising RESULTS_VERSION
	@$(BIN)/python tests/test_golden.py

mutants: $(STAMP) ## do the tests notice a fault? make mutants [MODULE="params metrics"] (some minutes)
	@$(BIN)/python tests/mutants.py $(MODULE)

lower-bounds: ## the kernel's unit tests on the oldest versions that pyproject.toml allows
	@echo "== setting up $(LOWER) with $(OLDEST_PYTHON) (some gigabytes)"
	@$(OLDEST_PYTHON) -m venv --clear $(LOWER)
	@$(LOWER)/bin/python tests/lower_bounds.py > $(LOWER)/constraints.txt
	@cat $(LOWER)/constraints.txt
	@$(LOWER)/bin/python -m pip install --quiet --disable-pip-version-check \
		--constraint $(LOWER)/constraints.txt "pytest>=8" --editable .
	@$(LOWER)/bin/python -m pytest tests -m "not slow" $(BOOK_TESTS:%=--ignore=%)

notebooks: $(STAMP) ## execute every notebook in order, film the attacks of the front page, store both
	@$(BIN)/python book/execute.py
	@$(BIN)/python book/films.py

lab: $(STAMP) ## open the notebooks in JupyterLab
	@$(BIN)/jupyter lab notebooks

bench: $(STAMP) ## speed and memory beside the alternatives, or OTHER=clone at an earlier revision (some minutes)
	@$(BIN)/python benchmarks/$(if $(OTHER),interleaved.py "$(OTHER)",speed.py)

quality: $(STAMP) ## PSNR on real data: make quality DATA=folder with femnist.npz and cifar100.npz
	@test -n "$(DATA)" || { echo "say where the data are: make quality DATA=folder"; exit 2; }
	@$(BIN)/python benchmarks/quality.py --data-root "$(DATA)"

reproduce: $(STAMP) ## a table of the paper: make reproduce TABLE=main DATA=folder (hours; resumable)
	@test -n "$(TABLE)" -a -n "$(DATA)" || { echo "say which table and where the data are: make reproduce TABLE=main DATA=folder"; exit 2; }
	@$(BIN)/smelib reproduce "$(TABLE)" --data-root "$(DATA)"

scoreboard: $(STAMP) ## the paper's numbers beside ours: writes book/scoreboard.md
	@$(BIN)/smelib scoreboard --write

repository: $(STAMP) ## after forking: make repository URL=https://github.com/you/your-fork
	@$(BIN)/python book/repository.py $(URL)

publish-check: $(STAMP) ## what is missing to put the book, the wheel and the Colab links online
	@$(BIN)/python book/publish_check.py

assignments: $(STAMP) ## write the students' versions; SOLVED=folder writes the instructor's instead
	@$(BIN)/python -m assignments.build $(if $(SOLVED),--solved "$(SOLVED)")

grade: $(STAMP) ## grade a folder of notebooks: make grade SUBMISSIONS=folder (resumable)
	@test -n "$(SUBMISSIONS)" || { echo "say where the notebooks are: make grade SUBMISSIONS=folder"; exit 2; }
	@$(BIN)/python -m assignments.grade "$(SUBMISSIONS)" $(if $(PSEUDONYMS),--pseudonyms)

slides: $(STAMP) ## every figure as SVG, to _build/slides: make slides [CHAPTERS="05 07"]
	@$(BIN)/python book/slides.py $(CHAPTERS)

lint: $(STAMP) ## format and lint
	@$(BIN)/ruff format . && $(BIN)/ruff check --fix .

rooms: $(STAMP) ## count the rooms again: writes the map in CONTRIBUTING.md
	@$(BIN)/python tests/rooms.py

clean: ## remove the rendered book
	@rm -rf _build
	@echo "removed _build"
