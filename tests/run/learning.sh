#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What training reaches: the drawn digits, and the MNIST digits where they are: in $DGC_DATA/mnist, or in ../shared/data
# beside the source tree.
. "$(dirname "$0")/lib.sh"

# reaches LEAST WHAT COMMAND...: the last line of the output is an accuracy of at least this.
reaches() {
  least=$1
  what=$2
  shift 2
  expect 0 "$what" "$@"
  if awk -v least="$least" '$1 == "accuracy" { reached = $2 } END { exit !(reached >= least) }' out; then pass; else
    fail "$what: less than $least"
    cat out
  fi
}

reaches 0.95 'digits, two devices' "$dgc" train "$samples/digits.dsl" --devices cpu:0-1 --strategy mirrored --epochs 3 --quiet
reaches 0.95 'words, two devices' "$dgc" train "$samples/words.dsl" --devices cpu:0-1 --batch 16 --epochs 8 --quiet
reaches 0.95 'digits, one device' "$dgc" train "$samples/digits.dsl" --epochs 3 --quiet

mnist=${DGC_DATA:-$source/../shared/data}/mnist
if [ ! -f "$mnist/t10k-images-idx3-ubyte.gz" ]; then
  echo "SKIP: no MNIST digits in $mnist"
  finish
fi
reaches 0.96 'MNIST' "$dgc" train "$samples/mnist.dsl" --data image="$mnist/t10k-images-idx3-ubyte.gz" \
  --data label="$mnist/t10k-labels-idx1-ubyte.gz" --rows 0:8000 --eval-rows 8000:10000 --epochs 10 \
  --devices cpu:0-1 --quiet
finish
