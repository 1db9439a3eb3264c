#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A checkpoint from before a model's variables were renamed: what is missing is told with the lines that say how they are
# called now, and by those lines it is read, copies of towers and states of optimizers with the rest.
. "$(dirname "$0")/lib.sh"

cat >old.dsl <<'MODEL'
use nn
model line {
  input x : f32[B, 1]
  input y : f32[B]
  hid = nn.dense(x, 5)
  mid = nn.dense(hid, 6)
  out = nn.dense(mid, 1)
  state seen : f32[] = 0 aggregation(mean) synchronization(on_read)
  seen <- 0.5 * seen + 0.5 * mean(x)
  train mean(square(squeeze(out, 1) - y)) with adam()
  predict p = out
}
MODEL
sed 's/hid = /h = /; s/mid = nn.dense(hid/h = nn.dense(h/; s/dense(mid/dense(h/; s/seen/known/g' old.dsl >new.dsl
printf 'x,y\n1,1\n2,2\n3,0\n4,-1\n5,2\n' >xy.csv
data='--data x=xy.csv:1-1 --data y=xy.csv:y'
train="$dgc train %s $data --batch 5 --devices cpu:0-1 --quiet"
predict="$dgc predict %s --data x=xy.csv:1-1 --quiet"
run() { # run FORM MODEL WORDS...
  form=$1 model=$2
  shift 2
  # shellcheck disable=SC2059,SC2046
  $(printf "$form" "$model") "$@"
}
expect 0 'before' run "$train" old.dsl --epochs 2 --checkpoint old.safetensors
expect 0 'before, on' run "$train" old.dsl --epochs 4 --resume=old.safetensors --checkpoint end.safetensors

expect 4 'without names' run "$predict" new.dsl --checkpoint old.safetensors
shows err 'error: old.safetensors: variable h#2.kernel of model line is missing'
help='help: a file of lines `old = new` says by --names what its variables are called here:'
shows err "$help"
for line in 'hid = h' 'mid = h#2' 'seen = known'; do shows err "\`$line\`"; done

sed 's/model line/model other/; s/, 6)/, 7)/' new.dsl >other.dsl
expect 4 'another model' run "$predict" other.dsl --checkpoint old.safetensors
shows err 'note: the file is a checkpoint of model line'
grep -q -- --names err && fail 'names of a model that it is not' || pass

printf '# names of today\nhid = h   # the first\n\nmid=h#2\nmid.absent = nothing\nseen = known\n' >names
expect 0 'old' run "$predict" old.dsl --checkpoint old.safetensors
cp out expected
expect 0 'with names' run "$predict" new.dsl --checkpoint old.safetensors --names names
cmp -s out expected && pass || fail 'another prediction'
expect 0 'trained on' run "$train" new.dsl --epochs 4 --resume=old.safetensors --names names --checkpoint new.safetensors
empty err
"$dgc" inspect end.safetensors | sed 's/hid/h/; s/mid/h#2/; s/seen/known/' | sort >expected
"$dgc" inspect new.safetensors | sort >are
cmp -s are expected && pass || fail "other variables: $(diff are expected | head -5)"
expect 0 'end' run "$predict" old.dsl --checkpoint end.safetensors
cp out expected
for names in '' '--names names'; do # the new names are there already: nothing is renamed
  # shellcheck disable=SC2086
  expect 0 "new $names" run "$predict" new.dsl --checkpoint new.safetensors $names
  cmp -s out expected && pass || fail 'another end'
done

printf 'hid h\n a b = c\nhid = q\nhid = z\nmid =\n= h\n' >wrong
expect 1 'lines that say nothing' run "$predict" new.dsl --checkpoint old.safetensors --names wrong
for line in 1 2 5 6; do shows err "wrong:$line:1: error: a line says \`old = new\`"; done
shows err 'wrong:4:1: error: `hid` is renamed twice'
printf 'hid = h\nmid = h\n' >wrong
expect 4 'two of one name' run "$predict" new.dsl --checkpoint old.safetensors --names wrong
shows err 'would be h.bias by wrong'
expect 1 'no names' run "$predict" new.dsl --checkpoint old.safetensors --names none
shows err "'none': No such file or directory"

# Two models of a file: the student calls the teacher's layer with the variables that the teacher has learned.
cat >two.dsl <<'MODEL'
use nn
layer network(x, units : int) { return nn.dense(nn.dense(x, units, tanh), 1) }
model teacher {
  input x : f32[B, 1]
  input y : f32[B]
  guess = network(x, 9)
  train mean(square(squeeze(guess, 1) - y)) with adam(rate = 0.02)
  predict p = guess
}
model student {
  input x : f32[B, 1]
  teacher = network.new(9)
  guess = network(x, 2)
  train mean(square(guess - stop_gradient(teacher(x)))) with adam(rate = 0.02) over "guess"
  predict p = teacher(x)
}
MODEL
expect 0 'teacher' run "$train" two.dsl --model teacher --epochs 9 --checkpoint teacher.safetensors
expect 0 'what it says' run "$predict" two.dsl --model teacher --checkpoint teacher.safetensors
cp out expected
data='--data x=xy.csv:1-1'
expect 0 'student' "$dgc" train two.dsl --model student $data --batch 5 --quiet --epochs 9 \
  --init-from teacher.safetensors:guess=teacher --checkpoint student.safetensors
expect 0 'the teacher in the student' run "$predict" two.dsl --model student --checkpoint student.safetensors
cmp -s out expected && pass || fail 'the student has another teacher'
finish
