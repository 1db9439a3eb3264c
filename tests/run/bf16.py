#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Products of bfloat16, in the CPU's units and without them, beside numpy, which rounds by ml_dtypes and adds up in f64:
bf16.py DGC

Each result may be off by as many roundings to f32 as it has terms; what is below 2^-126 may be lost from each. Zeros, subnormals,
infinities, NaN, ties and numbers that round to infinity are among the operands. Where the CPU has units for it, the order of their sums
must show: a way that is never taken would agree with everything."""
import json
import os
import subprocess

from bfloat16 import LEAST, np, read, rounded, write_f32
from checks import check, dgc, finish



def run(units, *args, **env):
    r = subprocess.run([dgc, *args], capture_output=True, text=True, timeout=600,
                       env={**os.environ, "DGC_BF16_UNITS": units, "NO_COLOR": "1", **env})
    if r.returncode:
        print(r.stderr)
    check(r.returncode == 0, f"exit code {r.returncode} of dgc {' '.join(args)}")


def close(what, got, a, b, path, product):
    """`product` of bfloat16 values a and b, in f64, and what may be lost: the sum of the terms' sizes, and how many there are."""
    with np.errstate(all="ignore"):
        want = product(a, b)
        finite = np.isfinite(want) & (np.abs(want) < 2.0**127)
        size = np.where(finite, product(np.abs(a), np.abs(b)), 0)
        terms = product(np.ones_like(a), np.ones_like(b))
        bound = terms * (2.0**-24 * size * 1.01 + 2 * LEAST)
        off = np.abs(got.astype(np.float64) - want)
        good = np.where(finite, off <= bound, (np.isnan(want) & np.isnan(got)) | (got == want) | np.isfinite(want))
    check(good.all(), f"{what}, {path}: {np.argwhere(~good)[:3].tolist()} of {got.shape}")


def mixed(rng, shape):
    """Numbers of all sizes, and ties."""
    x = (rng.standard_normal(shape) * 2.0**rng.integers(-12, 12, shape)).astype(np.float32)
    ties = rng.random(shape) < 0.1
    bits = (x.view(np.uint32) & np.uint32(0xffff0000)) | np.uint32(0x8000)
    return np.where(ties, bits.view(np.float32), x)


def special(rng, x):
    """Some elements of the last rows: zeros, subnormals, and what becomes infinite; one infinity and one NaN in a row each."""
    x = x.copy()
    n = x.shape[0]
    for i, v in enumerate([0.0, -0.0, 1e-39, -1.1754942e-38, 1.1754944e-38, 3.3961776e38, 3.39e38, np.inf, -np.inf, np.nan]):
        row = x[n - 1 - i].reshape(-1)
        row[rng.integers(0, row.size)] = v
        if i in (2, 3):
            row[:] = v
    return x


def products(rng):
    # The last two in blocks: of rows; of rows and of k.
    sizes = [(64, 784, 48), (33, 130, 17), (16, 10, 70), (40, 300, 1), (787, 40, 33), (600, 1100, 140)]
    for rows, k, n in sizes:
        x, w = special(rng, mixed(rng, (rows, k))), mixed(rng, (k, n))
        w[rng.random((k, n)) < 0.05] = 1e30
        np.save("x.npy", x)
        write_f32("w.safetensors", {"w": w})
        with open("m.dsl", "w") as f:
            f.write(f"model m {{\n input x : f32[B, {k}]\n var w : f32[{k}, {n}] = zeros()\n"
                    " predict y = matmul(x, w, precision = bf16)\n data test { x = \"x.npy\" }\n}\n")
        found = {}
        for units in "on", "off":
            run(units, "predict", "m.dsl", "--checkpoint", "w.safetensors", "--output", "y=y.npy", "--batch", str(rows))
            found[units] = np.load("y.npy")
            a, b = (rounded(v).astype(np.float64) for v in (x, w))
            close(f"product {rows}x{k}x{n}", found[units], a, b, units, np.matmul)
        yield found["on"].tobytes() != found["off"].tobytes()


def convolved(x, w):
    """Stride 1, the same size."""
    p = np.pad(x, ((0, 0), (1, 1), (1, 1), (0, 0)))
    h, v = x.shape[1:3]
    return sum(p[:, i:i + h, j:j + v] @ w[i, j] for i in range(3) for j in range(3))


def convolutions(rng):
    x, w = mixed(rng, (12, 8, 8, 32)), mixed(rng, (3, 3, 32, 48))
    y = x.reshape(12, -1)
    y[:] = special(rng, y)
    np.save("x.npy", x)
    write_f32("w.safetensors", {"w": w})
    with open("m.dsl", "w") as f:
        f.write("model m with precision = bf16 {\n input x : f32[B, 8, 8, 32]\n var w : f32[3, 3, 32, 48] = zeros()\n"
                " predict y = conv(x, w, padding = \"same\")\n data test { x = \"x.npy\" }\n}\n")
    found = {}
    for units in "on", "off":
        run(units, "predict", "m.dsl", "--checkpoint", "w.safetensors", "--output", "y=y.npy", "--batch", "12")
        found[units] = np.load("y.npy")
        a, b = (rounded(v).astype(np.float64) for v in (x, w))
        close("conv", found[units], a, b, units, convolved)
    yield found["on"].tobytes() != found["off"].tobytes()


class Drawn:
    """A convolution, or what it makes of its output back, of drawn sizes. What lies outside of the image is no term."""

    def __init__(self, rng):
        while True:
            axes = rng.integers(1, 4)
            self.back = rng.random() < 0.5
            self.size = rng.integers(1, [40, 14, 7][axes - 1], axes)
            self.kernel = rng.integers(1, 6 if axes < 3 else 4, axes)
            self.stride = rng.integers(1, 4 if axes < 3 else 3, axes)
            self.spread = rng.integers(1, 3, axes) if rng.random() < 0.4 else np.ones(axes, int)
            self.padding = rng.integers(-1, 4, (axes, 2)) if rng.random() < 0.7 else np.zeros((axes, 2), int)
            self.channels, self.filters = rng.integers(1, 71, 2)
            room = self.size + self.padding.sum(1) - (self.kernel - 1) * self.spread - 1
            self.output = room // self.stride + 1
            if (room >= 0).all() and self.output.prod() < 500:
                break
        self.x = (*(self.output if self.back else self.size), self.filters if self.back else self.channels)
        self.w = (*self.kernel, self.channels, self.filters)

    def text(self):
        strides, spread, padding, size = ([int(v) if np.ndim(v) == 0 else [int(u) for u in v] for v in a]
                                          for a in (self.stride, self.spread, self.padding, self.size))
        whole = f"size = {size}, " if self.back else ""
        return (f"{'transposed_conv' if self.back else 'conv'}(x, w, {whole}strides = {strides}, padding = {padding}, "
                f"kernel_dilation = {spread})")

    def met(self, place):
        """Of the input and of the output what meets at this place of the kernel."""
        inputs, outputs = [slice(None)], [slice(None)]
        for k, n, o, stride, spread, (low, _) in zip(place, self.size, self.output, self.stride, self.spread, self.padding):
            at = k * spread - low
            first = max(0, -(at // stride))
            end = max(first, min(o, (n - 1 - at) // stride + 1))
            outputs.append(slice(first, end))
            inputs.append(slice(first * stride + at, max(0, (end - 1) * stride + at + 1), stride) if end > first else slice(0, 0))
        return tuple(inputs), tuple(outputs)

    def __call__(self, x, w):
        y = np.zeros((x.shape[0], *(self.size if self.back else self.output), self.channels if self.back else self.filters))
        for place in np.ndindex(*self.kernel):
            inputs, outputs = self.met(place)
            if self.back:
                y[inputs] += x[outputs] @ w[place].T
            else:
                y[outputs] += x[inputs] @ w[place]
        return y


def drawn_convolutions(rng, tiles):
    """Of all sizes, with Inf and NaN at the ends of images and in kernels; by two threads as by one."""
    for i in range(20):
        c = Drawn(rng)
        x, w = mixed(rng, (rng.integers(1, 4), *c.x)), mixed(rng, c.w)
        if tiles and i % 2:
            flat, places = x.reshape(-1), w.reshape(-1)
            flat[[0, -1]] = np.nan, np.inf
            places[rng.integers(0, places.size)] = [np.nan, np.inf, 1, 1][i // 2 % 4]
        np.save("x.npy", x)
        write_f32("w.safetensors", {"w": w})
        shape = ", ".join(str(n) for n in c.x)
        with open("m.dsl", "w") as f:
            f.write(f"model m with precision = bf16 {{\n input x : f32[B, {shape}]\n var w : f32{[int(n) for n in c.w]} = zeros()\n"
                    f" predict y = {c.text()}\n data test {{ x = \"x.npy\" }}\n}}\n")
        found = []
        for threads in "1", "2":
            run("on", "predict", "m.dsl", "--checkpoint", "w.safetensors", "--output", "y=y.npy", "--batch", str(len(x)), "--devices",
                "cpu:0", "--threads", threads, DGC_PIECE_COST="1")
            found.append(np.load("y.npy"))
        check(found[0].tobytes() == found[1].tobytes(), f"{c.text()} by two threads")
        a, b = (rounded(v).astype(np.float64) for v in (x, w))
        close(f"{c.text()} of {x.shape} by {c.w}", found[0], a, b, "units", c)


def gradients(rng, width):
    """One step of gradient descent by 1 takes the gradients from the variables, which are 0 before or hold what they are
    multiplied with."""
    x, r = mixed(rng, (64, width)), mixed(rng, (64, 33))
    w = mixed(rng, (width, 80)), mixed(rng, (80, 33))
    np.save("x.npy", x)
    np.save("r.npy", r)
    with open("m.dsl", "w") as f:
        f.write(f"model m with precision = bf16 {{\n input x : f32[B, {width}]\n input r : f32[B, 33]\n var u : f32[{width}, 80] = zeros()\n"
                f" var v : f32[80, 33] = zeros()\n var du : f32[{width}, 80] = zeros()\n"
                " h = x @ (u + du)\n train sum((h @ v) * r) with sgd(rate = 1.0)\n"
                " data train {\n  x = \"x.npy\"\n  r = \"r.npy\"\n }\n}\n")
    for units in "on", "off":
        write_f32("w.safetensors", {"u": w[0], "v": w[1], "du": np.zeros_like(w[0])})
        run(units, "train", "m.dsl", "--resume=w.safetensors", "--checkpoint", "after.safetensors", "--batch", "64", "--steps", "1",
            "--no-shuffle", "--quiet", "--overwrite")
        after = read("after.safetensors")
        b = rounded(w[1]).astype(np.float64)
        flowing = rounded(r).astype(np.float64)
        dh = rounded((flowing @ b.T).astype(np.float32)).astype(np.float64)
        got, want = -after["du"].astype(np.float64), rounded(x).astype(np.float64).T @ dh
        # dh may be rounded to the other neighbour: 2^-8 of each term
        size = np.abs(rounded(x)).astype(np.float64).T @ np.abs(dh)
        check((np.abs(got - want) <= 2.0**-8 * size).all(), f"gradient of {width}, {units}")


PROFILED = """use nn
model m() {
  input x : f32[B, 8, 8, 16]
  h = nn.conv2d(x, 32, precision = bf16)
  y = nn.dense(flatten(h), 64, precision = bf16)
  s = x[:, :, 0, :]
  scan(length = 3) s { s = nn.conv1d(s, 16, precision = bf16) }
  train mean(square(y)) + mean(s) with sgd(1e-3)
}
"""


def profiled(units):
    """Who computes convolutions and products, as a profile says it; by depth in loops: {("conv by oneDNN", 0)}."""
    with open("profiled.dsl", "w") as f:
        f.write(PROFILED)
    done = subprocess.run([dgc, "bench", "profiled.dsl", "--profile", "--devices", "cpu:0", "--threads", "1", "--batch", "64", "--steps", "2",
                           "--json"], stdout=subprocess.PIPE, check=True, env={**os.environ, "DGC_BF16_UNITS": units})
    lines = json.loads(done.stdout)["lines"]
    return {(line["how"], line["depth"]) for line in lines if line["how"].split()[0] in ("conv", "matmul")}


def profiles(words, units):
    found = profiled("off")
    if "fma" in words:
        check(found == {("conv", 0), ("conv", 1), ("matmul", 0)}, f"our own code: {found}")
    if not units:
        return
    found = profiled("on")
    by = "matmul" if "amx_bf16" in words else "matmul by oneDNN"
    conv = by.replace("matmul", "conv")
    check({(conv, 0), (conv, 1)} <= found, f"convolutions in units: {found}")
    check({how for how, _ in found if how.startswith("matmul")} == {by}, f"products in units: {found}")


def main():
    rng = np.random.default_rng(11)
    differ = list(products(rng)) + list(convolutions(rng))
    gradients(rng, 96)
    gradients(rng, 787)  # in blocks, the last one smaller
    with open("/proc/cpuinfo") as f:
        words = f.read().split()
    units = "amx_bf16" in words or ("avx512_bf16" in words and "AuthenticAMD" in words)
    units = units and "DNNL_MAX_CPU_ISA" not in os.environ
    drawn_convolutions(rng, units and "amx_bf16" in words)
    if units:
        check(differ[0] and differ[-1], "the units of this CPU are not taken")
    else:
        check(not any(differ), "units of a CPU that has none")
        print("SKIP: this CPU has no units for bfloat16: both ways are those of f32")
    profiles(words, units)
    finish()


main()
