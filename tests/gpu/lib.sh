# SPDX-License-Identifier: Apache-2.0
# What the tests of GPUs share, beside tests/run/lib.sh. The same tests run on a real GPU, and on simulated ones whose
# folder is a fourth argument.
. "$(dirname "$0")/../run/lib.sh"
simulated=$4
if [ -n "$simulated" ]; then
  export DGC_CUDA_PATH="$simulated" DGC_SIMULATED_DEVICES=8 DGC_SIMULATED_LEAKS=1
fi

# gpus: how many there are; 77 ends the test where there are none.
gpus() {
  if ! "$dgc" devices >devices 2>&1; then
    cat devices
    exit 1
  fi
  count=$(grep -c '^/gpu:' devices)
  if [ "$count" = 0 ]; then
    echo "SKIP: no GPU"
    cat devices
    exit 77
  fi
  echo "$count GPUs: $(grep -m 1 '^/gpu:' devices)"
}

# small MODEL: from here on `models` has a smaller one, where GPUs are simulated: of lenet with fewer filters, of words with fewer
# letters. A gradient of a filter, or of a row of a table, is a sum of all threads of a block, which a simulated GPU takes in turn,
# as many times as there are weights, or rows that are named.
small() {
  models=$samples
  [ -n "$simulated" ] || return 0
  case $1 in
  lenet) less='s/conv2d(x, 6,/conv2d(x, 2,/; s/conv2d(c1, 16,/conv2d(c1, 4,/' ;;
  words) less='s/2:47/2:11/; s/0:44/0:8/; s/1:45/1:9/' ;;
  esac
  sed "$less" "$samples/$1.dsl" >"$1.dsl"
  if cmp -s "$samples/$1.dsl" "$1.dsl"; then fail "$1 is as large as it was"; else models=$PWD; fi
}
