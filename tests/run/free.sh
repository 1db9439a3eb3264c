#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# --staleness free: workers apply their gradients as they come, in no fixed order. What does not depend on the order is what
# one process has, to the bit: with one worker everything, with several a model whose updates are whole numbers, which add up
# to the same in any order, so that a batch that is lost, or counts twice, shows.
. "$(dirname "$0")/lib.sh"
. "$source/tests/run/mpi.sh"

count_model
awk 'BEGIN { for (i = 1; i <= 997; i++) print i "," i * i % 1000 "," 7 * i % 31 - 15 }' >x.csv
count='count.dsl --data x=x.csv --batch 16 --quiet'
save='--overwrite --checkpoint several.safetensors'

# one ARGUMENTS...: a process by itself, to one.safetensors.
one() { expect 0 "one process: $*" "$dgc" train "$@" --overwrite --checkpoint one.safetensors; }
# free WORKERS SERVERS ARGUMENTS...: as many tasks, to several.safetensors; with what one process has.
# shellcheck disable=SC2086
free() {
  workers=$1 servers=$2
  shift 2
  expect 0 "$workers workers, $servers servers: $*" processes $((workers + servers)) "$dgc" train "$@" $save \
    --cluster "worker=$workers;ps=$servers"
  cp err free.err
}

# One worker: the bits of one process, with parts of variables, rows of tables, and last batches that are smaller.
# shellcheck disable=SC2086
for model in "$samples/digits.dsl --rows 0:300 --eval-rows 0:64 --batch 64" "$samples/words.dsl" \
  "$samples/lenet.dsl --rows 0:72 --eval-rows 0:64 --batch 32" "$count"; do
  one $model --epochs 2 --quiet
  cp out one.out
  for servers in 1 3; do
    free 1 $servers $model --epochs 2 --quiet --verify-each --min-part-bytes 2000 --staleness free
    same one.safetensors several.safetensors
    same one.out out
    empty free.err
  done
done

# Several: each batch counts once, whatever the bound.
# shellcheck disable=SC2086
{
  one $count --epochs 3
  cp one.safetensors three.safetensors
  for bound in free free:0 free:1 free:3; do
    free 2 1 $count --epochs 3 --staleness $bound
    same three.safetensors several.safetensors
    free 3 2 $count --epochs 3 --staleness $bound --checkpoint-every 5
    same three.safetensors several.safetensors
  done
  shows free.err 'note: staleness free: 3 workers apply their gradients as they come, each with a batch of its own: no bits are promised'
  free 2 2 $count --epochs 3 --staleness free --strategy parameter_server --min-part-bytes 8 --devices cpu:0-1
  one $count --epochs 3 --towers 2
  same one.safetensors several.safetensors
  # Steps are those of all workers together.
  for steps in 0 1 2 70; do
    one $count --steps $steps
    free 3 1 $count --steps $steps --staleness free
    same one.safetensors several.safetensors
  done
  # The model may ask for it, and options win.
  for bound in free free:2; do
    sed "s/  train/  strategy parameter_server(staleness = \"$bound\")\n&/" count.dsl >asks.dsl
    free 2 1 asks.dsl --data x=x.csv --batch 16 --quiet --epochs 3
    same three.safetensors several.safetensors
    shows free.err 'note: staleness free: 2 workers apply their gradients as they come'
  done
  free 2 1 asks.dsl --data x=x.csv --batch 16 --quiet --epochs 3 --staleness 1
  empty free.err
  expect 0 'in turn, in one process' "$dgc" train asks.dsl --data x=x.csv --batch 16 --quiet --epochs 3 --staleness 1 \
    --cluster 'worker=2;ps=1' --checkpoint one.safetensors --overwrite
  same one.safetensors several.safetensors
  # It goes on with others than it began with.
  free 3 1 $count --steps 70 --staleness free
  cp several.safetensors begun.safetensors
  expect 0 'goes on with two' processes 3 "$dgc" train $count --epochs 3 --staleness free --cluster 'worker=2;ps=1' \
    --resume=begun.safetensors $save
  same three.safetensors several.safetensors
  expect 0 'goes on in one process' "$dgc" train $count --epochs 3 --resume=begun.safetensors $save
  same three.safetensors several.safetensors
  expect 0 'by MPI alone' env DGC_SHARED=off $bounded mpirun -n 4 "$dgc" train $count --epochs 3 --staleness free:2 \
    --cluster 'worker=2;ps=2' $save
  same three.safetensors several.safetensors
}

# It learns.
free 3 2 "$samples/digits.dsl" --epochs 2 --batch 64 --staleness free --json
accuracy=$(sed -n 's/.*"accuracy":\(0\.[0-9]*\).*/\1/p' out | tail -1)
awk "BEGIN { exit !(${accuracy:-0} > 0.9) }" && pass || fail "the accuracy is $accuracy"
grep -c '^epoch [12]/2  loss' free.err >lines
[ "$(cat lines)" = 2 ] && pass || fail "$(cat free.err)"

# Traces: each step once at the worker that has it and at each server, what a step did lies in it, and no bit is another.
cat >traced.py <<'PYTHON'
import json, sys
steps, answers = int(sys.argv[1]), int(sys.argv[2])
done, served = [], {}
for process in range(4):
    events = json.load(open("t.json" + (".%d" % process if process else "")))["traceEvents"]
    row = {e["tid"]: e["args"]["name"] for e in events if e["name"] == "thread_name"}
    device = "/job:worker/task:%d/cpu:0" % process if process < 2 else "/job:ps/task:%d/cpu:0" % (process - 2)
    assert sorted(row.values()) == sorted(["host", device]), row
    spans = [e for e in events if e["ph"] == "X"]
    runs = [e for e in spans if e["cat"] == "step"]
    work = [e for e in spans if row[e["tid"]] == device]
    cats = {e["cat"] for e in spans if row[e["tid"]] == "host"}
    assert work and {"step", "input"} <= cats <= {"step", "input", "checkpoint", "evaluation"}, (process, cats)
    for e in work:
        assert sum(r["ts"] - 0.0015 <= e["ts"] and e["ts"] + e["dur"] <= r["ts"] + r["dur"] + 0.0015 for r in runs) == 1, e
    if process < 2:
        assert all(e["name"] == "train" and e["args"]["worker"] == process for e in runs)
        done += [(e["args"]["step"], process, e["args"]["rows"]) for e in runs]
    else:
        served[process] = {name: [(e["args"]["step"], e["args"]["worker"], e["args"]["rows"]) for e in runs if e["name"] == name]
                           for name in ("begin", "answer", "train")}
assert [step for step, _, _ in sorted(done)] == list(range(1, steps + 1)), sorted(done)
for runs in served.values():
    assert sorted(runs["begin"]) == sorted(runs["train"]) == sorted(done) and set(runs["answer"]) <= set(done)
assert sum(len(runs["answer"]) for runs in served.values()) == answers * steps, served
PYTHON
# shellcheck disable=SC2086
{
  free 2 2 $count --epochs 3 --staleness free --trace t.json
  same three.safetensors several.safetensors
  python3 traced.py 189 0 && pass || fail 'the trace of free steps is another'
  expect 0 'the summary of one' "$dgc" trace t.json.3
  shows out 't.json.3: 189 steps of train on 1 device'
  free 2 2 "$samples/words.dsl" --epochs 2 --batch 4 --staleness free --trace t.json
  python3 traced.py 90 2 && pass || fail 'the trace of answers is another'
}

# An evaluator beside them.
# shellcheck disable=SC2086
{
  expect 0 'an evaluator' processes 4 "$dgc" train "$samples/digits.dsl" --rows 0:512 --eval-rows 0:100 --batch 64 --steps 20 --json --quiet \
    --staleness free --cluster 'worker=2;ps=1;evaluator=1' --checkpoint-every 10 $save
  cp out evaluated
  expect 0 'its last line' "$dgc" eval "$samples/digits.dsl" --eval-rows 0:100 --batch 64 --checkpoint several.safetensors --json
  sed 's/^{/{"step":20,/' out >line
  grep -qxFf line evaluated && pass || fail "$(cat line evaluated)"
}

# What is trained until it is told to end.
train_on() {
  rm -f ./*.pid on.safetensors
  # shellcheck disable=SC2016,SC2086
  timeout --foreground 600 mpirun -n 4 sh -c 'echo $$ >$OMPI_COMM_WORLD_RANK.pid; exec "$0" "$@"' "$dgc" train $count \
    --cluster 'worker=2;ps=2' --staleness free --epochs 1000000000 --checkpoint on.safetensors --checkpoint-every "$@" >out 2>err &
  job=$!
  until [ -f on.safetensors ]; do
    kill -0 $job 2>/dev/null || break
    sleep 0.05
  done
}
# A signal to any of them ends all behind the same batches, which are saved.
for which in 0 1 2 3; do
  train_on 1s
  kill -TERM "$(cat $which.pid)"
  wait $job
  got=$?
  [ $got = 143 ] && pass || fail "a signal to process $which: exit code $got: $(cat err)"
  step=$(sed -n 's/^note: stopped after step \([0-9]*\), saved.*/\1/p' err)
  [ -n "$step" ] && pass || fail "not saved in the end: $(cat err)"
  # shellcheck disable=SC2086
  one $count --steps "${step:-1}"
  same one.safetensors on.safetensors
done
# One that dies ends all; one that is stuck does as --timeout says.
for which in 1 2 3; do
  train_on 1
  kill -KILL "$(cat $which.pid)"
  wait $job
  got=$?
  [ $got = 137 ] && pass || fail "process $which was killed: exit code $got: $(cat err)"
done
for which in 1 2 3; do
  train_on 1 --timeout 5
  stuck=$(cat $which.pid)
  kill -STOP "$stuck"
  wait $job
  got=$?
  kill -CONT "$stuck" 2>/dev/null
  [ $got = 3 ] && pass || fail "process $which is stuck: exit code $got: $(cat err)"
  task=worker/task:1
  [ $which = 1 ] || task=ps/task:$((which - 2))
  grep -Eq "^(process [0-3]: )?error: /job:$task on .* has not .* for 5 s, and does not answer$" err && pass || fail "$(cat err)"
done
# All of them are stopped for longer than that, as they are with their machine: none is waited for.
train_on 1 --timeout 5
kill -STOP "$(cat 0.pid)" "$(cat 1.pid)" "$(cat 2.pid)" "$(cat 3.pid)"
sleep 8
before=$(stat -c '%i %y' on.safetensors)
kill -CONT "$(cat 0.pid)" "$(cat 1.pid)" "$(cat 2.pid)" "$(cat 3.pid)"
while [ "$(stat -c '%i %y' on.safetensors)" = "$before" ] && kill -0 $job 2>/dev/null; do sleep 0.05; done
kill -TERM "$(cat 0.pid)" 2>/dev/null
wait $job
got=$?
[ $got = 143 ] && pass || fail "stopped for a while: exit code $got: $(cat err)"

# A loss that is no number.
awk 'NR == 500 { print "nan,1,1"; next } { print }' x.csv >nan.csv
# shellcheck disable=SC2086
{
  expect 4 'no number' processes 3 "$dgc" train ${count%% *} --data x=nan.csv --batch 16 --quiet --staleness free --cluster 'worker=2;ps=1' $save --no-shuffle
  shows err 'error: the loss is not a number at step 32: the training ends'
}

# What it is not for.
# refused CODE WHAT TEXT COMMAND...
refused() {
  code=$1 what=$2 text=$3
  shift 3
  expect "$code" "$what" "$@"
  shows err "$text"
}
# shellcheck disable=SC2086
{
  refused 2 'one process' 'error: staleness: free is for tasks that are processes of their own' "$dgc" train $count \
    --cluster 'worker=2;ps=1' --staleness free
  refused 2 'another strategy' 'only strategy parameter_server trains asynchronously: with multi_worker_mirrored workers wait for each other' \
    processes 2 "$dgc" train $count --staleness free
  refused 2 'files of workers' 'auto-shard: with staleness free workers take batches as they come' \
    processes 3 "$dgc" train $count --cluster 'worker=2;ps=1' --staleness free --auto-shard file
  refused 2 'single steps' 'staleness: free is for dgc train over files, not for single steps' "$dgc" bench count.dsl \
    --cluster 'worker=2;ps=1' --staleness free
  sed 's/rows : .*/& aggregation(sum) synchronization(on_read)/' count.dsl >own.dsl
  sed 's/x @ w/x @ doubled/; s/  train/  doubled = w * 2 on "\/job:worker\/task:1"\n&/' count.dsl >other.dsl
  sed 's/worker/ps/' other.dsl >server.dsl
  refused 1 'a variable of a worker' "own.dsl:4:9: error: staleness free: variables are on parameter servers, and rows is on /job:worker/task:0/cpu:0" \
    processes 3 "$dgc" train own.dsl --data x=x.csv --cluster 'worker=2;ps=1' --staleness free
  refused 1 'another worker' 'error: staleness free: /job:worker/task:1/cpu:0 would have to compute ' \
    processes 3 "$dgc" train other.dsl --data x=x.csv --cluster 'worker=2;ps=1' --staleness free
  refused 1 'another server' 'server.dsl:6:13: error: staleness free: a worker would have to wait for others: /job:ps/task:1/cpu:0 has to compute ' \
    processes 4 "$dgc" train server.dsl --data x=x.csv --cluster 'worker=2;ps=2' --staleness free
  refused 2 'no bound' "staleness: expected an integer from 0 to 16384, not 'x'" "$dgc" train $count --staleness free:x
  refused 2 'no number' "staleness: expected an integer from 0 to 16384, not 'freely'" "$dgc" train $count --staleness freely
  for wrong in '"freely"' '"free:"' '"free:99999"' '"2"' true; do
    sed "s/  train/  strategy parameter_server(staleness = $wrong)\n&/" count.dsl >asks.dsl
    refused 1 "staleness = $wrong" 'error: `staleness` of a strategy is an integer' "$dgc" check asks.dsl --cluster 'worker=2;ps=1'
  done
  sed 's/  train/  strategy central_storage(staleness = "free")\n&/' count.dsl >asks.dsl
  refused 1 'another strategy in the model' 'asks.dsl:6:28: error: only strategy parameter_server trains asynchronously: with central_storage' \
    processes 2 "$dgc" train asks.dsl --data x=x.csv
  refused 2 'different bounds' "takes batches as they come, 2 beside another's, and " $bounded \
    mpirun -n 1 "$dgc" train $count --cluster 'worker=1;ps=1' --staleness free:1 \
    : -n 1 "$dgc" train $count --cluster 'worker=1;ps=1' --staleness free:2
}
finish
