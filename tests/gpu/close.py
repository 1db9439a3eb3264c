"""Two checkpoints, equal within f32: close.py A B TOLERANCE [EXCEPT...]. Each tensor's largest difference is compared
with its largest element; integers are equal."""
import array
import json
import struct
import sys

FLOATS = {"F32": "f", "F64": "d"}


def tensors(path):
    with open(path, "rb") as f:
        size = struct.unpack("<Q", f.read(8))[0]
        header = json.loads(f.read(size))
        data = f.read()
    header.pop("__metadata__", None)
    return {name: (t["dtype"], t["shape"], data[slice(*t["data_offsets"])]) for name, t in header.items()}


def difference(a, b):
    if a[:2] != b[:2]:
        return float("inf")
    if a[0] not in FLOATS:
        return 0.0 if a[2] == b[2] else float("inf")
    x, y = array.array(FLOATS[a[0]], a[2]), array.array(FLOATS[a[0]], b[2])
    if not x:
        return 0.0
    largest = max(max(map(abs, x)), 1e-30)
    worst = max(abs(p - q) for p, q in zip(x, y))
    return worst / largest if worst == worst else float("inf")


one, other, tolerance = tensors(sys.argv[1]), tensors(sys.argv[2]), float(sys.argv[3])
bad = sorted(set(one) ^ set(other))
for name in bad:
    print("%s is in one of them only" % name)
for name in sorted(set(one) & set(other)):
    d = difference(one[name], other[name])
    if not d <= tolerance and name not in sys.argv[4:]:
        print("%s differs by %g of its largest element" % (name, d))
        bad.append(name)
sys.exit(1 if bad or not one else 0)
