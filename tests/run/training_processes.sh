#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What a training of several processes tells, evaluates and keeps is what one process does.
. "$(dirname "$0")/lib.sh"
. "$source/tests/run/mpi.sh"

train="$samples/digits.dsl --set hidden=16 --rows 0:640 --eval-rows 0:200 --batch 64 --set rate=0.02 --eval-every 4 --patience 2 --epochs 40 \
  --overwrite --quiet --train-metrics --metric-to-watch val.accuracy:max --dump-batch 6"
# shellcheck disable=SC2086
{
  expect 0 'one process' "$dgc" train $train --cluster worker=2 --checkpoint one.safetensors --keep-best one.best --log one.jsonl
  cp err one.err
  mv batch-6.npz one.npz
  for tasks in 'worker=2' 'worker=2;ps=1'; do
    n=2
    [ "$tasks" = worker=2 ] || n=3
    expect 0 "$tasks" processes $n "$dgc" train $train --cluster "$tasks" --checkpoint several.safetensors --keep-best several.best \
      --log several.jsonl --log-dir events --receipt several.json
    same one.safetensors several.safetensors
    same one.best several.best
    same one.npz batch-6.npz
    shows err 'note: stopped early after step '
    for log in one several; do sed 's/"examples_per_second".*//; /"run"/d' $log.jsonl >$log.lines; done
    same one.lines several.lines
  done
}
[ "$(ls events | wc -l)" = 2 ] && pass || fail "event files: $(ls events)"
expect 0 'done again by one process' "$dgc" verify --receipt several.json
shows out 'equal to the bit'
finish
