"""Hints of a Python program to tandem; none is required. Plain ctypes: no build, no dependency.

    import tandem

    for batch in tandem.steps(loader):      # each turn of the loop is a step
        train(batch)

    with tandem.Step():                     # or: each of these
        train(batch)

    tandem.step()                           # or: a step has ended here

    # A service, with an objective of 50 ms for its P99: a request has come, and is answered.
    tandem.service("search", objective=0.05, batch_max=32)
    token = tandem.arrived()
    tandem.answered(token)

    # A training job: which layers its network has, seen in one mini-batch.
    tandem.trace(model, batch)

    # before PyTorch uses a GPU
    torch.cuda.memory.change_current_allocator(tandem.torch_allocator())

With that allocator, memory that PyTorch only caches is dropped at a step's end when tandem has less
for it, instead of being moved. An allocation that finds no memory raises RuntimeError("CUDA out of
memory. ..."), the base class of torch.OutOfMemoryError. The allocator has no pools: allocations
within torch.cuda.graph, and its users such as torch.compile(mode="reduce-overhead"), raise
RuntimeError too. PyTorch keeps no statistics of such an allocator (torch.cuda.memory_stats fails).

Without tandem around the program none of this changes anything.
"""
import ctypes
import os

__all__ = ["Step", "answered", "arrived", "batch", "is_here", "layers", "ready", "service", "step",
           "steps", "torch_allocator", "trace"]


def _find(library, name):
    """Returns that function without arguments, or None. library: a path; None: any library of this
    process."""
    try:
        function = getattr(ctypes.CDLL(library), name)
    except (AttributeError, OSError, TypeError):
        return None
    function.argtypes, function.restype = [], None
    return function


_step = _find(None, "tandem_step")
_allocator_step = None


def is_here():
    """Does this program run under tandem?"""
    return _step is not None


def step():
    """Reports that a step (mini-batch) has ended and the next one begins. Call it after the step's
    synchronisation, if there is one."""
    if _step:
        _step()
    if _allocator_step:
        _allocator_step()


def _typed(name, result, *arguments):
    function = _find(None, name)
    if function:
        function.argtypes, function.restype = list(arguments), result
    return function


_service = _typed("tandem_service", ctypes.c_int, ctypes.c_char_p, ctypes.c_uint64, ctypes.c_uint32)
_arrived = _typed("tandem_arrived", ctypes.c_uint64, ctypes.c_uint32)
_answered = _typed("tandem_answered", None, ctypes.c_uint64, ctypes.c_uint32)
_batch = _typed("tandem_batch", ctypes.c_uint32, ctypes.c_uint32)
_ready = _typed("tandem_ready", None)
_layers = _typed("tandem_layers", None, ctypes.POINTER(ctypes.c_uint32))
LAYER_KINDS = 11


def service(name, objective=0.0, batch_max=0):
    """Declares that this process answers requests. objective: seconds, for the P99; 0: none."""
    if not name or len(name.encode()) > 63:
        raise ValueError(f"invalid name {name!r} of a service: expected 1 to 63 bytes")
    if _service and _service(name.encode(), round(objective * 1e9), batch_max):
        raise MemoryError("tandem cannot count the service's requests")


def arrived(requests=1):
    """So many requests have come together. Returns a token for answered()."""
    return _arrived(requests) if _arrived else 0


def answered(token, requests=1):
    """So many requests of that token have been answered."""
    if _answered:
        _answered(token, requests)


def batch(mine):
    """The batch to run with next: tandem's, or `mine` where it has chosen none."""
    return _batch(mine) if _batch else mine


def ready():
    """This service can answer requests. If it is a second instance, which takes over from a first
    one, that one gets SIGTERM now: see tandem_ready() in tandem/tandem.h."""
    if _ready:
        _ready()


def layers(counts):
    """How many layers of each kind the network has: 11 counts, in the order of tandem/tandem.h."""
    if len(counts) != LAYER_KINDS:
        raise ValueError(f"{len(counts)} counts of layers: expected {LAYER_KINDS}")
    if _layers:
        _layers((ctypes.c_uint32 * LAYER_KINDS)(*counts))


# torch.nn.modules.<file> -> the kind of a layer that is defined there; others have rules below.
_KIND_OF_FILE = {"conv": 0, "activation": 2, "sparse": 3, "flatten": 6, "batchnorm": 7,
                 "pooling": 9}
_NO_LAYERS = {"container", "dropout", "loss", "distance"}


def _kind(module, inputs):
    """The kind of layer that this call of a PyTorch module is, or None: it is none."""
    name = type(module).__name__
    if name.endswith("EncoderLayer"):
        return 4
    if name.endswith("DecoderLayer"):
        return 5
    known = next((kind for kind in type(module).__mro__
                  if kind.__module__.startswith("torch.nn.modules.")), None)
    file = known.__module__.rsplit(".", 1)[1] if known else None
    if file == "linear":
        if known.__name__ == "Identity":
            return None
        return 8 if inputs and getattr(inputs[0], "ndim", 0) == 2 else 1
    if file in _KIND_OF_FILE and known.__name__ not in ("MultiheadAttention", "Unflatten"):
        return _KIND_OF_FILE[file]
    is_leaf = next(module.children(), None) is None
    return 10 if is_leaf and file not in _NO_LAYERS or file == "activation" else None


def trace(module, *inputs, **keywords):
    """Calls a PyTorch module with a mini-batch, counts the layers that this invokes, and tells them
    to tandem as layers() does. Returns the 11 counts. Functions, such as F.relu, are not seen.

    A linear layer counts as fully connected where its input has two dimensions, as in the ONNX file
    that PyTorch writes: there it is the operator Gemm, and MatMul otherwise."""
    counts = [0] * LAYER_KINDS

    def count(called, given, _):
        kind = _kind(called, given)
        if kind is not None:
            counts[kind] += 1

    hooks = [part.register_forward_hook(count) for part in module.modules()]
    try:
        module(*inputs, **keywords)
    finally:
        for hook in hooks:
            hook.remove()
    layers(counts)
    return counts


def _candidates():
    """Lists paths of libtandem_alloc.so: beside libtandem.so, in a build of tandem, and for the
    loader."""
    name = "libtandem_alloc.so"
    for preloaded in os.environ.get("LD_PRELOAD", "").replace(":", " ").split():
        folder = os.path.dirname(preloaded)
        yield os.path.join(folder, name)
        yield os.path.join(folder, "..", "alloc", name)
    yield name


def _address(library, name):
    return ctypes.cast(getattr(ctypes.CDLL(library), name), ctypes.c_void_p).value


def torch_allocator(path=None):
    """Returns tandem's caching allocator for PyTorch. path: of libtandem_alloc.so at an unusual
    place."""
    global _allocator_step
    tried = [path] if path else list(_candidates())
    for library in tried:
        found = _find(library, "tandem_alloc_step")
        if found:
            break
    else:
        raise OSError("libtandem_alloc.so was not found: tried " + ", ".join(tried))
    from torch.cuda.memory import CUDAPluggableAllocator

    allocator = CUDAPluggableAllocator(library, "tandem_torch_malloc", "tandem_free")
    inner = allocator.allocator()
    if not hasattr(inner, "set_record_stream_fn"):
        raise RuntimeError("this PyTorch cannot tell an allocator of Tensor.record_stream")
    # Freed blocks are handed out again. Without this call, a tensor that a second stream still uses
    # (Tensor.record_stream) would be overwritten.
    inner.set_record_stream_fn(_address(library, "tandem_record_stream"))
    inner.set_reset_fn(_address(library, "tandem_alloc_empty"))
    _allocator_step = found
    return allocator


def steps(iterable):
    """Hands out what the iterable does; what is done with each item is a step."""
    for item in iterable:
        yield item
        step()


class Step:
    """A with-block that is a step. One that ends with an exception is none."""

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        if kind is None:
            step()
        return False
