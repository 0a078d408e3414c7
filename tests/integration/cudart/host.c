/*
 * Programs as nvcc would build them, registered by hand from committed PTX, so that the runtime is
 * tested without a toolkit.
 */
#include "host.h"

#include <unistd.h>

/* Stand for the host's stubs: only their addresses matter. */
static const char vector_add, transpose, reduce, scan, histogram, variables, matmul, nowhere;
static char table[16], weights[8];

static void **program(void)
{
	static struct image image;
	static void **handle;

	if (handle)
		return handle;
	image = image_of("kernels_sm75.ptx", 75);
	handle = __cudaRegisterFatBinary(&image);
	CHECK(handle);
	name_function(handle, &vector_add, "vector_add");
	name_function(handle, &transpose, "transpose");
	name_function(handle, &reduce, "reduce_shared");
	name_function(handle, &scan, "scan");
	name_function(handle, &histogram, "histogram");
	name_function(handle, &variables, "variables");
	name_function(handle, &matmul, "matmul");
	name_function(handle, &nowhere, "is_not_there");
	name_variable(handle, table, "table", sizeof(table));
	name_variable(handle, weights, "weights", sizeof(weights));
	__cudaRegisterFatBinaryEnd(handle);
	return handle;
}

TEST(vectors_are_added)
{
	enum { N = 300 };
	float a[N], b[N], c[N];
	void *da, *db, *dc;
	int n = N;
	void *args[] = {&da, &db, &dc, &n};

	program();
	for (int i = 0; i < N; i++) {
		a[i] = (float)i;
		b[i] = 2.5f * (float)i;
	}
	da = upload(a, sizeof(a));
	db = upload(b, sizeof(b));
	dc = upload(NULL, sizeof(c));
	OK(launch(&vector_add, (dim3){3, 1, 1}, (dim3){128, 1, 1}, 0, NULL, args));
	download(c, dc, sizeof(c));
	for (int i = 0; i < N; i++)
		CHECK(c[i] == a[i] + b[i]);
	OK(cudaFree(da));
	OK(cudaFree(db));
	OK(cudaFree(dc));
}

TEST(a_matrix_is_transposed_in_blocks_of_two_dimensions)
{
	enum { N = 40 };
	int in[N * N], out[N * N], n = N;
	void *from, *to;
	void *args[] = {&from, &to, &n};

	program();
	for (int i = 0; i < N * N; i++)
		in[i] = i;
	from = upload(in, sizeof(in));
	to = upload(NULL, sizeof(out));
	OK(launch(&transpose, (dim3){3, 3, 1}, (dim3){16, 16, 1}, 0, NULL, args));
	download(out, to, sizeof(out));
	for (int i = 0; i < N * N; i++)
		CHECK_EQ(out[i], in[i % N * N + i / N]);
}

TEST(a_sum_uses_shared_memory_that_the_launch_gives_on_a_stream)
{
	enum { N = 1000 };
	int in[N], n = N, sum = 0, got;
	CUstream stream;
	void *from, *to;
	void *args[] = {&from, &to, &n};

	program();
	for (int i = 0; i < N; i++)
		sum += in[i] = i * 3 % 17;
	OK(cudaStreamCreate(&stream));
	from = upload(in, sizeof(in));
	to = upload(NULL, sizeof(got));
	OK(launch(&reduce, (dim3){4, 1, 1}, (dim3){256, 1, 1}, 256 * sizeof(int), stream, args));
	OK(cudaStreamSynchronize(stream));
	download(&got, to, sizeof(got));
	CHECK_EQ(got, sum);
	OK(cudaStreamDestroy(stream));
}

TEST(a_scan_waits_at_barriers)
{
	unsigned in[256], out[256], sum = 0;
	void *from, *to;
	void *args[] = {&from, &to};

	program();
	for (unsigned i = 0; i < 256; i++)
		in[i] = i * i;
	from = upload(in, sizeof(in));
	to = upload(NULL, sizeof(out));
	OK(cudaLaunchKernel(&scan, (dim3){1, 1, 1}, (dim3){256, 1, 1}, args, 0, NULL));
	download(out, to, sizeof(out));
	for (unsigned i = 0; i < 256; i++)
		CHECK_EQ(out[i], sum += in[i]);
}

TEST(a_histogram_counts_by_atomics)
{
	enum { N = 5000 };
	uint8_t in[N];
	unsigned wanted[256] = {0}, got[256];
	int n = N;
	void *from, *bins;
	void *args[] = {&from, &bins, &n};

	program();
	for (int i = 0; i < N; i++)
		wanted[in[i] = (uint8_t)(i * i / 7)]++;
	from = upload(in, sizeof(in));
	bins = upload(NULL, sizeof(got));
	OK(launch(&histogram, (dim3){2, 1, 1}, (dim3){128, 1, 1}, 0, NULL, args));
	download(got, bins, sizeof(got));
	CHECK(!memcmp(got, wanted, sizeof(got)));
}

TEST(matrices_are_multiplied_in_tiles)
{
	enum { N = 32 };
	static float a[N * N], b[N * N], c[N * N];
	int n = N;
	void *da, *db, *dc;
	void *args[] = {&da, &db, &dc, &n};

	program();
	for (int i = 0; i < N * N; i++) {
		a[i] = (float)(i % 5);
		b[i] = (float)(i % 3 - 1);
	}
	da = upload(a, sizeof(a));
	db = upload(b, sizeof(b));
	dc = upload(NULL, sizeof(c));
	OK(launch(&matmul, (dim3){2, 2, 1}, (dim3){16, 16, 1}, 0, NULL, args));
	download(c, dc, sizeof(c));
	for (int i = 0; i < N * N; i++) {
		float sum = 0;

		for (int k = 0; k < N; k++)
			sum += a[i / N * N + k] * b[k * N + i % N];
		CHECK(c[i] == sum);
	}
}

TEST(variables_are_known_by_their_addresses_in_the_program)
{
	const int in[4] = {1, 2, 3, 4};
	const int16_t ones[4] = {1, 1, 1, 1};
	int out[4], got[32];
	size_t bytes;
	void *to;
	void *args[] = {&to};

	program();
	OK(cudaMemcpyFromSymbol(out, table, sizeof(out), 0, cudaMemcpyDeviceToHost));
	CHECK_EQ(out[1], 20);
	OK(cudaGetSymbolSize(&bytes, weights));
	CHECK_EQ(bytes, 8);
	OK(cudaMemcpyToSymbol(table, in, sizeof(in), 0, cudaMemcpyHostToDevice));
	OK(cudaMemcpyToSymbol(weights, ones, sizeof(ones), 0, cudaMemcpyHostToDevice));
	to = upload(NULL, sizeof(got));
	OK(launch(&variables, (dim3){1, 1, 1}, (dim3){32, 1, 1}, 0, NULL, args));
	download(got, to, sizeof(got));
	CHECK_EQ(got[0], 2);
	CHECK_EQ(got[31], 3);
	OK(cudaMemcpyFromSymbol(out, table, 4, 12, cudaMemcpyDeviceToHost));
	CHECK_EQ(out[0], 77);
	CHECK_EQ(cudaMemcpyToSymbol(table, in, 8, 12, cudaMemcpyHostToDevice),
		cudaErrorInvalidValue);
	CHECK_EQ(cudaGetSymbolSize(&bytes, &vector_add), cudaErrorInvalidSymbol);
	(void)cudaGetLastError();
}

TEST(what_is_not_registered_is_no_kernel)
{
	static const char stranger;
	struct cudaFuncAttributes attributes;
	dim3 one = {1, 1, 1};
	size_t shared;
	CUstream stream;

	program();
	CHECK_EQ(launch(&stranger, one, one, 0, NULL, NULL), cudaErrorInvalidDeviceFunction);
	CHECK_EQ(cudaLaunchKernel(table, one, one, NULL, 0, NULL), cudaErrorInvalidDeviceFunction);
	/* Registered, but not in the image. */
	CHECK_EQ(cudaLaunchKernel(&nowhere, one, one, NULL, 0, NULL),
		cudaErrorInvalidDeviceFunction);
	CHECK_EQ(cudaFuncGetAttributes(&attributes, NULL), cudaErrorInvalidDeviceFunction);
	CHECK_EQ(cudaGetLastError(), cudaErrorInvalidDeviceFunction);
	CHECK_EQ(cudaGetLastError(), cudaSuccess);
	CHECK_EQ(__cudaPopCallConfiguration(&one, &one, &shared, &stream),
		cudaErrorMissingConfiguration);
	for (int i = 0; i < 16; i++)
		CHECK_EQ(__cudaPushCallConfiguration(one, one, 0, NULL), 0);
	CHECK_EQ(__cudaPushCallConfiguration(one, one, 0, NULL), cudaErrorMissingConfiguration);
	for (int i = 0; i < 16; i++)
		OK(__cudaPopCallConfiguration(&one, &one, &shared, &stream));
	(void)cudaGetLastError();
}

/* The error of a kernel in an image that is not what it should be. */
static int error_of(struct image *image)
{
	static const char kernel;
	dim3 one = {1, 1, 1};
	void **handle = __cudaRegisterFatBinary(image);
	int error;

	name_function(handle, &kernel, "vector_add");
	__cudaRegisterFatBinaryEnd(handle);
	error = launch(&kernel, one, one, 0, NULL, NULL);
	CHECK_EQ(cudaGetLastError(), error);
	__cudaUnregisterFatBinary(handle);
	CHECK_EQ(launch(&kernel, one, one, 0, NULL, NULL), cudaErrorInvalidDeviceFunction);
	(void)cudaGetLastError();
	return error;
}

TEST(a_malformed_image_fails_when_it_is_used)
{
	struct image image = image_of("kernels_sm75.ptx", 75), bad = image;
	const void *none[] = {NULL}, *one[] = {&bad, NULL};

	CHECK_EQ(error_of(NULL), cudaErrorInvalidKernelImage);
	bad.magic++;
	CHECK_EQ(error_of(&bad), cudaErrorInvalidKernelImage);
	bad = image;
	bad.version = 7;
	CHECK_EQ(error_of(&bad), cudaErrorInvalidKernelImage);
	bad = image;
	bad.data = NULL;
	CHECK_EQ(error_of(&bad), cudaErrorInvalidKernelImage);
	bad.data = "no fat binary, but long enough";
	CHECK_EQ(error_of(&bad), cudaErrorInvalidKernelImage);
	bad = image;
	bad.version = 2;
	CHECK_EQ(error_of(&bad), cudaErrorInvalidKernelImage);
	bad.linked = none;
	bad.data = NULL;
	CHECK(error_of(&bad) != cudaSuccess);
	bad.linked = one;
	CHECK(error_of(&bad) != cudaSuccess);
	image.bytes[16] = 2; /* says machine code */
	CHECK_EQ(error_of(&image), cudaErrorNoKernelImageForDevice);
	image = image_of("kernels_sm75.ptx", 1000);
	CHECK_EQ(error_of(&image), cudaErrorNoKernelImageForDevice);
	OK(cudaDeviceSynchronize());
}

TEST(an_image_that_is_unregistered_leaves_the_others)
{
	struct image image = image_of("kernels_sm75.ptx", 75);
	static const char own;
	float one = 1, two = 2, got = 0;
	int n = 1;
	void *a = upload(&one, 4), *b = upload(&two, 4), *c = upload(NULL, 4),
	     *args[] = {&a, &b, &c, &n};
	void **handle = __cudaRegisterFatBinary(&image);

	program();
	name_function(handle, &own, "vector_add");
	__cudaRegisterFatBinaryEnd(handle);
	CHECK(__cudaInitModule(handle));
	OK(launch(&own, (dim3){1, 1, 1}, (dim3){1, 1, 1}, 0, NULL, args));
	__cudaUnregisterFatBinary(handle);
	free(image.bytes);
	OK(launch(&vector_add, (dim3){1, 1, 1}, (dim3){1, 1, 1}, 0, NULL, args));
	download(&got, c, 4);
	CHECK(got == 3);
}

/* Checks a refused call's message on stderr, and the last error. */
static void refused_call(char *text, size_t len)
{
	FILE *file = tmpfile();
	int saved = dup(2), device = 5;
	size_t n;

	CHECK(file && saved >= 0);
	dup2(fileno(file), 2);
	n = (size_t)cudaVDPAUGetDevice(&device, 0, NULL);
	dup2(saved, 2);
	close(saved);
	CHECK_EQ(n, cudaErrorNotSupported);
	CHECK_EQ(device, 5);
	CHECK_EQ(cudaPeekAtLastError(), cudaErrorNotSupported);
	CHECK_EQ(cudaGetLastError(), cudaErrorNotSupported);
	rewind(file);
	n = fread(text, 1, len - 1, file);
	text[n] = 0;
	fclose(file);
}

TEST(what_is_refused_names_itself_where_that_is_asked_for)
{
	char text[128];

	unsetenv("SOFTGPU_DEBUG");
	refused_call(text, sizeof(text));
	CHECK_STR(text, "");
	setenv("SOFTGPU_DEBUG", "1", 1);
	refused_call(text, sizeof(text));
	unsetenv("SOFTGPU_DEBUG");
	CHECK_STR(text, "softgpu: cudaVDPAUGetDevice: not implemented\n");
}
