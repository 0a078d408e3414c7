// The kernels of CUB's algorithms for the whole device, for one or two types each.
#include <cub/cub.cuh>

void instantiate(void *temp, size_t bytes, int *i, float *f, double *d)
{
	cub::DeviceReduce::Sum(temp, bytes, i, i, 1);
	cub::DeviceReduce::Max(temp, bytes, f, f, 1);
	cub::DeviceReduce::Sum(temp, bytes, d, d, 1);
	cub::DeviceScan::ExclusiveSum(temp, bytes, i, i, 1);
	cub::DeviceScan::InclusiveSum(temp, bytes, f, f, 1);
	cub::DeviceRadixSort::SortKeys(temp, bytes, i, i, 1);
	cub::DeviceRadixSort::SortPairs(temp, bytes, f, f, i, i, 1);
	cub::DeviceSelect::Flagged(temp, bytes, i, i, i, i, 1);
	cub::DeviceHistogram::HistogramEven(temp, bytes, i, i, 257, 0, 256, 1);
}
