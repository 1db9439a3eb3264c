#!/bin/sh
# What fails on simulated GPUs: each kind of call at some times. One line says what failed and where, the exit code is 3,
# nothing is written, and everything that was made is destroyed: the simulation ends with 66 if it is not.
. "$(dirname "$0")/lib.sh"
gpus
export DGC_SIMULATED_DEVICES=2

hidden=32
train() {
  rm -f w.safetensors*
  timeout 300 "$dgc" train "$samples/digits.dsl" --rows 0:128 --eval-rows 0:32 --batch 32 --steps 4 --quiet \
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

# Every entry point fails at its first, second, middle and last call of a short training. A first run counts the calls.
# Exit code 3, one line that names the call, and the file is the old one, or, when only the evaluation was left, the
# whole new one. Some failures leave another way, or come when all has been said: then nothing shows at all.
#
# One thread makes all calls in an order that repeats, whatever else the machine does. Of several threads any may be the
# first to tell of a device that is lost: there, the line names some call.
another_way='cuCtxEnablePeerAccess cuDeviceCanAccessPeer cuStreamBeginCapture cuStreamEndCapture
  cuGraphInstantiateWithFlags cuDriverGetVersion cuDeviceGetName cuDeviceTotalMem'
too_late='cuMemFree cuMemFreeHost cuEventDestroy cuStreamDestroy cuModuleUnload cuGraphDestroy cuGraphExecDestroy
  cublasDestroy_v2'
# What these do not give up, nobody can.
leaks='cuDevicePrimaryCtxRelease nvrtcDestroyProgram'
# may_go_well CALL NTH: a failed attempt to record leaves another way; the host asks as often as it takes; what the list
# of devices shows is asked for at the end.
may_go_well() {
  case " $(echo $another_way $too_late) " in *" $1 "*) return 0 ;; esac
  case $1 in
    cuCtxSetCurrent | cuEventRecord | cuStreamWaitEvent | cuLaunchKernel | cuMemcpy*Async | cublasGemm*)
      [ "$recorded" = 1 ] ;;
    cuStreamSynchronize | cuEventQuery) true ;;
    cuDeviceGet | cuDeviceGetCount) [ "$2" -gt 2 ] ;;
    cuDeviceGetAttribute) [ "$2" -gt 4 ] ;;
    *) false ;;
  esac
}
# fails NAME NTH [OTHERS]: these fail as well
fails() {
  export DGC_SIMULATED_FAIL=${3:+$3,}$1:$2
  what="$1:$2: $arguments"
  rm -f w.safetensors*
  cp old w.safetensors
  again $arguments >out 2>err
  got=$?
  ls w.safetensors* >files
  case $got in
    0) if may_go_well $1 $2 && [ ! -s err ] && [ -s out ]; then pass; else fail "$what: goes well: $(cat err)"; fi ;;
    3)
      if [ "$(wc -l <err)" = 1 ] && grep -Eq "^error: .*(${any_call:-$1}|no memory for)" err; then pass; else
        fail "$what: $(cat err)"
      fi
      if [ "$(cat files)" = w.safetensors ] && { cmp -s w.safetensors old || cmp -s w.safetensors new; }; then pass; else
        fail "$what: written: $(cat files)"
      fi
      ;;
    *) fail "$what: exit code $got: $(cat err)" ;;
  esac
  unset DGC_SIMULATED_FAIL
}
again() {
  timeout 300 "$dgc" train "$samples/digits.dsl" --rows 0:128 --eval-rows 0:32 --batch 32 --steps 4 --quiet \
    --set hidden=32 --overwrite --checkpoint w.safetensors --threads $threads "$@"
}
threads=1
any_call=
# each_call PATTERN ARGUMENTS...
each_call() {
  pattern=$1
  shift
  arguments=$*
  again "$@" >out 2>err # compiles
  mv w.safetensors new
  echo old >old
  rm -f counts
  DGC_SIMULATED_COUNT=$PWD/counts again "$@" >out 2>err
  recorded=$(grep -c '^cuGraphLaunch' counts)
  grep -E "$pattern" counts >list
  while read -r name calls; do
    case " $leaks " in *" $name "*) continue ;; esac
    for nth in $(printf '%s\n' 1 2 $(((calls + 1) / 2)) "$calls" | sort -nu); do
      if [ "$nth" -le "$calls" ]; then fails "$name" "$nth"; fi
    done
  done <list
}
each_call '^cu' --devices gpu:0-1
# Wherever a launch fails, it is named: in a recording, too, which fails with it. If the run in its place fails for a
# reason of its own, that is named instead.
calls=$(sed -n 's/^cuLaunchKernel //p' counts)
for nth in $(seq 3 5 "$calls"); do fails cuLaunchKernel "$nth"; done
fails cuLaunchKernel $((calls + 1)) cuGraphInstantiateWithFlags:1
if [ "$got" = 3 ]; then pass; else fail "the run in place of a recording goes well"; fi
each_call '^cu(Memcpy|Event|Stream|MemHost)' --devices cpu:0,gpu:0
export DGC_SIMULATED_PEER=0
each_call '^cu(Memcpy|Event|Stream|MemHost)' --devices gpu:0-1
unset DGC_SIMULATED_PEER
threads=2
any_call='cu(blas)?[A-Z][A-Za-z]+ on /gpu:[01]'
each_call '^cu(Memcpy|Event|Stream|Launch)' --devices gpu:0-1
each_call '^cu(Memcpy|Event|Stream|Launch)' --devices cpu:0,gpu:0
threads=1
any_call=
export DGC_CACHE=off
each_call '^nvrtc' --devices gpu:0
finish
