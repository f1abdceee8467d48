"""The peer: the same model, weights, data and optimizer in PyTorch eager (optional; only benchmarks import it)."""

import os

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.query_key_value, self.output = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        B, T, width = x.shape
        packed = self.query_key_value(self.norm1(x)).split(width, dim=2)
        query, key, value = (part.view(B, T, self.heads, -1).transpose(1, 2) for part in packed)
        y = F.scaled_dot_product_attention(query, key, value, is_causal=True)
        x = x + self.output(y.transpose(1, 2).reshape(B, T, width))
        return x + self.down(F.gelu(self.up(self.norm2(x)), approximate="tanh"))


class GPT(nn.Module):
    def __init__(self, layers, heads, width, context, vocabulary):
        super().__init__()
        self.embedding, self.position_embedding = nn.Embedding(vocabulary, width), nn.Embedding(context, width)
        self.blocks = nn.ModuleList([Block(width, heads) for _ in range(layers)])
        self.norm = nn.LayerNorm(width)

    def forward(self, tokens):
        x = self.embedding(tokens) + self.position_embedding.weight[:tokens.shape[1]]
        for block in self.blocks:
            x = block(x)
        return F.linear(self.norm(x), self.embedding.weight)


def build(case):
    """The case's model, uninitialised in any way that matters: `load` follows."""
    if case.kind == "gpt":
        layers, heads, width, context, _, vocabulary = case.sizes
        return GPT(layers, heads, width, context, vocabulary)
    widths = list(zip(case.sizes, case.sizes[1:]))
    layers = []
    for i, (inputs, outputs) in enumerate(widths):
        layers += [nn.Linear(inputs, outputs)] + ([nn.ReLU()] if i < len(widths) - 1 else [])
    return nn.Sequential(*layers)


def load(model, weights):
    """Take our weights, by the order in which both name them; a linear layer here keeps W transposed."""
    for (name, parameter), ours in zip(_in_our_order(model), weights, strict=True):
        theirs = ours.T if parameter.ndim == 2 and "embedding" not in name else ours
        if tuple(theirs.shape) != tuple(parameter.shape):
            raise ValueError(f"{name}: expected {tuple(parameter.shape)}, got {theirs.shape} from our model")
        parameter.data.copy_(torch.from_numpy(np.ascontiguousarray(theirs)))


def _in_our_order(model):
    if not isinstance(model, GPT):
        return list(model.named_parameters())
    order = ["norm1", "query_key_value", "output", "norm2", "up", "down"]
    named = dict(model.named_parameters())
    names = ["embedding.weight", "position_embedding.weight"]
    names += [f"blocks.{i}.{part}.{kind}" for i in range(len(model.blocks)) for part in order
              for kind in ("weight", "bias")]
    return [(name, named[name]) for name in [*names, "norm.weight", "norm.bias"]]


class Peer:
    """Trains the case: `step()` -> the loss."""

    def __init__(self, case, weights, inputs, targets):
        torch.set_num_threads(case.ranks * case.threads)
        device = "cuda" if os.environ.get("MINIGPT_DEVICE") == "cuda" else "cpu"
        self.model = build(case).to(device)
        load(self.model, weights)
        self.inputs, self.targets = torch.from_numpy(inputs).to(device), torch.from_numpy(targets).to(device)
        parameters = list(self.model.parameters())
        if case.kind == "mlp":
            self.optimizer = torch.optim.SGD(parameters, lr=0.1)
            return
        groups = [{"params": [p for p in parameters if p.ndim > 1], "weight_decay": 0.1},
                  {"params": [p for p in parameters if p.ndim == 1], "weight_decay": 0.0}]
        options = {"fused": True} if case.fused else {}
        self.optimizer = torch.optim.AdamW(groups, lr=1e-3, betas=(0.9, 0.95), **options)

    def step(self):
        self.optimizer.zero_grad(set_to_none=True)
        logits = self.model(self.inputs)
        loss = F.cross_entropy(logits.view(-1, logits.shape[-1]), self.targets.view(-1))
        loss.backward()
        self.optimizer.step()
        return loss.item()
