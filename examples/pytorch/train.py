#!/usr/bin/env python3
"""Trains a small transformer on made-up text: a PyTorch program to share a real GPU with.

usage: tandem run -- python3 examples/pytorch/train.py [--width N] [--layers N] [--batch N]
           [--steps N] [--idle SECONDS] [--tell] [--times]

Prints one JSON object: seconds, steps, median and longest step in ms, peak memory, and the final
loss. The seed is fixed, so two runs with the same options end with nearly the same loss, shared or
not. --idle: the host's part of a step, without work for the GPU. --tell: reports steps to tandem
(needs python/ in PYTHONPATH). --times: prints the time of each step. SIGTERM ends it after the
present step, with its report.
"""
import argparse
import json
import signal
import statistics
import time

import torch
from torch import nn

VOCABULARY = 8192
LENGTH = 256
ended = []


class Model(nn.Module):
    def __init__(self, width, layers):
        super().__init__()
        self.embed = nn.Embedding(VOCABULARY, width)
        layer = nn.TransformerEncoderLayer(width, nhead=max(1, width // 64),
                                           dim_feedforward=4 * width, dropout=0.0, batch_first=True)
        self.body = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)
        self.head = nn.Linear(width, VOCABULARY)

    def forward(self, tokens):
        mask = nn.Transformer.generate_square_subsequent_mask(tokens.shape[1], device=tokens.device)
        return self.head(self.body(self.embed(tokens), mask=mask, is_causal=True))


def make_batch(batch, generator, device):
    """Each token follows from the one before it, so that there is something to learn."""
    first = torch.randint(VOCABULARY, (batch, 1), generator=generator)
    steps = torch.arange(LENGTH + 1)
    return ((first * 31 + steps * 17) % VOCABULARY).to(device, non_blocking=True)


def train(options, device):
    torch.manual_seed(1)
    generator = torch.Generator().manual_seed(2)
    model = Model(options.width, options.layers).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4)
    took_ms, ends, loss, tell = [], [], None, lambda: None
    if options.tell:
        import tandem
        tell = tandem.step
    for _ in range(options.steps):
        if ended:
            break
        began = time.monotonic()
        tokens = make_batch(options.batch, generator, device)
        logits = model(tokens[:, :-1])
        loss = nn.functional.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten())
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        torch.cuda.synchronize()
        took_ms.append(1000 * (time.monotonic() - began))
        time.sleep(options.idle)
        tell()
        ends.append(time.monotonic())
    return took_ms, [1000 * (b - a) for a, b in zip(ends, ends[1:])], loss.item()


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--width", type=int, default=1024)
    parser.add_argument("--layers", type=int, default=12)
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--idle", type=float, default=0.0, metavar="SECONDS")
    parser.add_argument("--tell", action="store_true")
    parser.add_argument("--times", action="store_true")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: ended.append(True))
    if not torch.cuda.is_available():
        raise SystemExit("train: PyTorch sees no GPU")
    began = time.monotonic()
    took_ms, step_ms, loss = train(options, torch.device("cuda"))
    print(json.dumps({"seconds": round(time.monotonic() - began, 3), "steps": len(took_ms),
                      "step_ms_median": round(statistics.median(took_ms), 2),
                      "step_ms_longest": round(max(took_ms), 2),
                      "peak_bytes": torch.cuda.max_memory_allocated(), "loss": round(loss, 4),
                      **({"step_ms": [round(ms, 3) for ms in step_ms]} if options.times else {})}))


main()
