# SPDX-License-Identifier: Apache-2.0
"""Every function that dgc has is attacked, or it says here why not: read off dgc's own sources."""
import json
import os
import re

from elementwise import ACTIVATIONS, BINARY, UNARY
from library import library_rows
from models import elementwise_rows
from tensors import tensor_rows

# What no row makes by name.
REASONS = {
    "constant": "numbers in the text of a model", "input": "each model has some", "variable": "each model has some",
    "batch_size": "made by replicate, of sums over the batch", "tower_id": "differs from tower to tower",
    "tower_count": "differs with the number of towers", "reduce_sum": "sum", "reduce_prod": "prod",
    "reduce_max": "max", "reduce_min": "min", "assign": "each update", "gradient": "each training",
    "newest": "asynchronous training alone", "aggregate": "by declarations of state", "local": "beside JAX in tests/twins", "all_reduce": "made by replicate; as a function, beside JAX in tests/twins", "split": "made by replicate",
    "all_gather": "made by replicate; as a function, see tests/twins", "copy": "made by copies",
    "send": "in the part of one task of a plan", "remote": "in the part of one task of a plan",
    "places_along": "reverse", "further": "cumprod", "erfinv_step": "erfinv", "erf_is": "erfinv and normal_quantile",
    "auc": "beside numpy in tests/run/auc.py", "auc_pr": "beside numpy in tests/run/auc.py", "weights_above": "auc", "running_norm": "beside numpy in tests/run/fitted.py",
    "integers": "floor_div and ctc_loss", "of_class": "softmax_cross_entropy", "cross_entropy_of_shares": "softmax_cross_entropy", "class_labels": "ctc_loss",
    "counted": "softmax_cross_entropy of probabilities", "focused": "focal_loss", "is_share": "softmax_cross_entropy",
    "class_numbers": "softmax_cross_entropy",
    "fused": "made by fuse", "output": "made by fuse", "scan": "a statement: beside JAX in tests/run/scan.py",
    "window_put": "the gradient of window_max", "window_pick": "the gradient of that",
    "attention_gradient": "the gradient of attention", "mean_windows": "mean_pool2d", "covered": "conv_transpose", "between": "upsample", "sum_of_ints": "mixture_of_experts", "nadam_share": "nadam", "root_mean_square": "adafactor",
    "split_heads": "attention", "remember": "beside numpy in tests/twins", "gru_step": "gru", "gru_cell": "beside numpy in tests/twins",
    "lstm_cell": "beside numpy in tests/twins", "random_places": "random_crop", "room_of": "random_crop",
    "within": "layers over sequences with lengths: beside JAX in tests/twins",
    "unpadded": "layers over sequences with lengths: beside JAX in tests/library", "steps_before": "length_mask",
    "bit_and": "beside numpy in tests/library", "bit_or": "beside numpy in tests/library", "bit_xor": "beside numpy in tests/library",
    "floor_div": "beside numpy in tests/library", "floor_mod": "beside numpy in tests/library",
    "accumulate": "beside JAX in tests/twins", "loss_scale": "beside JAX in tests/twins", "unscale": "beside JAX in tests/twins",
    "some_rows": "sparse_dense_matmul", "sparse_dense_matmul": "beside JAX in tests/library",
    "embedding_lookup_sparse": "beside JAX in tests/library", "average": "beside JAX in tests/twins", "freeze": "beside JAX in tests/twins",
    "master": "beside numpy in tests/run/storage.py", "scale_by_adam": "beside JAX in tests/twins", "scale_by_trust_ratio": "beside JAX in tests/twins",
    "matches": "freeze and scale", "expect_either": "hinge, of signs: tests/library", "per_axis": "conv2d and its likes", "global_norm": "clip_by_global_norm",
    "adam_rate": "adam and adamw", "fan_in": "of sizes: the initializers", "fan_out": "of sizes: the initializers",
}
# Optimizers, schedules and initializers have a file of their own: updates.py.
OPTIMIZERS = ("sgd", "momentum", "adagrad", "rmsprop", "adam", "adamw")
# What may stand before an optimizer.
LINKS = ("clip_by_value", "clip_by_norm", "clip_by_global_norm", "decay_weights", "scale")
SCHEDULES = ("exponential_decay", "cosine_decay", "linear_decay", "piecewise", "warmup")
INITIALIZERS = ("zeros", "ones", "constant", "uniform", "normal", "glorot_uniform", "glorot_normal", "he_uniform",
                "he_normal", "lecun_uniform", "lecun_normal")


def rows():
    """name -> a function of the generator that adds a statement with it."""
    numpy = {row[0]: row[-1] for row in UNARY + BINARY + ACTIVATIONS}
    table = dict(elementwise_rows())
    table.update(tensor_rows(numpy))
    table.update(library_rows())
    return table


def listed(source):
    """Names of all ops and functions, as dgc's sources list them: name -> file."""
    found = {}
    def read(path, pattern):
        with open(os.path.join(source, path)) as f:
            for name in re.findall(pattern, f.read(), re.M):
                found[name] = path
    read("ir/ops/ops.def", r"^(?:OP|LEAF|KERNEL)\((\w+)")
    read("frontend/operators.def", r"^OPERATOR\(\w+, \"[^\"]*\", \d+, (\w+)\)")
    for name in sorted(os.listdir(os.path.join(source, "frontend/lib"))):
        read("frontend/lib/" + name, r"^(?:function|layer|initializer|optimizer) (\w+)")
    for name in sorted(os.listdir(os.path.join(source, "frontend"))):
        if name.startswith("builtin"):
            read("frontend/" + name, r"\{\"(\w+)\",\s+\{")
    return found


def beside_others(source):
    """The names in the cases of tests/library, which are compared with JAX and scipy by hand."""
    folder = os.path.join(source, "tests/library")
    texts = "".join(open(os.path.join(folder, name)).read() for name in sorted(os.listdir(folder)) if name.endswith(".py"))
    with open(os.path.join(folder, "optimizers.json")) as f:
        texts += " ".join(f'Case("{name}"' for name in json.load(f))
    return set(re.findall(r"\w+", " ".join(re.findall(r"\b(?:Case|Drawn|Choice|Range)\((?:f?\"\"\".*?\"\"\"|f?\".*?\"|f?'.*?')", texts, re.S))))


def missing(source):
    """Lines that name what has neither a row nor a reason, and rows of what dgc does not have."""
    known = set(rows()) | set(REASONS) | set(OPTIMIZERS) | set(LINKS) | set(SCHEDULES) | set(INITIALIZERS)
    found = listed(source)
    known |= beside_others(source) & set(found)
    lines = [f"{path}: {name}: nothing attacks it: give it a row in tests/attack, or a reason in table.py"
             for name, path in sorted(found.items()) if name not in known]
    return lines + [f"tests/attack: {name}: dgc has no such function" for name in sorted(known - set(found))]
