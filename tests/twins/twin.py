# SPDX-License-Identifier: Apache-2.0
"""Runs dgc as a user does, on numbers of a test, and reads what it writes."""
import json
import os
import subprocess

import numpy as np

DTYPES = {"F32": np.float32, "F64": np.float64, "I32": np.int32, "I64": np.int64, "U8": np.uint8, "BOOL": np.bool_}


class Twin:
    """A model of dgc: its text, and the folder where its files lie."""

    def __init__(self, dgc, folder, name, text):
        self.dgc, self.folder, self.name = os.path.abspath(dgc), folder, name
        self.file = self.path(name + ".dsl")
        with open(self.file, "w") as out:
            out.write(text)

    def path(self, name):
        return os.path.join(self.folder, name)

    def data(self, inputs):
        words = []
        for name, x in inputs.items():
            np.save(self.path(name + ".npy"), x)
            words += ["--data", "%s=%s.npy" % (name, name)]
        return words

    def run(self, verb, *words):
        run = subprocess.run([self.dgc, verb, self.name + ".dsl", "-q", *words], cwd=self.folder, capture_output=True, text=True)
        if run.returncode:
            raise RuntimeError("dgc %s %s: %s" % (verb, " ".join(words)[:200], "\n".join(e for e in run.stderr.split("\n") if "error" in e)))
        return run.stdout

    def train(self, inputs, steps, *words):
        """Variables before the first step, and behind the last."""
        data, out = self.data(inputs), []
        for count in (0, steps):
            self.run("train", *data, "--overwrite", "--no-shuffle", "--steps", str(count), "--checkpoint", "c.safetensors", *words)
            out.append(checkpoint(self.path("c.safetensors")))
        return out

    def predict(self, inputs, names, *words, variables=None):
        """With these variables; of a model without any by default."""
        head, data = {"__metadata__": {"format": "dgc-1", "model": self.name}}, b""
        for name, x in (variables or {}).items():
            x = np.ascontiguousarray(x, np.float64)
            head[name] = {"dtype": "F64", "shape": x.shape, "data_offsets": [len(data), len(data) + x.nbytes]}
            data += x.tobytes()
        head = json.dumps(head).encode()
        with open(self.path("given.safetensors"), "wb") as out:
            out.write(len(head).to_bytes(8, "little") + head + data)
        outputs = ["--checkpoint", "given.safetensors"] + [w for name in names for w in ("--output", "%s=%s.out.npy" % (name, name))]
        self.run("predict", *self.data(inputs), *outputs, *words)
        return [np.load(self.path(name + ".out.npy")) for name in names]


def checkpoint(path):
    """The tensors of a file in the format safetensors, by their names."""
    data = open(path, "rb").read()
    start = 8 + int.from_bytes(data[:8], "little")
    head = json.loads(data[8:start])
    head.pop("__metadata__", None)
    out = {}
    for name, t in head.items():
        begin, end = t["data_offsets"]
        out[name] = np.frombuffer(data[start + begin:start + end], DTYPES[t["dtype"]]).reshape(t["shape"])
    return out


def differs(want, got, most, least=0):
    """What is wrong with `got`, whose scale is that of the largest element wanted, `least` at least, or None."""
    want, got = np.asarray(want), np.asarray(got)
    if want.shape != got.shape:
        return "%s, not %s" % (got.shape, want.shape)
    both = np.isfinite(want) & np.isfinite(got)
    same = both | (want == got) | (np.isnan(want) & np.isnan(got))
    scale = np.max(np.abs(want[both]), initial=least)
    off = np.where(both, np.abs(np.where(both, want, 0) - np.where(both, got, 0)), 0)
    wrong = ~same | (off > most * scale)
    if not wrong.any():
        return None
    at = tuple(np.argwhere(wrong)[0])
    return "%r, not %r, at %s; %d of %d elements are wrong" % (got[at], want[at], at, wrong.sum(), wrong.size)
