# SPDX-License-Identifier: Apache-2.0
"""Attention: all scores, of what each row sees."""
import numpy as np

from models import FLOATS


def seen_by(m, scores, causal, mask):
    rows, keys = scores[-2:]
    seen = np.ones(scores, bool)
    if causal:
        seen = seen & (np.arange(rows)[:, None] >= np.arange(keys))
    return seen if mask is None else seen & np.asarray(mask)


def heads_first(m, x):
    return m.xp.transpose(x, (0, 2, 1, 3))


def weights(m, q, k, seen, d):
    """The softmax of the scores that are seen, [B, H, I, J], and which count: rows that see nothing, or -Inf, are 0."""
    xp = m.xp
    products = m.product(q, xp.swapaxes(k, -1, -2), d) / np.sqrt(q.shape[-1])
    s = xp.where(seen, m.r(products, d, 2), -np.inf)
    if s.size == 0:
        return s, seen
    top = m.stop(xp.max(s, axis=-1, keepdims=True))
    if not m.jax:
        seen = seen & ~np.isneginf(top)
    top = xp.where(xp.isneginf(top), 0.0, top)
    e = xp.where(seen, m.r(xp.exp(m.r(xp.where(seen, m.term(products, s, d) - top, 0.0), d, 4)), d, 8), 0.0)
    e = xp.where(xp.isneginf(s), 0.0, e)
    total = m.total(e, (3,), d, True)
    return m.r(e / xp.where(total == 0, 1.0, total), d, 4), seen


def attention(m, x, causal, d):
    mask = x[3] if len(x) > 3 else None
    seen = seen_by(m, (x[0].shape[0], x[0].shape[2], x[0].shape[1], x[1].shape[1]), causal, mask)
    if m.jax and m.moves is None and seen.any(-1).all() and x[1].shape == x[2].shape:
        return m.jax.nn.dot_product_attention(*x[:3], mask=m.xp.asarray(seen))
    q, k, v = (heads_first(m, i) for i in x[:3])
    w, seen = weights(m, q, k, seen, d)
    if 0 in w.shape or 0 in v.shape:
        return m.xp.zeros(x[0].shape[:3] + x[2].shape[3:])
    return heads_first(m, met(m, w, v, seen, d))


def met(m, w, rows, seen, d):
    """w @ rows, of the pairs alone that see each other."""
    if m.jax or np.isfinite(np.asarray(rows)).all():
        return m.product(w, rows, d)
    terms = m.xp.where(seen[..., None], w[..., None] * rows[..., None, :, :], 0.0)
    return m.total(m.r(terms, d), (3,), d)


def gradient(m, x, causal, d):
    xp = m.xp
    q, k, v, y, dy = (heads_first(m, i) for i in x[:5])
    seen = seen_by(m, q.shape[:3] + k.shape[2:3], causal, x[5] if len(x) > 5 else None)
    w, seen = weights(m, q, k, seen, d)
    turned = np.swapaxes(seen, -1, -2)
    dots = m.total(m.r(dy * y, d), (3,), d, True)
    gap = m.r(m.product(dy, xp.swapaxes(v, -1, -2), d) - dots, d)
    ds = xp.where(seen, m.r(w * gap / np.sqrt(q.shape[-1]), d, 4), 0.0)
    back = lambda a: xp.swapaxes(a, -1, -2)
    all_of = [met(m, ds, k, seen, d), met(m, back(ds), q, turned, d), met(m, back(w), dy, turned, d)]
    return xp.concatenate([heads_first(m, i).reshape(i.shape[0], -1) for i in all_of], 1)


def of_node(m, n, shape, d, x):
    """What a node of a graph gives."""
    if 0 in shape or any(0 in np.shape(i) for i in x):
        return m.xp.zeros(shape)
    return (attention if n.op == "attention" else gradient)(m, x, int(n.attrs.get("causal", 0)), d)


def row(g):
    """A statement of a model."""
    x = g.pick(lambda v: v.dtype == g.real and v.axis == 0 and v.shape[0] == "B" and len(v.shape) == 4 and
               0 not in v.shape)
    x = x or g.input(g.real, ["B", g.rng.choice([1, 3, 5]), g.rng.choice([1, 2]), g.rng.choice([1, 2, 3])])
    keys = [x.shape[0], g.rng.choice([1, 2, 4, x.shape[1]])] + list(x.shape[2:])
    k, v = g.input(g.real, keys), g.input(g.real, keys[:3] + [g.rng.choice([1, 2])])
    causal, given = g.chance(0.5), [x, k, v]
    text = "dot_product_attention({0}, {1}, {2}" + (", causal = true" if causal else "")
    if g.chance(0.6):
        whole = [x.shape[0], x.shape[2], x.shape[1], keys[1]]
        given.append(g.input("bool", [whole[0]] + [g.rng.choice([n, 1]) for n in whole[1:]]))
        text += ", mask = {3}"
    return g.emit("dot_product_attention", text + ")", given, x.dtype, list(x.shape[:3]) + [v.shape[3]],
                  lambda m, *i: attention(m, i, causal, x.dtype))
