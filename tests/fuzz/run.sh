#!/bin/sh
# SPDX-License-Identifier: MIT
# Builds the fuzz targets with clang, ASan and UBSan in BUILD and runs each for SECONDS, JOBS at a
# time. New inputs go to BUILD/corpus/NAME, crashing ones to BUILD/found/. Fails when a target
# failed. Called by `make fuzz`.
set -eu

if [ $# -lt 4 ]; then
	echo "usage: run.sh SRCDIR BUILD SECONDS JOBS [fuzz-NAME | NAME]..." >&2
	exit 2
fi
src=$1 build=$2 seconds=$3 jobs=$4
shift 4
cc=${FUZZ_CC:-clang-14}
if ! command -v "$cc" >/dev/null; then
	echo "fuzz: $cc not found: install clang-14 and libclang-rt-14-dev, or say FUZZ_CC=..." >&2
	exit 1
fi

mkdir -p "$build"
cd "$build"
[ -f Makefile ] || "$src/configure" -q CC="$cc" \
	CXX="$(echo "$cc" | sed 's/clang/clang++/')" CFLAGS='-g -O1' CXXFLAGS='-g -O1' \
	--disable-shared --enable-fuzzers --enable-sanitizers=address,undefined
make -s -j"$jobs" fuzz-programs

targets=
if [ $# -eq 0 ]; then
	for f in "$src"/tests/fuzz/fuzz-*.c; do
		f=${f##*/fuzz-}
		targets="$targets ${f%.c}"
	done
else
	for t in "$@"; do
		t=${t##*/}
		t=${t#fuzz-}
		if [ ! -x "tests/fuzz/fuzz-$t" ]; then
			echo "fuzz: no target named $t (there is no tests/fuzz/fuzz-$t.c)" >&2
			exit 2
		fi
		targets="$targets $t"
	done
fi

# One target, as a script of its own for xargs. The last lines of its log say what was reached.
cat >one.sh <<'SCRIPT'
t=$1
mkdir -p "corpus/$t" found
ASAN_OPTIONS=allocator_may_return_null=1:detect_leaks=1 \
	"tests/fuzz/fuzz-$t" -max_total_time="$FUZZ_SECONDS" -timeout=20 -rss_limit_mb=2048 \
	-print_final_stats=1 -artifact_prefix="found/$t-" "corpus/$t" \
	"$FUZZ_SRC/tests/fuzz/corpus/$t" >"$t.log" 2>&1
rc=$?
runs=$(sed -n 's/^stat::number_of_executed_units: *//p' "$t.log")
cov=$(sed -n 's/.* cov: \([0-9]*\).*/\1/p' "$t.log" | tail -n 1)
if [ $rc -eq 0 ]; then
	echo "fuzz-$t: ok, ${runs:-?} runs, ${cov:-?} edges"
else
	echo "fuzz-$t: FAILED, input in $(pwd)/found, log:"
	tail -n 40 "$t.log"
	exit 1
fi
SCRIPT
export FUZZ_SECONDS="$seconds" FUZZ_SRC="$src"
rc=0
# shellcheck disable=SC2086
printf '%s\n' $targets | xargs -P "$jobs" -n 1 sh one.sh || rc=1
exit $rc
