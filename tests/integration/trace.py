"""tandem.trace() counts the layers of PyTorch modules (Debian's CPU package). TAP on stdout;
argument: the build."""
import sys

from world import *

DEBIANS_PYTHON = "/usr/bin/python3"
SOURCE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "python")
PROGRAM = """
import json, torch, tandem
from torch import nn

class Own(nn.Module):
    def forward(self, x):
        return x * 2

cnn = nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2),
                    nn.Conv2d(8, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.AdaptiveAvgPool2d(1),
                    nn.Flatten(), nn.Dropout(), nn.Linear(8, 10), nn.Identity(), Own())
layer = nn.TransformerEncoderLayer(16, 2, 32, batch_first=True)
encoder = nn.Sequential(nn.Embedding(100, 16), nn.TransformerEncoder(layer, 3),
                        nn.Linear(16, 5))
shared = nn.ReLU()
print(json.dumps([tandem.trace(cnn, torch.zeros(2, 3, 16, 16)),
                  tandem.trace(encoder, torch.zeros(2, 7, dtype=torch.long)),
                  tandem.trace(nn.Sequential(shared, shared), torch.zeros(2))]))
try:
    tandem.trace(cnn, torch.zeros(2))
except Exception:
    assert not any(m._forward_hooks for m in cnn.modules())
else:
    raise SystemExit("a wrong input was taken")
"""


def has_torch():
    done = subprocess.run([DEBIANS_PYTHON, "-c", "import torch"], capture_output=True)
    return not done.returncode


def layers_that_a_batch_invokes_are_counted():
    if not has_torch():
        raise Skip("there is no python3-torch")
    done = subprocess.run([DEBIANS_PYTHON, "-c", PROGRAM], capture_output=True, text=True,
                          env=os.environ | {"PYTHONPATH": SOURCE})
    assert not done.returncode, done.stderr
    cnn, encoder, shared = json.loads(done.stdout)
    assert cnn == [2, 0, 2, 0, 0, 0, 1, 2, 1, 2, 1], cnn
    # An encoder layer has two linear layers; its attention and two norms are others.
    assert encoder[1] == 3 * 2 + 1 and encoder[3] == 1 and encoder[4] == 3, encoder
    assert encoder[10] == 3 * 3, encoder
    assert shared == [0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0], shared


run_cases([layers_that_a_batch_invokes_are_counted])
