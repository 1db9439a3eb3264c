#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How long inputs take from the host to a GPU: inputs.py BUILD [--steps N] [--megabytes M ...]

The model does little more than read its input. A line has the size of the input in MB, the median of a step in ms, and
GB/s by what that takes longer than a step with a single row: from memory that is pinned for batches, as `dgc bench` and
training have it, and from arrays of the caller, which threads bring into such memory."""
import argparse
import ctypes
import json
import os
import subprocess
import tempfile
import time

WIDTH = 1024
MODEL = f"""use nn
model inputs {{
  input x : f32[B, {WIDTH}]
  train mean(square(nn.dense(x, units = 1))) with sgd(rate = 1e-6)
}}
"""


def pinned(o, path, rows):
    command = [os.path.join(o.build, "dgc"), "bench", path, "--devices", "gpu:0", "--batch", str(rows), "--steps", str(o.steps),
               "--json"]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)["step_ms"]


def from_arrays(o, path, rows):
    dgc = ctypes.CDLL(os.path.join(o.build, "libdgc.so"))
    dgc.dgc_create.restype, dgc.dgc_message.restype = ctypes.c_void_p, ctypes.c_char_p
    session = ctypes.c_void_p(dgc.dgc_create())

    def call(function, *arguments):
        if function(session, *arguments):
            raise SystemExit(dgc.dgc_message(session).decode())
    call(dgc.dgc_set, b"devices", b"gpu:0")
    call(dgc.dgc_set, b"batch", str(rows).encode())
    call(dgc.dgc_load, path.encode())
    x, loss, times = (ctypes.c_float * (rows * WIDTH))(), ctypes.c_float(), []
    ctypes.memset(x, 1, ctypes.sizeof(x))  # pages that were never written are all one and the same in memory
    inputs, outputs = ((ctypes.c_void_p * 1)(ctypes.addressof(a)) for a in (x, loss))
    for _ in range(o.steps + 5):
        begin = time.perf_counter()
        call(dgc.dgc_run, b"train", ctypes.c_int64(rows), inputs, outputs)
        times.append(1e3 * (time.perf_counter() - begin))
    dgc.dgc_destroy(session)
    return sorted(times[5:])[o.steps // 2]


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("build")
    p.add_argument("--steps", type=int, default=50)
    p.add_argument("--megabytes", type=float, nargs="+", default=[0.4, 1.6, 12.8, 67])
    o = p.parse_args()
    with tempfile.NamedTemporaryFile("w", suffix=".dsl") as file:
        file.write(MODEL)
        file.flush()
        least = [way(o, file.name, 1) for way in (pinned, from_arrays)]
        print("| MB | pinned, ms | GB/s | arrays, ms | GB/s |\n|---:|---:|---:|---:|---:|", flush=True)
        for size in o.megabytes:
            rows = max(1, round(size * 1e6 / 4 / WIDTH))
            cells = [f"{4e-6 * rows * WIDTH:.1f}"]
            for way, base in zip((pinned, from_arrays), least):
                ms = way(o, file.name, rows)
                cells += [f"{ms:.3f}", f"{4e-6 * rows * WIDTH / (ms - base):.1f}" if ms > base else "–"]
            print("| " + " | ".join(cells) + " |", flush=True)


main()
