#!/bin/sh
# Tasks with GPUs as processes: whatever runs the towers, the bits are those of one process, as often as it is tried.
. "$(dirname "$0")/lib.sh"
gpus
. "$source/tests/run/mpi.sh"
digits="$samples/digits.dsl --rows 0:512 --eval-rows 0:64 --batch 64 --towers 4 --steps 4 --verify-each --quiet"
tasks='--cluster worker=2'

# shellcheck disable=SC2086
{
  for seed in 1 2 3; do
    DGC_SIMULATED_SEED=$seed together 2 $digits $tasks --devices gpu:0
  done
  cp several.safetensors hash.safetensors
  together 3 $digits --cluster 'worker=2;ps=1' --strategy central_storage --devices gpu:0
  together 3 $digits --cluster 'worker=2;ps=1' --strategy parameter_server --staleness 1 --devices gpu:0
  if [ "$count" -ge 2 ]; then
    together 2 $digits $tasks --devices gpu:0-1
    same hash.safetensors several.safetensors
    together 2 $digits $tasks --devices gpu:0-1 --cross-device ring
  fi
  together 2 "$samples/words.dsl" $tasks --batch 32 --towers 4 --steps 3 --quiet --devices gpu:0

  # NCCL is for the GPUs of one process: it says what is used instead.
  expect 0 'sums by NCCL' processes 2 "$dgc" train $digits --devices gpu:0 --cross-device nccl --checkpoint nccl.safetensors
  shows err "warning: NCCL makes sums of one process's GPUs only, so far: hierarchical_copy is used"
  same hash.safetensors nccl.safetensors

  # Evaluation and prediction, by processes of which one has no GPU.
  data="$samples/digits.dsl --eval-rows 0:100 --checkpoint hash.safetensors --batch 32 --devices gpu:0"
  with='--cluster worker=2;ps=1 --strategy parameter_server'
  expect 0 'eval of one' "$dgc" eval $data --json
  cp out one.out
  expect 0 'eval of 3' processes 3 "$dgc" eval $data $with --json
  same one.out out
  expect 0 'predict of one' "$dgc" predict $data --towers 2 --output probability=one.npy
  expect 0 'predict of 3' processes 3 "$dgc" predict $data --towers 2 $with --output probability=several.npy
  same one.npy several.npy
}
finish
