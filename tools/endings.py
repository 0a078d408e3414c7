"""Orderly ends of scripts that start a software GPU, a daemon and programs: SIGTERM and SIGHUP
become an exit, so that `with` and `finally` clean up."""
import contextlib
import signal
import sys

_held = None  # while something begins: the signals that have come


def _end(number, _):
    if _held is not None:
        _held.append(number)
        return
    # A second signal must not cut off the clean-up of the first. A handler is used, because
    # children would inherit SIG_IGN.
    for each in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(each, lambda *_: None)
    sys.exit(128 + number)


def by_signals():
    """To be called by the main thread."""
    signal.signal(signal.SIGTERM, _end)
    if signal.getsignal(signal.SIGHUP) != signal.SIG_IGN:  # nohup
        signal.signal(signal.SIGHUP, _end)


@contextlib.contextmanager
def beginning(owner):
    """Wraps the part of __init__ or __enter__ that owner.__exit__ ends: it calls __exit__ if that
    part fails or a signal comes, which `with` does not do yet."""
    global _held
    with contextlib.ExitStack() as undo:
        undo.push(owner)
        _held = []
        try:
            yield
        finally:
            came, _held = _held, None
        if came:
            _end(came[0], None)
        undo.pop_all()
