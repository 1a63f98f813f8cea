# Two commands do everything on a fresh machine: `make demo` and `make test`.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
PIP    := $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt

.PHONY: demo test lint types unit torture torture-serve format clean

demo: $(VENV)/.runtime
	rm -rf runs/demo
	$(BIN)/dicgrl datasets show films
	OMP_NUM_THREADS=1 $(BIN)/dicgrl run films --strategy lower,fresh,upper --out runs/demo  # small steps: one thread is faster than two
	$(BIN)/dicgrl predict runs/demo/fresh --head "Alien" --relation genre -k 3
	$(BIN)/dicgrl predict runs/demo/fresh --head "Inception" --relation country -k 3
	$(BIN)/dicgrl predict runs/demo/fresh --relation director --tail "Ridley Scott" -k 3
	@echo "The picture is runs/demo/curves.png; dicgrl score, similar, export and compare read runs/demo/fresh too."
	@echo "To look into it: $(PIP) -e '.[serve]' && $(BIN)/dicgrl serve runs/demo/fresh    # then open the address that it prints"

test: $(VENV)/.dev  # side by side: the type checker has one core's work on a fresh machine
	@$(MAKE) --no-print-directory -j 3 lint types unit

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/.dev
	$(BIN)/mypy

unit: $(VENV)/.dev
	$(BIN)/pytest -n 2 --dist worksteal  # neighbours stay together, and share what they trained

torture: $(VENV)/.dev  # a thousand kills and disk faults while a run is written
	OMP_NUM_THREADS=1 $(BIN)/python -m tests.torture

torture-serve: $(VENV)/.dev  # a server is killed 200 times, its disk filled, 10,000 hostile requests sent
	OMP_NUM_THREADS=1 $(BIN)/python -m tests.serve.torture

format: $(VENV)/.dev
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

$(BIN)/python:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "dicgrl needs Python 3.11 or newer; call: make PYTHON=/path/to/python3.11 ...")'
	$(PYTHON) -m venv $(VENV)

$(VENV)/.runtime: $(BIN)/python pyproject.toml constraints.txt
	$(PIP) -e .
	touch $@

$(VENV)/.dev: $(VENV)/.runtime
	$(PIP) -e '.[dev]'
	touch $@

clean:
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis
