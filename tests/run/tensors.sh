#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What is done with checkpoints without a model, and first values out of them. Files are written and read back by Python.
. "$(dirname "$0")/lib.sh"

cat >files.py <<'PYTHON'
import json, math, random, struct, sys, zipfile

SIZES = {"F16": 2, "BF16": 2, "F32": 4, "F64": 8, "I32": 4, "I64": 8, "U8": 1, "BOOL": 1}
CODES = {"F16": "e", "F32": "f", "F64": "d", "I32": "i", "I64": "q", "U8": "B", "BOOL": "?"}

def write(path, tensors):
    """name: (dtype, shape, bytes), as another program writes it."""
    header, data = {}, b""
    for name, (dtype, shape, raw) in tensors.items():
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    text = json.dumps(header).encode()
    open(path, "wb").write(struct.pack("<Q", len(text)) + text + data)

def read(path):
    data = open(path, "rb").read()
    size, = struct.unpack("<Q", data[:8])
    header = json.loads(data[8:8 + size])
    header.pop("__metadata__", None)
    return {name: (e["dtype"], e["shape"], data[8 + size + e["data_offsets"][0]:8 + size + e["data_offsets"][1]])
            for name, e in header.items()}

def pack(dtype, values):
    return struct.pack("<%d%s" % (len(values), CODES[dtype]), *values)

def unpack(dtype, raw):
    if dtype == "BF16":
        return [struct.unpack("<f", b"\0\0" + raw[i:i + 2])[0] for i in range(0, len(raw), 2)]
    return list(struct.unpack("<%d%s" % (len(raw) // SIZES[dtype], CODES[dtype]), raw))

def npz(path):
    with zipfile.ZipFile(path) as z:
        assert z.testzip() is None
        arrays = {}
        for name in z.namelist():
            raw = z.read(name)
            assert raw[:8] == b"\x93NUMPY\x01\0" and name.endswith(".npy")
            size, = struct.unpack("<H", raw[8:10])
            assert (10 + size) % 64 == 0
            arrays[name[:-4]] = (eval(raw[10:10 + size]), raw[10 + size:])
    return arrays
PYTHON
py() { python3 - && pass || fail "$*"; }

# --- 16 bits ---
py 'files to read' <<'PYTHON'
from files import *
every = b"".join(struct.pack("<H", i) for i in range(65536))
write("every.safetensors", {"a.f16": ("F16", [256, 256], every), "a.bf16": ("BF16", [65536], every), "n": ("I64", [], pack("I64", [7]))})
random.seed(5)
bits = [random.getrandbits(32) for _ in range(4000)]
# Halves between two numbers of 16 bits, their neighbours, and around the ends.
for e in range(95, 150):
    for part in (0, 0xfff, 0x1000, 0x1001, 0x2fff, 0x3000, 0x3001, 0x7fff, 0x8000, 0x8001, 0x17fff, 0x18000, 0x18001, 0x7fffff):
        bits += [e << 23 | part, 1 << 31 | e << 23 | part]
bits += [0, 1 << 31, 0x7f800000, 0xff800000, 0x7f7fffff, 0x7fc00000, 0x7f800001, 1, 0x33000000, 0x33000001]
write("f32.safetensors", {"x": ("F32", [len(bits)], struct.pack("<%dI" % len(bits), *bits))})
PYTHON
expect 0 'all of 16 bits' "$dgc" checkpoint to-npz every.safetensors -o every.npz
py 'all of 16 bits are read' <<'PYTHON'
from files import *
arrays = npz("every.npz")
every = b"".join(struct.pack("<H", i) for i in range(65536))
for name, dtype, shape in (("a.f16", "F16", (256, 256)), ("a.bf16", "BF16", (65536,))):
    head, raw = arrays[name]
    assert head == {"descr": "<f4", "fortran_order": False, "shape": shape}, head
    for i, (got, want) in enumerate(zip(unpack("F32", raw), unpack(dtype, every))):
        assert got == want and math.copysign(1, got) == math.copysign(1, want) or got != got and want != want, (dtype, i, got, want)
assert arrays["n"] == ({"descr": "<i8", "fortran_order": False, "shape": ()}, pack("I64", [7]))
PYTHON
for to in f16 bf16 f32; do
  expect 0 "to $to" "$dgc" checkpoint cast f32.safetensors --to $to -o to.$to.safetensors
  mv err to.$to.err
  expect 0 "to $to again" "$dgc" checkpoint cast to.$to.safetensors --to $to -o again.safetensors --overwrite
  same to.$to.safetensors again.safetensors
  expect 0 "every to $to" "$dgc" checkpoint cast every.safetensors --to $to -o every.$to.safetensors
done
py 'casts' <<'PYTHON'
from files import *
values = unpack("F32", read("f32.safetensors")["x"][2])
raw = [struct.unpack("<I", struct.pack("<f", v))[0] if v == v else None for v in values]
def f16(v):
    try:
        return struct.unpack("<e", struct.pack("<e", v))[0]
    except OverflowError:
        return math.copysign(math.inf, v)
def bf16(v):
    i, = struct.unpack("<I", struct.pack("<f", v))
    low = i & 0xffff
    i = (i >> 16) + (low > 0x8000 or (low == 0x8000 and i >> 16 & 1))
    return struct.unpack("<f", struct.pack("<I", i << 16))[0]
for to, of in (("f16", f16), ("bf16", bf16)):
    dtype, shape, data = read("to." + to + ".safetensors")["x"]
    assert dtype == to.upper() and shape == [len(values)]
    for v, got in zip(values, unpack(dtype, data)):
        want = v if v != v else of(v)
        assert got != got and v != v or got == want and math.copysign(1, got) == math.copysign(1, want), (to, v, got, want)
    lost = sum(math.isfinite(v) and math.isinf(of(v)) for v in values)
    said = open("to." + to + ".err").read().splitlines()
    assert lost and said[0] == "warning: cast: %d of %d numbers of x are too large for %s and become infinite" % (lost, len(values), to), said
    assert len(said) == (2 if to == "f16" else 1), said
assert read("f32.safetensors")["x"] == read("to.f32.safetensors")["x"] and not open("to.f32.err").read()
# What was of 16 bits is again, but for what a NaN says besides.
before, after = read("every.safetensors")["a.f16"][2], read("every.f16.safetensors")["a.f16"][2]
for i in range(65536):
    a, b = before[2 * i:2 * i + 2], after[2 * i:2 * i + 2]
    assert a == b or (i & 0x7fff) > 0x7c00 and (struct.unpack("<H", b)[0] & 0x7fff) > 0x7c00, i
PYTHON

# --- show and diff ---
py 'two files' <<'PYTHON'
from files import *
nan, inf = math.nan, math.inf
a = {"w": ("F32", [2, 3], pack("F32", [1, -2, nan, 4, nan, 0.5])), "i": ("I32", [2], pack("I32", [-3, 9])), "none": ("F64", [0], b""),
     "nans": ("F64", [1], pack("F64", [nan])), "most": ("F32", [2], pack("F32", [inf, 1])), "h": ("BF16", [1], b"\x80\x3f")}
write("a.safetensors", a)
b = dict(a, w=("F32", [2, 3], pack("F32", [1, -2, nan, 4.5, nan, -0.0])), i=("I32", [1], pack("I32", [-3])))
del b["most"]
write("b.safetensors", b)
PYTHON
expect 0 show "$dgc" checkpoint show a.safetensors
cp out shown
expect 0 'the same' "$dgc" weights a.safetensors
same out shown
cat >want <<'TEXT'
w : f32[2,3]  min -2  max 4  mean 0.875  2 NaN
i : i32[2]  min -3  max 9  mean 3
none : f64[0]
nans : f64[1]  1 NaN
most : f32[2]  min 1  max inf  mean inf  1 infinite
h : bf16[1]  min 1  max 1  mean 1
TEXT
same want out
expect 0 'show as JSON' "$dgc" checkpoint show a.safetensors --json
py 'show as JSON' <<'PYTHON'
import json
t = {x["name"]: x for x in json.load(open("out"))["tensors"]}
assert t["w"] == {"name": "w", "dtype": "f32", "shape": [2, 3], "min": -2, "max": 4, "mean": 0.875, "nan": 2, "infinite": 0}
assert t["h"]["dtype"] == "bf16" and t["most"]["max"] is None
PYTHON
expect 0 'no difference' "$dgc" checkpoint diff a.safetensors a.safetensors
empty out
expect 4 diff "$dgc" checkpoint diff a.safetensors b.safetensors
cat >want <<'TEXT'
w: 2 of 6 elements differ, by at most 0.5
i: i32[2] there, i32[1] here
most: only in a.safetensors
TEXT
same want out
shows err 'differ in 3 tensors'

# --- average ---
py 'three files' <<'PYTHON'
from files import *
random.seed(6)
for k in range(3):
    write("part%d.safetensors" % k, {"w": ("F32", [50], pack("F32", [random.gauss(0, 1) for _ in range(50)])), "step": ("I64", [], pack("I64", [k]))})
PYTHON
expect 0 average "$dgc" checkpoint average part0.safetensors part1.safetensors part2.safetensors -o mean.safetensors
py average <<'PYTHON'
from files import *
parts = [unpack("F32", read("part%d.safetensors" % k)["w"][2]) for k in range(3)]
mean = read("mean.safetensors")
assert unpack("F32", mean["w"][2]) == [struct.unpack("<f", struct.pack("<f", sum(x) / 3))[0] for x in zip(*parts)]
assert unpack("I64", mean["step"][2]) == [2]
PYTHON
expect 4 'average of what does not fit' "$dgc" checkpoint average part0.safetensors a.safetensors -o no.safetensors
[ ! -e no.safetensors ] && pass || fail 'a file of nothing'
expect 2 'a file that is there' "$dgc" checkpoint average part0.safetensors -o mean.safetensors
shows err '--overwrite replaces it'
expect 2 'no file' "$dgc" checkpoint average part0.safetensors
expect 2 'no action' "$dgc" checkpoint shwo a.safetensors
shows err "did you mean 'show'"
expect 2 'too few' "$dgc" checkpoint diff a.safetensors
expect 1 'no checkpoint' "$dgc" checkpoint show "$samples/digits.dsl"
head -c 300 a.safetensors >cut.safetensors
expect 1 'half a file' "$dgc" checkpoint show cut.safetensors

# --- first values ---
cat >teacher.dsl <<'MODEL'
use nn
model teacher(width = 4, outputs = 2) {
  input x : f32[B, 3]
  input y : f32[B, outputs]
  encoder = nn.dense(x, units = width, activation = tanh)
  head = nn.dense(encoder, units = outputs)
  train loss = mean(square(head - y)) with adam(rate = 0.1)
  predict guess = head
}
MODEL
sed 's/teacher/pupil/; s/encoder/trunk/; s/encoder/trunk/' teacher.dsl >pupil.dsl
some_rows 20 a b c y z >rows.csv
data='--data x=rows.csv:1-3 --data y=rows.csv:4-5'
expect 0 teacher "$dgc" train teacher.dsl $data --epochs 5 --quiet --checkpoint teacher.safetensors
# values OF FILE...: the tensors of the model that are those of the teacher.
expect 0 pupil "$dgc" train pupil.dsl $data --steps 0 --quiet --checkpoint pupil.safetensors --init-from teacher.safetensors:encoder=trunk
shows err 'teacher.safetensors: 4 variables are loaded'
py 'the values are those' <<'PYTHON'
from files import *
t, p = read("teacher.safetensors"), read("pupil.safetensors")
for name in p:
    if ".adam." in name:
        assert not any(p[name][2]), name
    elif name != "step":
        assert t[name.replace("trunk", "encoder")] == p[name], name
assert unpack("I64", p["step"][2]) == [0]
PYTHON
expect 0 'a name that nothing has' "$dgc" train pupil.dsl $data --steps 0 --quiet --init-from teacher.safetensors:encoder=trunk:decoder=trunk
shows err 'warning: teacher.safetensors: `decoder=trunk` renames nothing: no name in it begins with that'
grep -q '`encoder=trunk` renames' err && fail 'what renames something' || pass
expect 0 'another width' "$dgc" train teacher.dsl --data x=rows.csv:1-3 --data y=rows.csv:4 --set outputs=1 --steps 0 --quiet --init-from teacher.safetensors
shows err '2 variables are loaded'
shows err 'not loaded: head.bias (f32[2] there, f32[1] here), head.kernel (f32[4,2] there, f32[4,1] here)'
shows err 'init-from: these begin as the model says: head.bias, head.kernel'
expect 4 'nothing fits' "$dgc" train teacher.dsl $data --steps 0 --quiet --init-from a.safetensors
shows err 'nothing in it fits a variable of model teacher'
expect 0 'goes on' "$dgc" train pupil.dsl $data --steps 3 --quiet --checkpoint pupil.safetensors --resume --init-from teacher.safetensors:encoder=trunk
shows err 'this training goes on from step 0'
# What the file has and is not saved again is told, when a training goes on.
cp pupil.safetensors plain.safetensors
sed 's/with adam(/with sgd(/; s/with adamw(/with sgd(/' pupil.dsl >plain.dsl
expect 0 'without the state of its optimizer' "$dgc" train plain.dsl $data --steps 4 --quiet --checkpoint plain.safetensors --resume
shows err 'note: resume: the file has what the model has not, and does not save: head.bias.adam.m, head.bias.adam.v, '
expect 0 'with all of it, by now' "$dgc" train plain.dsl $data --steps 5 --quiet --checkpoint plain.safetensors --resume
grep -q 'does not save' err && fail 'what was left out is gone by now' || pass
# As numpy writes it: f64 and f16, by other names.
py 'of numpy' <<'PYTHON'
from files import *
t = read("teacher.safetensors")
write("other.safetensors", {"enc/W".replace("/", "."): ("F64", [3, 4], pack("F64", unpack("F32", t["encoder.kernel"][2]))),
                            "enc.b": ("F16", [4], pack("F16", [0.5, -1, 2, 0.25]))})
open("names", "w").write("enc.W = trunk.kernel\nenc.b = trunk.bias\n")
PYTHON
expect 0 'names of another program' "$dgc" train pupil.dsl $data --steps 0 --quiet --checkpoint numpy.safetensors --init-from other.safetensors --names names
shows err '2 variables are loaded'
expect 0 'renamed first' "$dgc" checkpoint rename other.safetensors --names names -o renamed.safetensors
expect 0 'and loaded' "$dgc" train pupil.dsl $data --steps 0 --quiet --checkpoint numpy2.safetensors --init-from renamed.safetensors
same numpy.safetensors numpy2.safetensors
py 'of numpy' <<'PYTHON'
from files import *
t, n = read("teacher.safetensors"), read("numpy.safetensors")
assert n["trunk.kernel"] == t["encoder.kernel"] and unpack("F32", n["trunk.bias"][2]) == [0.5, -1, 2, 0.25]
assert read("renamed.safetensors")["trunk.bias"][0] == "F16"
PYTHON
# What f32 does not hold.
py 'of f64' <<'PYTHON'
from files import *
write("wide.safetensors", {"trunk.bias": ("F64", [4], pack("F64", [0.5, math.inf, 1e300, 0]))})
PYTHON
expect 4 'a first value that is too large' "$dgc" train pupil.dsl $data --steps 0 --quiet --init-from wide.safetensors
shows err 'wide.safetensors: number 2 of trunk.bias is 1e+300, which does not fit into the f32 of model pupil'
# What becomes infinite is said once: 65520 is the first that does, halfway to what would follow 65504. Nothing is said of what
# was infinite, nor where all is well.
py 'large numbers' <<'PYTHON'
from files import *
large = {"fine": [1, -65504], "w": [65504, 65519.996, 65520, -1e6, math.inf, math.nan], "empty": [], "u": [-65520], "v": [3e38, 2e38, 0]}
write("large.safetensors", {n: ("F32", [len(v)], pack("F32", v)) for n, v in large.items()})
for kind in "F16", "BF16":
    write(kind.lower() + ".unfit.safetensors", {"trunk.kernel": (kind, [6], bytes(12))})
PYTHON
expect 0 'large numbers to f16' "$dgc" checkpoint cast large.safetensors --to f16 -o large.f16.safetensors
cat >want <<'SAYS'
warning: cast: 2 of 6 numbers of w are too large for f16 and become infinite
note: so do 3 of 2 more tensors
help: --to bf16 has room for them: the largest f16 is 65504
SAYS
same err want
expect 0 'large numbers to bf16' "$dgc" checkpoint cast large.safetensors --to bf16 -o large.bf16.safetensors
empty err
# A type is said as the file has it.
printf 'model m {\n  input x : f32[B]\n  var w : f32[4] = 0\n  predict p = x + sum(w)\n}\n' >four.dsl
for kind in f16 bf16; do
  expect 4 "another shape, $kind" "$dgc" predict four.dsl --data x=rows.csv:1 --checkpoint large.$kind.safetensors
  shows err "w is $kind[6] there, and f32[4] in model m"
  expect 4 "another shape to begin with, $kind" "$dgc" train pupil.dsl $data --steps 0 --checkpoint no.safetensors --init-from $kind.unfit.safetensors
  shows err "trunk.kernel ($kind[6] there, "
done
# Whole checkpoints of 16 bits are read, too.
expect 0 'half of it' "$dgc" checkpoint cast teacher.safetensors --to bf16 -o half.safetensors
expect 0 'half of it predicts' "$dgc" predict teacher.dsl --data x=rows.csv:1-3 --checkpoint half.safetensors --quiet
finish
