# The commands of this project. Each sets up what it needs on a bare Debian 12 (scripts/setup).
#
#   make build [CUDA=1]                   build everything; with CUDA=1 the kernels for GPUs, too
#   make serve [MODEL=DIR] [ARGS='...']   build and start the server on 127.0.0.1:8000
#   make test                             build and run every test
#   make bench                            build and run the benchmarks
#   make check-san                        every C++ test under the sanitizers, and a mixed load
#   make fuzz [MINUTES=10]                every harness of fuzz/ under libFuzzer
#   make check-isa                        every test on each weaker instruction set that is here
#   make wheel                            the Python package, into build/dist
#   make check-clients                    the Python package's tests, and those of heavy clients
#   make format, make tidy, make clean

MODEL ?=
PRESET ?= release
MINUTES ?= 10
BUILD = build/$(PRESET)

.PHONY: setup configure build serve test bench check-san fuzz check-isa wheel check-clients format tidy clean

setup:
	@scripts/setup $(if $(CUDA),cuda)

configure: setup
	@test -f $(BUILD)/build.ninja -a -z "$(CUDA)" || cmake --preset $(PRESET) $(if $(CUDA),-DSKEIN_CUDA=ON)

build: configure
	@cmake --build $(BUILD)

serve: configure
	@cmake --build $(BUILD) --target skein
	@scripts/serve $(BUILD)/bin/skein "$(MODEL)" $(ARGS)

test: build
	@scripts/setup tests
	@scripts/test

bench: build
	@scripts/setup plots
	@scripts/bench

check-san: setup
	@scripts/setup tests
	@.venv/bin/python scripts/check_san

fuzz: setup
	@scripts/setup fuzz
	@cmake --preset fuzz >/dev/null
	@cmake --build build/fuzz --target fuzzers
	@scripts/fuzz --minutes $(MINUTES)

check-isa: build
	@scripts/setup tests
	@scripts/check_isa

wheel: setup
	@scripts/setup tests
	@scripts/wheel

check-clients: build
	@scripts/setup tests
	@scripts/check_clients

format:
	@scripts/setup lint
	@git ls-files '*.h' '*.cc' | xargs clang-format -i

# Without the precompiled headers, which clang cannot read: so every source includes what it uses.
tidy: setup
	@scripts/setup lint
	@cmake --preset $(PRESET) -B build/tidy -DSKEIN_PRECOMPILE=OFF >/dev/null
	@git ls-files 'src/*.cc' | xargs -P $$(nproc) -n 4 clang-tidy --quiet -p build/tidy

clean:
	@rm -rf build
