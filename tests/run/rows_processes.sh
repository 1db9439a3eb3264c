#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Rows of inputs that a task reads of others' towers: ids and rows that tables on servers or copies are changed by, looked at in
# other shapes, read by several nodes, and where no tower computes with them. Processes have the bits of one.
. "$(dirname "$0")/lib.sh"
. "$source/tests/run/mpi.sh"
printf '%s\n' 1,2,3 0,1,1 4,4,0 2,3,1 1,0,0 3,3,3 0,4,2 >id.csv
printf '%s\n' 1,2,3 0,1,1.5 4,-4,0 2,3,1 1,5,0 0.5,2,2 -1,0,3 >x.csv
cat >held.dsl <<'END_OF_MODEL'
model held {
  input id : i32[B, 3]
  input x : f32[B, 3]
  var w : f32[3] = ones()
  train sum(square(segment_sum(x, id[:, 0], 5) * w)) with sgd(0.01)
}
END_OF_MODEL
cat >shapes.dsl <<'END_OF_MODEL'
use nn
model shapes {
  input id : i32[B, 3]
  input x : f32[B, 3]
  var t : f32[5, 3] = uniform()
  e = nn.embedding(reshape(id, [B, 3, 1]), 5, 2)
  s = segment_sum(reshape(x, [B * 3]), reshape(id, [B * 3]), 5)
  train sum(square(expand(s, 1) * t)) + mean(square(e - 1)) + t[0, 0] * mean(x) with sgd(0.01)
}
END_OF_MODEL
# same_bits PROCESSES OPTIONS...
same_bits() {
  n=$1
  shift
  for model in held shapes; do
    train="train $model.dsl --data id=id.csv --data x=x.csv --batch 5 --epochs 2 --seed 3 --quiet --overwrite $*"
    expect 0 "$model, one process: $*" "$dgc" $train --checkpoint one.safetensors
    expect 0 "$model, $n processes: $*" processes "$n" "$dgc" $train --checkpoint several.safetensors
    same one.safetensors several.safetensors
  done
}
same_bits 2 --cluster worker=2 --strategy multi_worker_mirrored
same_bits 3 --cluster worker=3 --strategy multi_worker_mirrored --towers 6
same_bits 3 --cluster 'worker=2;ps=1' --strategy parameter_server
same_bits 4 --cluster 'worker=2;ps=2' --strategy parameter_server --min-part-bytes 8
same_bits 3 --cluster 'worker=2;ps=1' --strategy parameter_server --staleness 0
same_bits 4 --cluster 'worker=3;ps=1' --strategy parameter_server --staleness 1
finish
