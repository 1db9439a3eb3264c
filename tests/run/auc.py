#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""auc and auc_pr of batches of several sizes, on one device and several, beside the same of all rows in numpy: auc.py DGC. Of
scores that no threshold lies between it is the share of pairs that are in order."""
import json
import subprocess

import numpy as np

import checks



def curve(scores, label, weights, thresholds):
    """As Keras' AUC: counts above each threshold, and the trapezoids between."""
    t = np.arange(thresholds) / (thresholds - 1)
    t[0], t[-1] = -1e-7, 1 + 1e-7
    above = scores.ravel()[None] > t.astype(scores.dtype)[:, None]
    hits, falls = (np.sum(above * (part * weights).ravel()[None], axis=1) for part in (label, 1 - label))
    with np.errstate(invalid="ignore"):
        high, wide = hits / hits[0], falls / falls[0]
    return np.sum((wide[:-1] - wide[1:]) * (high[:-1] + high[1:])) / 2


def keras_pr(scores, label, weights, thresholds):
    """As Keras' AUC with curve = "PR", by the formulas of its documentation's reference."""
    t = np.arange(thresholds) / (thresholds - 1)
    t[0], t[-1] = -1e-7, 1 + 1e-7
    above = scores.ravel()[None] > t.astype(scores.dtype)[:, None]
    tp, fp = (np.sum(above * (part * weights).ravel()[None], axis=1) for part in (label, 1 - label))
    with np.errstate(invalid="ignore", divide="ignore"):
        dtp, p = tp[:-1] - tp[1:], tp + fp
        slope = np.nan_to_num(dtp / np.maximum(p[:-1] - p[1:], 0))
        ratio = np.where((p[:-1] > 0) & (p[1:] > 0), p[:-1] / p[1:], 1)
        return np.sum(slope * (dtp + (tp[1:] - slope * p[1:]) * np.log(ratio))) / tp[0]


def pairs(scores, label, weights, thresholds):
    """Of all pairs of a 1 and a 0 how many are in order; half of those that are equal."""
    order = np.sign(scores.ravel()[:, None] - scores.ravel()[None]) / 2 + 0.5
    both = (label * weights).ravel()[:, None] * ((1 - label) * weights).ravel()[None]
    with np.errstate(invalid="ignore"):
        return np.sum(order * both) / np.sum(both)


def check(what, wants, scores, label, weights=None, thresholds=200, kind="f32", of="auc"):
    rows = ", ".join(["B", *map(str, scores.shape[1:])])
    scores = scores.astype(np.float32 if kind == "f32" else np.float64)
    np.save("s.npy", scores)
    np.save("y.npy", label)
    arguments = f"s, y, {thresholds}"
    text = f"model m {{\n  input s : {kind}[{rows}]\n  input y : {'u8' if label.dtype == bool else 'f64' if label.dtype == float else 'i32'}[{rows}]\n"
    data = ["--data", f"s=s.npy", "--data", f"y=y.npy"]
    if weights is not None:
        np.save("w.npy", weights.astype(scores.dtype))
        text += f"  input w : {kind}[{rows}]\n"
        arguments += ", w"
        data += ["--data", f"w=w.npy"]
    if label.dtype == bool:
        arguments = arguments.replace("y", "y == 1")
    open("m.dsl", "w").write(text + f"  metric auc = {of}({arguments})\n}}\n")
    want = wants(scores, label.astype(float), np.ones(scores.shape) if weights is None else weights, thresholds)
    for batch, devices in ((len(scores), "cpu:0"), (1, "cpu:0"), (7, "cpu:0"), (8, "cpu:0-2")):
        done = subprocess.run([checks.dgc, "eval", "m.dsl", *data, "--batch", str(batch), "--devices", devices, "--json"],
                              stdout=subprocess.PIPE, check=True)
        got = json.loads(done.stdout)["auc"]
        got = np.nan if got is None else got
        same = np.isnan(got) and np.isnan(want) or abs(got - want) <= 1e-6
        checks.check(same, f"{what}, batch {batch} on {devices}: {got}, not {want}")


rng = np.random.default_rng(0)
label = rng.integers(0, 2, 60).astype(np.int32)
scores = np.clip(0.3 * label + 0.7 * rng.random(60), 0, 1)
weights = rng.integers(0, 4, 60).astype(float)
check("scores", curve, scores, label)
check("scores of f64", curve, scores, label, kind="f64")
check("three thresholds", curve, scores, label, thresholds=3)
check("two thresholds", curve, scores, label, thresholds=2)
check("weights", curve, scores, label, weights)
check("places", curve, scores.reshape(20, 3), label.reshape(20, 3), weights.reshape(20, 3))
check("truth", curve, scores, label == 1)
check("0 and 1", curve, np.round(scores), label)
check("labels between", curve, scores, rng.random(60))
ties = (rng.integers(0, 9, 60) + 0.5) / 10  # one at most between two thresholds
check("ties, in pairs", pairs, ties, label, thresholds=11)
check("ties, with weights, in pairs", pairs, ties, label, weights, thresholds=11)
check("many thresholds, in pairs", pairs, (rng.permutation(60) + 0.5) / 60, label, thresholds=61)
check("in order", pairs, (np.arange(60) + 0.5) / 60, (np.arange(60) > 40).astype(np.int32))
check("ones alone", curve, scores, np.ones(60, np.int32))
check("zeros alone", curve, scores, np.zeros(60, np.int32))
for wrong in (-0.1, 1.1, np.nan, np.inf):
    check(f"a score of {wrong}", lambda *_: np.nan, np.where(np.arange(60) == 17, wrong, scores), label)
    check(f"a score of {wrong}", lambda *_: np.nan, np.where(np.arange(60) == 17, wrong, scores), label, of="auc_pr")
for thresholds in (200, 3, 2, 61):
    check(f"precision over recall, {thresholds} thresholds", keras_pr, scores, label, thresholds=thresholds, of="auc_pr")
check("precision over recall, f64, weights", keras_pr, scores, label, weights, kind="f64", of="auc_pr")
check("precision over recall, few ones", keras_pr, scores, (np.arange(60) % 20 == 7).astype(np.int32), of="auc_pr")
check("precision over recall, places", keras_pr, scores.reshape(20, 3), label.reshape(20, 3), of="auc_pr")
check("precision over recall, 0 and 1", keras_pr, np.round(scores), label == 1, of="auc_pr")
check("precision over recall, ones alone", keras_pr, scores, np.ones(60, np.int32), of="auc_pr")
check("precision over recall, zeros alone", keras_pr, scores, np.zeros(60, np.int32), of="auc_pr")
checks.finish()
