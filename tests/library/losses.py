# SPDX-License-Identifier: Apache-2.0
"""Losses beside the same in JAX, and sequences of labels beside all ways to spread them, counted one by one."""
import itertools

import jax
import jax.numpy as jnp
import jax.scipy.special as special
import numpy as np

from case import Case, ids, rows

X, Y, LABEL = rows(1, 4), rows(2, 4), ids(3, 4)
BITS = ids(4, 2, 4).astype(float)
SIGNS = 2 * BITS - 1
SOFT = np.abs(rows(5, 4)) + 0.1
SOFT = SOFT / SOFT.sum(1, keepdims=True)
HARD = np.eye(4)[ids(6, 4)]  # exact zeros


def categorical(gamma):
    def loss(x, label):
        p = jax.nn.softmax(x)[jnp.arange(7), label]
        return -(1 - p) ** gamma * jnp.log(p)
    return loss


def binary(alpha):
    def loss(x, y):  # as torchvision writes it
        p, ce = jax.nn.sigmoid(x), jax.nn.softplus(x) - x * y
        q = p * y + (1 - p) * (1 - y)
        weight = 1 if alpha is None else alpha * y + (1 - alpha) * (1 - y)
        return weight * ce * (1 - q) ** 2
    return loss


def kl(p, q):
    return jnp.sum(special.rel_entr(p, q), -1)


def cosine(x, y):
    return jnp.sum(x * y, -1) / (jnp.linalg.norm(x, axis=-1) * jnp.linalg.norm(y, axis=-1))


def nce(u, v):
    logits = u @ v.T / 0.5
    return -jnp.diagonal(jax.nn.log_softmax(logits))


def collapse(path, blank):
    """The labels of a path: without repetitions, then without blanks."""
    return tuple(k for k, _ in itertools.groupby(path) if k != blank)


def ctc(blank=0):
    """By brute force: the sum over all paths that mean the labels."""
    def loss(x, label, ends=None, counts=None):
        logs, total = jax.nn.log_softmax(x), []
        for row in range(x.shape[0]):
            steps = x.shape[1] if ends is None else int(ends[row])
            wanted = tuple(int(k) for k in label[row][:None if counts is None else int(counts[row])])
            paths = [p for p in itertools.product(range(x.shape[2]), repeat=steps) if collapse(p, blank) == wanted]
            if not paths:
                total.append(jnp.inf)
                continue
            of_paths = jnp.sum(logs[row, jnp.arange(steps), jnp.array(paths)], 1)
            total.append(-special.logsumexp(of_paths))
        return jnp.stack(total)
    return loss


WORDS = np.array([[1, 2], [1, 1], [2, 1], [2, 2], [1, 2], [2, 1], [1, 1]], np.int32)
LENGTHS = np.array([5, 5, 3, 4, 2, 5, 3], np.int32)  # exactly as many steps as are needed, among others
COUNTS = np.array([2, 2, 1, 1, 2, 0, 2], np.int32)


# What torch 2.15 gives of these logits in each row, float64: no steps, steps too few, and padding that is no class.
FRAMES = np.broadcast_to(np.array([[0, 1, 2], [1, 0.5, 0], [0, -1, 1.5]]), (7, 3, 3)).copy()
FRAMES_HERE = {"x": FRAMES, "w": np.array([[1, 2], [1, 2], [2, 77], [-5, 9], [1, 1], [2, 2], [1, 2]], np.int32),
               "ends": np.array([0, 0, 3, 2, 2, 3, 2], np.int32), "counts": np.array([0, 1, 1, 0, 2, 2, 2], np.int32)}
TORCH = np.array([0, np.inf, 1.49428067483232, 3.087875635086115, np.inf, 1.354243534893249, 3.087875635086115])
TORCH_BY = np.array([
    [[0, 0, 0], [0, 0, 0], [0, 0, 0]],
    [[0, 0, 0], [0, 0, 0], [0, 0, 0]],
    [[-0.135697588487111, 0.244728471054798, -0.109030882567687], [0.094131669412091, 0.307195885718498, -0.40132755513059],
     [-0.19292012156805, 0.062890013245868, 0.130030108322182]],
    [[-0.909969426829619, 0.244728471054798, 0.665240955774822], [-0.493519608944346, 0.307195885718498, 0.186323723225848], [0, 0, 0]],
    [[0, 0, 0], [0, 0, 0], [0, 0, 0]],
    [[0.09003057317038, 0.244728471054798, -0.334759044225178], [-0.493519608944346, 0.307195885718498, 0.186323723225848],
     [0.17095278019779, 0.062890013245868, -0.233842793443658]],
    [[0.09003057317038, -0.755271528945202, 0.665240955774822], [0.506480391055654, 0.307195885718499, -0.813676276774153], [0, 0, 0]]])

# Lengths and labels that cannot be, computed: torch refuses such lengths, and reads beyond its classes for such labels.
CANNOT = {"x": FRAMES, "w": np.array([[1, 3], [1, -1], [1, 0], [1, 2], [1, 2], [1, 2], [1, 2]], np.int32),
          "ends": np.array([3, 3, 3, 3, 4, -2, 3], np.int32), "counts": np.array([2, 2, 2, 5, 1, 1, -1], np.int32)}
BEYOND = np.array([0, -1, 4, 3, 2**30, 1, -7], np.int32)  # of classes 0 to 3
WIDE = np.array([0, 2**32, 2**32 + 1, -2**32, 3, 1 - 2**32, 2], np.int64)
BYTES = np.array([0, 255, 4, 3, 128, 1, 7], np.uint8)


def picked(x, i):
    """x[i] of each row, NaN where there is none: JAX's own rule, but that its negative numbers count from the end, and
    that it takes numbers as i32."""
    i = jnp.asarray(i).astype(jnp.int64)
    return jnp.take_along_axis(x, jnp.where((i < 0) | (i > 1 << 20), 1 << 20, i)[:, None], 1, mode="fill", fill_value=jnp.nan)[:, 0]


def sparse_cross_entropy(x, i):
    return -picked(jax.nn.log_softmax(x), i) + 0 * jnp.sum(x, 1) * picked(x, i)  # TensorFlow's gradient is NaN in the whole row


def focal(x, i):
    p = picked(jax.nn.softmax(x), i)
    return -(1 - p) ** 2 * jnp.log(p) + 0 * jnp.sum(x, 1) * p


# What torch 2.15 gives, float64, of (1 - p)^gamma * ce with ce = cross_entropy(x, i), p = exp(-ce): values and gradients by gamma.
# Classes are masked, and p is 1 to the last bit.
SURE = np.array([[0.5, 1, -np.inf], [3, -np.inf, -np.inf], [1000, 0, -1000], [-np.inf, 2, 1], [1, 2, 3], [-1000, 0, 1000], [0, 0, 0]])
SURE_LABEL = np.array([0, 0, 0, 1, 2, 2, 1], np.int32)
TORCH_FOCAL = {
    2: ([0.3774116008594098, 0, 0, 0.02265805750846733, 0.04567779896788493, 0, 0.4882721282969378],
        [[-0.5261518218745831, 0.5261518218745831, 0], [0, 0, 0], [0, 0, 0], [0, -0.05258112997756062, 0.05258112997756062],
         [0.026433659246698573, 0.07185413558997916, -0.09828779483667778], [0, 0, 0],
         [0.31090552424712736, -0.6218110484942548, 0.31090552424712736]]),
    1: ([0.6063233081118687, 0, 0, 0.08424904350191412, 0.13644978307788275, 0, 0.7324081924454066],
        [[-0.616367326252719, 0.616367326252719, 0], [0, 0, 0], [0, 0, 0], [0, -0.13392047412196004, 0.13392047412196004],
         [0.05455089505267894, 0.14828470674787364, -0.20283560180055266], [0, 0, 0],
         [0.3442902542964566, -0.6885805085929133, 0.3442902542964566]]),
    0: ([0.9740769841801067, 0, 0, 0.31326168751822286, 0.4076059644443804, 0, 1.0986122886681098],
        [[-0.6224593312018546, 0.6224593312018546, 0], [0, 0, 0], [0, 0, 0], [0, -0.2689414213699951, 0.2689414213699951],
         [0.09003057317038043, 0.24472847105479764, -0.3347590442251782], [0, 0, 0],
         [0.3333333333333333, -0.6666666666666667, 0.3333333333333333]])}
# The same of two classes, with binary_cross_entropy_with_logits.
SURE_BITS = {"x": np.array([[800.0, -800, 95, -95, 1, -1]] * 7), "z": np.array([[1.0, 0, 1, 0, 1, 1]] * 7)}
TORCH_BITS = {2: ([0, 0, 0, 0, 0.02265805750846733, 0.701868303411385], [0, 0, 0, 0, -0.05258112997756062, -0.7682347231993176]),
              1: ([0, 0, 0, 0, 0.08424904350191412, 0.9600712226463136], [0, 0, 0, 0, -0.13392047412196004, -0.7926495646234517]),
              0: ([0, 0, 0, 0, 0.31326168751822286, 1.3132616875182228], [0, 0, 0, 0, -0.2689414213699951, -0.7310585786300049])}


def sure(text, data, carried):
    """Cases of f as torch has it: its values, and its gradients by x."""
    cases = []
    for gamma, (value, slope) in carried.items():
        f = text % gamma
        for what, numbers in ((f, value), ("gradient(sum(%s), x)" % f, slope)):
            numbers = np.array([numbers] * 7) if data is SURE_BITS else np.array(numbers)
            cases.append(Case(what, data, lambda *_, n=numbers: n, gradients=False, note="as torch"))
    return cases


def among_greatest(k):
    """By numpy's stable sort: of equals the first are the greater ones."""
    def run(x, i):
        return np.any(np.argsort(-np.asarray(x), -1, kind="stable")[..., :k] == np.asarray(i)[..., None], -1)
    return run


LOSSES = [
    Case("ctc_loss(x, w, lengths = ends, label_lengths = counts)", FRAMES_HERE, lambda *_: TORCH, gradients=False, note="as torch"),
    Case("gradient(sum(ctc_loss(x, w, lengths = ends, label_lengths = counts)), x)", FRAMES_HERE, lambda *_: TORCH_BY,
         gradients=False, note="as torch"),
    Case("ctc_loss(x, w * 2 - w, lengths = 2 * ends - ends, label_lengths = 2 * counts - counts)", CANNOT,
         lambda x, *_: jnp.nan * jnp.sum(x, (1, 2)), note="of what cannot be"),
    Case("ctc_loss(x, w)", {"x": np.where(np.arange(7)[:, None, None] == 2, np.nan, rows(16, 3, 3)), "w": WORDS * 0 + [[1, 2]]},
         ctc(), gradients=False, note="of NaN"),
    Case("softmax_cross_entropy(x, 2 * i - i)", {"x": X, "i": BEYOND}, sparse_cross_entropy, note="of what is no class"),
    Case("softmax_cross_entropy(x, i * 2 - i)", {"x": X, "i": WIDE}, sparse_cross_entropy, note="of i64 that are no classes"),
    Case("softmax_cross_entropy(x, i * 2 - i)", {"x": X, "i": BYTES}, sparse_cross_entropy, note="of bytes that are no classes"),
    Case("softmax_cross_entropy(x, smooth_labels(2 * i - i, 4, 0.2, REAL))", {"x": X, "i": BEYOND},
         lambda x, i: -jnp.sum((0.8 * jax.nn.one_hot(i, 4) + 0.05 + 0 * picked(x, i)[:, None]) * jax.nn.log_softmax(x), 1),
         gradients=False, note="of what is no class"),
    Case("focal_loss(x, 2 * i - i)", {"x": X, "i": BEYOND}, focal, note="of what is no class"),
    Case("in_top_k(x, i, 2)", {"x": X, "i": ids(17, 4)}, among_greatest(2), gradients=False),
    Case("in_top_k(x, i, 2)", {"x": np.round(X / 2), "i": ids(18, 4)}, among_greatest(2), gradients=False, note="of equals"),
    Case("in_top_k(x, i, 3)", {"x": X, "i": BYTES}, among_greatest(3), gradients=False, note="of bytes"),
    Case("in_top_k(x, i, 4)", {"x": X, "i": WIDE}, among_greatest(4), gradients=False, note="of what is no class"),
    Case("select(in_top_k(x, i, 1) == correct(x, i), 1, 0)", {"x": 0 * X, "i": ids(19, 4)}, lambda x, i: jnp.ones(7, jnp.int32),
         gradients=False, note="of the first alone"),
    Case("in_top_k(x, i, 2)", {"x": rows(20, 3, 5), "i": ids(21, 5, 3)}, among_greatest(2), gradients=False, note="of places"),
    Case("correct(x, i)", {"x": X, "i": WIDE}, lambda x, i: jnp.argmax(x, 1) == i, gradients=False, note="of what is no class"),
    Case("one_hot(2 * i - i, 4, REAL)", {"i": BEYOND}, lambda i: jax.nn.one_hot(i, 4), note="of what is no place"),
    Case("softmax_cross_entropy(x, smooth_labels(i, 4, 0.2, REAL))", {"x": X, "i": LABEL},
         lambda x, i: -jnp.sum((0.8 * jax.nn.one_hot(i, 4) + 0.05) * jax.nn.log_softmax(x), 1)),
    Case("focal_loss(x, i)", {"x": X, "i": LABEL}, categorical(2.0)),
    Case("focal_loss(x, p, gamma = 1.5)", {"x": X, "p": SOFT}, lambda x, p: -jnp.sum(
        p * (1 - jax.nn.softmax(x)) ** 1.5 * jax.nn.log_softmax(x), 1)),
    Case("sigmoid_focal_loss(x, z)", {"x": X, "z": BITS}, binary(None)),
    Case("sigmoid_focal_loss(x, z, alpha = 0.25)", {"x": 10 * X, "z": BITS}, binary(0.25)),
    Case("hinge(x, z)", {"x": X, "z": SIGNS}, lambda x, z: jnp.where(1 - z * x > 0, 1 - z * x, 0)),
    Case("squared_hinge(x, z)", {"x": X, "z": SIGNS}, lambda x, z: jnp.where(1 - z * x > 0, 1 - z * x, 0) ** 2),
    Case("dice_loss(x, z)", {"x": rows(7, 3, 2) ** 2, "z": ids(8, 2, 3, 2).astype(float)}, lambda x, z: 1 - (
        2 * jnp.sum(x * z, (1, 2)) + 1) / (jnp.sum(x, (1, 2)) + jnp.sum(z, (1, 2)) + 1)),
    Case("log_cosh(x, z)", {"x": 300 * X, "z": Y}, lambda x, z: jnp.logaddexp(x - z, z - x) - jnp.log(2.0)),
    Case("quantile_loss(x, z, 0.9)", {"x": X, "z": Y}, lambda x, z: jnp.where(z >= x, 0.9 * (z - x), 0.1 * (x - z))),
    Case("poisson_loss(x, z)", {"x": X, "z": np.abs(Y)}, lambda x, z: jnp.exp(x) - x * z),
    Case("normal_loss(x, z, v)", {"x": X, "z": Y, "v": rows(9, 4)},
         lambda x, z, v: -jax.scipy.stats.norm.logpdf(x, z, jnp.exp(v / 2))),
    Case("kl_divergence(p, q)", {"p": SOFT, "q": SOFT[::-1].copy()}, kl),
    Case("kl_divergence(p, q)", {"p": HARD, "q": SOFT}, kl, gradients=False, note="with zeros"),
    Case("kl_divergence(p, q)", {"p": SOFT, "q": HARD}, kl, gradients=False, note="beyond"),
    Case("entropy(p)", {"p": HARD}, lambda p: jnp.sum(special.entr(p), -1), gradients=False, note="with zeros"),
    Case("entropy(p)", {"p": SOFT}, lambda p: jnp.sum(special.entr(p), -1)),
    Case("kl_normal(x, z)", {"x": X, "z": Y}, lambda x, z: jnp.sum((jnp.exp(z) + x * x - 1 - z) / 2, -1)),
    Case("cosine_similarity(x, z)", {"x": X + 0.1, "z": Y - 0.1}, cosine),
    Case("cosine_similarity(x, z)", {"x": 0 * X, "z": Y}, lambda x, z: 0 * x[:, 0], gradients=False, note="of 0"),
    Case("triplet_loss(x, z, v)", {"x": X, "z": Y, "v": rows(9, 4)}, lambda x, z, v: jax.nn.relu(
        jnp.sum((x - z) ** 2, 1) - jnp.sum((x - v) ** 2, 1) + 1)),
    Case("triplet_loss(x, z, v)", {"x": X, "z": Y, "v": np.where(ids(10, 2, 1) > 0, X, Y)}, lambda x, z, v: jax.nn.relu(
        jnp.sum((x - z) ** 2, 1) - jnp.sum((x - v) ** 2, 1) + 1), note="of equals"),
    Case("contrastive_loss(x, z)", {"x": np.abs(X), "z": BITS},
         lambda x, z: z * x ** 2 + (1 - z) * jnp.where(x < 1, 1 - x, 0) ** 2),
    Case("info_nce(x, z, 0.5)", {"x": X, "z": Y}, nce, off=10),
    Case("ctc_loss(x, w)", {"x": rows(11, 5, 3), "w": WORDS}, ctc()),
    Case("ctc_loss(x, w - 1, blank = 2)", {"x": rows(12, 4, 3), "w": WORDS}, lambda x, w: ctc(2)(x, w - 1)),
    Case("ctc_loss(x, w, lengths = ends, label_lengths = counts)",
         {"x": rows(13, 5, 3), "w": WORDS, "ends": LENGTHS, "counts": COUNTS}, ctc()),
    Case("ctc_loss(x, w)", {"x": rows(14, 2, 3), "w": WORDS}, ctc(), gradients=False, note="too short for some"),
    Case("ctc_loss(x, w[:, 0:1])", {"x": rows(15, 1, 3), "w": WORDS}, lambda x, w: ctc()(x, w[:, :1]), note="of one step"),
    Case("softmax_cross_entropy(x, one_hot(i, 3, REAL))", {"x": SURE, "i": SURE_LABEL}, lambda *_: np.array(TORCH_FOCAL[0][0]),
         gradients=False, note="of masked classes"),
    Case("gradient(sum(softmax_cross_entropy(x, one_hot(i, 3, REAL))), x)", {"x": SURE, "i": SURE_LABEL},
         lambda *_: np.array(TORCH_FOCAL[0][1]), gradients=False, note="of masked classes"),
    Case("softmax_cross_entropy(x, smooth_labels(i, 3, 0.1, REAL))", {"x": SURE[:1].repeat(7, 0), "i": SURE_LABEL * 0},
         lambda x, i: jnp.full(7, np.inf), gradients=False, note="of masked classes, as torch"),
    Case("poisson_loss(x, z)", {"x": np.array([-np.inf, -np.inf, 0, 1, 2, 3, 4]), "z": np.array([0.0, 1, 0, 1, 0, 1, 2])},
         lambda x, z: -special.xlogy(z, jnp.exp(x)) + jnp.exp(x), gradients=False, note="of a rate of 0"),
    Case("gradient(sum(poisson_loss(x, z)), x)", {"x": np.array([-np.inf, -np.inf, 0, 1, 2, 3, 4]), "z": np.array([0.0, 1, 0, 1, 0, 1, 2])},
         lambda x, z: jnp.exp(x) - z, gradients=False, note="of a rate of 0"),
    Case("gradient(sum(kl_divergence(p, q)), q)", {"p": HARD, "q": HARD}, lambda p, q: -p, gradients=False, note="of zeros in both"),
] + sure("focal_loss(x, i, %g)", {"x": SURE, "i": SURE_LABEL}, TORCH_FOCAL) + sure(
    "focal_loss(x, one_hot(i, 3, REAL), %g)", {"x": SURE, "i": SURE_LABEL}, TORCH_FOCAL) + sure(
    "sigmoid_focal_loss(x, z, %g)", SURE_BITS, TORCH_BITS)
