// Half precision of both kinds, scalar and in pairs. nvcc -ptx -std=c++17 -arch=sm_90 -o half.ptx
#include <cuda_bf16.h>
#include <cuda_fp16.h>

// Sums of products, each pair in half precision and the total in single.
extern "C" __global__ void half2_dot(const __half2 *x, const __half2 *y, float *out, int n)
{
	__half2 sum = __float2half2_rn(0.0f);

	for (int i = threadIdx.x; i < n; i += blockDim.x)
		sum = __hfma2(x[i], y[i], sum);
	out[threadIdx.x] = __low2float(sum) + __high2float(sum);
}

extern "C" __global__ void bf16_axpy(float k, const __nv_bfloat16 *x, __nv_bfloat16 *y, int n)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i < n)
		y[i] = __hfma(__float2bfloat16(k), x[i], y[i]);
}

// Eight results for each pair of operands.
extern "C" __global__ void half_ops(const __half *x, const __half *y, __half *out)
{
	int t = threadIdx.x;
	__half a = x[t], b = y[t];

	out += 8 * t;
	out[0] = a + b;
	out[1] = a - b;
	out[2] = a * b;
	out[3] = __hfma(a, b, a);
	out[4] = __hmin(a, b);
	out[5] = __hmax(a, b);
	out[6] = __hneg(__habs(a));
	out[7] = a < b ? a : __hfma_sat(a, b, b);
}

extern "C" __global__ void bf16_ops(
	const __nv_bfloat16 *x, const __nv_bfloat16 *y, __nv_bfloat16 *out)
{
	int t = threadIdx.x;
	__nv_bfloat16 a = x[t], b = y[t];

	out += 8 * t;
	out[0] = a + b;
	out[1] = a - b;
	out[2] = a * b;
	out[3] = __hfma(a, b, a);
	out[4] = __hmin(a, b);
	out[5] = __hmax(a, b);
	out[6] = __hneg(__habs(a));
	out[7] = a < b ? a : __hfma_relu(a, b, b);
}

extern "C" __global__ void half2_ops(
	const __half2 *x, const __half2 *y, __half2 *out, unsigned *masks)
{
	int t = threadIdx.x;
	__half2 a = x[t], b = y[t];

	out += 6 * t;
	masks += 3 * t;
	out[0] = __hadd2(a, b);
	out[1] = __hmul2(a, __lowhigh2highlow(b));
	out[2] = __hmin2(a, b);
	out[3] = __hmax2(a, b);
	out[4] = __hneg2(__habs2(a));
	out[5] = __hlt2(a, b);
	masks[0] = __hge2_mask(a, b);
	masks[1] = __hbeq2(a, b) | __hbltu2(a, b) << 1;
	masks[2] = __hisnan2(a).x != __half(0.0f);
}

extern "C" __global__ void bf162_ops(
	const __nv_bfloat162 *x, const __nv_bfloat162 *y, __nv_bfloat162 *out)
{
	int t = threadIdx.x;
	__nv_bfloat162 a = x[t], b = y[t];

	out += 5 * t;
	out[0] = __hadd2(a, b);
	out[1] = __hfma2(a, b, a);
	out[2] = __hmin2(a, b);
	out[3] = __hneg2(__habs2(a));
	out[4] = __hge2(a, b);
}

// Every rounding and type that a conversion may have.
extern "C" __global__ void half_convert(
	const float *x, const int *n, unsigned short *out, float *wide, long long *whole)
{
	int t = threadIdx.x;
	float v = x[t];
	__half h = __float2half_rn(v);
	__nv_bfloat16 b = __float2bfloat16_rn(v);

	out += 12 * t;
	out[0] = __half_as_ushort(h);
	out[1] = __half_as_ushort(__float2half_rz(v));
	out[2] = __half_as_ushort(__float2half_rd(v));
	out[3] = __half_as_ushort(__float2half_ru(v));
	out[4] = __bfloat16_as_ushort(b);
	out[5] = __bfloat16_as_ushort(__float2bfloat16_rz(v));
	out[6] = __half_as_ushort(__int2half_rn(n[t]));
	out[7] = __half_as_ushort(__double2half((double)v * 1.0000001));
	out[8] = __half_as_ushort(hfloor(h));
	out[9] = __half_as_ushort(hrint(h));
	out[10] = __half_as_ushort(__float22half2_rn(make_float2(v, -v)).y);
	out[11] = __bfloat16_as_ushort(__floats2bfloat162_rn(v, -v).y);
	wide[2 * t] = __half2float(h);
	wide[2 * t + 1] = __bfloat162float(b);
	whole[2 * t] = __half2int_rz(h);
	whole[2 * t + 1] = __half2ll_rd(h);
}

extern "C" __global__ void half_functions(const float *x, float *out)
{
	int t = threadIdx.x;
	__half h = __float2half(x[t]);
	__nv_bfloat16 b = __float2bfloat16(x[t]);

	out += 8 * t;
	out[0] = __half2float(hexp2(h));
	out[1] = __half2float(hsqrt(__habs(h)));
	out[2] = __half2float(__h2div(__half2half2(h), __float2half2_rn(3.0f)).x);
	out[3] = __half2float(htanh_approx(h));
	out[4] = __bfloat162float(hexp2(b));
	out[5] = __bfloat162float(htanh_approx(b));
	out[6] = __half2float(hrcp(h));
	out[7] = __bfloat162float(hlog2(__habs(b)));
}

// Atomic sums; every thread adds small whole numbers, so that the order does not matter.
extern "C" __global__ void half_atomics(
	__half2 *h2, __nv_bfloat162 *b2, __half *h, __nv_bfloat16 *b)
{
	float v = (float)(threadIdx.x & 3);

	atomicAdd(h2, __floats2half2_rn(v, 1.0f));
	atomicAdd(b2, __floats2bfloat162_rn(1.0f, v));
	atomicAdd(h, __float2half(v));
	atomicAdd(b, __float2bfloat16(1.0f));
}
