# SPDX-License-Identifier: Apache-2.0
"""What is drawn for each image: every result is one that numpy makes of its image, all of them come as often, the next step
draws anew, three uneven towers draw what one does, and outside of training nothing is drawn."""
import numpy as np
import scipy.stats as stats

import case
from case import Case

ROWS, H, W, C = 240, 5, 6, 2
X = np.random.default_rng(3).permutation(ROWS * H * W * C).reshape(ROWS, H, W, C) / 64.0 + 1

MODEL = """use nn
model m {
  input x : f64[B, 5, 6, 2]
  input place : f64[B, 240]
  var w : f64[] = 0
  state seen : f64[240, %d] = 0
  seen <- transpose(place) @ reshape(%s, [B, -1])
  train w * mean(sum(place, axis = 1)) with sgd()
  predict same = %s
}
"""


def padded(x, by):
    return np.pad(x, ((by, by), (by, by), (0, 0)))


def evenly(counts):
    return len(counts) == 1 or stats.chisquare(counts).pvalue > 1e-3


class Choice:
    """One of few results for each image: `results(x)` lists them."""

    def __init__(self, text, results, same=lambda x: x):
        self.text, self.results, self.same = text, results, same

    def wrong(self, rows):
        counts = np.zeros(len(self.results(X[0])), int)
        for x, y in zip(X, rows):
            which = [i for i, one in enumerate(self.results(x)) if np.array_equal(one.ravel(), y)]
            if len(which) != 1:
                return f"{y[:6]} is made of no image"
            counts[which[0]] += 1
        return "" if evenly(counts) else f"not as often: {counts}"


class Range:
    """y = f(x, u), with u even between two numbers: `find(x, y)` gives u, and what is left of y when it is accounted for."""

    def __init__(self, text, low, high, find):
        self.text, self.low, self.high, self.find = text, low, high, find
        self.same = lambda x: x

    def wrong(self, rows):
        found = [self.find(x, y.reshape(x.shape)) for x, y in zip(X, rows)]
        if max(np.abs(left).max() for _, left in found) > 1e-9:
            return "more than one number"
        u = np.array([u for u, _ in found])
        good = stats.kstest(u, stats.uniform(self.low, self.high - self.low).cdf).pvalue > 1e-3
        return "" if good else f"{np.sort(u)} is not so distributed"


def crops(by, height, width):
    def results(x):
        wide = padded(x, by)
        return [wide[i:i + height, j:j + width] for i in range(H + 2 * by - height + 1) for j in range(W + 2 * by - width + 1)]
    return results


def middle(by, height, width):
    def same(x):
        i, j = (H + 2 * by - height) // 2, (W + 2 * by - width) // 2
        return padded(x, by)[i:i + height, j:j + width]
    return same


def erased(size):
    def results(x):
        made = []
        for i in range(H):
            for j in range(W):
                y, top, left = x.copy(), i - size // 2, j - size // 2
                y[max(top, 0):max(top + size, 0), max(left, 0):max(left + size, 0)] = 0
                made.append(y)
        return made
    return results


def brightness(x, y):
    u = (y - x).mean()
    return u, y - x - u


def contrast(x, y):
    off = x - x.mean((0, 1))
    u = ((y - x.mean((0, 1))) * off).sum() / (off * off).sum()
    return u, y - x.mean((0, 1)) - u * off


DRAWN = [
    Choice("nn.random_flip(x)", lambda x: [x, x[:, ::-1]]),
    Choice("nn.random_flip(x, 1)", lambda x: [x, x[::-1]]),
    Choice("nn.random_crop(x, 3, 4)", crops(0, 3, 4), middle(0, 3, 4)),
    Choice("nn.random_crop(x, 5, 6, padding = 1)", crops(1, 5, 6), middle(1, 5, 6)),
    Choice("nn.random_crop(x, 2, 6)", crops(0, 2, 6), middle(0, 2, 6)),
    Choice("nn.random_crop(x, 5, 6)", crops(0, 5, 6)),
    Choice("nn.random_erase(x, 2)", erased(2)),
    Choice("nn.random_erase(x, 3)", erased(3)),
    Range("nn.random_brightness(x, 0.5)", -0.5, 0.5, brightness),
    Range("nn.random_contrast(x, 0.5, 1.25)", 0.5, 1.25, contrast),
]


def seen(lib, drawn, devices, steps, size):
    with case.binding.Session(lib, [("devices", devices)]) as s:
        s.load(MODEL % (size, drawn.text, drawn.text))
        given = {"x": X, "place": np.eye(ROWS)}
        same = s.run("predict", ROWS, given)["same"]
        for _ in range(steps):
            s.run("train", ROWS, given)
        return same, s.read("seen", np.float64, (ROWS, size))


def check(lib, drawn):
    want = np.stack([drawn.same(x) for x in X])
    size = want[0].size
    same, first = seen(lib, drawn, "cpu:0", 1, size)
    found = [] if np.array_equal(same, want) else ["predict: not what stands in the middle"]
    wrong = drawn.wrong(first)
    found += [wrong] if wrong else []
    if not np.array_equal(seen(lib, drawn, "cpu:0-2", 1, size)[1], first):
        found.append("three towers draw otherwise")
    one_result = isinstance(drawn, Choice) and len(drawn.results(X[0])) == 1
    if np.array_equal(seen(lib, drawn, "cpu:0", 2, size)[1], first) != one_result:
        found.append("the next step draws the same")
    return found


IMAGES = case.rows(9, 3, 4, 2)
IMAGES[2] = 0.5  # of no deviation


def standardized(x):
    import jax.numpy as jnp
    spread = ((x - x.mean((1, 2, 3), keepdims=True)) ** 2).mean((1, 2, 3), keepdims=True)
    least = 1 / np.sqrt(x[0].size)
    return (x - x.mean((1, 2, 3), keepdims=True)) / jnp.maximum(jnp.sqrt(jnp.where(spread > 0, spread, 1e-30)), least)


CASES = [
    Case("nn.normalize(x, [0.49, 0.48], [0.25, 2])", {"x": IMAGES}, lambda x: (x - np.array([0.49, 0.48])) / np.array([0.25, 2])),
    Case("nn.standardize(x)", {"x": case.rows(9, 3, 4, 2)}, standardized),
    Case("nn.standardize(x)", {"x": IMAGES}, standardized, gradients=False, note="all alike"),
]
