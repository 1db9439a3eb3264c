#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Loops at run time beside jax.lax.scan: scan.py DGC [SIMULATED].

Each model is trained for some steps in f64, from initial values that stand in its text, on rows among which are zeros and
equal ones; then its variables, and what it predicts, are compared with JAX's. On one tower by the compiled backend and
the interpreter, on three uneven towers, which give the same bits on one, two and three devices, and, where there is a
plugin, some on two devices by XLA; or some on the GPUs that the folder SIMULATED has for CUDA. An LSTM is trained with
products of bfloat16, too, beside JAX with operands and gradients rounded as such."""
import glob
import hashlib
import json
import os
import subprocess
import sysconfig

import needs
from checks import check, dgc, finish, samples

jax, jnp, np = needs.modules("jax", "jax.numpy", "numpy")
jax.config.update("jax_enable_x64", True)
SIMULATED = samples or None
SOME = "lstm, reversed", "a loop in a loop"  # where compilation takes seconds
# The thread sanitizer does not see how a plugin that is not built for it keeps its threads apart.
PLUGIN = "" if os.environ.get("TEST_PLUGIN") == "off" else os.environ.get("DGC_PJRT_PLUGIN") or "".join(glob.glob(sysconfig.get_paths()["purelib"] + "/lammps_jax_pjrt_cpu/*.so"))
ROWS, BATCH, LENGTH, STEPS, RATE = 14, 7, 5, 6, 0.1
ENVIRONMENT = {}
numbers = np.random.default_rng(7)
X = numbers.normal(size=(ROWS, LENGTH, 2))
X[0], X[3], X[5, 2] = 0, X[4], X[5, 1]
Y = numbers.normal(size=(ROWS, 3))
COUNT = np.array([0, 1, 2, 3, 4, 5, 5, 5, 4, 3, 2, 1, 0, 3], dtype=np.int32)


def literal(a):
    return "[" + ", ".join(literal(x) for x in a) + "]" if getattr(a, "ndim", 0) else repr(float(a))


class Case:
    def __init__(self, name, shapes, text, function, length=LENGTH):
        self.name, self.length = name, length
        rng = np.random.default_rng(len(name))
        self.start = {k: rng.uniform(-0.6, 0.6, size=s) for k, s in shapes.items()}
        self.function = function
        variables = "".join(f"  var {k} : f64{list(s)} = {literal(self.start[k])}\n" for k, s in shapes.items())
        self.text = (f"model m {{\n  input x : f64[B, {length}, 2]\n  input y : f64[B, 3]\n  input n : i32[B]\n"
                     f"  seen = sum(cast(n, f64)) * 0.0\n{variables}{text}"
                     f"  train loss = mean(square(h - y)) + 0.1 * mean(square(ys)) + seen with sgd({RATE})\n"
                     f"  predict p = concat([h, reshape(ys, [B, {length} * 3])], axis = 1)\n}}\n")


def rnn(p, x, n):
    def step(h, x_t):
        h = jnp.tanh(x_t @ p["w"] + h @ p["u"] + p["b"])
        return h, 2 * h
    h, ys = jax.lax.scan(step, jnp.zeros((len(x), 3)), x.swapaxes(0, 1))
    return h, ys.swapaxes(0, 1)


@jax.custom_vjp
def narrow(a, b):
    return near(a) @ near(b)


def near(a):
    return a.astype(jnp.bfloat16).astype(jnp.float64)


narrow.defvjp(lambda a, b: (narrow(a, b), (a, b)),
              lambda kept, dy: (near(dy) @ near(kept[1]).T, near(kept[0]).T @ near(dy)))


def lstm(reverse, product=jnp.matmul):
    def run(p, x, n):
        def step(carry, xs):
            (h, c), (x_t, t) = carry, xs
            z = product(jnp.concatenate([x_t, h], axis=1), p["k"]) + p["b"]
            i, f, g, o = z[:, :3], z[:, 3:6], z[:, 6:9], z[:, 9:]
            d = jax.nn.sigmoid(f + 1) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
            e = jax.nn.sigmoid(o) * jnp.tanh(d)
            on = (t < n)[:, None]
            return (jnp.where(on, e, h), jnp.where(on, d, c)), jnp.where(on, e, 0)
        zero = jnp.zeros((len(x), 3))
        (h, _), ys = jax.lax.scan(step, (zero, zero), (x.swapaxes(0, 1), jnp.arange(LENGTH)), reverse=reverse)
        return h, ys.swapaxes(0, 1)
    return run


def context(p, x, n):
    about = jnp.tanh(x.sum(axis=1) @ p["w"])

    def step(h, x_t):
        h = jnp.sin(about * h + x_t @ p["w"] * p["s"])
        return h, h * about
    h, ys = jax.lax.scan(step, jnp.broadcast_to(p["h0"], (len(x), 3)), x.swapaxes(0, 1))
    return h, ys.swapaxes(0, 1)


def layers(p, x, n):
    def step(h, w):
        h = jnp.tanh(h @ w["w"] + w["b"])
        return h, h
    h, ys = jax.lax.scan(step, x.sum(axis=1) @ p["v"], {"w": p["w"], "b": p["b"]})
    return h, ys.swapaxes(0, 1)


def nested(p, x, n):
    def step(h, x_t):
        def inner(q, k):
            return jnp.tanh(q @ k + 0.5 * x_t @ p["w"]), None
        q, _ = jax.lax.scan(inner, h, p["k"], reverse=True)
        return h + 0.5 * q, q
    h, ys = jax.lax.scan(step, jnp.zeros((len(x), 3)), x.swapaxes(0, 1))
    return h, ys.swapaxes(0, 1)


def swapped(p, x, n):
    def step(carry, x_t):
        a, b = carry
        return (b, a * 0.9 + x_t @ p["w"]), a * b
    zero = jnp.zeros((len(x), 3))
    (h, _), ys = jax.lax.scan(step, (zero, zero + 1), x.swapaxes(0, 1))
    return h, ys.swapaxes(0, 1)


def long(p, x, n):
    e = x.sum(axis=1) @ p["w"]
    h, _ = jax.lax.scan(lambda h, _: (jnp.tanh(h @ p["u"] + e), None), jnp.zeros((len(x), 3)), None, length=1030)
    return h, jnp.stack([h] * LENGTH, axis=1)


def handed_on(p, x, n):
    z = x @ p["w"]
    return z[:, -1] * p["h0"], jnp.exp(p["h0"]) - z


def bent(p, x, n):
    def slope(q):
        return jax.grad(lambda z: jnp.sum(rnn(p, z, n)[1]))(q)
    h, ys = rnn(p, x, n)
    bend = jax.grad(lambda q: jnp.sum(slope(q) ** 2))(x)
    return h * jnp.tanh(bend.sum(axis=(1, 2)))[:, None], ys


def nothing_inside(p, x, n):
    def step(h, x_t):
        h = jnp.tanh(x_t @ p["w"] + h)
        return h, h + 0 * p["b"]
    h, ys = jax.lax.scan(step, jnp.zeros((len(x), 3)), x.swapaxes(0, 1))
    return h, ys.swapaxes(0, 1)


def both_ways(p, x, n):
    def step(h, x_t):
        h = jnp.tanh(x_t @ p["w"] + h @ p["u"])
        return h, h
    zero = jnp.zeros((len(x), 3))
    a, ys = jax.lax.scan(step, zero, x.swapaxes(0, 1))
    b, zs = jax.lax.scan(step, zero, x.swapaxes(0, 1), reverse=True)
    return a * b, (ys + zs).swapaxes(0, 1)


ZERO = "  h = broadcast(cast(0.0, f64), [B, 3])\n"
RNN = ZERO + """  ys = scan h over x_t in x {
    h = tanh(x_t @ w + h @ u + b)
    return 2 * h
  }
"""
LSTM = ZERO + """  c = h
  ys = scan(REVERSE) h, c over x_t in x, t in broadcast(iota(i32[5]), [B, 5]) {
    z = concat([x_t, h], axis = 1) @ k + b
    d = sigmoid(z[:, 3:6] + 1) * c + sigmoid(z[:, 0:3]) * tanh(z[:, 6:9])
    e = sigmoid(z[:, 9:]) * tanh(d)
    live = broadcast(expand(t < n, 1), [B, 3])
    h = select(live, e, h)
    c = select(live, d, c)
    return select(live, e, 0.0)
  }
"""
WEIGHTS = {"w": (2, 3), "u": (3, 3), "b": (3,)}
CASES = [
    Case("rnn", WEIGHTS, RNN, rnn),
    Case("rnn of one step", WEIGHTS, RNN, rnn, 1),
    Case("lstm, of as many steps as a row has", {"k": (5, 12), "b": (12,)}, LSTM.replace("REVERSE", "axis = 1"), lstm(False)),
    Case("lstm, reversed", {"k": (5, 12), "b": (12,)}, LSTM.replace("REVERSE", "reverse = true"), lstm(True)),
    Case("rows from outside, and a first value that is trained", {"w": (2, 3), "s": (), "h0": (3,)},
         """  about = tanh(sum(x, axis = 1) @ w)
  h = broadcast(h0, [B, 3])
  ys = scan h over x_t in x {
    h = sin(about * h + x_t @ w * s)
    return h * about
  }
""", context),
    Case("layers, whose weights are the sequence", {"v": (2, 3), "w": (LENGTH, 3, 3), "b": (LENGTH, 3)},
         """  h = sum(x, axis = 1) @ v
  all_h = scan(axis = 0) h over w_t in w, b_t in b {
    h = tanh(h @ w_t + b_t)
    return h
  }
  ys = transpose(all_h, [1, 0, 2])
""", layers),
    Case("a loop in a loop", {"w": (2, 3), "k": (4, 3, 3)}, ZERO + """  ys = scan h over x_t in x {
    q = h
    scan(axis = 0, reverse = true) q over k_t in k {
      q = tanh(q @ k_t + 0.5 * x_t @ w)
    }
    h = h + 0.5 * q
    return q
  }
""", nested),
    Case("carried values that change places", {"w": (2, 3)}, ZERO + """  g = h + 1
  ys = scan h, g over x_t in x {
    old = h
    h = g
    g = old * 0.9 + x_t @ w
    return old * h
  }
""", swapped),
    Case("too long for its products to be kept", {"w": (2, 3), "u": (3, 3)}, ZERO + """  e = sum(x, axis = 1) @ w
  scan(length = 1030) h {
    h = tanh(h @ u + e)
  }
  ys = reshape(concat([h, h, h, h, h], axis = 1), [B, 5, 3])
""", long),
    Case("steps that compute nothing with what they give", {"w": (2, 3), "h0": (3,)}, """  z = x @ w
  away = scan over z_t in z {
    return -z_t
  }
  same, still = scan over z_t in z {
    return [z_t, broadcast(exp(h0), [B, 3])]
  }
  h = same[:, -1] * h0
  ys = still + away
""", handed_on),
    Case("gradients of gradients of gradients", WEIGHTS, RNN + """  slope = gradient(sum(ys), x)
  bend = gradient(sum(square(slope)), x)
  h = h * expand(tanh(sum(bend, axis = [1, 2])), 1)
""", bent),
    Case("a loop of no steps inside", {"w": (2, 3), "b": (3,)}, ZERO + """  ys = scan h over x_t in x {
    c = broadcast(b, [B, 3])
    h = tanh(x_t @ w + h)
    scan(axis = 1) c, h over e in x_t[:, 0:0] {
      h = tanh(h + c)
      c = tanh(c)
    }
    return h
  }
""", nothing_inside),
    Case("both ways", {"w": (2, 3), "u": (3, 3)}, ZERO + """  g = h
  ahead = scan h over x_t in x {
    h = tanh(x_t @ w + h @ u)
    return h
  }
  back = scan(reverse = true) g over x_t in x {
    g = tanh(x_t @ w + g @ u)
    return g
  }
  h = h * g
  ys = ahead + back
""", both_ways),
]


def expected(case, x, batch):
    p = {k: jnp.array(v) for k, v in case.start.items()}

    def loss(p, x, y, n):
        h, ys = case.function(p, x, n)
        return jnp.mean((h - y) ** 2) + 0.1 * jnp.mean(ys ** 2)

    # Compiled once: without jit each call of scan, whose step is a new function, is compiled again.
    slopes = jax.jit(jax.grad(loss))
    for i in range(STEPS):
        rows = slice(i % 2 * batch, i % 2 * batch + batch)
        slope = slopes(p, x[rows], Y[rows], COUNT[rows])
        p = {k: p[k] - RATE * slope[k] for k in p}
    h, ys = jax.jit(case.function)(p, x, COUNT)
    return {k: np.asarray(v) for k, v in p.items()}, np.concatenate([h, ys.reshape(len(x), -1)], axis=1)


def run(*args, refused=None):
    environment = {**os.environ, "DGC_PJRT_PLUGIN": PLUGIN, **ENVIRONMENT}
    if SIMULATED:
        environment.update(DGC_CUDA_PATH=SIMULATED, DGC_SIMULATED_DEVICES="3")
    done = subprocess.run([dgc, *args], capture_output=True, text=True, timeout=300, env=environment)
    if refused:
        return done.returncode == 1 and refused in done.stderr and "m.dsl:" in done.stderr
    if done.returncode:
        print(done.stdout, done.stderr)
    return done.returncode == 0


def read(path):
    with open(path, "rb") as f:
        size = int.from_bytes(f.read(8), "little")
        head, body = json.loads(f.read(size)), f.read()
    kinds = {"F64": np.float64, "F32": np.float32, "I64": np.int64}
    return {k: np.frombuffer(body[slice(*v["data_offsets"])], kinds[v["dtype"]]).reshape(v["shape"])
            for k, v in head.items() if k != "__metadata__"}


def trained(options, batch):
    """Variables and predictions, or None."""
    for name in ("m.safetensors", "p.npy"):
        if os.path.exists(name):
            os.remove(name)
    data = ["--data", "x=x.npy", "--data", "y=y.npy", "--data", "n=n.npy", "--batch", str(batch), "-q",
            "--checkpoint", "m.safetensors"] + options
    if not run("train", "m.dsl", *data, "--rows", f"0:{2 * batch}", "--no-shuffle", "--steps", str(STEPS)):
        return None
    if not run("predict", "m.dsl", *data, "--output", "p=p.npy"):
        return None
    return read("m.safetensors"), np.load("p.npy")


def distance(have, want):
    return float(np.max(np.abs(have - want), initial=0)) / max(float(np.max(np.abs(want), initial=0)), 1e-3)


def off(have, want):
    distances = [distance(have[0][k], v) for k, v in want[0].items()]
    return max(distances + [distance(have[1].reshape(want[1].shape), want[1])])


def compare(case):
    x = X[:, :case.length]
    np.save("x.npy", x)
    with open("m.dsl", "w") as f:
        f.write(case.text)
    want, even = expected(case, x, BATCH), expected(case, x, BATCH - 1)
    bits = {}
    gpus = ((1, ["--devices", "gpu:0"]), (3, ["--devices", "gpu:0-1", "--towers", "3"]))
    for towers, options in gpus if SIMULATED else ((1, ["--devices", "cpu:0"]), (1, ["--devices", "cpu:0", "--backend", "interp"]),
                            (3, ["--devices", "cpu:0", "--towers", "3", "--strategy", "mirrored"]),
                            (3, ["--devices", "cpu:0-1", "--towers", "3"]), (3, ["--devices", "cpu:0-2"]),
                            (3, ["--devices", "cpu:0-2", "--strategy", "central_storage"]),
                            (2, ["--devices", "pjrt:0-1"])):
        what, plugin = f"{case.name} with {' '.join(options)}", options[1].startswith("pjrt")
        if plugin and (not PLUGIN or case.name not in SOME):
            continue
        have = trained(options, BATCH - 1 if plugin else BATCH)
        check(have is not None, what)
        if have is None:
            return
        far = off(have, even if plugin else want)
        check(far <= 1e-9, f"{what}: off by {far:.2g}")
        if "interp" in options or plugin or SIMULATED:
            continue
        value = hashlib.sha256(b"".join(have[0][k].tobytes() for k in sorted(want[0])) + have[1].tobytes()).hexdigest()
        check(bits.setdefault(towers, value) == value, f"{what}: other bits")
    print(f"{case.name}: as JAX")


def compare_narrow():
    """What is not rounded to bfloat16 is off by 1e-3, and what is, as measured, by 2e-7."""
    case = Case("lstm of bfloat16", {"k": (5, 12), "b": (12,)}, LSTM.replace("REVERSE", "reverse = true"), lstm(True, narrow))
    case.start = {k: v.astype(np.float32).astype(np.float64) for k, v in case.start.items()}
    text = case.text.replace("f64", "f32").replace("model m {", "model m with precision = bf16 {")
    x = X.astype(np.float32)
    np.save("x.npy", x)
    np.save("y.npy", Y.astype(np.float32))
    with open("m.dsl", "w") as f:
        f.write(text)
    want, bits = expected(case, x.astype(np.float64), BATCH), {}
    one = ["--devices", "gpu:0" if SIMULATED else "cpu:0"]
    ways = [("own", "on", one), ("own", "on", one + ["--threads", "2"]), ("f32", "off", one)]
    for bit, units, options in ways if SIMULATED else ways + [("f32", "on", one + ["--backend", "interp"])]:
        ENVIRONMENT["DGC_BF16_UNITS"] = units
        have = trained(options, BATCH)
        what = f"{case.name} with {' '.join(options)}, units {units}"
        check(have is not None, what)
        if have is None:
            return
        far = off(have, want)
        check(far <= 1e-5, f"{what}: off by {far:.2g}")
        value = hashlib.sha256(b"".join(have[0][k].tobytes() for k in sorted(want[0])) + have[1].tobytes()).hexdigest()
        check(bits.setdefault(bit, value) == value, f"{what}: other bits")
    ENVIRONMENT.clear()
    print(f"{case.name}: as JAX")


def compare_wide():
    """Weights that are large enough to be packed before the first turn, and rows that tiles do not fill."""
    rows, units = 45, 40
    x, y = numbers.normal(size=(2 * rows, LENGTH, 24)).astype(np.float32), numbers.normal(size=(2 * rows, units)).astype(np.float32)
    for name, value in ("x", x), ("y", y), ("n", np.zeros(2 * rows, np.int32)):
        np.save(f"{name}.npy", value)
    with open("m.dsl", "w") as f:
        f.write(f"use nn\nmodel m {{\n  input x : f32[B, {LENGTH}, 24]\n  input y : f32[B, {units}]\n  input n : i32[B]\n"
                f"  h = nn.lstm(x, {units}, reverse = true)\n  seen = sum(cast(n, f32))\n"
                "  train mean(square(h - y)) + seen with sgd(0.5)\n  predict p = h\n}\n")
    bits = set()
    for options in ["--threads", "1"], ["--threads", "2"], ["--backend", "interp"]:
        have = trained(["--devices", "cpu:0", *options], rows)
        check(have is not None, f"a wide lstm with {' '.join(options)}")
        if have is None:
            return
        bits.add(hashlib.sha256(b"".join(have[0][k].tobytes() for k in sorted(have[0])) + have[1].tobytes()).hexdigest())
    check(len(bits) == 1, "a wide lstm: threads or the interpreter have other bits")
    kernel, bias = (have[0][k].astype(np.float64) for k in ("h.kernel", "h.bias"))
    h = c = np.zeros((2 * rows, units))
    for t in reversed(range(LENGTH)):
        i, f, g, o = np.split(np.concatenate([x[:, t], h], axis=1) @ kernel + bias, 4, axis=1)
        c = np.tanh(g) / (1 + np.exp(-i)) + c / (1 + np.exp(-f - 1))
        h = np.tanh(c) / (1 + np.exp(-o))
    check(distance(have[1], h) <= 1e-5, f"a wide lstm: off by {distance(have[1], h):.2g}")


def refused():
    """A step that needs the rows of all towers."""
    text = CASES[0].text.replace("h = tanh(", "h = h - broadcast(mean(h, axis = 0), [B, 3]) + tanh(")
    with open("m.dsl", "w") as f:
        f.write(text)
    check(run("compile", "m.dsl", "--entry", "train", "--emit", "placed", "--batch", str(BATCH), "--devices", "cpu:0-2",
              refused="cannot be spread over towers"), "a step that joins the rows of the batch")


np.save("y.npy", Y)
np.save("n.npy", COUNT)
for case in CASES:
    if not SIMULATED or case.name in SOME:
        compare(case)
compare_narrow()
if not SIMULATED:
    compare_wide()
    refused()
finish()
