#!/usr/bin/env bash
# Runs both parts of the tests at the same time (`make test`): the tests that wait, and those that only compute. The
# former leave most of the processor time, which the latter use with a lower priority. Their output is shown after that of
# the former. A test that waits and fails runs once more when nothing else runs, and that result counts: if all tests
# ran, which pytest says with the exit status 1.
set -u
log=build/tests-that-compute.log
mkdir -p build
rm -f "$ALONE_STATUS"

# A process group of its own, so that all of its processes can be ended.
set -m
nice -n 10 "$MAKE" --no-print-directory tests-that-compute >"$log" 2>&1 &
computing=$!
set +m
trap 'kill -TERM -- "-$computing" 2>/dev/null' EXIT
trap 'exit 130' INT TERM

waited=0
"$MAKE" --no-print-directory tests-that-wait || waited=$?
echo "The tests that only compute, from their start (also in $log):"
tail --lines=+1 --follow --pid="$computing" "$log"
computed=0
wait "$computing" || computed=$?
if [ "$waited" -ne 0 ] && [ "$(cat "$ALONE_STATUS" 2>/dev/null)" = 1 ]; then
  waited=0
  "$MAKE" --no-print-directory tests-that-failed || waited=$?
fi
[ "$waited" -eq 0 ] && [ "$computed" -eq 0 ]
