# SPDX-License-Identifier: Apache-2.0
"""twins.py DGC [NAME...]: trains each model of tests/twins/models.py for 20 steps by DGC, on one tower and on three with
different numbers of rows, and the same in JAX, in f64 from the same first values: no variable may differ by more than 1e-9 of its
largest element, or 1e-4 in f32. Data have exact zeros, equal rows and ties."""

import json
import os
import struct
import subprocess
import sys
import tempfile

os.environ["JAX_PLATFORMS"] = "cpu"
import jax
import numpy as np

jax.config.update("jax_enable_x64", True)
import models  # noqa: E402

STEPS, BATCH = 20, 10
LAYOUTS = (["--devices", "cpu:0"], ["--devices", "cpu:0-2"], ["--devices", "cpu:0", "--towers", "3"])
NAMES = {np.dtype("f8"): "F64", np.dtype("f4"): "F32", np.dtype("i8"): "I64"}


def write(path, tensors):
    header, data = {}, b""
    for name, value in tensors.items():
        value = np.asarray(value, order="C")
        span = [len(data), len(data) + value.nbytes]
        header[name] = {"dtype": NAMES[value.dtype], "shape": value.shape, "data_offsets": span}
        data += value.tobytes()
    text = json.dumps(header).encode()
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text + data)


def read(path):
    with open(path, "rb") as f:
        raw = f.read()
    (size,) = struct.unpack_from("<Q", raw)
    types = {name: dtype for dtype, name in NAMES.items()}
    out = {}
    for name, at in json.loads(raw[8 : 8 + size]).items():
        if name != "__metadata__":
            begin, end = (8 + size + k for k in at["data_offsets"])
            out[name] = np.frombuffer(raw[begin:end], types[at["dtype"]]).reshape(at["shape"])
    return out


def trained(dgc, model, layout, folder):
    """What dgc makes of the model's first values."""
    source, data = os.path.join(folder, "model.dsl"), []
    with open(source, "w") as f:
        f.write(model.text)
    for name, value in model.data.items():
        np.save(os.path.join(folder, name + ".npy"), value)
        data += ["--data", f"{name}={folder}/{name}.npy"]
    first, last = os.path.join(folder, "first.safetensors"), os.path.join(folder, "last.safetensors")
    write(first, model.first)
    options = ["--resume=" + first, "--checkpoint", last, "--overwrite", "--no-shuffle", "--steps", str(STEPS)]
    command = [dgc, "train", source, *data, *options, "--batch", str(BATCH), "--quiet", *layout]
    run = subprocess.run(command, capture_output=True, text=True)
    if run.returncode:
        sys.exit(f"{model.name}: {' '.join(command)}\n{run.stderr}")
    return read(last)


def expected(model):
    values = {name: jax.numpy.asarray(value) for name, value in model.first.items()}
    step = jax.jit(model.step)
    for i in range(STEPS):
        rows = {name: value[i * BATCH : (i + 1) * BATCH] for name, value in model.data.items()}
        values = step(values, rows)
    return values


def difference(model, dgc, layout):
    with tempfile.TemporaryDirectory() as folder:
        are = trained(dgc, model, layout, folder)
    worst, where = 0.0, ""
    for name, value in expected(model).items():
        value = np.asarray(value)
        error = np.abs(are[name] - value).max() / max(np.abs(value).max(), 1e-3)
        if not error <= worst:
            worst, where = error, name
    moved = max(np.abs(are[name] - value).max() for name, value in model.first.items() if name != "step")
    return worst, where, moved


def main():
    passed = failed = 0
    for model in models.all_models(STEPS * BATCH):
        if sys.argv[2:] and model.name not in sys.argv[2:]:
            continue
        for layout in LAYOUTS:
            worst, where, moved = difference(model, sys.argv[1], layout)
            good = worst <= model.most and moved > 1e-3
            passed, failed = passed + good, failed + (not good)
            print(f"{'ok  ' if good else 'FAIL'} {model.name} {' '.join(layout)}: {worst:.1e} {where}, moved {moved:.2g}")
    print(f"{passed} passed, {failed} failed")
    sys.exit(failed > 0)


main()
