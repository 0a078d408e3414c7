/* CUB's algorithms for the whole device, by CUB's own host code. */
#include <cub/cub.cuh>

#include <algorithm>
#include <numeric>

#include "check.h"

/* Calls twice: for the bytes that it needs, and with them. */
template <typename F> static void with_space(F algorithm)
{
	size_t bytes = 0;
	void *space;

	CHECK(algorithm(nullptr, bytes));
	CHECK(cudaMalloc(&space, bytes));
	CHECK(algorithm(space, bytes));
	CHECK(cudaFree(space));
}

template <typename T> struct on_device {
	T *at;
	size_t n;
	on_device(const std::vector<T> &from) : n(from.size())
	{
		CHECK(cudaMalloc(&at, n * sizeof(T)));
		CHECK(cudaMemcpy(at, from.data(), n * sizeof(T), cudaMemcpyHostToDevice));
	}
	~on_device() { cudaFree(at); }
	std::vector<T> read() const
	{
		std::vector<T> to(n);

		CHECK(cudaMemcpy(to.data(), at, n * sizeof(T), cudaMemcpyDeviceToHost));
		return to;
	}
};

template <typename T> static std::vector<T> numbers(int n)
{
	std::vector<T> v(n);

	for (int i = 0; i < n; i++)
		v[i] = T((i * 7919ll) % 10007) - T(500);
	return v;
}

template <typename T> static void reduce_and_scan(int n)
{
	std::vector<T> h = numbers<T>(n), sums(n), want(n);
	on_device<T> in(h), out(sums);

	with_space([&](void *space, size_t &bytes) {
		return cub::DeviceReduce::Sum(space, bytes, in.at, out.at, n);
	});
	EXPECT(out.read()[0] == std::accumulate(h.begin(), h.end(), T(0)));
	with_space([&](void *space, size_t &bytes) {
		return cub::DeviceReduce::Max(space, bytes, in.at, out.at, n);
	});
	EXPECT(out.read()[0] == *std::max_element(h.begin(), h.end()));
	with_space([&](void *space, size_t &bytes) {
		return cub::DeviceScan::InclusiveSum(space, bytes, in.at, out.at, n);
	});
	std::partial_sum(h.begin(), h.end(), want.begin());
	EXPECT(out.read() == want);
}

template <typename T> static void sort(int n)
{
	std::vector<T> h = numbers<T>(n);
	std::vector<int> order(n), got;
	on_device<T> in(h), out(h);
	std::iota(order.begin(), order.end(), 0);
	on_device<int> from(order), to(order);

	with_space([&](void *space, size_t &bytes) {
		return cub::DeviceRadixSort::SortPairs(
			space, bytes, in.at, out.at, from.at, to.at, n);
	});
	std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return h[a] < h[b]; });
	EXPECT(to.read() == order);
	with_space([&](void *space, size_t &bytes) {
		return cub::DeviceRadixSort::SortKeysDescending(space, bytes, in.at, out.at, n);
	});
	std::sort(h.begin(), h.end(), std::greater<T>());
	EXPECT(out.read() == h);
}

static void select_and_count(int n)
{
	std::vector<int> h = numbers<int>(n), kept, flags(n), bins(16), want(16), got;
	int count;

	for (int i = 0; i < n; i++) {
		flags[i] = h[i] % 3 == 0;
		if (flags[i])
			kept.push_back(h[i]);
		if (h[i] >= 0 && h[i] < 1600)
			want[h[i] / 100]++;
	}
	on_device<int> in(h), marks(flags), out(h), counts(bins);

	with_space([&](void *space, size_t &bytes) {
		return cub::DeviceSelect::Flagged(
			space, bytes, in.at, marks.at, out.at, counts.at, n);
	});
	count = counts.read()[0];
	got = out.read();
	got.resize(count);
	EXPECT(got == kept);
	with_space([&](void *space, size_t &bytes) {
		return cub::DeviceHistogram::HistogramEven(
			space, bytes, in.at, counts.at, 17, 0, 1600, n);
	});
	EXPECT(counts.read() == want);
}

int main()
{
	for (int n : {1, 100, 5000, 40000}) {
		reduce_and_scan<int>(n);
		reduce_and_scan<double>(n);
		sort<int>(n);
		sort<float>(n);
		select_and_count(n);
	}
	CHECK(cudaDeviceSynchronize());
	return passed();
}
