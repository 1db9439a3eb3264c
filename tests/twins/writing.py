# SPDX-License-Identifier: Apache-2.0
"""writing.py DGC: text that a loop writes, character by character, beside numpy, which computes the whole again for each one: by
`gru_cell`, by `lstm_cell`, and by a transformer whose cache is shorter than the text. The first of the greatest is taken, or one is
drawn by noise that is given. On one tower, on three uneven ones, and by the interpreter: the same letters."""
import math
import sys
import tempfile

import numpy as np

from twin import Twin

ROWS, COUNT, VOCABULARY, WIDTH, PLACES, BLOCKS = 7, 20, 6, 4, 8, 2

LOOP = """use nn
model writing(temperature = 0, k = none) {
  input first : i32[B]
  input noise : f64[B, %d, %d]
%s
  predict text = text
}
"""
CELLS = """
  var table : f64[6, 4] = zeros()
  cell = nn.%s.new()
  out = nn.dense.new(6)
  h = broadcast(cast(0.0, f64), [B, 4])
  c = h
  letter = first
  text = scan letter, h, c over g in noise {
    x = lookup(table, letter)
    %s
    letter = random_categorical(out(h), %s, noise = g)
    return letter
  }"""
DECODER = """
  var table : f64[6, 4] = zeros()
  out = nn.dense.new(6)
  reader = nn.transformer_encoder.new(2, 2, 5, rotate = true, causal = true)
  letter = first
  cache = broadcast(cast(0.0, f64), [B, 2, 2, 8, 4])
  text = scan letter, cache over g in noise, p in broadcast(iota(i32[20]), [B, 20]) {
    y, cache = reader(expand(lookup(table, letter), 1), cache = cache, place = p)
    letter = random_categorical(out(squeeze(y, 1)), %s, noise = g)
    return letter
  }"""


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def normed(p, name, x):
    gap = x - x.mean(-1, keepdims=True)
    return gap / np.sqrt((gap ** 2).mean(-1, keepdims=True) + 1e-5) * p[name + ".scale"] + p[name + ".shift"]


def dense(p, name, x):
    return x @ p[name + ".kernel"] + p.get(name + ".bias", 0)


def by_gru(p, letters):
    h = np.zeros(WIDTH)
    for letter in letters:
        a = p["table"][letter] @ p["cell.kernel"] + p["cell.bias"]
        b = h @ p["cell.recurrent"]
        reset, update = sigmoid(a[:4] + b[:4]), sigmoid(a[4:8] + b[4:8])
        h = update * h + (1 - update) * np.tanh(a[8:] + reset * (b[8:] + p["cell.recurrent_bias"]))
    return dense(p, "out", h)


def by_lstm(p, letters):
    h = c = np.zeros(WIDTH)
    for letter in letters:
        i, f, g, o = np.split(dense(p, "cell", np.concatenate([p["table"][letter], h])), 4)
        c = sigmoid(f + 1) * c + sigmoid(i) * np.tanh(g)
        h = sigmoid(o) * np.tanh(c)
    return dense(p, "out", h)


def turned(x):
    """Of [L, 2 heads, 2 features]: by its place, as complex numbers."""
    z = (x[..., 0] + 1j * x[..., 1]) * np.exp(1j * np.arange(len(x)))[:, None]
    return np.stack([z.real, z.imag], -1)


def by_decoder(p, letters):
    """All places at once, each of which sees the last PLACES."""
    gelu = np.vectorize(lambda x: 0.5 * x * (1 + math.erf(x / 2 ** 0.5)))
    h = p["table"][letters]
    near = np.arange(len(h))[:, None] - np.arange(len(h))
    for i in range(BLOCKS):
        first = normed(p, f"reader.first.{i}", h)
        q, k, v = ((first @ p[f"reader.mixed.{i}.{n}.kernel"]).reshape(-1, 2, 2) for n in "qkv")
        scores = np.einsum("ihd,jhd->hij", turned(q), turned(k)) / np.sqrt(2)
        seen = np.where((near >= 0) & (near < PLACES), scores, -np.inf)
        share = np.exp(seen - seen.max(-1, keepdims=True))
        mixed = np.einsum("hij,jhd->ihd", share / share.sum(-1, keepdims=True), v).reshape(-1, WIDTH)
        h = h + dense(p, f"reader.mixed.{i}", mixed)
        wide = gelu(dense(p, f"reader.wide.{i}.wide", normed(p, f"reader.second.{i}", h)))
        h = h + dense(p, f"reader.wide.{i}", wide)
    return dense(p, "out", normed(p, "reader", h)[-1])


def expected(p, logits_of, first, noise, temperature, k):
    out = []
    for row, start in enumerate(first):
        letters = [start]
        for g in noise[row]:
            logits = logits_of(p, letters)
            if temperature:
                kept = np.where(logits >= np.sort(logits)[-k], logits, -np.inf)
                logits = kept / temperature + g
            letters.append(int(np.argmax(logits)))
        out.append(letters[1:])
    return np.array(out)


def main():
    rng, failed, done = np.random.default_rng(3), 0, 0
    inputs = {"first": rng.integers(0, 6, ROWS).astype("i4"), "noise": rng.gumbel(size=(ROWS, COUNT, VOCABULARY))}
    shapes = {"gru": {"cell.kernel": (4, 12), "cell.recurrent": (4, 12), "cell.bias": (12,), "cell.recurrent_bias": (4,)},
              "lstm": {"cell.kernel": (8, 16), "cell.bias": (16,)}, "decoder": {"reader.scale": (4,), "reader.shift": (4,)}}
    for name in shapes:
        shapes[name].update({"out.kernel": (4, 6), "out.bias": (6,)})
    for i in range(BLOCKS):
        many = {"first.%d.scale": (4,), "first.%d.shift": (4,), "second.%d.scale": (4,), "second.%d.shift": (4,),
                "mixed.%d.q.kernel": (4, 4), "mixed.%d.k.kernel": (4, 4), "mixed.%d.v.kernel": (4, 4), "mixed.%d.kernel": (4, 4),
                "wide.%d.wide.kernel": (4, 5), "wide.%d.wide.bias": (5,), "wide.%d.kernel": (5, 4), "wide.%d.bias": (4,)}
        shapes["decoder"].update({"reader." + n % i: shape for n, shape in many.items()})
    bodies = {"gru": CELLS % ("gru_cell", "h = cell(x, h)", "%s"), "lstm": CELLS % ("lstm_cell", "h, c = cell(x, h, c)", "%s"),
              "decoder": DECODER}
    models = {"gru": by_gru, "lstm": by_lstm, "decoder": by_decoder}
    for name, body in bodies.items():
        for temperature, k in ((0, None), (0.7, 3)):
            text = LOOP % (COUNT, VOCABULARY, body % f"{temperature}, k = {k or 'none'}")
            want = np.zeros(1)
            while len(np.unique(want)) < 4:  # weights that have something to say
                p = {n: 2 * rng.normal(size=s) for n, s in {"table": (6, 4), **shapes[name]}.items()}
                want = expected(p, models[name], inputs["first"], inputs["noise"], temperature, k)
            with tempfile.TemporaryDirectory() as folder:
                twin = Twin(sys.argv[1], folder, "writing", text)
                for layout in (["--devices", "cpu:0"], ["--devices", "cpu:0-2"], ["--backend", "interp"]):
                    (got,) = twin.predict(inputs, ["text"], "--batch", str(ROWS), *layout, variables=p)
                    wrong = (got != want).sum()
                    done, failed = done + 1, failed + bool(wrong)
                    if wrong:
                        print(f"FAIL {name} {temperature} {' '.join(layout)}: {wrong} letters differ: {got[0]}, not {want[0]}")
    print(f"{done - failed} passed, {failed} failed")
    return failed != 0


sys.exit(main())
