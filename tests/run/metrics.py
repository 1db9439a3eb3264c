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
}
"""
rng = random.Random(1)
small = [(rng.randrange(256), rng.randrange(200)) for _ in range(ROWS)]
large = [rng.randrange(-2**30, 2**31) for _ in range(ROWS)]
wide = [rng.randrange(-2**40, 2**41) for _ in range(ROWS)]
columns = [sum(row[i] for row in small) for i in (0, 1)]
want = {
    "small": sum(columns), "product": sum(x * x % 256 for row in small for x in row), "large": sum(large), "wide": sum(wide),
    "columns": max(columns), "difference": columns[0] - columns[1] - 200, "same": sum(a == b for a, b in small),
    "greatest": max(large) + max(map(max, small)), "least": min(large), "average": sum(large) / ROWS,
    "share": sum(a > 99 for a, _ in small) / ROWS,
}
failures = 0
with tempfile.TemporaryDirectory() as folder:
    os.chdir(folder)
    open("m.dsl", "w").write(MODEL)
    open("rows.csv", "w").write("".join("%d,%d,%d,%d\n" % (*a, b, c) for a, b, c in zip(small, large, wide)))
    for batch, devices in ((ROWS, "cpu:0"), (512, "cpu:0"), (1, "cpu:0"), (100, "cpu:0-3"), (3, "cpu:0-4")):
        done = subprocess.run([DGC, "eval", "m.dsl", "--data", "small=rows.csv:1-2", "--data", "large=rows.csv:3", "--data", "wide=rows.csv:4",
                               "--batch", str(batch), "--devices", devices, "--json"], stdout=subprocess.PIPE, check=True)
        got = json.loads(done.stdout)
        for name, x in want.items():
            most = 1e-6 * abs(x) if isinstance(x, float) else 0
            if abs(got[name] - x) > most:
                failures += 1
                print(f"FAILED: {name}, batch {batch} on {devices}: {got[name]}, not {x}")
sys.exit(failures > 0)
