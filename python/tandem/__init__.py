"""What a Python program may tell tandem; nothing of it is needed. Plain ctypes: no build, no dependency.

    import tandem

    for batch in tandem.steps(loader):      # each turn of the loop is a step
        train(batch)

    with tandem.Step():                     # or: each of these
        train(batch)

    tandem.step()                           # or: a step has ended here

    torch.cuda.memory.change_current_allocator(tandem.torch_allocator())    # before PyTorch uses a GPU

With that allocator, memory that PyTorch only keeps for later is dropped at a step's end when tandem has less for it, instead of being moved. Where there is no memory at all an allocation
raises RuntimeError("CUDA out of memory. ..."), which is what torch.OutOfMemoryError is a kind of. It has no pools: an allocation within torch.cuda.graph, and what uses that
(torch.compile(mode="reduce-overhead")), raises RuntimeError, too. PyTorch keeps no statistics of such an allocator (torch.cuda.memory_stats fails).

Without tandem around the program all of this changes nothing.
"""
import ctypes
import os

__all__ = ["Step", "is_here", "step", "steps", "torch_allocator"]


def _find(library, name):
    """That function without arguments, if the library has it. library: a path; None: what is loaded into this process."""
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
    """A step (mini-batch) has ended, and the next one begins. Behind the synchronisation, if the step has one."""
    if _step:
        _step()
    if _allocator_step:
        _allocator_step()


def _candidates():
    """Where libtandem_alloc.so may be: beside libtandem.so, in a build of tandem, or where the loader looks."""
    name = "libtandem_alloc.so"
    for preloaded in os.environ.get("LD_PRELOAD", "").replace(":", " ").split():
        folder = os.path.dirname(preloaded)
        yield os.path.join(folder, name)
        yield os.path.join(folder, "..", "alloc", name)
    yield name


def _address(library, name):
    return ctypes.cast(getattr(ctypes.CDLL(library), name), ctypes.c_void_p).value


def torch_allocator(path=None):
    """tandem's caching allocator as PyTorch takes it. path: of libtandem_alloc.so, if that is at an unusual place."""
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
    # What is kept is handed out again, so without this a tensor that a second stream still uses (Tensor.record_stream) would be overwritten.
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
