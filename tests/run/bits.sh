#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The same bits for a tower count, whatever carries the towers: devices, threads, strategies, a resumed run.
. "$(dirname "$0")/lib.sh"
model=$samples/digits.dsl
rows="--rows 0:1000 --eval-rows 0:300"
# Sanitizers look at each thread and copy, not at the numbers: 4 steps an epoch, not 11.
[ "${TEST_NUMBERS-1}" != 0 ] || rows="--rows 0:300 --eval-rows 0:100"
small="$rows --batch 96 --seed 7 --quiet"

train() {
  name=$1
  shift
  expect 0 "train $name" "$dgc" train "$model" $small --epochs 2 --overwrite \
    --checkpoint "$name.safetensors" "$@"
  mv out "$name.out"
}
train base --towers 4 --devices cpu:0
for devices in cpu:0-1 cpu:0-2 cpu:0-3 cpu:0-6; do
  for strategy in mirrored central_storage; do
    train "$strategy-$devices" --towers 4 --devices $devices --strategy $strategy
    same base.safetensors "$strategy-$devices.safetensors"
    same base.out "$strategy-$devices.out"
  done
done
for strategy in replicate round_robin central_storage; do
  for devices in cpu:0-2 cpu:1-2; do
    train "$strategy-$devices" --towers 4 --devices $devices --strategy $strategy
    same base.safetensors "$strategy-$devices.safetensors"
  done
done
train workers --towers 4 --devices cpu:0-1 --cluster 'worker=2' --strategy multi_worker_mirrored
same base.safetensors workers.safetensors
train servers --towers 4 --cluster 'worker=3;ps=2' --min-part-bytes 4096 --balance size
same base.safetensors servers.safetensors
same base.out servers.out
train one --towers 4 --devices cpu:2 --strategy one_device
same base.safetensors one.safetensors
for threads in 1 2 3 4; do
  train "threads-$threads" --towers 4 --devices cpu:0-3 --threads $threads
  same base.safetensors "threads-$threads.safetensors"
done

# Of one device, too, whose steps they share.
for sample in digits lenet words; do
  for threads in 1 2 3 7; do
    DGC_PIECE_COST=1 expect 0 "$sample on $threads threads" "$dgc" train "$samples/$sample.dsl" --rows 0:150 --eval-rows 0:50 \
      --batch 96 --quiet --overwrite --epochs 1 --threads $threads --checkpoint "$sample-$threads.safetensors"
    same "$sample-1.safetensors" "$sample-$threads.safetensors"
  done
done
# The steps of a loop, too, and of a loop in a loop.
cat >rows.dsl <<EOF
use nn

model rows {
  input image : u8[B, 28, 28]
  input label : u8[B]
  var w : f32[28, 24] = glorot_uniform()
  var u : f32[24, 24] = glorot_uniform()
  x = cast(image, f32) / 255
  h = x[:, 0, :] @ w
  scan h over x_t in x {
    q = h
    scan(length = 3) q {
      q = tanh(q @ u + x_t @ w)
    }
    h = 0.5 * (h + q)
  }
  logits = nn.dense(h, 10) + nn.dense(nn.lstm(x, 20), 10)
  train mean(softmax_cross_entropy(logits, label)) with sgd(rate = 0.1)
  data train {
    image = "$samples/data/train-images.idx"
    label = "$samples/data/train-labels.idx"
  }
}
EOF
for threads in 1 2 3 7; do
  DGC_PIECE_COST=1 expect 0 "a loop on $threads threads" "$dgc" train rows.dsl --allow-path "$samples" --rows 0:150 --batch 64 \
    --quiet --overwrite --epochs 1 --threads $threads --checkpoint "rows-$threads.safetensors"
  same rows-1.safetensors "rows-$threads.safetensors"
done
train again --towers 4 --devices cpu:0
same base.safetensors again.safetensors

# Convolutions: uneven towers, on as many devices and threads as there may be.
for carrier in 'cpu:0 --threads 1' 'cpu:0-1 --threads 1' 'cpu:0-1 --threads 2' 'cpu:0-2 --threads 2' \
  'cpu:0-2 --threads 3 --strategy central_storage'; do
  expect 0 "lenet on $carrier" "$dgc" train "$samples/lenet.dsl" --rows 0:80 --eval-rows 0:40 --batch 20 --quiet --overwrite \
    --towers 3 --checkpoint images.safetensors --devices $carrier
  [ -f first-images.safetensors ] || cp images.safetensors first-images.safetensors
  same first-images.safetensors images.safetensors
done

# Products of bfloat16, in units that add up pairs where the CPU has them: uneven towers, pieces as small as may be.
for sample in digits lenet; do
  sed "s/^model $sample(.*)/& with precision = bf16/" "$samples/$sample.dsl" >"$sample-bf16.dsl"
  for units in on off; do
    rm -f first-bf16.safetensors
    for carrier in 'cpu:0 --threads 1' 'cpu:0 --threads 2' 'cpu:0 --threads 3' 'cpu:0-2 --threads 3' \
      'cpu:0-1 --threads 3 --strategy central_storage'; do
      DGC_PIECE_COST=1 DGC_BF16_UNITS=$units expect 0 "$sample, bf16, units $units, $carrier" "$dgc" train "$sample-bf16.dsl" \
        --data "$samples" --rows 0:80 --eval-rows 0:40 --batch 50 --quiet --overwrite --towers 3 \
        --checkpoint bf16.safetensors --devices $carrier
      [ -f first-bf16.safetensors ] || cp bf16.safetensors first-bf16.safetensors
      same first-bf16.safetensors bf16.safetensors
    done
  done
done

# In two parts, the second on other devices, the first ending inside of an epoch.
expect 0 'first part' "$dgc" train "$model" $small --steps 5 --towers 4 --checkpoint part.safetensors
expect 0 'second part' "$dgc" train "$model" $rows --quiet --epochs 2 --devices cpu:0-2 \
  --resume=part.safetensors --checkpoint part.safetensors
same base.safetensors part.safetensors

# The same with variables in parts: a checkpoint knows nothing of them.
expect 0 'first part on servers' "$dgc" train "$model" $small --steps 5 --towers 4 --cluster 'worker=2;ps=3' \
  --min-part-bytes 1000 --checkpoint cut.safetensors
expect 0 'second part on other servers' "$dgc" train "$model" $rows --quiet --epochs 2 \
  --cluster 'worker=1;ps=2' --min-part-bytes 20000 --resume=cut.safetensors --checkpoint cut.safetensors
same base.safetensors cut.safetensors

# Asynchronous training has bits of its own, which threads do not change; other staleness gives others.
for threads in 1 3; do
  train "async-$threads" --cluster 'worker=3;ps=1' --staleness 1 --threads $threads
done
same async-1.safetensors async-3.safetensors
train in-turn --cluster 'worker=3;ps=1' --staleness 0
cmp -s async-1.safetensors in-turn.safetensors && fail 'staleness makes no difference' || pass
# Rows of a table, asynchronously: certified, trained, and the same for any threads.
words() {
  name=$1
  shift
  expect 0 "words $name" "$dgc" train "$samples/words.dsl" --quiet --batch 24 --overwrite \
    --checkpoint "$name.safetensors" "$@"
}
for cluster in 'worker=2;ps=1' 'worker=3;ps=2' 'chief=1;worker=2;ps=1'; do
  for staleness in 0 1 5; do
    expect 0 "words certified, $cluster, $staleness" "$dgc" verify "$samples/words.dsl" --cluster "$cluster" \
      --strategy parameter_server --staleness $staleness --min-part-bytes 4096 --batch 7 --set width=2 --numeric
    words words-1 --cluster "$cluster" --strategy parameter_server --staleness $staleness --threads 1
    words words-3 --cluster "$cluster" --staleness $staleness --min-part-bytes 4096 --threads 3
    same words-1.safetensors words-3.safetensors
  done
done
expect 2 'rows that do not divide' "$dgc" train "$model" --rows 0:96 --batch 96 --quiet --towers 5 --strategy replicate \
  --checkpoint uneven.safetensors
shows err '96 rows do not divide by 5 towers'
[ ! -e uneven.safetensors ] && pass || fail 'a refused batch left a checkpoint'
# A batch that comes late is refused before the first step, if it comes at all.
uneven() {
  code=$1
  shift
  expect "$code" "$*" "$dgc" train "$model" --quiet --batch 64 --devices cpu:0-1 --strategy replicate \
    --checkpoint uneven.safetensors --checkpoint-every 1 "$@"
}
uneven 2 --rows 0:129 --eval-rows 0:64
shows err 'batch 3 of the 3 of an epoch of 129 rows has 1'
shows err '1 row does not divide by 2 towers'
uneven 2 --rows 0:128 --eval-rows 0:67
shows err 'eval: 67 rows in batches of 64 end with one of 3'
[ ! -e uneven.safetensors ] && pass || fail 'steps were done before a batch was refused'
uneven 0 --rows 0:129 --eval-rows 0:64 --steps 2
uneven 2 --rows 0:129 --eval-rows 0:64 --steps 3 --resume
shows err 'batch 3 of the 3 of an epoch of 129 rows has 1'
uneven 0 --rows 0:129 --eval-rows 0:67 --uneven --overwrite
expect 2 'uneven eval' "$dgc" eval "$model" --checkpoint uneven.safetensors --eval-rows 0:67 --batch 64 --devices cpu:0-1 \
  --strategy replicate
expect 2 'uneven predict' "$dgc" predict "$model" --checkpoint uneven.safetensors --eval-rows 0:67 --batch 64 \
  --devices cpu:0-1 --strategy replicate --output probability=p.npy
[ ! -e p.npy ] && pass || fail 'a refused prediction left a file'
expect 0 'rows per tower' "$dgc" compile "$model" --batch 32 --batch-is per_replica --towers 4
shows out '  batch 128'
shows out '  batch_per_replica 32'

# Killed at any time, and resumed until it is done.
for delay in 0.05 0.15 0.3 0.5; do
  rm -f killed.safetensors
  "$dgc" train "$model" $small --epochs 2 --towers 4 --devices cpu:0-1 --checkpoint killed.safetensors \
    --checkpoint-every 2 >/dev/null 2>&1 &
  job=$!
  sleep $delay
  kill -9 $job 2>/dev/null
  wait $job 2>/dev/null
  expect 0 "resume after $delay s" "$dgc" train "$model" $small --epochs 2 --towers 4 --devices cpu:0-3 \
    --checkpoint killed.safetensors --resume
  same base.safetensors killed.safetensors
done

# A trained model does not change by looking at it, and evaluation does not depend on devices.
expect 0 eval "$dgc" eval "$model" --checkpoint base.safetensors --json
cp out eval.json
expect 0 'eval on others' "$dgc" eval "$model" --checkpoint base.safetensors --json --devices cpu:0-2
same_results eval.json out
expect 0 predict "$dgc" predict "$model" --checkpoint base.safetensors --output probability=p.npy
expect 0 'predict on others' "$dgc" predict "$model" --checkpoint base.safetensors --output probability=q.npy --devices cpu:0-1
same p.npy q.npy

# A model of one tower runs where there are more devices.
expect 0 'train one tower' "$dgc" train "$model" $small --epochs 1 --checkpoint single.safetensors
expect 0 'eval one tower' "$dgc" eval "$model" --checkpoint single.safetensors --json
cp out single.json
expect 0 'eval one tower on two devices' "$dgc" eval "$model" --checkpoint single.safetensors --json --devices cpu:0-1
same_results single.json out
expect 0 'one tower on two devices' "$dgc" train "$model" $small --epochs 1 --towers 1 --devices cpu:0-1 \
  --checkpoint twice.safetensors
same single.safetensors twice.safetensors
expect 0 inspect "$dgc" inspect base.safetensors
shows out '# towers: 4'
expect 0 'inspect as JSON' "$dgc" inspect base.safetensors --json
python3 -m json.tool <out >/dev/null && pass || fail 'inspect --json is no JSON'
finish
