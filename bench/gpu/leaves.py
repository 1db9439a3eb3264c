#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Convolutions, attention and windows on one GPU: the kernels of kernels/cuda alone, beside PyTorch's:

leaves.py [--only conv|attention|window] [--case WORD] [--rounding f32 tf32 bf16] [--tiles] [--rounds N]
          [--peak f32=67,tf32=494,bf16=989] [--bandwidth 3350]

Needs PyTorch with a GPU and nvcc, and no build of dgc: the text of the kernels is compiled, and launched as
runtime/cuda does, on PyTorch's tensors. `error` is the greatest difference from f64, over the greatest number of the
result; behind it is PyTorch's own. Times are microseconds, medians of events around a launch; the floor is what the
operations take at the peak (TFLOP/s), or the bytes of operands and result in f32 at the bandwidth (GB/s), whichever is
longer. In bf16 PyTorch has tensors of 2 bytes a number. A line that ends with an exclamation mark is wrong: the error
is too great. Exit status 1 where there is one."""
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
# Name, batch, height, width, channels, size of windows, stride.
WINDOWS = [
    ("lenet first", 2048, 28, 28, 6, 2, 2),
    ("lenet second", 2048, 10, 10, 16, 2, 2),
    ("resnet-50", 64, 112, 112, 64, 3, 2),
    ("odd", 3, 9, 11, 5, 3, 3),
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
    parts = ["leaf.cuh"] + kind + [name.removesuffix("_tensor").removesuffix("_few") + ".cuh", name + ".cu"]
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

    def launch(self, text, threads, pointers, numbers, block=256):
        """A call of it, with `threads` that find work."""
        blocks = max(1, min(-(-threads // block), 1 << 16))
        values = [ctypes.c_uint64(p.data_ptr() if p is not None else 0) for p in pointers]
        packed = ctypes.create_string_buffer(struct.pack(f"{len(numbers)}q", *numbers))
        places = (ctypes.c_void_p * (len(values) + 1))(*[ctypes.addressof(v) for v in values], ctypes.addressof(packed))
        function, stream = self.made[text], ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)

        def call():
            self.check(self.cuda.cuLaunchKernel(function, blocks, 1, 1, block, 1, 1, 0, stream, places, None))
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
ENOUGH, LEAST_PIECE, PIECES, FEW = 384, 128, 512, 384  # runtime/cuda/conv.c: ENOUGH, LEAST_PIECE, BLOCKS, FEW_BLOCKS
TILES = {1: [(48, 16), (32, 32), (64, 64), (128, 64)]}  # by result: all that tile_of of conv.c chooses from
TILES[0] = TILES[2] = [(256, 16), (128, 16), (128, 32), (64, 32), (32, 32), (128, 64), (64, 64), (32, 64)]


def tiles_launch(sizes, result, rounding, forced=None):
    """As runtime/cuda/conv.c: definitions, pieces, how long they are, columns and rows of tiles, blocks, and the tile, which
    `forced` chooses; None: tiles do not pay. Sizes that are not for tiles because they are too large are not refused."""
    n, groups, channels, filters = sizes[:4]
    inputs, places, outputs = (math.prod(sizes[i:i + 3]) for i in (4, 7, 10))
    stride, dilation, gap = sizes[13:16], sizes[22:25], sizes[19:22]
    rows, columns, depth = {0: (n * inputs, channels, places * filters), 1: (places * channels, filters, n * outputs),
                            2: (n * outputs, filters, places * channels)}[result]
    if columns < 4 or depth < 8:
        return None
    step, by = {0: (stride, gap), 1: ([1] * 3, [1] * 3), 2: (gap, stride)}[result]
    phases = [a // math.gcd(a, b) for a, b in zip(step, by)]
    size = sizes[4:7] if result == 0 else sizes[10:13]
    of_phase = rows if result == 1 else n * math.prod(-(-x // p) for x, p in zip(size, phases))
    met = math.prod(-(-k // (a // math.gcd(a, d))) for k, a, d in zip(sizes[7:10], step, dilation))
    tiles = lambda high, wide: -(-of_phase // high) * -(-columns // wide) * groups * math.prod(phases)
    wide = 64 if columns > 32 else 32 if columns > 16 else 16
    if result == 1:
        large = tiles(128, 64) * (depth // (4 * LEAST_PIECE))
        high = 48 if wide == 16 else 32 if wide == 32 else 64 if large < PIECES else 128
    else:
        highs = (256, 128) if wide == 16 else (128, 64, 32)
        high = next((h for h in highs if tiles(h, wide) >= ENOUGH), highs[-1])
    high, wide = forced or (high, wide)
    count = min((FEW if high == 128 else PIECES) // tiles(high, wide), depth // LEAST_PIECE,
                (64 << 20) // (4 * rows * columns * groups))
    piece = depth
    if result == 1 and count > 1:
        piece = -(-(-(-depth // count)) // 64) * 64
    count = -(-depth // piece)
    taps = 256 if met > 64 and result != 1 else 64
    text = f"{FLOAT}{FACTORS[rounding]}#define RESULT {result}\n#define HIGH {high}\n#define WIDE {wide}\n#define TAPS {taps}\n"
    return text, count, piece, up(columns, wide), up(of_phase, high), tiles(high, wide) * count, f"{high} by {wide}"


def up(a, b):
    return -(-a // b)


def few_launch(sizes, result, rounding):
    """As runtime/cuda/conv_few.c: definitions, pieces, how long they are, blocks, and "few"; None: it is not for that kernel.
    Of images, not of what has three axes."""
    n, groups, channels, filters = sizes[:4]
    swap = result == 0
    columns, inner = (channels, filters) if swap else (filters, channels)
    ih, iw, kh, kw, oh, ow = (sizes[i] for i in (5, 6, 8, 9, 11, 12))
    stride, low, gaps, spread = (sizes[i:i + 2] for i in (14, 17, 20, 23))
    seen, out, kernel = [(ih, iw), (oh, ow)][swap], [(oh, ow), (ih, iw)][swap], (kh, kw)
    step, gap = [(stride, gaps), (gaps, stride)][swap]
    low = [(k - 1) * s - x for k, s, x in zip(kernel, spread, low)] if swap else low
    if not (0 < columns <= 16 and 0 < inner <= 16 and kw <= 16):
        return None
    if rounding != "f32" and channels > 8 and filters > 8 and tiles_launch(sizes, result, rounding):  # fills_tiles of conv.c
        return None
    more = [-x - -x // g * g for x, g in zip(low, gap)]
    f = dict(take=0, run=0, rows=0, part=inner, seen_rows=0)

    def span(run):
        return ((run - 1) * step[1] + (kw - 1) * spread[1] + more[1]) // gap[1] + 1

    def run_of(most):
        best = 0
        for run in range(min(most, 14), 0, -1):
            if (run > out[1] and run > gap[1]) or run * step[1] % gap[1] or span(run) > 32:
                continue
            if not best or up(out[1], run) * (run + 2) < up(out[1], best) * (best + 2):
                best = run
        return best

    def first_seen(row):
        tall = ((out[0] - 1) * step[0] + (kh - 1) * spread[0] + more[0]) // gap[0] + 1
        return row // out[0] * tall + (row % out[0] * step[0] + more[0]) // gap[0]

    def shared():
        f["seen_rows"] = (max(first_seen((i + 1) * f["rows"] - 1) - first_seen(i * f["rows"]) for i in range(out[0])) +
                          ((kh - 1) * spread[0] + gap[0] - 1) // gap[0] + 1)
        slots = up(columns, f["take"]) * up(f["take"], 4) * 4
        wide = (up(out[1], f["run"]) - 1) * (f["run"] * step[1] // gap[1]) + span(f["run"])
        tile = f["seen_rows"] * (wide * f["part"] | 1)
        if result == 1:
            return tile + f["rows"] * out[1] * slots
        return max(tile + kh * f["part"] * kw * slots, out[1] * columns | 1)

    def cut_pixels():
        f["take"] = up(columns, up(columns, 8))
        f["run"] = run_of(40 // f["take"])
        if not f["run"]:
            return False
        rows = min(256 // (up(out[1], f["run"]) * up(columns, f["take"])), n * out[0])
        while rows > 0:
            f["rows"] = rows
            for f["part"] in range(inner, 0, -1):
                if inner % f["part"] == 0 and (f["part"] == inner or f["part"] % 8 == 0 or rows == 1) and shared() <= 11 << 10:
                    return True
            rows -= rows // 8 if rows > 16 else 1
        return False

    def cut_kernel():
        parts = up(columns * kw, 48)
        if parts > columns:
            return False
        f["take"] = up(columns, parts)
        f["run"] = run_of(8)
        lanes, best, worst = 256 // (kh * inner * up(columns, f["take"])), 0, 0
        if not f["run"] or not lanes:
            return False
        for rows in range(1, min(n * out[0], 64) + 1):
            f["rows"] = rows
            if shared() > 8 << 10:
                break
            turns = up(rows * up(out[1], f["run"]), lanes)
            if not best or turns * lanes * best <= worst * rows:
                best, worst = rows, turns * lanes
        f["rows"] = best
        return best > 0 and shared() > 0

    if not (cut_kernel() if result == 1 else cut_pixels()):
        return None
    numbers = dict(RESULT=result, GROUPS=groups, COLUMNS=columns, INNER=inner, ROWS=f["rows"], RUN=f["run"], TAKE=f["take"],
                   PART=f["part"], SEEN_ROWS=f["seen_rows"])
    lines = [f"#define {name} {value}\n" for name, value in numbers.items()]
    for i, letter in enumerate("HW"):
        axis = dict(SEEN=seen, OUT=out, KERNEL=kernel, STEP=step, GAP=gap, SPREAD=spread, LOW=low)
        lines += [f"#define {name}_{letter} ({value[i]})\n" for name, value in axis.items()]
    rows, turns = n * out[0], up(n * out[0], f["rows"])
    count = max(1, min(512 // groups, (64 << 20) // (4 * kh * kw * inner * groups * columns), turns)) if result == 1 else 1
    piece = up(turns, count) * f["rows"]
    count = up(rows, piece)
    return FLOAT + "".join(lines), count, piece, (count if result == 1 else turns) * groups, "few"


def plain_threads(sizes, result, elements):
    """As conv_threads of ir/ops/conv.c."""
    columns = sizes[3] if result == 2 else sizes[2]
    if result == 1:
        return elements * 256
    if columns < 4:
        return elements
    wide, high = (64, 64) if columns > 16 else (16, 256)
    return -(-columns // wide) * -(-(elements // (sizes[1] * columns)) // high) * sizes[1] * 256


def conv_call(kernels, sizes, result, rounding, a, b, out, forced=None):
    numbers = [result] + sizes
    few = None if forced else few_launch(sizes, result, rounding)
    how = few or tiles_launch(sizes, result, rounding, forced)
    if not how:
        threads = plain_threads(sizes, result, out.numel())
        return kernels.launch(text_of("conv"), threads, (a, b, out), numbers), "element by element"
    definitions, count, piece, *places, blocks, note = how
    name, block = ("conv_few", 256) if few else ("conv_tensor", 128)
    numbers += [count, piece] + (places + [blocks]) * (not few)
    parts = torch.empty(count * out.numel(), device="cuda") if count > 1 else out
    first = kernels.launch(text_of(name, definitions), block * blocks, (a, b, parts), numbers, block)
    if count == 1:
        return first, f"{note}, {blocks} blocks"
    second = kernels.launch(join_text(few), out.numel() * (32 if few else 8), (parts, out), [out.numel(), count])
    return lambda: (first(), second()), f"{note}, {blocks} blocks, {count} pieces"


def join_text(few):
    return text_of("conv_join", FLOAT + "#define LANES 32\n" if few else FLOAT)


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


def conv_texts(o):
    texts = {("conv", text_of("conv"))} | {("conv_join", join_text(few)) for few in (0, 1)}
    for c in CONVS:
        if o.case and o.case not in c[0]:
            continue
        for result in RESULTS:
            sizes = conv_sizes(c)
            for rounding in o.rounding:
                few = few_launch(sizes, result, rounding)
                if few:
                    texts.add(("conv_few", text_of("conv_few", few[0])))
                for forced in ([] if few else [None]) + (TILES[result] if o.tiles else []):
                    how = tiles_launch(sizes, result, rounding, forced)
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
                for forced in TILES[result] if o.tiles and tiles_launch(sizes, result, rounding) else ():
                    other = torch.full_like(like, math.nan)
                    call, note = conv_call(kernels, sizes, result, rounding, a, b, other, forced)
                    call()
                    print(f"    {error(other, want):9.1e} {timed(call, o.rounds) or math.nan:10.1f} us {note}", flush=True)
    return bad


# ---- attention ----

def attention_definitions(size, values, more, last=""):
    """As runtime/cuda/attention.c."""
    return f"{FLOAT}{more}#define WIDTH {next(w for w in (32, 64, 128) if w >= max(size, values))}\n{last}"


def gradient_texts(size, values, rounding):
    """Of queries and of keys: name, text, rows of a block."""
    name, more, high = (("attention_gradient_tensor", "#define BF16 0\n", (128, 64 if max(size, values) > 64 else 128))
                        if rounding == "tf32" else ("attention_gradient_tiles", "#define OWN_TENSORS 2\n", (64, 64)))
    return [(name, text_of(name, attention_definitions(size, values, more, f"#define OF_KEYS {keys}\n")), high[keys])
            for keys in (0, 1)]


def value_text(size, values, rounding):
    """Name, text, rows of a block."""
    name, more, high = (("attention_tensor", "#define BF16 0\n", 128) if rounding == "tf32" else
                        ("attention_tiles", "#define OWN_TENSORS 1\n", 64))
    return name, text_of(name, attention_definitions(size, values, more)), high


def attention_texts(_):
    values = {value_text(*c[5:7], rounding)[:2] for c in ATTENTIONS for rounding in ("f32", "tf32")}
    gradients = {how[:2] for c in ATTENTIONS for rounding in ("f32", "tf32") for how in gradient_texts(*c[5:7], rounding)}
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
            both = [kernels.launch(text, 256 * n * heads * -(-length // high), (q, k, v, y, dy, rows, None, gradient), numbers)
                    for (_, text, high), length in zip(gradient_texts(size, values, rounding), (queries, keys))]
            second = lambda: [call() for call in both]
            second()
            forward, back, of, flat = peer(q, k, v, dy)
            flops = n * heads * queries * keys * (size + values) // (2 if causal else 1)
            operands = 4 * (q.numel() + k.numel() + v.numel() + dy.numel())
            bad += row(o, name, "y", rounding, error(y, want), error(of(forward()), want), first, forward, 2 * flops, operands, "")
            bad += row(o, name, "gradient", rounding, error(gradient, want_back), error(flat(back()), want_back), second, back,
                       5 * flops, 2 * operands, "")
    return bad


# ---- windows ----

def window_texts(_):
    wanted = {window_launch(c, put)[:2] for c in WINDOWS for put in (False, True)}
    return sorted((name, text_of(name, definitions)) for name, definitions in wanted)


def window_launch(c, put):
    """As runtime/cuda/window.c and leaves.c: which kernel, its definitions, and threads."""
    _, n, h, w, channels, size, stride = c
    out = [(x - size) // stride + 1 for x in (h, w)]
    if put and size != stride:
        return "window_put", "#define INDEX int\n" + FLOAT, n * h * w * channels
    axes = [(1, 1, 1, 1, 0)] + [(x, size, y, stride, 0) for x, y in zip((h, w), out)]
    lines = [f"#define {name}_{i} ({value})\n" for i, axis in enumerate(axes)
             for name, value in zip(("IN", "SIZE", "OUT", "STRIDE", "LOW"), axis)]
    vec = next(v for v in (4, 2, 1) if channels % v == 0)
    threads = n * (up(h, stride) * w if put else out[0] * out[1]) * (channels // vec)
    text = f"{FLOAT}#define INDEX int\n#define PUT {int(put)}\n#define CHANNELS {channels}\n" + "".join(lines)
    return "window_fixed", text, threads


def windows(o, kernels):
    bad = 0
    for c in WINDOWS:
        name, n, h, w, channels, size, stride = c
        if o.case and o.case not in name:
            continue
        torch.manual_seed(1)
        out = [(x - size) // stride + 1 for x in (h, w)]
        x = torch.randint(-9, 9, (n, h, w, channels), device="cuda").float()
        dy = torch.randn(n, *out, channels, device="cuda")
        y, dx = torch.full_like(dy, math.nan), torch.full_like(x, math.nan)
        numbers = [n, channels, 1, h, w, 1, size, size, 1, *out, 1, stride, stride, 0, 0, 0, 1, 1, 1, 1, 1, 1]
        xt, dyt = x.permute(0, 3, 1, 2), dy.permute(0, 3, 1, 2)
        forward = lambda: F.max_pool2d(xt, size, stride, return_indices=True)
        chosen = forward()[1]
        back = lambda: torch.ops.aten.max_pool2d_with_indices_backward(dyt, xt, [size] * 2, [stride] * 2, [0, 0], [1, 1], False, chosen)
        for put, result, places, other, want in ((False, "max", (x, None, y), forward, forward()[0]),
                                                 (True, "put", (x, dy, dx), back, back())):
            kernel, definitions, threads = window_launch(c, put)
            given = places if put or kernel == "window_fixed" else places[::2]
            call = kernels.launch(text_of(kernel, definitions), threads, given, numbers)
            call()
            want = want.permute(0, 2, 3, 1).double()
            moved = 4 * (x.numel() * (1 + put) + y.numel())
            bad += row(o, name, result, "f32", error(places[2], want), 0, call, other, dy.numel() * size * size, moved, kernel)
    return bad


def row(o, name, result, rounding, mine, theirs, call, other, flops, moved, note):
    floor = max(1e-6 * flops / o.peak[rounding], 1e-3 * moved / o.bandwidth)
    us, peer = timed(call, o.rounds), timed(other, o.rounds)
    good = mine <= max(MOST[rounding], 2 * theirs)
    ratio = f"{us / peer:8.2f}" if peer else "       –"
    print(f"{name:16} {result:8} {rounding:5} {mine:9.1e} {theirs:9.1e} {us:10.1f} {peer or math.nan:10.1f} {ratio} {floor:9.1f} "
          f"{us / floor:8.1f} {1e-6 * flops / us:8.1f} {note}{'' if good else ' !'}", flush=True)
    return not good


KINDS = {"conv": (conv_texts, convs), "attention": (attention_texts, attentions), "window": (window_texts, windows)}


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--only", choices=KINDS)
    p.add_argument("--case", help="of the cases those whose name has this in it")
    p.add_argument("--rounding", nargs="+", choices=MOST, default=list(MOST))
    p.add_argument("--tiles", action="store_true", help="of convolutions all tiles, beside the one that is chosen")
    p.add_argument("--rounds", type=int, default=20)
    p.add_argument("--peak", default="f32=67,tf32=494,bf16=989", help="TFLOP/s; an H100's, SXM")
    p.add_argument("--bandwidth", type=float, default=3350, help="GB/s")
    o = p.parse_args()
    o.peak = {name: float(value) for name, value in (part.split("=") for part in o.peak.split(","))}
    if not torch.cuda.is_available():
        sys.exit("this PyTorch has no GPU")
    torch.backends.cudnn.benchmark = True
    kinds = [o.only] if o.only else KINDS
    wanted = [text for kind in kinds for text in KINDS[kind][0](o)]
    kernels = Kernels(wanted)
    print(f"{torch.cuda.get_device_name()}, PyTorch {torch.__version__}")
    print(f"{'case':16} {'result':8} {'':5} {'error':>9} {'torch’s':>9} {'us':>10} {'torch us':>10} {'of torch':>8} {'floor us':>9} "
          f"{'of floor':>8} {'TFLOP/s':>8}")
    bad = sum(KINDS[kind][1](o, kernels) for kind in kinds)
    print(f"{bad} wrong")
    sys.exit(bad > 0)


main()
