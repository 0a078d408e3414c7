/* Thrust: vectors, transforms, sorts and searches, from its own host code. */
// flags: -arch=compute_90
// softgpu: --model h100
#include <thrust/binary_search.h>
#include <thrust/device_vector.h>
#include <thrust/functional.h>
#include <thrust/host_vector.h>
#include <thrust/inner_product.h>
#include <thrust/reduce.h>
#include <thrust/scan.h>
#include <thrust/sequence.h>
#include <thrust/sort.h>
#include <thrust/transform.h>
#include <thrust/unique.h>

#include <algorithm>

#include "check.h"

struct saxpy {
	float k;
	__host__ __device__ float operator()(float x, float y) const { return k * x + y; }
};

int main()
{
	const int n = 10000;
	thrust::host_vector<int> h(n);
	thrust::device_vector<float> x(n), y(n, 1.0f);
	thrust::device_vector<int> keys, sums(10), found(3);

	for (int i = 0; i < n; i++)
		h[i] = i * 7919 % 503;
	keys = h;
	thrust::sequence(x.begin(), x.end());
	thrust::transform(x.begin(), x.end(), y.begin(), y.begin(), saxpy{2});
	for (int i = 0; i < n; i += 997)
		EXPECT(y[i] == 2.0f * i + 1);
	EXPECT(thrust::reduce(y.begin(), y.end(), 0.0) == double(n) * n);
	EXPECT(thrust::inner_product(x.begin(), x.begin() + 100, x.begin(), 0.0f) == 328350);
	thrust::sort(keys.begin(), keys.end());
	std::sort(h.begin(), h.end());
	EXPECT(keys == h);
	keys.erase(thrust::unique(keys.begin(), keys.end()), keys.end());
	EXPECT(keys.size() == 503);
	EXPECT(thrust::lower_bound(keys.begin(), keys.end(), 77) - keys.begin() == 77);
	thrust::inclusive_scan(keys.begin(), keys.begin() + 10, sums.begin());
	EXPECT(sums[9] == 45);
	thrust::sort(x.begin(), x.end(), thrust::greater<float>());
	EXPECT(x[0] == n - 1 && x[n - 1] == 0);
	return passed();
}
