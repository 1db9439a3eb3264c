# SPDX-License-Identifier: Apache-2.0
# What the shell tests share. A test begins with `. "$(dirname "$0")/lib.sh"`; it is called with the tool, the folder of
# the samples with their data, and the source tree.
dgc=$1
samples=$2
source=$3
work=$(mktemp -d)
trap 'chmod -R u+w "$work" 2>/dev/null; rm -rf "$work"' EXIT
cd "$work" || exit 1
passed=0
failed=0
skipped=0

pass() { passed=$((passed + 1)); }
fail() {
  failed=$((failed + 1))
  echo "FAILED: $*"
}

# Before a command that could hang. A busy machine does not get there, nor one that stands still for minutes.
bounded='timeout -k 60 600'

# expect CODE WHAT COMMAND...: the exit code; output is kept in ./out and ./err. What has hung once would do so again: the
# test ends.
expect() {
  code=$1
  what=$2
  shift 2
  "$@" >out 2>err </dev/null
  got=$?
  if [ "$got" = "$code" ]; then
    pass
  else
    fail "$what: exit code $got, not $code: $*"
    sed 's/^/  /' err | head -20
    [ "$got" != 124 ] || finish
  fi
}
# program WHAT SCRIPT: Python with calls of the library (calls.py); false where it fails, or cannot load this build's.
program() {
  python3 "$source/tests/run/calls.py" "$dgc" "$2" >out 2>err </dev/null
  got=$?
  case $got in
    0) pass ;;
    77) skipped=$((skipped + 1)) ;;
    *) fail "$1: $(cat err)" ;;
  esac
  return $got
}
# shows FILE TEXT: a line of it holds the text.
shows() {
  if grep -qF -- "$2" "$1"; then pass; else
    fail "$1 does not show '$2'"
    sed 's/^/  /' "$1" | head -20
  fi
}
empty() { if [ -s "$1" ]; then fail "$1 is not empty: $(head -3 "$1")"; else pass; fi; }
same() { if cmp "$1" "$2"; then pass; else fail "$1 and $2 differ"; fi; }

# same_results A B: what was evaluated, as JSON. Of what runs on other devices there may be notes.
same_results() {
  if python3 -c '
import json, sys
a, b = ({k: v for k, v in json.load(open(f)).items() if k != "diagnostics"} for f in sys.argv[1:])
sys.exit(not a or a != b)' "$1" "$2"; then pass; else fail "$1 and $2 differ: $(cat "$1" "$2")"; fi
}

# some_rows N COLUMN...: as CSV, the same numbers each time, under a line with the names of the columns.
some_rows() {
  python3 -c '
import random, sys
random.seed(3)
names = sys.argv[2:]
print(",".join(names))
for _ in range(int(sys.argv[1])): print(",".join("%.4f" % random.gauss(0, 1) for _ in names))' "$@"
}

# together N ARGUMENTS...: N processes, which the test's own `processes N COMMAND...` starts, end with the checkpoint and the
# words of one.
together() {
  n=$1
  shift
  expect 0 "one process: $*" "$dgc" train "$@" --overwrite --checkpoint one.safetensors
  cp out one.out
  expect 0 "$n processes: $*" processes "$n" "$dgc" train "$@" --overwrite --checkpoint several.safetensors
  same one.safetensors several.safetensors
  same one.out out
}

# within COMMAND...: ends what takes long: twenty seconds of a processor, three times what the longest takes under the
# thread sanitizer of a slow one, or by the clock much more than a busy machine takes for that.
within() { (
  ulimit -t 20
  exec $bounded "$@"
) }

finish() {
  echo "$passed passed, $failed failed$([ "$skipped" = 0 ] || echo ", $skipped skipped")"
  [ "$failed" = 0 ]
  exit
}
