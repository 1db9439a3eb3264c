# SPDX-License-Identifier: Apache-2.0
"""Gradients as JAX takes them: of the forward pass that dgc exports; and at kinks and poles, of JAX's own functions.

There dgc's convention is that of docs/language.md. Where it is JAX's, the rows of tests/ops/kinks.py say so, and JAX's
numbers must be dgc's; where it is another's, they must be others: else the row is no longer true. What these rows say is
held against dgc's machine code by tests/ops/test_kinks.c."""
import importlib.util
import os
import re

import jax
import jax.numpy as jnp
import numpy as np

import interpret
from compare import differs

# Rows of which the exported operations, taken one by one, have another slope there than dgc's function, and why.
EVENLY = "maximum and minimum: JAX shares evenly between equals; whose convention dgc has, docs/language.md says"
ABSOLUTE = "abs: JAX has 1 at 0, dgc TensorFlow's 0"
ELSEWHERE = {
    "relu(x)": EVENLY, "relu6(x)": EVENLY, "hard_sigmoid(x)": EVENLY, "clip(x, -1, 1)": EVENLY, "max(x, z)": EVENLY,
    "min(x, z)": EVENLY,
    "abs(x)": ABSOLUTE, "absolute_error(x, z)": ABSOLUTE,
    "softplus(x)": "maximum and abs: half of the one and all of the other are 0, and the slope is 1/2",
    "sigmoid_cross_entropy(x, z)": "as softplus",
    "fdim(x, z)": "select: between equals x - y is chosen, with the slope 1; dgc has 0, as of relu(x - y)",
    "copysign(x, z)": "as JAX's own: it takes -0 for 0",
    "hypot(x, z)": "as JAX's own: 1/2 at (0, 0); dgc TensorFlow's NaN",
    "x ^ z": "power: JAX has NaN by y where x < 0; dgc TensorFlow's 0",
}


def loss_of(case):
    """A function of the arguments that the case has gradients by, and these."""
    words = case.name.split(" ", 2)
    ops = interpret.BODIES if case.is_sample and words[0] != "op" else [re.match(r"\w+", words[1 if words[0] == "op" else -1]).group()]
    call = interpret.function(case.module, ops)
    places = [case.names.index(name) for _, name, _, _ in case.wanted()]

    def loss(by):
        args = list(map(jnp.asarray, case.args))
        for i, x in zip(places, by):
            args[i] = x
        return call(args)[0]

    return loss, [jnp.asarray(case.args[i]) for i in places]


def gradients(case):
    """By the arguments that the case has results for, of the first result of its module."""
    loss, by = loss_of(case)
    return [np.asarray(x) for x in jax.jit(jax.grad(loss))(by)]


def rows():
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "ops", "kinks.py")
    spec = importlib.util.spec_from_file_location("kinks", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.ROWS


def own(function):
    return jax.grad(lambda by: jnp.sum(function(*by)))


def differ(want, got):
    """What is wrong with one of the gradients, or None."""
    if got is None:
        return "none"
    return next(filter(None, (differs("f64", w, None, np.asarray(g), 0) for w, g in zip(want, got))), None)


def wrong_kinks(group):
    """What is wrong with each of these cases, or None. All are one compilation; but XLA makes a select of a product with a
    mask, which turns 0 * (1 / 0) to 0: so what is wrong then is computed once more, operation by operation."""
    table = rows()
    numbers = [int(case.name.split()[1]) for case in group]
    losses = [loss_of(case) for case in group]

    def all_gradients(by):
        exported = [jax.grad(loss)(x) for (loss, _), x in zip(losses, by)]
        jaxes = [own(table[i][3])(x) if table[i][3] else None for i, x in zip(numbers, by)]
        return exported, jaxes

    exported, jaxes = jax.jit(all_gradients)([x for _, x in losses])
    out = []
    for case, i, (loss, by), *got in zip(group, numbers, losses, exported, jaxes):
        if judge(case, table[i], *got):
            got = jax.grad(loss)(by), table[i][3] and own(table[i][3])(by)
        out.append(judge(case, table[i], *got))
    return out


def judge(case, row, exported, jaxs):
    name, text, _, function, _, whose, _ = row
    if case.name.split(" ", 2)[2] != text:
        return "tests/ops/kinks.py is not what kinks.def was made of: %s" % text
    want = [value for _, _, value, _ in case.wanted()]
    other = differ(want, jaxs)
    if function and whose in ("both", "jax", "value") and other:
        return "JAX's own gradient is another: %s" % other
    if function and whose in ("tensorflow", "own") and not other:
        return "it is said to be %s, and is JAX's, too" % whose
    other = differ(want, exported)
    if other and text not in ELSEWHERE:
        return "JAX's gradient of what is exported is another: %s" % other
    if not other and text in ELSEWHERE:
        return "JAX's gradient of what is exported is said to be another, and is not"
    return None
