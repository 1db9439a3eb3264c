#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Who reads: with --auto-shard file a process opens its own files only, so the others' need not be there, and the bits are
# those of one process that has all of them.
. "$(dirname "$0")/lib.sh"
. "$source/tests/run/mpi.sh"

cat >rows.dsl <<'END'
model rows() {
  input x : f32[B]
  input n : i32[B]
  var w : f32[] = 0
  state seen : f32[] = 0
  seen <- seen * 1.5 + sum(x * x)
  train mean(square(x - w) * cast(n, f32)) with adam(rate = 0.01)
  predict y = x * 0 + w
}
END
# file NUMBER ROWS: x.NUMBER.csv with that many rows.
file() { awk -v n="$1" -v rows="$2" 'BEGIN { for (i = 0; i < rows; i++) print n + i / 8 "," (n * 7 + i) % 100 }' >"x.$1.csv"; }
for i in 0 1 2 3; do file $i 24; done
files='--data x=x.0.csv:1,x.1.csv:1,x.2.csv:1,x.3.csv:1 --data n=x.0.csv:2,x.1.csv:2,x.2.csv:2,x.3.csv:2'
train="train $PWD/rows.dsl $files --batch 8 --towers 4 --epochs 3 --quiet --checkpoint c.safetensors --overwrite"

# scattered N WORKERS: folders in which each process has its own files and nothing else; then all of them train there.
scattered() {
  n=$1 workers=$2
  shift 2
  rm -rf part.*
  for i in $(seq 0 $((n - 1))); do
    mkdir "part.$i"
    for k in 0 1 2 3; do [ $((k % workers)) = "$i" ] && cp "x.$k.csv" "part.$i/"; done
  done
  # shellcheck disable=SC2016
  $bounded mpirun -n "$n" sh -c 'cd "part.$OMPI_COMM_WORLD_RANK" && exec "$0" "$@"' "$dgc" "$@"
}
# shellcheck disable=SC2086
for how in file auto; do
  expect 0 "one process, 2 workers, $how" "$dgc" $train --cluster worker=2 --auto-shard $how
  cp c.safetensors two.safetensors
  expect 0 "2 processes, $how" scattered 2 2 $train --auto-shard $how
  same two.safetensors part.0/c.safetensors
  expect 0 "one process, 4 workers, $how" "$dgc" $train --cluster worker=4 --auto-shard $how
  cp c.safetensors four.safetensors
  expect 0 "4 processes, $how" scattered 4 4 $train --auto-shard $how
  same four.safetensors part.0/c.safetensors
  # The parameter server has no file at all.
  expect 0 "a parameter server, $how" scattered 3 2 $train --auto-shard $how --cluster 'worker=2;ps=1' --strategy parameter_server
  same two.safetensors part.0/c.safetensors
done
cmp -s two.safetensors four.safetensors && fail 'the files are not dealt by worker' || pass

# Stopped within an epoch: with the same data the run goes on as if it had not been, and with other data in the file of
# any process, which no other one sees, it is warned of.
within="train $PWD/rows.dsl $files --batch 8 --towers 4 --quiet --auto-shard file --checkpoint $PWD/within.safetensors"
# shellcheck disable=SC2086
{
  expect 0 'to step 5 of 12' scattered 2 2 $within --steps 5 --overwrite
  cp within.safetensors five.safetensors
  expect 0 'to the end of epoch 3' scattered 2 2 $within --epochs 3 --resume
  grep -qE "within an epoch|begins at the first" err && fail "the same data" || pass
  same within.safetensors two.safetensors
  for changed in 0 3; do
    cp five.safetensors within.safetensors
    sed -i.kept '2s/^/1/' x.$changed.csv
    expect 0 "other rows in x.$changed.csv" scattered 2 2 $within --steps 7 --resume
    shows err 'the checkpoint was made within an epoch of other data, of as many rows'
    mv x.$changed.csv.kept x.$changed.csv
  done
}

# Where rows are dealt otherwise, everybody needs all files.
# shellcheck disable=SC2086
{
  expect 1 'a file of others' scattered 2 2 $train --auto-shard data
  sed 's/cast(n, f32)/gather(table, n)/; s/^  var w.*/&\n  var table : f32[100] = normal(1, 0.1)/' rows.dsl >table.dsl
  expect 0 'numbers of rows, one process' "$dgc" train table.dsl ${train#* * } --cluster worker=2 --auto-shard file
  expect 0 'numbers of rows' $bounded mpirun -n 2 "$dgc" train table.dsl ${train#* * } --auto-shard file --checkpoint table.safetensors
  shows err 'note: all processes need all of an input that numbers rows, so each process opens all files'
  same c.safetensors table.safetensors
  expect 1 'a file that is nowhere' scattered 2 2 $train --auto-shard file --data x=x.0.csv:1,gone.csv:1,x.2.csv:1,x.3.csv:1
  shows err 'gone.csv'
  file 3 11
  expect 0 'one process, uneven files' "$dgc" $train --cluster worker=2 --auto-shard file
  expect 0 '2 processes, uneven files' $bounded mpirun -n 2 "$dgc" $train --auto-shard file --checkpoint uneven.safetensors
  shows err 'note: the rows of the files end a batch in which workers are given those of others, so each process opens all files'
  same c.safetensors uneven.safetensors
  echo 200,200 >>x.3.csv
  expect 1 'a number that is no row' $bounded mpirun -n 2 "$dgc" train table.dsl ${train#* * } --auto-shard file
  shows err 'row 11 of x.3.csv:2 is 200'
}
finish
