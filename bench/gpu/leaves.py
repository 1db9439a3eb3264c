#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Convolutions and attention on one GPU: the kernels of kernels/cuda alone, beside PyTorch's: leaves.py [--only conv|attention]
[--rounds N] [--case WORD] [--peak f32=67,tf32=494,bf16=989] [--bandwidth 3350]

Needs PyTorch with a GPU and nvcc, and no build of dgc: the text of the kernels is compiled, and launched as runtime/cuda does, on
PyTorch's tensors. `error` is the greatest difference from f64, over the greatest number of the result; behind it is PyTorch's
own. Times are microseconds, medians of events around a launch; the floor is what the operations take at the peak (TFLOP/s), or
the bytes of operands and result in f32 at the bandwidth (GB/s), whichever is longer. In bf16 PyTorch has tensors of 2 bytes a
number. A line that ends with an exclamation mark is wrong: the error is too great. Exit status 1 where there is one."""
import argparse
import concurrent.futures
import ctypes
import math
import pathlib
import shutil
import statistics
import struct
import subprocess
import sys
import tempfile

import torch

F = torch.nn.functional
FOLDER = pathlib.Path(__file__).resolve().parents[2] / "kernels/cuda"
OPTIONS = ["--fmad=false", "--ftz=false", "--prec-div=true", "--prec-sqrt=true", "--std=c++17"]  # runtime/cuda/compile.c
FLOAT = "#define TYPE float\n#define SUM float\n"
RESULTS = {0: "dx", 1: "dw", 2: "y"}
# What an error may be, of sums of thousands of terms; PyTorch's decides where it is worse.
MOST = {"f32": 2e-5, "tf32": 5e-3, "bf16": 1e-3}

# Name, batch, height, width, channels, filters, kernel, stride, low and high padding, dilation, groups.
CONVS = [
    ("resnet-20 first", 128, 32, 32, 3, 16, 3, 1, (1, 1), 1, 1),
    ("resnet-20 a", 128, 32, 32, 16, 16, 3, 1, (1, 1), 1, 1),
    ("resnet-20 a-b", 128, 32, 32, 16, 32, 3, 2, (0, 1), 1, 1),
    ("resnet-20 b", 128, 16, 16, 32, 32, 3, 1, (1, 1), 1, 1),
    ("resnet-20 c", 128, 8, 8, 64, 64, 3, 1, (1, 1), 1, 1),
    ("lenet first", 2048, 28, 28, 1, 6, 5, 1, (2, 2), 1, 1),
    ("lenet second", 2048, 14, 14, 6, 16, 5, 1, (0, 0), 1, 1),
    ("resnet-50 a", 64, 56, 56, 64, 64, 3, 1, (1, 1), 1, 1),
    ("resnet-50 1x1", 64, 56, 56, 64, 256, 1, 1, (0, 0), 1, 1),
    ("resnet-50 b", 64, 28, 28, 128, 128, 3, 1, (1, 1), 1, 1),
    ("resnet-50 c", 64, 14, 14, 256, 256, 3, 1, (1, 1), 1, 1),
    ("groups", 32, 28, 28, 64, 64, 3, 1, (1, 1), 1, 4),
    ("odd", 5, 13, 11, 7, 9, 3, 1, (2, 1), 2, 1),
    ("odd, groups", 3, 9, 14, 15, 10, 3, 2, (1, 2), 1, 5),
    ("one pixel", 7, 1, 1, 40, 70, 1, 1, (0, 0), 1, 1),
]
# Name, batch, queries, keys, heads, size, values, causal.
ATTENTIONS = [
    ("chars 64", 128, 64, 64, 4, 32, 32, True),
    ("chars 1024", 16, 1024, 1024, 4, 32, 32, True),
    ("gpt 1024", 4, 1024, 1024, 12, 64, 64, True),
    ("long", 1, 4096, 4096, 16, 64, 64, False),
    ("wide", 2, 512, 512, 8, 128, 128, True),
    ("odd", 3, 37, 53, 3, 20, 24, False),
    ("odd, causal", 2, 131, 131, 2, 33, 33, True),
]


# ---- kernels ----

def text_of(name, definitions=FLOAT):
    """As program_text of runtime/cuda/leaves.c."""
    kind = ["tensor.cuh"] * name.endswith("_tensor") + ["tiles.cuh"] * name.endswith("_tiles")
    parts = ["leaf.cuh"] + kind + [name.removesuffix("_tensor") + ".cuh", name + ".cu"]
    return definitions + "".join((FOLDER / part).read_text() for part in parts if (FOLDER / part).exists())


def compile_text(text):
    major, minor = torch.cuda.get_device_capability()
    compiler = shutil.which("nvcc") or "/usr/local/cuda/bin/nvcc"
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "kernel.cu")
        path.write_text(text)
        subprocess.run([compiler, f"-arch=sm_{major}{minor}", "-cubin", "-w", *OPTIONS, "-o", folder + "/out", path], check=True)
        return pathlib.Path(folder, "out").read_bytes()


class Kernels:
    """By text; compiled all at once."""

    def __init__(self, wanted):
        self.cuda, self.made, self.kept = ctypes.CDLL("libcuda.so.1"), {}, []
        torch.zeros(1, device="cuda")  # makes the context current
        with concurrent.futures.ThreadPoolExecutor() as pool:
            for (name, text), code in zip(wanted, pool.map(lambda w: compile_text(w[1]), wanted)):
                module, function = ctypes.c_void_p(), ctypes.c_void_p()
                self.kept.append(code)
                self.check(self.cuda.cuModuleLoadData(ctypes.byref(module), code))
                self.check(self.cuda.cuModuleGetFunction(ctypes.byref(function), module, name.encode()))
                self.made[text] = function

    def check(self, result):
        if result:
            sys.exit(f"the driver fails with error {result}")

    def launch(self, text, threads, pointers, numbers):
        """A call of it, with `threads` that find work."""
        blocks = max(1, min(-(-threads // 256), 1 << 16))
        values = [ctypes.c_uint64(p.data_ptr() if p is not None else 0) for p in pointers]
        packed = ctypes.create_string_buffer(struct.pack(f"{len(numbers)}q", *numbers))
        places = (ctypes.c_void_p * (len(values) + 1))(*[ctypes.addressof(v) for v in values], ctypes.addressof(packed))
        function, stream = self.made[text], ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)

        def call():
            self.check(self.cuda.cuLaunchKernel(function, blocks, 1, 1, 256, 1, 1, 0, stream, places, None))
        call.alive = values, packed, places, pointers
        return call


def timed(call, rounds):
    """Microseconds; None: it cannot."""
    try:
        times = []
        for _ in range(3):
            call()
        for _ in range(rounds):
            begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            torch.cuda.synchronize()
            begin.record()
            call()
            end.record()
            torch.cuda.synchronize()
            times.append(1e3 * begin.elapsed_time(end))
        return statistics.median(times)
    except RuntimeError:
        return None


def error(got, want):
    if not torch.isfinite(got).all():
        return math.inf
    return ((got.double() - want).abs().max() / want.abs().max().clamp_min(1e-300)).item()


# ---- convolutions ----

def conv_sizes(c):
    """As the fields of struct convolution, but for the result."""
    _, n, h, w, channels, filters, size, stride, (low, high), dilation, groups = c
    out = [(x + low + high - (size - 1) * dilation - 1) // stride + 1 for x in (h, w)]
    return [n, groups, channels // groups, filters // groups, 1, h, w, 1, size, size, 1, *out, 1, stride, stride, 0, low, low,
            1, 1, 1, 1, dilation, dilation]


FACTORS = {"f32": "#define BF16 0\n#define EXACT 1\n", "tf32": "#define BF16 0\n", "bf16": "#define BF16 1\n"}


def tiles_launch(sizes, result, rounding):
    """As runtime/cuda/conv.c: definitions, threads, pieces and how long they are; None: it is not worth tiles."""
    n, groups, channels, filters = sizes[:4]
    inputs, places, outputs = (math.prod(sizes[i:i + 3]) for i in (4, 7, 10))
    rows, columns, depth = {0: (n * inputs, channels, places * filters), 1: (places * channels, filters, n * outputs),
                            2: (n * outputs, filters, places * channels)}[result]
    if columns < 4 or depth < 8:
        return None
    wide = 64 if columns > 32 else 32 if columns > 16 else 16
    tiles = -(-rows // (64 if result == 1 else 128)) * -(-columns // wide) * groups
    count = min(512 // tiles, depth // 256, (64 << 20) // (4 * rows * columns * groups))
    piece = depth
    if result == 1 and count > 1:
        piece = -(-(-(-depth // count)) // 64) * 64
    count = -(-depth // piece)
    return f"{FLOAT}{FACTORS[rounding]}#define RESULT {result}\n#define WIDE {wide}\n", tiles * count * 256, count, piece


def plain_threads(sizes, result, elements):
    """As conv_threads of ir/ops/conv.c."""
    columns = sizes[3] if result == 2 else sizes[2]
    if result == 1:
        return elements * 256
    if columns < 4:
        return elements
    wide, high = (64, 64) if columns > 16 else (16, 256)
    return -(-columns // wide) * -(-(elements // (sizes[1] * columns)) // high) * sizes[1] * 256


def conv_call(kernels, sizes, result, rounding, a, b, out):
    numbers = [result] + sizes
    how = tiles_launch(sizes, result, rounding)
    if not how:
        return kernels.launch(text_of("conv"), plain_threads(sizes, result, out.numel()), (a, b, out), numbers), "element by element"
    definitions, threads, count, piece = how
    parts = torch.empty(count * out.numel(), device="cuda") if count > 1 else out
    first = kernels.launch(text_of("conv_tensor", definitions), threads, (a, b, parts), numbers + [count, piece])
    if count == 1:
        return first, ""
    second = kernels.launch(text_of("conv_join"), out.numel() * 8, (parts, out), [out.numel(), count])
    return lambda: (first(), second()), f"{count} pieces"


def torch_conv(c, x, w, dy, result):
    """PyTorch's value, of tensors as dgc has them: NHWC, HWIO."""
    _, *_, stride, (low, high), dilation, groups = c
    x, dy, w = x.permute(0, 3, 1, 2), dy.permute(0, 3, 1, 2), w.permute(3, 2, 0, 1).contiguous(memory_format=torch.channels_last)
    even = low == high
    padded = x if even else F.pad(x, (low, high, low, high)).contiguous(memory_format=torch.channels_last)
    pad = low if even else 0
    if result == 2:
        call = lambda: F.conv2d(padded, w, None, stride, pad, dilation, groups)
        return call, lambda y: y.permute(0, 2, 3, 1)
    mask = [result == 0, result == 1, False]
    call = lambda: torch.ops.aten.convolution_backward(dy, padded, w, None, [stride] * 2, [pad] * 2, [dilation] * 2, False, [0, 0],
                                                       groups, mask)[result]
    if result == 1:
        return call, lambda d: d.permute(2, 3, 1, 0)
    edge = 0 if even else low
    h, wide = x.shape[2:]
    return call, lambda d: d[:, :, edge:edge + h, edge:edge + wide].permute(0, 2, 3, 1)


def conv_texts():
    texts = {("conv", text_of("conv")), ("conv_join", text_of("conv_join"))}
    for c in CONVS:
        for result in RESULTS:
            for rounding in FACTORS:
                how = tiles_launch(conv_sizes(c), result, rounding)
                if how:
                    texts.add(("conv_tensor", text_of("conv_tensor", how[0])))
    return sorted(texts)


def convs(o, kernels):
    bad = 0
    for c in CONVS:
        if o.case and o.case not in c[0]:
            continue
        sizes = conv_sizes(c)
        n, groups, channels, filters, _, h, w, _, size, _, _, oh, ow = sizes[:13]
        torch.manual_seed(1)
        x0 = torch.randn(n, h, w, groups * channels, device="cuda")
        w0 = torch.randn(size, size, channels, groups * filters, device="cuda") / math.sqrt(size * size * channels)
        dy0 = torch.randn(n, oh, ow, groups * filters, device="cuda")
        for rounding in o.rounding:
            near = (lambda t: t.bfloat16().float()) if rounding == "bf16" else lambda t: t
            x, k, dy = near(x0), near(w0), near(dy0)
            torch.backends.cudnn.allow_tf32 = rounding == "tf32"
            for result in (2, 0, 1):
                a, b, like = {2: (x, k, dy), 0: (dy, k, x), 1: (x, dy, k)}[result]
                exact, of = torch_conv(c, x.double(), k.double(), dy.double(), result)
                want, out = of(exact()), torch.full_like(like, math.nan)
                call, note = conv_call(kernels, sizes, result, rounding, a, b, out)
                call()
                theirs = [t.bfloat16() for t in (x, k, dy)] if rounding == "bf16" else (x, k, dy)
                other, of = torch_conv(c, *theirs, result)
                flops = 2 * size * size * channels * groups * filters * n * oh * ow
                bad += row(o, c[0], RESULTS[result], rounding, error(out, want), error(of(other()), want), call, other, flops,
                           4 * (x.numel() + k.numel() + dy.numel()), note)
    return bad


# ---- attention ----

def attention_definitions(size, values, more):
    """As runtime/cuda/attention.c."""
    return f"{FLOAT}{more}#define WIDTH {next(w for w in (32, 64, 128) if w >= max(size, values))}\n"


def gradient_texts(size, values):
    """Of queries and of keys."""
    return [text_of("attention_gradient_tiles", attention_definitions(size, values, f"#define OWN_TENSORS 2\n#define OF_KEYS {keys}\n")) for keys in (0, 1)]


def value_text(size, values, rounding):
    """Name, text, rows of a block."""
    name, more, high = (("attention_tensor", "#define BF16 0\n", 128) if rounding == "tf32" else
                        ("attention_tiles", "#define OWN_TENSORS 1\n", 64))
    return name, text_of(name, attention_definitions(size, values, more)), high


def attention_texts():
    values = {value_text(*c[5:7], rounding)[:2] for c in ATTENTIONS for rounding in ("f32", "tf32")}
    gradients = {("attention_gradient_tiles", text) for c in ATTENTIONS for text in gradient_texts(*c[5:7])}
    return sorted(values | gradients)


def attentions(o, kernels):
    bad = 0
    for name, n, queries, keys, heads, size, values, causal in ATTENTIONS:
        if o.case and o.case not in name:
            continue
        torch.manual_seed(1)
        q, k = (torch.randn(n, length, heads, size, device="cuda") for length in (queries, keys))
        v, dy = (torch.randn(n, length, heads, values, device="cuda") for length in (keys, queries))
        numbers = [n, heads, queries, keys, size, values, int(causal), 0, 0, 0, 0, 0, 0, n * heads]

        def peer(q, k, v, dy):
            q, k, v, dy = (t.transpose(1, 2).detach() for t in (q, k, v, dy))
            for t in (q, k, v):
                t.requires_grad_(True)
            y = F.scaled_dot_product_attention(q, k, v, is_causal=causal)
            back = lambda: torch.autograd.grad(y, (q, k, v), dy, retain_graph=True)

            def forward():
                with torch.no_grad():
                    return F.scaled_dot_product_attention(q, k, v, is_causal=causal)
            flat = lambda all: torch.cat([t.transpose(1, 2).flatten(1) for t in all], 1)
            return forward, back, lambda t: t.transpose(1, 2), flat
        forward, back, of, flat = peer(*(t.double() for t in (q, k, v, dy)))
        want, want_back = of(forward()), flat(back())
        for rounding in o.rounding:
            if rounding == "bf16":  # attention has no bfloat16 of its own: see docs/language.md
                continue
            torch.backends.cuda.matmul.allow_tf32 = rounding == "tf32"
            y, gradient = torch.full_like(dy, math.nan), torch.full_like(want_back, math.nan, dtype=torch.float32)
            _, text, high = value_text(size, values, rounding)
            first = kernels.launch(text, 256 * n * heads * -(-queries // high), (q, k, v, None, y), numbers)
            first()
            rows = torch.full((4 * n * heads * queries,), math.nan, device="cuda")
            both = [kernels.launch(text, 256 * n * heads * -(-length // 64), (q, k, v, y, dy, rows, None, gradient), numbers)
                    for text, length in zip(gradient_texts(size, values), (queries, keys))]
            second = lambda: [call() for call in both]
            second()
            forward, back, of, flat = peer(q, k, v, dy)
            flops = n * heads * queries * keys * (size + values) // (2 if causal else 1)
            operands = 4 * (q.numel() + k.numel() + v.numel() + dy.numel())
            bad += row(o, name, "y", rounding, error(y, want), error(of(forward()), want), first, forward, 2 * flops, operands, "")
            bad += row(o, name, "gradient", rounding, error(gradient, want_back), error(flat(back()), want_back), second, back,
                       5 * flops, 2 * operands, "")
    return bad


def row(o, name, result, rounding, mine, theirs, call, other, flops, moved, note):
    floor = max(1e-6 * flops / o.peak[rounding], 1e-3 * moved / o.bandwidth)
    us, peer = timed(call, o.rounds), timed(other, o.rounds)
    good = mine <= max(MOST[rounding], 2 * theirs)
    ratio = f"{us / peer:8.2f}" if peer else "       –"
    print(f"{name:16} {result:8} {rounding:5} {mine:9.1e} {theirs:9.1e} {us:10.1f} {peer or math.nan:10.1f} {ratio} {floor:9.1f} "
          f"{us / floor:8.1f} {1e-6 * flops / us:8.1f} {note}{'' if good else ' !'}", flush=True)
    return not good


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--only", choices=("conv", "attention"))
    p.add_argument("--case", help="of the cases those whose name has this in it")
    p.add_argument("--rounding", nargs="+", choices=MOST, default=list(MOST))
    p.add_argument("--rounds", type=int, default=20)
    p.add_argument("--peak", default="f32=67,tf32=494,bf16=989", help="TFLOP/s; an H100's, SXM")
    p.add_argument("--bandwidth", type=float, default=3350, help="GB/s")
    o = p.parse_args()
    o.peak = {name: float(value) for name, value in (part.split("=") for part in o.peak.split(","))}
    if not torch.cuda.is_available():
        sys.exit("this PyTorch has no GPU")
    torch.backends.cudnn.benchmark = True
    wanted = (conv_texts() if o.only != "attention" else []) + (attention_texts() if o.only != "conv" else [])
    kernels = Kernels(wanted)
    print(f"{torch.cuda.get_device_name()}, PyTorch {torch.__version__}")
    print(f"{'case':16} {'result':8} {'':5} {'error':>9} {'torch’s':>9} {'us':>10} {'torch us':>10} {'of torch':>8} {'floor us':>9} "
          f"{'of floor':>8} {'TFLOP/s':>8}")
    bad = (convs(o, kernels) if o.only != "attention" else 0) + (attentions(o, kernels) if o.only != "conv" else 0)
    print(f"{bad} wrong")
    sys.exit(bad > 0)


main()
