#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The same bits for a tower count, whatever GPUs carry the towers: several, one, or parts of one; and in every run.
# shellcheck disable=SC2086
. "$(dirname "$0")/lib.sh"
gpus
# Few units and letters: bits are compared, and a simulated GPU takes long for many.
digits="$samples/digits.dsl --set hidden=64"
small words
words="$models/words.dsl --data $samples"

# train NAME MODEL ARGUMENTS...
train() {
  name=$1 model=$2
  shift 2
  expect 0 "train $name" "$dgc" train $model --rows 0:180 --eval-rows 0:50 --batch 48 --seed 7 --quiet \
    --epochs 1 --overwrite --checkpoint "$name.safetensors" "$@"
  mv out "$name.out"
}

lists="gpu:0/0,gpu:0/1 gpu:0/0,gpu:0/1,gpu:0/2,gpu:0/3"
if [ "$count" -ge 2 ]; then lists="$lists gpu:0-1 gpu:0/0,gpu:0/1,gpu:1"; fi
if [ "$count" -ge 4 ]; then lists="$lists gpu:0-2 gpu:0-3"; fi
if [ "$count" -ge 8 ]; then lists="$lists gpu:0-7"; fi
for which in digits words; do
  eval "model=\$$which"
  train $which-base "$model" --towers 4 --devices gpu:0
  train $which-again "$model" --towers 4 --devices gpu:0
  same $which-base.safetensors $which-again.safetensors
  for devices in $lists; do
    name=$which-$(echo "$devices" | tr '/:,' '...')
    train "$name" "$model" --towers 4 --devices "$devices"
    same $which-base.safetensors "$name.safetensors"
    same $which-base.out "$name.out"
  done
done

# Whatever runs when; where GPUs do not reach each other's memory; and without graphs.
if [ -n "$4" ]; then
  for seed in 2 3 4; do
    for peer in 0 1; do
      export DGC_SIMULATED_SEED=$seed DGC_SIMULATED_PEER=$peer
      train "drawn-$seed-$peer" "$digits" --towers 4 --devices gpu:0-3
      same digits-base.safetensors "drawn-$seed-$peer.safetensors"
    done
    export DGC_SIMULATED_FAIL=cuStreamBeginCapture:1
    train "calls-$seed" "$digits" --towers 4 --devices gpu:0-1
    same digits-base.safetensors "calls-$seed.safetensors"
    unset DGC_SIMULATED_FAIL
  done
  unset DGC_SIMULATED_SEED DGC_SIMULATED_PEER
fi

# What training prints is read while the next batches run.
losses() {
  "$dgc" train $digits --rows 0:200 --eval-rows 0:24 --batch 16 --seed 7 --epochs 3 --towers 4 "$@" 2>&1 |
    sed -n 's/^\(epoch.*loss [^ ]*\).*/\1/p'
}
losses --devices gpu:0 >losses
if [ "$(wc -l <losses)" = 3 ]; then pass; else fail "losses: $(cat losses)"; fi
for devices in gpu:0 gpu:0/0,gpu:0/1 gpu:0-$(((count > 4 ? 4 : count) - 1)); do
  DGC_SIMULATED_SEED=2 losses --devices "$devices" >other
  same losses other
done

# In two parts, on other devices, the first ending inside of an epoch.
expect 0 'first part' "$dgc" train $digits --rows 0:180 --eval-rows 0:50 --batch 48 --seed 7 --quiet --steps 3 \
  --towers 4 --devices gpu:0/0,gpu:0/1 --checkpoint part.safetensors
expect 0 'second part' "$dgc" train $digits --rows 0:180 --eval-rows 0:50 --quiet --epochs 1 --devices gpu:0 \
  --resume=part.safetensors --checkpoint part.safetensors
same digits-base.safetensors part.safetensors

# A loss that is no number ends the training, and what had been saved before stays.
for devices in gpu:0 gpu:0/0,gpu:0/1; do
  rm -f w.safetensors
  expect 4 "a rate that is too high, $devices" "$dgc" train $digits --rows 0:180 --batch 48 --set rate=1e38 \
    --devices $devices --checkpoint w.safetensors --checkpoint-every 1
  shows err 'at step 2: the training ends'
  shows err 'help: w.safetensors holds step 1'
  expect 0 inspect "$dgc" inspect w.safetensors
  shows out '# step: 1'
done

# Evaluation and prediction do not depend on devices either; the last batch of the rows is short.
ask="--checkpoint digits-base.safetensors --eval-rows 0:330"
expect 0 eval "$dgc" eval $digits $ask --devices gpu:0 --json
cp out eval.json
expect 0 'eval on parts' "$dgc" eval $digits $ask --json --devices gpu:0/0,gpu:0/1
same_results eval.json out
expect 0 predict "$dgc" predict $digits $ask --devices gpu:0 --output probability=p.npy
expect 0 'predict on parts' "$dgc" predict $digits $ask --devices gpu:0/0,gpu:0/1 --output probability=q.npy
same p.npy q.npy
finish
