#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What the workers of a cluster train on: several files per input, and the policies of --auto-shard. The model writes the
# sums of its batches one behind the other into a number, two digits each.
. "$(dirname "$0")/lib.sh"

cat >log.dsl <<'END'
model log() {
  input x : f32[B]
  var w : f32[] = 0
  state sums : f32[] = 0
  sums <- sums * 100 + sum(x)
  train mean(square(x - w)) with sgd(rate = 0.0)
  predict log = x * 0 + sums
  data train {
    x = ["one.csv:1", "two.csv:1"]
  }
}
END
printf '1\n2\n' >one.csv
printf '3\n4\n' >two.csv
printf '1\n2\n3\n4\n' >all.csv
echo 0 >zero.csv

# logs SUMS OPTION...: what training with these options adds up.
logs() {
  sums=$1
  shift
  expect 0 "train $*" "$dgc" train log.dsl --no-shuffle --batch 2 --checkpoint log.safetensors --overwrite \
    --quiet "$@"
  empty err
  expect 0 "predict after $*" "$dgc" predict log.dsl --data x=zero.csv:1 --checkpoint log.safetensors --quiet
  if [ "$(tail -n 1 out)" = "$sums" ]; then pass; else fail "$*: $(tail -n 1 out), not $sums"; fi
}

workers='--cluster=worker=2'
for cluster in "$workers" '--cluster=worker=2;ps=1'; do
  logs 307.0 "$cluster"
  logs 307.0 "$cluster" --auto-shard data
  logs 406.0 "$cluster" --auto-shard file
  logs 406.0 "$cluster" --auto-shard auto
  logs 2040608.0 "$cluster" --auto-shard off
  logs 307.0 "$cluster" --auto-shard auto --data x=all.csv:1
  logs 307.0 "$cluster" --auto-shard auto --data x=one.csv:1,two.csv:1 --rows :4 --towers 1
done
for how in auto file data off; do logs 307.0 --auto-shard $how --data x=one.csv:1,two.csv:1; done
logs 307.0 --auto-shard file --devices cpu:0-1

expect 1 'more workers than files' "$dgc" train log.dsl --cluster worker=3 --batch 3 --auto-shard file
shows err 'each of 3 workers needs a file of its own, and x has its rows in 2 files'
shows err '--auto-shard data'
expect 1 'workers with different numbers of rows' "$dgc" train log.dsl $workers --batch 3 --auto-shard off
shows err 'of a batch of 3 worker 0 has 2 and worker 1 1'
expect 2 'no such policy' "$dgc" train log.dsl --auto-shard some
shows err "expected data, file, auto or off, not 'some'"
expect 1 'a missing file' "$dgc" train log.dsl --data x=one.csv:1,gone.csv:1
shows err gone.csv
cp all.csv one,two.csv
logs 307.0 --data x=one,two.csv:1

cat >wrong.dsl <<'END'
model log() {
  input x : f32[B]
  data train {
    x = ["one.csv", 2]
  }
}
END
expect 1 'a list of other things' "$dgc" check wrong.dsl
shows err 'a data file must be a string or a list of strings'
finish
