#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What evaluation and prediction draw belongs to the row: drawn.py DGC SAMPLES.

Each number is computed here anew: Philox4x32-10 as Salmon and others publish it, held against the vectors of their library
Random123; of the step, the stream that the graph says, and row * width + place. So it is in batches of every size, on one and on uneven
towers, by each strategy, backend and number of processes. What is made of draws is computed from these numbers by numpy."""
import glob
import itertools
import os
import pathlib
import re
import shutil
import subprocess
import sysconfig

import needs

np, = needs.modules("numpy")
from checks import check, dgc, finish  # noqa: E402

ROWS, SEED = 131, 5
PLUGIN = os.environ.get("DGC_PJRT_PLUGIN") or "".join(glob.glob(sysconfig.get_paths()["purelib"] + "/lammps_jax_pjrt_cpu/*.so"))
MODEL = """
model m {
  input x : f64[B, 2]
  var w : f64[2] = [1.5, -2]
  u = random_uniform(f32[B, 3])
  again = random_uniform(f32[B, 3])
  wide = random_uniform(f64[B])
  normal = random_normal(f64[B, 2, 2])
  short = random_normal(f32[B], 3, 2)
  columns = random_uniform(f32[3, B, 2])
  last = random_uniform(f64[2, 2, B])
  pairs = random_uniform(f32[2 * B, 3])
  once = random_uniform(f64[4])
  none = random_uniform(f64[0, B])
  pull = random_uniform(type(x))
  noise = random_uniform(f64[B, 5])
  h = x[:, 0]
  steps = scan h over g in noise {
    h = 0.5 * h + g
    return h
  }
  predict u = u
  predict again = again
  predict wide = wide
  predict normal = normal
  predict short = short
  predict columns = transpose(columns, [1, 0, 2])
  predict last = transpose(last, [2, 0, 1])
  predict pairs = reshape(pairs, [B, 2, 3])
  predict once = broadcast(once, [B, 4])
  predict coin = cast(random_bernoulli(f32[B, 3], 0.25), u8)
  predict class = random_categorical(broadcast(log(cast([1, 2, 5], f64)), [B, 3]))
  predict order = broadcast(random_permutation(6), [B, 6])
  predict slope = gradient(sum(square(x * pull)) + sum(w), x)
  predict kept = dropout(x, 0.5) + 0 * sum(none)
  predict steps = steps
  metric mean = mean(wide)
  metric spread = sqrt(mean(square(short)) - square(mean(short)))
  metric most = max(wide)
  train loss = mean(sum(square(x * w), axis = 1) * wide) with sgd(0.01)
}
"""


# --- the generator ---

def philox(counter, key):
    counter, key = [np.asarray(c, np.uint64) for c in counter], [int(k) for k in key]
    word = np.uint64(0xffffffff)
    for _ in range(10):
        a, b = np.uint64(0xd2511f53) * counter[0], np.uint64(0xcd9e8d57) * counter[2]
        counter = [b >> np.uint64(32) ^ counter[1] ^ np.uint64(key[0]), b & word, a >> np.uint64(32) ^ counter[3] ^ np.uint64(key[1]), a & word]
        key = [(key[0] + 0x9e3779b9) % 2 ** 32, (key[1] + 0xbb67ae85) % 2 ** 32]
    return counter


PUBLISHED = """00000000 00000000 00000000 00000000 00000000 00000000 6627e8d5 e169c58d bc57ac4c 9b00dbd8
ffffffff ffffffff ffffffff ffffffff ffffffff ffffffff 408f276d 41c83b0e a20bc7c6 6d5451fd
243f6a88 85a308d3 13198a2e 03707344 a4093822 299f31d0 d16cfe09 94fdcceb 5001e420 24126ea1"""
for line in PUBLISHED.splitlines():
    v = [int(n, 16) for n in line.split()]
    check([int(n) for n in philox(v[:4], v[4:6])] == v[6:], "a vector of Random123", line)


def words(stream, number, step):
    mixed = SEED ^ stream * 0x9e3779b97f4a7c15 % 2 ** 64
    number = np.asarray(number, np.uint64)
    return philox([number & np.uint64(0xffffffff), number >> np.uint64(32), step % 2 ** 32, step >> 32], [mixed % 2 ** 32, mixed >> 32])


def fraction(a, b):
    return ((a >> np.uint64(5)) * 2.0 ** 26 + (b >> np.uint64(6))) * 2.0 ** -53


def uniform(dtype, *at):
    w = words(*at)
    return fraction(w[0], w[1]) if dtype == "f64" else ((w[0] >> np.uint64(8)) * 2.0 ** -24).astype(np.float32)


def gauss(dtype, *at):
    """Of Box and Muller, in f64."""
    w = words(*at)
    if dtype == "f64":
        radius, turn = 1 - fraction(w[0], w[1]), fraction(w[2], w[3])
    else:
        radius, turn = (np.float32(w[0] >> np.uint64(1)) + np.float32(0.5)) * 2.0 ** -31, (w[1] >> np.uint64(8)) * 2.0 ** -24
    return np.sqrt(-2 * np.log(radius)) * np.cos(2 * np.pi * turn)


def numbers(rows, *shape):
    """Of the elements of each row: row * width + place."""
    width = int(np.prod(shape, dtype=int))
    return (np.arange(rows)[:, None] * width + np.arange(width)).reshape(rows, *shape)


# --- running dgc ---

# Open MPI: as root, and more processes than cores, as in containers.
MAY = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "OMPI_MCA_rmaps_base_oversubscribe": "1",
       "OMPI_MCA_plm_rsh_agent": "/bin/false", "OMPI_MCA_btl_vader_single_copy_mechanism": "none"}


def run(*words, launch=()):
    return subprocess.run([dgc, *launch, *words], capture_output=True, text=True, env=os.environ | MAY)


def ok(done):
    check(done.returncode == 0, done.args, done.returncode, done.stderr)
    return done


NAMES = re.findall(r"predict (\w+)", MODEL)
pathlib.Path("m.dsl").write_text(MODEL)
rng = np.random.default_rng(3)
x = rng.normal(size=(ROWS, 2))
x[0], x[5] = 0, x[6]
np.save("x.npy", x)
SEEDED = "m.dsl", "--seed", str(SEED)
GIVEN = *SEEDED, "--data", "x=x.npy"
# Some steps, so that the number of the step counts.
ok(run("train", *GIVEN, "--steps", "3", "--batch", "32", "--checkpoint", "c.safetensors", "--quiet"))


def predict(*options, launch=()):
    for name in NAMES:
        pathlib.Path(name + ".npy").unlink(missing_ok=True)
    files = itertools.chain(*(["--output", name + "=" + name + ".npy"] for name in NAMES))
    if ok(run("predict", *GIVEN, "--checkpoint", "c.safetensors", *files, *options, launch=launch)).returncode:
        return {}
    return {name: np.load(name + ".npy") for name in NAMES}


def streams(entry):
    """The streams of a graph's draws, by their names: each is said to be of some type, and to count from the first row or not."""
    text = ok(run("compile", *SEEDED, "--entry", entry, "--emit", "graph")).stdout
    found = re.findall(r"^ +(\S+) = random_\w+ step(, \S+)? \{key=(\d+), seed=(\d+)(?:, width=\d+)?\} : (\S+)", text, re.M)
    check(all(int(seed) == SEED for _, _, _, seed, _ in found), "seeds", found)
    check(all(bool(start) == ("B" in t) for _, start, _, _, t in found), "what counts from the first row", found)
    return {name.split(".")[0]: int(key) for name, _, key, _, _ in found}, text


# --- predict: each number ---

key, text = streams("predict")
check(re.findall(r"^  (\S+) = input", text, re.M) == ["x", "input.first_row"], "one input beside the model's own", text)
STEP = 3
rows = np.arange(ROWS)
u = uniform("f32", key["u"], numbers(ROWS, 3), STEP)
wide = uniform("f64", key["wide"], rows, STEP)
logits = np.log([1.0, 2, 5]) - np.log(-np.log1p(-uniform("f64", key["class"], numbers(ROWS, 3), STEP)))
noise, h, steps = uniform("f64", key["noise"], numbers(ROWS, 5), STEP), x[:, 0], []
for t in range(5):
    h = 0.5 * h + noise[:, t]
    steps.append(h)
pull = uniform("f64", key["pull"], numbers(ROWS, 2), STEP)
WANT = {
    "u": u,
    "again": uniform("f32", key["again"], numbers(ROWS, 3), STEP),
    "wide": wide,
    "normal": gauss("f64", key["normal"], numbers(ROWS, 2, 2), STEP),
    "short": 3 + 2 * gauss("f32", key["short"], rows, STEP),
    "columns": uniform("f32", key["columns"], numbers(ROWS, 3, 2), STEP),
    "last": uniform("f64", key["last"], numbers(ROWS, 2, 2), STEP),
    "pairs": uniform("f32", key["pairs"], numbers(ROWS, 2, 3), STEP),
    "once": np.tile(uniform("f64", key["once"], np.arange(4), STEP), (ROWS, 1)),
    "coin": uniform("f32", key["coin"], numbers(ROWS, 3), STEP) < np.float32(0.25),
    "class": np.argmax(logits, axis=1),
    "order": np.tile(np.argsort(uniform("f64", key["order"], np.arange(6), STEP), kind="stable"), (ROWS, 1)),
    "slope": 2 * x * pull ** 2,
    "kept": x,
    "steps": np.stack(steps, axis=1),
}
CLOSE = {"normal": 1e-13, "short": 3e-6, "slope": 1e-15, "steps": 1e-15}
whole = predict("--batch", "64")
for name in NAMES:
    got, want = whole[name], WANT[name]
    check(got.shape == want.shape, name, got.shape, want.shape)
    if name in CLOSE:
        check(np.allclose(got, want, rtol=CLOSE[name], atol=CLOSE[name]), name, np.max(np.abs(got - want)))
    else:
        check(np.array_equal(got, want), name, got[:3], want[:3])
check(len(np.unique(np.concatenate([whole["u"].ravel(), whole["again"].ravel()]))) == 6 * ROWS, "draws of two places, or of two rows, are equal")

# --- the same bits everywhere ---

ON_THREE = "--devices", "cpu:0,cpu:1,cpu:2", "--towers"
ways = [("--batch", b) for b in ("1", "7", "131", "1000")]
ways += [("--batch", "7", "--backend", "interp"), ("--batch", "10", "--towers", "3"), ("--batch", "64", "--towers", "2", "--devices", "cpu:0,cpu:1")]
ways += [("--batch", "7", "--strategy", s, *ON_THREE, n) for s, n in (("mirrored", "3"), ("mirrored", "5"), ("central_storage", "3"))]
ways += [("--batch", "10", *ON_THREE, "3", "--bits", "portable"), ("--batch", "2", *ON_THREE, "3")]
ways += [("--batch", "16", "--towers", n, "--strategy", s, "--cluster", c)
         for s, n, c in (("multi_worker_mirrored", "3", "worker=3"), ("parameter_server", "2", "worker=2;ps=1"))]
for way in ways:
    got = predict(*way)
    for name in NAMES:
        check(name in got and got[name].tobytes() == whole[name].tobytes(), way, name)
if PLUGIN:  # other compilers have other logarithms
    for way in ("--devices", "pjrt:0"), ("--devices", "pjrt:0,pjrt:1", "--towers", "2"):
        got = predict(*way, "--pjrt-plugin", PLUGIN, "--batch", "10")
        for name in NAMES:
            check(name in got and np.allclose(got[name], whole[name], rtol=1e-5, atol=1e-6), way, name)
mpi = shutil.which("mpirun") and os.path.exists(os.path.join(os.path.dirname(dgc), "dgc-mpi.so"))
for n in ("2", "3") if mpi else ():
    got = predict("--batch", "10", "--towers", n, launch=("launch", "-n", n, "--"))
    for name in NAMES:
        check(name in got and got[name].tobytes() == whole[name].tobytes(), n, "processes", name)

# --- what is drawn and reads no input has the rows of the data ---

pathlib.Path("blind.dsl").write_text(MODEL.replace("predict", "predict_no").split("  predict_no", 1)[0] +
                                     "  predict u = u\n  train loss = mean(sum(square(x * w), axis = 1) * wide) with sgd(0.01)\n}\n")
blind = "predict", "blind.dsl", "--seed", str(SEED), "--checkpoint", "c.safetensors", "--output", "u=blind.npy"
for way in ("--batch", "7"), ("--batch", "64", "--devices", "cpu:0,cpu:1"):
    ok(run(*blind, "--data", "x=x.npy", "--rows", "3:90", *way))
    check(np.array_equal(np.load("blind.npy"), WANT["u"][:87]), way, "numbers of rows that nothing is read of")
done = run(*blind)
check(done.returncode == 2 and "give --data x=FILE" in done.stderr, done.returncode, done.stderr)

# --- evaluation ---

key, _ = streams("eval")
wide, short = uniform("f64", key["wide"], rows, STEP), 3 + 2 * gauss("f32", key["short"], rows, STEP)
WANT = {"mean": wide.mean(), "spread": short.std(), "most": wide.max()}
for way in ("--batch", "1"), ("--batch", "7"), ("--batch", "64"), ("--batch", "10", "--towers", "3"), ("--batch", "131", "--backend", "interp"):
    done = ok(run("eval", *GIVEN, "--checkpoint", "c.safetensors", *way)).stdout
    got = dict(line.split() for line in done.splitlines() if len(line.split()) == 2)
    for name, want in WANT.items():
        check(abs(float(got.get(name, "nan")) - want) <= 2e-6 * abs(want), way, name, got, want)

# --- four thousand numbers of batches of one row ---

pathlib.Path("many.dsl").write_text("model many {\n  input x : f32[B]\n  predict u = random_uniform(f64[B]) + 0 * cast(x, f64)\n  predict n = random_normal(f64[B])\n}\n")
np.save("zeros.npy", np.zeros(4000, np.float32))
ok(run("predict", "many.dsl", "--data", "x=zeros.npy", "--batch", "1", "--output", "u=u.npy", "--output", "n=n.npy"))
u, n = np.load("u.npy"), np.load("n.npy")
check(len(np.unique(u)) == 4000 and len(np.unique(n)) == 4000, "a number came twice")
# Of five deviations: mean and variance of 4,000 numbers, and Kolmogorov's distance from the even distribution.
check(abs(u.mean() - 0.5) < 5 * (1 / 12 / 4000) ** 0.5 and abs(u.var() - 1 / 12) < 5 * (1 / 180 / 4000) ** 0.5, "u", u.mean(), u.var())
check(abs(n.mean()) < 5 * 4000 ** -0.5 and abs(n.var() - 1) < 5 * (2 / 4000) ** 0.5, "n", n.mean(), n.var())
check(np.max(np.abs(np.sort(u) - (np.arange(4000) + 0.5) / 4000)) < 1.95 * 4000 ** -0.5, "not even")
check(abs(np.corrcoef(u[1:], u[:-1])[0, 1]) < 5 * 4000 ** -0.5, "one number tells of the next")

finish()
