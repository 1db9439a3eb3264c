# SPDX-License-Identifier: Apache-2.0
"""Optimizers and schedules beside PyTorch's, Keras's and optax's, whose numbers are carried in optimizers.json:
optimizers.py --carry writes them, by a Python that has torch, keras (TensorFlow) and optax."""
import json
import os
import sys

import numpy as np

FILE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "optimizers.json")
STEPS = 10
FIRST = {"w": np.array([[0.5, -1.0], [0.0, 2.0], [0.25, -0.125]]), "b": np.zeros(2)}


def gradient(name, t):
    """Of step t: zeros among them, and of b nothing else in the first."""
    shape = FIRST[name].shape
    g = (7 * t + 3 * np.arange(FIRST[name].size) + (name == "b")) % 11 - 3.0
    return g.reshape(shape) / 8 * (t > 0 or name == "w")


def torch(make, schedule=None):
    import torch as t
    t.set_default_dtype(t.float64)
    p = {n: t.nn.Parameter(t.tensor(v)) for n, v in FIRST.items()}
    o = make(t.optim, list(p.values()))
    s = schedule(t.optim.lr_scheduler, o) if schedule else None
    for step in range(STEPS):
        for n in p:
            p[n].grad = t.tensor(gradient(n, step))
        o.step()
        if s:
            s.step()
    return {n: v.detach().numpy() for n, v in p.items()}


def keras(make):
    import keras as k
    k.backend.set_floatx("float64")
    p = {n: k.Variable(v, dtype="float64") for n, v in FIRST.items()}
    o = make(k.optimizers)
    for step in range(STEPS):
        o.apply([k.ops.convert_to_tensor(gradient(n, step), "float64") for n in p], list(p.values()) if step == 0 else None)
    return {n: k.ops.convert_to_numpy(v) for n, v in p.items()}


def optax(make):
    import jax
    jax.config.update("jax_enable_x64", True)
    import optax as x
    p = {n: jax.numpy.asarray(v) for n, v in FIRST.items()}
    o = make(x)
    state = o.init(p)
    for step in range(STEPS):
        more, state = o.update({n: jax.numpy.asarray(gradient(n, step)) for n in p}, state, p)
        p = x.apply_updates(p, more)
    return {n: np.asarray(v) for n, v in p.items()}


def at_rates(rate):
    """By the rate of each step alone, where theirs divide 0 by 0."""
    return {n: v - sum(rate(t) * gradient(n, t) for t in range(STEPS)) for n, v in FIRST.items()}


def by(schedule):
    return lambda: optax(lambda x: x.sgd(schedule(x)))


ROWS = {
    "adamax(0.05)": lambda: torch(lambda o, p: o.Adamax(p, 0.05)),
    "nadam(0.05)": lambda: torch(lambda o, p: o.NAdam(p, 0.05)),
    "nadam(0.05, beta1 = 0.5, growth = 1.0)": lambda: torch(lambda o, p: o.NAdam(p, 0.05, (0.5, 0.999), momentum_decay=1.0)),
    "radam(0.05)": lambda: torch(lambda o, p: o.RAdam(p, 0.05)),
    "radam(0.05, beta2 = 0.9)": lambda: torch(lambda o, p: o.RAdam(p, 0.05, (0.9, 0.9))),
    "adadelta(0.5)": lambda: torch(lambda o, p: o.Adadelta(p, 0.5)),
    "adafactor(0.05)": lambda: torch(lambda o, p: o.Adafactor(p, 0.05)),
    "adafactor(0.5, decay = 0.1, limit = 1.25)": lambda: torch(lambda o, p: o.Adafactor(p, 0.5, weight_decay=0.1, d=1.25)),
    "lion(0.05)": lambda: keras(lambda o: o.Lion(0.05)),
    "lion(0.05, decay = 0.1)": lambda: optax(lambda x: x.lion(0.05, weight_decay=0.1)),
    "lamb(0.05)": lambda: optax(lambda x: x.lamb(0.05)),
    "lamb(0.05, decay = 0.1)": lambda: optax(lambda x: x.lamb(0.05, weight_decay=0.1)),
    "lars(0.05)": lambda: optax(lambda x: x.lars(0.05)),
    "lars(0.05, decay = 0.1, trust = 0.5)": lambda: optax(lambda x: x.lars(0.05, 0.1, trust_coefficient=0.5)),
    "[decay_weights(0.1), sgd(0.05)]": lambda: torch(lambda o, p: o.SGD(p, 0.05, weight_decay=0.1)),
    "[decay_weights(0.1), momentum(0.05)]": lambda: torch(lambda o, p: o.SGD(p, 0.05, 0.9, weight_decay=0.1)),
    "[decay_weights(0.1), adam(0.05, epsilon = 1e-30)]": lambda: torch(lambda o, p: o.Adam(p, 0.05, eps=1e-30, weight_decay=0.1)),
    "[decay_weights(0.1), rmsprop(0.05, decay = 0.99, epsilon = 1e-8)]": lambda: torch(
        lambda o, p: o.RMSprop(p, 0.05, weight_decay=0.1)),
    "[decay_weights(0.1), nadam(0.05)]": lambda: torch(lambda o, p: o.NAdam(p, 0.05, weight_decay=0.1)),
    "sgdw(0.05, 0.1, mu = 0.0)": lambda: keras(lambda o: o.SGD(0.05, weight_decay=0.1)),
    "adamw(0.05, 0.1, epsilon = 1e-30)": lambda: torch(lambda o, p: o.AdamW(p, 0.05, eps=1e-30, weight_decay=0.1)),
    "sgdw(0.05, decay = 0.1)": lambda: optax(lambda x: x.chain(x.trace(0.9), x.add_decayed_weights(0.1), x.scale(-0.05))),
    "sgdw(0.05, decay = 0.1, nesterov = true)": lambda: optax(lambda x: x.chain(
        x.trace(0.9, True), x.add_decayed_weights(0.1), x.scale(-0.05))),
    "sgd(exponential_decay(0.1, 3, 0.5, staircase = true))": lambda: torch(
        lambda o, p: o.SGD(p, 0.1), lambda s, o: s.StepLR(o, 3, 0.5)),
    "sgd(piecewise([3, 5], [0.1, 0.05, 0.025]))": lambda: torch(
        lambda o, p: o.SGD(p, 0.1), lambda s, o: s.MultiStepLR(o, [3, 5], 0.5)),
    "sgd(piecewise([4, 6], [0.1, 0.05, 0.02]))": lambda: keras(lambda o: o.SGD(
        o.schedules.PiecewiseConstantDecay([3, 5], [0.1, 0.05, 0.02]))),
    "sgd(select(step < 3, linear_decay(0.0, 3, to = 0.3), 0.5 * 0.3 * (1 + cos(pi * min((cast(step, f64) - 3) / 6, 1)))))": by(
        lambda x: x.warmup_cosine_decay_schedule(0.0, 0.3, 3, 9)),
    "sgd(polynomial_decay(0.1, 8, 0.01, 2))": by(lambda x: x.polynomial_schedule(0.1, 0.01, 2, 8)),
    "sgd(polynomial_decay(0.1, 8, power = 3))": lambda: torch(
        lambda o, p: o.SGD(p, 0.1), lambda s, o: s.PolynomialLR(o, 8, 3)),
    "sgd(cosine_restarts(0.1, 4))": lambda: torch(
        lambda o, p: o.SGD(p, 0.1), lambda s, o: s.CosineAnnealingWarmRestarts(o, 4)),
    "sgd(cosine_restarts(0.1, 2, longer = 2, lower = 0.5, alpha = 0.1))": lambda: keras(lambda o: o.SGD(
        o.schedules.CosineDecayRestarts(0.1, 2, 2.0, 0.5, 0.1))),
    "sgd(one_cycle(0.1, 11))": lambda: torch(
        lambda o, p: o.SGD(p, 0.1), lambda s, o: s.OneCycleLR(o, 0.1, 11, cycle_momentum=False)),
    "sgd(one_cycle(0.1, 10, rise = 0.1))": lambda: at_rates(
        lambda t: 0.1 * (0.04 if t == 0 else 4e-6 + (1 - 4e-6) * (1 + np.cos(np.pi * t / 9)) / 2)),
}
# Theirs compute these schedules in f32.
ROUNDED = {"sgd(piecewise([4, 6], [0.1, 0.05, 0.02]))",
           "sgd(select(step < 3, linear_decay(0.0, 3, to = 0.3), 0.5 * 0.3 * (1 + cos(pi * min((cast(step, f64) - 3) / 6, 1)))))",
           "sgd(polynomial_decay(0.1, 8, 0.01, 2))", "sgd(cosine_restarts(0.1, 2, longer = 2, lower = 0.5, alpha = 0.1))"}
LAYOUTS = [("f64", [("devices", "cpu:0")]), ("f64", [("devices", "cpu:0-2")]), ("f32", [("devices", "cpu:0-1")]),
           ("f64", [("cluster", "worker=2;ps=2"), ("strategy", "parameter_server"), ("min-part-bytes", "8")])]
MODEL = """model m {
  input by_w : REAL[B, 3, 2]
  input by_b : REAL[B, 2]
  var w : REAL[3, 2] = zeros()
  var b : REAL[2] = zeros()
  train sum(w * mean(by_w, axis = 0)) + sum(b * mean(by_b, axis = 0)) with %s
}
"""


def check(lib, text, wanted):
    import case
    found = []
    for real, layout in LAYOUTS:
        dtype = case.binding.DTYPES[real]
        with case.binding.Session(lib, layout) as s:
            s.load((MODEL % text).replace("REAL", real))
            for n, v in FIRST.items():
                s.write(n, v.astype(dtype))
            for t in range(STEPS):
                s.run("train", 5, {"by_" + n: np.broadcast_to(gradient(n, t), (5,) + v.shape) for n, v in FIRST.items()})
            for n, v in FIRST.items():
                got = s.read(n, dtype, v.shape).astype(float)
                wrong = case.differs(np.array(wanted[n]), got, 1e-5 if real == "f32" else 1e-7 if text in ROUNDED else 1e-9, False)
                found += [f"{n} {real} {layout}: {wrong}"] if wrong else []
    return found


def carried():
    with open(FILE) as f:
        return json.load(f)


if __name__ == "__main__" and sys.argv[1:] == ["--carry"]:
    numbers = {text: {n: np.asarray(v).tolist() for n, v in make().items()} for text, make in ROWS.items()}
    with open(FILE, "w") as out:
        json.dump(numbers, out, indent=1)
        out.write("\n")
