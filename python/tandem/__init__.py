"""What a Python program may tell tandem; nothing of it is needed. Plain ctypes: no build, no dependency.

    import tandem

    for batch in tandem.steps(loader):      # each turn of the loop is a step
        train(batch)

    with tandem.Step():                     # or: each of these
        train(batch)

    tandem.step()                           # or: a step has ended here

Without tandem around the program these do nothing.
"""
import ctypes

__all__ = ["Step", "is_here", "step", "steps"]


def _find():
    """The function of libtandem.so, if that is loaded into this process."""
    try:
        function = ctypes.CDLL(None).tandem_step
    except (AttributeError, OSError, TypeError):
        return None
    function.argtypes, function.restype = [], None
    return function


_step = _find()


def is_here():
    """Does this program run under tandem?"""
    return _step is not None


def step():
    """A step (mini-batch) has ended, and the next one begins. Behind the synchronisation, if the step has one."""
    if _step:
        _step()


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
