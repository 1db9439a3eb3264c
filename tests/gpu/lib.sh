# What the tests of GPUs share, beside tests/run/lib.sh. The same tests run on a real GPU, and on simulated ones whose
# folder is a fourth argument.
. "$(dirname "$0")/../run/lib.sh"
if [ -n "$4" ]; then
  export DGC_CUDA_PATH="$4" DGC_SIMULATED_DEVICES=8 DGC_SIMULATED_LEAKS=1
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
