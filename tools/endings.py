"""How the scripts end that start a software GPU, a daemon and programs: SIGTERM and SIGHUP become an exit, so that `with` and `finally` take along what there is."""
import contextlib
import signal
import sys

_held = None  # while something begins: the signals that have come


def _end(number, _):
    if _held is not None:
        _held.append(number)
        return
    # A second one must not cut off what the first has begun; a handler, as SIG_IGN would be inherited by what is started meanwhile.
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
    """Around what owner.__exit__ ends, in __init__ or __enter__, where `with` does not yet call that: it does so here if the beginning fails or a signal comes."""
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
