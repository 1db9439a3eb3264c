# SPDX-License-Identifier: Apache-2.0
# What the tests of processes share, beside lib.sh: Open MPI, which dgc was built with, or 77.
root=$(dirname "$dgc")
if ! command -v mpirun >/dev/null || [ ! -f "$root/dgc-mpi.so" ]; then
  echo 'SKIP: MPI is not installed, or was not when dgc was built'
  exit 77
fi
# Open MPI: as root, and more processes than cores, as in containers; all of them here.
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1
export OMPI_MCA_btl=self,vader OMPI_MCA_plm_rsh_agent=/bin/false
# Containers may refuse to let a process read another's memory.
export OMPI_MCA_btl_vader_single_copy_mechanism=none
if ! timeout 60 mpirun -n 2 true >why 2>&1 </dev/null; then
  echo 'SKIP: mpirun does not start processes here:'
  head -20 why
  exit 77
fi
# For a test that hangs.
processes() {
  n=$1
  shift
  $bounded mpirun -n "$n" "$@"
}
# count_model [STATEMENT]: count.dsl, whose updates are whole numbers, which add up to the same in any order.
count_model() {
  cat >count.dsl <<END
model count {
  input x : f64[B, 3]
  var w : f64[3, 1] = zeros()
  state rows : f64[] = 0
  rows += B
  train sum(x @ w) with sgd(rate = 1.0)
  ${1-}
}
END
}
