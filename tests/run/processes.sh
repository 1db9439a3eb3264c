#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Tasks of a cluster as processes that mpirun starts: whatever runs the towers, the bits are those of one process.
. "$(dirname "$0")/lib.sh"
. "$source/tests/run/mpi.sh"
digits() { echo "$samples/digits.dsl --rows 0:512 --eval-rows 0:128 --batch 64 --towers 4 --steps 5 --verify-each --quiet"; }

# shellcheck disable=SC2046
{
  together 2 $(digits)
  cp several.safetensors hash.safetensors
  together 3 $(digits) --cluster 'worker=2;ps=1'
  together 4 $(digits) --cluster 'chief=1;worker=2;ps=1' --strategy central_storage
  together 4 $(digits) --cluster 'worker=2;ps=2' --strategy parameter_server --min-part-bytes 20000
  same hash.safetensors several.safetensors
  together 2 $(digits) --devices cpu:0-1 --cluster worker=2 --cross-device hierarchical_copy
  same hash.safetensors several.safetensors
  together 2 $(digits) --cross-device scatter
  same hash.safetensors several.safetensors
  together 4 $(digits) --cross-device scatter
  same hash.safetensors several.safetensors
  # Hosts are a level of the sums.
  for how in reduce_to_one hierarchical_copy scatter; do
    for hosts in a:1,a:2,b:1,b:2 a:1,b:1,a:2,b:2 a:1,b:1,b:2,b:3; do
      expect 0 "hosts $hosts, $how" processes 4 "$dgc" train $(digits) --cluster "worker=$hosts" --cross-device $how --overwrite \
        --checkpoint several.safetensors
      same hash.safetensors several.safetensors
    done
  done
  # The hosts that processes find themselves on are so, too.
  on() { echo "-n 1 env LD_PRELOAD=$root/tests/run/inject.so DGC_HOST=$1 $dgc train $(digits) --overwrite --checkpoint several.safetensors"; }
  if [ -f "$root/tests/run/inject.so" ]; then
    for how in reduce_to_one hierarchical_copy scatter; do
      expect 0 "four on two hosts, $how" $bounded mpirun $(on a) --cross-device $how : $(on a) --cross-device $how \
        : $(on 7) --cross-device $how : $(on 7) --cross-device $how
      same hash.safetensors several.safetensors
    done
    expect 0 'and the servers' $bounded mpirun $(on a) --cluster 'worker=2;ps=2' : $(on b) --cluster 'worker=2;ps=2' \
      : $(on b) --cluster 'worker=2;ps=2' : $(on a) --cluster 'worker=2;ps=2'
    same hash.safetensors several.safetensors
    expect 2 'they do not agree on hosts' $bounded mpirun $(on a) : $(on b) --cluster 'worker=x,x' --link 1GB/s,1us
    shows err 'cluster "worker=a:0,b:0"'
  fi
  # How sums travel is chosen by a prediction, the same in all, unless they are told of different links.
  usual='--speed 100GFLOP/s,20GB/s' fast='--link 1000TB/s,0ns --speed 1GFLOP/s,1GB/s'
  together 2 $(digits) $usual
  shows err 'note: sums by scatter: '
  shows err ' a step of 2 tasks is predicted for links of 1.25GB/s,50us (reduce_to_one '
  same hash.safetensors several.safetensors
  together 2 $(digits) --cross-device auto $fast
  shows err 'note: sums by reduce_to_one: '
  same hash.safetensors several.safetensors
  expect 2 'different links' $bounded mpirun -n 1 "$dgc" train $(digits) $usual : -n 1 "$dgc" train $(digits) $fast
  shows err 'the tasks do not agree: process 1 has another plan than process 0'
  shows err 'cross_device reduce_to_one'
  # By MPI alone, and some of it: the second one shares no memory.
  expect 0 'DGC_SHARED=off' env DGC_SHARED=off $bounded mpirun -n 3 "$dgc" train $(digits) --overwrite --checkpoint several.safetensors
  same hash.safetensors several.safetensors
  save='--overwrite --checkpoint several.safetensors'
  expect 0 'one with DGC_SHARED=off' $bounded mpirun -n 1 "$dgc" train $(digits) $save \
    : -n 1 -x DGC_SHARED=off "$dgc" train $(digits) $save : -n 2 "$dgc" train $(digits) $save
  same hash.safetensors several.safetensors
  together 3 $(digits) --strategy round_robin
  together 3 $(digits) --strategy replicate
  together 4 $(digits) --packs 2
  same hash.safetensors several.safetensors
  together 3 $(digits) --cluster worker=3 --cross-device ring
  together 3 $(digits) --cluster 'worker=2;ps=1' --strategy parameter_server --staleness 1
  together 2 "$samples/words.dsl" --batch 32 --towers 4 --steps 4 --quiet
  together 2 "$samples/lenet.dsl" --rows 0:64 --eval-rows 0:64 --batch 32 --towers 4 --steps 2 --quiet
}

# More or fewer tasks go on from a checkpoint; evaluation and prediction.
rm -f part.safetensors
steps="--checkpoint part.safetensors --overwrite"
# shellcheck disable=SC2046,SC2086
{
  expect 0 'begin with 3' processes 3 "$dgc" train $(digits) --steps 2 $steps
  expect 0 'go on with 2' processes 2 "$dgc" train $(digits) --steps 4 $steps --resume
  expect 0 'go on with 4' processes 4 "$dgc" train $(digits) --steps 5 $steps --resume
}
same hash.safetensors part.safetensors
data="$samples/digits.dsl --eval-rows 0:100 --checkpoint hash.safetensors --batch 32"
# shellcheck disable=SC2086
{
  expect 0 'eval of one' "$dgc" eval $data --json
  cp out one.out
  expect 0 'eval of 2' processes 2 "$dgc" eval $data --json
  same_results one.out out
  expect 0 'predict of one' "$dgc" predict $data --towers 2 --output probability=one.npy
  expect 0 'predict of 2' processes 2 "$dgc" predict $data --towers 2 --output probability=several.npy
  same one.npy several.npy
}

# An mpirun that writes down which process is which.
mkdir bin
cat >bin/mpirun <<END
#!/bin/sh
echo \$\$ >pid.mpirun
n=\$2
shift 2
hosts=
[ "\$1" != --hostfile ] || { hosts="--hostfile \$2" && shift 2; }
exec $(command -v mpirun) \$hosts -n "\$n" sh -c 'echo \$\$ >pid.\$OMPI_COMM_WORLD_RANK; exec "\$0" "\$@"' "\$@"
END
chmod +x bin/mpirun
# What is trained for ever, until it is told to end; what happens to it happens between two of its steps, whenever that is.
# train_on NAME COMMAND...: begins it, and comes back when it has saved for the first time.
train_on() {
  name=$1
  shift
  rm -f "$name.safetensors" pid.*
  # shellcheck disable=SC2046
  PATH="$PWD/bin:$PATH" timeout --foreground 600 "$@" $(digits) --steps 1000000 --checkpoint "$name.safetensors" --checkpoint-every 1 \
    >out 2>err &
  job=$!
  saved "$name"
}
# saved NAME: waits for a checkpoint that was not there when it was last asked.
saved() {
  until [ -f "$1.safetensors" ] && [ "$(stat -c '%i %y' "$1.safetensors")" != "$2" ]; do
    kill -0 $job 2>/dev/null || break
    sleep 0.05
  done
}
# ended WHAT CODE NAME: it comes to its end with this code, and its checkpoint is that of as many steps in one process.
ended() {
  wait $job
  got=$?
  cp err ended.err
  [ $got = "$2" ] && pass || { fail "$1: exit code $got"; cat err; }
  step=$(sed -n 's/^note: stopped after step \([0-9]*\), saved.*/\1/p' err)
  [ -n "$step" ] && pass || { fail "$1: not saved in the end"; cat err; }
  grep -q '^process .*note: stopped' err && fail "$1: said by more than one process" || pass
  # shellcheck disable=SC2046
  expect 0 "$1: as many steps" "$dgc" train $(digits) --steps "${step:-1}" --overwrite --checkpoint whole.safetensors
  same whole.safetensors "$3.safetensors"
}

# A signal to any process, or to who launched them, ends all behind one step, which is saved.
train_on stopped mpirun -n 2 "$dgc" train
[ "$(grep -c 'memfd:dgc' "/proc/$(cat pid.0)/maps")" = 2 ] && pass || fail 'a process has not mapped its own heap and the other one'
kill -TERM "$(cat pid.1)"
ended 'a signal to one process' 143 stopped
train_on stopped mpirun -n 3 "$dgc" train
kill -USR1 "$(cat pid.mpirun)"
ended 'a signal that mpirun hands on' 138 stopped
echo 'localhost slots=3' >hosts
train_on stopped "$dgc" launch -n 3 --hosts hosts --restarts 2 -- train
kill -TERM $job
ended 'a signal to who launched them' 143 stopped
grep -q restart ended.err && fail 'what was asked to end is started anew' || pass

# Which process is which task, in any order: as --task says, or TF_CONFIG.
# shellcheck disable=SC2046
{
  expect 0 'tasks by name' $bounded mpirun -n 1 "$dgc" train $(digits) --task worker:1 --overwrite --checkpoint several.safetensors \
    : -n 1 "$dgc" train $(digits) --task worker:0 --overwrite --checkpoint several.safetensors
  same hash.safetensors several.safetensors
  tf() {
    echo '{"cluster": {"worker": ["a:2222", "b:2222"], "ps": ["c:1"]}, "environment": "cloud", "more": [1, {"y": null}],' \
      "\"task\": {\"type\": \"$1\", \"index\": $2}}"
  }
  expect 0 'TF_CONFIG' $bounded mpirun \
    -n 1 -x TF_CONFIG="$(tf ps 0)" "$dgc" train $(digits) --overwrite --checkpoint several.safetensors \
    : -n 1 -x TF_CONFIG="$(tf worker 1)" "$dgc" train $(digits) --overwrite --checkpoint several.safetensors \
    : -n 1 -x TF_CONFIG="$(tf worker 0)" "$dgc" train $(digits) --overwrite --checkpoint several.safetensors
  same hash.safetensors several.safetensors
  expect 3 'one task twice' $bounded mpirun -n 2 "$dgc" train $(digits) --task worker:1
  shows err 'this process is to be task number 1, and another one is that too'
  expect 2 'no such task' $bounded mpirun -n 2 "$dgc" train $(digits) --task worker:2
  shows err 'error: --task: the cluster (worker=2 of the launcher) has no task worker:2'
  expect 2 'TF_CONFIG of several, alone' env TF_CONFIG="$(tf worker 0)" "$dgc" train $(digits)
  shows err "cluster: 'worker=a:2222,b:2222;ps=c:1' of TF_CONFIG names hosts, and this is the only process"
  for task in worker:0 worker:1; do
    expect 2 "$task, alone" "$dgc" train $(digits) --cluster worker=2 --task $task --checkpoint alone.safetensors
    shows err "error: --task: $task is one of 2 tasks, and this is the only process"
    shows err 'help: start all of them by mpirun -n 2 or dgc launch -n 2, or leave out --task'
  done
  [ ! -f alone.safetensors ] && pass || fail 'a task alone has trained'
  # The first process alone claims a file, and all end where it cannot.
  long="$samples/digits.dsl --rows 0:512 --eval-rows 0:128 --batch 64 --towers 4 --quiet --epochs 1000000"
  processes 2 "$dgc" train $long --overwrite --checkpoint busy.safetensors >busy.out 2>busy.err &
  job=$!
  until [ -f busy.safetensors ] || ! kill -0 $job 2>/dev/null; do sleep 0.1; done
  expect 2 'one beside two' "$dgc" train $(digits) --overwrite --checkpoint busy.safetensors
  shows err 'error: busy.safetensors is being written by another training: process '
  expect 2 'two beside two' processes 2 "$dgc" train $(digits) --overwrite --checkpoint busy.safetensors
  shows err 'error: busy.safetensors is being written by another training: process '
  kill -0 $job 2>/dev/null && pass || fail "it has ended: $(cat busy.err)"
  kill -USR1 $job
  wait $job
  expect 2 'TF_CONFIG that is none' env TF_CONFIG='{"cluster": {"worker": [1]}}' "$dgc" train $(digits)
  shows err 'TF_CONFIG is no cluster as TensorFlow writes it: see byte 24'
  for config in '' '{}' '{"cluster": {"worker": ["a:1"]}, "task": {"type": "worker", "index": 0}}'; do
    expect 0 "TF_CONFIG of one: $config" env TF_CONFIG="$config" "$dgc" train $(digits) --overwrite --checkpoint several.safetensors
    same hash.safetensors several.safetensors
  done
}

# Who is not started as the others are does not train with them.
differs() {
  what=$1
  shift
  # shellcheck disable=SC2046
  expect 2 "$what" $bounded mpirun -n 1 "$dgc" train $(digits) : -n 1 "$dgc" train $(digits) "$@"
}
sed 's/512/511/' "$samples/digits.dsl" >other.dsl
ln -s "$samples/data" data
differs 'another batch' --batch 32
shows err 'error: the tasks do not agree: process 1 has another plan than process 0. They differ first in line 3:'
shows err '  batch 32'
sed 's/hidden = 512/hidden = 32/; s/^\(model digits(.*)\) {/\1 with precision = bf16 {/' "$samples/digits.dsl" >bf16.dsl
# shellcheck disable=SC2046,SC2086
{
  unlike=0
  if grep -q amx_bf16 /proc/cpuinfo || { grep -q avx512_bf16 /proc/cpuinfo && grep -q AuthenticAMD /proc/cpuinfo; }; then
    [ -n "${DNNL_MAX_CPU_ISA-}" ] || unlike=2
  fi
  [ $unlike = 2 ] || echo 'SKIP: who multiplies bfloat16 otherwise is not refused: this CPU has no units for it'
  small="bf16.dsl $(digits | cut -d' ' -f2-) --allow-path $samples"
  together 2 $small
  expect $unlike 'one without units' $bounded mpirun -n 1 "$dgc" train $small : -n 1 -x DGC_BF16_UNITS=off "$dgc" train $small
  [ $unlike = 0 ] || shows err ' multiplies bfloat16 as f32, and '
}
# Variables in 16 bits, and their masters, are those of one process.
cat >stored.dsl <<'EOF'
model stored {
  input image : u8[B, 28, 28]
  input label : u8[B]
  var kernel : f32[784, 10] = glorot_uniform() storage(f16)
  var bias   : f32[10]      = zeros() storage(bf16)
  logits = flatten(cast(image, f32) / 255) @ kernel + bias
  train mean(softmax_cross_entropy(logits, label)) with [master(), adam()]
  data train {
    image = "data/train-images.idx"
    label = "data/train-labels.idx"
  }
}
EOF
# shellcheck disable=SC2086
{
  stored="stored.dsl --rows 0:512 --batch 64 --towers 4 --steps 5 --verify-each --quiet --allow-path $samples"
  together 2 $stored
  cp several.safetensors stored.safetensors
  together 4 $stored --cluster 'worker=2;ps=2' --strategy parameter_server --min-part-bytes 2000
  same stored.safetensors several.safetensors
}
differs 'other rows' --rows 0:500
shows err '/job:worker/task:1 on '
shows err ' has 500 rows of image, each u8[28,28], and /job:worker/task:0 on '
differs 'first values from a file' --init-from hash.safetensors
shows err ' has --init-from 1 times, and '
printf '%s\n' 'model line {' '  input x : f32[B, 2]' '  var w : f32[2, 1] = ones()' '  train mean(square(x @ w)) with sgd()' '}' >line.dsl
seq 32 | awk '{ print $1 / 9 "," 3 }' >a.csv
seq 32 | awk '{ print $1 / 9 "," 4 }' >b.csv
line="train line.dsl --batch 8 --eval-rows 0:8 --quiet --data x"
expect 2 'as many other rows' $bounded mpirun -n 1 "$dgc" $line=a.csv : -n 1 "$dgc" $line=b.csv
shows err ' has rows whose checksum is '
expect 2 'nothing to evaluate on' $bounded mpirun -n 1 "$dgc" $line=a.csv : -n 1 "$dgc" train line.dsl --batch 8 --quiet --data x=a.csv
shows err 'task:1 on '
shows err ' has no data to evaluate on, and '
differs 'another end' --steps 6
shows err ' ends with step 6, and '
differs 'another beginning' --resume=hash.safetensors --steps 7
shows err ' reads a checkpoint, and '
# shellcheck disable=SC2046
expect 2 'another model' $bounded mpirun -n 1 "$dgc" train $(digits) : -n 1 "$dgc" train other.dsl $(digits | cut -d' ' -f2-)
shows err 'h.kernel = variable {trainable=1} : f32[784,511]'

# Killed processes, and one that is stuck: the run goes on from its last checkpoint, with as many or with fewer.
# goes_on WHAT SIGNAL WHICH NOTE: one process gets the signal; launched again, they train on until told to end.
goes_on() {
  lost=$(cat "pid.$3")
  kill -"$2" "$lost"
  until grep -q "^dgc launch: note: a process ended with $4" err || ! kill -0 $job 2>/dev/null; do sleep 0.05; done
  saved died "$(stat -c '%i %y' died.safetensors)"
  kill -TERM "$(cat pid.0)"
  ended "$1" 143 died
  kill -CONT "$lost" 2>/dev/null # if it is still there
}
train_on died "$dgc" launch -n 3 --restarts 1 -- train
goes_on 'a killed process' KILL 1 '137; 3 start from the last checkpoint, 0 more restarts may follow'
train_on died "$dgc" launch -n 4 --restarts 3 --min-tasks 2 -- train
goes_on 'a killed first process' KILL 0 '137; 3 start from the last checkpoint, 2 more restarts may follow'
train_on died "$dgc" launch -n 3 --restarts=1000 -- train --timeout 5
goes_on 'a stuck process' STOP 2 '3; 3 start from the last checkpoint, 999 more restarts may follow'
train_on died "$dgc" launch -n 3 -- train
kill -KILL "$(cat pid.2)"
wait $job
got=$?
[ $got = 137 ] && pass || fail "without restarts: exit code $got"
expect 1 'what a restart cannot mend' "$dgc" launch -n 2 --restarts 5 -- train nowhere.dsl --checkpoint x.safetensors
grep -q restart err && fail 'a wrong model is tried again' || pass
expect 2 'no number' "$dgc" launch -- train x.dsl
expect 2 'nothing to start' "$dgc" launch -n 2
expect 2 'nowhere to go on from' "$dgc" launch -n 2 --restarts 1 -- train x.dsl
expect 2 'as many as it says' "$dgc" launch -n 2 --min-tasks 1 -- train x.dsl --cluster 'worker=2'
expect 2 'no option of its own' "$dgc" launch -n 2 --steps 3 -- train x.dsl

# One that is alive and does nothing is not waited for longer than --timeout says: who, where and for whom.
# Who stops before it knows the others is given up, too: at the first of its messages (tests/support/inject.c).
# shellcheck disable=SC2046
if [ -f "$root/tests/run/inject.so" ]; then
  expect 3 'one that stops at once' $bounded mpirun -n 1 "$dgc" train $(digits) --timeout 2 \
    : -n 1 env LD_PRELOAD="$root/tests/run/inject.so" DGC_INJECT=message:1:stop "$dgc" train $(digits) --timeout 2
  shows err 'for 2 s, and does not answer'
  # And who has no memory left does not stay for the others' sake.
  for call in 100 150 200; do
    expect 3 "no memory: $call" timeout 300 mpirun -n 1 "$dgc" train $(digits) \
      : -n 1 env LD_PRELOAD="$root/tests/run/inject.so" DGC_INJECT=malloc:$call+:ENOMEM "$dgc" train $(digits)
    shows err 'process 1: error: '
  done
fi
train_on stuck mpirun -n 3 "$dgc" train --timeout 10
stuck=$(cat pid.2)
kill -STOP "$stuck"
wait $job
[ $? = 3 ] && pass || fail 'a process that is stuck is waited for'
kill -CONT "$stuck" 2>/dev/null
grep -Eq '^(process [01]: )?error: /job:worker/task:2 on .* has not .* of step [0-9]+ for 10 s, and does not answer$' err && pass || fail "$(cat err)"
# All of them are stopped for longer than that, as they are with their machine: none is waited for.
train_on paused mpirun -n 2 "$dgc" train --timeout 5
kill -STOP "$(cat pid.0)" "$(cat pid.1)"
sleep 8
before=$(stat -c '%i %y' paused.safetensors)
kill -CONT "$(cat pid.0)" "$(cat pid.1)"
saved paused "$before"
kill -TERM "$(cat pid.1)"
ended 'stopped for a while' 143 paused

# What cannot be is said, and ends all of them.
# shellcheck disable=SC2046
expect 2 'too few' processes 2 "$dgc" train $(digits) --cluster worker=3
shows err 'cluster: 3 tasks, and 2 processes were started'
# shellcheck disable=SC2046
expect 1 'nothing there' processes 2 "$dgc" train $(digits) --data image=nowhere.npy
shows err 'process 1: error: cannot read nowhere.npy'
finish
