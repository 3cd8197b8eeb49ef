# make demo   the whole pipeline on a machine with no GPU: migrate, kernels, fine-tune, export, serve
# make test   everything CI runs: lint, types, layers, unit, integration, end-to-end and browser tests
# make unit   the fast tests            make lint   ruff, mypy, import-linter
# make clean  drop outputs and the virtual environment (the toolchain cache stays: amdflow toolchain list)

PYTHON ?= $(shell for p in python3.11 python3.12 python3.13 python3; do command -v $$p >/dev/null 2>&1 && $$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && { echo $$p; break; }; done)
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
MODEL := models/smollm2-135m-instruct
PYTEST := $(BIN)/python -m pytest -q

.PHONY: demo test unit integration end-to-end browser lint setup system system-browser apt toolchain model clean
.DEFAULT_GOAL := demo

demo: toolchain $(MODEL)/config.json
	$(BIN)/amdflow run-all

test: lint unit integration end-to-end browser

unit: $(READY)
	$(PYTEST) -n 2 tests/unit

integration: toolchain
	$(PYTEST) tests/integration

end-to-end: toolchain
	$(PYTEST) tests/end_to_end

browser: $(READY) system-browser
	$(PYTEST) tests/browser

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

setup: $(READY)

$(READY): pyproject.toml constraints.txt
	@$(MAKE) --no-print-directory system
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade "pip>=25.1"
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable . --group dev
	@touch $@

# What pip cannot bring: venv itself, the C++ compiler that runs kernels on the CPU.
system:
	@[ -n "$(PYTHON)" ] || { echo "Python 3.11 or newer is needed: apt-get install python3 python3-venv" >&2; exit 5; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || $(MAKE) --no-print-directory apt PACKAGES=python3-venv
	@command -v g++ >/dev/null || $(MAKE) --no-print-directory apt PACKAGES=g++

system-browser:
	@command -v chromium >/dev/null || $(MAKE) --no-print-directory apt PACKAGES=chromium

apt:
	@[ "$$(id -u)" = 0 ] || { echo "please install what is missing, then try again: sudo apt-get install -y $(PACKAGES)" >&2; exit 5; }
	apt-get update -qq
	DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $(PACKAGES) >/dev/null

toolchain: $(READY)
	$(BIN)/amdflow toolchain install all

model: $(MODEL)/config.json

$(MODEL)/config.json: | toolchain
	$(BIN)/amdflow toolchain run finetune finetuning/models.py smollm2

clean:
	rm -rf $(VENV) out build dist .mypy_cache .ruff_cache .pytest_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
