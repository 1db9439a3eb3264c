#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# --memory-limit: what is computed again instead of being kept changes no bit, and the plan stays within the limit; where no
# plan does, the refusal says by how much.
. "$(dirname "$0")/lib.sh"
cat >deep.dsl <<'END'
use nn
model deep() {
  input x : f32[B, 192]
  input y : i32[B]
  a = relu(nn.batch_norm(nn.conv2d(reshape(x, [B, 8, 8, 3]), 16)))
  b = relu(nn.batch_norm(nn.conv2d(dropout(a, 0.2), 16)))
  c = nn.conv2d(concat([a, b], axis = 3), 16, activation = gelu)
  t = nn.transformer_block(reshape(c, [B, 64, 16]), heads = 2, hidden = 32, rate = 0.1)
  logits = nn.dense(mean(t, axis = 1), 5)
  train mean(softmax_cross_entropy(logits, y)) with adam(rate = 0.01)
  metric right = mean(correct(logits, y))
}
END
awk 'BEGIN { srand(5); for (i = 0; i < 15; i++) {
  for (k = 0; k < 191; k++) printf "%.5f,", rand() - 0.5 >"x.csv"; printf "%.5f\n", rand() >"x.csv"
  print int(5 * rand()) >"y.csv" } }'

# need CARRIER...: the bytes of the device that needs most.
need() {
  "$dgc" compile deep.dsl --batch 12 --entry train --emit memory "$@" | sed -n 's/^  .*: \([0-9]*\) bytes$/\1/p' | sort -n | tail -1
}

# Batches of 12 and 3 rows.
train() {
  "$dgc" train deep.dsl --data x=x.csv --data y=y.csv --batch 12 --epochs 1 --seed 3 --quiet --overwrite "$@"
}
for carrier in '--devices cpu:0' '--devices cpu:0 --towers 3' '--devices cpu:0-1' '--devices cpu:0-1 --strategy central_storage' \
  '--cluster worker=2 --cross-device scatter'; do
  # shellcheck disable=SC2086
  set -- $carrier
  all=$(need "$@")
  expect 0 "$carrier" train "$@" --checkpoint kept.safetensors
  for percent in 90 75; do
    limit=$((all * percent / 100))
    least=$(need "$@" --memory-limit $limit)
    [ "$least" -le $limit ] || fail "$carrier: $least bytes of $limit"
    "$dgc" compile deep.dsl --batch 12 --entry train --emit memory "$@" --memory-limit $limit |
      grep -q 'computed again' || fail "$carrier: nothing is computed again within $limit bytes of $all"
    expect 0 "$carrier in $limit bytes" train "$@" --memory-limit $limit --checkpoint again.safetensors
    same kept.safetensors again.safetensors
  done
done

# Without a limit, or with one that is large enough, the plan is what it was.
"$dgc" compile deep.dsl --batch 12 --entry train --emit plan >plain.plan
"$dgc" compile deep.dsl --batch 12 --entry train --emit plan --memory-limit $(($(need) + 1)) >limited.plan
same plain.plan limited.plan

expect 2 "a limit that is too small" "$dgc" compile deep.dsl --batch 12 --entry train --emit plan --memory-limit 100000
grep -q 'error: memory-limit: a training step needs [0-9]* bytes on /cpu:0, and 100000 are allowed' err || fail "$(cat err)"
grep -q 'note: that is with [0-9]* activations computed again; with all kept it is [0-9]* bytes' err || fail "$(cat err)"
rm -f none.safetensors
expect 2 "nor is it trained" train --memory-limit 100000 --checkpoint none.safetensors
[ ! -e none.safetensors ] || fail "a checkpoint of nothing"
finish
