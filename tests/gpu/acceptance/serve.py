"""Answers requests with a small model, one after the other, with pauses. Prints one JSON object: n,
p50_ms, p99_ms."""
import json
import time

import torch
from torch import nn

REQUESTS, WARM_UP, PAUSE_S = 400, 40, 0.01

torch.manual_seed(1)
model = nn.Sequential(nn.Linear(2048, 4096), nn.GELU(), nn.Linear(4096, 4096), nn.GELU(),
                      nn.Linear(4096, 1000)).cuda().eval()
request = torch.randn(8, 2048)
took_ms = []
with torch.no_grad():
    for i in range(WARM_UP + REQUESTS):
        began = time.monotonic()
        answer = model(request.cuda()).argmax(dim=1).cpu()
        if i >= WARM_UP:
            took_ms.append(1000 * (time.monotonic() - began))
        time.sleep(PAUSE_S)
took_ms.sort()
print(json.dumps({"n": REQUESTS, "p50_ms": round(took_ms[REQUESTS // 2], 3),
                  "p99_ms": round(took_ms[REQUESTS * 99 // 100], 3)}))
