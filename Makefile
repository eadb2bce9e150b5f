# Every target sets up .venv by itself; `make help` lists them.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/installed
export JUPYTER_PLATFORM_DIRS = 1

.DEFAULT_GOAL := help
.PHONY: help setup book test notebooks lab lint bench quality reproduce scoreboard repository clean

help: ## list the targets
	@echo "What the Server Sees: make TARGET"
	@grep -E '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | expand -t 14

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
	@echo "== done: open _build/html/index.html"

test: $(STAMP) ## unit tests, every notebook under nbval, the pages in a browser
	@echo "== lint"
	@$(BIN)/ruff check . && $(BIN)/ruff format --check --quiet .
	@echo "== unit tests"
	@$(BIN)/python -m pytest tests --ignore tests/test_pages.py
	@echo "== notebooks, executed and compared with their stored outputs"
	@$(BIN)/python -m pytest --nbval-lax --nbval-current-env notebooks
	@$(MAKE) --no-print-directory book
	@echo "== the rendered pages, in a browser"
	@$(BIN)/python -m pytest tests/test_pages.py -rs
	@echo "== done: all tests passed"

notebooks: $(STAMP) ## execute every notebook in order and store its outputs
	@$(BIN)/python book/execute.py

lab: $(STAMP) ## open the notebooks in JupyterLab
	@$(BIN)/jupyter lab notebooks

bench: $(STAMP) ## speed and memory beside the alternatives (some minutes)
	@$(BIN)/python benchmarks/speed.py

quality: $(STAMP) ## PSNR on real data: make quality DATA=folder with femnist.npz and cifar100.npz
	@test -n "$(DATA)" || { echo "say where the data are: make quality DATA=folder"; exit 2; }
	@$(BIN)/python benchmarks/quality.py --data-root "$(DATA)"

reproduce: $(STAMP) ## a table of the paper: make reproduce TABLE=main DATA=folder (hours; resumable)
	@test -n "$(TABLE)" -a -n "$(DATA)" || { echo "say which table and where the data are: make reproduce TABLE=main DATA=folder"; exit 2; }
	@$(BIN)/smelib reproduce "$(TABLE)" --data-root "$(DATA)"

scoreboard: $(STAMP) ## the paper's numbers beside ours: writes book/scoreboard.md
	@$(BIN)/smelib scoreboard

repository: $(STAMP) ## after forking: make repository URL=https://github.com/you/your-fork
	@$(BIN)/python book/repository.py $(URL)

lint: $(STAMP) ## format and lint
	@$(BIN)/ruff format . && $(BIN)/ruff check --fix .

clean: ## remove the rendered book
	@rm -rf _build
	@echo "removed _build"
