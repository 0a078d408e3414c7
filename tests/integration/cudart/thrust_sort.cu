// flags: -arch=compute_75 -std=c++17
/* Algorithms of the toolkit's library of templates, which asks the runtime for much. */
#include <thrust/device_vector.h>
#include <thrust/reduce.h>
#include <thrust/scan.h>
#include <thrust/sort.h>

#include <algorithm>
#include <numeric>

#include "check.h"

int main()
{
	const int n = 3000;
	std::vector<unsigned> in(n), out(n);
	unsigned seed = 9;

	for (unsigned &x : in)
		x = (seed = seed * 1664525 + 1013904223) >> 12;
	thrust::device_vector<unsigned> v(in.begin(), in.end());
	EXPECT(thrust::reduce(v.begin(), v.end(), 0u) == std::accumulate(in.begin(), in.end(), 0u));
	thrust::sort(v.begin(), v.end());
	thrust::copy(v.begin(), v.end(), out.begin());
	std::sort(in.begin(), in.end());
	EXPECT(in == out);
	thrust::inclusive_scan(v.begin(), v.end(), v.begin());
	thrust::copy(v.begin(), v.end(), out.begin());
	std::partial_sum(in.begin(), in.end(), in.begin());
	EXPECT(in == out);
	return passed();
}
