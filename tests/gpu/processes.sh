#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
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

  # In no order: one worker has the bits of one process; of several each batch counts once, as whole numbers show.
  free='--cluster worker=1;ps=2 --staleness free'
  expect 0 'one process' "$dgc" train "$samples/digits.dsl" --rows 0:300 --eval-rows 0:64 --batch 64 --epochs 2 --quiet --devices gpu:0 \
    --overwrite --checkpoint one.safetensors
  expect 0 'one worker' processes 3 "$dgc" train "$samples/digits.dsl" --rows 0:300 --eval-rows 0:64 --batch 64 --epochs 2 --quiet \
    --devices gpu:0 $free --overwrite --checkpoint several.safetensors
  same one.safetensors several.safetensors
  count_model 'strategy parameter_server(staleness = "free:2")'
  awk 'BEGIN { for (i = 1; i <= 397; i++) print i "," i * i % 1000 "," 7 * i % 31 - 15 }' >x.csv
  whole="count.dsl --data x=x.csv --batch 16 --epochs 3 --quiet --overwrite"
  expect 0 'whole numbers, one process' "$dgc" train $whole --strategy one_device --checkpoint one.safetensors
  for seed in 1 2; do
    for where in gpu:0 cpu:0; do
      expect 0 "whole numbers, $where" env DGC_SIMULATED_SEED=$seed $bounded mpirun -n 3 "$dgc" train $whole --devices $where \
        --cluster 'worker=2;ps=1' --checkpoint several.safetensors
      same one.safetensors several.safetensors
      shows err 'note: staleness free: 2 workers apply their gradients as they come'
    done
  done

  # Sums that GPUs of several processes make together: no bits are promised, but those of simulated NCCL, which has one
  # order, are those of one process.
  nccl="$digits --cross-device nccl"
  several() { # DEVICES...: one of each task
    task=0 devices=
    for device; do devices=$devices,/job:worker/task:$task/$device task=$((task + 1)); done
    echo "--devices ${devices#,}"
  }
  if [ "$count" -ge 4 ]; then
    for seed in 4 5 6; do
      DGC_SIMULATED_SEED=$seed together 2 $nccl $(several gpu:0 gpu:1)
      empty err
    done
    "$(dirname "$dgc")/tests/gpu/close" hash.safetensors several.safetensors 1e-4 && pass || fail 'not as sums by copies'
    together 4 $nccl $(several gpu:3 gpu:2 gpu:1 gpu:0)
    cmp -s hash.safetensors several.safetensors && fail 'in the order of the tree' || pass
    together 2 $nccl $(several gpu:0,/job:worker/task:0/gpu:1 gpu:2,/job:worker/task:1/gpu:3)
    together 2 "$samples/lenet.dsl" --rows 0:96 --eval-rows 0:32 --batch 32 --towers 3 --steps 3 --quiet --cross-device nccl \
      $(several gpu:0 gpu:1)
  fi
  # A process that has no NCCL: all take another way.
  mkdir without
  for library in "$4"/lib*.so*; do
    case ${library##*/} in libnccl*) ;; *) ln -s "$library" without ;; esac
  done
  echo 'if [ "$OMPI_COMM_WORLD_RANK" = 1 ]; then export DGC_CUDA_PATH=$PWD/without; fi; exec "$@"' >one_without
  expect 0 'one process without NCCL' processes 2 sh one_without "$dgc" train $nccl $tasks --devices gpu:0 \
    --checkpoint copies.safetensors
  shows err 'warning: a process has no NCCL: hierarchical_copy is used'
  same hash.safetensors copies.safetensors
  # Who has the first rank cannot begin: the others are told.
  echo 'if [ "$OMPI_COMM_WORLD_RANK" = 0 ]; then export DGC_SIMULATED_FAIL=ncclGetUniqueId:1; fi; exec "$@"' >no_id
  expect 3 'no id' processes 2 sh no_id "$dgc" train $nccl $tasks --devices gpu:0 --checkpoint none.safetensors
  shows err 'error: ncclGetUniqueId on /job:worker/task:0/gpu:0: unhandled cuda error'
  [ -e none.safetensors ] && fail 'a checkpoint' || pass
  # Evaluation and prediction, by processes of which one has no GPU.
  data="$samples/digits.dsl --eval-rows 0:100 --checkpoint hash.safetensors --batch 32 --devices gpu:0"
  with='--cluster worker=2;ps=1 --strategy parameter_server'
  expect 0 'eval of one' "$dgc" eval $data --json
  cp out one.out
  expect 0 'eval of 3' processes 3 "$dgc" eval $data $with --json
  same_results one.out out
  expect 0 'predict of one' "$dgc" predict $data --towers 2 --output probability=one.npy
  expect 0 'predict of 3' processes 3 "$dgc" predict $data --towers 2 $with --output probability=several.npy
  same one.npy several.npy
}
finish
