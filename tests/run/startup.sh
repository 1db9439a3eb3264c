#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# LLVM is loaded when kernels are compiled that the cache does not have, and not before, and without passes that only take
# time; what is said when it cannot be loaded. Nothing is looked for that nobody has.
. "$(dirname "$0")/lib.sh"

# loads WHAT COMMAND...: the libraries that the dynamic linker opens while a command runs end up in ./files.
loads() {
  what=$1
  shift
  rm -f linker.*
  expect 0 "$what" env LD_DEBUG=files,libs LD_DEBUG_OUTPUT=linker "$@"
  cat linker.* | grep -o 'file=[^ ]*' >files
  cat linker.* | grep -o 'find library=[^ ]*' >sought
}
without_llvm() {
  loads "$@"
  if grep libLLVM files; then fail "$1 loads LLVM"; else pass; fi
}

loads 'any program' cat /dev/null
if ! grep -q libc files; then
  echo "this system does not tell what it loads: skipped"
  exit 77
fi
without_llvm help "$dgc" --help
without_llvm check "$dgc" check "$samples/digits.dsl"
without_llvm compile "$dgc" compile "$samples/digits.dsl" --devices cpu:0-7 --emit placed -o x.dg

if "$dgc" --version --verbose | grep -q LLVM; then
  DGC_CACHE=off loads train "$dgc" train "$samples/digits.dsl" --steps 1 --quiet
  if grep -q libLLVM files; then pass; else fail 'training without a cache does not load LLVM'; fi

  if [ "$(uname -m)" = x86_64 ]; then
    # Of LLVM's passes those are left out that make no kernel faster: a start would wait for them. Five are not there; the
    # scheduler is, and changes nothing. So is X86 Domain Reassignment: it changes no kernel when it is on, either, so
    # that nothing tells the two apart.
    expect 0 'passes of LLVM' env DGC_CACHE=off DGC_LLVM_OPTIONS=-debug-pass=Executions "$dgc" train "$samples/digits.dsl" --steps 1 --quiet
    grep -q "Executing Pass '.*Instruction Selection'" err && pass || fail 'the passes are not listed'
    grep -q "Made Modification '.*Instruction Selection'" err && pass || fail 'what they change is not listed'
    if grep -E "Pass '(Loop Strength Reduction|Constant Hoisting|Early If.Conver.*|(Early )?Tail Duplication)'" err ||
      grep "Made Modification 'Machine Instruction Scheduler'" err; then
      fail 'LLVM has passes that take time for nothing'
    else
      pass
    fi
  fi

  if [ "$(uname -m)" = x86_64 ]; then # where cached code needs no linker
    XDG_CACHE_HOME=$work/cache expect 0 'cold cache' "$dgc" train "$samples/digits.dsl" --steps 1 --quiet
    mv out cold
    XDG_CACHE_HOME=$work/cache without_llvm 'warm cache' "$dgc" train "$samples/digits.dsl" --steps 1 --quiet
    same out cold
    # oneDNN computes convolutions without a fused multiply-add, and asks VTune to look on only where that is wanted.
    export DGC_CPU=nehalem
    XDG_CACHE_HOME=$work/cache loads 'without VTune' "$dgc" train "$samples/resnet.dsl" --rows 0:4 --steps 1 --quiet
    if grep -q libJitPI sought; then fail 'a start looks for a library of VTune'; else pass; fi
    XDG_CACHE_HOME=$work/cache ONEDNN_JIT_PROFILE=1 loads 'for VTune' "$dgc" train "$samples/resnet.dsl" --rows 0:4 --steps 1 --quiet
    if grep -q libJitPI sought; then pass; else fail 'VTune is not asked for'; fi
    unset DGC_CPU
  fi

  export DGC_CACHE=off DGC_LLVM=/nowhere/libLLVM.so
  expect 3 'train without LLVM' "$dgc" train "$samples/digits.dsl" --steps 1 --quiet
  shows err "LLVM cannot be loaded: $DGC_LLVM"
  [ "$(wc -l <err)" = 1 ] && pass || fail 'more than one line'
  # Kernels of first values and of steps are compiled together: both are planned before the first needs LLVM.
  expect 3 'planned together' "$dgc" train "$samples/digits.dsl" --steps 1 --quiet --time-passes
  [ "$(cat out err | grep -c '^fuse ')" = 2 ] && pass || fail 'steps are not planned before first values need LLVM'
  expect 3 'emit without LLVM' "$dgc" compile "$samples/digits.dsl" --emit llvm
  shows err "LLVM cannot be loaded: $DGC_LLVM"
  empty out
  expect 0 'interpreter without LLVM' "$dgc" train "$samples/digits.dsl" --steps 1 --quiet --backend interp
  for library in $(ldd "$dgc" | grep -o '/[^ ]*libz[^ ]*'); do
    DGC_LLVM=$library expect 3 'another library' "$dgc" train "$samples/digits.dsl" --steps 1 --quiet
    shows err 'undefined symbol: LLVM'
  done
fi
finish
