#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The event files of a training: as their format says, and as TensorFlow reads them where it is.
. "$(dirname "$0")/lib.sh"

cat >m.dsl <<'MODEL'
model m(rate = 0.1) {
  input x : f32[B, 3]
  input y : f32[B]
  var w : f32[3] = uniform(-1, 1)
  state seen : f32 = 0
  train loss = mean(square(sum(x * w, axis = 1) - y)) with momentum(rate = exponential_decay(rate, 10, 0.5))
  metric off = mean(sum(x * w, axis = 1) - y)
  seen += 1
}
MODEL
some_rows 50 a b c y >rows.csv
train="$dgc train m.dsl --data x=rows.csv:1-3 --data y=rows.csv:y --batch 16 --eval-rows 0:50 --eval-every 3 --log-every 2 --quiet"

cat >by_hand.py <<'PYTHON'
"""Events as dictionaries, by the format's own text."""
import glob, struct
table = []
for i in range(256):
    for _ in range(8):
        i = i >> 1 ^ (0x82f63b78 if i & 1 else 0)
    table.append(i)
def crc(data):
    c = 0xffffffff
    for byte in data:
        c = table[(c ^ byte) & 255] ^ c >> 8
    c ^= 0xffffffff
    return ((c >> 15 | c << 17) + 0xa282ead8) & 0xffffffff
assert crc(b"123456789") == ((0xe3069283 >> 15 | 0xe3069283 << 17) + 0xa282ead8) & 0xffffffff
def records(path):
    data = open(path, "rb").read()
    while data:
        size, check = struct.unpack("<QI", data[:12])
        assert check == crc(data[:8]) and struct.unpack("<I", data[12 + size:16 + size])[0] == crc(data[12:12 + size])
        yield data[12:12 + size]
        data = data[16 + size:]
def varint(data, at):
    value = shift = 0
    while True:
        value |= (data[at] & 127) << shift
        at, shift = at + 1, shift + 7
        if data[at - 1] < 128:
            return value, at
def fields(data):
    at = 0
    while at < len(data):
        key, at = varint(data, at)
        wire = key & 7
        if wire == 0:
            value, at = varint(data, at)
        elif wire == 1:
            value, at = struct.unpack("<d", data[at:at + 8])[0], at + 8
        elif wire == 5:
            value, at = struct.unpack("<f", data[at:at + 4])[0], at + 4
        else:
            size, at = varint(data, at)
            value, at = data[at:at + size], at + size
        yield key >> 3, value
def doubles(data):
    return list(struct.unpack("<%dd" % (len(data) // 8), data))
def read(folder):
    """Of each file in turn: (step, tag, number or histogram)."""
    for path in sorted(glob.glob(folder + "/events.out.tfevents.*")):
        before = {}
        for n, record in enumerate(records(path)):
            event = dict(fields(record))
            assert event[1] > 1e9 and (n or event[3] == b"brain.Event:2")
            assert (4 in event) == (7 in before or n == 1 and 7 not in event), "the graph comes first"
            before = event
            if 7 in event:
                yield event[2], "begins", dict(fields(event[7]))[1]
            for field, summary in fields(event.get(5, b"")):
                value = dict(fields(summary))
                tag = value[1].decode()
                if 5 in value:
                    h = dict(fields(value[5]))
                    yield event[2], tag, (h[1], h[2], h[3], h[4], h[5], doubles(h[6]), doubles(h[7]))
                else:
                    yield event[2], tag, value[2]
def graph(folder):
    """Of the last file: [(name, op, inputs, device, type, shape, texts)]."""
    of = lambda data, wanted: [value for field, value in fields(data) if field == wanted]
    text = lambda data, wanted: of(data, wanted)[0].decode()
    drawn = [of(r, 4)[0] for r in records(sorted(glob.glob(folder + "/events.out.tfevents.*"))[-1]) if of(r, 4)]
    assert len(drawn) == 1
    for node in of(drawn[0], 1):
        more = {text(a, 1): of(a, 2)[0] for a in of(node, 5)}
        shape, = of(of(more.pop("_output_shapes"), 1)[0], 7)
        yield (text(node, 1), text(node, 2), [i.decode() for i in of(node, 3)], text(node, 4), of(more.pop("T"), 6)[0],
               [of(d, 1)[0] for d in of(shape, 2)], {k: text(v, 2) for k, v in more.items()})
PYTHON
cat >by_tensorflow.py <<'PYTHON'
import glob
from tensorflow.compat.v1.train import summary_iterator
def read(folder):
    for path in sorted(glob.glob(folder + "/events.out.tfevents.*")):
        for n, e in enumerate(summary_iterator(path)):
            assert n or e.file_version == "brain.Event:2"
            if e.HasField("session_log"):
                yield e.step, "begins", e.session_log.status
            for v in e.summary.value:
                h = v.histo
                yield e.step, v.tag, v.simple_value if v.HasField("simple_value") else \
                    (h.min, h.max, h.num, h.sum, h.sum_squares, list(h.bucket_limit), list(h.bucket))
def graph(folder):
    from tensorflow.compat.v1 import GraphDef
    for e in summary_iterator(sorted(glob.glob(folder + "/events.out.tfevents.*"))[-1]):
        for n in GraphDef.FromString(e.graph_def).node:
            more = dict(n.attr)
            shape, = more.pop("_output_shapes").list.shape
            yield (n.name, n.op, list(n.input), n.device, more.pop("T").type, [d.size for d in shape.dim],
                   {k: v.s.decode() for k, v in more.items()})
PYTHON
cat >check_graph.py <<'PYTHON'
import importlib, json, re, sys
types = {"f32": 1, "f64": 2, "i32": 3, "u8": 4, "i64": 9, "bool": 10}
name = (lambda n: n.replace(".", "/")) if sys.argv[3] == "folded" else lambda n: n
nodes = json.load(open(sys.argv[2] + ".json"))["nodes"]
want = []
for n in nodes:
    dtype, shape = re.fullmatch(r"(\w+)\[(.*)\]", n["type"] + "[]" * ("[" not in n["type"])).groups()
    texts = {"distribution": n["dist"], "rule": n["why"], "where": n.get("origin")}
    want.append((name(n["name"]), n["op"], [name(nodes[i]["name"]) for i in n["inputs"]], n["device"], types[dtype],
                 [int(d) for d in shape.split(",") if d], {k: v for k, v in texts.items() if v}))
got = list(importlib.import_module(sys.argv[1]).graph(sys.argv[2]))
assert len(want) > 30 and len({n[0] for n in got}) == len(got)
for a, b in zip(got, want):
    assert a == b, (a, b)
assert len(got) == len(want), (len(got), len(want))
PYTHON
cat >check.py <<'PYTHON'
import importlib, json, math, struct, sys
read = importlib.import_module(sys.argv[1]).read
log = {e["step"]: e for e in map(json.loads, open("a.jsonl")) if "run" not in e}
near = lambda a, b: math.isclose(a, b, rel_tol=1e-6, abs_tol=1e-9)
seen = {}
for step, tag, value in read("a"):
    seen.setdefault(tag, []).append(step)
    if tag == "weights/w":
        raw = open("w%d.bin" % step, "rb").read()
        w = struct.unpack("<3f", raw)
        least, most, number, total, squares, limits, counts = value
        assert near(least, min(w)) and near(most, max(w)) and number == 3 and near(total, sum(w)) and near(squares, sum(x * x for x in w)), (value, w)
        assert sum(counts) == 3 and len(limits) == len(counts) and limits == sorted(limits) and limits[-1] == most
        below = lambda x: sum(c for limit, c in zip(limits, counts) if limit <= x * (1 + 1e-9) + 1e-12)
        assert below(max(w)) == 3 and counts[-1] >= 1
    elif tag != "begins":
        assert near(value, struct.unpack("<f", struct.pack("<f", log[step][tag.replace("/", ".")]))[0]), (step, tag, value)
often = sorted(log)
assert seen.pop("begins", []) == [5], seen
assert seen.pop("val/loss") == seen.pop("val/off") == [s for s in often if s % 3 == 0]
assert seen.pop("weights/w") == [4, 8, 12], seen
assert set(seen) == {"train/loss", "rate", "examples_per_second"} and all(sorted(s) == often for s in seen.values()), (seen, often)
PYTHON
expect 0 'the first epoch' $train --log a.jsonl --log-dir a --checkpoint a.safetensors --epochs 1 --log-every 1e
expect 0 'goes on' $train --log a.jsonl --log-dir a --checkpoint a.safetensors --epochs 3 --resume --log-every 1e
expect 2 'events of another training' $train --log-dir a
shows err '--resume goes on with them'
expect 3 'no folder' $train --log-dir rows.csv/a
for epochs in 1 2 3; do
  "$dgc" train m.dsl --data x=rows.csv:1-3 --data y=rows.csv:y --batch 16 --epochs $epochs --quiet --checkpoint w.safetensors --overwrite
  python3 - $epochs <<'PYTHON'
import json, struct, sys
data = open("w.safetensors", "rb").read()
size, = struct.unpack("<Q", data[:8])
begin, end = json.loads(data[8:8 + size])["w"]["data_offsets"]
open("w%d.bin" % (4 * int(sys.argv[1])), "wb").write(data[8 + size + begin:8 + size + end])
PYTHON
done
# The graph: names fold at their dots, unless two would become one ("tower_1.h" of a layer, "tower_1/h" of a tower).
cat >alike.dsl <<'MODEL'
layer inner(x) {
  var w : f32 = 1
  h = x * w
  return h
}
model m() {
  input x : f32[B, 3]
  var w : f32[3] = uniform(-1, 1)
  h = x * w
  tower_1 = inner(h)
  train loss = mean(square(tower_1)) with sgd(0.1)
}
MODEL
rows='--data x=rows.csv:1-3 --batch 10'
expect 0 'names alike' "$dgc" train alike.dsl $rows --devices cpu:0-1 --log-dir alike -q
"$dgc" compile alike.dsl --batch 10 --devices cpu:0-1 --emit json >alike.json
expect 0 'tasks' "$dgc" train m.dsl $rows --data y=rows.csv:y --cluster 'worker=2;ps=1' --log-dir tasks -q
"$dgc" compile m.dsl --batch 10 --cluster 'worker=2;ps=1' --emit json >tasks.json
python3 check_graph.py by_hand alike kept && python3 check_graph.py by_hand tasks folded && pass || fail 'the graph is another'

python3 check.py by_hand && pass || fail 'the events are others'
if python=$("$source/tools/oracles.sh" --find 2>why) && $python -c 'import tensorflow' 2>/dev/null; then
  TF_CPP_MIN_LOG_LEVEL=3 $python check.py by_tensorflow 2>errors && pass || fail "TensorFlow reads other events: $(tail -3 errors)"
  TF_CPP_MIN_LOG_LEVEL=3 $python check_graph.py by_tensorflow tasks folded 2>errors && pass ||
    fail "TensorFlow reads another graph: $(tail -3 errors)"
else
  skipped=$((skipped + 1))
  echo "SKIP: no TensorFlow: $(cat why)"
fi
finish
