# SPDX-License-Identifier: Apache-2.0
"""The models of cases.py in PyTorch's words: images lie as channels_last, optimizers are fused."""
import torch
from torch import nn

from cases import DECAY, MOBILE, TRANSFORMERS, method

F = nn.functional


def normed(channels, filters, size=3, stride=1, groups=1):
    conv = nn.Conv2d(channels, filters, size, stride, size // 2, groups=groups)
    return nn.Sequential(conv, nn.BatchNorm2d(filters, eps=1e-3))


class Images(nn.Module):
    """Rows are [N, H, W, C], as loaders give them: seen as channels_last, without a copy."""

    def __init__(self, *layers):
        super().__init__()
        self.layers = nn.Sequential(*layers).to(memory_format=torch.channels_last)

    def forward(self, x):
        return self.layers(x.permute(0, 3, 1, 2))


class Byte(nn.Module):
    def forward(self, x):
        return (x.float() / 255).unsqueeze(1)


class Block(nn.Module):
    def __init__(self, channels, filters, stride):
        super().__init__()
        self.a, self.b = normed(channels, filters, 3, stride), normed(filters, filters)
        self.short = nn.Conv2d(channels, filters, 1, stride) if stride > 1 else nn.Identity()

    def forward(self, x):
        return torch.relu(self.b(torch.relu(self.a(x))) + self.short(x))


def perceptron():
    return nn.Sequential(nn.Linear(784, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 10))


def lenet():
    return nn.Sequential(Byte(), nn.Conv2d(1, 6, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(6, 16, 5), nn.ReLU(),
                         nn.MaxPool2d(2), nn.Flatten(), nn.Linear(400, 120), nn.ReLU(), nn.Linear(120, 84), nn.ReLU(),
                         nn.BatchNorm1d(84, eps=1e-3), nn.Linear(84, 10)).to(memory_format=torch.channels_last)


def resnet():
    layers, channels = [normed(3, 16), nn.ReLU()], 16
    for filters in 16, 32, 64:
        for i in range(3):
            layers.append(Block(channels, filters, 2 if i == 0 and filters > 16 else 1))
            channels = filters
    return Images(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 10))


def mobilenet():
    layers, channels = [normed(3, 32), nn.ReLU()], 32
    for filters, stride in MOBILE:
        layers += [normed(channels, channels, 3, stride, channels), nn.ReLU(), normed(channels, filters, 1), nn.ReLU()]
        channels = filters
    return Images(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, 10))


class Unet(nn.Module):
    def __init__(self):
        super().__init__()
        two = lambda c, f: nn.Sequential(nn.Conv2d(c, f, 3, padding=1), nn.ReLU(), nn.Conv2d(f, f, 3, padding=1), nn.ReLU())
        self.down = nn.ModuleList([two(1, 16), two(16, 32), two(32, 64)])
        self.up = nn.ModuleList([nn.ConvTranspose2d(64, 32, 2, 2), nn.ConvTranspose2d(32, 16, 2, 2)])
        self.joined, self.last = nn.ModuleList([two(64, 32), two(32, 16)]), nn.Conv2d(16, 2, 1)
        self.to(memory_format=torch.channels_last)

    def forward(self, x):
        a = self.down[0](x.permute(0, 3, 1, 2))
        b = self.down[1](F.max_pool2d(a, 2))
        y = self.down[2](F.max_pool2d(b, 2))
        for up, joined, beside in zip(self.up, self.joined, (b, a)):
            y = joined(torch.cat([up(y), beside], 1))
        return self.last(y)


class Attends(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.first, self.second, self.heads = nn.LayerNorm(width), nn.LayerNorm(width), heads
        self.qkv, self.out = nn.Linear(width, 3 * width, bias=False), nn.Linear(width, width)
        self.wide, self.narrow = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        parts = self.qkv(self.first(x)).chunk(3, -1)
        q, k, v = (t.view(*t.shape[:2], self.heads, -1).transpose(1, 2) for t in parts)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(y.transpose(1, 2).reshape(x.shape))
        return x + self.narrow(F.gelu(self.wide(self.second(x))))


class Transformer(nn.Module):
    def __init__(self, t):
        super().__init__()
        self.table, self.place = nn.Embedding(t.words, t.width), nn.Parameter(0.02 * torch.rand(t.length, t.width))
        self.blocks = nn.Sequential(*[Attends(t.width, t.heads) for _ in range(t.blocks)], nn.LayerNorm(t.width))
        self.logits = nn.Linear(t.width, t.words, bias=not t.tied)
        if t.tied:
            nn.init.normal_(self.table.weight, std=0.02)
            self.logits.weight = self.table.weight

    def forward(self, x):
        return self.logits(self.blocks(self.table(x) + self.place)).flatten(0, 1)


class Lstm(nn.Module):
    def __init__(self):
        super().__init__()
        self.cells, self.out = nn.LSTM(32, 128, batch_first=True), nn.Linear(128, 10)

    def forward(self, x):
        return self.out(self.cells(x)[0][:, -1])


def model(case):
    if case.name in TRANSFORMERS:
        return Transformer(TRANSFORMERS[case.name])
    if case.name == "bag":
        return nn.Sequential(nn.EmbeddingBag(65536, 64, mode="mean", sparse=True), nn.Linear(64, 3))
    return {"perceptron": perceptron, "lenet": lenet, "resnet": resnet, "mobilenet": mobilenet, "unet": Unet,
            "lstm": Lstm}[case.name.split("-")[0]]()


def optimizer(case, net):
    name, rate = method(case)
    if name == "adamw":
        return torch.optim.AdamW(net.parameters(), rate, weight_decay=DECAY, fused=True)
    if name == "adam":
        return torch.optim.Adam(net.parameters(), rate, fused=True)
    return torch.optim.SGD(net.parameters(), rate, momentum=0.9 if name == "momentum" else 0,
                           **({} if case.name == "bag" else {"fused": True}))
