"""A CUDA program whose handler of SIGTERM saves its memory of the GPU, and then exits with 7.
argument: where it saves."""
import ctypes
import signal
import sys
import time

SIZE = 1 << 20

cuda = ctypes.CDLL("libcuda.so.1")
context, pointer = ctypes.c_void_p(), ctypes.c_uint64()
host = ctypes.create_string_buffer(b"\x5a" * SIZE, SIZE)


def check(result):
    assert result == 0, result


def save(*_):
    saved = ctypes.create_string_buffer(SIZE)
    check(cuda.cuMemcpyDtoH_v2(saved, pointer, ctypes.c_size_t(SIZE)))
    with open(sys.argv[1], "wb") as f:
        f.write(saved.raw)
    sys.exit(7)


check(cuda.cuInit(0))
check(cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0))
check(cuda.cuCtxSetCurrent(context))
check(cuda.cuMemAlloc_v2(ctypes.byref(pointer), ctypes.c_size_t(SIZE)))
check(cuda.cuMemcpyHtoD_v2(pointer, host, ctypes.c_size_t(SIZE)))
signal.signal(signal.SIGTERM, save)
while True:
    check(cuda.cuMemcpyHtoD_v2(pointer, host, ctypes.c_size_t(SIZE)))
    time.sleep(0.01)
