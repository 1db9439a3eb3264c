#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# GPUs, drivers and libraries that are not there, too old or too small. One line says what failed and where, the exit code
# is 3, nothing is written, and everything that was made is destroyed: the simulation ends with 66 if it is not.
. "$(dirname "$0")/lib.sh"
gpus
export DGC_SIMULATED_DEVICES=2

hidden=32
train() {
  rm -f w.safetensors*
  $bounded "$dgc" train "$samples/digits.dsl" --rows 0:128 --eval-rows 0:32 --batch 32 --steps 4 --quiet \
    --set hidden=$hidden --checkpoint w.safetensors "$@"
}
# refused TEXT WHAT COMMAND...
refused() {
  text=$1
  shift
  expect 3 "$@"
  shows err "$text"
  empty out
  if [ "$(wc -l <err)" = 1 ]; then pass; else fail "more than a line: $(cat err)"; fi
  if ls w.safetensors* >files 2>/dev/null; then fail "left behind: $(cat files)"; else pass; fi
}

for devices in gpu gpu:0-1; do
  expect 0 "devices $devices" "$dgc" compile "$samples/linear.dsl" --devices "$devices" --emit placed -o "named-$devices.dg"
done
same named-gpu.dg named-gpu:0-1.dg
refused 'there is no /gpu:3: this machine has 2 simulated GPUs, /gpu:0 to /gpu:1' 'an unknown GPU' \
  train --devices gpu:0,gpu:3
export DGC_SIMULATED_MEMORY=48000000
hidden=4000
refused 'bytes are wanted, and' 'a full GPU' train --devices gpu:0
hidden=32
unset DGC_SIMULATED_MEMORY
export DGC_SIMULATED_MISSING=cuGraphLaunch
refused 'the CUDA driver is too old: it has no cuGraphLaunch' 'an old driver' train --devices gpu:0
unset DGC_SIMULATED_MISSING
export DGC_SIMULATED_NVRTC=11.1 DGC_CACHE=off
refused 'NVRTC is too old: it is of CUDA 11.1, and dgc needs 11.2 or newer' 'an old NVRTC' train --devices gpu:0
unset DGC_SIMULATED_NVRTC DGC_CACHE
export DGC_SIMULATED_DEVICES=0
refused 'no CUDA device' 'a driver without a device' train --devices gpu:0
export DGC_SIMULATED_DEVICES=2
DGC_CUDA_PATH=/nowhere
refused 'no CUDA driver: libcuda.so.1 cannot be loaded' 'no driver' train --devices gpu:0
# Of several versions the newest that is not too new for the driver: here that is no library at all.
mkdir two
ln -s "$4"/lib* two
ln -s "$4"/libcuda.so.1 two/libnvrtc.so.13
DGC_CUDA_PATH=$PWD/two
expect 0 'NVRTC 13 and a driver of CUDA 12' train --devices gpu:0
export DGC_SIMULATED_DRIVER=13.0
refused 'NVRTC is too old: it is of CUDA 0.0' 'NVRTC 13 and a driver of CUDA 13' train --devices gpu:0
unset DGC_SIMULATED_DRIVER
DGC_CUDA_PATH=$4

# Without any one of its entry points.
for symbol in $(sed -n 's/^\(DRIVER\|NVRTC\|BLAS\)([^,]*, \([A-Za-z0-9_]*\).*/\2/p' "$source/runtime/cuda/syms.def"); do
  case $symbol in
    cublas* | nvrtc*) continue ;; # found by name: these libraries are whole or not there
    cuGetErrorName | cuGetErrorString | cu*) text="the CUDA driver is too old: it has no $symbol" ;;
  esac
  export DGC_SIMULATED_MISSING=$symbol
  refused "$text" "no $symbol" train --devices gpu:0
done
unset DGC_SIMULATED_MISSING
finish
