#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes optimizers.def: what a variable is after ten steps, by numpy in f64. Where Keras is installed, its optimizers
and schedules must say the same.   optimizers.py > optimizers.def"""
import sys

import numpy as np

STEPS, START = 10, np.zeros(4)
keras_powers = False  # Keras takes the powers of beta1 and beta2 rounded to f32, whatever the type of the variable


def gradient(t):
    return ((7 * t + 3 * np.arange(4)) % 11 - 3) / 8.0


def sgd(rate):
    return lambda x, s, g, t: x - rate(t) * g


def momentum(rate, mu=0.9, nesterov=False):
    def step(x, s, g, t):
        s["v"] = mu * s.get("v", 0) + g
        return x - rate(t) * (g + mu * s["v"] if nesterov else s["v"])
    return step


def adagrad(rate, initial=0.1, epsilon=1e-7):
    def step(x, s, g, t):
        s["v"] = s.get("v", initial) + g * g
        return x - rate(t) * g / (np.sqrt(s["v"]) + epsilon)
    return step


def rmsprop(rate, decay=0.9, epsilon=1e-7):
    def step(x, s, g, t):
        s["v"] = decay * s.get("v", 0) + (1 - decay) * g * g
        return x - rate(t) * g / (np.sqrt(s["v"]) + epsilon)
    return step


def adam(rate, beta1=0.9, beta2=0.999, epsilon=1e-7, decay=0.0):
    def step(x, s, g, t):
        s["m"] = beta1 * s.get("m", 0) + (1 - beta1) * g
        s["v"] = beta2 * s.get("v", 0) + (1 - beta2) * g * g
        b1, b2 = (float(np.float32(b)) if keras_powers else b for b in (beta1, beta2))
        r = rate(t) * np.sqrt(1 - b2 ** (t + 1)) / (1 - b1 ** (t + 1))
        return x - r * s["m"] / (np.sqrt(s["v"]) + epsilon) - rate(t) * decay * x
    return step


def constant(rate):
    return lambda t: rate


def exponential(rate, steps, decay, staircase=False):
    return lambda t: rate * decay ** (np.floor(t / steps) if staircase else t / steps)


def cosine(rate, steps, alpha=0.0):
    return lambda t: rate * ((1 - alpha) * 0.5 * (1 + np.cos(np.pi * min(t / steps, 1))) + alpha)


def linear(rate, steps, to=0.0):
    return lambda t: rate + (to - rate) * min(t / steps, 1)


def piecewise(boundaries, values):
    return lambda t: values[sum(t >= b for b in boundaries)]


def warmup(rate, steps):
    return lambda t: rate(t) * min((t + 1) / steps, 1)


def keras_rows():
    """By the same text: optimizer of Keras, or nothing where it has none of this kind."""
    try:
        import os
        os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
        import keras
    except ImportError:
        return None
    keras.config.set_floatx("float64")
    o, s = keras.optimizers, keras.optimizers.schedules
    return {
        "sgd(0.05)": lambda: o.SGD(0.05),
        "sgd(exponential_decay(0.1, 3, 0.9))": lambda: o.SGD(s.ExponentialDecay(0.1, 3, 0.9)),
        "sgd(exponential_decay(0.1, 3, 0.9, staircase = true))":
            lambda: o.SGD(s.ExponentialDecay(0.1, 3, 0.9, staircase=True)),
        "sgd(cosine_decay(0.1, 8, 0.1))": lambda: o.SGD(s.CosineDecay(0.1, 8, 0.1)),
        "sgd(linear_decay(0.1, 8, 0.01))": lambda: o.SGD(s.PolynomialDecay(0.1, 8, 0.01, power=1.0)),
        "sgd(piecewise([2, 5], [0.1, 0.03, 0.01]))": lambda: o.SGD(s.PiecewiseConstantDecay([1, 4], [0.1, 0.03, 0.01])),
        "adagrad(0.05)": lambda: o.Adagrad(0.05),
        "rmsprop(0.05)": lambda: o.RMSprop(0.05),
        "adam(0.05)": lambda: o.Adam(0.05),
        "adam()": lambda: o.Adam(0.001),
        "adam(exponential_decay(0.1, 3, 0.9))": lambda: o.Adam(s.ExponentialDecay(0.1, 3, 0.9)),
    }


def by_keras(make):
    import keras
    x, optimizer = keras.Variable(START, dtype="float64"), make()
    for t in range(STEPS):
        optimizer.apply([keras.ops.convert_to_tensor(gradient(t), dtype="float64")], [x])
    return keras.ops.convert_to_numpy(x)


ROWS = [
    ("sgd(0.05)", 0, sgd(constant(0.05))),
    ("sgd(exponential_decay(0.1, 3, 0.9))", 0, sgd(exponential(0.1, 3, 0.9))),
    ("sgd(exponential_decay(0.1, 3, 0.9, staircase = true))", 0, sgd(exponential(0.1, 3, 0.9, True))),
    ("sgd(exponential_decay(0.1, 1, 0.99999))", 1000000, sgd(exponential(0.1, 1, 0.99999))),
    ("sgd(cosine_decay(0.1, 8, 0.1))", 0, sgd(cosine(0.1, 8, 0.1))),
    ("sgd(cosine_decay(0.1, 100000))", 99000, sgd(cosine(0.1, 100000))),
    ("sgd(linear_decay(0.1, 8, 0.01))", 0, sgd(linear(0.1, 8, 0.01))),
    ("sgd(linear_decay(0.1, 100000))", 99900, sgd(linear(0.1, 100000))),
    ("sgd(piecewise([2, 5], [0.1, 0.03, 0.01]))", 0, sgd(piecewise([2, 5], [0.1, 0.03, 0.01]))),
    ("sgd(warmup(cosine_decay(0.1, 20), 6))", 0, sgd(warmup(cosine(0.1, 20), 6))),
    ("momentum(0.05)", 0, momentum(constant(0.05))),
    ("momentum(0.05, nesterov = true)", 0, momentum(constant(0.05), nesterov=True)),
    ("adagrad(0.05)", 0, adagrad(constant(0.05))),
    ("rmsprop(0.05)", 0, rmsprop(constant(0.05))),
    ("adam()", 0, adam(constant(0.001))),
    ("adam(0.05)", 0, adam(constant(0.05))),
    ("adam(0.05, beta1 = 0.5, beta2 = 0.9999)", 0, adam(constant(0.05), 0.5, 0.9999)),
    ("adam(0.05)", 500, adam(constant(0.05))),
    ("adam(exponential_decay(0.1, 3, 0.9))", 0, adam(exponential(0.1, 3, 0.9))),
    ("adam(warmup(0.1, 20))", 0, adam(warmup(constant(0.1), 20))),
    ("adamw(0.05, decay = 0.1)", 0, adam(constant(0.05), decay=0.1)),
]


def run(done, step):
    x, state = START.copy(), {}
    for t in range(STEPS):
        x = step(x, state, gradient(t), done + t)
    return x


def differs(text, step, make):
    global keras_powers
    keras_powers = True
    ours, theirs = run(0, step), by_keras(make)
    keras_powers = False
    # Adagrad and RMSprop of Keras add epsilon below the root.
    if np.allclose(ours, theirs, rtol=1e-5 if text.startswith(("adagrad", "rmsprop")) else 1e-7, atol=0):
        return False
    sys.stderr.write("%s: %s by numpy, %s by Keras\n" % (text, ours, theirs))
    return True


def main():
    keras, wrong = keras_rows(), 0
    print("""/* SPDX-License-Identifier: Apache-2.0 */
/* ROW(optimizer, steps done before, what f64[4] of zeros is after ten steps), by optimizers.py. The gradient of
 * element i in step t of the ten is ((7 t + 3 i) % 11 - 3) / 8. */""")
    for text, done, step in ROWS:
        if keras and text in keras and done == 0:
            wrong += differs(text, step, keras[text])
        print('ROW("%s", %d, %s)' % (text, done, ", ".join(repr(float(e)) for e in run(done, step))))
    if keras is None:
        sys.stderr.write("Keras is not installed: numbers of numpy alone\n")
    return 1 if wrong else 0


sys.exit(main())
