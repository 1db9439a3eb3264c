#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Each kind of call of simulated GPUs fails at some times: of one host thread, or of several where the fifth argument is
# `threads`. What was made is destroyed: the simulation ends with 66 if it is not.
. "$(dirname "$0")/lib.sh"
gpus
export DGC_SIMULATED_DEVICES=2

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
    cuMemHostAlloc) [ -n "$batches_pinned" ] && cmp -s w.safetensors new ;; # the loader has memory of its own
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
  $bounded "$dgc" train $training --eval-rows 0:32 --quiet --overwrite --checkpoint w.safetensors --threads $threads "$@"
}
training="$samples/digits.dsl --rows 0:128 --batch 32 --steps 4 --set hidden=32"
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

if [ "$5" = threads ]; then
  threads=2
  any_call='cu(blas)?[A-Z][A-Za-z]+ on /gpu:[01]'
  each_call '^cu(Memcpy|Event|Stream|Launch)' --devices gpu:0-1
  each_call '^cu(Memcpy|Event|Stream|Launch)' --devices cpu:0,gpu:0
  finish
fi

threads=1
any_call=
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
# What is large: a variable that goes to the device in pieces, and batches that lie in memory which is pinned for them.
cat >big.dsl <<'EOF'
use nn
model big {
  input image : u8[B, 28, 28]
  input label : u8[B]
  x      = flatten(cast(image, f32) / 255)
  logits = nn.dense(x, units = 10) + nn.embedding(label, 30000, 10)
  loss   = softmax_cross_entropy(logits, label)
  train  mean(loss) with sgd(rate = 0.1)
  metric accuracy = mean(correct(logits, label))
}
EOF
training='big.dsl --rows 0:256 --batch 128'
for kind in data:train eval-data:test; do
  files="$samples/data/${kind#*:}"
  training="$training --${kind%:*} image=$files-images.idx --${kind%:*} label=$files-labels.idx"
done
again --devices gpu:0 --steps 2 >out 2>err
mv w.safetensors first.safetensors
batches_pinned=1
each_call '^cu(Mem|Event|StreamW|StreamS)' --devices gpu:0 --resume first.safetensors --steps 4
for call in cuMemHostAlloc cuMemAlloc cuEventCreate cuMemcpyAsync cuEventRecord cuStreamWaitEvent; do
  for nth in $(seq 3 "$(sed -n "s/^$call //p" counts)"); do fails $call "$nth"; done
done
batches_pinned=
training="$samples/digits.dsl --rows 0:128 --batch 32 --steps 4 --set hidden=32"
export DGC_CACHE=off
each_call '^nvrtc' --devices gpu:0
finish
