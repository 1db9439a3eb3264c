#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The same processes over any MPI that has the standard's binary interface, here MPICH from PyPI, which dgc was not built
# with: the checkpoint is that of one process, and of Open MPI.
. "$(dirname "$0")/lib.sh"
root=$(dirname "$dgc")
digits="$samples/digits.dsl --rows 0:512 --eval-rows 0:128 --batch 64 --towers 4 --steps 5 --verify-each --quiet"

# Without any: what to install.
mkdir bare
cp -P "$root"/dgc "$root"/libdgc.so* bare/ 2>/dev/null
# shellcheck disable=SC2086
expect 3 'no MPI' env -u LD_LIBRARY_PATH PMI_RANK=0 PMI_SIZE=2 bare/dgc train $digits
shows err 'error: 2 processes were started, and there is nothing by which they could reach each other: '
shows err 'help: install MPI (Debian: openmpi-bin, and libopenmpi-dev to build dgc with it), or one that has'
rm -rf bare

python=$("$source/tools/oracles.sh" --find 2>why)
mpich=$(dirname "$python")
if [ "$failed" = 0 ] && { [ -z "$python" ] || [ ! -x "$mpich/mpiexec.hydra" ]; }; then
  echo "SKIP: there is no MPICH 5: $(cat why)"
  exit 77
fi
if [ "$failed" = 0 ] && [ ! -f "$root/dgc-mpi-abi.so" ]; then
  echo 'SKIP: dgc was built without MPI'
  exit 77
fi

# What dgc declares itself is what MPICH's header declares: the object code is the same.
mkdir header
echo '#include <mpi_abi.h>' >header/mpi.h
compiled() { ${CC:-cc} -std=gnu17 -O2 -fPIC -Wall -Werror -I"$source" "$@" -c "$source/runtime/mpi/mpi.c"; }
expect 0 'with its own header' compiled -I"$source/runtime/mpi/abi" -o own.o
expect 0 'with the header of MPICH' compiled -Iheader -I"$mpich/../include" -o mpich.o
same own.o mpich.o

processes() {
  n=$1
  shift
  $bounded "$mpich/mpiexec.hydra" -n "$n" "$@"
}
# shellcheck disable=SC2086
{
  together 2 $digits
  together 4 $digits
  together 3 $digits --cluster 'worker=2;ps=1' --strategy parameter_server --min-part-bytes 20000
  together 3 "$samples/words.dsl" --batch 32 --towers 4 --steps 4 --quiet
  together 2 "$samples/lenet.dsl" --rows 0:64 --eval-rows 0:64 --batch 32 --towers 4 --steps 2 --quiet
  expect 0 'one process' "$dgc" train $digits --overwrite --checkpoint one.safetensors
  expect 0 'through a shell' processes 2 sh -c '"$0" "$@"; exit' "$dgc" train $digits --overwrite --checkpoint several.safetensors
  same one.safetensors several.safetensors
  expect 0 'dgc launch' env PATH="$mpich:$PATH" "$dgc" launch -n 2 -- train $digits --overwrite --checkpoint several.safetensors
  same one.safetensors several.safetensors
  expect 0 'eval' processes 2 "$dgc" eval "$samples/digits.dsl" --eval-rows 0:100 --checkpoint one.safetensors --json
  cp out several.out
  expect 0 'eval of one' "$dgc" eval "$samples/digits.dsl" --eval-rows 0:100 --checkpoint one.safetensors --json
  same_results several.out out
  expect 0 'an evaluator' processes 3 "$dgc" train $digits --cluster 'worker=2;evaluator=1' --overwrite --checkpoint several.safetensors --json
  same one.safetensors several.safetensors
  shows out "$("$dgc" eval "$samples/digits.dsl" --eval-rows 0:128 --checkpoint one.safetensors --json | sed 's/^{/{"step":5,/')"
  expect 2 'too few' processes 2 "$dgc" train $digits --cluster worker=3
  shows err 'cluster: 3 tasks, and 2 processes were started'
  if command -v mpirun >/dev/null && [ -f "$root/dgc-mpi.so" ]; then
    export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1
    expect 0 'Open MPI' $bounded mpirun -n 2 "$dgc" train $digits --overwrite --checkpoint several.safetensors
    same one.safetensors several.safetensors
  fi
}
finish
