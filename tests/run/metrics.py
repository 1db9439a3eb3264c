#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Metrics of integers are figures of all rows, whatever batches and towers these come in: metrics.py DGC."""
import json
import os
import random
import subprocess
import sys
import tempfile

DGC = os.path.abspath(sys.argv[1])
ROWS = 1003
MODEL = """model m {
  input small : u8[B, 2]
  input large : i32[B]
  input wide  : i64[B]
  input huge  : i64[B]
  metric small      = sum(small)
  metric product    = sum(small * small)
  metric large      = sum(large)
  metric wide       = sum(wide)
  metric columns    = max(sum(small, axis = 0))
  metric difference = sum(small[:, 0]) - sum(small[:, 1]) - 200
  metric same       = sum(small[:, 0] == small[:, 1])
  metric greatest   = max(large) + cast(max(small), i32)
  metric least      = min(large)
  metric average    = mean(large)
  metric share      = sum(cast(small[:, 0] > 99, f32)) / B
  metric huge       = sum(huge)                            # beyond 2^63 it goes on at -2^63
  metric squares    = sum(cast(large, i64) * cast(large, i64) * 4)
  metric huge_least = min(huge) + 2
  metric huge_above = max(huge) - min(huge)
  metric odd        = sum(huge) - 2 * sum(huge / 2)
  metric mean_wide  = mean(wide)
  metric mean_both  = mean(wide) - mean(large)
  metric mean_huge  = mean(huge)
  metric mean_small = mean(small)
}
"""
rng = random.Random(1)
small = [(rng.randrange(256), rng.randrange(200)) for _ in range(ROWS)]
large = [rng.randrange(-2**30, 2**31) for _ in range(ROWS)]
wide = [rng.randrange(-2**40, 2**41) for _ in range(ROWS)]
columns = [sum(row[i] for row in small) for i in (0, 1)]
huge = [rng.choice((1, 1, -1)) * rng.randrange(2**60, 2**62) for _ in range(ROWS)]


def wrapped(n):
    return (n + 2**63) % 2**64 - 2**63


halves = sum(int(n / abs(n)) * (abs(n) // 2) for n in huge)
want = {
    "small": sum(columns), "product": sum(x * x % 256 for row in small for x in row), "large": sum(large), "wide": sum(wide),
    "columns": max(columns), "difference": columns[0] - columns[1] - 200, "same": sum(a == b for a, b in small),
    "greatest": max(large) + max(map(max, small)), "least": min(large), "average": sum(large) / ROWS,
    "share": sum(a > 99 for a, _ in small) / ROWS,
    "huge": wrapped(sum(huge)), "squares": wrapped(4 * sum(x * x for x in large)), "huge_least": min(huge) + 2,
    "huge_above": wrapped(max(huge) - min(huge)), "odd": sum(huge) - 2 * halves, "mean_wide": sum(wide) / ROWS,
    "mean_both": (sum(wide) - sum(large)) / ROWS, "mean_huge": sum(huge) / ROWS, "mean_small": sum(columns) / ROWS / 2,
}
assert abs(sum(huge)) > 2**66 and sum(x * x for x in large) > 2**63
failures = 0


def evaluate(model, *options):
    done = subprocess.run([DGC, "eval", model, *options, "--json"], stdout=subprocess.PIPE, check=True)
    return json.loads(done.stdout)


def close(got, want, what):
    """Whole numbers as they are, as f64 has them; quotients of such to what f64 loses."""
    global failures
    if abs(got - want) > (1e-13 * abs(want) if isinstance(want, float) else 0) and got != float(want):
        failures += 1
        print(f"FAILED: {what}: {got}, not {want}")


with tempfile.TemporaryDirectory() as folder:
    os.chdir(folder)
    open("m.dsl", "w").write(MODEL)
    open("rows.csv", "w").write("".join("%d,%d,%d,%d,%d\n" % (*a, *b) for a, *b in zip(small, large, wide, huge)))
    data = [x for name, columns in (("small", "1-2"), ("large", "3"), ("wide", "4"), ("huge", "5"))
            for x in ("--data", "%s=rows.csv:%s" % (name, columns))]
    for batch, devices in ((ROWS, "cpu:0"), (512, "cpu:0"), (1, "cpu:0"), (100, "cpu:0-3"), (3, "cpu:0-4")):
        got = evaluate("m.dsl", *data, "--batch", str(batch), "--devices", devices)
        for name, x in want.items():
            close(got[name], x, f"{name}, batch {batch} on {devices}")
    # More than f32 counts: rows of a batch, and hits in it.
    open("many.dsl", "w").write("""model many {
  input x : i32[B]
  input y : u8[B]
  metric mean   = mean(x) + 0
  metric alone  = mean(x)
  metric hits   = sum(x == 1)
  metric bytes  = mean(y) * 3
}
""")
    many = 2**24 + 3
    with open("many.npy", "wb") as f:
        header = ("{'descr': '|u1', 'fortran_order': False, 'shape': (%d,), }" % many).ljust(117) + "\n"
        f.write(b"\x93NUMPY\1\0" + len(header).to_bytes(2, "little") + header.encode() + b"\1" * many)
    for batch in (many, 2**22):
        got = evaluate("many.dsl", "--data", "x=many.npy", "--data", "y=many.npy", "--batch", str(batch))
        for name, x in (("mean", 1.0), ("alone", 1.0), ("hits", many), ("bytes", 3.0)):
            close(got[name], x, f"{name} of many rows, batch {batch}")
sys.exit(failures > 0)
