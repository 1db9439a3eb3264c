#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Digits in products of bfloat16 values, on CPUs or on the GPUs of a fifth argument: as good as in f32, and two devices have
# the bits of one. TEST_NUMBERS=0 leaves out how good: a sanitizer sees no more in a long training than in a short one.
. "$(dirname "$0")/lib.sh"
devices=${5:-cpu:0-1}
one=cpu:0
case $devices in
  gpu*)
    one=gpu:0
    gpus
    expect 2 "portable bits on $one" "$dgc" bench "$samples/linear.dsl" --devices $one --bits portable
    shows err "adds up in an order of its own"
    ;;
esac
mkdir data && cp "$samples"/data/*.idx data
sed 's/hidden = 512/hidden = 128/' "$samples/digits.dsl" >f32.dsl
if cmp -s "$samples/digits.dsl" f32.dsl; then fail 'digits is as large as it was'; fi
sed 's/^\(model digits(.*)\) {/\1 with precision = bf16 {/' f32.dsl >bf16.dsl
if cmp -s f32.dsl bf16.dsl; then fail 'digits.dsl is written otherwise'; fi

# accuracy FILE: what training gives on the test rows, into ./accuracy.
accuracy() {
  expect 0 "$1 on $devices" "$dgc" train "$1" --devices $devices $long --quiet
  awk '$1 == "accuracy" { print $2 }' out >accuracy
}
long="--epochs 3"
if [ "${TEST_NUMBERS:-1}" = 0 ]; then long="--epochs 1 --rows 0:330 --eval-rows 0:150"; fi
accuracy f32.dsl
mv accuracy want
accuracy bf16.dsl
if [ "${TEST_NUMBERS:-1}" = 0 ]; then :; elif awk 'NR == FNR { want = $1; next } { exit !($1 > 0.9 && $1 >= want - 0.01) }' want accuracy; then pass; else
  fail "bf16 on $devices: $(cat accuracy) where f32 has $(cat want)"
fi

# Other precisions, other numbers; TF32 has nothing to do with products of bfloat16 values.
short="--rows 0:256 --batch 64 --epochs 1 --seed 3 --no-shuffle --quiet"
for model in f32 bf16; do
  expect 0 "$model on $one" "$dgc" train $model.dsl $short --devices $one --checkpoint $model.safetensors
done
if cmp -s f32.safetensors bf16.safetensors; then fail 'bf16 trains like f32'; else pass; fi
if [ $one = gpu:0 ]; then
  expect 0 "bf16 on $one, --tf32" "$dgc" train bf16.dsl $short --devices $one --tf32 --checkpoint tf32.safetensors
  same bf16.safetensors tf32.safetensors
  expect 0 "bf16 on $one without units for it, where it is simulated" env DGC_SIMULATED_ARCH=75 "$dgc" train bf16.dsl $short \
    --devices $one --checkpoint widened.safetensors
  same bf16.safetensors widened.safetensors
fi
expect 0 "bf16, two towers on $one" "$dgc" train bf16.dsl $short --devices $one --towers 2 --checkpoint one.safetensors
expect 0 "bf16, two towers on $devices" "$dgc" train bf16.dsl $short --devices $devices --checkpoint two.safetensors
same one.safetensors two.safetensors
expect 0 'certificate' "$dgc" verify bf16.dsl --devices $devices --batch 16 --numeric

# Variables in 16 bits, with a table of rows and rounded values: as if f32 were rounded by hand.
for kind in bf16 f16; do
  cat >stored.dsl <<EOF
optimizer by_hand(rate) { variable <- round_$kind(variable - cast(rate, f32) * gradient) }
model stored(storage = $kind) with precision = bf16 {
  input image : u8[B, 28, 28]
  input label : u8[B]
  var table  : f32[256, 4]  = round_$kind(random_normal(f32[256, 4])) storage(storage)
  var kernel : f32[788, 10] = round_$kind(0.01 * random_normal(f32[788, 10])) storage(storage)
  rows = lookup(table, image[:, 14, 14])
  z    = round_$kind(concat([flatten(cast(image, f32) / 255), rows], axis = 1) @ kernel)
  train mean(softmax_cross_entropy(z * sigmoid(z), label)) with by_hand(0.1)
  data train {
    image = "data/train-images.idx"
    label = "data/train-labels.idx"
  }
}
EOF
  mkdir -p f32
  sed "s/storage = $kind/storage = f32/" stored.dsl >f32/stored.dsl
  ln -sf ../data f32/data
  for set in $kind f32; do
    model=stored.dsl
    [ $set = $kind ] || model=f32/stored.dsl
    expect 0 "stored in $set on $one" "$dgc" train $model $short --devices $one --towers 2 --checkpoint $set.safetensors --overwrite \
      --allow-path data
  done
  expect 0 'as f32' "$dgc" checkpoint cast $kind.safetensors --to f32 -o $kind.wide.safetensors
  expect 0 'the same numbers' "$dgc" checkpoint diff $kind.wide.safetensors f32.safetensors
  expect 0 "stored in $kind on $devices" "$dgc" train stored.dsl $short --devices $devices --checkpoint two.safetensors --overwrite
  same $kind.safetensors two.safetensors
  expect 0 "stored in $kind on $devices, central_storage" "$dgc" train stored.dsl $short --devices $devices --strategy central_storage \
    --checkpoint two.safetensors --overwrite
  same $kind.safetensors two.safetensors
done
finish
