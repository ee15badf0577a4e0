"""The networks of cairn-bench-fit in PyTorch, on one thread: prints examples per second of a window behind another one.

    fit_torch.py perceptron | convolutional | attention
"""

import sys
import time

import torch
from torch import nn
from torch.nn import functional as F

torch.set_num_threads(1)
STEPS, VOCABULARY, TIME, WIDTH = 150, 65, 64, 64


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.characters = nn.Embedding(VOCABULARY, WIDTH)
        self.positions = nn.Parameter(torch.rand(TIME, WIDTH) * 0.1 - 0.05)
        self.heads = nn.MultiheadAttention(WIDTH, 4, batch_first=True)
        self.first, self.second = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.wide, self.narrow, self.logits = nn.Linear(WIDTH, 256), nn.Linear(256, WIDTH), nn.Linear(WIDTH, VOCABULARY)
        self.register_buffer("mask", torch.triu(torch.ones(TIME, TIME, dtype=torch.bool), 1))

    def forward(self, ids):
        x = self.characters(ids) + self.positions
        x = self.first(x + self.heads(x, x, x, attn_mask=self.mask, need_weights=False)[0])
        x = self.second(x + self.narrow(F.relu(self.wide(x))))
        return self.logits(x).flatten(0, 1)


def job(name):
    if name == "perceptron":
        return 128, nn.Sequential(nn.Linear(784, 128), nn.ReLU(), nn.Linear(128, 10)), lambda n: torch.rand(n, 784), lambda n: torch.randint(10, (n,))
    if name == "convolutional":
        network = nn.Sequential(nn.Conv2d(1, 16, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(16, 32, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(800, 10))
        return 64, network, lambda n: torch.rand(n, 1, 28, 28), lambda n: torch.randint(10, (n,))
    if name == "attention":
        return 16, Block(), lambda n: torch.randint(VOCABULARY, (n, TIME)), lambda n: torch.randint(VOCABULARY, (n, TIME))
    sys.exit(f"a network is perceptron, convolutional or attention, not {name}")


def main():
    batch, network, inputs, labels = job(sys.argv[1])
    x, y = inputs(batch * STEPS), labels(batch * STEPS)
    optimizer = torch.optim.Adam(network.parameters(), lr=1e-3)

    def window():
        began = time.perf_counter()
        for indices in torch.randperm(len(x)).split(batch):
            optimizer.zero_grad()
            F.cross_entropy(network(x[indices]), y[indices].flatten()).backward()
            optimizer.step()
        return len(x) / (time.perf_counter() - began)

    window()
    print(window())


if __name__ == "__main__":
    main()
