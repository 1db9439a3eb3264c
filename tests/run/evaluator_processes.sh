#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The task evaluator as one of the processes that mpirun starts: it takes no part in the training, and ends with it.
. "$(dirname "$0")/lib.sh"
. "$source/tests/run/mpi.sh"
digits="$samples/digits.dsl --rows 0:512 --eval-rows 0:100 --batch 64 --towers 2"
jobs='worker=2;evaluator=1'

# evaluated STEPS: the lines of the evaluator are those of dgc eval of what one process has after as many steps; the last
# one is there, and what the others say of the training.
evaluated() {
  grep '^{"step":' out >lines
  grep -v '^{"step":' out >rest
  tail -1 lines | grep -q "^{\"step\":$1," && pass || fail "the last one is not of step $1: $(cat out err)"
  [ "$(wc -l <rest)" = 1 ] && pass || fail "$(cat rest)"
  while read -r line; do
    step=$(echo "$line" | sed 's/^{"step":\([0-9]*\),.*/\1/')
    # shellcheck disable=SC2086
    [ -f "eval.$step" ] || {
      expect 0 "step $step" "$dgc" train $digits --steps "$step" --quiet --overwrite --checkpoint one.safetensors
      expect 0 "eval of step $step" "$dgc" eval $digits --checkpoint one.safetensors --json
      sed "s/^{/{\"step\":$step,/" out >"eval.$step"
    }
    [ "$line" = "$(cat "eval.$step")" ] && pass || fail "step $step: $line"
  done <lines
}

train="train $digits --steps 20 --checkpoint c.safetensors --overwrite --json --quiet"
# shellcheck disable=SC2086
{
  # What is there of another training is none of this one, though it is of the last step: it has other weights.
  expect 0 'another training' "$dgc" train $digits --steps 20 --seed 9 --checkpoint c.safetensors --quiet
  expect 0 'two workers' processes 3 "$dgc" $train --cluster "$jobs" --checkpoint-every 4
  evaluated 20
  expect 0 'a worker alone' processes 2 "$dgc" $train --cluster 'evaluator=1;worker=1'
  evaluated 20
  expect 0 'parameter servers' processes 4 "$dgc" $train --cluster 'chief=1;worker=1;ps=1;evaluator=1' --strategy parameter_server \
    --min-part-bytes 20000 --epochs 2
  evaluated 16
  expect 0 'launched' "$dgc" launch -n 3 -- $train --cluster "$jobs"
  evaluated 20
  expect 0 'going on' processes 3 "$dgc" $train --steps 24 --resume --cluster "$jobs"
  evaluated 24
  # In any order, by name.
  expect 0 'by name' $bounded mpirun -n 1 "$dgc" $train --cluster "$jobs" --task evaluator:0 \
    : -n 1 "$dgc" $train --cluster "$jobs" --task worker:1 : -n 1 "$dgc" $train --cluster "$jobs" --task worker:0
  evaluated 20
  tf() { echo "{\"cluster\": {\"worker\": [\"a:1\", \"b:1\"], \"evaluator\": [\"c:1\"]}, \"task\": {\"type\": \"$1\", \"index\": $2}}"; }
  expect 0 'TF_CONFIG' $bounded mpirun -n 1 -x TF_CONFIG="$(tf evaluator 0)" "$dgc" $train \
    : -n 1 -x TF_CONFIG="$(tf worker 1)" "$dgc" $train : -n 1 -x TF_CONFIG="$(tf worker 0)" "$dgc" $train
  evaluated 20
  # In an mpirun of its own.
  rm -f c.safetensors
  "$dgc" $train --cluster "$jobs" --task evaluator:0 --eval-timeout 300 >alone.out 2>alone.err </dev/null &
  job=$!
  expect 0 'without it' processes 2 "$dgc" $train --cluster "$jobs" --cluster worker=2
  wait $job && pass || fail "alone: $(cat alone.err)"
  cat alone.out >>out
  evaluated 20

  expect 2 'no file' processes 3 "$dgc" train $digits --cluster "$jobs"
  shows err 'evaluator: error: the task evaluator:0 needs --checkpoint FILE: where the training saves'
  expect 2 'not counted' $bounded mpirun -n 1 "$dgc" $train : -n 1 "$dgc" $train : -n 1 "$dgc" $train --task evaluator:0
  shows err 'error: cluster: 1 process is an evaluator, and the cluster has none'
  expect 2 'too few' processes 2 "$dgc" $train --cluster "$jobs"
  shows err 'cluster: 2 tasks'
  expect 2 'eval' processes 3 "$dgc" eval $digits --checkpoint c.safetensors --cluster "$jobs"
  shows err 'the task evaluator is one of dgc train'
}

# --- what happens to one of them ---

# long: trains for ever, each process with its number in pid.N; comes back when something was evaluated.
long() {
  rm -f pid.* c.safetensors
  : >out
  # shellcheck disable=SC2016,SC2086
  timeout --foreground 600 sh -c 'echo $$ >pid.mpirun; exec mpirun -n 3 sh -c "echo \$\$ >pid.\$OMPI_COMM_WORLD_RANK; exec \"\$0\" \"\$@\"" "$0" "$@"' \
    "$dgc" train $digits --steps 1000000 --checkpoint c.safetensors --checkpoint-every 1 --cluster "$jobs" >out 2>err &
  job=$!
  until grep -q '^step' out || ! kill -0 $job 2>/dev/null; do sleep 0.05; done
}
# saved: waits for two checkpoints that are not there yet.
saved() {
  for i in 1 2; do
    before=$(stat -c '%i %y' c.safetensors)
    while [ "$(stat -c '%i %y' c.safetensors)" = "$before" ] && kill -0 $job 2>/dev/null; do sleep 0.05; done
  done
}
gone() {
  case $(sed -n 's/^State:\t*//p' "/proc/$1/status" 2>/dev/null) in '' | Z* | X*) true ;; *) false ;; esac
}
# Open MPI 4.1's launcher may itself crash, in a thread of PMIx, when it ends processes: its exit code says nothing of them.
launcher_crashed() { [ $got = 139 ] && grep -q "^\[[^]]*:$(cat pid.mpirun)\] Signal: Segmentation fault" ended.err; }
# ended CODE WHAT: all of them, and what was saved is what as many steps give.
ended() {
  wait $job
  got=$?
  cp err ended.err
  if launcher_crashed; then
    echo "$2: mpirun has crashed, so its exit code was not looked at" >&2
  else
    [ $got = "$1" ] && pass || { fail "$2: exit code $got" && cat err; }
  fi
  for i in 0 1 2; do # the launcher does not wait for what it has killed
    until gone "$(cat pid.$i)"; do sleep 0.05; done
  done
  step=$("$dgc" inspect c.safetensors | sed -n 's/^# step: //p')
  # shellcheck disable=SC2086
  expect 0 "$2: as many steps" "$dgc" train $digits --steps "$step" --overwrite --quiet --checkpoint whole.safetensors
  same whole.safetensors c.safetensors
}

long
kill -USR1 "$(cat pid.mpirun)"
ended 138 'a signal that mpirun hands on'
shows ended.err 'note: stopped after step'

# Asked to end by itself, it evaluates no more; the training goes on.
long
kill -TERM "$(cat pid.2)"
until grep -q 'SIGTERM: evaluation ends' err || ! kill -0 $job 2>/dev/null; do sleep 0.05; done
saved
lines=$(wc -l <out)
saved
[ "$(wc -l <out)" = "$lines" ] && pass || fail 'it evaluates on'
kill -TERM "$(cat pid.1)"
ended 143 'a signal to the evaluator, then to a worker'
shows ended.err 'note: stopped after step'

# MPI's launcher ends all when one dies, whichever it is.
for victim in 1 2; do
  long
  kill -KILL "$(cat pid.$victim)"
  ended 137 "death of process $victim"
done
finish
