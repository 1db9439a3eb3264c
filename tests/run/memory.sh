#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Little memory: every command ends with its whole result, or with exit code 3 and one error. Kernels are compiled anew, and
# come from the cache. A small stack is enough. The fourth argument is tests/support/inject.c.
. "$(dirname "$0")/lib.sh"
inject=$4
cp -r "$samples" there
export XDG_CACHE_HOME="$work/cache"
small='--rows 0:256 --eval-rows 0:64 --quiet'
expect 0 train "$dgc" train there/digits.dsl $small --steps 2 --checkpoint good.safetensors
cp out good.out
expect 0 eval "$dgc" eval there/digits.dsl --eval-rows 0:64 --checkpoint good.safetensors
cp out eval.out

# limited MEGABYTES COMMAND..., limited_kb KILOBYTES COMMAND...
limited() {
  megabytes=$1
  shift
  limited_kb $((megabytes * 1024)) "$@"
}
limited_kb() {
  limit=$1
  shift
  (
    ulimit -c 0
    ulimit -v "$limit"
    exec "$@"
  ) >out 2>err </dev/null
  got=$?
  errors=$(grep -c 'error: ' err)
  case $got.$errors in
  0.0 | 3.1) pass ;;
  *)
    fail "with $limit KB: exit code $got and $errors errors: $*"
    head -5 err
    ;;
  esac
  return $got
}

for cache in off on; do
  export DGC_CACHE=$cache
  for limit in 60 66 72 78 84 90 100 120 150 180 210 225 240 255 270 290 305 320 335 400; do
    # Sources are parsed and graphs placed in less than this.
    limited $limit "$dgc" check there/digits.dsl
    [ $cache = on ] || limited $limit "$dgc" compile there/digits.dsl --emit llvm
    rm -f c.safetensors
    if limited $limit "$dgc" train there/digits.dsl $small --steps 2 --checkpoint c.safetensors; then
      same c.safetensors good.safetensors
      same out good.out
    elif [ -e c.safetensors ]; then
      same c.safetensors good.safetensors
    fi
    limited $limit "$dgc" eval there/digits.dsl --eval-rows 0:64 --checkpoint good.safetensors && same out eval.out
  done
  [ $got = 0 ] && pass || fail "with $megabytes MB there is enough"
done

# Convolutions and narrow products; without a fused multiply-add those are oneDNN's, which does not look at each piece of memory that it asks for: from
# the least with which a step is done, a little less at a time. Kernels come from the cache, so that this is what takes the most.
cat >there/narrow.dsl <<'END'
model narrow() {
  input x : f32[B, 2000000]
  var v : f32[3, 4] = glorot_uniform()
  var w : f32[4, 2] = glorot_uniform()
  train mean(square(x[:, 0:3] @ v @ w)) with sgd(rate = 0.1)
}
END
cat >there/small.dsl <<'END'
use nn
model small() {
  input x : f32[B, 160, 160, 16]
  train mean(square(nn.conv2d(x, 16))) with sgd(rate = 0.1)
}
END
library= # where it is reached: as a processor without a fused multiply-add
if [ "$(uname -m)" = x86_64 ] && "$dgc" --version --verbose | grep -q LLVM; then library=library; fi
for model in small narrow $library; do
  if [ $model = library ]; then
    mv there/small.dsl there/library.dsl
    export DGC_CPU=nehalem
  fi
  step() { limited_kb "$1" "$dgc" bench there/$model.dsl --batch 4 --steps 1 --threads 1 --devices cpu:0; }
  expect 0 "$model into the cache" env DGC_CACHE=on "$dgc" bench there/$model.dsl --batch 4 --steps 1 --threads 1 --devices cpu:0
  too_little=40960 least=614400
  while [ $((least - too_little)) -gt 256 ]; do
    middle=$(((least + too_little) / 2))
    if step $middle; then least=$middle; else too_little=$middle; fi
  done
  for less in 1 2 3 4 5 6 7 8 10 12 14 16 20 24 28 32; do step $((least - less * 512)); done
done
unset DGC_CPU

# On a stack of 64 KB: files that are read in pieces (whole, packed, of another type, compressed), and what is computed.
little() { (
  ulimit -s 64
  exec "$@"
); }
python3 - "$work" <<'END'
import gzip, os, struct, sys, zipfile
os.chdir(sys.argv[1])
rows, axes = 64, (28, 28)
def npy(kind, shape, data):
    head = ("{'descr': '%s', 'fortran_order': False, 'shape': (%s), }" % (kind, ", ".join(map(str, shape)) + ",")).encode()
    head += b" " * (63 - (len(head) + 10) % 64) + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head + data
image = npy("|u1", (rows, *axes), bytes(i * 7 % 256 for i in range(rows * 784)))
label = npy("<i8", (rows,), struct.pack("<64q", *[i % 10 for i in range(rows)]))
for name, method in (("stored", zipfile.ZIP_STORED), ("packed", zipfile.ZIP_DEFLATED)):
    with zipfile.ZipFile(name + ".npz", "w", method) as z:
        z.writestr("image.npy", image)
        z.writestr("label.npy", label)
with gzip.open("image.npy.gz", "wb") as f:
    f.write(image)
with open("label.npy", "wb") as f:
    f.write(label)
END
for files in 'image=stored.npz:image label=stored.npz:label' 'image=packed.npz:image label=packed.npz:label' \
  'image=image.npy.gz label=label.npy'; do
  set -- $files
  expect 0 "$files, a small stack" little "$dgc" train there/digits.dsl --data "$1" --data "$2" --eval-data "$1" --eval-data "$2" \
    --batch 32 --steps 2 --quiet --overwrite --checkpoint c.safetensors
  for verb in eval 'predict --output probability=p.npy'; do
    # shellcheck disable=SC2086
    expect 0 "$verb, a small stack" little "$dgc" $verb there/digits.dsl --eval-data "$1" --eval-data "$2" --batch 32 \
      --checkpoint c.safetensors
  done
done

# Libraries alone find none: as LLVM is loaded, which begins at a hundred requests or so, and as it works.
for request in 80 100 101 102 110 130 160 200 400 700 1000 2000 4000 8000; do
  expect 3 "none from request $request on" env LD_PRELOAD="$inject" DGC_INJECT="foreign:$request+:ENOMEM" DGC_CACHE=off "$dgc" eval \
    there/digits.dsl --eval-rows 0:64 --checkpoint good.safetensors
  tail -n 1 err | grep -q '^error: .*memory' && pass || fail "request $request: $(cat err)"
done
finish
