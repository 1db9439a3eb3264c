# SPDX-License-Identifier: Apache-2.0
"""How far numbers may be from those that are wanted, and what is said where they are not."""
import numpy as np

# Units in the last place that XLA's own functions may be off, of f32 and f64, beside what ours may.
ULPS = 8
# A number that is none to a device that has no subnormal f32, which a cast may have been before.
TINY = 1.2e-38
# Whose order of additions dgc says, and XLA does not keep: their bounds are points, but where parts of a cumsum overflow.
IN_ORDER = ("cumsum", "window_sum", "window_put", "scatter_add", "add_along")
# What no row of theirs sees has no part in them; in XLA it is multiplied by 0, and NaN and Inf become NaN.
HIDING = ("attention", "attention_gradient")
# Beside the greatest element, of tensors that many operations have made.
RELATIVE = {"f64": 1e-9, "f32": 2e-4}


def room(tolerance, want, low, high, size):
    eps = np.finfo(want.dtype).eps
    if tolerance in RELATIVE:
        most = np.max(np.abs(np.where(np.isfinite(want), want, 0)), initial=0)
        return RELATIVE[tolerance] * np.maximum(np.abs(want), most)
    return ULPS * eps * np.where(np.isfinite(want), np.abs(want), 0) + TINY + (tolerance in IN_ORDER) * eps * size


def hides(case):
    floats = [x for x in case.args if x.dtype.kind == "f"]
    return case.tolerance in HIDING and not all(np.isfinite(x).all() for x in floats)


def unsure(case, name, want):
    """Where the scores of attention are so great that what a rounding takes of one moves its weight: XLA subtracts the greatest
    from a product that it has not rounded (q * k - max as one operation)."""
    mine = {n.split(".")[1]: x for x, n in zip(case.args, case.names) if n.startswith("c%s." % name.split("_")[-1])}
    if "x2" not in mine or want.dtype.kind != "f":
        return np.zeros(want.shape, bool)
    q, k, v = mine["x0"], mine["x1"], mine["x2"]
    with np.errstate(all="ignore"):
        scores = np.abs(np.einsum("bihd,bjhd->bhij", q, k)).reshape(q.shape[0], q.shape[2], -1)
        great = (np.where(np.isfinite(scores), scores, 0).max(2, initial=0) * np.finfo(q.dtype).eps > 1e-3)[:, None, :, None]
    parts = [q, k, v] if case.tolerance == "attention_gradient" else [np.zeros(q.shape[:3] + v.shape[3:])]
    return np.concatenate([np.broadcast_to(great, x.shape).reshape(len(x), -1) for x in parts], 1).reshape(want.shape)


def differs(tolerance, want, bounds, got, size, hidden=False, unknown=False):
    """What is wrong, or None. XLA's CPU takes subnormals for zeros."""
    if got.dtype != want.dtype or got.shape != want.shape:
        return "it is %s%s, not %s%s" % (got.dtype, list(got.shape), want.dtype, list(want.shape))
    if want.size == 0:
        return None
    bad = got != want
    if want.dtype.kind == "f":
        with np.errstate(all="ignore"):
            low, high = bounds or (want, want)
            far = room(tolerance, want, low, high, size)
            w, g = want.astype(np.float64), got.astype(np.float64)
            ok = (g >= low - far) & (g <= high + far) | (g == w) | (np.isnan(g) & np.isnan(w))
            ok |= np.isneginf(low) & np.isposinf(high) | hidden & np.isnan(g) | unknown
        bad = ~ok
    if not np.any(bad):
        return None
    at = np.unravel_index(np.argmax(bad), bad.shape)
    return "%d of %d elements, the first %s: %r instead of %r" % (
        np.count_nonzero(bad), bad.size, list(map(int, at)), got[at].item(), want[at].item())


def compare(case, got):
    for (role, name, want, bounds), have in zip(case.wanted(), got):
        size = case.size(name) if case.tolerance in IN_ORDER else 0
        unknown = unsure(case, name, want) if case.tolerance in HIDING else False
        why = differs(case.tolerance, want, bounds, have, size, hides(case), unknown)
        if why:
            return "%s %s: %s" % (role, name, why)
    return None
