/*
 * The kernel of the serving example. serve.ptx beside it is made by:
 * nvcc -ptx -arch=compute_75 -o serve.ptx serve.cu
 */

/* One fully connected layer with ReLU: out[row][col] = max(0, sum in[row][k] * weights[k][col]). */
extern "C" __global__ void layer(
	const float *in, const float *weights, float *out, unsigned width, unsigned rows)
{
	unsigned i = blockIdx.x * blockDim.x + threadIdx.x, row = i / width, col = i % width;
	float sum = 0;

	if (row >= rows)
		return;
	for (unsigned k = 0; k < width; k++)
		sum += in[row * width + k] * weights[k * width + col];
	out[i] = sum > 0 ? sum : 0;
}
