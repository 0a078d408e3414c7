/*
 * A program on the runtime that holds much memory: it sets it, runs a kernel on a part, and checks
 * every byte again. usage: hold BYTES ROUNDS
 */
#include "host.h"

#include <stdarg.h>

#define PART 4096 /* floats that the kernel adds up */

static const char vector_add;

/* The symbols that test.h needs in a program without cases. */
struct test_case *test_cases;
void test_fail(const char *file, int line, const char *format, ...)
{
	va_list args;

	fprintf(stderr, "%s:%d: ", file, line);
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fputc('\n', stderr);
	exit(1);
}

static void round_of(uint8_t *host, uint8_t *device, float *sums, size_t bytes, int value)
{
	float want;
	int n = PART;
	void *args[] = {&device, &device, &sums, &n};

	memset(&want, value, sizeof(want));
	OK(cudaMemset(device, value, bytes));
	OK(launch(&vector_add, (dim3){PART / 128, 1, 1}, (dim3){128, 1, 1}, 0, NULL, args));
	memset(host, 0, bytes);
	download(host, device, bytes);
	for (size_t i = 0; i < bytes; i++)
		CHECK(host[i] == value);
	download(host, sums, PART * sizeof(float));
	for (int i = 0; i < PART; i++)
		CHECK(((const float *)host)[i] == want + want);
}

int main(int argc, char **argv)
{
	size_t bytes = argc > 2 ? strtoull(argv[1], NULL, 10) : 0;
	int rounds = argc > 2 ? (int)strtol(argv[2], NULL, 10) : 0;
	struct image image = image_of("kernels_sm75.ptx", 75);
	void **handle = __cudaRegisterFatBinary(&image);
	uint8_t *device, *host = malloc(bytes);
	struct cudaFuncAttributes attributes;
	float *sums;

	name_function(handle, &vector_add, "vector_add");
	__cudaRegisterFatBinaryEnd(handle);
	CHECK(host && bytes >= PART * sizeof(float));
	/*
	 * Loaded before the memory is full: nobody makes room for the driver's memory of an image.
	 */
	OK(cudaFuncGetAttributes(&attributes, &vector_add));
	OK(cudaMalloc((void **)&device, bytes));
	OK(cudaMalloc((void **)&sums, PART * sizeof(float)));
	for (int i = 1; i <= rounds; i++)
		round_of(host, device, sums, bytes, i);
	OK(cudaDeviceSynchronize());
	puts("ok");
	free(host);
	return 0;
}
