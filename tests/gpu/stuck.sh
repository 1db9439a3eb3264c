#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A simulated GPU that stops answering: --timeout ends the run within seconds, with exit code 3 and a line that names who
# waits and who has not answered, whatever the tool was doing then. What was not saved before is not there.
. "$(dirname "$0")/lib.sh"
gpus
export DGC_SIMULATED_DEVICES=2
unset DGC_SIMULATED_LEAKS # what the device may still work with is not freed
patient=600 # for what is not stuck: it ends long before
limit=$patient

train() {
  rm -f w.safetensors*
  $bounded "$dgc" train "$samples/digits.dsl" --rows 0:128 --eval-rows 0:32 --batch 32 --steps 4 --quiet \
    --set hidden=32 --timeout $limit --checkpoint w.safetensors "$@"
}
nothing_left() { if ls "$@" >files 2>/dev/null; then fail "left behind: $(cat files)"; else pass; fi; }
# names DEVICE: the line in ./err says that this GPU has not answered within the limit, and $also.
also=
names() {
  grep -qF -- "$also" err || return 1
  name='step [0-9]* of [0-9]* ([^ ]*\(, tower [0-9]\)\{0,1\})'
  late="^error: the step did not end within $limit s:"
  grep -q "$late /[cg]pu:[01] waits at $name for \(signal [0-9]* of \)\{0,1\}/gpu:$1, which stands at \($name\|its end\)$" err ||
    grep -q "$late /gpu:$1 has not answered; it stands at \($name\|its end\)$" err ||
    grep -q "^error: waiting for copies on .*: no answer within $limit s.*/gpu:$1\|^error: waiting for copies on /gpu:$1: no answer within $limit s" err
}
# stuck DEVICE NTH WHAT COMMAND...: its NTH piece of work never ends. On a machine that is busy, another device may be
# late too when the limit is over; then a longer one tells them apart.
stuck() {
  device=$1
  what="GPU $1 stuck at $2: $3"
  export DGC_SIMULATED_STUCK=$1:$2
  shift 3
  for limit in 1 4 16; do
    "$@" >out 2>err </dev/null
    got=$?
    if [ $got = 3 ] && names "$device"; then break; fi
  done
  unset DGC_SIMULATED_STUCK
  if [ $got = 3 ]; then pass; else fail "$what: exit code $got, not 3"; fi
  if names "$device"; then pass; else fail "$what: $(cat err)"; fi
  limit=$patient
  empty out
  if [ "$(wc -l <err)" = 1 ]; then pass; else fail "more than a line: $(cat err)"; fi
}

# The code is there, so that no time goes by with compiling.
expect 0 'nothing is stuck' train --devices gpu:0-1
cp w.safetensors good.safetensors
for nth in 1 20 33 71; do
  for device in 0 1; do
    stuck $device $nth train train --devices gpu:0-1
    nothing_left w.safetensors*
  done
done
for strategy in round_robin central_storage; do
  expect 0 $strategy train --devices gpu:0-1 --strategy $strategy
  stuck 1 60 $strategy train --devices gpu:0-1 --strategy $strategy
done
# At a sum of NCCL the device that has not come there is named.
expect 0 'sums by NCCL' train --devices gpu:0-1 --cross-device nccl
for nth in 24 33; do
  for device in 0 1; do stuck $device $nth 'sums by NCCL' train --devices gpu:0-1 --cross-device nccl; done
done
also='(gradient_aggregating/logits.bias/replica_1) for /gpu:0, which stands at'
stuck 0 60 'sums by NCCL' train --devices gpu:0-1 --cross-device nccl
also=
nothing_left w.safetensors*
expect 0 'with a CPU' train --devices cpu:0,gpu:0
stuck 0 50 'with a CPU' train --devices cpu:0,gpu:0
nothing_left w.safetensors*

# What had been saved is whole.
stuck 1 120 'after a checkpoint' train --devices gpu:0-1 --checkpoint-every 1
nothing_left w.safetensors?*
expect 0 'the last checkpoint' "$dgc" eval "$samples/digits.dsl" --set hidden=32 --checkpoint w.safetensors
predict() {
  $bounded "$dgc" predict "$samples/digits.dsl" --set hidden=32 --checkpoint good.safetensors --eval-rows 0:64 --quiet \
    --batch 32 --timeout $limit --output probability=p.npy --devices gpu:0-1
}
expect 0 predict predict
rm p.npy
stuck 1 25 predict predict
nothing_left p.npy*
bench() {
  $bounded "$dgc" bench "$samples/digits.dsl" --set hidden=32 --batch 32 --timeout $limit --devices gpu:0-1 --steps 5
}
expect 0 bench bench
stuck 0 150 bench bench
finish
