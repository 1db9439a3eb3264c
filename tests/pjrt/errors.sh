#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A plugin that fails in all ways that matter, and one that is not there: a line that says what, and the exit code.
# errors.sh DGC SAMPLES SOURCE PLUGIN
plugin=$4
. "$(dirname "$0")/../run/lib.sh"
unset DGC_PJRT_PLUGIN

# All that the plugin gave has come back; what else is there are steps.
returned() { if grep 'did not come back' err; then fail "objects: $what"; else pass; fi; }

# fails HOW TEXT COMMAND...: exit code 3, and one line of an error that has the text.
fails() {
  how=$1
  text=$2
  shift 2
  expect 3 "$how" env DGC_SIMULATED_PJRT="$how" timeout 60 "$dgc" "$@" --pjrt-plugin "$plugin"
  shows err "$text"
  if [ "$(grep -c '^error' err)" = 1 ]; then pass; else fail "$how: more than one error"; fi
  what=$how
  returned
}
train="train $samples/digits.dsl --steps 6 --devices"

for devices in pjrt:0 pjrt:0-3 pjrt:2,pjrt:1; do
  expect 0 "a run on $devices" "$dgc" $train $devices --pjrt-plugin "$plugin" --checkpoint v.safetensors --overwrite
  what=$devices
  returned
  shows out 'loss 0'
done
# Nothing is computed: the variables are as they were first.
expect 0 'first values' "$dgc" $train cpu:0 --steps 0 --checkpoint w.safetensors
variables() { "$dgc" inspect "$1" | grep -v -e step -e '^format' | grep kernel; }
if [ "$(variables v.safetensors)" = "$(variables w.safetensors)" ]; then pass; else fail 'the variables have changed'; fi
# The last batch of the data, which three towers do not divide, is the first device's; what it leaves is taken back.
expect 0 'a last batch' "$dgc" train "$samples/digits.dsl" --rows 0:100 --batch 30 --epochs 2 --devices pjrt:0-2 \
  --pjrt-plugin "$plugin"
what='a last batch'
returned

# An option that the plugin does not know is left out.
expect 0 'an unknown option' env DGC_SIMULATED_PJRT=option "$dgc" $train pjrt:0-3 --pjrt-plugin "$plugin"
what='an unknown option'
returned

# A program that was compiled is kept: what cannot compile runs it, but from a file that is damaged, or that it does not take.
own="env XDG_CACHE_HOME=$work/cache DGC_SIMULATED_PJRT"
expect 0 'compiled' $own= "$dgc" $train pjrt:0-1 --pjrt-plugin "$plugin"
for how in compile stale forgetful; do
  [ $how != forgetful ] || rm cache/dgc/*
  expect 0 "kept: $how" $own=$how "$dgc" $train pjrt:0-1 --pjrt-plugin "$plugin"
  what="kept: $how"
  returned
done
for variable in XLA_FLAGS=--xla_other LIBTPU_INIT_ARGS=--other; do
  expect 0 'kept for this' $own= "$dgc" $train pjrt:0-1 --pjrt-plugin "$plugin"
  expect 3 "not kept for $variable" $own=compile $variable "$dgc" $train pjrt:0-1 --pjrt-plugin "$plugin"
  returned
done
rm cache/dgc/*
expect 3 'not kept' $own=compile "$dgc" $train pjrt:0-1 --pjrt-plugin "$plugin"
returned
expect 0 'compiled again' $own= "$dgc" $train pjrt:0-1 --pjrt-plugin "$plugin"
for file in cache/dgc/*; do printf x >>"$file"; done
expect 3 'damaged' $own=compile "$dgc" $train pjrt:0-1 --pjrt-plugin "$plugin"
returned
DGC_CACHE=off
export DGC_CACHE

fails major 'version 1.90, and dgc knows version 0' $train pjrt:0
fails short 'its table of calls has no PJRT_' $train pjrt:0
fails start 'no device is attached to this machine' $train pjrt:0
fails compile 'the module is not understood' $train pjrt:0-3
fails memory 'on /pjrt:0: RESOURCE_EXHAUSTED: there is no room for a buffer' $train pjrt:0
fails execute 'on /pjrt:0: INTERNAL: a core has stopped' $train pjrt:0-1
fails lost 'UNAVAILABLE: the device is lost' $train pjrt:0-3
fails slow 'did not end within 1 s: /pjrt:0 has not answered' $train pjrt:0 --timeout 1

expect 3 'no plugin' "$dgc" $train pjrt:0
shows err 'pjrt devices are those of a PJRT plugin, and none is named'
expect 3 'no file' "$dgc" $train pjrt:0 --pjrt-plugin ./nowhere.so
shows err 'nowhere.so cannot be loaded'
expect 3 'no plugin at all' "$dgc" $train pjrt:0 --pjrt-plugin "$source/README.md"
shows err 'cannot be loaded'
expect 3 'too few devices' "$dgc" $train pjrt:3-4 --pjrt-plugin "$plugin"
shows err '/pjrt:4 is not there'
expect 3 'a TPU that is not there' env DGC_SIMULATED_PJRT=start "$dgc" $train tpu:0 --pjrt-plugin "$plugin"
shows err 'does not start: no device is attached to this machine'
# What is asked for and has no form is wrong usage.
refused() {
  text=$1
  shift
  expect 2 "refused: $*" "$dgc" $train "$@" --pjrt-plugin "$plugin"
  shows err "$text"
}
refused 'run with no others' cpu:0,pjrt:0
refused 'strategy central_storage has no form' pjrt:0-1 --strategy central_storage
refused 'cannot be told ring' pjrt:0-1 --cross-device ring
refused 'cannot be predicted' pjrt:0-1 --strategy auto
refused 'a batch of 125 rows cannot be shared evenly by 2 towers' pjrt:0-1 --batch 125
refused '3 towers cannot be shared evenly by 2 devices' pjrt:0-1 --towers 3 --batch 126
refused 'is for the devices of a PJRT plugin' cpu:0 --strategy tpu
refused 'are run by one process alone' pjrt:0-1 --cluster worker=2 --strategy multi_worker_mirrored
shows err 'without a cluster multi_worker_mirrored is over all devices'
# One process's devices are all that it spans, and the program is that of tpu.
for strategy in tpu mirrored multi_worker_mirrored; do
  expect 0 "strategy $strategy" "$dgc" compile "$samples/digits.dsl" --devices pjrt:0-1 --strategy $strategy --emit module \
    --pjrt-plugin "$plugin" -o $strategy.mlir
  same tpu.mlir $strategy.mlir
done
# A model asks for the strategy itself.
printf '%s\n' 'model own {' '  input x : f32[B, 4]' '  var w : f32[4] = ones()' '  strategy tpu(towers = 4)' \
  '  train mean(x * w) with sgd(rate = 0.1)' '  predict y = sum(x, axis = 1) + 1000 * cast(tower_id(), f32)' '}' >own.dsl
expect 0 'a strategy clause' "$dgc" compile own.dsl --batch 8 --devices pjrt:0-1 --emit module --pjrt-plugin "$plugin"
shows out 'tensor<4x4xf32> {dgc.role = "input", dgc.name = "x"}'
expect 0 'numbers of towers' "$dgc" compile own.dsl --batch 8 --entry predict --devices pjrt:0-1 --emit module \
  --pjrt-plugin "$plugin"
shows out replica_id
expect 2 'a strategy clause on CPUs' "$dgc" compile own.dsl --batch 8 --devices cpu:0-1 --emit module
shows err 'own.dsl:4:12: note: the model asks for its strategy here'

expect 0 devices "$dgc" devices --pjrt-plugin "$plugin"
shows out '/pjrt:3: simulated core, platform simulated'
expect 0 memory "$dgc" compile "$samples/digits.dsl" --devices pjrt:0-3 --emit memory --pjrt-plugin "$plugin"
shows out 'memory of digits.train on each of 4 devices'
expect 0 bench "$dgc" bench "$samples/digits.dsl" --devices pjrt:0-3 --steps 2 --pjrt-plugin "$plugin"
shows out '4 towers on 4 devices'
finish
