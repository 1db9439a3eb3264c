#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What processes of a cluster tell of themselves: what each did with its time, and what it sent.
. "$(dirname "$0")/lib.sh"
. "$source/tests/run/mpi.sh"

# bytes TASK ARGUMENTS...: that the task sends in a step, by the plan.
bytes() {
  task=$1
  shift
  "$dgc" compile "$samples/digits.dsl" --batch 64 --emit plan --task "$task" "$@" |
    sed -n 's/^ *[0-9]* send .* \([0-9]*\) bytes to .*/\1/p' | awk '{ sum += $1 } END { print sum + 0 }'
}
# of TASK FIELD: from the results as JSON.
of() { python3 -c 'import json, sys; print({t["task"]: t for t in json.load(open("out"))["tasks"]}[sys.argv[1]][sys.argv[2]])' "$@"; }

# tells N "TASKS" ARGUMENTS...: 512 rows are eight steps; two epochs, and the last one counts.
tells() {
  n=$1
  tasks=$2
  shift 2
  expect 0 "times of $n" processes "$n" "$dgc" train "$samples/digits.dsl" --rows 0:512 --eval-rows 0:64 --batch 64 --epochs 2 --json "$@"
  for task in $tasks; do
    name="/job:$(echo "$task" | sed 's,:,/task:,')"
    if [ "$(grep -c "^  $name computes [0-9]* %, waits [0-9]* %.*, sent [0-9.]* [kM]*B*" err)" = 2 ]; then pass; else
      fail "no line for $name"
      cat err
    fi
    each=$(bytes "$task" "$@")
    sent=$(of "$name" sent)
    if [ "$each" -gt 0 ] && [ "${sent%.*}" = "$((8 * each))" ]; then pass; else fail "$name sends 8 x $each bytes, and says $sent"; fi
    for field in computing waiting other longest; do
      case $(of "$name" $field) in [0-9]*) pass ;; *) fail "$name: $field" ;; esac
    done
  done
  [ "$(grep -o '"task":' out | wc -l)" = "$n" ] && pass || fail "not $n tasks: $(cat out)"
}
tells 3 'worker:0 worker:1 worker:2' --towers 3 --cluster worker=3
tells 3 'worker:0 worker:1 ps:0' --towers 2 --cluster 'worker=2;ps=1' --strategy parameter_server

# A part of an epoch counts as well; in one process there is nobody to wait for.
expect 0 'three steps' processes 2 "$dgc" train "$samples/digits.dsl" --rows 0:512 --eval-rows 0:64 --batch 64 --steps 3 --json --towers 2 --cluster worker=2
[ "$(of /job:worker/task:1 sent)" = "$((3 * $(bytes worker:1 --towers 2 --cluster worker=2)))" ] && pass || fail "three steps: $(cat out)"
expect 0 'one process' "$dgc" train "$samples/digits.dsl" --rows 0:512 --eval-rows 0:64 --batch 64 --epochs 1 --json --cluster worker=2
grep -Eq 'tasks|computes' out err && fail 'one process tells of tasks' || pass
finish
