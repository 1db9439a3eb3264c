#!/bin/sh
# Little memory: every command ends with its whole result, or with exit code 3 and one error. Kernels are compiled anew, and
# come from the cache.
. "$(dirname "$0")/lib.sh"
cp -r "$samples" there
export XDG_CACHE_HOME="$work/cache"
small='--rows 0:256 --eval-rows 0:64 --quiet'
expect 0 train "$dgc" train there/digits.dsl $small --steps 2 --checkpoint good.safetensors
cp out good.out
expect 0 eval "$dgc" eval there/digits.dsl --eval-rows 0:64 --checkpoint good.safetensors
cp out eval.out

# limited MEGABYTES COMMAND...
limited() {
  limit=$1
  shift
  (
    ulimit -c 0
    ulimit -v $((limit * 1024))
    exec "$@"
  ) >out 2>err </dev/null
  got=$?
  errors=$(grep -c 'error: ' err)
  case $got.$errors in
  0.0 | 3.1) pass ;;
  *)
    fail "with $limit MB: exit code $got and $errors errors: $*"
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
  [ $got = 0 ] && pass || fail "with $limit MB there is enough"
done
finish
