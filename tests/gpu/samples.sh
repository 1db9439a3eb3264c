#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Every sample on 1, 2, 4 and 8 GPUs, on several devices of one GPU, and under every strategy: after some steps the
# variables are those that the CPU has, within the rounding of f32, and the same to the bit for all layouts of GPUs with
# as many towers. Each sample takes the next few of the layouts of each tower count.
. "$(dirname "$0")/lib.sh"
gpus

# Data for the samples that bring none.
awk 'BEGIN { srand(7); for (i = 0; i < 128; i++) {
  a = rand(); b = rand(); c = rand(); d = rand()
  printf "%.6f,%.6f,%.6f,%.6f\n", a, b, c, d >"x.csv"; printf "%.6f\n", a - 2 * b + 3 * c + 0.5 >"y.csv"
  printf "%.6f,%.6f\n", a, b >"two.csv"; print (a > b) >"class.csv" } }'
images=$samples/data/train-images.idx
labels=$samples/data/train-labels.idx
digits="--data image=$images --data label=$labels"
awk 'BEGIN { srand(9); for (i = 0; i < 128; i++) { for (k = 0; k < 784; k++) printf "%s%.3f", k ? "," : "", rand()
  print ""; print int(10 * rand()) >"ten.csv" } }' >pixels.csv

jobs() { echo "/job:worker/task:0/$1,/job:worker/task:1/$2${3:+,/job:ps/task:0/$3}"; }
# Strategy and devices by tower count; as many GPUs as the last one of its name has.
layouts_1="one_device@gpu:0 mirrored@gpu:0 one_device@gpu:1"
layouts_2="mirrored@gpu:0-1 central_storage@gpu:0/0,gpu:0/1 replicate@gpu:0-1 multi_worker_mirrored@$(jobs gpu:0 gpu:0)
  parameter_server@$(jobs gpu:0 gpu:0 gpu:0) round_robin@gpu:0-1 mirrored@gpu:0/0,gpu:0/1 central_storage@gpu:0-1"
layouts_4="mirrored@gpu:0-3 round_robin@gpu:0/0,gpu:0/1,gpu:1,gpu:2 multi_worker_mirrored@$(jobs gpu:0-1 gpu:2-3)
  central_storage@gpu:0-2 one_device@gpu:0 parameter_server@$(jobs gpu:0 gpu:1 gpu:2) replicate@gpu:0-3
  mirrored@gpu:0/0,gpu:0/1,gpu:1/0,gpu:1/1"
layouts_8="mirrored@gpu:0-7 central_storage@gpu:0-7 multi_worker_mirrored@$(jobs gpu:0-3 gpu:4-7) round_robin@gpu:0-7
  parameter_server@$(jobs gpu:0-2 gpu:3-5 gpu:6-7) replicate@gpu:0-7"
case $count in
  1) layouts_1="one_device@gpu:0 mirrored@gpu:0" layouts_8=
    layouts_2="central_storage@gpu:0/0,gpu:0/1 mirrored@gpu:0/0,gpu:0/1" layouts_4="one_device@gpu:0" ;;
  2 | 3) layouts_4="mirrored@gpu:0/0,gpu:0/1,gpu:1/0,gpu:1/1 one_device@gpu:0 central_storage@gpu:0-1" layouts_8= ;;
  4 | 5 | 6 | 7) layouts_8= ;;
esac
turn=0
models=$samples
rows="--rows 0:64 --eval-rows 64:112 --batch 32"

# on DEVICES STRATEGY TOWERS FILE: trains `name`, and evaluates a whole batch and a part of one.
on() {
  expect 0 "$name on $1, $2, $3 towers" "$dgc" train "$models/$name.dsl" $arguments $rows \
    --steps 3 --seed 5 --no-shuffle --quiet --devices "$1" --strategy "$2" --towers "$3" --overwrite --checkpoint "$4"
  empty err
}
# near FILE TOLERANCE WHAT
near() {
  if "$(dirname "$dgc")/tests/gpu/close" "$1" gpu.safetensors "$2" $except; then pass; else
    fail "$name on $3: not as $1"
  fi
}
# compare NAME TOLERANCE ARGUMENTS...
compare() {
  name=$1
  tolerance=$2
  shift 2
  arguments=$*
  for towers in 1 2 4 8; do
    eval "set -- \$layouts_$towers"
    if [ $# = 0 ]; then continue; fi
    on cpu:0 one_device $towers cpu.safetensors
    rm -f first.safetensors
    for k in 0 1 2; do
      if [ $k -ge $# ] || { [ $k = 2 ] && [ $towers != 2 ]; }; then continue; fi
      eval "layout=\${$(((turn + k) % $# + 1))}"
      on "${layout#*@}" "${layout%%@*}" $towers gpu.safetensors
      near cpu.safetensors "$tolerance" "$layout, $towers towers"
      if [ -f first.safetensors ]; then near first.safetensors 0 "$layout, $towers towers"; else
        mv gpu.safetensors first.safetensors
      fi
    done
  done
  on cpu:0,gpu:0 central_storage 2 gpu.safetensors
  on cpu:0 one_device 2 cpu.safetensors
  near cpu.safetensors "$tolerance" cpu:0,gpu:0
  turn=$((turn + 2))
}

# A tolerance is a share of a variable's largest element. A rounding is 6e-8 of a value; sums of up to 1000 terms in
# another order, in three steps forward and back, make that 1e-5 at most; adam divides each gradient by its own size:
# those near zero weigh as much as any: 1e-4, and 1e-3 through several such layers. Simulated GPUs keep a tenth of these.
compare linear 1e-5 --data x=x.csv --data y=y.csv
compare logistic 1e-5 --data x=two.csv --data label=class.csv
compare perceptron 1e-4 --data image=pixels.csv --data label=ten.csv --set hidden=32 --set method=sgd
compare digits 1e-4 --set hidden=64
compare autoencoder 1e-4 --data image="$images" --set hidden=32
compare mnist 1e-4 $digits --set hidden=32
small words
rows="--rows 0:64 --eval-rows 0:48 --batch 32" # of its test data, of which there are 60
compare words 1e-5 --data "$samples"
models=$samples
# A normalisation follows h2.x: its bias has no gradient but what rounding leaves, which adam makes as large as any.
except=h2.dense.bias
rows="--rows 0:32 --eval-rows 32:56 --batch 16"
name=lenet
arguments=
on cpu:0 one_device 2 cpu.safetensors
on gpu:0 one_device 2 gpu.safetensors
near cpu.safetensors 1e-3 gpu:0
small lenet
compare lenet 1e-3 --data "$samples"
# What runs behind the host cannot be timed kernel by kernel.
expect 2 'a profile' "$dgc" bench "$samples/digits.dsl" --devices gpu:0 --steps 1 --profile
shows err 'error: profile: the steps of /gpu:0 run behind the host and cannot be timed one by one'
finish
