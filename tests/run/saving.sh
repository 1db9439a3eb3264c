#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A save is written by a thread while training goes on: what fails there ends the training and is said, what is slow is
# waited for at the end, and the file is whole at any time. The fourth argument is tests/support/inject.c.
. "$(dirname "$0")/lib.sh"
inject=$4
digits() { echo "train $samples/digits.dsl --rows 0:256 --eval-rows 0:64 --batch 64 --checkpoint $1"; }
injected() {
  what=$1
  shift
  env LD_PRELOAD="$inject" DGC_INJECT="$what" $bounded "$@"
}
# shellcheck disable=SC2046
{
  expect 0 'as ever' "$dgc" $(digits whole.safetensors) --epochs 4 --quiet
  # Each call takes its time: exit code 0 is that of a file that is there.
  for call in disk:1+ fsync:1+ rename:1+; do
    rm -f slow.safetensors
    expect 0 "slow $call" injected $call:slow "$dgc" $(digits slow.safetensors) --epochs 4 --checkpoint-every 1 --quiet
    same whole.safetensors slow.safetensors
  done

  # A name that cannot be had is told before anything is trained, and a link that leads to no file yet stays one.
  mkdir there
  ln -s there/linked.safetensors link.safetensors
  expect 0 'a link' "$dgc" $(digits link.safetensors) --epochs 4 --quiet
  same whole.safetensors there/linked.safetensors
  [ -L link.safetensors ] && pass || fail 'the link is a file now'
  ln -s nowhere/a.safetensors lost.safetensors
  ln -s round.safetensors round.safetensors
  long=$(printf '%0238d' 0).safetensors
  for name in lost.safetensors round.safetensors "$long"; do
    expect 3 "$name" "$dgc" $(digits "$name") --epochs 1000000 --quiet
    grep -q '^error: cannot write' err && pass || fail "$(cat err)"
  done
  for option in checkpoint keep-best receipt trace log log-dir; do
    expect 2 "--$option of no name" "$dgc" $(digits d.safetensors) --$option '' --epochs 1000000 --quiet
    grep -q 'name.* is empty' err && pass || fail "$(cat err)"
  done
  # One that is mounted on its own, as containers have it.
  touch mounted.safetensors file
  if mount --bind file mounted.safetensors 2>/dev/null; then
    expect 3 'a mounted file' "$dgc" $(digits mounted.safetensors) --overwrite --epochs 1000000 --quiet
    shows err 'mount its folder'
    umount mounted.safetensors
  fi

  # The first save never ends, and training goes on all the same.
  env LD_PRELOAD="$inject" DGC_INJECT=fsync:1:hang "$dgc" $(digits hangs.safetensors) --epochs 1000000 >out 2>err &
  job=$!
  until grep -q '^epoch 7/' err out || ! kill -0 $job 2>/dev/null; do sleep 0.05; done
  kill -0 $job 2>/dev/null && pass || { fail 'training does not go on'; cat err; }
  [ -f hangs.safetensors ] && fail 'a file that is not written' || pass
  kill -KILL $job
  wait $job 2>/dev/null

  # One that fails ends the training, which would go on for ever; the file is the last one that did not.
  for call in disk:9+:ENOSPC fsync:9:EIO rename:9+:EIO link:9:EIO; do
    rm -f fails.safetensors
    expect 3 "failing $call" injected $call "$dgc" $(digits fails.safetensors) --epochs 1000000 --checkpoint-every 1 --quiet
    grep -Eq 'error: cannot (write|flush|replace) fails.safetensors' err && pass || fail "$(cat err)"
    expect 0 'it is whole' "$dgc" eval "$samples/digits.dsl" --eval-rows 0:64 --checkpoint fails.safetensors
    ls -A | grep -q tmp && fail "left behind: $(ls -A)" || pass
  done
  # So does the last one.
  rm -f fails.safetensors
  expect 3 'the only one fails' injected fsync:1:EIO "$dgc" $(digits fails.safetensors) --epochs 1 --quiet
  [ -f fails.safetensors ] && fail 'half a file' || pass

  # Who is asked to end does so when it is written.
  rm -f slow.safetensors
  env LD_PRELOAD="$inject" DGC_INJECT=fsync:1+:slow "$dgc" $(digits slow.safetensors) --epochs 1000000 --checkpoint-every 3 \
    >out 2>err &
  job=$!
  until [ -f slow.safetensors ] || ! kill -0 $job 2>/dev/null; do sleep 0.05; done
  kill -TERM $job
  wait $job
  code=$?
  [ $code = 143 ] && pass || { fail "ended with $code"; cat err; }
  step=$(sed -n 's/^note: stopped after step \([0-9]*\), saved.*/\1/p' err)
  expect 0 'as many steps' "$dgc" $(digits steps.safetensors) --steps "${step:-1}" --quiet
  same slow.safetensors steps.safetensors
}
finish
