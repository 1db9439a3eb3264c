#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Training that evaluates as it goes: no bit of what is trained changes by it, the best is kept, patience ends it, and what
# goes on from a checkpoint ends where what was never stopped does.
. "$(dirname "$0")/lib.sh"

# tensors FILE...: no tensor of the safetensors files differs, whatever their metadata say.
tensors() {
  python3 - "$@" <<'PYTHON' && pass || fail "tensors of $*"
import json, struct, sys
def read(path):
    data = open(path, "rb").read()
    size, = struct.unpack("<Q", data[:8])
    header = json.loads(data[8:8 + size])
    header.pop("__metadata__", None)
    return header, data[8 + size:]
sys.exit(any(read(path) != read(sys.argv[1]) for path in sys.argv[2:]))
PYTHON
}

digits="$samples/digits.dsl --set hidden=16 --rows 0:640 --eval-rows 0:200 --batch 64"
train="$dgc train $digits --quiet --json --overwrite"

# --- evaluation changes nothing ---
for more in '' '--devices cpu:0-1 --towers 3'; do
  expect 0 "without evaluation $more" $train --steps 23 --checkpoint plain.safetensors $more
  expect 0 "with evaluation $more" $train --steps 23 --checkpoint often.safetensors --eval-every 3 --train-metrics \
    --keep-best best.safetensors --log-every 2 $more
  tensors plain.safetensors often.safetensors
  grep -q evaluated often.safetensors && pass || fail 'a training that evaluates does not keep that it has'
done

# --- what is kept is what was evaluated ---
"$dgc" eval $digits --eval-rows 0:200 --checkpoint best.safetensors --json >best.json
python3 - <<'PYTHON' && pass || fail 'the best is not what its file evaluates to'
import json
kept, said = json.load(open("best.json")), json.load(open("out"))["training"]["best"]
assert said["metric"] == "val.loss" and said["value"] == kept["loss"], (said, kept)
PYTHON

# --- the evaluation at the end counts, also where it is the first one ---
last() {
  expect 0 "the last step, $*" $train --keep-best last.safetensors "$@"
  cp out last.json
  expect 0 'what is kept' "$dgc" eval $digits --checkpoint last.safetensors --json
  cp out kept.json
  python3 - $steps <<'PYTHON' && pass || fail "not the best of what was told, $*"
import json, sys
kept, said = json.load(open("kept.json")), json.load(open("last.json"))
best, steps = said["training"]["best"], int(sys.argv[1])
assert best["value"] == kept["loss"] <= said["loss"] and best["step"] <= steps, (best, kept, said)
assert best["step"] == steps or steps == 23, best
PYTHON
}
steps=7 # of an epoch of ten
last --steps 7
last --steps 7 --devices cpu:0-1
steps=23
last --steps 23 --eval-every 10
last --steps 23 --eval-every 10 --set rate=0.5
rm -f last.safetensors
expect 0 'no evaluation' $train --keep-best last.safetensors --steps 0
[ ! -e last.safetensors ] && pass || fail 'what no step was evaluated behind is kept'

# --- going on is as if it had never ended ---
watch='--eval-every 4 --patience 2 --metric-to-watch val.accuracy:max --set rate=0.02'
expect 0 'patience' "$dgc" train $digits $watch --overwrite --epochs 40 --checkpoint whole.safetensors --keep-best w.safetensors
shows err 'note: stopped early after step '
shows err 'val.accuracy has not become better in 2 evaluations; it was best'
shows err 'which is in w.safetensors'
ended=$(sed -n 's/.*stopped early after step \([0-9]*\):.*/\1/p' err)
[ "$ended" -lt 400 ] && pass || fail "patience ended nothing: $ended"
for at in 3 4 $((ended - 4)) $((ended - 1)) $ended; do
  rm -f part.safetensors p.safetensors
  expect 0 "the first $at steps" $train $watch --steps "$at" --checkpoint part.safetensors --keep-best p.safetensors
  expect 0 "and the rest" "$dgc" train $digits $watch --epochs 40 --resume --checkpoint part.safetensors --keep-best p.safetensors
  same whole.safetensors part.safetensors
  same w.safetensors p.safetensors
done
# --- it may have been killed anywhere: between the best and the next checkpoint, or when all steps were done ---
rm -f part.safetensors p.safetensors
expect 0 'three steps' $train $watch --steps 3 --checkpoint part.safetensors
expect 0 'the first best' $train $watch --steps 4 --checkpoint before.safetensors --keep-best p.safetensors --overwrite
expect 2 'the best of another training' "$dgc" train $digits $watch --seed 9 --epochs 40 --resume --checkpoint part.safetensors \
  --keep-best p.safetensors
shows err 'p.safetensors is there already, and this training would replace it'
expect 0 'goes on from before the best' "$dgc" train $digits $watch --epochs 40 --resume --checkpoint part.safetensors \
  --keep-best p.safetensors
same whole.safetensors part.safetensors
same w.safetensors p.safetensors
rm -f part.safetensors p.safetensors
expect 0 'nothing evaluated' $train --set rate=0.02 --steps 4 --checkpoint part.safetensors
expect 0 'evaluates and ends' "$dgc" train $digits $watch --steps 4 --resume --checkpoint part.safetensors --keep-best p.safetensors
same part.safetensors p.safetensors
"$dgc" inspect part.safetensors >out
shows out '# evaluated: 4'
expect 0 'again' "$dgc" train $digits $watch --epochs 40 --resume --checkpoint part.safetensors --keep-best p.safetensors
same whole.safetensors part.safetensors
same w.safetensors p.safetensors

expect 0 'nothing is left' "$dgc" train $digits $watch --epochs 40 --resume --checkpoint part.safetensors --keep-best p.safetensors
shows err 'stopped early after step'
expect 0 'another metric' "$dgc" train $digits --eval-every 4 --steps $((ended + 1)) --resume --checkpoint part.safetensors
shows err 'what was best there does not count for val.loss:min'

# --- metrics of training ---
# Where nothing is learned, an epoch's metrics are those of an evaluation of the same rows: means, sums, formulas, and
# totals that are tensors.
cat >still.dsl <<'MODEL'
model still(rate = 0.0) {
  input x : f32[B, 3]
  input y : f32[B]
  var w : f32[3] = normal()
  e = sum(x * w, axis = 1) - y
  train first = mean(square(e)) with sgd(rate = rate)
  train second = mean(abs(e + w[0])) with sgd(rate = exponential_decay(rate + 0.0, 10, 0.5))
  metric bias = mean(e)
  metric rms = sqrt(mean(square(e)))
  metric worst = max(abs(e))
  metric spread = norm(sum(abs(x), axis = 0)) / sum(abs(y))
}
MODEL
some_rows 50 a b c y >rows.csv
data='--data x=rows.csv:1-3 --data y=rows.csv:y'
for more in '' '--devices cpu:0-1 --towers 3'; do
  expect 0 "metrics of training $more" "$dgc" train still.dsl $data --eval-rows 0:50 --batch 16 --no-shuffle --train-metrics --eval-every 1e \
    --json $more
  shows err '  first '
  shows err '  val.first '
  python3 - <<'PYTHON' && pass || fail 'metrics of training are not those of evaluation'
import json, math
r = json.load(open("out"))
t = r["training"]
assert set(t["metrics"]) == {"bias", "rms", "worst", "spread"}, t
for name, value in {**t["metrics"], **t["losses"]}.items():
    assert math.isclose(value, r[name], rel_tol=1e-5, abs_tol=1e-6), (name, value, r[name])
assert math.isclose(t["loss"], r["first"] + r["second"], rel_tol=1e-5)
PYTHON
done
# Where rows depend on each other in training, they are as their step saw them: 16, 16, 16 and 2 of them.
cat >normed.dsl <<'MODEL'
use nn
model normed(rate = 0.0) {
  input x : f32[B, 3]
  z = nn.batch_norm(x)
  train mean(square(z - 1)) with sgd(rate = rate)
  metric share = mean(cast(z > 0.5, f32))
  metric worst = max(abs(z))
  metric rms = sqrt(mean(square(z * z)))
}
MODEL
for more in '' '--devices cpu:0-1 --towers 3'; do
  expect 0 "normalized rows $more" "$dgc" train normed.dsl --data x=rows.csv:1-3 --batch 16 --no-shuffle --train-metrics --json $more
  python3 - <<'PYTHON' && pass || fail 'metrics of normalized rows are not those of their batches'
import csv, json, math
rows, seen = [[float(v) for v in row[:3]] for row in list(csv.reader(open("rows.csv")))[1:]], []
for at in range(0, 50, 16):
    for column in zip(*rows[at : at + 16]):
        mean = sum(column) / len(column)
        scale = math.sqrt(sum((v - mean) ** 2 for v in column) / len(column) + 1e-3)
        seen += [(v - mean) / scale for v in column]
wanted = {"share": sum(z > 0.5 for z in seen) / 150, "worst": max(map(abs, seen)), "rms": math.sqrt(sum(z**4 for z in seen) / 150)}
got = json.load(open("out"))["training"]["metrics"]
assert set(got) == set(wanted) and all(math.isclose(got[k], v, rel_tol=1e-4) for k, v in wanted.items()), (got, wanted)
PYTHON
done

# --- a result, whichever way it ends ---
result() { python3 -c 'import json, sys; r = json.load(open("out")); sys.exit(r["end"] != sys.argv[1] or ("message" in r) != (sys.argv[1] != "done"))' "$1" && pass || fail "no result: $(cat out)"; }
expect 0 'no test data' "$dgc" train still.dsl $data --json --quiet
result done
expect 1 'no model' "$dgc" train nowhere.dsl --json
result input
expect 4 'a loss that is no number' "$dgc" train still.dsl $data --set rate=1e30 --steps 9 --json --quiet
result mismatch
expect 2 'a file that is there' "$dgc" train $digits --json --quiet --checkpoint whole.safetensors
result usage

# --- what cannot be ---
expect 2 'nothing to evaluate on' "$dgc" train still.dsl $data --eval-every 1e
shows err 'give --eval-data NAME=FILE'
grep -q 'data test' err && fail 'a model without test data' || pass
# The model's own test data belong to its own training data: where others are trained on, that is said.
sed '$d' still.dsl >tested.dsl
cat >>tested.dsl <<'MODEL'
  data train {
    x = "rows.csv:1-3"
    y = "rows.csv:y"
  }
  data test {
    x = "rows.csv:1-3"
    y = "rows.csv:y"
  }
}
MODEL
expect 0 'its own data' "$dgc" train tested.dsl --json
grep -q 'not evaluated on' err && fail 'what is evaluated on' || pass
shows out '"rms":'
cp rows.csv other.csv
expect 0 'other data' "$dgc" train tested.dsl --data x=other.csv:1-3 --data y=other.csv:y --json
shows err "note: the model's \`data test\` is not evaluated on, as it trains on other files than the model's: give --eval-data NAME=FILE, or cut what it trains on: --rows 0:A --eval-rows A:B"
expect 0 'one of them is other' "$dgc" train tested.dsl --data x=other.csv:1-3 --quiet
shows err "is not evaluated on"
expect 0 'and rows of them' "$dgc" train tested.dsl --data other.csv --rows 9: --eval-rows 0:9 --quiet
empty err
# Rows that are evaluated on and trained on are told, with what leaves them out; not those of other files.
leak() {
  said=$1
  help=$2
  shift 2
  expect 0 "leak: $*" "$dgc" train tested.dsl --data other.csv --quiet "$@"
  shows err "warning: rows $said, which are evaluated on, are trained on, too"
  if [ "$help" ]; then shows err "help: --rows $help leaves them out"; else ! grep help err || fail "$*"; fi
}
rows=$(($(wc -l <other.csv) - 1))
leak "20:$rows" 0:20 --eval-rows 20:
leak 0:9 "9:$rows" --eval-rows 0:9
leak 15:20 5:15 --rows 5:20 --eval-rows 15:25 --eval-every 1e
leak 10:20 '' --rows 10:20 --eval-rows 5:25
leak "0:$rows" '' --eval-data other.csv
for apart in '--rows 0:20 --eval-rows 20:30' '--eval-data rows.csv' '--eval-data rows.csv --eval-rows 0:9'; do
  # shellcheck disable=SC2086
  expect 0 "apart: $apart" "$dgc" train tested.dsl --data other.csv --quiet $apart
  empty err
done
# Classes that lie one behind the other, of which the last is only evaluated on.
cat >sorted.dsl <<'MODEL'
use nn
model sorted {
  input x : f32[B]
  input kind : i32[B]
  h = nn.dense(expand(x), 3)
  train mean(softmax_cross_entropy(h, kind)) with sgd(0.1)
  metric right = mean(correct(h, kind))
}
MODEL
{ echo x,kind; for i in 0 0 0 0 1 1 1 1 2 2 2 2; do echo "$i,$i"; done; } >sorted.csv
{ echo x,kind; for i in 2 1 0 0 0 1 1 2 0 2 1 2; do echo "$i,$i"; done; } >mixed.csv
expect 0 'classes in their order' "$dgc" train sorted.dsl --data x=sorted.csv:x --data kind=sorted.csv:kind --rows 0:8 --eval-rows 8:12 --steps 1 --quiet
shows err 'warning: rows with kind 2 are evaluated on, and none is trained on'
expect 0 'mixed classes' "$dgc" train sorted.dsl --data x=mixed.csv:x --data kind=mixed.csv:kind --rows 0:8 --eval-rows 8:12 --steps 1 --quiet
empty err
# Of labels that are 0 or 1, too; shares are no classes.
sed 's/i32\[B\]/f32[B]/; s/expand(x), 3/expand(x), 1/; /metric/d
  s/softmax_cross_entropy(h, kind)/sigmoid_cross_entropy(h[:, 0], kind)/' sorted.dsl >shares.dsl
{ echo x,kind; for i in 0 0 0 1; do echo "$i,$i"; done; } >sorted.csv
{ echo x,kind; for i in 0 0.5 0.25 1; do echo "$i,$i"; done; } >mixed.csv
expect 0 'labels of two kinds' "$dgc" train shares.dsl --data x=sorted.csv:x --data kind=sorted.csv:kind --rows 0:3 --eval-rows 3:4 --steps 1 --quiet
shows err 'warning: rows with kind 1 are evaluated on, and none is trained on'
expect 0 'shares' "$dgc" train shares.dsl --data x=mixed.csv:x --data kind=mixed.csv:kind --rows 0:3 --eval-rows 3:4 --steps 1 --quiet
empty err
expect 2 'other data, and evaluation as it goes' "$dgc" train tested.dsl --data other.csv --eval-every 1e
shows err "is not evaluated on"
shows err 'give --eval-data NAME=FILE, or cut the data: --rows 0:A --eval-rows A:B'
for watched in val.rms val.rms:most; do
  expect 2 "which way $watched" "$dgc" train still.dsl $data --eval-rows 0:9 --metric-to-watch $watched
  shows err "which 'val.rms' is best, the least or the greatest?"
  shows err 'help: write val.rms:min or val.rms:max'
done
expect 0 'a loss' "$dgc" train still.dsl $data --eval-rows 0:9 --metric-to-watch val.second
expect 2 'a loss, and no direction' "$dgc" train still.dsl $data --eval-rows 0:9 --metric-to-watch val.second:less
expect 2 'no such metric' "$dgc" train still.dsl $data --eval-rows 0:9 --metric-to-watch val.rsm:min
shows err "did you mean 'val.rms'"
expect 2 'no such period' "$dgc" train still.dsl $data --eval-rows 0:9 --eval-every 1h
shows err 'write a number of steps, as 500, or of epochs, as 1e'
expect 2 'one file for two' $train --keep-best a.safetensors --checkpoint a.safetensors
expect 2 'a file of another training' "$dgc" train $digits --keep-best w.safetensors
shows err '--overwrite begins anew'
expect 3 'no folder' $train --keep-best nowhere/a.safetensors
# Another batch changes how a training goes on, and no bit of what is evaluated or predicted.
expect 0 'some batches' "$dgc" train $digits --steps 2 --checkpoint other.safetensors
expect 0 'evaluated by others' "$dgc" eval $digits --checkpoint other.safetensors --batch 8
empty err
expect 0 'predicted by others' "$dgc" predict $digits --checkpoint other.safetensors --batch 8 --output probability=p.npy
[ "$(cat err)" = '200 rows' ] && pass || fail 'predictions with another batch'
expect 0 'trained by others' "$dgc" train $digits --steps 3 --checkpoint other.safetensors --resume --batch 8
shows err 'warning: the checkpoint was made with batches of '
# Towers that no batch has rows for.
expect 0 'more towers than rows' "$dgc" train $digits --rows 0:6 --batch 3 --towers 5 --quiet
shows err 'note: a batch of 3 rows leaves 2 of 5 towers without any'
expect 0 'as many towers as rows' "$dgc" train $digits --rows 0:6 --batch 3 --towers 3 --quiet
empty err
# Within an epoch, other rows or another order are told; not behind its end, nor where nothing has changed.
within_epoch() {
  rm -f within.safetensors
  expect 0 "begin: $1" "$dgc" train $digits --rows 0:100 --batch 40 --steps "$1" --quiet --checkpoint within.safetensors
  shift
  expect 0 "go on: $*" "$dgc" train $digits --batch 40 --steps 7 --quiet --checkpoint within.safetensors --resume "$@"
}
within_epoch 2 --rows 0:90
shows err 'warning: the checkpoint was made within an epoch of 100 rows, shuffled, and now there are 90, shuffled: in this epoch some come twice, '
within_epoch 4 --rows 0:100 --no-shuffle
shows err 'within an epoch of 100 rows, shuffled, and now there are 100, in their order'
within_epoch 3 --rows 0:90 --no-shuffle
empty err
within_epoch 2 --rows 0:100
empty err
within_epoch 2 --rows 100:200
shows err 'warning: the checkpoint was made within an epoch of other data, of as many rows: this epoch begins with rows of those'
within_epoch 3 --rows 100:200
empty err
# The same rows are the same in any format, in one file or several.
cat >sampled.dsl <<'END'
model sampled() {
  input x : f32[B, 3]
  var w : f32[3] = zeros()
  train mean(square(sum(x * w, axis = 1) - 1)) with sgd(0.01)
}
END
some_rows 2000 a b c >x.csv
{ head -1 x.csv && sed -n '2,701p' x.csv; } >first.csv
{ head -1 x.csv && sed -n '702,$p' x.csv; } >rest.csv
gzip -k x.csv
sampled() {
  expect 0 "a sample: $*" "$dgc" train sampled.dsl --batch 100 --quiet --checkpoint sampled.safetensors "$@"
}
sampled --data x=x.csv --steps 7 --overwrite
cp sampled.safetensors begun.safetensors
sampled --data x=x.csv --steps 15 --resume
cp sampled.safetensors ended.safetensors
for file in x.csv.gz first.csv,rest.csv x.csv:1-3; do
  cp begun.safetensors sampled.safetensors
  DGC_DATA_MEMORY=0 sampled --data "x=$file" --steps 15 --resume
  empty err
  same sampled.safetensors ended.safetensors
done
for line in 2 2001; do
  cp begun.safetensors sampled.safetensors
  sed "${line}s/.*/1,2,3/" x.csv >other.csv
  sampled --data x=other.csv --steps 15 --resume
  shows err 'within an epoch of other data'
done
sed 's/^\(.*\),\(.*\),/\2,\1,/' x.csv >other.csv
cp begun.safetensors sampled.safetensors
sampled --data x=other.csv --steps 15 --resume
shows err 'within an epoch of other data'
finish
