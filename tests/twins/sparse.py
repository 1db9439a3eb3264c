#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""CSR matrices that stay sparse, beside scipy: sparse.py DGC. The file's places and values, a product with a dense matrix,
and training on it; rows of nothing, NaN and infinities, columns more than a dense row may have, rows with too many values."""
import subprocess
import sys
import tempfile

import numpy as np
import scipy.sparse

import twin

MODEL = """use nn
model sparse {
  input i : i32[B, %d]
  input w : f64[B, %d]
  var k : f64[%d, 3] = glorot_uniform()
  y = nn.sparse_dense_matmul(i, w, k)
  predict y = y
  predict i = i
  predict w = w
  train sum(square(y)) with sgd(0.01)
}
"""
JOINED = """use nn
model joined {
  input i : i32[B, 4]
  input w : f64[B, 4]
  var k : f64[5, 3] = glorot_uniform()
  predict product = nn.sparse_dense_matmul(i, w, k)
%s  train sum(square(nn.sparse_dense_matmul(i, w, k)) + square(nn.embedding_lookup_sparse(k, i, w, combiner = "sum"))) with sgd(0.01)
}
"""
COMBINERS = ("sum", "mean", "sqrtn")
failures = []


def check(good, what):
    if not good:
        failures.append(what)
        print("FAILED:", what)


class File(twin.Twin):
    """Its data is one file, and how many values of a row are read."""

    def data(self, inputs):
        name, width = inputs
        return ["--data", "i=%s:places/%d" % (name, width), "--data", "w=%s:values/%d" % (name, width)]


def matrix(rng, rows, columns):
    m = scipy.sparse.random(rows, columns, density=4 / columns, format="lil", random_state=rng)
    m[2] = 0
    m = m.tocsr()
    m.sort_indices()
    return m


def combined(k, i, w, how):
    """What a row has of the table, one place after the other."""
    out = np.zeros((len(i), k.shape[1]))
    for row, (places, weights) in enumerate(zip(i, w)):
        some = [(p, v) for p, v in zip(places, weights) if p >= 0]
        if some:
            share = {"sum": 1, "mean": sum(v for _, v in some), "sqrtn": np.sqrt(sum(v * v for _, v in some))}[how]
            out[row] = sum(k[p] * v for p, v in some) / share
    return out


def padding(rng, folder):
    """Places of nothing anywhere, whose weights are anything; the table's first and last rows are those that a wrong number names."""
    text = "".join("  predict %s = nn.embedding_lookup_sparse(k, i, w, combiner = \"%s\")\n"
                   "  predict plain_%s = nn.embedding_lookup_sparse(k, i, combiner = \"%s\")\n" % ((how,) * 4) for how in COMBINERS)
    model = twin.Twin(sys.argv[1], folder, "joined", JOINED % text)
    i = np.array([[0, 4, 1, 4], [-1, 2, -1, 3], [-1, -1, -1, -1], [2, 2, 2, -1], [-1, -1, -1, 1], [3, -1, 3, 1]], np.int32)
    w = rng.uniform(0.5, 2, i.shape)
    w[i < 0] = 7
    k = rng.standard_normal((5, 3))
    for kind in "plain", "odd":
        if kind == "odd":  # nothing of a place of nothing, or of rows that are not named, is looked at
            i, w, k = i[1:], w[1:].copy(), k.copy()
            w[i < 0] = np.nan
            k[0], k[4] = np.inf, np.nan
        names = ["product"] + [p + how for how in COMBINERS for p in ("", "plain_")]
        for towers in ("1", "3"):
            got = model.predict({"i": i, "w": w}, names, "--batch", "4", "--towers", towers, variables={"k": k})
            for name, y in zip(names, got):
                how = "sum" if name == "product" else name.replace("plain_", "")
                want = combined(k, i, np.ones(w.shape) if "plain" in name else w, how)
                check(twin.differs(want, y, 1e-14) is None, "%s of %s on %s towers" % (name, kind, towers))
        begin, end = model.train({"i": i, "w": w}, 1, "--batch", str(len(i)), "--towers", "3")
        slope = np.zeros((5, 3))
        y = combined(begin["k"], i, w, "sum")
        for row in range(len(i)):
            for p, v in zip(i[row], w[row]):
                if p >= 0:
                    slope[p] += 4 * v * y[row]
        check(twin.differs(begin["k"] - 0.01 * slope, end["k"], 1e-13) is None, "what is trained on %s" % kind)


def main():
    rng = np.random.default_rng(1)
    with tempfile.TemporaryDirectory() as folder:
        for columns, kind in ((50, "i32"), (50, "odd"), (3000000, "wide")):
            m = matrix(rng, 9, columns)
            width = int(np.diff(m.indptr).max())
            model = File(sys.argv[1], folder, "sparse", MODEL % (width, width, columns))
            if kind == "wide":  # more than dense rows may have: train alone, of a table that is updated by rows
                scipy.sparse.save_npz(model.path("m.npz"), m)
                begin, end = model.train(("m.npz", width), 1, "--batch", "9")
                changed = np.flatnonzero((begin["k"] != end["k"]).any(1))
                check(np.array_equal(changed, np.unique(m.indices)), "other rows than those of the matrix have changed")
                continue
            if kind == "odd":
                m.data[:2] = np.nan, -np.inf
            for compressed in (True, False):
                scipy.sparse.save_npz(model.path("m.npz"), m, compressed=compressed)
                k = rng.standard_normal((columns, 3))
                for towers in ("1", "3"):
                    y, i, w = model.predict(("m.npz", width), ["y", "i", "w"], "--batch", "4", "--towers", towers, variables={"k": k})
                    want_i, want_w = np.full(i.shape, -1), np.zeros(w.shape)
                    for r in range(9):
                        part = slice(m.indptr[r], m.indptr[r + 1])
                        want_i[r, :part.stop - part.start], want_w[r, :part.stop - part.start] = m.indices[part], m.data[part]
                    check(np.array_equal(i, want_i), "places")
                    check(np.array_equal(w, want_w, equal_nan=True), "values")
                    check(twin.differs(m @ k, y, 1e-14) is None, "the product of %s on %s towers" % (kind, towers))
            if kind == "i32":
                begin, end = model.train(("m.npz", width), 2, "--batch", "9", "--towers", "3")
                k = begin["k"]
                for _ in range(2):
                    k = k - 0.01 * 2 * (m.T @ (m @ k))
                check(twin.differs(k, end["k"], 1e-13) is None, "what was trained")
                for data, says in ((["i=m.npz:places/%d" % (width - 1)], "write places/%d" % width),
                                   (["i=m.npz:places/0"], "no member 'places/0'"), (["i=m.npz:place/4"], "no member 'place/4'"),
                                   (["i=m.npz:places/99999999999999999999"], "no member")):
                    run = subprocess.run([model.dgc, "train", "sparse.dsl", "--data", data[0], "--data", "w=m.npz:values/%d" % width],
                                         cwd=folder, capture_output=True, text=True)
                    check(run.returncode == 1 and says in run.stderr, "%s: %s" % (data, run.stderr))
        padding(rng, folder)
    print("%d failed" % len(failures))
    return len(failures) > 0


if __name__ == "__main__":
    sys.exit(main())
