#!/bin/sh
# Tasks of a cluster as processes that mpirun starts: whatever runs the towers, the bits are those of one process.
. "$(dirname "$0")/lib.sh"
root=$(dirname "$dgc")
if ! command -v mpirun >/dev/null || [ ! -f "$root/dgc-mpi.so" ]; then
  echo 'SKIP: MPI is not installed, or was not when dgc was built'
  exit 77
fi
# Open MPI: as root, and more processes than cores, as in containers; all of them here.
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1
export OMPI_MCA_btl=self,vader OMPI_MCA_plm_rsh_agent=/bin/false
# A test that hangs is ended by its own processor time, or by the clock if nobody works.
processes() {
  n=$1
  shift
  timeout 300 mpirun -n "$n" "$@"
}
digits() { echo "$samples/digits.dsl --rows 0:512 --eval-rows 0:128 --batch 64 --towers 4 --steps 5 --verify-each --quiet"; }

# together N WHAT ARGUMENTS...: as many processes end with the checkpoint and the words of one.
together() {
  n=$1
  shift
  expect 0 "one process: $*" "$dgc" train "$@" --overwrite --checkpoint one.safetensors
  cp out one.out
  expect 0 "$n processes: $*" processes "$n" "$dgc" train "$@" --overwrite --checkpoint several.safetensors
  same one.safetensors several.safetensors
  same one.out out
}
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
  same one.out out
  expect 0 'predict of one' "$dgc" predict $data --towers 2 --output probability=one.npy
  expect 0 'predict of 2' processes 2 "$dgc" predict $data --towers 2 --output probability=several.npy
  same one.npy several.npy
}

# A signal to any process ends all behind one step, which is saved. mpirun's own code is of who ended first.
rm -f stopped.safetensors
# shellcheck disable=SC2046
{
  # shellcheck disable=SC2016
  timeout 300 mpirun -n 2 sh -c 'echo $$ >pid.$OMPI_COMM_WORLD_RANK; exec "$0" "$@"' "$dgc" train $(digits) --steps 100000 --checkpoint stopped.safetensors --checkpoint-every 2 \
    >out 2>err &
  job=$!
  # Two steps have been saved: all are training.
  until [ -f stopped.safetensors ] || ! kill -0 $job 2>/dev/null; do sleep 0.05; done
  kill -TERM "$(cat pid.1)"
  wait $job
  step=$(sed -n 's/^note: stopped after step \([0-9]*\), saved.*/\1/p' err)
  [ -n "$step" ] && pass || { fail 'a signal does not end all'; cat err; }
  expect 0 'as many steps' "$dgc" train $(digits) --steps "${step:-1}" --checkpoint stopped1.safetensors
}
same stopped.safetensors stopped1.safetensors

# Which process is which task, in any order: as --task says, or TF_CONFIG.
# shellcheck disable=SC2046
{
  expect 0 'tasks by name' timeout 300 mpirun -n 1 "$dgc" train $(digits) --task worker:1 --overwrite --checkpoint several.safetensors \
    : -n 1 "$dgc" train $(digits) --task worker:0 --overwrite --checkpoint several.safetensors
  same hash.safetensors several.safetensors
  tf() {
    echo '{"cluster": {"worker": ["a:2222", "b:2222"], "ps": ["c:1"]}, "environment": "cloud", "more": [1, {"y": null}],' \
      "\"task\": {\"type\": \"$1\", \"index\": $2}}"
  }
  expect 0 'TF_CONFIG' timeout 300 mpirun \
    -n 1 -x TF_CONFIG="$(tf ps 0)" "$dgc" train $(digits) --overwrite --checkpoint several.safetensors \
    : -n 1 -x TF_CONFIG="$(tf worker 1)" "$dgc" train $(digits) --overwrite --checkpoint several.safetensors \
    : -n 1 -x TF_CONFIG="$(tf worker 0)" "$dgc" train $(digits) --overwrite --checkpoint several.safetensors
  same hash.safetensors several.safetensors
  expect 3 'one task twice' timeout 300 mpirun -n 2 "$dgc" train $(digits) --task worker:1
  shows err 'this process is to be task number 1, and another one is that too'
  expect 2 'no such task' timeout 300 mpirun -n 2 "$dgc" train $(digits) --task worker:2
  shows err 'error: --task: the cluster (worker=2 of the launcher) has no task worker:2'
  expect 2 'TF_CONFIG of several, alone' env TF_CONFIG="$(tf worker 0)" "$dgc" train $(digits)
  shows err "cluster: 'worker=a:2222,b:2222;ps=c:1' of TF_CONFIG names hosts, and this is the only process"
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
  expect "$code" "$what" timeout 300 mpirun -n 1 "$dgc" train $(digits) : -n 1 "$dgc" train $(digits) "$@"
}
sed 's/512/511/' "$samples/digits.dsl" >other.dsl
ln -s "$samples/data" data
code=2
differs 'another batch' --batch 32
shows err 'error: the tasks do not agree: process 1 has another plan than process 0. They differ first in line 3:'
shows err '  batch 32'
differs 'other rows' --rows 0:500
shows err '/job:worker/task:1 on '
shows err ' has 500 rows of image, each u8[28,28], and /job:worker/task:0 on '
differs 'another end' --steps 6
shows err ' ends with step 6, and '
differs 'another beginning' --resume=hash.safetensors --steps 7
shows err ' reads a checkpoint, and '
# shellcheck disable=SC2046
expect 2 'another model' timeout 300 mpirun -n 1 "$dgc" train $(digits) : -n 1 "$dgc" train other.dsl $(digits | cut -d' ' -f2-)
shows err 'h.kernel = variable {trainable=1} : f32[784,511]'

# Killed processes, and one that is stuck: the run goes on from its last checkpoint, with as many or with fewer.
# died SIGNAL WHICH ARGUMENTS OF LAUNCH...: one process gets the signal each time there is something new.
died() {
  signal=$1 which=$2
  shift 2
  rm -f died.safetensors pid.*
  # shellcheck disable=SC2046
  PATH="$PWD/bin:$PATH" timeout 600 "$dgc" launch "$@" -- train $(digits) --steps 40 --timeout 2 --checkpoint died.safetensors \
    --checkpoint-every 1 >out 2>err &
  job=$!
  until [ -f died.safetensors ] || ! kill -0 $job 2>/dev/null; do sleep 0.02; done
  kill -"$signal" "$(cat "pid.$which")"
  wait $job
  got=$?
  kill -CONT "$(cat "pid.$which")" 2>/dev/null
}
# An mpirun that writes down which process is which.
mkdir bin
cat >bin/mpirun <<END
#!/bin/sh
n=\$2
shift 2
exec $(command -v mpirun) -n "\$n" sh -c 'echo \$\$ >pid.\$OMPI_COMM_WORLD_RANK; exec "\$0" "\$@"' "\$@"
END
chmod +x bin/mpirun
# shellcheck disable=SC2046
expect 0 'undisturbed' "$dgc" train $(digits) --steps 40 --checkpoint whole.safetensors
died KILL 1 -n 3 --restarts 2
[ $got = 0 ] && pass || { fail "a killed process: exit code $got"; cat err; }
shows err 'dgc launch: note: a process ended with 137; 3 start from the last checkpoint, 1 more restart may follow'
same whole.safetensors died.safetensors
died KILL 0 -n 4 --restarts 3 --min-tasks 2
[ $got = 0 ] && pass || { fail "a killed first process: exit code $got"; cat err; }
shows err '3 start from the last checkpoint'
same whole.safetensors died.safetensors
died STOP 2 -n 3 --restarts=1
[ $got = 0 ] && pass || { fail "a stuck process: exit code $got"; cat err; }
shows err 'a process ended with 3; 3 start from the last checkpoint, 0 more restarts may follow'
same whole.safetensors died.safetensors
died KILL 2 -n 3
[ $got = 137 ] && pass || fail "without restarts: exit code $got"
expect 1 'what a restart cannot mend' "$dgc" launch -n 2 --restarts 5 -- train nowhere.dsl --checkpoint x.safetensors
grep -q restart err && fail 'a wrong model is tried again' || pass
expect 2 'no number' "$dgc" launch -- train x.dsl
expect 2 'nothing to start' "$dgc" launch -n 2
expect 2 'nowhere to go on from' "$dgc" launch -n 2 --restarts 1 -- train x.dsl
expect 2 'as many as it says' "$dgc" launch -n 2 --min-tasks 1 -- train x.dsl --cluster 'worker=2'
expect 2 'no option of its own' "$dgc" launch -n 2 --steps 3 -- train x.dsl

# One that is alive and does nothing is not waited for longer than --timeout says: who, where and for whom.
rm -f stuck.safetensors
# shellcheck disable=SC2016,SC2046
timeout 300 mpirun -n 3 sh -c 'echo $$ >pid.$OMPI_COMM_WORLD_RANK; exec "$0" "$@"' "$dgc" train $(digits) --timeout 1 \
  --steps 100000 --checkpoint stuck.safetensors --checkpoint-every 2 >out 2>err &
job=$!
until [ -f stuck.safetensors ] || ! kill -0 $job 2>/dev/null; do sleep 0.05; done
stuck=$(cat pid.2)
kill -STOP "$stuck"
wait $job
[ $? = 3 ] && pass || fail 'a process that is stuck is waited for'
kill -CONT "$stuck" 2>/dev/null
grep -Eq 'task:2/cpu:0, which has not (taken|sent) message|process 2 has not (taken|sent)' err && pass || fail "$(cat err)"

# What cannot be is said, and ends all of them.
# shellcheck disable=SC2046
expect 2 'too few' processes 2 "$dgc" train $(digits) --cluster worker=3
shows err 'cluster: 3 tasks, and 2 processes were started'
# shellcheck disable=SC2046
expect 1 'nothing there' processes 2 "$dgc" train $(digits) --data image=nowhere.npy
shows err 'process 1: error: cannot read nowhere.npy'
finish
