#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A list of optimizers over towers: one hash whatever the strategy, the parts of variables and the processes that compute; and
# evaluation reads the averages, wherever they lie.
. "$(dirname "$0")/lib.sh"

model() {
  cat <<END
use nn
model chain {
  input x : f32[B, 3]
  input y : f32[B]
  h = nn.dense(x, 6, activation = tanh)
  o = squeeze(nn.dense(h, 1), 1)
  train mean(squared_error(o, y)) with [clip_by_global_norm(0.5), freeze("h.bias"), accumulate(2), scale_by_adam(),
                                        decay_weights(0.1, "*kernel"), scale_by_trust_ratio(), scale(0.5, "o.*"), sgd(0.1)$1]
  metric slope = sqrt(sum(square(gradient(sum(o), x))))
}
END
}
model ', average(0.9)' >averaged.dsl
model '' >chain.dsl
awk 'BEGIN { for (i = 0; i < 40; i++) printf "%.3f,%.3f,%.3f,%.3f\n", i * 7 % 11 / 5 - 1, i * 5 % 13 / 6 - 1, i % 3, i * 3 % 7 / 7 }' >rows.csv
data="--data x=rows.csv:1-3 --data y=rows.csv:4 --eval-data x=rows.csv:1-3 --eval-data y=rows.csv:4 --batch 10 --quiet"

expect 0 'on one device' "$dgc" train averaged.dsl $data --epochs 5 --towers 3 --checkpoint one.safetensors
cp out one.out
while read -r layout; do
  expect 0 "$layout" "$dgc" train averaged.dsl $data --epochs 5 --overwrite --checkpoint c.safetensors $layout
  same one.safetensors c.safetensors
  same one.out out
  expect 0 "evaluation, $layout" "$dgc" eval averaged.dsl $data --checkpoint c.safetensors $layout
  same one.out out
done <<END
--devices cpu:0-2
--devices cpu:0-2 --strategy central_storage
--devices cpu:0-2 --packs 2 --cross-device hierarchical_copy
--strategy round_robin --devices cpu:0-2 --balance size
--strategy parameter_server --cluster worker=3;ps=2 --min-part-bytes 8
END
expect 0 'with fewer rows for the last worker' "$dgc" verify averaged.dsl --batch 7 --numeric \
  --strategy parameter_server --cluster 'worker=3;ps=2' --staleness 1 --min-part-bytes 8
expect 0 'per tower' "$dgc" verify averaged.dsl --batch 7 --numeric --devices cpu:0-2 --strategy replicate --uneven \
  --loss-scaling per_tower

# The same variables without their averages are others; the training is the same.
expect 0 'without averages' "$dgc" train chain.dsl $data --epochs 5 --towers 3 --checkpoint raw.safetensors
if cmp -s one.out out; then fail 'evaluation does not read the averages'; else pass; fi
finish
