#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Draws the pictures of docs/samples.md: trains samples, and draws what they predict, as SVG.

    tools/gallery.py build/dgc build/samples docs/pictures

Needs Python alone. Trainings begin with seed 0 and have --bits portable: the same pictures come out again."""
import array
import ast
import base64
import json
import pathlib
import struct
import subprocess
import sys
import tempfile
import zlib
from math import exp, pi, sin

dgc, samples, out = (pathlib.Path(p).resolve() for p in sys.argv[1:4])
work = pathlib.Path(tempfile.mkdtemp())
COLORS = ("#0b62a4", "#c8442d", "#2e8b57", "#8a4fbf", "#c98a00", "#00868b", "#b03070", "#707000", "#4060c0", "#a05030")
INK, PALE = "#333", "#bbb"


# --- what samples predict ---


def run(*words):
    subprocess.run([dgc, *map(str, words)], cwd=work, check=True, stdout=subprocess.DEVNULL)


def train(name, *options):
    run("train", samples / (name + ".dsl"), *options, "--bits", "portable", "--quiet", "--checkpoint", name + ".safetensors")


def predict(name, *outputs, rows="0:16", more=()):
    words = [w for o in outputs for w in ("--output", "%s=%s.npy" % (o, o))]
    run("predict", samples / (name + ".dsl"), "--checkpoint", name + ".safetensors", "--eval-rows", rows, "--bits", "portable",
        "--quiet", *words, *more)
    return [npy(work / (o + ".npy")) for o in outputs]


def npy(path):
    """Shape and elements."""
    data = path.read_bytes()
    size = struct.unpack("<H", data[8:10])[0]
    head = ast.literal_eval(data[10:10 + size].decode())
    kind = {"<f4": "f", "|u1": "B", "<i4": "i"}[head["descr"]]
    return head["shape"], array.array(kind, data[10 + size:])


def idx(name, first, count, size):
    """Rows of a file of images or labels."""
    data = (samples / "data" / name).read_bytes()
    begin = 4 + 4 * data[3]
    return data[begin + first * size:begin + (first + count) * size]


# --- drawing ---


def svg(name, width, height, parts):
    style = "<style>text{font:11px sans-serif;fill:%s}</style>" % INK
    head = '<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %d %d">' % (width, height, width, height)
    body = '<rect width="%d" height="%d" fill="white"/>' % (width, height)
    (out / (name + ".svg")).write_text("\n".join([head, style, body, *parts, "</svg>"]) + "\n")


def text(x, y, words, more=""):
    return '<text x="%g" y="%g"%s>%s</text>' % (x, y, more, words)


def image(x, y, pixels, palette=None):
    """28 x 28 bytes, twice as large; 0 is white, or the numbers of a palette."""
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    colors = palette or [(255 - v,) * 3 for v in range(256)]
    rows = b"".join(b"\0" + bytes(pixels[28 * r:28 * r + 28]) for r in range(28))
    png = b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", 28, 28, 8, 3, 0, 0, 0))
    png += chunk(b"PLTE", bytes(v for c in colors for v in c)) + chunk(b"IDAT", zlib.compress(rows, 9)) + chunk(b"IEND", b"")
    return '<image x="%g" y="%g" width="56" height="56" style="image-rendering:pixelated" href="data:image/png;base64,%s"/>' % (
        x, y, base64.b64encode(png).decode())


def to_bytes(values):
    return bytes(min(255, max(0, round(255 * v))) for v in values)


def strips(name, rows):
    """[(words, sixteen images, palette)], one below the other."""
    parts = []
    for r, (words, pictures, palette) in enumerate(rows):
        parts.append(text(4, 64 * r + 36, words))
        parts += [image(90 + 60 * i, 64 * r + 4, p, palette) for i, p in enumerate(pictures)]
    svg(name, 90 + 60 * len(rows[0][1]), 64 * len(rows) + 4, parts)


def axes(x, y, width, height, words):
    return ['<rect x="%g" y="%g" width="%g" height="%g" fill="none" stroke="%s"/>' % (x, y, width, height, PALE), text(x + 4, y + 14, words)]


def path(points, color, more=""):
    line = "M" + " ".join("%.1f %.1f" % p for p in points)
    return '<path d="%s" fill="none" stroke="%s" stroke-width="1.6"%s/>' % (line, color, more)


# --- the pictures ---


def digits():
    train("digits", "--epochs", 1)
    (_, odds), = predict("digits", "probability", rows="0:400")
    labels, parts, shown = idx("test-labels.idx", 0, 400, 1), [], 0
    said = [max(range(10), key=lambda k: odds[10 * i + k]) for i in range(400)]
    wrong = [i for i in range(400) if said[i] != labels[i]][:8]
    for i in [k for k in range(400) if k not in wrong][:16 - len(wrong)] + wrong:
        x, y = 4 + 90 * (shown % 8), 4 + 76 * (shown // 8)
        good = said[i] == labels[i]
        parts.append(image(x, y, idx("test-images.idx", i, 1, 784)))
        for k in range(10):
            h = 54 * odds[10 * i + k]
            parts.append('<rect x="%g" y="%.1f" width="2" height="%.1f" fill="%s"/>' % (x + 58 + 2.6 * k, y + 56 - h, h, COLORS[k == said[i] and not good]))
        note = "%d" % said[i] if good else "%d, said %d" % (labels[i], said[i])
        parts.append(text(x + 14, y + 69, note, "" if good else ' style="fill:%s"' % COLORS[1]))
        shown += 1
    svg("digits", 4 + 90 * 8, 8 + 76 * 2, parts)


def pairs(name, *options, data=False):
    images = lambda which: ("--data", "image=%s/data/%s-images.idx" % (samples, which)) if data else ()
    train(name, *options, *images("train"))
    (_, there), = predict(name, "restoration", rows="0:12", more=images("test"))
    given = idx("test-images.idx", 0, 12, 784)
    strips(name, [("in", [given[784 * i:784 * i + 784] for i in range(12)], None),
                  ("out of the code", [to_bytes(there[784 * i:784 * i + 784]) for i in range(12)], None)])


def unet():
    train("unet", "--batch", 32, "--epochs", 5)
    (_, segment), = predict("unet", "segment", rows="0:12")
    given = idx("test-images.idx", 0, 12, 784)
    palette = [(255, 255, 255)] + [tuple(int(c[k:k + 2], 16) for k in (1, 3, 5)) for c in COLORS]
    strips("unet", [("the picture", [given[784 * i:784 * i + 784] for i in range(12)], None),
                    ("which digit", [bytes(segment[784 * i:784 * i + 784]) for i in range(12)], palette)])


def pinn():
    train("pinn", "--batch", 128, "--epochs", 150)
    (work / "grid.csv").write_text("".join("%g,%g\n" % (x / 40, t) for t in (0, 0.25, 0.5, 1) for x in range(41)))
    (_, heat), = predict("pinn", "heat", rows="0:164", more=("--data", "point=" + str(work / "grid.csv")))
    parts = axes(4, 4, 420, 200, "u(x), at t = 0, 0.25, 0.5, 1: learned; dotted: as it is")
    for n, t in enumerate((0, 0.25, 0.5, 1)):
        place = lambda i, u: (4 + 10.5 * i, 200 - 176 * u)
        parts.append(path([place(i, heat[41 * n + i]) for i in range(41)], COLORS[n]))
        parts.append(path([place(i, exp(-pi**2 * t / 10) * sin(pi * i / 40)) for i in range(41)], INK, ' stroke-dasharray="1 4"'))
    svg("pinn", 428, 208, parts)


def learning():
    """Losses and accuracies with three rates."""
    runs = (("rate 1e-3", ()), ("rate 3e-3", ("--set", "rate=3e-3")), ("rate 3e-4", ("--set", "rate=3e-4")))
    parts = axes(4, 4, 300, 180, "loss: mean of the epoch so far") + axes(312, 4, 300, 180, "accuracy on test data, by epochs")
    for n, (words, options) in enumerate(runs):
        run("train", samples / "digits.dsl", "--epochs", 4, "--eval-every", "1e", "--log-every", 10, "--log", "%d.jsonl" % n,
            "--bits", "portable", "--quiet", *options)
        lines = [json.loads(line) for line in (work / ("%d.jsonl" % n)).read_text().splitlines() if '"step"' in line and '"run"' not in line]
        known = [e for e in lines if e.get("val.accuracy") is not None]
        parts.append(path([(4 + 300 * e["step"] / 252, 180 - 70 * min(2.4, e["train.loss"])) for e in lines], COLORS[n]))
        parts.append(path([(312 + 300 * e["step"] / 252, 184 - 1800 * (max(0.9, e["val.accuracy"]) - 0.9)) for e in known], COLORS[n]))
        parts.append(text(520, 140 + 14 * n, words, ' style="fill:%s"' % COLORS[n]))
    svg("learning", 616, 188, parts)


out.mkdir(parents=True, exist_ok=True)
for draw in (digits, lambda: pairs("autoencoder", "--epochs", 5, data=True), lambda: pairs("vae", "--batch", 32, "--epochs", 40), unet, pinn, learning):
    draw()
for file in sorted(out.glob("*.svg")):
    print(file.name, file.stat().st_size)
