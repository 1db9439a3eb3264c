#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Another LLVM in the process: neither sees the other, whichever is loaded first. Ours is that of $LLVM_LIBRARY; the
# allocator of $ALLOCATOR takes back only what it gave.
. "$(dirname "$0")/lib.sh"
export DGC_CACHE=off
model=$samples/digits.dsl

train() {
  what=$1 preload=$2
  expect 0 "$what" env LD_PRELOAD="$preload" "$dgc" train "$model" --steps 2 --quiet
}

train alone ''
mv out alone
train 'another allocator' "$ALLOCATOR"
same out alone

# Ours, which somebody else has in the process, too: it keeps the options that it has.
expect 0 'an LLVM of somebody else' env LD_PRELOAD="$LLVM_LIBRARY" DGC_LLVM_OPTIONS=-debug-pass=Structure "$dgc" train "$model" --steps 2 --quiet
same out alone
if grep -q 'Instruction Selection' err; then fail 'its options are changed'; else pass; fi

# For all libraries to see: every name of ours, none of them of any use.
nm -D --defined-only "$LLVM_LIBRARY" | awk '{ sub(/@.*/, "", $3) } $3 ~ /llvm|LLVM/ { print $3 }' | sort -u >names
awk 'BEGIN { print ".data" } { printf ".globl \"%s\"\n\"%s\":\n", $1, $1 } END { print ".zero 4096" }' names >other.s
[ "$(wc -l <names)" -gt 10000 ] && pass || fail "$LLVM_LIBRARY has few names"
# shellcheck disable=SC2086
if $CC -shared -nostdlib -o other.so other.s; then pass; else fail 'no library'; fi
train 'another LLVM' "$work/other.so"
same out alone
train 'another LLVM and another allocator' "$ALLOCATOR $work/other.so"
same out alone

# One that works, from PyPI.
if python=$("$source/tools/oracles.sh" --find 2>why); then
  for order in first after; do
    expect 0 "llvmlite, $order" "$python" "$source/tests/run/two_llvms.py" "$(dirname "$dgc")/libdgc.so" "$model" $order
  done
else
  cat why
  skipped=1
fi
finish
