#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# --bits portable: one checkpoint whatever processor code is made for, and by the interpreter, which needs none. Without it,
# too, where a model has no bf16.
. "$(dirname "$0")/lib.sh"

# Under sanitizers two steps, the second one of fewer rows.
rows=120 threads=
[ "${TEST_NUMBERS-1}" != 0 ] || rows=60 threads='--threads 2'
mixed=$(dirname "$0")/mixed.dsl
# The interpreter computes in one thread: for a sanitizer of threads, compiled kernels do in its place.
interp='--backend interp'
[ "${TEST_INTERP-}" != off ] || interp=$threads

# train MODEL NAME ARGUMENTS...; bits: empty for what is the default. Of the U-Net a quarter of the rows: the interpreter takes
# ten times what it takes for a LeNet.
bits='--bits portable'
train() {
  model=$1
  name=$2
  share=1
  [ "$model" != unet ] || share=4
  shift 2
  case $model in
  mixed) set -- "$mixed" --data "image=$samples/data/train-images.idx" --data "label=$samples/data/train-labels.idx" "$@" ;;
  *) set -- "$samples/$model.dsl" --eval-rows 0:$((30 / share)) "$@" ;;
  esac
  expect 0 "$model $name" "$dgc" train "$@" --rows 0:$((rows / share)) --batch $((48 / share)) --seed 3 --quiet --overwrite --epochs 1 $bits \
    --checkpoint "$name.safetensors"
}

for model in digits words lenet mixed; do
  train $model interp $interp
  train $model cpu $threads
  same interp.safetensors cpu.safetensors
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

# Without a fused multiply-add products are in order, but of other sums.
if ! grep -qs '^flags' /proc/cpuinfo || grep -qw fma /proc/cpuinfo; then
  bits=
  for model in digits words lenet unet; do
    train $model default --towers 3
    bits='--bits portable' train $model interp $interp --towers 3
    same interp.safetensors default.safetensors
  done
  bits='--bits portable'
fi

train mixed interp $interp --towers 3
train mixed cpu --towers 3
same interp.safetensors cpu.safetensors

expect 2 "neither" "$dgc" bench "$samples/linear.dsl" --bits some
shows err "bits: expected fast or portable, not 'some'"
DGC_CPU=vax expect 3 "another processor" "$dgc" bench "$samples/linear.dsl" --steps 1
shows err "this machine cannot compute as DGC_CPU=vax"
finish
