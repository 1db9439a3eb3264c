#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What --output names is predicted, and nothing else: its inputs alone are read, and its bits are those of all that is predicted.
. "$(dirname "$0")/lib.sh"
cat >m.dsl <<'END'
use nn
model m() {
  input x : f32[B, 2]
  input y : f32[B]
  p = squeeze(nn.dense(nn.dense(x, 8, tanh), 1), 1)
  train mean(square(p - y)) with adam()
  predict said = p
  predict noise = p + random_normal(f32[B])
  predict truth = y
  predict off = p - y
  predict drawn = random_uniform(f32[B, 2])
  data train {
    x = "all.csv:1-2"
    y = "all.csv:y"
  }
}
END
some_rows 30 a b y >all.csv
cut -d, -f1,2 all.csv >x.csv
expect 0 train "$dgc" train m.dsl --quiet --steps 5 --batch 8 --checkpoint c.safetensors
# predict ARGUMENTS...
predict() {
  "$dgc" predict m.dsl --checkpoint c.safetensors --quiet "$@"
}
expect 0 'all' predict --data all.csv --output said=said.npy --output noise=noise.npy --output truth=truth.npy --output off=off.npy \
  --output drawn=drawn.npy
for devices in cpu:0 cpu:0-1; do
  expect 0 "without labels, $devices" predict --devices $devices --data x.csv --output said=s.npy --output noise=n.npy
  same s.npy said.npy
  same n.npy noise.npy
done
expect 0 'labels that are not read' predict --data x=all.csv:1-2 --data y=nowhere.csv:y --output said=s.npy
same s.npy said.npy
expect 0 'labels alone' predict --data y=all.csv:y --output truth=t.npy
same t.npy truth.npy
expect 0 'what reads nothing has as many rows as the data' predict --data x=x.csv:1-2 --output drawn=d.npy
same d.npy drawn.npy
expect 0 'side by side' predict --data x.csv --output said=two.csv --output noise=two.csv
[ "$(head -n 1 two.csv)" = said,noise ] && pass || fail "$(head -n 1 two.csv)"
# All of it, by name or not, needs all; the message says what for.
for out in '' '--output all.out.csv' '--output off=off.csv --output said=said.csv'; do
  # shellcheck disable=SC2086
  expect 1 "all, without labels: $out" predict --data x.csv $out
  shows err "x.csv: it has no column 'y'"
  # shellcheck disable=SC2016
  shows err 'input y is read for `predict truth`, `predict off` alone'
  shows err 'help: what does without it is predicted with --output said=FILE --output noise=FILE --output drawn=FILE'
done
expect 1 'no data for x' predict --data x=no.csv:1-2 --data y=all.csv:y
# shellcheck disable=SC2016
shows err 'input x is read for `predict said`, `predict noise`, `predict off` alone'
expect 2 'no such output' predict --data x.csv --output sadi=s.npy
shows err "model m predicts no 'sadi'"
shows err "did you mean 'said'?"

# In a program that asks for one and another and all.
cat >calls.py <<'END'
call("load", b"m.dsl")
call("restore", b"c.safetensors")
call("set", b"data", b"x.csv")
call("set", b"output", b"said=1.npy")
call("predict", None)
call("predict", None)
call("set", b"output", b"noise=2.npy")
call("predict", None)
call("set", b"data", b"y=all.csv:y")
call("set", b"output", b"off=3.npy")
call("predict", None)
call("set", b"output", b"four.csv")
call("predict", None)
END
if program 'a program' calls.py; then
  same 1.npy said.npy
  same 2.npy noise.npy
  same 3.npy off.npy
  [ "$(head -n 1 four.csv)" = said,noise,truth,off,drawn_0,drawn_1 ] && pass || fail "$(head -n 1 four.csv)"
fi
finish
