#!/bin/sh
# What is learned is kept: a checkpoint is tried before the first step, is not replaced by chance, and what is about to be
# lost, or is done already, is said.
. "$(dirname "$0")/lib.sh"
model=$samples/digits.dsl

# train ARGUMENTS...
train() {
  "$dgc" train "$model" --rows 0:256 --eval-rows 0:64 --quiet "$@"
}
# left NAMES: what is in the folder, but for the files of this script.
left() {
  found=$(find . -mindepth 1 ! -name out ! -name err ! -name kept ! -name '*.dsl' | sort | tr '\n' ' ')
  [ "$found" = "$1" ] && pass || fail "there is: $found"
}

# Tried before the first step, not when there is something to lose; and nothing is left behind.
early() {
  expect 3 "$1" "$dgc" train "$model" --rows 0:256 --eval-rows 0:64 --epochs 2 --checkpoint "$2"
  shows err "cannot write $2: $3"
  grep -q '^epoch' err && fail "$1: an epoch was trained" || pass
}
early 'no such folder' no/a.safetensors 'No such file or directory'
mkdir folder
early 'a folder' folder 'Is a directory'
if [ "$(id -u)" != 0 ]; then
  chmod -w folder
  early 'a folder that is read-only' folder/a.safetensors 'Permission denied'
  chmod +w folder
fi
left './folder '
# Without touching what is there, and without leaving anything when the training itself cannot begin.
echo mine >a.safetensors
touch -d '2001-02-03 04:05:06' a.safetensors
cp -p a.safetensors kept
expect 1 'no such rows' train --rows 0:99999999 --overwrite --checkpoint a.safetensors
same a.safetensors kept
[ ! a.safetensors -nt kept ] && pass || fail 'a file that was tried is newer'
expect 1 'no such rows' train --rows 0:99999999 --checkpoint b.safetensors
left './a.safetensors ./folder '
rm a.safetensors
rmdir folder

# Not replaced by chance: whatever is there, unless the training goes on from it, or is told to.
expect 0 'the first' train --steps 2 --checkpoint a.safetensors
empty err
cp a.safetensors kept
refused() {
  expect 2 "$@"
  shows err 'a.safetensors is there already'
  shows err 'help: --resume goes on from it, --overwrite begins anew'
  empty out
  same a.safetensors kept
}
refused 'again' train --steps 2 --checkpoint a.safetensors
refused 'again, saving at once' train --steps 2 --checkpoint a.safetensors --checkpoint-every 1
refused 'no steps' train --steps 0 --checkpoint a.safetensors
ln -s a.safetensors link.safetensors
expect 2 'by a link' train --steps 2 --checkpoint link.safetensors
shows err 'link.safetensors is there already'
cp a.safetensors other.safetensors
refused 'going on from another file' train --steps 3 --resume=other.safetensors --checkpoint a.safetensors
expect 0 'going on from a link to it' train --steps 3 --resume=link.safetensors --checkpoint ./a.safetensors
expect 0 'going on' train --steps 4 --resume --checkpoint a.safetensors
expect 0 inspect "$dgc" inspect a.safetensors
shows out '# step: 4'
expect 0 'begin anew' train --steps 2 --overwrite --checkpoint a.safetensors
same a.safetensors kept
expect 0 'begin anew' train --steps 3 --overwrite --resume=other.safetensors --checkpoint a.safetensors
expect 0 inspect "$dgc" inspect a.safetensors
shows out '# step: 3'
echo notes >a.safetensors
cp a.safetensors kept
refused 'what is no checkpoint' train --steps 2 --checkpoint a.safetensors
# Nothing is lost with what holds nothing.
: >a.safetensors
expect 0 'an empty file' train --steps 2 --batch 64 --checkpoint a.safetensors
expect 0 'a device' train --steps 2 --checkpoint /dev/null
expect 0 'not there yet' train --steps 2 --resume --checkpoint new.safetensors
shows err 'note: no new.safetensors yet'

# What is done already is said, and only then.
done_already() {
  text=$1
  shift
  expect 0 "$*" train --checkpoint a.safetensors --resume "$@"
  shows err "note: nothing is left to do: $text"
  shows out accuracy
}
done_already '2 steps are done, and --steps 2 asks for no more' --steps 2
done_already '2 steps are done, and --steps 1 asks for no more' --steps 1
expect 0 'the rest of the epoch' train --checkpoint a.safetensors --resume
grep -q 'nothing is left' err && fail "$(cat err)" || pass
done_already '1 epoch is done, and --epochs 1 (the default) asks for no more'
done_already '1 epoch is done, and --epochs 0 asks for no more' --epochs 0
expect 0 'more' train --checkpoint a.safetensors --resume --epochs 2
empty err

# On a terminal, what will be lost is said before it is learned.
cat >terminal.py <<'PYTHON'
import os, pty, sys
pid, terminal = pty.fork()
if pid == 0:
    os.execv(sys.argv[1], sys.argv[1:])
text = b""
while True:
    try:
        read = os.read(terminal, 4096)
    except OSError:  # how Linux tells the end
        break
    if not read:
        break
    text += read
print(text.decode())
sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
PYTHON
lost='note: there is no --checkpoint FILE: what is learned is lost at the end'
rm -f a.safetensors
expect 0 'on a terminal' python3 terminal.py "$dgc" train "$model" --rows 0:256 --eval-rows 0:64 --steps 2
shows out "$lost"
expect 0 'with a file' python3 terminal.py "$dgc" train "$model" --rows 0:256 --eval-rows 0:64 --steps 2 --checkpoint a.safetensors
grep -qF "$lost" out && fail "$(cat out)" || pass
expect 0 'no terminal' "$dgc" train "$model" --rows 0:256 --eval-rows 0:64 --steps 2
grep -qF "$lost" err && fail "$(cat err)" || pass
finish
