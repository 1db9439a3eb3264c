#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# --bits portable on other processors, emulated by qemu-user: the checkpoint that this machine writes is written by the same
# tool as Haswell, whose code is for AVX2, and by an interpreter that is made for aarch64; and so is one that is begun on one
# of the two and ends on the other. Both want Debian's qemu-user, the second one gcc-aarch64-linux-gnu, too; $4 is where it
# is built, and kept. DGC_AARCH64=BUILD/emulated, of tools/aarch64, is run in its place: code that LLVM makes for aarch64.
. "$(dirname "$0")/lib.sh"
kept=$4
root=/usr/aarch64-linux-gnu
digits="--data image=$samples/data/train-images.idx --data label=$samples/data/train-labels.idx"

# train MODEL NAME TOOL...: NAME.safetensors, of two steps.
train() {
  model=$1 name=$2
  shift 2
  # shellcheck disable=SC2086
  expect 0 "$model, $name" "$@" train $model --rows 0:4 --batch 2 --seed 3 --quiet --overwrite --epochs 1 --bits portable \
    --threads 2 --checkpoint "$name.safetensors"
}

# resume MODEL NAME ONE OTHER: the first step by ONE, the second by OTHER, each a command; it ends as here.safetensors.
resume() {
  model=$1 name=$2
  # shellcheck disable=SC2086
  set -- "$3" "$4" train $model --rows 0:4 --batch 2 --seed 3 --quiet --bits portable --threads 2
  one=$1 other=$2
  shift 2
  rm -f "$name.safetensors"
  # shellcheck disable=SC2086
  expect 0 "begun, $name" $one "$@" --steps 1 --checkpoint "$name.safetensors"
  # shellcheck disable=SC2086
  expect 0 "gone on with, $name" $other "$@" --epochs 1 --resume --checkpoint "$name.safetensors"
  same here.safetensors "$name.safetensors"
}

absent() {
  echo "SKIP: there is no $1: $2"
  skipped=$((skipped + 1))
}

# Compiled without more optimisation than the emulator's pays for.
build_aarch64() {
  cat >"$kept.ini" <<END
[binaries]
c = [$(command -v ccache >/dev/null && echo "'ccache', ")'aarch64-linux-gnu-gcc']
ar = 'aarch64-linux-gnu-ar'
strip = 'aarch64-linux-gnu-strip'
exe_wrapper = ['qemu-aarch64', '-L', '$root']
[host_machine]
system = 'linux'
cpu_family = 'aarch64'
cpu = 'aarch64'
endian = 'little'
END
  [ -f "$kept/build.ninja" ] || {
    rm -rf "$kept"
    expect 0 'set up for aarch64' meson setup "$kept" "$source" --cross-file "$kept.ini" --buildtype=plain -Dc_args=-O1 \
      -Dcpu=interp -Dtests=false -Dtool=alone -Dzlib=disabled -Dpng=disabled -Djpeg=disabled -Dmpi=disabled
  }
  expect 0 'build for aarch64' ninja -C "$kept" -j 2 dgc
}

mixed="$source/tests/run/mixed.dsl $digits"
if ! command -v qemu-x86_64 >/dev/null; then
  absent qemu-x86_64 'install qemu-user'
elif [ "$(uname -m)" = x86_64 ]; then
  train "$mixed" here "$dgc"
  train "$mixed" haswell qemu-x86_64 -cpu Haswell "$dgc"
  same here.safetensors haswell.safetensors
fi

aarch64=${DGC_AARCH64-}
if [ -n "$aarch64" ]; then
  :
elif ! command -v qemu-aarch64 >/dev/null; then
  absent qemu-aarch64 'install qemu-user'
elif ! command -v aarch64-linux-gnu-gcc >/dev/null; then
  absent aarch64-linux-gnu-gcc 'install gcc-aarch64-linux-gnu'
else
  build_aarch64
  aarch64="qemu-aarch64 -L $root $kept/dgc"
fi
if [ -n "$aarch64" ]; then
  printf '0.5,1,-2,0.25,1\n1,2,3,4,5\n0.1,0.2,0.3,0.4,0.5\n-1,7,0.125,3,2\n' >rows.csv
  linear="$samples/linear.dsl --data x=rows.csv:1-4 --data y=rows.csv:5"
  for model in "$mixed" "$linear"; do
    train "$model" here "$dgc"
    # shellcheck disable=SC2086
    train "$model" aarch64 $aarch64
    same here.safetensors aarch64.safetensors
  done
  resume "$linear" here-aarch64 "$dgc" "$aarch64"
  resume "$linear" aarch64-here "$aarch64" "$dgc"
fi
finish
