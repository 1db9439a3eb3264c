#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What --set gives the model's parameters is kept by checkpoints: eval, predict, an evaluator and a training that goes on compute the same
# model without being told again. A file sets parameters that the model has, and nothing else.
. "$(dirname "$0")/lib.sh"
cat >m.dsl <<'END'
use nn
model m(hidden = 3, power = 1, keep = 1.0, rate = 0.01, shape = "") {
  input x : f32[B]
  input y : f32[B]
  h = nn.dense(expand(x, 1), hidden, tanh)
  p = squeeze(nn.dense(h, 1), 1) * cast(power, f32) * keep
  train mean(square(dropout(p, 0.1) - y)) with adam(rate)
  metric error = mean(abs(p - y))
  predict p = select(shape == "", p, 0 * p)
}
END
some_rows 40 x y >xy.csv
data='--data x=xy.csv:x --data y=xy.csv:y'
# go VERB ARGUMENTS...
go() {
  verb=$1
  shift
  # shellcheck disable=SC2086
  "$dgc" "$verb" m.dsl $data "$@"
}
# seen ARGUMENTS...: by the evaluator of a cluster.
seen() {
  "$dgc" train m.dsl --eval-data x=xy.csv:x --eval-data y=xy.csv:y --cluster 'worker=2;evaluator=1' --task evaluator:0 --steps 7 \
    --checkpoint c.safetensors "$@"
}
sets='--set power=3 --set hidden=5 --set keep=0.50'
# shellcheck disable=SC2086
{
  expect 0 'the first steps' go train --quiet $sets --batch 8 --steps 7 --checkpoint c.safetensors
  cp c.safetensors whole.safetensors
  cp c.safetensors mine.safetensors
  expect 0 'set again' go train --quiet $sets --batch 8 --steps 12 --resume --checkpoint whole.safetensors
}
expect 0 inspect "$dgc" inspect c.safetensors
shows out '# set.power: 3'
shows out '# set.hidden: 5'
shows out '# set.keep: 0.50'
grep -q 'set.rate' out && fail 'a parameter that was not given is kept' || pass
expect 0 'inspect as JSON' "$dgc" inspect --json c.safetensors
shows out '"set.power":"3","set.hidden":"5","set.keep":"0.50"'
expect 0 'checkpoint show' "$dgc" checkpoint show c.safetensors
shows out '# set.power: 3'
expect 0 'checkpoint cast' "$dgc" checkpoint cast c.safetensors --to bf16 -o cast.safetensors
expect 0 inspect "$dgc" inspect cast.safetensors
shows out '# set.power: 3'

# As with --set given again, bit for bit; one note.
said='note: --set power=3 --set hidden=5 --set keep=0.50, as in'
expect 0 'resume' go train --quiet --batch 8 --steps 12 --resume --checkpoint mine.safetensors
shows err "$said mine.safetensors"
[ "$(grep -c 'power' err)" = 1 ] && pass || fail "more than one note: $(cat err)"
same mine.safetensors whole.safetensors
for verb in eval predict; do
  # shellcheck disable=SC2086
  expect 0 "$verb, set again" go $verb $sets --checkpoint c.safetensors
  grep -q note err && fail "$verb tells of what is set: $(cat err)" || pass
  cp out want
  expect 0 "$verb" go $verb --checkpoint c.safetensors
  shows err "$said c.safetensors"
  same out want
  expect 0 "$verb on two devices" go $verb --devices cpu:0-1 --checkpoint c.safetensors
done
# Nothing where nothing is set; first values out of another file bring no parameters with them.
expect 0 'nothing set' go train --quiet --steps 2 --checkpoint plain.safetensors
expect 0 inspect "$dgc" inspect plain.safetensors
grep -q '# set\.' out && fail 'something is kept where nothing is set' || pass
expect 0 'init-from' go train --quiet --steps 1 --init-from c.safetensors --checkpoint from.safetensors
shows err 'f32[1,5] there, f32[1,3] here'
grep -qF 'as in' err && fail 'init-from sets parameters' || pass

# Given otherwise now.
expect 0 'another value' go predict --set power=1 --checkpoint c.safetensors
shows err 'note: c.safetensors was made with --set power=3, and now it is 1'
shows err 'note: --set hidden=5 --set keep=0.50, as in c.safetensors'
expect 4 'another shape' go predict --set hidden=4 --checkpoint c.safetensors
shows err 'note: c.safetensors was made with --set hidden=5, and now it is 4'
# What the model has no more, and what it takes no more.
sed -e 's/, power = 1//' -e 's/ \* cast(power, f32)//' m.dsl >less.dsl
expect 0 'a parameter that is gone' "$dgc" predict less.dsl --data x=xy.csv:x --checkpoint c.safetensors
shows err 'note: --set hidden=5 --set keep=0.50, as in c.safetensors'
sed 's/hidden = 3/hidden = true/; s/, hidden, tanh/, 5, tanh/' m.dsl >other.dsl
expect 1 'a parameter of another kind' "$dgc" predict other.dsl --data x=xy.csv:x --checkpoint c.safetensors
# shellcheck disable=SC2016
shows err '`hidden` must be true or false'

# A cluster, and its evaluator.
expect 0 'a cluster' go train --quiet --batch 8 --steps 12 --cluster 'worker=2' --resume=c.safetensors --checkpoint two.safetensors
shows err "$said c.safetensors"
# shellcheck disable=SC2086
expect 0 'an evaluator, set again' seen $sets
cp out want
expect 0 'an evaluator' seen
shows err "$said c.safetensors"
same out want

# Values from a file are anybody's.
cat >edit.py <<'END'
import json, struct, sys
path, out, key, value = sys.argv[1:]
data = open(path, "rb").read()
n = struct.unpack("<Q", data[:8])[0]
header = json.loads(data[8:8 + n])
del header["__metadata__"]["dgc.checksum"], header["__metadata__"]["dgc.format"]
if key in header:
    header[value] = header.pop(key)
else:
    header["__metadata__"][key] = value.encode().decode("unicode_escape")
text = json.dumps(header).encode()
text += b" " * (-len(text) % 8)
open(out, "wb").write(struct.pack("<Q", len(text)) + text + data[8 + n:])
END
hostile() {
  python3 edit.py c.safetensors h.safetensors "$2" "$3" || fail "$1"
  expect 1 "$1" within "$dgc" predict m.dsl --data x=xy.csv:x --checkpoint h.safetensors
  shows err 'h.safetensors: its metadata sets a parameter to what is no value'
}
many=$(printf '%5000s' '' | tr ' ' 9)
hostile 'an escape' set.power '3\x1b[2J'
hostile 'two lines' set.power '3\n}\nmodel n() {'
hostile 'no ASCII' set.shape '\u202e'
hostile 'a long value' set.power "$many"
hostile 'no name' set. 3
hostile 'no word for a name' 'set.a b' 3
hostile 'a long name' "set.a$many" 3
python3 edit.py c.safetensors h.safetensors set.power '3)} model n() {('
expect 1 'what closes brackets' within "$dgc" predict m.dsl --data x=xy.csv:x --checkpoint h.safetensors
# shellcheck disable=SC2016
shows err '`power` must be an integer'
python3 edit.py c.safetensors h.safetensors set.hidden 99999999999999
expect 1 'a shape of too much' within "$dgc" predict m.dsl --data x=xy.csv:x --checkpoint h.safetensors
python3 edit.py c.safetensors h.safetensors set.seed 3
expect 0 'no parameter' within "$dgc" predict m.dsl --data x=xy.csv:x --checkpoint h.safetensors
shows err "$said h.safetensors"
# What a checkpoint could not be read with is not kept, and a warning says so.
expect 0 'no ASCII' go train --quiet --steps 1 --set 'shape=Größe' --checkpoint text.safetensors
shows err 'warning: text.safetensors will not keep --set shape'
expect 0 'read again' go predict --checkpoint text.safetensors

# In a program: all of the file or nothing of it, parameters too.
python3 edit.py c.safetensors lacks.safetensors h.kernel other
cat >calls.py <<'END'
call("load", b"m.dsl")
for d in b"x=xy.csv:x", b"y=xy.csv:y":
    call("set", b"data", d)
    call("set", b"eval-data", d)
call("set", b"steps", b"1")
call("train")
call("save", b"before.safetensors")
# A file of other shapes, which lacks a variable.
assert "is missing" in call("restore", b"lacks.safetensors", want=4)
call("save", b"after.safetensors")
assert "--set power=3 --set hidden=5" in call("restore", b"c.safetensors")
call("set", b"output", b"p=p.csv")
call("predict", None)
END
if program 'a program' calls.py; then
  same before.safetensors after.safetensors
  expect 0 'predict' go predict --checkpoint c.safetensors --output p=q.csv
  same p.csv q.csv
fi
finish
