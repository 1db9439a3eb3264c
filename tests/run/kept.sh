#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
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
# By time: none is due in an hour; each second one is.
rm -f hour.safetensors second.safetensors
expect 0 'every hour' train --steps 2 --checkpoint hour.safetensors --checkpoint-every 1h
for wrong in 0s s 1d -1m 1.5h ''; do expect 2 "every '$wrong'" train --steps 2 --checkpoint hour.safetensors --checkpoint-every "$wrong"; done
"$dgc" train "$model" --quiet --epochs 1000000 --checkpoint second.safetensors --checkpoint-every 1s >out 2>err &
job=$!
until [ -f second.safetensors ] || ! kill -0 $job 2>/dev/null; do sleep 0.1; done
kill -0 $job 2>/dev/null && pass || fail 'nothing is saved each second'
kill -TERM $job
wait $job
shows err 'saved: --resume second.safetensors goes on from there'
# In the middle of an epoch, too: this one has a thousand steps of a large model.
rm -f second.safetensors
"$dgc" train "$model" --set hidden=8192 --batch 1 --rows 0:1000 --eval-rows 0:64 --quiet --epochs 100 --checkpoint second.safetensors --checkpoint-every 1s >out 2>err &
job=$!
until [ -f second.safetensors ] || ! kill -0 $job 2>/dev/null; do sleep 0.1; done
"$dgc" inspect second.safetensors >saved
kill -KILL $job
wait $job
shows saved '# epoch: 0'
rm -f hour.safetensors second.safetensors
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

# What another training has written since the file was read is not replaced by what was read.
expect 0 'a file to go on from' train --rows 0:256 --steps 2 --checkpoint passed.safetensors
cat >passed.call <<PYTHON
import subprocess
for option, value in ((b"rows", b"0:256"), (b"checkpoint", b"passed.safetensors"), (b"steps", b"6")):
    call("set", option, value)
call("load", b"$model")
call("restore", b"passed.safetensors")
subprocess.run(["$dgc", "train", "$model", "--rows", "0:256", "--steps", "4", "--resume", "--checkpoint", "passed.safetensors"], check=True)
text = call("train", want=2)
assert "passed.safetensors has been written by another program since this training read it" in text, text
call("restore", b"passed.safetensors")
call("train")
call("set", b"steps", b"8")
call("save", b"passed.safetensors")
call("train")
PYTHON
if program 'a file that has been passed on' passed.call; then
  expect 0 inspect "$dgc" inspect passed.safetensors
  shows out '# step: 8'
fi

# Of several that are begun together on one file, one trains, and the others say which process does. Who reads is not
# disturbed, and of who is killed nothing is left.
"$dgc" train "$model" --rows 0:256 --quiet --epochs 1000000 --overwrite --checkpoint busy.safetensors >1.out 2>1.err &
one=$!
"$dgc" train "$model" --rows 0:256 --quiet --epochs 1000000 --overwrite --checkpoint busy.safetensors >2.out 2>2.err &
two=$!
while kill -0 $one 2>/dev/null && kill -0 $two 2>/dev/null; do sleep 0.1; done
winner=$one loser=$two err=2.err
kill -0 $one 2>/dev/null || winner=$two loser=$one err=1.err
kill -0 $winner 2>/dev/null && pass || fail "neither trains: $(cat 1.err 2.err)"
wait $loser
[ $? = 2 ] && pass || fail "the other one: $(cat $err)"
shows $err "error: busy.safetensors is being written by another training: process $winner"
until [ -f busy.safetensors ] || ! kill -0 $winner 2>/dev/null; do sleep 0.1; done
busy() {
  what=$1
  shift
  expect 2 "$what" train --rows 0:256 --epochs 1 "$@"
  shows err "is being written by another training: process $winner"
}
ln -s busy.safetensors busy.link
busy 'going on from it' --resume --checkpoint busy.safetensors
busy 'by a link' --overwrite --checkpoint ./busy.link
busy 'its best' --eval-every 1 --overwrite --keep-best "$PWD/busy.safetensors"
expect 2 'what is made of others' "$dgc" checkpoint average other.safetensors other.safetensors --overwrite -o busy.safetensors
shows err "busy.safetensors is being written by another training: process $winner"
cat >save.call <<PYTHON
call("load", b"$model")
text = call("save", b"busy.safetensors", want=2)
assert "busy.safetensors is being written by another training: process $winner" in text, text
call("save", b"saved.safetensors")
call("save", b"saved.safetensors")
PYTHON
program 'a program that saves' save.call
expect 0 'who evaluates' "$dgc" eval "$model" --rows 0:64 --checkpoint busy.safetensors
expect 0 'who begins with it' train --steps 1 --init-from busy.safetensors --checkpoint beside.safetensors
kill -0 $winner 2>/dev/null && pass || fail "it has ended: $(cat 1.err 2.err)"
kill -KILL $winner
wait $winner 2>/dev/null
expect 0 'behind one that was killed' train --epochs 1 --resume --checkpoint busy.safetensors
rm busy.safetensors busy.link beside.safetensors [12].out [12].err
[ -z "$(find . -name 'busy*')" ] && pass || fail "there is $(find . -name 'busy*')"

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
expect 0 'no epochs' train --epochs 0
shows err 'note: nothing is left to do: 0 epochs are done, and --epochs 0 asks for no more'
expect 0 'the rest of the epoch' train --checkpoint a.safetensors --resume
grep -q 'nothing is left' err && fail "$(cat err)" || pass
done_already '1 epoch is done, and --epochs 1 (the default) asks for no more'
done_already '1 epoch is done, and --epochs 0 asks for no more' --epochs 0
expect 0 'more' train --checkpoint a.safetensors --resume --epochs 2
empty err

# A loss that is no number ends the training, and what had been saved before stays. Row 9 of x is not a number, so that
# in batches of 2 the loss of step 5 is none; row 9 of z is infinite.
cat >line.dsl <<'MODEL'
model line(rate = 0.01) {
  input x : f32[B]
  input y : f32[B]
  var a : f32 = 0.5
  var b : f32 = 0.25
  train mean(square(a * x + b - y)) with momentum(rate = rate)
  metric worst = mean(abs(a * x + b - y))
}
MODEL
cat >two.dsl <<'MODEL'
model two() {
  input x : f32[B]
  input z : f32[B]
  var a : f32 = 0.5
  var b : f32 = 0.25
  train near = mean(square(a - x)) with sgd(rate = 0.01)
  train far = mean(square(b - z)) with sgd(rate = 0.01)
}
MODEL
python3 - <<'PYTHON'
import struct
def npy(path, numbers):
    header = ("{'descr': '<f4', 'fortran_order': False, 'shape': (%d,), }" % len(numbers)).ljust(117) + "\n"
    open(path, "wb").write(b"\x93NUMPY\x01\x00\x76\x00" + header.encode() + struct.pack("<%df" % len(numbers), *numbers))
good = [i / 8 for i in range(12)]
npy("good.npy", good)
npy("nan.npy", good[:9] + [float("nan")] + good[10:])
npy("far.npy", [100 + i for i in good])
npy("inf.npy", good[:9] + [float("inf")] + good[10:])
PYTHON
line() {
  "$dgc" train line.dsl --data x=$x.npy --data y=$y.npy --batch 2 --no-shuffle --quiet --overwrite "$@"
}
# ends WHAT COMMAND...: the training ends with step 5.
ends() {
  expect 4 "$@"
  shows err "error: the loss is $kind at step 5: the training ends"
  empty out
}
rm -f ./*.safetensors
y=good
for x in nan inf; do
  kind='infinite'
  [ $x = nan ] && kind='not a number'
  for on in '--devices cpu:0' '--devices cpu:0-1' '--towers 2 --devices cpu:0' '--backend interp --devices cpu:0-1' \
    '--cluster worker=2 --threads 1' '--cluster worker=2;ps=1 --staleness 1' '--devices cpu:0-2 --strategy central_storage'; do
    expect 0 "four steps, $on" line $on --steps 4 --checkpoint four.safetensors
    expect 0 "three steps, $on" line $on --steps 3 --checkpoint three.safetensors
    ends "nothing saved, $on" line $on
    shows err 'help: nothing has been saved; --allow-nan goes on all the same'
    # Whether a save comes with the step itself, with the one before or later, or at the end.
    for every in 1 2 4; do
      rm -f a.safetensors
      ends "every $every, $on" line $on --checkpoint a.safetensors --checkpoint-every $every
      shows err 'help: a.safetensors holds step 4; --allow-nan goes on all the same'
      same a.safetensors four.safetensors
    done
    rm -f a.safetensors
    ends "every 3, $on" line $on --checkpoint a.safetensors --checkpoint-every 3
    same a.safetensors three.safetensors
    for last in '--checkpoint-every 5' '--steps 5' '--steps 6' '--epochs 1' '--epochs 3'; do
      cp four.safetensors a.safetensors
      ends "$last, $on" line $on --checkpoint a.safetensors $last
      same a.safetensors four.safetensors
    done
    expect 4 "going on, $on" line $on --checkpoint a.safetensors --resume
    shows err "at step 5"
    same a.safetensors four.safetensors
    expect 0 "all the same, $on" line $on --checkpoint a.safetensors --allow-nan
    cmp -s a.safetensors four.safetensors && fail 'nothing was trained' || pass
  done
done
x=good
expect 0 'numbers' line --checkpoint a.safetensors
# The loss that it is, of several.
expect 4 'the second loss' "$dgc" train two.dsl --data x=good.npy --data z=inf.npy --batch 2 --no-shuffle --quiet
shows err 'error: the loss far is infinite at step 5: the training ends'
shows err 'help: input z has infinities, first in row 9 of inf.npy: `select(is_finite(z), z, 0)` reads 0 there'
expect 4 'the first loss' "$dgc" train two.dsl --data x=nan.npy --data z=inf.npy --batch 2 --no-shuffle --quiet
shows err 'error: the loss near is not a number at step 5: the training ends'
shows err 'help: input x has NaN, first in row 9 of nan.npy: `select(is_nan(x), 0, x)` reads 0 there'
# The loss is fine and what the step makes of the variables is not: the file stays good.
expect 0 'one step' line --steps 1 --checkpoint a.safetensors
cp a.safetensors kept
high='--set rate=3e38'
y=far
expect 4 'a rate that is too high' line $high --steps 1 --checkpoint a.safetensors
shows err 'error: variable a holds what is no finite number after step 1: it is not saved'
shows err 'help: a.safetensors is as it was before; --allow-nan saves all the same'
same a.safetensors kept
expect 4 'a rate that is too high, found by the loss' line $high --checkpoint a.safetensors
shows err 'at step 2'
same a.safetensors kept
expect 0 'all the same' line $high --steps 1 --checkpoint a.safetensors --allow-nan
cat >wide.dsl <<'MODEL'
model wide() {
  input x : f32[B]
  var a : f64 = 0.5
  train mean(square(a - cast(x, f64))) with sgd(rate = 1e308)
}
MODEL
expect 4 'a rate that is too high for f64' "$dgc" train wide.dsl --data x=far.npy --batch 2 --steps 1 --checkpoint f64.safetensors
shows err 'variable a holds what is no finite number after step 1'
[ ! -e f64.safetensors ] && pass || fail 'what is no number was saved'
# Before a first step nothing is wrong with the rate.
cat >label.dsl <<'MODEL'
use nn
model label() {
  input x : f32[B, 2]
  input y : i32[B]
  train mean(softmax_cross_entropy(nn.dense(x, 3), select(y == 255, 0, y))) with sgd(rate = 1e-9)
}
MODEL
printf 'a,b,y\n1,2,-100\n2,3,1\n' >label.csv
expect 4 'a label that is computed, and no class' "$dgc" train label.dsl --data x=label.csv:1-2 --data y=label.csv:y --batch 2
shows err 'error: the loss is not a number at step 1: the training ends'
shows err 'labels that the model computes, which may be no class'
grep -q 'smaller rate' err && fail 'no rate has been used' || pass
# Looking at it is no error.
expect 0 'eval' "$dgc" eval line.dsl --data x=good.npy --data y=good.npy --checkpoint a.safetensors
shows out 'nan'
expect 0 'eval as JSON' "$dgc" eval line.dsl --data x=good.npy --data y=good.npy --checkpoint a.safetensors --json
shows out '"loss":null'

# What is watched, and is never a number, has no best: that is said.
cat >unmeasured.dsl <<'MODEL'
model unmeasured() {
  input x : f32[B]
  var a : f32[] = 0.5
  train mean(square(a - x)) with sgd(rate = 0.1)
  metric area = auc(0.1 * x, x > 0)
}
MODEL
printf '1\n2\n3\n' >ones.csv
printf '1\n-2\n20\n' >both.csv
watched() {
  "$dgc" train unmeasured.dsl --data x=ones.csv --eval-data x=$1.csv --epochs 3 --metric-to-watch val.area:max --overwrite --keep-best area.safetensors
}
expect 0 'a metric that is never a number' watched both
shows err 'warning: val.area was no number in 3 evaluations: nothing was kept in area.safetensors'
[ ! -e area.safetensors ] && pass || fail 'something was kept'
printf '1\n-0\n2\n' >both.csv
expect 0 'a metric that is one' watched both
grep -q 'no number' err && fail "$(cat err)" || pass
[ -e area.safetensors ] && pass || fail 'nothing was kept'
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
expect 0 'no terminal' "$dgc" train "$model" --rows 0:256 --eval-rows 0:64 --steps 2
[ "$(grep -cF "$lost" err)" = 1 ] && pass || fail "$(cat err)" # a log wants it most
expect 0 'no terminal, and quiet' "$dgc" train "$model" --rows 0:256 --eval-rows 0:64 --steps 2 --quiet
grep -qF "$lost" err && fail "$(cat err)" || pass
if ! python3 -c 'import pty; pty.openpty()' 2>no.terminal; then
  echo "SKIP of what is said on a terminal: this container gives none: $(tail -1 no.terminal)"
  skipped=$((skipped + 2))
  finish
fi
expect 0 'on a terminal' python3 terminal.py "$dgc" train "$model" --rows 0:256 --eval-rows 0:64 --steps 2
shows out "$lost"
expect 0 'with a file' python3 terminal.py "$dgc" train "$model" --rows 0:256 --eval-rows 0:64 --steps 2 --checkpoint a.safetensors
grep -qF "$lost" out && fail "$(cat out)" || pass
finish
