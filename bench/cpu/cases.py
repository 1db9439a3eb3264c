# SPDX-License-Identifier: Apache-2.0
"""What is measured: the same models for everybody. A row: name, dgc's source and its settings, the batch, its inputs
as (name, type, shape of a row, the numbers from 0 below which they lie), and whether there is a bfloat16 one."""
import collections

Case = collections.namedtuple("Case", "name source settings batch inputs bf16")
Transformer = collections.namedtuple("Transformer", "length words width blocks heads tied")
TRANSFORMERS = {"chars-64": Transformer(64, 96, 128, 4, 4, False), "chars-1024": Transformer(1024, 96, 128, 4, 4, False),
                "gpt2": Transformer(256, 50257, 768, 12, 12, True)}


def rows(shape, labels=10, dtype="float32", label="int32", of_label=()):
    return [("x", dtype, shape, 256 if dtype == "uint8" else 1), ("y", label, of_label, labels)]


CASES = {c.name: c for c in [
    *(Case(f"perceptron-{method}-{batch}", "samples/perceptron.dsl", (f"method={method}",), batch, rows((784,)),
           batch == 1024)
      for method in ("sgd", "adam") for batch in (32, 128, 1024)),
    Case("lenet", "samples/lenet.dsl", (), 128, rows((28, 28), dtype="uint8", label="uint8"), False),
    Case("resnet", "bench/resnet.dsl", (), 64, rows((32, 32, 3)), True),
    Case("mobilenet", "bench/mobilenet.dsl", (), 64, rows((32, 32, 3)), True),
    Case("unet", "bench/unet.dsl", (), 16, rows((64, 64, 1), labels=2, of_label=(64, 64)), True),
    *(Case(name, f"bench/{name.split('-')[0]}.dsl", (f"length={t.length}",), batch,
           [("x", "int32", (t.length,), t.words), ("y", "int32", (t.length,), t.words)], True)
      for (name, t), batch in zip(TRANSFORMERS.items(), (16, 2, 4))),
    Case("lstm", "bench/lstm.dsl", (), 64, rows((64, 32)), True),
    Case("bag", "bench/bag.dsl", (), 128, [("x", "int32", (44,), 65536), ("y", "int32", (), 3)], False),
]}
DECAY = 0.1
MOBILE = ((64, 1), (128, 2), (128, 1), (256, 2), (256, 1))


def method(case):
    """The optimizer's name, and its rate."""
    if case.name.startswith("perceptron"):
        return case.name.split("-")[1], 1e-3
    return {"resnet": ("momentum", 0.1), "mobilenet": ("momentum", 0.1), "lstm": ("sgd", 0.01),
            "bag": ("sgd", 2.0), "gpt2": ("adamw", 6e-4)}.get(case.name, ("adam", 1e-3))


def batches(case, count=4):
    """Host arrays (x, y) for as many steps; one that begins again from the first has had them out of its caches or
    not, as all do."""
    import numpy
    r = numpy.random.default_rng(1)

    def made(dtype, shape, below):
        shape = (case.batch,) + shape
        return r.random(shape, dtype="float32") if dtype == "float32" else r.integers(0, below, shape).astype(dtype)
    return [tuple(made(*row) for _, *row in case.inputs) for _ in range(count)]


def arguments(argv):
    """What a peer is called with: CASE HOW PRECISION THREADS."""
    return CASES[argv[1]], argv[2], argv[3] == "bf16", int(argv[4])
