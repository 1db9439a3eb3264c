#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What XLA's CPU compiler makes of the samples, by a plugin that is not ours: the losses of each step are those of dgc's own
# CPUs, and what is evaluated and predicted afterwards is the same. plugin.sh DGC SAMPLES SOURCE LOSSES
losses=$4
. "$(dirname "$0")/../run/lib.sh"
if [ -z "${DGC_PJRT_PLUGIN-}" ]; then
  python=$("$source/tools/oracles.sh" --find 2>/dev/null) || python=python3
  DGC_PJRT_PLUGIN=$("$python" -c 'import glob, sysconfig
print("".join(glob.glob(sysconfig.get_paths()["purelib"] + "/lammps_jax_pjrt_cpu/*.so")))' 2>/dev/null)
  export DGC_PJRT_PLUGIN
fi
if [ ! -f "$DGC_PJRT_PLUGIN" ]; then
  echo "SKIP: no PJRT plugin: tools/oracles.sh installs lammps-jax-pjrt-cpu where it can, or set DGC_PJRT_PLUGIN"
  exit 77
fi
images="data image=$samples/data/train-images.idx eval-data image=$samples/data/test-images.idx"
labels="data label=$samples/data/train-labels.idx eval-data label=$samples/data/test-labels.idx"

# same STEPS MODEL DEVICES OTHERS [OPTION VALUE]...
same_losses() {
  what=$*
  steps=$1
  model=$2
  shift 2
  if $bounded "$losses" "$steps" "$samples/$model.dsl" "$@" >out 2>err; then pass; else
    fail "$what"
    cat out err
  fi
}
same_losses 12 digits cpu:0-3 pjrt:0-3
same_losses 6 digits cpu:0-1 pjrt:0-1 towers 4
same_losses 6 digits cpu:0 pjrt:1 towers 3
same_losses 6 digits cpu:0-5 pjrt:0-5 batch 96
# Behind some steps of Adam, whose first ones are whole steps also where a gradient is all rounding, and of maxima, losses
# of LeNet differ by 1e-4 for some seeds; behind 4 by 1.5e-6 at most, of seeds 1 to 6 and this one.
same_losses 4 lenet cpu:0-3 pjrt:0-3
same_losses 12 words cpu:0-3 pjrt:0-3
same_losses 8 autoencoder cpu:0-3 pjrt:0-3 $images
same_losses 8 mnist cpu:0-3 pjrt:0-3 $images $labels
# The last batch of an epoch has 34 rows: the first device does it, and all of them have what it leaves.
same_losses 8 words cpu:0-3 pjrt:0-3 rows 0:134 batch 100
# Towers with values of their own, which move to the first device and back with each last batch; sums inside the model.
cat >local.dsl <<'END'
use nn

model local {
  input x : f32[B, 8]
  input y : f32[B]
  state level : f32[] = 1 aggregation(mean) synchronization(on_read)
  state seen  : f32[] = 0 aggregation(sum)

  h = nn.batch_norm(dropout(nn.dense(x, 16, tanh), 0.2))
  p = reshape(nn.dense(h, 1), [B])
  level <- 0.9 * level + 0.1 * mean(x)
  seen += B
  train mean(square(p - y) + 0.01 * level + 0.0001 * seen) with momentum(0.05)
}
END
awk 'BEGIN { srand(1); for (i = 0; i < 90; i++) { s = 0; for (k = 0; k < 8; k++) { v = rand() - 0.5; s += v
  printf "%s%.6f", k ? "," : "", v > "x.csv" } print "" > "x.csv"; print s / 3 > "y.csv" } }'
samples_before=$samples
samples=$work
same_losses 12 local cpu:0-3 pjrt:0-3 data x=x.csv data y=y.csv batch 20
samples=$samples_before

# A program from the cache has the bits of the one that was compiled.
for turn in compiled kept; do
  expect 0 "$turn" env XDG_CACHE_HOME=$work/cache "$dgc" train "$samples/digits.dsl" --rows 0:600 --epochs 1 --devices pjrt:0-1 \
    --checkpoint $turn.safetensors
done
same compiled.safetensors kept.safetensors

# A checkpoint goes on elsewhere, and predictions have their rows in order.
train="train $samples/digits.dsl --rows 0:1000"
expect 0 'begun by a plugin' "$dgc" $train --epochs 1 --devices pjrt:0-1 --checkpoint c.safetensors
expect 0 'continued on CPUs' "$dgc" $train --epochs 2 --devices cpu:0-1 --checkpoint c.safetensors --resume
expect 0 'continued by a plugin' "$dgc" $train --epochs 3 --devices pjrt:0-3 --towers 4 --checkpoint c.safetensors --resume
for devices in cpu:0 pjrt:0-3; do
  expect 0 "predicted on $devices" "$dgc" predict "$samples/digits.dsl" --checkpoint c.safetensors --batch 128 --rows 0:205 \
    --devices $devices --towers 4 --output probability=$devices.csv
done
awk -F, 'FNR == 1 { next } NR == FNR { for (i = 1; i <= NF; i++) a[FNR, i] = $i; rows++; next }
  { for (i = 1; i <= NF; i++) { d = a[FNR, i] - $i; if (d > 1e-4 || d < -1e-4) bad++ } seen++ }
  END { exit bad || rows != 205 || seen != 205 }' cpu:0.csv pjrt:0-3.csv
if [ $? = 0 ]; then pass; else fail 'other predictions'; fi
# Which rows each tower has, and how many towers there are.
printf '%s\n' 'model towers {' '  input x : f32[B, 8]' '  var w : f32[8] = ones()' \
  '  predict p = sum(x * w, axis = 1) + 1000 * cast(tower_id(), f32) + 100 * cast(tower_count(), f32)' \
  '  train mean(x * w) with sgd(rate = 0.1)' '}' >towers.dsl
expect 0 "towers: variables" "$dgc" train towers.dsl --steps 0 --data x=x.csv --checkpoint towers.safetensors
for devices in cpu:0-3 pjrt:0-3 pjrt:0-1; do
  expect 0 "towers of $devices" "$dgc" predict towers.dsl --checkpoint towers.safetensors --data x=x.csv --batch 20 --towers 4 \
    --devices $devices --output p=towers.$devices.csv
  awk -F, 'FNR == 1 { next } NR == FNR { a[FNR] = $1; next } { d = a[FNR] - $1; if (d > 1e-3 || d < -1e-3) bad++; seen++ }
    END { exit bad || seen != 90 }' towers.cpu:0-3.csv towers.$devices.csv
  if [ $? = 0 ]; then pass; else fail "towers of $devices have other rows"; fi
done
# A NaN is the extreme of what it is among, wherever it stands, and its place that of the extreme.
printf '%s\n' 'model extremes {' '  input x : f32[B, 8]' '  predict most = max(x, axis = 1)' \
  '  predict least = min(x, axis = 1)' '  predict at = argmax(x, 1)' '  predict below = argmin(x, 1)' \
  '  predict above = max(0.25, x)' '}' >extremes.dsl
awk -F, 'BEGIN { OFS = "," } { if (NR % 2) $(NR % 8 + 1) = "nan"; if (NR % 3 == 0) $(NR % 5 + 1) = "inf"; print }' x.csv >odd.csv
outputs=
for value in most least at below above; do outputs="$outputs --output $value=DEVICES.$value.csv"; done
for devices in cpu:0-1 pjrt:0-1; do
  expect 0 "extremes on $devices" "$dgc" predict extremes.dsl --data x=odd.csv --batch 30 --devices $devices \
    $(echo "$outputs" | sed "s/DEVICES/$devices/g")
done
for value in most least at below above; do same cpu:0-1.$value.csv pjrt:0-1.$value.csv; done
expect 0 memory "$dgc" compile "$samples/digits.dsl" --devices pjrt:0-3 --emit memory
shows out 'temporary'
finish
