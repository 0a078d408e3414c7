"""A product of matrices of small integers, exact in single precision, and the sum of its elements.
usage: sums.py cupy|jax"""
import sys

N = 1024
if sys.argv[1] == "cupy":
    import cupy

    a = (cupy.arange(N * N, dtype=cupy.int32).reshape(N, N) % 7).astype(cupy.float32)
    print(int((a @ a.T).astype(cupy.int64).sum()))
else:
    import jax
    import jax.numpy as jnp

    a = (jnp.arange(N * N, dtype=jnp.int32).reshape(N, N) % 7).astype(jnp.float32)
    product = jnp.matmul(a, a.T, precision=jax.lax.Precision.HIGHEST)
    print(int(sum(int(row) for row in product.astype(jnp.int32).sum(axis=1))))
