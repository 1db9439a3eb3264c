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
ALL = [
    Drawn("cast(random_bernoulli(type(x), 0.3), f64)", shares(0.7, 0.3)),
    Drawn("cast(random_bernoulli(type(x)), f64)", shares(0.5, 0.5)),
    Drawn("random_gumbel(type(x))", follows(stats.gumbel_r())),
    Drawn("random_exponential(type(x))", follows(stats.expon())),
    Drawn("random_truncated_normal(type(x))", follows(stats.truncnorm(-2, 2))),
    Drawn("random_truncated_normal(type(x), 3, 0.5)", follows(stats.truncnorm(-2, 2, 3, 0.5))),
    Drawn("cast(random_categorical(expand(x) + select(iota(f64[4]) == 2, -inf, 0.5 * abs(iota(f64[4]) - 1))), f64)",
          shares(*(LOGITS / LOGITS.sum()))),
    Drawn("x + cast(random_permutation(4000), f64)", orders),
    Drawn("reparameterize(x + 2, x + 2 * log(3 + x))", follows(stats.norm(2, 3))),
    Drawn("shuffle(x + iota(f64[4000]))", orders),
]


def check(lib, drawn):
    with case.binding.Session(lib, [("devices", "cpu:0-2")]) as s:
        s.load("model m {\n  input x : f64[B, %d]\n  predict out = %s\n}\n" % (MANY, drawn.text))
        y = s.run("predict", 5, {"x": np.zeros((5, MANY))})["out"]
    return [] if drawn.fits(y) and np.isfinite(y).all() else [f"{y[0, :5]} is not so distributed"]
