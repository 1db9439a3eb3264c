#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Variables that are stored in bf16 and in f16, beside numpy, which rounds by ml_dtypes and itself and computes in f64:
storage.py DGC

A checkpoint of f32 is rounded when it is read: every number of 16 bits, and what lies between it and the next, ties among it. In
training each step is done again from the checkpoint before it: what a variable becomes is the number of 16 bits next to the sum, or,
where the sum is a tie but for the roundings of f32, one of both. Whatever the devices and strategy it is one file, and the same one as if
f32 had been rounded by hand. With a master it is as if the master were the variable, which is rounded where it is read. Ids that repeat, targets that are met to the bit and rows of zeros are among the data."""
import hashlib
import os
import subprocess

from bfloat16 import DTYPES, np, read, rounded, write_f32
from checks import check, dgc, finish

STEPS, ROWS, RATE = 20, 16, 2.0**-6


def run(*args):
    r = subprocess.run([dgc, *args], capture_output=True, text=True, timeout=600, env={**os.environ, "NO_COLOR": "1"})
    if r.returncode:
        print(r.stderr)
    check(r.returncode == 0, f"exit code {r.returncode} of dgc {' '.join(args)}")
    return r.stdout


def patterns(kind):
    """All upper halves of f32, under each what lies around a tie of bf16; for f16 all halves, too, and what lies around the middle
    of each and the next, which of the largest is 65520."""
    high = np.arange(65536, dtype=np.uint32)[:, None] << 16
    x = (high | np.array([0, 1, 0x7fff, 0x8000, 0x8001, 0xffff], np.uint32)).view(np.float32)
    if kind == "bf16":
        return x
    half = np.arange(65536, dtype=np.uint16)
    one = half.view(np.float16).astype(np.float64)
    following = np.where((half & 0x7fff) == 0x7bff, np.copysign(65536.0, one), (half + (half < 0xffff)).view(np.float16).astype(np.float64))
    with np.errstate(invalid="ignore"):
        middle = ((one + following) / 2).astype(np.float32)[:, None]
        outward, inward = (np.nextafter(middle, np.float32(s) * np.copysign(np.float32(1), middle)) for s in (np.inf, 0))
        return np.hstack([x, one.astype(np.float32)[:, None], inward, middle, outward])


def same(a, b):
    return bool((np.isnan(a) == np.isnan(b)).all()
                and (a.view(np.uint32) == b.view(np.uint32))[~np.isnan(a)].all())


def loaded(kind):
    x = patterns(kind)
    with open("load.dsl", "w") as f:
        f.write(f"model load {{\n input id : i32[B]\n input y : f32[B]\n state table : f32[{x.shape[0]}, {x.shape[1]}] = zeros() storage({kind})\n"
                " var w : f32[] = zeros()\n train mean(square(w - y)) with sgd(0.5)\n predict row = lookup(table, id)\n"
                ' data test { id = "id.npy" }\n data train {\n  id = "id.npy"\n  y = "y.npy"\n }\n}\n')
    np.save("id.npy", np.arange(x.shape[0], dtype=np.int32))
    np.save("y.npy", np.ones(x.shape[0], np.float32))
    write_f32("f32.safetensors", {"table": x, "w": np.zeros((), np.float32)})
    for name in "row.npy", "kept.safetensors":
        if os.path.exists(name):
            os.remove(name)
    run("predict", "load.dsl", "--checkpoint", "f32.safetensors", "--output", "row=row.npy", "--batch", "8192")
    check(same(np.load("row.npy"), rounded(x, kind)), f"{kind}: a checkpoint of f32 is rounded when it is read")
    run("train", "load.dsl", "--resume=f32.safetensors", "--checkpoint", "kept.safetensors", "--steps", "1", "--quiet", "--batch", "64")
    kept = read("kept.safetensors")["table"]
    check(kept.dtype == DTYPES[kind.upper()] and same(kept.astype(np.float32), rounded(x, kind)), f"a checkpoint has {kind} as it was")
    check(f"table : {kind}[{x.shape[0]},{x.shape[1]}]\n" in run("inspect", "kept.safetensors"), "inspect tells what the file has")


MODEL = """
optimizer by_hand(rate) { variable <- round_KIND(variable - cast(rate, f32) * gradient) }
model m(storage = KIND) {
  input id : i32[B, 2]
  input x : f32[B, 5]
  input y : f32[B, 4]
  var table : f32[9, 5] = round_KIND(random_normal(f32[9, 5])) storage(storage)
  var w : f32[5, 4]     = round_KIND(0.5 * random_normal(f32[5, 4])) storage(storage)
  e = x + sum(lookup(table, id), axis = 1)
  r = e @ w - y
  train sum(square(r)) / 16 with OPTIMIZER
  data train {
    id = "ids.npy"
    x = "x.npy"
    y = "ys.npy"
  }
}
"""


def gradients(v, id, x, y):
    e = x + v["table"][id].sum(axis=1)
    dr = (e @ v["w"] - y) / 8
    table = np.zeros_like(v["table"])
    np.add.at(table, id.reshape(-1), np.repeat(dr @ v["w"].T, 2, axis=0))
    return {"table": table, "w": e.T @ dr}


def nearest(kind, got, want, what):
    """`want`, in f64, in 16 bits: either neighbour where it is a tie but for what f32 loses."""
    loss = 2.0**-19 if kind == "bf16" else 2.0**-21
    low, high = (rounded(want * (1 + s * loss) + s * loss / 32, kind).astype(np.float64) for s in (-1, 1))
    value = got.astype(np.float64)
    check(got.dtype == DTYPES[kind.upper()], f"{what} is stored in {kind}")
    check(((value == low) | (value == high)).all(), f"{what} is not what numpy has")
    return int((low == high).sum()), low.size


def write_model(kind, optimizer):
    with open("m.dsl", "w") as f:
        f.write(MODEL.replace("OPTIMIZER", optimizer).replace("KIND", kind))


def write_data(rng):
    id = rng.integers(0, 9, (ROWS, 2)).astype(np.int32)
    id[1], id[2] = id[0], (3, 3)
    x, y = rng.integers(-2, 3, (ROWS, 5)).astype(np.float32), rng.integers(-2, 3, (ROWS, 4)).astype(np.float32)
    x[3] = 0
    np.save("ids.npy", id), np.save("x.npy", x), np.save("ys.npy", y)
    return id, x, y


def trained(kind, data, optimizer):
    write_model(kind, optimizer)
    common = ("train", "m.dsl", "--batch", str(ROWS), "--no-shuffle", "--quiet", "--checkpoint", "c.safetensors")
    told = all_of_them = moved = 0
    for step in range(1, STEPS + 1):
        before = read("c.safetensors") if step > 1 else None
        run(*common, "--steps", str(step), "--resume" if step > 1 else "--overwrite")
        after = read("c.safetensors")
        if before is None:
            continue
        v = {k: before[k].astype(np.float64) for k in before}
        g = gradients(v, *data)
        for name in "table", "w":
            if "adam" in optimizer:
                m, s = v[name + ".adam.m"], v[name + ".adam.v"]
                next_m, next_s = 0.9 * m + 0.1 * g[name], 0.999 * s + 0.001 * g[name]**2
                nearest(kind, after[name + ".adam.m"], next_m, f"{kind}, {optimizer}, step {step}: m of {name}")
                check(np.allclose(after[name + ".adam.v"], next_s, rtol=1e-5), f"{kind}, {optimizer}, step {step}: v of {name}")
                rate = RATE * np.sqrt(1 - 0.999**step) / (1 - 0.9**step)
                want = v[name] - rate * next_m / (np.sqrt(next_s) + 1e-7)
            else:
                want = v[name] - RATE * g[name]
            counts = nearest(kind, after[name], want, f"{kind}, {optimizer}, step {step}: {name}")
            told, all_of_them = told + counts[0], all_of_them + counts[1]
            moved += int((after[name] != before[name]).sum())
    check(told > 0.99 * all_of_them, f"{kind}, {optimizer}: {all_of_them - told} of {all_of_them} are ties")
    check(moved > all_of_them // 4, f"{kind}, {optimizer}: {moved} of {all_of_them} moved")


MASTERED = """
model m {
  input id : i32[B, 2]
  input x : f32[B, 5]
  input y : f32[B, 4]
  var table : f32[9, 5] = random_normal(f32[9, 5]) STORAGE
  var w : f32[5, 4]     = 0.5 * random_normal(f32[5, 4]) STORAGE
  e = x + sum(lookup(ROUND(table), id), axis = 1)
  r = e @ ROUND(w) - y
  train sum(square(r)) / 16 with LINKS
  data train {
    id = "ids.npy"
    x = "x.npy"
    y = "ys.npy"
  }
}
"""
OPTIMIZERS = ("sgd(0.01)", "momentum(0.01)", "adagrad(0.01)", "rmsprop()", "adam()", "adamw()", "sgdw(0.01)", "adadelta()", "adamax()", "nadam()",
              "radam()", "lion()", "lamb()", "lars(0.1)", "adafactor()", "accumulate(3), adam()", "unscale(2.0, step % 3 != 1), sgd(0.01)")


def write_mastered(storage, near, links):
    with open("m.dsl", "w") as f:
        f.write(MASTERED.replace("STORAGE", storage).replace("ROUND", near).replace("LINKS", f"[{links}]"))


def mastered(kind, optimizers):
    """To train a variable of 16 bits with a master is to train one of f32 that is rounded where it is read, by whatever optimizer."""
    train = ("train", "m.dsl", "--batch", str(ROWS), "--no-shuffle", "--quiet", "--steps", "10", "--overwrite", "--checkpoint")
    for optimizer in optimizers:
        write_mastered(f"storage({kind})", "", f"master(), {optimizer}")
        run(*train, "master.safetensors")
        write_mastered("", f"round_{kind}", optimizer)
        run(*train, "wide.safetensors")
        narrow, wide = read("master.safetensors"), read("wide.safetensors")
        for name in "table", "w":
            check(same(narrow[name + ".master.value"], wide[name]), f"{kind}, {optimizer}: the master of {name} is the f32 variable")
            check(narrow[name].dtype == DTYPES[kind.upper()] and same(narrow[name].astype(np.float32), rounded(wide[name], kind)),
                  f"{kind}, {optimizer}: {name} is its master, rounded")
        check(not same(wide["w"], rounded(wide["w"], kind)), f"{kind}, {optimizer}: the master has digits that the variable lacks")


def small_steps(kind):
    """Steps of less than half a last place: all are lost without a master, and none with one. A file that has no master, or another
    training's, leaves the variable as it is."""
    rng = np.random.default_rng(7)
    x, rate, steps = rng.standard_normal(64).astype(np.float32), np.float32(2.0**-16), 1000
    first = rounded(1 + rng.random(64).astype(np.float32), kind)
    half = 2.0**-8 if kind == "bf16" else 2.0**-11
    check((np.abs(rate * x) < half / 2).all() and (np.abs(rate * x * steps) > half).any(), f"{kind}: what the steps are")
    np.save("s.npy", x[None]), np.save("first.npy", first)
    write_f32("first.safetensors", {"w": first})
    train = ("train", "s.dsl", "--batch", "1", "--quiet", "--overwrite", "--init-from", "first.safetensors")
    for links, name in (("sgd(RATE)", "lost"), ("master(), sgd(RATE)", "kept")):
        with open("s.dsl", "w") as f:
            f.write("model s {\n input x : f32[B, 64]\n var w : f32[64] = random_normal(f32[64])"
                    f" storage({kind})\n train sum(x * w) with [{links.replace('RATE', repr(float(rate)))}]\n"
                    ' data train { x = "s.npy" }\n}\n')
        run(*train, "--steps", str(steps), "--checkpoint", name + ".safetensors")
    want = first
    for _ in range(steps):
        want = want - rate * x
    lost, kept = read("lost.safetensors"), read("kept.safetensors")
    check(same(lost["w"].astype(np.float32), first), f"{kind}: without a master nothing has changed")
    check(same(kept["w.master.value"], want), f"{kind}: with one the steps are f32's, from the file's value on")
    check(same(kept["w"].astype(np.float32), rounded(want, kind)), f"{kind}: the variable is the master, rounded")
    check((kept["w"].astype(np.float32) != first).mean() > 0.5, f"{kind}: with a master it has changed")
    resumed = ("--steps", str(steps), "--resume", "--checkpoint", "half.safetensors")
    run(*train, "--steps", str(steps // 2), "--checkpoint", "half.safetensors")
    run(*(a for a in train if a not in ("--overwrite", "--init-from", "first.safetensors")), *resumed)
    half_way = read("half.safetensors")
    check(all(same(half_way[n].astype(np.float32), kept[n].astype(np.float32)) for n in ("w", "w.master.value")), f"{kind}: resumed")


def digest(*args):
    run("train", "m.dsl", "--batch", "13", "--steps", "9", "--quiet", "--overwrite", "--checkpoint", "s.safetensors", *args)
    with open("s.safetensors", "rb") as f:
        return hashlib.sha256(f.read()).hexdigest()


def one_checkpoint(kind):
    ways = [("--devices", d, "--strategy", s) for d, s in (("cpu:0", "mirrored"), ("cpu:0-1", "mirrored"),
                                                         ("cpu:0-1", "central_storage"), ("cpu:0-2", "round_robin"))]
    ways.append(("--cluster", "worker=2;ps=2", "--strategy", "parameter_server"))
    found = {digest("--towers", "3", *way) for way in ways}
    check(len(found) == 1, f"{kind}: one checkpoint, whatever the strategy")


def spread(kind):
    write_mastered(f"storage({kind})", "", "master(), adam()")
    one_checkpoint(kind)
    write_model(kind, f"sgd({RATE})")
    one_checkpoint(kind)
    write_model(kind, f"by_hand({RATE})")
    stored = read("s.safetensors")
    run("train", "m.dsl", "--batch", "13", "--steps", "9", "--quiet", "--overwrite", "--checkpoint", "h.safetensors", "--towers", "3",
        "--devices", "cpu:0-1", "--set", "storage=f32")
    hand = read("h.safetensors")
    for name in "table", "w":
        check(hand[name].dtype == np.float32 and same(stored[name].astype(np.float32), hand[name]), f"{kind}: {name} as if rounded by hand")


def main():
    rng = np.random.default_rng(13)
    data = write_data(rng)
    for kind in "bf16", "f16":
        loaded(kind)
        trained(kind, data, f"adam({RATE}, storage = {kind})")
        trained(kind, data, f"sgd({RATE})")
        spread(kind)
        small_steps(kind)
        mastered(kind, OPTIMIZERS[kind == "f16"::2])
    finish()


main()
