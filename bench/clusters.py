#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A training step on two processes of one thread each: dgc over MPI, TensorFlow's MultiWorkerMirroredStrategy and PyTorch's
DistributedDataParallel over Gloo, in turn in one run: clusters.py BUILD [--steps N] [--batch N ...] [--rounds N]

The perceptron of samples/digits.dsl (784-512-10, f32, Adam) on rows made up, fed from memory at each step; the batch is
that of both together. dgc also as one process with two devices. A figure is the median step of a process, the slower of
the two, and of those the best of the rounds, as whatever else runs only adds. Who is not installed is named."""

import argparse
import importlib.util
import json
import os
import socket
import statistics
import subprocess
import sys
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
ONE_THREAD = {name: "1" for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "TF_NUM_INTRAOP_THREADS",
                                     "TF_NUM_INTEROP_THREADS")}
MPI = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "OMPI_MCA_rmaps_base_oversubscribe": "1"}


def rows(batch, rank):
    import numpy
    r = numpy.random.default_rng(rank)
    return r.integers(0, 256, (batch, 28, 28), dtype="uint8"), r.integers(0, 10, batch, dtype="int64")


def median_ms(step, steps):
    for _ in range(max(steps // 10, 3)):
        step()
    times = []
    for _ in range(steps):
        begin = time.perf_counter()
        step()
        times.append(time.perf_counter() - begin)
    return 1e3 * statistics.median(times)


def tensorflow(rank, batch, steps):
    import tensorflow as tf
    strategy = tf.distribute.MultiWorkerMirroredStrategy()
    with strategy.scope():
        keras = tf.keras
        model = keras.Sequential([keras.Input((784,)), keras.layers.Dense(512, "relu"), keras.layers.Dense(10)])
        adam = keras.optimizers.Adam(1e-3)
        adam.build(model.trainable_variables)

    def tower(image, label):
        x = tf.cast(tf.reshape(image, (-1, 784)), tf.float32) / 255
        with tf.GradientTape() as tape:
            losses = tf.nn.sparse_softmax_cross_entropy_with_logits(label, model(x))
            loss = tf.reduce_sum(losses) / batch
        variables = model.trainable_variables
        adam.apply_gradients(zip(tape.gradient(loss, variables), variables))
        return loss

    @tf.function
    def step(image, label):
        return strategy.reduce("SUM", strategy.run(tower, (image, label)), axis=None)

    image, label = rows(batch // 2, rank)
    return median_ms(lambda: step(tf.constant(image), tf.constant(label)).numpy(), steps)


def pytorch(rank, batch, steps):
    import torch
    from torch import distributed, nn
    torch.set_num_threads(1)
    distributed.init_process_group("gloo", rank=rank, world_size=2)
    model = nn.parallel.DistributedDataParallel(nn.Sequential(nn.Linear(784, 512), nn.ReLU(), nn.Linear(512, 10)))
    adam = torch.optim.Adam(model.parameters(), 1e-3)
    image, label = rows(batch // 2, rank)

    def step():
        x = torch.from_numpy(image).reshape(-1, 784).float() / 255
        adam.zero_grad(set_to_none=True)
        loss = nn.functional.cross_entropy(model(x), torch.from_numpy(label))
        loss.backward()
        adam.step()
        return loss.item()

    ms = median_ms(step, steps)
    distributed.destroy_process_group()
    return ms


PEERS = {"TensorFlow MultiWorkerMirroredStrategy": (tensorflow, "tensorflow"), "PyTorch DDP over Gloo": (pytorch, "torch")}


def free_ports(count):
    held = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [s.getsockname()[1] for s in held]
    for s in held:
        s.close()
    return ports


def run_peer(name, batch, steps):
    ports = free_ports(2)
    workers = [f"127.0.0.1:{port}" for port in ports]
    running = []
    for rank in range(2):
        own = {"TF_CONFIG": json.dumps({"cluster": {"worker": workers}, "task": {"type": "worker", "index": rank}}),
               "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(ports[0]), "TF_CPP_MIN_LOG_LEVEL": "3",
               "CUDA_VISIBLE_DEVICES": ""}
        command = [sys.executable, __file__, "--as", name, str(rank), "--batch", str(batch), "--steps", str(steps)]
        running.append(subprocess.Popen(command, env={**os.environ, **ONE_THREAD, **own}, text=True,
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE))
    said = [p.communicate() for p in running]
    if any(p.returncode for p in running):
        sys.exit(f"{name}:\n{said[0][1][-2000:]}")
    return max(float(out.split()[-1]) for out, _ in said)


def run_dgc(build, launcher, options, batch, steps):
    command = launcher + [os.path.join(build, "dgc"), "bench", "samples/digits.dsl", "--json", "--batch", str(batch),
                          "--steps", str(steps)] + options
    done = subprocess.run(command, cwd=ROOT, env={**os.environ, **MPI}, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(command)}\n{done.stderr}")
    return json.loads(done.stdout)["step_ms"]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("build", nargs="?", default=os.path.join(ROOT, "build"))
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--batch", type=int, nargs="+", default=[128, 1024])
    parser.add_argument("--as", nargs=2, dest="peer", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.peer:
        print(PEERS[given.peer[0]][0](int(given.peer[1]), given.batch[0], given.steps))
        return
    build = os.path.abspath(given.build)
    two = ["mpirun", "-n", "2"]
    cases = {
        "dgc, 1 process, 2 devices": lambda b: run_dgc(build, [], ["--devices", "cpu:0-1"], b, given.steps),
        "dgc, 2 tasks in 1 process": lambda b: run_dgc(build, [], ["--cluster", "worker=2"], b, given.steps),
        "dgc, 2 processes": lambda b: run_dgc(build, two, [], b, given.steps),
        "dgc, 2 processes, ring": lambda b: run_dgc(build, two, ["--cross-device", "ring"], b, given.steps),
    }
    for name, (_, module) in PEERS.items():
        if importlib.util.find_spec(module):
            cases[name] = lambda b, name=name: run_peer(name, b, given.steps)
        else:
            print(f"{name}: not installed in {sys.executable}")
    best = {}
    for _ in range(given.rounds):
        for batch in given.batch:
            for name, case in cases.items():
                best[name, batch] = min(case(batch), best.get((name, batch), float("inf")))
    print("\n| ms/step |" + "".join(f" batch {b} | of dgc |" for b in given.batch))
    print("|---|" + "---:|---:|" * len(given.batch))
    for name in cases:
        cells = (f" {best[name, b]:.2f} | {best[name, b] / best['dgc, 2 processes', b]:.2f} |" for b in given.batch)
        print(f"| {name} |" + "".join(cells))


if __name__ == "__main__":
    main()
