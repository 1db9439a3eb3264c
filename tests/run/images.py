#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Folders of PNG and JPEG as a model sees them, beside what Pillow decodes and jax.image resizes; labels by folder; files that
are damaged, too large, links, or no images.

images.py DGC SAMPLES; numpy, JAX and Pillow are those of tools/oracles.sh."""
import glob
import io
import json
import os
import re
import shlex
import shutil
import struct
import subprocess
import sys
import zlib

import needs

jax, np, Image, ImageOps = needs.modules("jax", "numpy", "PIL.Image", "PIL.ImageOps")
from checks import check, dgc, finish  # noqa: E402  (goes to a folder of its own)

random = np.random.default_rng(7)


def run(*words, **more):
    return subprocess.run([dgc, *words], capture_output=True, text=True, errors="surrogateescape", **more)


def read(path, shape, kind="u8", **more):
    """What a model predicts that hands its input on; or the error."""
    with open("hand_on.dsl", "w") as f:
        f.write("model hand_on() {\n  input x : %s[B%s]\n  predict y = x\n}\n" % (kind, "".join(", %d" % n for n in shape)))
    got = run("predict", "hand_on.dsl", "--data", "x=" + path, "--output", "y=y.npy", "--quiet", "--batch", "4", **more)
    check(got.returncode in (0, 1), "ends in order", path, got.returncode, got.stderr[-300:])
    return np.load("y.npy") if got.returncode == 0 else got.stderr


def equal(got, want, *what):
    same = isinstance(got, np.ndarray) and got.dtype == want.dtype and got.shape == want.shape
    check(same and np.array_equal(got, want), *what, str(got)[:300], str(want)[:100])


def refused(got, words, *what):
    check(isinstance(got, str) and words in got and got.count("error:") == 1, *what, str(got)[:400])


def folder(path, **files):
    shutil.rmtree(path, ignore_errors=True)
    for name, content in files.items():
        os.makedirs(os.path.dirname(os.path.join(path, name)), exist_ok=True)
        with open(os.path.join(path, name), "wb") as f:
            f.write(content)


def chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def png(height, width, bits, colour, rows, interlaced=False, more=b""):
    """A PNG that Pillow does not write: `rows` are bytes of each pass, filters and all."""
    head = struct.pack(">IIBBBBB", width, height, bits, colour, 0, 0, interlaced)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + more + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


def saved(image, kind, **how):
    out = io.BytesIO()
    image.save(out, kind, **how)
    return out.getvalue()


# --- every kind of colour, as 1, 3 and 4 channels ---
H, W = 13, 10
rgba = random.integers(0, 256, (H, W, 4), np.uint8)
rgba[:4, :4, 3], rgba[4:8, :4, 3] = 0, 255
smooth = np.stack([np.add.outer(np.arange(H) * 9, np.arange(W) * k) % 256 for k in (3, 7, 11, 2)], -1).astype(np.uint8)
whole = Image.fromarray(rgba)
adam7 = b"".join(b"\0" + rgba[y, x0::dx, :3].tobytes() for x0, y0, dx, dy in
                 ((0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2), (0, 1, 1, 2))
                 for y in range(y0, H, dy))
deep = random.integers(0, 65536, (H, W, 3), np.uint16)
images = {
    "grey.png": saved(whole.convert("L"), "PNG"), "grey_alpha.png": saved(whole.convert("LA"), "PNG"),
    "rgb.png": saved(whole.convert("RGB"), "PNG"), "rgba.png": saved(whole, "PNG"),
    "palette.png": saved(whole.convert("RGB").convert("P"), "PNG"),
    "palette_clear.png": saved(whole.convert("RGB").quantize(16), "PNG", transparency=3),
    "one_bit.png": saved(whole.convert("1"), "PNG"),
    "rgb_clear.png": saved(whole.convert("RGB"), "PNG", transparency=tuple(int(v) for v in rgba[2, 3, :3])),
    "interlaced.png": png(H, W, 8, 2, adam7, True),
    "grey.jpg": saved(Image.fromarray(smooth).convert("L"), "JPEG"), "loud.jpeg": saved(whole.convert("RGB"), "JPEG"),
    "CAPITAL.JPG": saved(Image.fromarray(smooth).convert("RGB"), "JPEG", quality=95, comment=b"\xff" * 70 + b"x" * 60000),
    **{"sampled%d%s.jpg" % (n, p): saved(Image.fromarray(smooth).convert("RGB"), "JPEG", subsampling=n, progressive=bool(p))
       for n in (0, 1, 2) for p in ("", "p")},
}
folder("all", **images)
names = sorted(images, key=os.fsencode)
for channels, mode in ((1, "L"), (3, "RGB"), (4, "RGBA")):
    want = np.stack([np.array(Image.open("all/" + name).convert(mode)) for name in names]).reshape(len(names), H, W, channels)
    equal(read("all/", (H, W, channels)), want, "images as", mode)
    equal(read("all", (H, W, channels), "f32"), want.astype("f4"), "as f32", mode)
    if channels == 1:
        equal(read("all", (H, W), "i32"), want[..., 0].astype("i4"), "grey without an axis")
    folder("one", **{"x.png": png(H, W, 16, 2, b"".join(b"\0" + r.astype(">u2").tobytes() for r in deep))})
    upper = Image.fromarray((deep >> 8).astype(np.uint8)).convert(mode)
    equal(read("one", (H, W, channels)), np.array(upper).reshape(1, H, W, channels), "16 bits", mode)
for bits in (2, 4):  # grey of few bits: 0 to 255
    grey = random.integers(0, 2**bits, (H, 8), np.uint8)
    packed = [sum(int(v) << bits * (8 // bits - 1 - k) for k, v in enumerate(row[i:i + 8 // bits])) for row in grey
              for i in range(0, 8, 8 // bits)]
    lines = b"".join(b"\0" + bytes(packed[y * bits:(y + 1) * bits]) for y in range(H))
    folder("one", **{"x.png": png(H, 8, bits, 0, lines)})
    equal(read("one", (H, 8)), (grey * (255 // (2**bits - 1))).astype(np.uint8)[None], "grey of bits", bits)
equal(read("all/rgb.png", (H, W, 3)), rgba[None, ..., :3], "one file")
listed = run("inspect", "all/rgb.png", "--json")
check(json.loads(listed.stdout)["tensors"][0]["shape"] == [1, H, W, 3], "inspect", listed.stdout, listed.stderr)

# --- turned as EXIF says: what Pillow's exif_transpose gives, also of directories that are none ---
def exif(turn, order="<", kind=3, count=1, entries=1, at=8, before=b""):
    first = struct.pack(order + "HHII", 0x10f, 2, 4, 0x61626364)
    number = struct.pack(order + ("HH" if kind == 3 else "I"), *([turn, 0] if kind == 3 else [turn]))
    entry = struct.pack(order + "HHI", 0x112, kind, count) + number
    head = (b"II*\0" if order == "<" else b"MM\0*") + struct.pack(order + "I", at)
    return b"Exif\0\0" + before + head + struct.pack(order + "H", entries + 1) + first + entry + b"\0\0\0\0"


def with_segments(jpeg, *segments):
    return jpeg[:2] + b"".join(b"\xff\xe1" + struct.pack(">H", len(s) + 2) + s for s in segments) + jpeg[2:]


camera = saved(Image.fromarray(smooth).convert("RGB"), "JPEG", quality=95)
turns = {"%d%s%d.jpg" % (turn, "IM"[order == ">"], kind): with_segments(camera, exif(turn, order, kind))
         for turn in range(10) for order in "<>" for kind in ((3, 4) if turn == 6 else (3,))}
xmp = b"http://ns.adobe.com/xap/1.0/\0" + b"x" * 500
turns |= {"xmp.jpg": with_segments(camera, xmp, exif(6)), "progressive.jpg": with_segments(images["sampled2p.jpg"], exif(8, ">")),
          "two.jpg": with_segments(camera, exif(3), exif(6)), "grey.jpg": with_segments(images["grey.jpg"], exif(7))}
for name, content in turns.items():
    folder("turned", **{name: content})
    for mode, channels in (("L", 1), ("RGB", 3), ("RGBA", 4)):
        want = np.array(ImageOps.exif_transpose(Image.open("turned/" + name)).convert(mode))
        equal(read("turned", (*want.shape[:2], channels)), want.reshape(1, *want.shape[:2], channels), "turned", name, mode)
check(sum(Image.open(io.BytesIO(c)).getexif().get(0x112, 1) > 4 for c in turns.values()) > 12, "half of them lie on their side")
folder("turned", **turns)
upright = [np.array(ImageOps.exif_transpose(Image.open("turned/" + n)).convert("RGB")) for n in sorted(turns)]
want = np.stack([np.array(jax.image.resize(u.astype("f4"), (7, 9, 3), "bilinear", antialias=False)) for u in upright])
got = read("turned:resize", (7, 9, 3), "f32")
check(isinstance(got, np.ndarray) and np.abs(got - want).max() < 1e-4, "turned, then scaled", str(got)[:200])
refused(read("turned", (H, W, 3)), "5I3.jpg has %d x %d pixels" % (W, H), "a turned one has another size")
listed = run("inspect", "turned/6I3.jpg", "--json")
check(json.loads(listed.stdout)["tensors"][0]["shape"] == [1, W, H, 3], "inspect", listed.stdout, listed.stderr)
odd = [exif(6, count=2), exif(6, kind=1), exif(6, kind=7), exif(6, entries=60000)[:-6], exif(6, at=2**32 - 1), exif(6, at=2**31), exif(6, at=60),
       exif(6)[:20], exif(6)[:12], b"Exif\0\0", exif(6, before=b"\0"), exif(6).replace(b"II*", b"IM*"), exif(70000, kind=4), b""]
for i, segment in enumerate(odd):  # of what is none, the pixels as they are
    folder("turned", **{"x.jpg": with_segments(camera, segment)})
    equal(read("turned", (H, W, 3)), np.array(Image.open(io.BytesIO(camera)))[None], "no orientation", i)

camera = turns["6I3.jpg"]
for i in range(2, 80):  # cut inside of the segment, whose length says more
    folder("turned", **{"x.jpg": camera[:i]})
    refused(read("turned", (W, H, 3)), "x.jpg", "cut at", i)

# --- other formats are named, and what makes one that is read ---
rgb = whole.convert("RGB")
others = {"GIF": "gif", "WEBP": "webp", "BMP": "bmp", "TIFF": "tiff", "JPEG2000": "jp2", "AVIF": "avif"}
for kind, suffix in others.items():
    folder("other", **{"x." + suffix: saved(rgb, kind), "y.png": saved(rgb, kind)})
    for path in ("other/x." + suffix, "other/y.png", "other", "other:resize"):
        got = read(path, (H, W, 3))
        words = "TIFF" if kind == "TIFF" else {"WEBP": "WebP", "JPEG2000": "JPEG 2000"}.get(kind, kind)
        refused(got, words + " image, which is not read", kind, path)
        line = re.search(r"python3 (-c '.*') x\.(\w+) x\.png", str(got))
        check(line and line[2] == suffix, "what makes a PNG of it", got)
    made = subprocess.run([sys.executable, *shlex.split(line[1]), "other/x." + suffix, "other/x.png"])
    equal(read("other/x.png", (H, W, 3)), np.array(Image.open("other/x." + suffix).convert("RGB"))[None], "made by that line", kind)
for start, words in ((b"\0\0\0\x18ftypheic", "a HEIC image"), (b"\0\0\0\x18ftypmif1", "a HEIF image"), (b"\xff\x0a\x99", "a JPEG XL image"),
                     (b"\0\0\0\x0cJXL \r\n", "a JPEG XL image"), (b"MM\0*\0\0\0\x08", "a TIFF image")):
    folder("other", **{"x.bin": start + b"\0" * 9, "x.jpg": start})
    for path in ("other/x.bin", "other"):
        refused(read(path, (H, W, 3)), "it is %s, which is not read" % words, words, path)

# --- scaled ---
folder("sizes", **{"%02d.png" % i: saved(Image.fromarray(random.integers(0, 256, (h, w, 3), np.uint8)), "PNG")
                   for i, (h, w) in enumerate(((1, 1), (2, 3), (13, 10), (7, 31), (64, 5), (26, 20), (12, 1), (100, 90)))})
for channels, mode in ((1, "L"), (3, "RGB"), (4, "RGBA")):
    want = []
    for path in sorted(glob.glob("sizes/*")):
        one = np.array(Image.open(path).convert(mode)).reshape(*Image.open(path).size[::-1], channels).astype("f4")
        want.append(np.array(jax.image.resize(one, (H, W, channels), "bilinear", antialias=False)))
    got = read("sizes/:resize", (H, W, channels), "f32")
    far = np.abs(got - np.stack(want)).max() if isinstance(got, np.ndarray) else got
    check(isinstance(got, np.ndarray) and far < 1e-4, "scaled", mode, far)
    whole_numbers = read("sizes:resize", (H, W, channels), "u8")
    equal(whole_numbers, np.rint(got).astype(np.uint8), "scaled and rounded", mode)
    equal(read("sizes:resize", (H, W, channels), "f64"), got.astype("f8"), "scaled as f64")
# What tf.image.resize of TensorFlow 2.21 gives, to the bit.
few = (np.arange(15).reshape(3, 5) * 37 % 251).astype(np.uint8)
folder("few", **{"x.png": png(3, 5, 8, 0, b"".join(b"\0" + bytes(row) for row in few.tolist()))})
for shape, want in (((4, 2), [[27.75, 120.25], [143.375, 79.0], [188.0, 100.09375], [146.75, 176.5]]),
                    ((2, 7), [[46.25, 67.39285278320312, 75.89285278320312, 57.5, 83.92857360839844, 110.35714721679688, 131.5],
                              [135.5, 156.64285278320312, 165.14285278320312, 146.75, 173.17857360839844, 118.92855834960938, 32.5]])):
    equal(read("few:resize", shape, "f32"), np.array([want], "f4"), "as TensorFlow scales", shape)
refused(read("sizes", (H, W, 3)), "sizes/00.png has 1 x 1 pixels (height x width), but input 'x' takes 13 x 10", "sizes differ")
for shape in ((), (H,), (3, H, W), (H, W, 2), (H, W, 3, 1)):
    refused(read("all", shape), "[height, width], or [height, width, channels]", shape)
refused(read("all", (H, W, 3), "bool"), "images are numbers from 0 to 255", "bool")
refused(read("all:crop", (H, W, 3)), "images have no ':crop'", "no such member")

# --- which files ---
dot = images["rgb.png"]
folder("mixed", **{"b/2.png": dot, "b/1/x.png": images["rgba.png"], "a.png": dot, "a/z.JPEG": images["loud.jpeg"], ".hidden.png": b"",
                   ".git/x.png": b"", "b/notes.txt": b"x", "Thumbs.db": b"y"})
os.symlink("a.png", "mixed/link.png")
os.mkdir("mixed/empty")
order = ["a.png", "a/z.JPEG", "b/1/x.png", "b/2.png", "link.png"]
want = np.stack([np.array(Image.open("mixed/" + name).convert("RGB")) for name in order])
equal(read("mixed", (H, W, 3)), want, "in the order of bytes")
noted = run("predict", "hand_on.dsl", "--data", "x=mixed", "--output", "y=y.npy")
check("2 files are no PNG or JPEG by name, and left out: Thumbs.db, ..." in noted.stderr, "others", noted.stderr)
equal(read("all/rgb.png,mixed,one/x.png:resize", (H, W, 3))[:6], np.concatenate([rgba[None, ..., :3], want]), "files and folders")
os.symlink("../all", "mixed/there")
refused(read("mixed", (H, W, 3)), "mixed/there: it is a link to a folder", "a link to a folder")
os.remove("mixed/there")
os.symlink("nothing.png", "mixed/broken.png")
refused(read("mixed", (H, W, 3)), "cannot read mixed/broken.png: No such file", "a link to nothing")
os.remove("mixed/broken.png")
os.mkfifo("mixed/pipe.png")
refused(read("mixed", (H, W, 3), timeout=60), "mixed/pipe.png: it is a pipe", "a pipe")
os.remove("mixed/pipe.png")
os.makedirs("none/" + "d/" * 40)
refused(read("none", (H, W, 3)), "folders lie too deep", "deep")
folder("none", **{"a/x.gif": b"GIF89a", "a/y.webp": b"RIFF"})
refused(read("none", (H, W, 3)), "has no files named .png, .jpg or .jpeg", "no images")
strange = os.fsdecode(b"odd/\xff\xfe\n name.png")
folder("odd", **{strange[4:]: dot})
equal(read("odd", (H, W, 3)), rgba[None, ..., :3], "a name that is not UTF-8")
# A model names what lies in its own folder, wherever links lead.
folder("home/data", **{"x.png": dot})
with open("home/m.dsl", "w") as f:
    f.write('model m() {\n  input x : u8[B, %d, %d, 3]\n  predict y = x\n  data test { x = "data" }\n}\n' % (H, W))
check(run("predict", "home/m.dsl", "--output", "y=y.npy").returncode == 0, "a folder of the model's")
os.symlink(os.path.abspath("all/rgb.png"), "home/data/out.png")
refused(run("predict", "home/m.dsl", "--output", "y=y.npy").stderr, "out.png: it lies outside of the model's folder", "link out")
shutil.rmtree("home/data")
os.symlink(os.path.abspath("all"), "home/data")
refused(run("predict", "home/m.dsl", "--output", "y=y.npy").stderr, "it lies outside of the model's folder", "folder out")

# --- damaged ---
bombs = {
    "huge.png": images["rgb.png"][:16] + struct.pack(">II", 2**31 - 1, 2**31 - 1) + images["rgb.png"][24:],
    "nothing.png": images["rgb.png"][:16] + struct.pack(">II", 0, 5) + images["rgb.png"][24:],
    "huge.jpg": images["grey.jpg"].replace(struct.pack(">HH", H, W), struct.pack(">HH", 65500, 65500)),
    "cmyk.jpg": saved(whole.convert("CMYK"), "JPEG"), "text.png": b"this is no image, but a text\n", "empty.png": b"",
    "short.jpg": b"\xff\xd8\xff", "chain.jpg": b"\xff\xd8" + b"\xff\xe1\0\2" * 5000, "fill.jpg": b"\xff\xd8" + b"\xff" * 100000,
}
for name, content in bombs.items():
    folder("bad", **{name: content})
    for path in ("bad:resize", "bad", "bad/" + name):
        got = read(path, (H, W, 3), timeout=60)
        check(isinstance(got, str) and name in got and got.count("error:") == 1, "refused", path, got)
scans = saved(Image.fromarray(np.zeros((4000, 4000), np.uint8)), "JPEG", progressive=True)
begin = scans.index(b"\xff\xda")
scan = bytearray(scans[begin:scans.index(b"\xff\xc4", begin)])
scan[9] = 0  # all bits of the first coefficients: may be said as often as one likes
folder("bad", **{"scans.jpg": scans[:begin] + scan * 3000 + scans[-2:]})
refused(read("bad:resize", (H, W, 3), timeout=60), "more than 100 scans", "thousands of scans")
folder("bad", **{"bomb.png": png(8192, 8193, 1, 0, b"\0" * (1025 + 1) * 8192)})
refused(read("bad:resize", (H, W, 3)), "8192 x 8193 pixels", "too many pixels")
for name in ("rgb.png", "interlaced.png", "loud.jpeg", "sampled2p.jpg", "palette_clear.png"):
    content, same = images[name], 0
    good = np.array(Image.open("all/" + name).convert("RGB"))[None]
    for i in range(0, len(content), max(1, len(content) // 25)):
        folder("bad", **{name: content[:i]})
        refused(read("bad", (H, W, 3)), name, "cut at", i)
        other = bytearray(content)
        other[i] ^= 1 << int(random.integers(8))
        folder("bad", **{name: bytes(other)})
        got = read("bad", (H, W, 3))
        # A checksum guards what PNG says, nothing what JPEG does.
        check(isinstance(got, str) or name.endswith("g") and not name.endswith("png") or np.array_equal(got, good), "bit", name, i)

folder("bad", **{"%d.png" % i: images["rgb.png"][:None if i not in (3, 6) else 300] for i in range(8)})
for _ in range(5):
    refused(read("bad", (H, W, 3)), "bad/3.png", "the first that is damaged, whoever decodes it")

# --- labels ---
classes = {"zebra": 3, "ant": 5, "Übel": 2, "cat,dog": 1}
folder("train", **{"%s/%s%d.png" % (c, "in/" * (i % 2), i): saved(Image.fromarray(
    random.integers(0, 256, (H, W, 3), np.uint8) // 4 + 60 * k), "PNG") for k, (c, n) in enumerate(classes.items()) for i in range(n)})
os.mkdir("train/none")
with open("m.dsl", "w") as f:
    f.write("""use nn
model m() {
  input image : f32[B, %d, %d, 3]
  input label : i32[B]
  logits = nn.dense(reshape(image / 255, [B, -1]), 5)
  train mean(softmax_cross_entropy(logits, label)) with adam(rate = 0.01)
  metric hit = mean(cast(argmax(logits, axis = -1) == label, f32))
  metric label_sum = mean(cast(label, f32))
  predict y = argmax(logits, axis = -1)
}
""" % (H, W))
data = ["--data", "image=train/", "--data", "label=train/:label"]
cores = os.sched_getaffinity(0)
os.sched_setaffinity(0, {min(cores)})
one = run("train", "m.dsl", *data, "--steps", "30", "--batch", "4", "--checkpoint", "one.safetensors", "--json")
os.sched_setaffinity(0, cores)
check(one.returncode == 0, "trains", one.stderr)
more = run("train", "m.dsl", *data, "--steps", "30", "--batch", "4", "--checkpoint", "more.safetensors", "--json")
check(open("one.safetensors", "rb").read() == open("more.safetensors", "rb").read(), "one core decodes as all do")
sums = json.loads(run("eval", "m.dsl", *data, "--checkpoint", "one.safetensors", "--json").stdout)
words = sorted(os.fsencode(c) for c in [*classes, "none"])
numbers = [words.index(os.fsencode(c)) for c, n in classes.items() for _ in range(n)]
check(abs(sums["label_sum"] - np.mean(numbers)) < 1e-6, "numbers of labels", sums, np.mean(numbers))
header = open("one.safetensors", "rb").read()
header = json.loads(header[8:8 + struct.unpack("<Q", header[:8])[0]])
check(json.loads(header["__metadata__"]["words.label"]) == [w.decode() for w in words], "kept", header["__metadata__"])
folder("test", **{"zebra/0.png": open("train/zebra/0.png", "rb").read()})
few = ["--data", "image=test", "--data", "label=test:label", "--checkpoint", "one.safetensors", "--json"]
check(json.loads(run("eval", "m.dsl", *few).stdout)["label_sum"] == 3, "the training's numbers")
os.mkdir("test/empty")
check(run("eval", "m.dsl", *few).returncode == 0, "another class without images")
shutil.copytree("test/zebra", "test/yak")
refused(run("eval", "m.dsl", *few).stderr, "folder 'yak' is no class that the training had: ant, cat,dog, none, zebra", "another class")
shutil.rmtree("test/yak")
shutil.copy("test/zebra/0.png", "test/top.png")
refused(run("eval", "m.dsl", *few).stderr, "top.png lies in no folder", "no class")
os.remove("test/top.png")
os.makedirs(b"test/\xff")
wrong = run("train", "m.dsl", "--data", "image=test", "--data", "label=test/:label", "--steps", "1", "--checkpoint", "no.safetensors")
refused(wrong.stderr, "is not UTF-8; rename it", "a class that is not UTF-8")
os.rmdir(b"test/\xff")
refused(run("eval", "m.dsl", *few[:4]).stderr, "", "no checkpoint")
# Each folder of its own has no classes in it.
split = run("train", "m.dsl", "--data", "image=train/zebra,train/ant", "--data", "label=train/zebra/:label,train/ant/:label", "--steps", "1")
refused(split.stderr, "lies in no folder", "classes as folders of their own")
# What docs/training.md shows.
page = open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../docs/training.md")).read()
open("photos.dsl", "w").write(re.search(r"^use nn\nmodel photos.*?^}$", page, re.M | re.S).group())
folder("test", **{"zebra/0.png": open("train/zebra/0.png", "rb").read()})
shutil.copy("all/loud.jpeg", "cat.jpg")
commands = re.findall(r"^dgc (?:train|predict) photos.*?(?<!\\)$", page, re.M | re.S)
check(len(commands) == 2, "commands of docs/training.md")
for command in commands:
    done = run(*shlex.split(command.replace("\\\n", ""))[1:])
    check(done.returncode == 0, command, done.stderr)
check(done.stdout.splitlines()[0] == "class" and done.stdout.splitlines()[1].isdigit(), "a class", done.stdout)
finish()
