# SPDX-License-Identifier: Apache-2.0
"""Files that lie: data and checkpoints with other bytes, lengths, headers. dgc says no in words, or takes what is there;
what it was to go on from stays as it was."""
import base64
import gzip
import io
import json
import os
import random
import struct
import zipfile
import zlib

import numpy as np

from process import Found, judge, run

MODEL = """model small() {
  input x : f32[B, 3]
  input y : f32[B]
  var w : f32[3] = zeros()
  var b : f32[] = zeros()
  z = sum(x * w, axis = 1) + b
  train mean(square(z - y)) with adam(rate = 0.01)
  predict z = z
}
"""
IMAGES = """model images() {
  input x : f32[B, 4, 5, 3]
  predict z = x
}
"""
JPEG = base64.b64decode(
    "/9j/4AAQSkZJRgABAQAAAQABAAD/2wBDAKBueIx4ZKCMgoy0qqC+8P//8Nzc8P//////////////////////////////////////////////////"
    "////////wAALCAAEAAUBAREA/8QAFAABAAAAAAAAAAAAAAAAAAAAAf/EABcQAQEBAQAAAAAAAAAAAAAAAAECADH/2gAIAQEAAD8ALWSUe7//2Q==")
HUGE = [0, 1, 2, 127, 128, 255, 256, 65535, 65536, 2 ** 31 - 1, 2 ** 31, 2 ** 32 - 1, 2 ** 40, 2 ** 63 - 1, 2 ** 64 - 1]


def idx(a):
    kinds = {"u1": 8, "i4": 12, "f4": 13, "f8": 14}
    code = kinds[a.dtype.str[1:]]
    return bytes([0, 0, code, a.ndim]) + struct.pack(f">{a.ndim}I", *a.shape) + a.astype(a.dtype.newbyteorder(">")).tobytes()


def npy(a, fortran=False):
    out = io.BytesIO()
    np.save(out, np.asfortranarray(a) if fortran else a)
    return out.getvalue()


def npz(**arrays):
    out = io.BytesIO()
    np.savez_compressed(out, **arrays)
    return out.getvalue()


def csv(a):
    rows = a.reshape(len(a), -1)
    head = ",".join(f"c{i}" for i in range(rows.shape[1])) + "\n"
    return (head + "".join(",".join(repr(float(v)) for v in row) + "\n" for row in rows)).encode()


def png(a, rng=None):
    """Of one byte a pixel; with `rng`, one of its chunks lies, and its checksum does not tell."""
    rows = zlib.compress(b"".join(b"\0" + bytes(row) for row in a))
    chunks = [(b"IHDR", struct.pack(">IIBBBBB", a.shape[1], a.shape[0], 8, 0, 0, 0, 0)), (b"IDAT", rows), (b"IEND", b"")]
    if rng:
        i = rng.randrange(len(chunks))
        chunks[i] = rng.choice([chunks[i][0], b"PLTE", b"tRNS", b"IDAT"]), mutate_bytes(rng, chunks[i][1])
        chunks.insert(rng.randrange(4), (rng.choice([b"PLTE", b"tRNS", b"gAMA", b"iCCP", b"zTXt"]), rng.randbytes(rng.randrange(20))))
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data)) for kind, data in chunks)


def safetensors(arrays, change=None):
    names = {np.dtype("f4"): "F32", np.dtype("f8"): "F64", np.dtype("i4"): "I32", np.dtype("i8"): "I64",
             np.dtype("u1"): "U8", np.dtype("bool"): "BOOL"}
    header, at = {}, 0
    for name, a in arrays.items():
        header[name] = {"dtype": names[a.dtype], "shape": list(a.shape), "data_offsets": [at, at + a.nbytes]}
        at += a.nbytes
    if change:
        header = change(header)
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + b"".join(a.tobytes() for a in arrays.values())


def lie(rng, header):
    """A header of safetensors that says something else."""
    name = rng.choice(list(header))
    entry = dict(header[name]) if isinstance(header[name], dict) else {}
    way = rng.randrange(9)
    if way == 0:
        entry["shape"] = [rng.choice(HUGE) for _ in range(rng.randint(0, 9))]
    elif way == 1:
        entry["data_offsets"] = [rng.choice(HUGE + [-1]), rng.choice(HUGE + [-1])]
    elif way == 2:
        entry["dtype"] = rng.choice(["F32", "F64", "I64", "BF16", "F16", "U8", "BOOL", "nonsense", ""])
    elif way == 3:
        entry.pop(rng.choice(list(entry)), None) if entry else None
    elif way == 4:
        entry["shape"] = rng.choice([[-1], [3, None], ["3"], [2.5], {}, [1e300], [[3]], "3"])
    elif way == 5:
        header = {**header, name + rng.choice(["", "\0", "/../x", "é" * 300]): entry}
    elif way == 6:
        return {k: v for k, v in header.items() if k != name}
    elif way == 7:
        return {**header, "__metadata__": rng.choice([{}, {"step": "x"}, {"step": "-5"}, [], {"a": 1}, "text", None])}
    else:
        entry["data_offsets"] = rng.choice([[], [0], [0, 4, 8], [4, 0], ["0", "12"], [0.5, 12], None])
    return {**header, name: entry}


def mutate_bytes(rng, raw):
    raw = bytearray(raw)
    for _ in range(rng.choice([1, 1, 2, 5])):
        way = rng.randrange(7)
        i = rng.randrange(len(raw)) if raw else 0
        early = rng.randrange(min(len(raw), 80)) if raw else 0
        if way == 0 and raw:
            raw[early] ^= 1 << rng.randrange(8)
        elif way == 1:
            raw[early:early + rng.choice([1, 2, 4, 8])] = rng.choice(HUGE).to_bytes(8, rng.choice(["little", "big"]))[
                -rng.choice([1, 2, 4, 8]):]
        elif way == 2:
            del raw[i:]
        elif way == 3:
            raw += bytes(rng.choice([1, 7, 100]))
        elif way == 4 and raw:
            del raw[early:early + rng.randint(1, 9)]
        elif way == 5:
            raw[early:early] = rng.choice([b"\0", b"\xff" * 4, b"-", b"9" * 30, b",", b"\n", b"nan", b"{", b"(" * 50])
        elif raw:
            raw[i] = rng.randrange(256)
    return bytes(raw)


def prepared(tools):
    """The model, its data in each format, and a checkpoint."""
    def make():
        folder = os.path.join(tools.work, "files")
        os.makedirs(folder, exist_ok=True)
        source = np.random.default_rng(1)
        x, y = source.standard_normal((20, 3)).astype("f4"), source.standard_normal(20).astype("f4")
        whole = {"x.idx": idx(x), "x.npy": npy(x), "x.npz": npz(x=x, other=y), "x.csv": csv(x),
                 "x.safetensors": safetensors({"x": x, "y": y}), "y.npy": npy(y),
                 "x.png": png(source.integers(0, 256, (4, 5), np.uint8)), "x.jpg": JPEG}
        with open(os.path.join(folder, "i.dsl"), "w") as f:
            f.write(IMAGES)
        for name, raw in whole.items():
            with open(os.path.join(folder, name), "wb") as f:
                f.write(raw)
        with open(os.path.join(folder, "m.dsl"), "w") as f:
            f.write(MODEL)
        if os.path.exists(os.path.join(folder, "whole.safetensors")):
            os.remove(os.path.join(folder, "whole.safetensors"))
        e = run(train(tools) + ["--data", "x=x.npy", "--checkpoint", "whole.safetensors"], cwd=folder)
        if e.code:
            raise RuntimeError(f"{e.command}: {e.err}")
        return folder, whole, open(os.path.join(folder, "whole.safetensors"), "rb").read()
    return tools.cached("files", make)


def train(tools):
    return [tools.dgc, "train", "m.dsl", "--quiet", "--batch", "4", "--data", "y=y.npy"]


def check_data(tools, seed, index):
    rng = random.Random(f"data:{seed}:{index}")
    folder, whole, _ = prepared(tools)
    name = rng.choice([n for n in whole if n.startswith("x")])
    raw, way = whole[name], rng.randrange(5)
    if name.endswith("safetensors") and way < 3:
        source = np.random.default_rng(1)
        raw = safetensors({"x": source.standard_normal((20, 3)).astype("f4")}, lambda h: lie(rng, h))
    elif name.endswith("npy") and way < 2:
        text = raw[10:raw.index(b"\n")]
        old, new = rng.choice([(b"(20, 3)", rng.choice([b"(20,)", b"(3, 20)", b"(99999999999, 3)", b"()", b"(20, -3)",
                                                        b"(20, 3, 4611686018427387904)", b"20", b"(20L, 3)"])),
                               (b"'<f4'", rng.choice([b"'<f8'", b"'|O'", b"'<U9'", b"'>f4'", b"'<c8'", b"''"])),
                               (b"False", rng.choice([b"True", b"0", b"None"]))])
        raw = raw.replace(text, text.replace(old, new), 1)
    elif name.endswith("png") and way < 3:
        raw = png(np.full((4, 5), 7, np.uint8), rng)
    elif name.endswith("npz") and way < 2:
        out = io.BytesIO()
        with zipfile.ZipFile(out, "w") as z:
            z.writestr(rng.choice(["x.npy", "../x.npy", "x"]), mutate_bytes(rng, whole["x.npy"]))
        raw = out.getvalue()
    else:
        raw = mutate_bytes(rng, raw)
    if rng.random() < 0.2:
        raw = gzip.compress(raw)
        raw = mutate_bytes(rng, raw) if rng.random() < 0.5 else raw
    path = "bad." + name
    with open(os.path.join(folder, path), "wb") as f:
        f.write(raw)
    tools.keep([os.path.join(folder, path)])
    spec = path + (":x" if name.endswith(("npz", "safetensors")) and rng.random() < 0.9 else "")
    command = train(tools) + ["--data", "x=" + spec, "--steps", "3"] + ["--allow-nan"] * tools.has("--allow-nan")
    if name.endswith(("png", "jpg")):
        spec += rng.choice(["", ":resize"])
        command = [tools.dgc, "predict", "i.dsl", "--quiet", "--data", "x=" + spec, "--output", "z=z.npy"]
    e = run(command, cwd=folder)
    judge(e)
    if e.code == 3 and "memory" not in e.err:
        raise Found("data", f"a wrong file is no failure of the system: exit code 3: {e.err[-300:]}")
    return "refused" if e.code else "accepted"


def check_checkpoint(tools, seed, index):
    rng = random.Random(f"checkpoint:{seed}:{index}")
    folder, _, raw = prepared(tools)
    n = struct.unpack("<Q", raw[:8])[0]
    if rng.random() < 0.6:
        header = lie(rng, json.loads(raw[8:8 + n]))
        text = json.dumps(header).encode()
        length = len(text) if rng.random() < 0.9 else rng.choice(HUGE)
        bad = struct.pack("<Q", length) + text + raw[8 + n:]
    else:
        bad = mutate_bytes(rng, raw)
    path = os.path.join(folder, "bad.safetensors")
    with open(path, "wb") as f:
        f.write(bad)
    tools.keep([path])
    verb = rng.choice(["eval", "resume", "inspect", "predict"])
    command = {"eval": [tools.dgc, "eval", "m.dsl", "--checkpoint", path, "--data", "x=x.npy", "--data", "y=y.npy"],
               "predict": [tools.dgc, "predict", "m.dsl", "--checkpoint", path, "--data", "x=x.npy", "--output",
                           "z=z.npy"],
               "inspect": [tools.dgc, "inspect", path],
               "resume": train(tools) + ["--data", "x=x.npy", "--resume", path, "--steps", "7"]}[verb]
    if verb in ("resume", "eval") and tools.has("--allow-nan"):
        command += ["--allow-nan"] if verb == "resume" else []
    e = judge(run(command, cwd=folder))
    with open(path, "rb") as f:
        if f.read() != bad:
            raise Found("checkpoint", f"{verb} has changed the file that it read")
    if e.code == 3 and "memory" not in e.err:
        raise Found("checkpoint", f"a wrong file is no failure of the system: exit code 3: {e.err[-300:]}")
    return "refused" if e.code else "accepted"
