# SPDX-License-Identifier: Apache-2.0
"""PyTorch on a case of models.py: peer_torch.py NAME BATCH STEPS SECONDS ROUNDINGS DEVICE WAYS, of which there are eager, graph
(eager, the step captured as a CUDA graph) and compiled (captured too). A line of JSON for each rounding and way. A step copies
the batch from pinned memory, trains, and waits for the device, as `dgc bench` does. bfloat16 is autocast; f32 does not use
TF32."""
import json
import sys

import torch

from models import WIDTH, arguments, timed
from cases import TRANSFORMERS, batches
import models_torch

F = torch.nn.functional
NAMES = {"eager": "PyTorch", "graph": "PyTorch, CUDA graph", "compiled": "PyTorch, compiled, CUDA graph"}


def wide():
    layers = [torch.nn.Linear(WIDTH, WIDTH) for _ in range(4)]
    return torch.nn.Sequential(*[x for layer in layers for x in (layer, torch.nn.ReLU())][:-1])


def network(case, device):
    """And its optimizer."""
    net = (wide() if case.name == "wide" else models_torch.model(case)).to(device)
    if case.name == "wide":
        return net, torch.optim.SGD(net.parameters(), 1e-3, fused=True)
    name, rate = models_torch.method(case)
    if name == "adam":
        return net, torch.optim.Adam(net.parameters(), rate, fused=True, capturable=device == "cuda")
    return net, models_torch.optimizer(case, net)


def captured(train):
    """The same as one CUDA graph."""
    beside = torch.cuda.Stream()
    beside.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(beside):
        for _ in range(3):
            train()
    torch.cuda.current_stream().wait_stream(beside)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        train()
    return graph.replay


def measure(case, steps, seconds, rounding, device, way):
    torch.manual_seed(0)
    tf32 = rounding == "tf32"
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = tf32
    torch.backends.cudnn.benchmark = True
    net, update = network(case, device)
    x_host, y_host = map(torch.from_numpy, batches(case, 1)[0])
    if case.name != "wide":
        y_host = y_host.long().flatten() if case.name in TRANSFORMERS else y_host.long()
    if device == "cuda":
        x_host, y_host = x_host.pin_memory(), y_host.pin_memory()
    x, y = x_host.to(device, copy=True), y_host.to(device, copy=True)

    def loss_of(x, y):
        with torch.autocast(device, torch.bfloat16, enabled=rounding == "bf16"):
            out = net(x)
        return F.mse_loss(out.float(), y) if case.name == "wide" else F.cross_entropy(out.float(), y)
    forward = torch.compile(loss_of) if way == "compiled" else loss_of

    def train():
        update.zero_grad()
        forward(x, y).backward()
        update.step()
    run = captured(train) if device == "cuda" and way != "eager" else train

    def step():
        x.copy_(x_host, non_blocking=True)
        y.copy_(y_host, non_blocking=True)
        run()
        if device == "cuda":
            torch.cuda.synchronize()
    return timed(step, steps, seconds)


def main():
    case, steps, seconds, roundings, device = arguments(sys.argv)
    if device == "cuda" and not torch.cuda.is_available():
        print(json.dumps({"who": "PyTorch", "absent": "this PyTorch has no GPU"}))
        return
    for rounding in roundings:
        for way in sys.argv[7].split(","):
            if way == "graph" and device != "cuda":
                continue
            said = {"who": NAMES[way], "rounding": rounding, "version": torch.__version__}
            try:
                said |= measure(case, steps, seconds, rounding, device, way)
            except Exception as e:  # no compiler on this machine, or a version that cannot
                said["absent"] = (str(e) or repr(e)).splitlines()[0]
            print(json.dumps(said), flush=True)
            torch._dynamo.reset()


main()
