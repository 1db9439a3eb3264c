#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The world fails: what is no regular file, files that change, signals. One line, the right exit code, nothing lost, and
# nothing half-written.
. "$(dirname "$0")/lib.sh"
model=$samples/digits.dsl
small='--rows 0:256 --eval-rows 0:64 --quiet'

# --- what is no regular file ---

expect 0 train "$dgc" train "$model" $small --steps 2 --checkpoint good.safetensors
mkfifo pipe
mkdir folder
python3 -c 'import socket; socket.socket(socket.AF_UNIX).bind("socket")'
for thing in pipe folder socket /dev/zero; do
  for use in "train $model --data image=$thing --checkpoint new" "train $model --resume $thing" "eval $model --checkpoint $thing" \
    "check $thing" "opt $thing" "verify $thing" "inspect $thing"; do
    expect 1 "$use" within "$dgc" $use
    shows err "cannot "
    # Who waits for a pipe is told so before.
    [ "$(grep -vc ': reading pipe to its end$' err)" = 1 ] && pass || fail "$use: not one line: $(cat err)"
  done
done
printf 'use "./pipe" as p\nmodel m() {\n  input x : f32[B]\n  predict y = x\n}\n' >uses.dsl
expect 1 'a pipe that is used' within "$dgc" check uses.dsl
shows err 'it is a pipe'
expect 3 'a pipe that nobody reads' within "$dgc" compile "$model" -o pipe
shows err 'nothing reads from it'
expect 3 'a socket to write to' within "$dgc" compile "$model" -o socket
# It is open for reading before anybody writes, and holds all of it.
expect 0 'to a file' "$dgc" compile "$samples/linear.dsl" -o file.dg
exec 3<>pipe
expect 0 'a pipe that is read' within "$dgc" compile "$samples/linear.dsl" -o pipe
within head -c "$(wc -c <file.dg)" <&3 >read.dg
exec 3<&-
same read.dg file.dg
within "$dgc" check - <"$samples/linear.dsl" >out 2>err && pass || fail 'a model from standard input'
cat "$samples/linear.dsl" | within "$dgc" check - >out 2>err && pass || fail 'a model from a pipe as standard input'

# --- folders for dumps ---

: >occupied
expect 3 'dumps into a file' "$dgc" train "$model" $small --steps 1 --checkpoint never.safetensors --dump-dir occupied
shows err 'cannot write to occupied: Not a directory'
[ ! -e never.safetensors ] && pass || fail 'work was done before the folder of the dumps was looked at'
expect 3 'dumps to nowhere' "$dgc" check "$model" --dump-dir missing/dumps
mkdir dumps
expect 0 'dumps' "$dgc" check "$samples/linear.dsl" --dump-dir dumps
first=$(ls dumps | head -1)
rm "dumps/$first"
mkfifo "dumps/$first"
expect 3 'a pipe in the place of a dump' within "$dgc" check "$samples/linear.dsl" --dump-dir dumps
shows err "cannot write dumps/$first"

finish
