# Sourced by tools/quickstart, tools/test and their like: install what is missing, configure, build. Each phase is one
# line that says what it does and how long it took; what a phase prints goes to build/logs/ and is shown if it fails.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
logs=$root/build/logs
mkdir -p "$logs"

die() { printf '%s: %s\n' "$(basename "$0")" "$*" >&2; exit 1; }

# phase LOG TEXT COMMAND...: runs the command with its output in build/logs/LOG.log; on a terminal its last line stays
# in view while it runs.
phase() {
  local log=$logs/$1.log text=$2 start=$EPOCHREALTIME status=0
  shift 2
  printf '%-58s ' "$text ..."
  if [[ -t 1 ]]; then
    "$@" 2>&1 </dev/null | tee "$log" | follow "$text" || status=$?
  else
    "$@" >"$log" 2>&1 </dev/null || status=$?
  fi
  local took
  took=$(awk -v a="$start" -v b="$EPOCHREALTIME" 'BEGIN { printf "%.1f s", b - a }')
  if ((status != 0)); then
    printf 'failed after %s\n' "$took"
    tail -n 40 "$log" >&2
    die "this failed: $*  (all of its output: ${log#"$root"/})"
  fi
  printf '%s\n' "$took"
}

# Shows the newest line of its input beside `text`, shortened to the terminal, then leaves `text` alone on its line.
follow() {
  awk -v text="$1" -v wide="$(tput cols 2>/dev/null || echo 80)" '
    { room = wide - 62; if (room > 8) printf "\r\033[K%-58s %s", text " ...", substr($0, 1, room); fflush() }
    END { printf "\r\033[K%-58s ", text " ..." }'
}

# wanted_packages [SECTION...]: those of no section, and of these.
wanted_packages() {
  sed 's/#.*//' "$root/tools/packages.txt" | awk -v sections=" $* " '
    /^\[/ { gsub(/[][ ]/, ""); skip = !index(sections, " " $0 " "); next }
    NF && !skip { print $1 }'
}

missing_packages() {
  wanted_packages "$@" | while read -r package; do
    dpkg-query --show --showformat='${db:Status-Status}' "$package" 2>/dev/null | grep -qx installed || echo "$package"
  done
}

apt_install() {
  local as_root=()
  ((EUID == 0)) || as_root=(sudo)
  "${as_root[@]}" apt-get update
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install --yes --no-install-recommends "$@"
}

# install_packages [SECTION...]
install_packages() {
  command -v dpkg-query >/dev/null || die "this needs Debian 12 or a system with its packages (no dpkg here). The
libraries to install by hand are listed in tools/packages.txt; then: cmake --workflow --preset dev"
  local missing
  mapfile -t missing < <(missing_packages "$@")
  if ((${#missing[@]} == 0)); then
    phase packages "packages: all $(wanted_packages "$@" | wc -l) are installed" true
    return
  fi
  if ((EUID != 0)); then
    command -v sudo >/dev/null || die "these packages are missing and neither root nor sudo is at hand; as root, run
  apt-get install ${missing[*]}"
    sudo -v || die "sudo was refused; as root, run: apt-get install ${missing[*]}"
  fi
  phase packages "packages: installing ${#missing[@]} of $(wanted_packages "$@" | wc -l)" apt_install "${missing[@]}"
}

# One compiler a core, but never more than memory carries: our heaviest files take about 1.5 GB.
build_jobs() {
  local by_memory cores
  cores=$(nproc)
  by_memory=$(awk '/^MemAvailable:/ { print int($2 / 1572864) }' /proc/meminfo)
  ((by_memory >= 1)) || by_memory=1
  echo $((cores < by_memory ? cores : by_memory))
}

# build_preset PRESET TARGET...: configures build/PRESET where it is new or the preset changed, then builds the targets.
build_preset() {
  local preset=$1
  shift
  local tree=$root/build/$preset
  cd "$root"
  if [[ ! -f $tree/build.ninja || $root/CMakePresets.json -nt $tree/build.ninja || $root/build/python/requirements.txt -nt $tree/build.ninja ]]; then
    phase "configure-$preset" "configure: preset $preset" cmake --preset "$preset"
  fi
  phase "build-$preset" "build: $preset, $(build_jobs) at once" cmake --build "$tree" --parallel "$(build_jobs)" --target "$@"
}

# install_python_tools: build/python, an environment with what tests read our files by that is not ours, from Python's index. Made
# anew when the list changes; the copy of the list is written last, so that half an environment is never taken for one.
install_python_tools() {
  local wanted=$root/tests/model/requirements.txt tree=$root/build/python
  if cmp -s "$wanted" "$tree/requirements.txt"; then
    phase python "python: all $(grep -c == "$wanted") packages are installed" true
    return
  fi
  phase python "python: installing $(grep -c == "$wanted") packages" make_python_tools_or_say_so "$wanted" "$tree"
  [[ -e $tree/requirements.txt ]] || echo "Python's index did not give them (build/logs/python.log): the tests against TensorBoard and moto are left out"
}

# install_promtool: build/promtool, Prometheus's own reader of metrics, taken out of Debian's package, which is not installed.
install_promtool() {
  local tree=$root/build/promtool
  if [[ -x $tree/promtool ]]; then
    phase promtool "promtool: is there" true
    return
  fi
  phase promtool "promtool: taken out of Debian's package" make_promtool_or_say_so "$tree"
  [[ -x $tree/promtool ]] || echo "Debian did not give it (build/logs/promtool.log): it does not read our metrics"
}

make_promtool_or_say_so() { make_promtool "$@" || echo "this failed"; }

make_promtool() (
  rm -rf -- "$1"
  mkdir -p "$1"
  cd "$1" || return
  timeout 300 apt-get download prometheus || return
  dpkg-deb --fsys-tarfile prometheus_*.deb | tar -xO ./usr/bin/promtool >promtool.new || return
  rm prometheus_*.deb
  chmod +x promtool.new
  mv promtool.new promtool  # last, so that half of it is never taken for it
)

# A machine that does not reach the index runs all other tests.
make_python_tools_or_say_so() { make_python_tools "$@" || echo "this failed"; }

make_python_tools() {
  rm -rf -- "$2"
  /usr/bin/python3 -m venv "$2" || return
  timeout 600 "$2/bin/pip" install --disable-pip-version-check --timeout 30 --retries 3 --no-deps \
    --only-binary :all: --requirement "$1" || return
  cp "$1" "$2/requirements.txt"
}
