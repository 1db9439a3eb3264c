#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""clip_by_global_norm and clip_by_norm beside numpy's long doubles and, where it is installed, torch's clip_grad_norm_:
clips.py DGC.

Gradients whose squares are infinite in f32, or 0, or not normal; no gradient, ties, infinities and NaN. On one tower and on two,
each of which has part of the gradient. torch squares in f32, so that it is asked where its norm is right, and of what is not
finite."""
import sys
import tempfile

import numpy as np

import twin

MODEL = """model clips {
  input a : f32[B, 3]
  input b : f32[B, 1]
  var u : f32[3] = zeros()
  var v : f32[1] = zeros()
  train sum(a * u) + sum(b * v) with [%s(%s), sgd(1.0)]
}
"""
INF, NAN = float("inf"), float("nan")
GRADIENTS = {
    "great": ([2e19, 1e19, 0], [3e19]), "greatest": ([3e38, -3e38, 3e38], [1e38]), "one great": ([1e-3, 0, 1e30], [1]),
    "small": ([1e-30, 2e-30, 0], [1e-25]), "not normal": ([1e-42, 2e-42, 0], [-3e-44]), "none": ([0, 0, 0], [0]),
    "usual": ([3, -4, 0], [12]), "ties": ([0.5, 0.5, 0.5], [0.5]), "short": ([0.1, 0.2, 0], [-0.3]),
    "infinite": ([INF, 1, 0], [2]), "infinities": ([INF, -INF, 1], [2]), "NaN": ([NAN, 1, 0], [2]), "both": ([NAN, INF, 0], [2]),
}
LIMITS = ("1.0", "0.1", "1e20")


def clipped(gradients, limit):
    norm = np.sqrt(sum(np.sum(np.square(g.astype(np.longdouble))) for g in gradients))
    factor = limit / np.maximum(norm, limit)  # an f32, which may be less than a normal one
    return [g * factor for g in gradients], 1e-6 + float(1.5e-45 / factor)


def torchs(gradients, limit):
    import torch

    parameters = [torch.nn.Parameter(torch.zeros(len(g))) for g in gradients]
    for p, g in zip(parameters, gradients):
        p.grad = torch.tensor(g)
    norm = torch.nn.utils.clip_grad_norm_(parameters, limit)
    return float(norm), [p.grad.numpy() for p in parameters]


def has_torch():
    try:
        import torch
    except ImportError:
        return False
    return bool(torch.__version__)


def wrong(want, got, most):
    """As twin.differs of each element, whose own scale counts; what is below an f32's normal range is off by some of its units."""
    want, got = np.asarray(want, np.longdouble), np.asarray(got)
    known = np.isfinite(want)
    if (np.isnan(want) != np.isnan(got)).any() or (np.abs(got - want)[known] > most * np.abs(want[known]) + 4e-45).any():
        return "%s, not %s" % (got, want)
    return None


def main():
    failures, torch = 0, has_torch()
    with tempfile.TemporaryDirectory() as folder, np.errstate(invalid="ignore", over="ignore", divide="ignore"):
        for link in "clip_by_global_norm", "clip_by_norm":
            for limit in LIMITS:
                model = twin.Twin(sys.argv[1], folder, "clips", MODEL % (link, limit))
                for name, (a, b) in GRADIENTS.items():
                    a, b = np.float32(a), np.float32(b)
                    together = [[a, b]] if link == "clip_by_global_norm" else [[a], [b]]
                    for towers in "1", "2":
                        rows = {"a": np.stack([0 * np.nan_to_num(a), a]), "b": np.stack([b, 0 * np.nan_to_num(b)])}
                        end = model.train(rows, 1, "--batch", "2", "--towers", towers, "--allow-nan")[1]
                        have = [-end["u"], -end["v"]] if link == "clip_by_global_norm" else [[-end["u"]], [-end["v"]]]
                        for g, got in zip(together, [have] if link == "clip_by_global_norm" else have):
                            want = [("numpy", *clipped(g, float(limit)))]
                            if torch:
                                norm, its = torchs(g, float(limit))
                                squares = np.square(np.concatenate(g)[np.concatenate(g) != 0])
                                right = np.isnan(norm) or np.isinf(np.concatenate(g)).any() or (
                                    (squares > 1e-37) & np.isfinite(squares)).all()
                                # it divides by the norm and 1e-6
                                want += [("torch", its, 1e-5 + 1e-6 / norm if norm else 0)] if right else []
                            for whose, theirs, most in want:
                                for one, other in zip(theirs, got):
                                    says = wrong(one, other, most)
                                    failures += says is not None
                                    if says:
                                        print("FAILED: %s(%s) of %s on %s towers: %s, by %s" % (link, limit, name, towers, says, whose))
    print("%d failed" % failures)
    return failures > 0


if __name__ == "__main__":
    sys.exit(main())
