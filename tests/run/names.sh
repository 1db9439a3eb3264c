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

# What PyTorch writes: weights of Linear and Conv with their axes in another order, other names, and no texts. The lines that
# the help proposes read it; square weights that are taken as they lie are warned of.
cat >net.dsl <<'MODEL'
use nn
model net {
  input x : f32[B, 36]
  input y : f32[B]
  c = relu(nn.batch_norm(nn.conv2d(reshape(x, [B, 6, 6, 1]), 4, use_bias = false)))
  f = nn.dense(mean(c, axis = [1, 2]), 4, activation = tanh)
  train mean(square(sum(f, axis = 1) - y)) with sgd()
  predict p = f
}
MODEL
cat >torch.py <<'PROGRAM'
import itertools, json, struct
raw = open("net.safetensors", "rb").read()
size = struct.unpack("<Q", raw[:8])[0]
ends = {"scale": "weight", "shift": "bias", "moving_mean": "running_mean", "moving_variance": "running_var", "kernel": "weight"}
header, data = {}, b""
for name, t in sorted(json.loads(raw[8:8 + size]).items()):
    if "." not in name:
        continue
    layer, end = name.rsplit(".", 1)
    begin, shape = t["data_offsets"][0] + 8 + size, t["shape"]
    values = struct.unpack_from("<%df" % ((t["data_offsets"][1] - t["data_offsets"][0]) // 4), raw, begin)
    if end == "kernel":  # [spatial..., in, out] to [out, in, spatial...]
        at = dict(zip(itertools.product(*map(range, shape)), values))
        shape = [shape[-1], shape[-2]] + shape[:-2]
        values = [at[p[2:] + (p[1], p[0])] for p in itertools.product(*map(range, shape))]
    header["net." + layer + "." + ends.get(end, end)] = {
        "dtype": "F32", "shape": shape, "data_offsets": [len(data), len(data) + 4 * len(values)]}
    data += struct.pack("<%df" % len(values), *values)
text = json.dumps(header).encode()
open("torch.safetensors", "wb").write(struct.pack("<Q", len(text)) + text + data)
PROGRAM
awk 'BEGIN { for (i = 0; i < 36; i++) printf "x%d,", i; print "y"; for (r = 0; r < 5; r++) {
  for (i = 0; i < 36; i++) printf "%g,", ((r * 37 + i * 11) % 17) / 8 - 1; print r } }' >net.csv
data='--data x=net.csv:1-36'
expect 0 'net' "$dgc" train net.dsl $data --data y=net.csv:y --batch 5 --epochs 3 --quiet --checkpoint net.safetensors
expect 0 'its words' "$dgc" predict net.dsl $data --quiet --checkpoint net.safetensors
cp out expected
python3 torch.py
expect 4 'of other names' "$dgc" predict net.dsl $data --quiet --checkpoint torch.safetensors
shows err '`net.f.weight = f.kernel [1, 0]`'
grep -o '`net[^`]*`' err | tr -d '`' >names
[ "$(wc -l <names)" = 7 ] && pass || fail "lines: $(cat names)"
expect 0 'by the lines of the help' "$dgc" predict net.dsl $data --quiet --checkpoint torch.safetensors --names names
cmp -s out expected && empty err || fail 'PyTorch has other numbers'
expect 0 'first values' "$dgc" train net.dsl $data --data y=net.csv:y --batch 5 --epochs 1 --quiet --names names \
  --init-from torch.safetensors
shows err 'note: torch.safetensors: 7 variables are loaded'
grep -v 'f.kernel' names >some
echo 'net.f.weight = f.kernel' >>some
expect 0 'as it lies' "$dgc" predict net.dsl $data --quiet --checkpoint torch.safetensors --names some
shows err 'warning: torch.safetensors: net.f.weight becomes f.kernel as it lies'
shows err 'write `net.f.weight = f.kernel [1, 0]` in some'
cmp -s out expected && fail 'no other numbers' || pass
sed -i 's/f.kernel$/f.kernel [0, 1]/' some
expect 0 'as it lies, and said so' "$dgc" predict net.dsl $data --quiet --checkpoint torch.safetensors --names some
empty err
for order in '[1, 1]' '[1' '[]' '[0 1]' '[1, 0] x' '[8]' '[0, 1, 2, 3, 4, 5, 6, 7, 8]' '[1, 0'; do
  echo "net.f.weight = f.kernel $order" >wrong
  expect 1 "$order" "$dgc" predict net.dsl $data --quiet --checkpoint torch.safetensors --names wrong
  shows err 'wrong:1:1: error: an order of axes has each of 0, 1, ... once'
done
echo 'net.f = f [1, 0]' >wrong
expect 4 'another rank' "$dgc" predict net.dsl $data --quiet --checkpoint torch.safetensors --names wrong
shows err 'net.f.bias has 1 axis, and wrong orders 2'

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
