#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The log of a training: what its lines say, and that they are whole whatever happens.
. "$(dirname "$0")/lib.sh"

cat >m.dsl <<'MODEL'
model m(rate = 0.1) {
  input x : f32[B, 3]
  input y : f32[B]
  var w : f32[3] = zeros()
  var b : f32 = 0
  train loss = mean(square(sum(x * w, axis = 1) + b - y)) with sgd(rate = exponential_decay(rate, 10, 0.5))
  metric off = mean(sum(x * w, axis = 1) + b - y)
}
MODEL
some_rows 50 a b c y >rows.csv
train="$dgc train m.dsl --data x=rows.csv:1-3 --data y=rows.csv:y --batch 16 --eval-rows 0:50"

# What the lines say is what the same steps give in Python.
cat >check.py <<'PYTHON'
import csv, json, math, sys
rows = [list(map(float, row)) for row in list(csv.reader(open("rows.csv")))[1:]]
w, b, want, step = [0.0] * 3, 0.0, {}, 0
def mean(which, f):
    return sum(map(f, which)) / len(which)
def error(row):
    return sum(p * q for p, q in zip(w, row)) + b - row[3]
for epoch in range(4):
    loss = off = count = 0
    for at in range(0, 50, 16):
        batch = rows[at:at + 16]
        rate = 0.1 * 0.5 ** (step / 10)
        loss += sum(error(r) ** 2 for r in batch)
        off += sum(error(r) for r in batch)
        count += len(batch)
        slope = [mean(batch, lambda r: 2 * error(r) * r[i]) for i in range(3)]
        shift = mean(batch, lambda r: 2 * error(r))
        w = [p - rate * s for p, s in zip(w, slope)]
        b -= rate * shift
        step += 1
        want[step] = {"step": step, "epoch": epoch + 1, "train.loss": loss / count, "train.off": off / count,
                      "rate": rate}
        if step % 3 == 0:
            want[step].update({"val.loss": mean(rows, lambda r: error(r) ** 2), "val.off": mean(rows, error)})
path, *steps = sys.argv[1:]
lines = [json.loads(line) for line in open(path)] if path.endswith("jsonl") else \
    [{k: float(v) for k, v in row.items() if v} for row in csv.DictReader(open(path))]
lines = [line for line in lines if "run" not in line]
assert [line["step"] for line in lines] == list(map(int, steps)), [line["step"] for line in lines]
for line in lines:
    for name, value in want[line["step"]].items():
        assert math.isclose(line[name], value, rel_tol=1e-4, abs_tol=1e-6), (name, line[name], value)
    assert ("val.loss" in line) == (line["step"] % 3 == 0), line
    assert line["seconds"] >= line["epoch_seconds"] >= 0 and line["examples_per_second"] > 0 and line["time"] > 1e9
PYTHON
says() { python3 check.py "$@" && pass || fail "$*"; }
often='--no-shuffle --eval-every 3 --log-every 2 --train-metrics'
expect 0 'a log' $train $often --epochs 4 --log a.jsonl --checkpoint a.safetensors
says a.jsonl 2 3 4 6 8 9 10 12 14 15 16
python3 -c 'import json; r = json.loads(open("a.jsonl").readline())["run"]; assert r["step"] == 0 and "--epochs" in r["arguments"]' && pass || fail 'no run'
expect 0 'as CSV' $train $often --steps 7 --log a.csv --devices cpu:0-1 --checkpoint b.safetensors
says a.csv 2 3 4 6 7
# An epoch has what its steps since the checkpoint had.
expect 2 'a log that is there' $train $often --epochs 4 --log a.csv
shows err '--resume appends to it, --overwrite begins anew'
says a.csv 2 3 4 6 7
expect 0 'goes on' $train $often --steps 8 --log a.csv --resume --checkpoint b.safetensors
shows err 'note: a.csv is there: lines are appended'
[ "$(wc -l <a.csv)" = 7 ] && tail -1 a.csv | grep -q '^8,2,' && pass || fail "appended: $(cat a.csv)"
printf '9,3,0.' >>a.csv
expect 0 'goes on behind half a line' $train $often --steps 10 --log a.csv --resume --checkpoint b.safetensors
shows err 'and one that was not whole is gone'
[ "$(cut -d , -f 1 a.csv | tr '\n' ' ')" = 'step 2 3 4 6 7 8 9 10 ' ] && pass || fail "half a line: $(cat a.csv)"
expect 2 'other columns' $train --no-shuffle --steps 12 --log a.csv --resume --checkpoint b.safetensors
shows err 'other columns than this training'
expect 0 'begins anew' $train $often --steps 7 --log a.csv --overwrite
says a.csv 2 3 4 6 7
expect 2 'no such form' $train --log a.txt
shows err 'must end in .jsonl or .csv'
expect 3 'no folder' $train --log nowhere/a.csv

# Whoever is killed leaves whole lines, and who goes on does, too.
"$dgc" train m.dsl --data x=rows.csv:1-3 --data y=rows.csv:y --batch 1 --epochs 100000 --log k.jsonl --log-every 1 \
  --checkpoint k.safetensors --checkpoint-every 100 --quiet >/dev/null 2>&1 &
job=$!
until [ -s k.safetensors ] || ! kill -0 $job 2>/dev/null; do sleep 0.05; done
kill -9 $job
wait $job 2>/dev/null
python3 -c 'import json; [json.loads(line) for line in open("k.jsonl")]' && pass || fail 'killed: half a line'

# A log that cannot be written is told of once, and the training goes on.
ln -s /dev/full full.csv
expect 3 'no room' $train $often --epochs 4 --log full.csv --checkpoint full.safetensors
[ "$(grep -c 'cannot write full.csv' err)" = 1 ] && pass || fail "no room: $(cat err)"
same a.safetensors full.safetensors
finish
