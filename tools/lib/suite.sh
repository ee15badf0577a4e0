# Sourced after setup.sh: runs a build tree's tests and prints the runner's closing line last.

# none_skipped PRESET: whether the run_suite before it ran every test that it chose; names those that it did not run.
none_skipped() {
  local log=$logs/test-$1.log skipped
  mapfile -t skipped < <(sed -n 's/^.*: \([^ ]*\) \.*\*\*\*\(Skipped\|Not Run\).*/\1/p' "$log" | sort -u)
  ((${#skipped[@]} == 0)) || die "these tests were skipped, and nothing may be here: ${skipped[*]}"
}

# run_suite PRESET CTEST_ARGUMENT...
# Twice as many at once as there are cores: many tests wait for processes, heartbeats and deadlines.
run_suite() {
  local preset=$1 status=0 log=$logs/test-$1.log
  shift
  ctest --test-dir "$root/build/$preset" --output-on-failure --no-tests=error --parallel "$((2 * $(nproc)))" "$@" 2>&1 |
    tee "$log" || status=$?
  grep -E '^[0-9]+% tests passed' "$log" | tail -n 1 || true
  return "$status"
}
