#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# --bits portable on other processors, emulated by qemu-user: the checkpoint that this machine writes is written by the same
# tool as Haswell, whose code is for AVX2, and by an interpreter that is made for aarch64. Both want Debian's qemu-user,
# the second one gcc-aarch64-linux-gnu, too; $4 is where it is built, and kept.
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

if ! command -v qemu-aarch64 >/dev/null; then
  absent qemu-aarch64 'install qemu-user'
elif ! command -v aarch64-linux-gnu-gcc >/dev/null; then
  absent aarch64-linux-gnu-gcc 'install gcc-aarch64-linux-gnu'
else
  build_aarch64
  printf '0.5,1,-2,0.25,1\n1,2,3,4,5\n0.1,0.2,0.3,0.4,0.5\n-1,7,0.125,3,2\n' >rows.csv
  for model in "$mixed" "$samples/linear.dsl --data x=rows.csv:1-4 --data y=rows.csv:5"; do
    train "$model" here "$dgc"
    train "$model" aarch64 qemu-aarch64 -L "$root" "$kept/dgc"
    same here.safetensors aarch64.safetensors
  done
fi
finish
