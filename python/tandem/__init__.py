"""Hints of a Python program to tandem; none is required. Plain ctypes: no build, no dependency.

    import tandem

    for batch in tandem.steps(loader):      # each turn of the loop is a step
        train(batch)

    with tandem.Step():                     # or: each of these
        train(batch)

    tandem.step()                           # or: a step has ended here

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

__all__ = ["Step", "is_here", "step", "steps", "torch_allocator"]


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
