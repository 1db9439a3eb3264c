# SPDX-License-Identifier: Apache-2.0
"""Optimizers, schedules and first values: three steps of each against the formulas, in numpy."""
import math
import random

import numpy as np

import binding
from arithmetic import MANY, Arithmetic, bound, differs, moves_of
from process import Found
from table import INITIALIZERS, LINKS, OPTIMIZERS, SCHEDULES

MODEL = """optimizer probe() {{
  state seen : type(variable) = zeros()
  seen <- gradient
  variable <- variable
}}
model m() {{
  input x : {real}[B, 3]
  input y : {real}[B]
  var w : {real}[3, 2] = {initial}
  var b : {real}[2] = zeros()
  e = sum(tanh(x @ w + b), axis = 1) - y
  train mean(square(e)) with {optimizer}
}}
"""


def schedule(rng):
    """Text and function of the step, or of no schedule."""
    r, n, low = rng.choice([0.5, 0.125, 0.03]), rng.choice([2, 3, 10]), rng.choice([0.0, 0.01])
    way = rng.choice((None,) + SCHEDULES)
    if way == "exponential_decay":
        stairs = rng.random() < 0.5
        return (f"exponential_decay({r}, {n}, 0.75{', staircase = true' if stairs else ''})",
                lambda t: r * 0.75 ** (math.floor(t / n) if stairs else t / n))
    if way == "cosine_decay":
        return (f"cosine_decay({r}, {n}, {low})",
                lambda t: r * ((1 - low) * 0.5 * (1 + math.cos(math.pi * min(t / n, 1))) + low))
    if way == "linear_decay":
        return f"linear_decay({r}, {n}, {low})", lambda t: r + (low - r) * min(t / n, 1)
    if way == "piecewise":
        return (f"piecewise([1, 2], [{r}, {r / 2}, {r / 8}])", lambda t: r if t < 1 else r / 2 if t < 2 else r / 8)
    if way == "warmup":
        return f"warmup({r}, {n})", lambda t: r * min((t + 1) / n, 1)
    return str(r), lambda t: r


def formula(m, real, name, s, w, g, rate, t):
    """The variable after step t; `s` is what is kept, `m` the arithmetic."""
    zero = np.zeros_like(w)
    def r(v, ulps=2):
        return m.r(v, real, ulps)
    if name == "sgd":
        return r(w - r(rate * g))
    if name in ("momentum", "nesterov"):
        s["v"] = r(r(0.9 * s.get("v", zero)) + g)
        way = r(g + r(0.9 * s["v"])) if name == "nesterov" else s["v"]
        return r(w - r(rate * way))
    if name == "adagrad":
        s["a"] = r(s.get("a", zero + 0.1) + r(g * g))
        return r(w - r(rate * g / r(r(np.sqrt(s["a"])) + 1e-7), 4))
    if name == "rmsprop":
        s["a"] = r(r(0.9 * s.get("a", zero)) + r((1 - 0.9) * g * g, 4))
        return r(w - r(rate * g / r(r(np.sqrt(s["a"])) + 1e-7), 4))
    s["m"] = r(r(0.9 * s.get("m", zero)) + r((1 - 0.9) * g))
    s["v"] = r(r(0.999 * s.get("v", zero)) + r((1 - 0.999) * g * g, 4))
    speed = rate * math.sqrt(1 - 0.999 ** (t + 1)) / (1 - 0.9 ** (t + 1))
    new = r(w - r(speed * s["m"] / r(r(np.sqrt(s["v"])) + 1e-7), 4))
    return r(new - r(rate * 0.01 * w)) if name == "adamw" else new


def link(rng):
    """What stands before the optimizer: its text, and the gradient that it gives on; most often nothing."""
    name, k = rng.choice((None,) * len(LINKS) + LINKS), rng.choice([0.02, 0.25, 3.0])
    def shortened(m, real, g, norm):
        return m.r(g * m.r(k / np.maximum(norm, k), real, 3), real)
    ways = {
        "clip_by_value": lambda m, real, g, w, all: np.clip(g, -k, k),
        "clip_by_norm": lambda m, real, g, w, all: shortened(m, real, g, m.r(np.sqrt(np.sum(g * g)), real, 8)),
        "clip_by_global_norm": lambda m, real, g, w, all: shortened(
            m, real, g, m.r(np.sqrt(sum(np.sum(a * a) for a in all)), real, 8)),
        "decay_weights": lambda m, real, g, w, all: m.r(g + m.r(k * w, real), real),
        "scale": lambda m, real, g, w, all: m.r(k * g, real),
    }
    return (f"{name}({k})", ways[name]) if name else ("", lambda m, real, g, w, all: g)


def check_initial(name, w, fan_in, fan_out):
    """The range or the spread that the name promises."""
    def fail(why):
        raise Found("initial", f"{name}: {why}: {w.reshape(-1)[:4]}")
    if name in ("zeros", "ones", "constant"):
        if not np.all(w == {"zeros": 0, "ones": 1, "constant": 2.5}[name]):
            fail("not the constant")
        return
    limit = {"uniform": 0.05, "glorot_uniform": math.sqrt(6 / (fan_in + fan_out)), "he_uniform": math.sqrt(6 / fan_in),
             "lecun_uniform": math.sqrt(3 / fan_in)}.get(name)
    if limit is not None:
        if not np.all(np.abs(w) <= limit * (1 + 1e-6)) or np.all(w == w.reshape(-1)[0]):
            fail(f"outside of {limit}")
        return
    spread = {"normal": 0.05, "glorot_normal": math.sqrt(2 / (fan_in + fan_out)), "he_normal": math.sqrt(2 / fan_in),
              "lecun_normal": math.sqrt(1 / fan_in)}[name]
    if not np.all(np.abs(w) < 7 * spread) or np.all(w == w.reshape(-1)[0]):
        fail(f"not of a deviation of {spread}")


def check_update(tools, seed, index):
    rng = random.Random(f"update:{seed}:{index}")
    real = rng.choice(["f32", "f64"])
    name = (OPTIMIZERS + ("nesterov",))[index % 7]
    initial = INITIALIZERS[index % len(INITIALIZERS)]
    text, rate = schedule(rng)
    call = "momentum(rate = {}, nesterov = true)" if name == "nesterov" else name + "(rate = {})"
    before_it, changed = link(rng)
    if before_it:
        call = f"[{before_it}, {call}]"
    initial_text = initial + ("(2.5)" if initial == "constant" else "()")
    spread = rng.choice([[("devices", "cpu:0")], [("devices", "cpu:0-1")], [("devices", "cpu:0"), ("backend", "interp")],
                         [("devices", "cpu:0-2"), ("strategy", "central_storage")], [("cluster", "worker=2;ps=1")]])
    source = np.random.default_rng(index)
    given = {"x": source.standard_normal((7, 3)), "y": source.standard_normal(7)}
    sessions = []
    try:
        for optimizer in ("probe()", call.format(text)):
            s = binding.Session(tools.lib, spread)
            sessions.append(s)
            s.load(MODEL.format(real=real, optimizer=optimizer, initial=initial_text))
        probe, trained = sessions
        names = {"w": (3, 2), "b": (2,)}
        dtype = binding.DTYPES[real]
        check_initial(initial, trained.read("w", dtype, names["w"]).astype(float), 3, 2)
        ways = [Arithmetic(np, moves_of(k) if k else None) for k in range(MANY + 1)]
        kept = {(n, k): {} for n in names for k in range(MANY + 1)}
        for t in range(3):
            before = {n: trained.read(n, dtype, shape) for n, shape in names.items()}
            for n in names:
                probe.write(n, before[n])
            probe.run("train", 7, given)
            trained.run("train", 7, given)
            gradients = {n: probe.read(n + ".probe.seen", dtype, shape).astype(float) for n, shape in names.items()}
            for n, shape in names.items():
                g = gradients[n]
                w = before[n].astype(float)
                want = [formula(m, real, name, kept[n, k], w, changed(m, real, g, w, gradients.values()), rate(t), t)
                        for k, m in enumerate(ways)]
                got = trained.read(n, dtype, shape).astype(float)
                far = bound(want[0], want[1:], real)
                wrong, want = differs(got, want[0], far), want[0]
                if np.any(wrong):
                    at = np.unravel_index(np.argmax(wrong), shape)
                    raise Found("update", f"{call.format(text)} in {real}, step {t}, {spread}: {n}{list(map(int, at))} is "
                                f"{got[at]!r}, not {want[at]!r} within {far[at]:.3g}")
    except binding.Refused as e:
        raise Found("refused", f"{call.format(text)}: {e}") from None
    finally:
        for s in sessions:
            s.__exit__()
    return name
