#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# --bits portable: one checkpoint whatever processor code is made for, and by the interpreter, which needs none.
. "$(dirname "$0")/lib.sh"

# Under sanitizers two steps, the second one of fewer rows; convolutions, which no generated code computes in this order,
# for this processor alone: what is done for another is the same.
rows=120 threads=
[ "${TEST_NUMBERS-1}" != 0 ] || rows=60 threads='--threads 2'

# train MODEL NAME ARGUMENTS...
train() {
  model=$1
  name=$2
  shift 2
  expect 0 "$model $name" "$dgc" train "$samples/$model.dsl" --rows 0:$rows --eval-rows 0:30 --batch 48 --seed 3 --quiet \
    --overwrite --epochs 1 --bits portable --checkpoint "$name.safetensors" "$@"
}

for model in digits words lenet; do
  train $model interp --backend interp
  train $model cpu $threads
  same interp.safetensors cpu.safetensors
  [ "$model $rows" != 'lenet 60' ] || continue
  for processor in haswell skylake-avx512 nehalem; do
    if DGC_CPU=$processor "$dgc" bench "$samples/linear.dsl" --steps 1 >/dev/null 2>err || ! grep -q 'DGC_CPU' err; then
      DGC_CPU=$processor train $model $processor --threads 2
      same interp.safetensors $processor.safetensors
    else
      echo "SKIP: no $processor here"
      skipped=$((skipped + 1))
    fi
  done
done

expect 2 "neither" "$dgc" bench "$samples/linear.dsl" --bits some
shows err "bits: fast or portable, not 'some'"
DGC_CPU=vax expect 3 "another processor" "$dgc" bench "$samples/linear.dsl" --steps 1
shows err "this machine cannot compute as DGC_CPU=vax"
finish
