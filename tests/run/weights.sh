#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A file that holds the variables alone, as other programs write it: eval and predict take it, and a training from it
# says what starts anew.
. "$(dirname "$0")/lib.sh"

cat >line.dsl <<'MODEL'
model line() {
  input x : f32[B]
  input y : f32[B]
  var a : f32 = 3
  var b : f32 = 3
  p = a * x + b
  train mean(square(p - y)) with momentum(rate = 0.125)
  predict p = p
}
MODEL
cat >average.dsl <<'MODEL'
model line() {
  input x : f32[B]
  input y : f32[B]
  var a : f32 = normal()
  var b : f32 = normal()
  state target : f32 = a
  p = a * x + b
  train mean(square(p - y)) with [sgd(0.0), average(0.5)]
  predict p = p
}
MODEL
sed 's/with momentum.*/with adam()/' line.dsl >adam.dsl
python3 - <<'PYTHON'
import json, struct
# safetensors.numpy.save({"a": np.array(0.75, np.float32), "b": np.array(-0.25, np.float32)},
#                        metadata={"format": "pt", "epoch": "many", "step": "-3"}), safetensors 0.4 and newer
open("weights.safetensors", "wb").write(
    b'\xa8\0\0\0\0\0\0\0{"__metadata__":{"format":"pt","step":"-3","epoch":"many"},"a":{"dtype":"F32","shape":[],'
    b'"data_offsets":[0,4]},"b":{"dtype":"F32","shape":[],"data_offsets":[4,8]}}     \0\0@?\0\0\x80\xbe')
def save(path, tensors, texts={}):
    header, data = {"__metadata__": texts} if texts else {}, b""
    for name, (dtype, form, value) in tensors.items():
        bytes = struct.pack(form, value)
        header[name] = {"dtype": dtype, "shape": [], "data_offsets": [len(data), len(data) + len(bytes)]}
        data += bytes
    text = json.dumps(header).encode()
    open(path, "wb").write(struct.pack("<Q", len(text)) + text + data)
a, b = ("F32", "<f", 0.75), ("F32", "<f", -0.25)
save("half.safetensors", {"a": a})
save("target.safetensors", {"a": a, "b": b, "target": a})
save("fine.safetensors", {"a": ("F32", "<f", 0.7510001), "b": b})
save("slot.safetensors", {"a": a, "b": b, "a.momentum.velocity": a})
for step in (-5, 0, 7, 2**62 + 1, 2**63 - 1):
    save("step%d.safetensors" % step, {"a": a, "b": b, "target": a, "step": ("I64", "<q", step)})
save("narrow.safetensors", {"a": a, "b": b, "step": ("I32", "<i", 7)})
for key, value in ("step", -4), ("epoch", 2**63 - 1), ("epoch_batch", 2**61), ("step", "many"):
    save("%s%s.safetensors" % (key, value), {"a": a, "b": b}, {"format": "dgc-1", "batch": "2", key: str(value)})
PYTHON
printf 'x,y\n1,1\n2,2\n' >xy.csv
data='--data x=xy.csv:x --data y=xy.csv:y --batch 2'

# By hand: a x + b - y is -0.5 and -0.75.
expect 0 eval "$dgc" eval line.dsl $data --checkpoint weights.safetensors
empty err
shows out 'loss 0.40625'
expect 0 predict "$dgc" predict line.dsl $data --checkpoint weights.safetensors --quiet
empty err
[ "$(tail -n 2 out | tr '\n' ' ')" = '0.5 1.25 ' ] && pass || fail "predicted: $(cat out)"
# The gradients are -2 and -1.25, and momentum begins with them.
for devices in cpu:0 cpu:0-1; do
  expect 0 "train on $devices" "$dgc" train line.dsl $data --resume=weights.safetensors --steps 1 --quiet --overwrite \
    --checkpoint one.safetensors --devices $devices
  shows err 'note: these start anew, as they are not in the file: '
  shows err a.momentum.velocity
  [ "$(wc -l <err)" = 1 ] && pass || fail "more than a line: $(cat err)"
  python3 - <<'PYTHON' && pass || fail 'other numbers'
import json, struct, sys
data = open("one.safetensors", "rb").read()
size = struct.unpack("<Q", data[:8])[0]
header = json.loads(data[8:8 + size])
got = {n: struct.unpack_from("<f", data, 8 + size + header[n]["data_offsets"][0])[0]
       for n in header if header[n].get("dtype") == "F32"}
want = {"a": 1.0, "b": -0.09375, "a.momentum.velocity": -2.0, "b.momentum.velocity": -1.25}
print(got)
sys.exit(got != want or header["__metadata__"]["step"] != "1")
PYTHON
done
# A part of it is there, or all: what is not is named, and nothing else.
expect 0 'with a slot' "$dgc" train line.dsl $data --resume=slot.safetensors --steps 1 --quiet
shows err b.momentum.velocity
grep -q a.momentum.velocity err && fail "$(cat err)" || pass
expect 0 'with everything' "$dgc" train line.dsl $data --resume=one.safetensors --steps 2 --quiet
empty err
expect 0 'adam' "$dgc" train adam.dsl $data --resume=weights.safetensors --steps 1 --quiet
shows err 'and 1 more'
expect 0 'from another optimizer' "$dgc" train adam.dsl $data --resume=one.safetensors --steps 2 --quiet
shows err a.adam.m
shows err 'warning: these start anew, as they are not in the file, and `step` goes on from 1: '
shows err '--init-from one.safetensors starts all of them anew, `step` too'
[ "$(grep -c 'start anew' err)" = 1 ] && pass || fail "told twice: $(cat err)"
# Unfrozen: what had no part in the first steps. Momentum has none to correct, and nothing is behind before the first step.
sed 's/\[sgd(0.0), average(0.5)\]/[freeze("a"), adam()]/; /target/d' average.dsl >frozen.dsl
sed 's/freeze("a"), //' frozen.dsl >free.dsl
expect 0 'frozen' "$dgc" train frozen.dsl $data --steps 3 --quiet --checkpoint frozen.safetensors
expect 0 'unfrozen' "$dgc" train free.dsl $data --resume=frozen.safetensors --steps 4 --quiet
shows err 'warning: these start anew, as they are not in the file, and `step` goes on from 3: a.adam.m, a.adam.v'
expect 0 'all anew' "$dgc" train free.dsl $data --init-from frozen.safetensors --steps 1 --quiet
grep -q 'warning: these' err && fail "$(cat err)" || pass
expect 0 'an average' "$dgc" train average.dsl $data --resume=step7.safetensors --steps 8 --quiet
grep -q 'warning: these' err && fail "$(cat err)" || pass
shows err 'note: these start anew, as they are not in the file: a.average.mean'
expect 0 'momentum' "$dgc" train line.dsl $data --resume=step7.safetensors --steps 8 --quiet
shows err 'note: these start anew, as they are not in the file: a.momentum'
# Weights are needed.
expect 4 'without b' "$dgc" eval line.dsl $data --checkpoint half.safetensors
shows err 'variable b of model line is missing'

# An average of what was loaded begins as that does, and is needed where it is read in the variable's place.
for how in --init-from --resume=; do
  for devices in cpu:0 cpu:0-1; do
    file=weights.safetensors
    [ $how = --init-from ] || file=target.safetensors
    [ $how = --init-from ] && set -- $how $file || set -- $how$file
    expect 0 "average, $*, $devices" "$dgc" train average.dsl $data "$@" --steps 1 --quiet --overwrite --devices $devices --checkpoint m.safetensors
    expect 0 weights "$dgc" weights m.safetensors
    for line in 'a.average.mean : f32[]  min 0.75' 'b.average.mean : f32[]  min -0.25' 'target : f32[]  min 0.75'; do shows out "$line"; done
    expect 0 'eval of its average' "$dgc" eval average.dsl $data --checkpoint m.safetensors
    shows out 'loss 0.40625'
  done
done
for verb in eval predict; do
  expect 4 "$verb without the average" "$dgc" $verb average.dsl $data --checkpoint target.safetensors
  shows err 'target.safetensors: variable a.average.mean of model line is missing'
  shows err 'target.safetensors: variable b.average.mean of model line is missing'
  empty out
done
# What is read by no prediction may be missing, and what is computed of a first value is told.
sed 's/sgd(0.0), average(0.5)/master(), sgd(0.0)/; s/= normal()/= normal() storage(bf16)/; s/predict p = p/predict p = a * x/' average.dsl >master.dsl
expect 0 'without the master' "$dgc" predict master.dsl $data --checkpoint target.safetensors
expect 0 'a master' "$dgc" train master.dsl $data --init-from fine.safetensors --steps 1 --quiet --overwrite --checkpoint m.safetensors
expect 0 weights "$dgc" weights m.safetensors
shows out 'a.master.value : f32[]  min 0.7510001'
sed 's/: f32 = a/: f32 = 2 * a/' average.dsl >twice.dsl
expect 0 'computed' "$dgc" train twice.dsl $data --init-from weights.safetensors --steps 1 --quiet
shows err "warning: target begins with what is computed of the model's first value of a, not of that in init-from"

# Steps that cannot have been done are refused, and everything else stays.
for step in 0 7; do
  expect 0 "step $step" "$dgc" train adam.dsl $data --resume=step$step.safetensors --steps 1 --quiet
done
for step in -5 4611686018427387905 9223372036854775807; do
  for verb in eval train; do
    file=step$step.safetensors
    from="--checkpoint $file"
    [ $verb = train ] && from=--resume=$file
    expect 1 "$verb, step $step" "$dgc" $verb adam.dsl $data $from
    shows err "$file: step is $step, which is no number of steps that were done"
    empty out
  done
done
expect 4 'a step of another type' "$dgc" eval adam.dsl $data --checkpoint narrow.safetensors
shows err 'step is i32[] there, and i64[] in model line'
for file in step-4 epoch9223372036854775807 epoch_batch2305843009213693952 stepmany; do
  [ -e $file.safetensors ] || fail "no $file"
  expect 1 "metadata $file" "$dgc" train line.dsl $data --resume=$file.safetensors --batch 1
done
finish
