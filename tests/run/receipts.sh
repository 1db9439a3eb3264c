#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Receipts: a training done again by what its receipt says is equal to the bit, on other devices, too; what differs is told.
. "$(dirname "$0")/lib.sh"

cp "$samples/digits.dsl" .
mkdir data
for part in train test; do
  for what in images labels; do cp "$samples/data/$part-$what.idx" data/; done
done
train="$dgc train digits.dsl --set hidden=6 --rows 0:320 --eval-rows 0:64 --batch 32 --quiet"
expect 0 'a receipt' $train --epochs 2 --devices cpu:0-1 --towers 3 --seed 5 --receipt a.json
python3 - <<'PYTHON' && pass || fail 'no receipt'
import json
r = json.load(open("a.json"))
f = r["facts"]
assert r["receipt"] == 1 and r["file"] == "digits.dsl" and "--set=hidden=6" in r["arguments"]
assert (f["seed"], f["towers"], f["batch"], f["rows"], f["step"], f["epoch"], f["begun"]) == (5, 3, 32, 320, 20, 2, 0), f
assert f["devices"] == ["/cpu:0", "/cpu:1"] and all(f[k].startswith("xxh64:") for k in ("graph", "placed", "data", "state"))
assert len(set(f["kernels"])) == len(f["kernels"]) > 5 and all(k.startswith("xxh64:") for k in f["kernels"]), f["kernels"]
PYTHON
cp a.json first.json
expect 2 'a file that is there' $train --epochs 2 --receipt a.json
expect 0 'once more' $train --epochs 2 --devices cpu:0-1 --towers 3 --seed 5 --receipt a.json --overwrite
grep -v '^"arguments"' a.json >one
grep -v '^"arguments"' first.json >two
same one two
expect 0 verify "$dgc" verify --receipt a.json
shows out 'a.json: done again, 20 steps: equal to the bit'
grep -q otherwise out && fail 'the same devices are others' || pass
grep -q kernels err && fail 'the same kernels are others' || pass
sed 's/^"kernels":\["xxh64:..../"kernels":["xxh64:0000/' a.json >k.json
expect 0 'other kernels' "$dgc" verify --receipt k.json
shows err 'note: the kernels differ from what they were'
grep -v '^"kernels"' a.json >k.json
expect 0 'a receipt without kernels' "$dgc" verify --receipt k.json
grep -q kernels err && fail 'kernels that are not known differ' || pass
for more in '--devices cpu:0 --threads 1' '--devices cpu:0-2 --strategy central_storage'; do
  expect 0 "verify $more" "$dgc" verify --receipt a.json $more
  shows out 'equal to the bit, placed otherwise'
done
expect 0 'verify in another order of the words' "$dgc" verify --devices cpu:0 --receipt=a.json

# What was stopped and gone on with is what never was.
expect 0 'seven steps' $train --steps 7 --checkpoint c.safetensors
expect 0 'and the rest' $train --steps 18 --resume --checkpoint c.safetensors --receipt b.json --eval-every 4 --keep-best best.safetensors \
  --log b.jsonl
grep -q '^"begun":7,' b.json && pass || fail "$(cat b.json)"
expect 0 'all of it' "$dgc" verify --receipt b.json
[ "$(wc -l <b.jsonl)" -gt 2 ] && [ ! -e batch-1.npz ] && pass || fail 'verify writes files of the training'
expect 0 'one that patience ends' $train --epochs 40 --set rate=0.05 --patience 2 --eval-every 3 --receipt p.json
expect 0 'and again' "$dgc" verify --receipt p.json

# A plugin is code, which the reader of a receipt names himself.
sed 's|"--devices=cpu:0-1"|"--devices=pjrt:0","--pjrt-plugin=./plugin.so"|' a.json >plugin.json
expect 3 'a plugin' "$dgc" verify --receipt plugin.json
shows err 'pjrt devices are those of a PJRT plugin, and none is named'

# What is not as it was is told.
expect 4 'another seed' "$dgc" verify --receipt a.json --seed 6
shows err 'error: the seed differs from what it was'
shows err 'it has come to another result'
expect 4 'other towers' "$dgc" verify --receipt a.json --towers 2
shows err 'error: the number of towers differs'
python3 - <<'PYTHON'
data = bytearray(open("data/train-images.idx", "rb").read())
data[16 + 784 * 300 + 400] ^= 255
open("data/train-images.idx", "wb").write(data)
PYTHON
expect 4 'a row that has changed' "$dgc" verify --receipt a.json
shows err 'error: the data differs from what it was'
grep -q 'the model differs' err && fail 'the model is said to differ' || pass
sed -i 's|hidden = 512|hidden = 511|; s|/ 255|/ 254|' digits.dsl
expect 4 'a model that has changed' "$dgc" verify --receipt a.json
shows err 'error: the model differs from what it was'

expect 1 'no receipt' "$dgc" verify --receipt digits.dsl
shows err 'digits.dsl is no receipt of a training'
expect 1 'not there' "$dgc" verify --receipt nowhere.json
for cut in 20 200 500; do
  head -c $cut a.json >cut.json
  expect 1 'half a receipt' "$dgc" verify --receipt cut.json
done
sed 's/"--batch=32"/"batch"/' a.json >odd.json
expect 1 'no option' "$dgc" verify --receipt odd.json
expect 3 'nowhere to write' $train --steps 1 --receipt nowhere/a.json
finish
