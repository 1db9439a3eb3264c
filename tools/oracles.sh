#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Prints the path of a Python that has what tests/requirements.txt names; tests compare dgc's numbers with theirs.
#
#   tools/oracles.sh         makes it first where it is not there: a virtual environment, once per list and Python
#   tools/oracles.sh --find  makes nothing, as a test does that is run by hand
#
# Without one it exits 77, which skips a test, and says why. DGC_ORACLES=PYTHON names another Python that has them;
# DGC_ORACLES=off is none. It lies in ~/.cache/dgc-oracles, XDG_CACHE_HOME being a folder of the build's in tests.
# On two busy cores that took 30 seconds: 192 MB loaded, 720 MB on the disk. What tests/optional.txt names is tried once
# beside that, another 63 and 200 MB: without it, only the tests that want it are skipped. To compile it all takes 9 seconds more.
set -eu
root=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd)
list=$root/tests/requirements.txt

none() {
  echo "tools/oracles.sh: $*" >&2
  exit 77
}

case ${1-} in
'' | --find) ;;
*)
  echo "usage: tools/oracles.sh [--find]" >&2
  exit 2
  ;;
esac
case ${DGC_ORACLES-} in
'') ;;
off) none "DGC_ORACLES=off: no other library to compare with" ;;
*)
  [ -x "$DGC_ORACLES" ] || none "DGC_ORACLES=$DGC_ORACLES cannot be run"
  echo "$DGC_ORACLES"
  exit 0
  ;;
esac

base=python3
[ -x /usr/bin/python3 ] && base=/usr/bin/python3
[ -n "${HOME-}" ] || none "HOME is not set: nowhere to keep the libraries"
cache=$HOME/.cache/dgc-oracles
key=$({ "$base" -c 'import sys; print(sys.version)' && cat "$list"; } | sha256sum | cut -c1-16)
home=$cache/$key

if [ ! -f "$home/complete" ]; then
  [ "${1-}" != --find ] || none "the libraries to compare with are not installed: run tools/oracles.sh"
  "$base" -c 'import ensurepip, venv' 2>/dev/null || none "Python has no venv: install python3-venv"
  mkdir -p "$cache"
  log=$home.log
  exec 9>"$cache/lock"
  flock 9 # another build may be making it
  if [ ! -f "$home/complete" ]; then
    rm -rf "$home"
    "$base" -m venv "$home" >"$log" 2>&1 || none "no virtual environment: $(tail -1 "$log")"
    "$home/bin/python" -m pip install -q --disable-pip-version-check --no-cache-dir --no-compile --retries 2 \
      --timeout 30 --only-binary :all: --no-deps -r "$list" >"$log" 2>&1 ||
      none "pip cannot install tests/requirements.txt: $(tail -1 "$log")"
    "$home/bin/python" -c 'import jax, llvmlite, numpy' >"$log" 2>&1 || none "the libraries do not load: $(tail -1 "$log")"
    : >"$home/complete"
  fi
  exec 9>&-
fi
# What was tried is noted, so that a machine without a network is asked once.
optional=$root/tests/optional.txt
tried=$home/optional-$(sha256sum <"$optional" | cut -c1-16)
if [ ! -f "$tried" ] && [ "${1-}" != --find ]; then
  exec 9>"$cache/lock"
  flock 9
  [ -f "$tried" ] || "$home/bin/python" -m pip install -q --disable-pip-version-check --no-cache-dir --no-compile --retries 2 \
    --timeout 30 --only-binary :all: --no-deps -r "$optional" >"$tried" 2>&1 ||
    echo "tools/oracles.sh: without what tests/optional.txt names: $(tail -1 "$tried")" >&2
  exec 9>&-
fi
# Each test starts a Python, which does not keep what it compiles: read from source, JAX and scipy take seconds to load.
if [ ! -f "$tried.compiled" ] && [ "${1-}" != --find ]; then
  exec 9>"$cache/lock"
  flock 9
  [ -f "$tried.compiled" ] || "$home/bin/python" -m compileall -q -j 0 "$home/lib" >"$tried.compiled" 2>&1 || :
  exec 9>&-
fi
echo "$home/bin/python"
