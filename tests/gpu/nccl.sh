#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Sums by NCCL: samples on 2, 4 and 8 GPUs end as on the CPU, within rounding. On simulated GPUs, whose NCCL has one
# order, also: the same bits whatever happens when, and each entry point that fails is named and leaves nothing behind.
# Where NCCL cannot be used one line says so, and the sums travel by hierarchical_copy, to the bit.
. "$(dirname "$0")/lib.sh"
gpus
if [ "$count" -lt 2 ]; then
  echo "SKIP: NCCL needs two GPUs"
  exit 77
fi

awk 'BEGIN { srand(7); for (i = 0; i < 128; i++) {
  a = rand(); b = rand(); c = rand(); d = rand()
  printf "%.6f,%.6f,%.6f,%.6f\n", a, b, c, d >"x.csv"; printf "%.6f\n", a - 2 * b + 3 * c + 0.5 >"y.csv" } }'
images=$samples/data/train-images.idx

# run ARGUMENTS...: a few steps of `model`, all in one epoch.
run() {
  $bounded "$dgc" train "$models/$model.dsl" $arguments $rows --steps 3 --seed $first_values \
    --no-shuffle --quiet --overwrite "$@"
}
# train FILE ARGUMENTS...
train() {
  file=$1
  shift
  expect 0 "$model: $*" run --checkpoint "$file" "$@"
}
# near FILE TOLERANCE WHAT
near() {
  if "$(dirname "$dgc")/tests/gpu/close" cpu.safetensors "$1" "$2" $except; then pass; else
    fail "$model, $3: not as the CPU"
  fi
}
# compare MODEL TOLERANCE ARGUMENTS...: see samples.sh for the tolerances.
compare() {
  model=$1
  tolerance=$2
  shift 2
  arguments=$*
  for n in 2 4 8; do
    if [ "$n" -gt "$count" ]; then continue; fi
    for towers in $n $((n + 1)); do
      train cpu.safetensors --devices cpu:0 --towers $towers
      train gpu.safetensors --devices gpu:0-$((n - 1)) --towers $towers --cross-device nccl --verify-each
      empty err
      near gpu.safetensors "$tolerance" "$n GPUs, $towers towers"
    done
  done
}
except=
first_values=5
models=$samples
rows="--rows 0:96 --eval-rows 96:128 --batch 32"
compare linear 1e-5 --data x=x.csv --data y=y.csv
compare digits 1e-4 --set hidden=32
small words
rows="--rows 0:96 --eval-rows 0:32 --batch 32" # of its test data, of which there are 60
compare words 1e-5 --data "$samples"
rows="--rows 0:96 --eval-rows 96:128 --batch 32"
models=$samples
compare digits 1e-4 --set hidden=32 --packs 2
# A normalisation, whose statistics are sums over all towers in the forward pass; for h2.x see samples.sh.
except=h2.dense.bias
rows="--rows 0:36 --eval-rows 36:48 --batch 12"
small lenet
first_values=1 # by 5 the third step meets a kink: from the GPUs' state behind the second one a CPU goes where they go
compare lenet 1e-3 --data "$samples"
first_values=5
models=$samples
rows="--rows 0:96 --eval-rows 96:128 --batch 32"
except=
model=digits
arguments="--set hidden=32"

# Not two devices on one card, and no CPU.
for devices in gpu:0/0,gpu:0/1 cpu:0-1 cpu:0,gpu:0; do
  train copies.safetensors --devices $devices --cross-device hierarchical_copy
  train gpu.safetensors --devices $devices --cross-device nccl
  same copies.safetensors gpu.safetensors
  shows err ': hierarchical_copy is used'
  if [ "$(wc -l <err)" = 1 ]; then pass; else fail "more than a line: $(cat err)"; fi
done
# Nothing travels.
train gpu.safetensors --devices gpu:0 --towers 2 --cross-device nccl
empty err
if [ -z "$4" ]; then finish; fi

# Whatever runs when, and where GPUs do not reach each other's memory.
train first.safetensors --devices gpu:0-3 --cross-device nccl
for seed in 2 3 4 5; do
  export DGC_SIMULATED_SEED=$seed DGC_SIMULATED_PEER=$((seed % 2))
  train gpu.safetensors --devices gpu:0-3 --cross-device nccl
  same first.safetensors gpu.safetensors
done
unset DGC_SIMULATED_SEED DGC_SIMULATED_PEER
DGC_SIMULATED_DELAY=0 train gpu.safetensors --devices gpu:0-3 --cross-device nccl --timeout 60
same first.safetensors gpu.safetensors

# No library, and one that is too old.
train copies.safetensors --devices gpu:0-1 --cross-device hierarchical_copy
mkdir without
for library in "$4"/lib*.so*; do
  case ${library##*/} in libnccl*) ;; *) ln -s "$library" without ;; esac
done
DGC_CUDA_PATH=$PWD/without train gpu.safetensors --devices gpu:0-1 --cross-device nccl
same copies.safetensors gpu.safetensors
shows err 'warning: no NCCL: libnccl.so.2 cannot be loaded ('
shows err ': hierarchical_copy is used'
DGC_SIMULATED_NCCL=2.12 train gpu.safetensors --devices gpu:0-1 --cross-device nccl
same copies.safetensors gpu.safetensors
shows err 'warning: NCCL is too old: it is 2.12, and dgc needs 2.13 or newer: hierarchical_copy is used'

# Each entry point fails at its first, second, middle and last call. A run with sums of NCCL is not recorded.
rm -f counts
DGC_SIMULATED_COUNT=$PWD/counts train gpu.safetensors --devices gpu:0-3 --cross-device nccl
grep '^nccl' counts >list
grep -E '^cu(StreamBeginCapture|GraphLaunch)' counts >graphs
empty graphs
echo old >old
while read -r name calls; do
  for nth in $(printf '%s\n' 1 2 $(((calls + 1) / 2)) "$calls" | sort -nu); do
    if [ "$nth" -gt "$calls" ]; then continue; fi
    cp old w.safetensors
    what="$name:$nth"
    DGC_SIMULATED_FAIL=$what run --devices gpu:0-3 --cross-device nccl --checkpoint w.safetensors >out 2>err
    got=$?
    case $name,$got in
      ncclCommDestroy,0) # all has been said
        empty err
        same first.safetensors w.safetensors ;;
      ncclGetVersion,0) # another way
        shows err 'hierarchical_copy is used' ;;
      *,3)
        shows err "error: $name on /gpu:"
        shows err 'unhandled cuda error'
        if [ "$(wc -l <err)" = 1 ]; then pass; else fail "$what: more than a line: $(cat err)"; fi
        same old w.safetensors
        ;;
      *) fail "$what: exit code $got: $(cat err)" ;;
    esac
  done
done <list
if [ "$(wc -l <list)" = 6 ]; then pass; else fail "not all entry points were called: $(cat list)"; fi
finish
