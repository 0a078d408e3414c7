// Mathematical functions of every family, in double and in single precision.
#include <cmath>

#define UNARY(F)                                                                                   \
	F(acos)                                                                                    \
	F(acosh) F(asin) F(asinh) F(atan) F(atanh) F(cbrt) F(ceil) F(cos) F(cosh) F(erf) F(erfc)   \
		F(exp) F(exp10) F(exp2) F(expm1) F(fabs) F(floor) F(j0) F(j1) F(lgamma) F(log)     \
			F(log10) F(log1p) F(log2) F(logb) F(nearbyint) F(rint) F(round) F(sin)     \
				F(sinh) F(sqrt) F(tan) F(tanh) F(tgamma) F(trunc) F(y0) F(y1)
#define BINARY(F)                                                                                  \
	F(atan2)                                                                                   \
	F(copysign) F(fdim) F(fmax) F(fmin) F(fmod) F(hypot) F(nextafter) F(pow) F(remainder)

#define F1(name) out[n++ * 64] = name(x);
#define F2(name) out[n++ * 64] = name(x, y);
extern "C" __global__ void doubles(const double *xs, const double *ys, double *out)
{
	double x = xs[threadIdx.x], y = ys[threadIdx.x];
	int n = 0;

	out += threadIdx.x;
	UNARY(F1) BINARY(F2)
}
#undef F1
#undef F2
#define F1(name) out[n++ * 64] = name##f(x);
#define F2(name) out[n++ * 64] = name##f(x, y);
extern "C" __global__ void floats(const float *xs, const float *ys, float *out)
{
	float x = xs[threadIdx.x], y = ys[threadIdx.x];
	int n = 0;

	out += threadIdx.x;
	UNARY(F1) BINARY(F2)
}
