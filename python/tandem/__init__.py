"""What a Python program may tell tandem; nothing of it is needed. Plain ctypes: no build, no dependency.

    import tandem

    for batch in tandem.steps(loader):      # each turn of the loop is a step
        train(batch)

    with tandem.Step():                     # or: each of these
        train(batch)

    tandem.step()                           # or: a step has ended here

    torch.cuda.memory.change_current_allocator(tandem.torch_allocator())    # before PyTorch uses a GPU

With that allocator, memory that PyTorch only keeps for later is dropped at a step's end when tandem has less for it, instead of being moved.

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

    _allocator_step = found
    return CUDAPluggableAllocator(library, "tandem_malloc", "tandem_free")


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
