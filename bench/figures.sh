#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The figures of this machine. figures.sh BUILD
build=${1:-build}
source=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd)
for model in digits perceptron; do
  [ -f "$source/samples/$model.dsl" ] || continue
  for devices in cpu:0 cpu:0-1; do
    echo "== $model on $devices"
    "$build/dgc" bench "$source/samples/$model.dsl" --devices $devices --steps 300
  done
done
echo "== executor"
"$build/tests/unit/test_exec" | grep ' ns$'
echo "== source to placed graph, 8 towers"
"$build/dgc" compile "$source/samples/digits.dsl" --devices cpu:0-7 --time-passes -o /dev/null
