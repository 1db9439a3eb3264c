#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The task evaluator, in a process by itself: each new checkpoint once, with the numbers of dgc eval, until the training
# has ended.
. "$(dirname "$0")/lib.sh"
digits="$samples/digits.dsl --rows 0:512 --eval-rows 0:100 --batch 64 --towers 2"

# What is saved at these steps, and what dgc eval says of it: eval.8 is {"step":8,"rows":...}.
# shellcheck disable=SC2086
for step in 8 16 24; do
  expect 0 "step $step" "$dgc" train $digits --steps $step --quiet --checkpoint "s$step.safetensors"
  expect 0 "eval of step $step" "$dgc" eval $digits --checkpoint "s$step.safetensors" --json
  sed "s/^{/{\"step\":$step,/" out >"eval.$step"
done
# As dgc saves: whole, under another name first.
save() {
  cp "s$1.safetensors" new && mv new c.safetensors
}
# watch ARGUMENTS...: an evaluator in the background, of a training of 24 steps.
watch() {
  : >out # as it opens it later than it is asked for
  # shellcheck disable=SC2086
  $bounded "$dgc" train $digits --steps 24 --checkpoint c.safetensors "$@" >out 2>err </dev/null &
  job=$!
}
# comes TEXT FILE: waits for it.
comes() {
  until grep -qF -- "$1" "$2" || ! kill -0 $job 2>/dev/null; do sleep 0.05; done
  shows "$2" "$1"
}
ends() {
  wait $job
  got=$?
  [ $got = "$1" ] && pass || { fail "$2: exit code $got" && cat err; }
}

# Each new one, once: the same bytes again are none. Behind the last step nothing is waited for.
for how in option TF_CONFIG in_cluster; do
  rm -f c.safetensors
  case $how in
  option) watch --task evaluator:0 --json ;;
  TF_CONFIG)
    TF_CONFIG='{"cluster": {"worker": ["a:1", "b:1"], "ps": ["c:1"]}, "task": {"type": "evaluator", "index": 0}}'
    export TF_CONFIG
    watch --json
    unset TF_CONFIG
    ;;
  in_cluster)
    # What is said of the training is not for it.
    watch --json --task evaluator:0 --cluster 'chief=a:1;worker=b:1,b:2;ps=c:1;evaluator=d:2222' --strategy parameter_server \
      --staleness 1 --min-part-bytes 20000
    ;;
  esac
  save 8
  comes '"step":8' out
  save 8
  save 16
  comes '"step":16' out
  save 24
  ends 0 "$how"
  cat eval.8 eval.16 eval.24 >wanted
  same wanted out
done

# Beside a training: some of what it saves, and the last one.
rm -f c.safetensors
watch --task evaluator:0 --json
# shellcheck disable=SC2086
"$dgc" train $digits --steps 24 --checkpoint c.safetensors --checkpoint-every 8 --quiet >train.out 2>train.err
ends 0 'beside a training'
[ "$(tail -1 out)" = "$(cat eval.24)" ] && pass || fail "the last one: $(cat out)"
while read -r line; do
  step=$(echo "$line" | sed 's/^{"step":\([0-9]*\),.*/\1/')
  [ "$line" = "$(cat "eval.$step")" ] && pass || fail "step $step: $line"
done <out

# What was there before is evaluated as well. In words; the model names a task of the training, which is not here.
sed "s,\"data/,\"$samples/data/,; "'s/^  h  .*/  on "\/job:worker\/task:1" {\n&\n  }/' "$samples/digits.dsl" >placed.dsl
grep -q job:worker placed.dsl || fail 'no task in the model'
save 24
# shellcheck disable=SC2046
expect 0 'what was there' "$dgc" train placed.dsl $(echo "$digits" | cut -d' ' -f2-) --steps 24 --checkpoint c.safetensors --task evaluator:0 \
  --allow-path "$samples"
[ "$(cat out)" = "$("$dgc" eval $digits --checkpoint c.safetensors | tr '\n' ' ' | sed 's/ loss/loss/; s/^/step 24  /; s/ accuracy/  accuracy/; s/ $//')" ] &&
  pass || fail "in words: $(cat out)"

# Asked to end, or nothing comes.
save 8
watch --task evaluator:0
comes 'step 8' out
kill -TERM $job
wait $job
got=$?
[ $got = 143 ] && pass || fail "SIGTERM: exit code $got"
shows err 'SIGTERM: evaluation ends'
# shellcheck disable=SC2086
expect 3 'nothing comes' "$dgc" train $digits --steps 24 --checkpoint c.safetensors --task evaluator:0 --eval-timeout 1
shows err 'error: no new checkpoint has come to c.safetensors for 1 s'
shows err 'note: the last one is of step 8'

# What cannot be is said before anything is waited for.
# no CODE TEXT ARGUMENTS...
no() {
  code=$1
  text=$2
  shift 2
  expect "$code" "$text" "$dgc" "$@"
  shows err "$text"
  empty out
}
# shellcheck disable=SC2086
{
  no 2 'error: the task evaluator:0 needs --checkpoint FILE: where the training saves' train $digits --task evaluator:0
  no 2 'error: --task: there is one evaluator: evaluator=1 of a cluster, task evaluator:0' train $digits --task evaluator:1 --checkpoint c.safetensors
  no 2 'error: --cluster: there is one evaluator' train $digits --cluster 'worker=2;evaluator=2' --checkpoint x.safetensors
  no 2 'error: --cluster: there is one evaluator' train $digits --cluster 'worker=2;evaluator=a:1,b:1' --checkpoint x.safetensors
  no 2 'c.safetensors is there already, and the evaluator cannot know which training it is of' train $digits \
    --task evaluator:0 --checkpoint c.safetensors --overwrite
  no 2 'no data for input image' train "$samples/digits.dsl" --data image=nowhere.npy --task evaluator:0 --checkpoint c.safetensors
  no 2 'cluster: the jobs of training are chief, worker and ps, not' train $digits --cluster 'worker=2;evaluators=1'
  echo nothing >bad.safetensors
  no 1 'cannot load bad.safetensors' train $digits --task evaluator:0 --checkpoint bad.safetensors
  # What cannot be looked at does not come to be there.
  no 1 'cannot read bad.safetensors/c.safetensors: Not a directory' train $digits --task evaluator:0 --checkpoint bad.safetensors/c.safetensors
  # In one process all tasks of training are that one.
  expect 0 'one process' "$dgc" train $digits --steps 8 --quiet --cluster 'worker=2;evaluator=1' --checkpoint one.safetensors
  shows err 'note: the evaluator of the cluster is a process of its own: --task evaluator:0'
  same one.safetensors s8.safetensors
}
finish
