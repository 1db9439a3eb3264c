# SPDX-License-Identifier: Apache-2.0
"""Numbers that are drawn: their distribution, by scipy. The seed is always the same, and so is what is found."""
import numpy as np
import scipy.stats as stats

import case

MANY = 4000


class Drawn:
    """`text`: the numbers of a row, of x : f64[B, MANY] of zeros; `fits`: whether they are what they should be."""

    def __init__(self, text, fits):
        self.text, self.fits = text, fits


def follows(distribution):
    return lambda y: stats.kstest(y.ravel(), distribution.cdf).pvalue > 1e-3


def shares(*wanted):
    """The values are 0, 1, .. in these shares."""
    def fits(y):
        count, share = np.bincount(y.ravel().astype(int), minlength=len(wanted)), np.array(wanted)
        if len(count) > len(wanted) or count[share == 0].any():
            return False
        return stats.chisquare(count[share > 0], share[share > 0] * y.size).pvalue > 1e-3
    return fits


def orders(y):
    """Each row is the same order of all numbers, and none that is sorted."""
    return (np.sort(y, 1) == np.arange(y.shape[1])).all() and (y == y[0]).all() and (y[0] != np.arange(y.shape[1])).any()


LOGITS = np.exp([0.5, 0, -np.inf, 1])
KEPT = np.exp([2, 1, -np.inf, 1])  # of 1, 1/2, 0 and 1/2 the second counts twice, as equals do
ALL = [
    Drawn("cast(random_bernoulli(type(x), 0.3), f64)", shares(0.7, 0.3)),
    Drawn("cast(random_bernoulli(type(x)), f64)", shares(0.5, 0.5)),
    Drawn("random_gumbel(type(x))", follows(stats.gumbel_r())),
    # Of as many numbers some U are 0. They are no infinity, which would win whatever is masked.
    Drawn("x + cast(max(random_gumbel(f32[4096, 16384]), axis = [0, 1]), f64)", lambda y: (np.abs(y - 17.3287) < 1e-4).all()),
    Drawn("random_exponential(type(x))", follows(stats.expon())),
    Drawn("random_truncated_normal(type(x))", follows(stats.truncnorm(-2, 2))),
    Drawn("random_truncated_normal(type(x), 3, 0.5)", follows(stats.truncnorm(-2, 2, 3, 0.5))),
    Drawn("cast(random_categorical(expand(x) + select(iota(f64[4]) == 2, -inf, 0.5 * abs(iota(f64[4]) - 1))), f64)",
          shares(*(LOGITS / LOGITS.sum()))),
    Drawn("cast(random_categorical(expand(x) + 0.5 * abs(iota(f64[4]) - 2), temperature = 0.5, k = 3), f64)",
          shares(*(KEPT / KEPT.sum()))),
    Drawn("x + cast(random_permutation(4000), f64)", orders),
    Drawn("cast(hash(cast(x, i64) + iota(i64[4000]), 10), f64)", shares(*[0.1] * 10)),
    Drawn("cast(hash(cast(x, i64) + 4096 * iota(i64[4000]), 16, 3), f64)", shares(*[0.0625] * 16)),
    Drawn("reparameterize(x + 2, x + 2 * log(3 + x))", follows(stats.norm(2, 3))),
    Drawn("shuffle(x + iota(f64[4000]))", orders),
]


TRAINING = """use nn
model m {
  input z : f64[B]
  var w : f64[] = 0
  state seen : f64[60, 20, 30] = 0
  x = cast(broadcast(2.0, [60, 20, 30]), f64)
  seen <- %s
  train w * mean(z) with sgd()
  predict same = z * mean(%s)
}
"""


def dropped(rate, *shape):
    """0 or 2 / (1 - rate), the same along the axes that have 1 here."""
    def fits(y):
        part = y[tuple(slice(0, n) for n in shape)]
        return (y == part).all() and shares(rate, 1 - rate)((part != 0) * 1.0) and np.allclose(part[part != 0], 2 / (1 - rate))
    return fits


def noisy(mean, stddev):
    return follows(stats.norm(mean, stddev))


def self_normed(y):
    """Two values: of numbers of mean 0 and variance 1 they would keep both."""
    rate, least = 0.25, -1.7580993408473766
    a = ((1 - rate) * (1 + rate * least ** 2)) ** -0.5
    b = -a * least * rate
    return shares(rate, 1 - rate)((y > 0) * 1.0) and np.isin(np.round(y, 9), np.round([a * 2 + b, a * least + b], 9)).all()


IN_TRAINING = [
    Drawn("nn.spatial_dropout(x, 0.25)", dropped(0.25, 60, 1, 30)),
    Drawn("nn.drop_path(x, 0.25)", dropped(0.25, 60, 1, 1)),
    Drawn("dropout(x, 0.25)", dropped(0.25, 60, 20, 30)),
    Drawn("nn.gaussian_noise(x, 0.5)", noisy(2, 0.5)),
    Drawn("nn.gaussian_dropout(x, 0.2)", noisy(2, 1)),
    Drawn("nn.alpha_dropout(x, 0.25)", self_normed),
]


def check_training(lib, drawn):
    """In training as it should be; else nothing happens."""
    with case.binding.Session(lib, [("devices", "cpu:0")]) as s:
        s.load(TRAINING % (drawn.text, drawn.text))
        s.run("train", 5, {"z": np.ones(5)})
        y = s.read("seen", np.float64, (60, 20, 30))
        same = s.run("predict", 5, {"z": np.ones(5)})["same"]
    return ([] if drawn.fits(y) else [f"{y[0, 0, :5]} is not so distributed"]) + ([] if (same == 2).all() else [f"predict: {same}"])


FIRST = """use nn
model m {
  input x : f64[%s]
  layer_of = %s
  train mean(layer_of) with sgd()
}
"""


class First:
    """A layer's kernel, as JAX draws one of the shape."""

    def __init__(self, layer, x, shape, initial="glorot_uniform"):
        self.text, self.x, self.shape, self.initial = f"{layer[:-1]}, initial = {initial})", x, shape, initial


# JAX's normal ones of these names are truncated, as Keras' are; PyTorch's and ours are not.
IN_JAX = {f"{name}_{shape}": case.jax.nn.initializers.variance_scaling(scale, fans, shape) for shape in ("uniform", "normal")
          for name, scale, fans in (("glorot", 1, "fan_avg"), ("he", 2, "fan_in"), ("lecun", 1, "fan_in"))}


FIRSTS = [
    First("nn.dense(x, 50)", "B, 40", (40, 50)),
    First("nn.conv1d(x, 32, size = 5)", "B, 9, 12", (5, 12, 32)),
    First("nn.conv2d(x, 16)", "B, 8, 8, 3", (3, 3, 3, 16)),
    First("nn.conv2d(x, 64, size = 5, groups = 2)", "B, 8, 8, 6", (5, 5, 3, 64)),
    First("nn.conv2d(x, 16, size = [3, 1])", "B, 8, 8, 3", (3, 1, 3, 16)),
    First("nn.conv3d(x, 8)", "B, 4, 4, 4, 5", (3, 3, 3, 5, 8)),
    First("nn.depthwise(x, 3)", "B, 8, 8, 40", (3, 3, 1, 120)),
    First("nn.conv_transpose(x, 24)", "B, 4, 4, 6", (3, 3, 24, 6)),
    First("nn.conv_transpose1d(x, 24, size = 5)", "B, 4, 6", (5, 24, 6)),
    First("nn.conv_transpose3d(x, 24)", "B, 4, 4, 4, 6", (3, 3, 3, 24, 6)),
] + [First("nn.conv2d(x, 40)", "B, 8, 8, 4", (3, 3, 4, 40), initial)
     for initial in ("glorot_normal", "he_uniform", "he_normal", "lecun_uniform", "lecun_normal")]


def check_first(lib, first):
    with case.binding.Session(lib, [("devices", "cpu:0")]) as s:
        s.load(FIRST % (first.x, first.text))
        y = s.read("layer_of.kernel", np.float64, first.shape)
    want = np.array([IN_JAX[first.initial](key, first.shape) for key in case.jax.random.split(case.jax.random.key(0), 20)])
    return [] if stats.ks_2samp(y.ravel(), np.ravel(want)).pvalue > 1e-3 else [f"{np.abs(y).max()} is the greatest, not {np.abs(want).max()}"]


def check(lib, drawn):
    with case.binding.Session(lib, [("devices", "cpu:0-2")]) as s:
        s.load("model m {\n  input x : f64[B, %d]\n  predict out = %s\n}\n" % (MANY, drawn.text))
        y = s.run("predict", 5, {"x": np.zeros((5, MANY))})["out"]
    return [] if drawn.fits(y) and np.isfinite(y).all() else [f"{y[0, :5]} is not so distributed"]
