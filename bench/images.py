#!/usr/bin/env python3
"""Training steps of LeNet and of ResNet-20 on one thread: dgc and TensorFlow (graphs, with and without XLA), in turn in one
run: images.py BUILD [--also BUILD ...] [--steps N] [--rounds N]

LeNet is samples/lenet.dsl with a batch of 128, ResNet-20 bench/resnet.dsl with one of 64, both f32, on rows made up and fed
from memory at each step. A figure is the least of the rounds' median steps, as whatever else runs only adds. --also names
other builds of dgc, of older commits say. TensorFlow is left out where it is not installed."""

import argparse
import json
import os
import statistics
import subprocess
import sys
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
MODELS = {"lenet": ("samples/lenet.dsl", 128), "resnet": ("bench/resnet.dsl", 64)}
ONE_THREAD = {name: "1" for name in ("OMP_NUM_THREADS", "TF_NUM_INTRAOP_THREADS", "TF_NUM_INTEROP_THREADS")}


def lenet(keras):
    return keras.Sequential([
        keras.Input((28, 28, 1)), keras.layers.Conv2D(6, 5, padding="same", activation="relu"), keras.layers.MaxPool2D(),
        keras.layers.Conv2D(16, 5, activation="relu"), keras.layers.MaxPool2D(), keras.layers.Flatten(),
        keras.layers.Dense(120, "relu"), keras.layers.Dense(84, "relu"), keras.layers.BatchNormalization(),
        keras.layers.Dense(10)]), keras.optimizers.Adam(1e-3), (28, 28, 1)


def resnet(keras):
    layers = keras.layers
    def normed(x, filters, stride=1):
        return layers.BatchNormalization()(layers.Conv2D(filters, 3, stride, padding="same")(x))
    image = keras.Input((32, 32, 3))
    x = layers.ReLU()(normed(image, 16))
    for filters in 16, 32, 64:
        for i in range(3):
            stride = 2 if i == 0 and filters > 16 else 1
            y = normed(layers.ReLU()(normed(x, filters, stride)), filters)
            x = layers.ReLU()(layers.Add()([y, layers.Conv2D(filters, 1, stride, padding="same")(x) if stride > 1 else x]))
    y = layers.Dense(10)(layers.GlobalAveragePooling2D()(x))
    return keras.Model(image, y), keras.optimizers.SGD(0.1, momentum=0.9), (32, 32, 3)


def tensorflow(name, steps, xla):
    """Prints the median step in ms."""
    import numpy
    import tensorflow as tf
    model, optimizer, shape = {"lenet": lenet, "resnet": resnet}[name](tf.keras)
    optimizer.build(model.trainable_variables)
    batch, r = MODELS[name][1], numpy.random.default_rng(1)

    @tf.function(jit_compile=xla)
    def step(image, label):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(label, model(image, training=True)))
        optimizer.apply_gradients(zip(tape.gradient(loss, model.trainable_variables), model.trainable_variables))
        return loss
    images, labels = r.random((batch,) + shape, dtype="float32"), r.integers(0, 10, batch)
    times = []
    for i in range(steps + 3):
        begin = time.perf_counter()
        step(tf.constant(images), tf.constant(labels)).numpy()
        times.append(time.perf_counter() - begin)
    print(json.dumps(1e3 * statistics.median(times[3:])))


def dgc(build, name, steps):
    model, batch = MODELS[name]
    text = subprocess.run([os.path.join(build, "dgc"), "bench", os.path.join(ROOT, model), "--batch", str(batch), "--steps",
                           str(steps), "--devices", "cpu:0", "--threads", "1", "--json"], check=True, capture_output=True,
                          text=True).stdout
    return json.loads(text)["step_ms"]


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("build", metavar="BUILD")
    p.add_argument("--also", action="append", default=[], metavar="BUILD")
    p.add_argument("--steps", type=int, default=20)
    p.add_argument("--rounds", type=int, default=3)
    p.add_argument("--peer", nargs=2, help=argparse.SUPPRESS)
    a = p.parse_args()
    if a.peer:
        return tensorflow(a.peer[0], a.steps, a.peer[1] == "xla")
    rows = {}
    for name in MODELS:
        for _ in range(a.rounds):
            for build in [a.build] + a.also:
                rows.setdefault((name, build), []).append(dgc(build, name, a.steps))
            for how in "graph", "xla":
                run = subprocess.run([sys.executable, __file__, a.build, "--peer", name, how, "--steps", str(a.steps)],
                                     capture_output=True, text=True, env={**os.environ, **ONE_THREAD})
                if run.returncode == 0:
                    rows.setdefault((name, "TensorFlow " + how), []).append(json.loads(run.stdout.splitlines()[-1]))
    for (name, who), times in rows.items():
        print(f"{name:8} {who:40} {min(times):9.2f} ms")


if __name__ == "__main__":
    main()
