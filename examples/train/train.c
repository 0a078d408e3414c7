/*
 * A training program in miniature, on the CUDA driver API: each step works on the host, then on the
 * GPU, where it uses all of its memory. At the end every word of that memory is read back and
 * checked. Prints one JSON object.
 */
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/err.h"
#include "base/parse.h"
#include "base/time.h"
#include "cuda/types.h"
#include "include/tandem/tandem.h"
#include "train_ptx.h"

/* The words of a line that is touched: 1 in 32, one DRAM sector in four. */
#define LINE_WORDS 32u
#define PATTERN    0x5eed0000u
#define THREADS    256u

CUresult cuInit(unsigned flags);
CUresult cuDeviceGet(CUdevice *device, int ordinal);
CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device);
CUresult cuCtxSetCurrent(CUcontext context);
CUresult cuCtxSynchronize(void);
CUresult cuModuleLoadData(CUmodule *module, const void *image);
CUresult cuModuleGetFunction(CUfunction *function, CUmodule module, const char *name);
CUresult cuMemAlloc_v2(CUdeviceptr *address, size_t bytes);
CUresult cuMemAllocManaged(CUdeviceptr *address, size_t bytes, unsigned flags);
CUresult cuMemFree_v2(CUdeviceptr address);
CUresult cuMemsetD32_v2(CUdeviceptr address, unsigned value, size_t count);
CUresult cuMemcpyDtoH_v2(void *host, CUdeviceptr address, size_t bytes);
CUresult cuLaunchKernel(CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
	unsigned by, unsigned bz, unsigned shared, CUstream stream, void **params, void **extra);
CUresult cuGetErrorName(CUresult error, const char **name);

struct settings {
	uint64_t bytes, steps, gpu_ns, cpu_ns, kernel_ns;
	bool managed;
	bool tell;             /* where its steps end */
	bool times;            /* are printed: each step's */
	const char *allocator; /* library to have memory from; NULL: the driver */
	uint64_t step_bytes;   /* of the memory, taken and given back in each step */
	uint64_t surge_bytes, surge_at,
		surge_steps; /* so much more in so many steps, from one on */
};

static void must(CUresult r, const char *what)
{
	const char *name = NULL;

	if (!r)
		return;
	(void)cuGetErrorName(r, &name);
	fprintf(stderr, "train: %s: %s (%d)\n", what, name ? name : "?", r);
	exit(1);
}

static void usage(void)
{
	fputs("usage: train [--size BYTES] [--steps N] [--gpu TIME] [--cpu TIME] [--kernel TIME] "
	      "[--memory plain|managed] [--allocator LIBRARY] [--tell on|off] [--times on|off] "
	      "[--surge BYTES] [--surge-at STEP] [--surge-steps N]\n"
	      "  --gpu, --cpu: work of each step on the GPU and on the host; --kernel: length of "
	      "one kernel\n"
	      "  --allocator: libtandem_alloc.so: a quarter of the memory is kept, the rest is "
	      "taken and given back in each step\n"
	      "  --tell: tandem where its steps end; --times: print each step's\n"
	      "  --surge: so much more memory is taken and given back in each of some steps\n",
		stderr);
	exit(2);
}

static void refuse(const char *word)
{
	fprintf(stderr,
		"train: \"%.64s\" is not an option: expected one of those that train --help "
		"shows\n",
		word);
	exit(2);
}

static int parse_memory(const char *text, bool *ret_managed, struct td_err *err)
{
	if (strcmp(text, "plain") && strcmp(text, "managed"))
		return td_err_expected(err, -EINVAL, text, "plain or managed");
	*ret_managed = !strcmp(text, "managed");
	return 0;
}

static int parse_path(const char *text, const char **ret, struct td_err *err)
{
	if (!*text)
		return td_err_expected(err, -EINVAL, text, "a library's path");
	*ret = text;
	return 0;
}

static void parse(int argc, char **argv, struct settings *s)
{
	for (int i = 1; i < argc; i += 2) {
		const char *value = i + 1 < argc ? argv[i + 1] : "";
		struct td_err err = {0};
		int r = -EINVAL;

		if (!strcmp(argv[i], "--help"))
			usage();
		else if (!strcmp(argv[i], "--size"))
			r = td_parse_size(value, 0, &s->bytes, &err);
		else if (!strcmp(argv[i], "--steps"))
			r = td_parse_u64(value, 1, 1000000, &s->steps, &err);
		else if (!strcmp(argv[i], "--gpu"))
			r = td_parse_duration(value, &s->gpu_ns, &err);
		else if (!strcmp(argv[i], "--cpu"))
			r = td_parse_duration(value, &s->cpu_ns, &err);
		else if (!strcmp(argv[i], "--kernel"))
			r = td_parse_duration(value, &s->kernel_ns, &err);
		else if (!strcmp(argv[i], "--memory"))
			r = parse_memory(value, &s->managed, &err);
		else if (!strcmp(argv[i], "--allocator"))
			r = parse_path(value, &s->allocator, &err);
		else if (!strcmp(argv[i], "--tell"))
			r = td_parse_bool(value, &s->tell, &err);
		else if (!strcmp(argv[i], "--times"))
			r = td_parse_bool(value, &s->times, &err);
		else if (!strcmp(argv[i], "--surge"))
			r = td_parse_size(value, 0, &s->surge_bytes, &err);
		else if (!strcmp(argv[i], "--surge-at"))
			r = td_parse_u64(value, 0, 1000000, &s->surge_at, &err);
		else if (!strcmp(argv[i], "--surge-steps"))
			r = td_parse_u64(value, 1, 1000000, &s->surge_steps, &err);
		else
			refuse(argv[i]);
		if (r) {
			fprintf(stderr, "train: %s: %s\n", argv[i], err.msg);
			exit(2);
		}
	}
	s->bytes = s->bytes / (LINE_WORDS * 4) * (LINE_WORDS * 4);
	if (s->allocator) {
		s->step_bytes = s->bytes / 4 * 3 / (LINE_WORDS * 4) * (LINE_WORDS * 4);
		s->bytes -= s->step_bytes;
	}
	if (!s->bytes || !s->kernel_ns || (s->allocator && (s->managed || !s->step_bytes)))
		usage();
}

/*
 * The host's part of a step waits for data, so that the demo does not measure how many cores the
 * machine has.
 */
static void work_on_host(uint64_t ns)
{
	td_time_sleep_until_ns(td_time_now_ns() + ns);
}

/* The functions that PyTorch's CUDAPluggableAllocator takes, and the end of a step. */
static struct {
	void *(*take)(ssize_t bytes, int device, CUstream stream);
	void (*give)(void *address, ssize_t bytes, int device, CUstream stream);
	void (*step)(void);
} allocator;

static void *look_up(void *library, const char *name)
{
	void *function = library ? dlsym(library, name) : NULL;

	if (function)
		return function;
	fprintf(stderr, "train: --allocator: %s\n", dlerror());
	exit(2);
}

static void load_allocator(const char *path)
{
	void *library = dlopen(path, RTLD_NOW);

	*(void **)&allocator.take = look_up(library, "tandem_malloc");
	*(void **)&allocator.give = look_up(library, "tandem_free");
	*(void **)&allocator.step = look_up(library, "tandem_alloc_step");
}

static CUdeviceptr take(size_t bytes)
{
	CUdeviceptr memory = 0;

	if (!bytes)
		return 0;
	if (allocator.take) {
		memory = (CUdeviceptr)(uintptr_t)allocator.take((ssize_t)bytes, 0, NULL);
		must(memory ? 0 : 2 /* CUDA_ERROR_OUT_OF_MEMORY */, "allocate");
	} else {
		must(cuMemAlloc_v2(&memory, bytes), "allocate");
	}
	return memory;
}

static void give(CUdeviceptr memory, size_t bytes)
{
	if (memory && allocator.give)
		allocator.give((void *)(uintptr_t)memory, (ssize_t)bytes, 0, NULL);
	else if (memory)
		must(cuMemFree_v2(memory), "free");
}

static void use(CUfunction touch, CUdeviceptr data, uint64_t bytes)
{
	uint64_t lines = bytes / (LINE_WORDS * 4);
	unsigned line_words = LINE_WORDS, one = 1;
	void *params[] = {&data, &lines, &line_words, &one};

	must(cuLaunchKernel(touch, (unsigned)((lines + THREADS - 1) / THREADS), 1, 1, THREADS, 1, 1,
		     0, NULL, params, NULL),
		"launch");
}

/* ret_ends_ns: when each step ended. */
static void train(const struct settings *s, CUdeviceptr data, CUfunction touch, CUfunction compute,
	uint64_t *ret_ends_ns)
{
	uint64_t kernel_ns = s->kernel_ns;
	void *compute_params[] = {&kernel_ns};

	for (uint64_t step = 0; step < s->steps; step++) {
		bool surges = step >= s->surge_at && step - s->surge_at < s->surge_steps;
		uint64_t more = s->step_bytes + (surges ? s->surge_bytes : 0);
		CUdeviceptr of_step;

		work_on_host(s->cpu_ns);
		use(touch, data, s->bytes);
		of_step = take(more);
		if (of_step)
			use(touch, of_step, more);
		for (uint64_t done = 0; done < s->gpu_ns; done += s->kernel_ns)
			must(cuLaunchKernel(
				     compute, 1, 1, 1, 1, 1, 1, 0, NULL, compute_params, NULL),
				"launch");
		must(cuCtxSynchronize(), "synchronize");
		give(of_step, more);
		if (s->tell)
			tandem_step();
		if (s->allocator)
			allocator.step();
		ret_ends_ns[step] = td_time_now_ns();
	}
}

/*
 * Checks every word: the touched ones have counted the steps, the others are unchanged. Returns how
 * many are wrong.
 */
static uint64_t check(const struct settings *s, CUdeviceptr data, uint64_t *ret_sum)
{
	unsigned *words = malloc(s->bytes);
	uint64_t wrong = 0, sum = 0;

	if (!words)
		exit(1);
	must(cuMemcpyDtoH_v2(words, data, s->bytes), "copy back");
	for (uint64_t i = 0; i < s->bytes / 4; i++) {
		unsigned expected = PATTERN + (i % LINE_WORDS ? 0 : (unsigned)s->steps);

		wrong += words[i] != expected;
		sum = sum * 31 + words[i];
	}
	free(words);
	*ret_sum = sum;
	return wrong;
}

/* When each step ended, and what is between the ends of two: the first one has no such time. */
static void print_times(const uint64_t *ends_ns, uint64_t steps)
{
	printf("\"step_ms\": [");
	for (uint64_t i = 1; i < steps; i++)
		printf("%s%.3f", i > 1 ? ", " : "", (double)(ends_ns[i] - ends_ns[i - 1]) / 1e6);
	printf("], \"ends_ns\": [");
	for (uint64_t i = 0; i < steps; i++)
		printf("%s%llu", i ? ", " : "", (unsigned long long)ends_ns[i]);
	printf("], ");
}

int main(int argc, char **argv)
{
	struct settings s = {.bytes = 32u << 20,
		.steps = 20,
		.gpu_ns = 100000000,
		.cpu_ns = 100000000,
		.kernel_ns = 5000000,
		.surge_steps = UINT64_MAX};
	CUfunction touch, compute;
	CUdeviceptr data;
	CUcontext context;
	CUmodule module;
	CUdevice device;
	uint64_t began, wrong, sum, *ends_ns;

	parse(argc, argv, &s);
	ends_ns = calloc(s.steps, sizeof(*ends_ns));
	if (!ends_ns)
		return 1;
	began = td_time_now_ns();
	must(cuInit(0), "cuInit");
	must(cuDeviceGet(&device, 0), "device");
	must(cuDevicePrimaryCtxRetain(&context, device), "context");
	must(cuCtxSetCurrent(context), "context");
	must(cuModuleLoadData(&module, train_ptx), "module");
	must(cuModuleGetFunction(&touch, module, "touch"), "touch");
	must(cuModuleGetFunction(&compute, module, "compute"), "compute");
	if (s.allocator)
		load_allocator(s.allocator);
	if (s.managed)
		must(cuMemAllocManaged(&data, s.bytes, CU_MEM_ATTACH_GLOBAL), "allocate");
	else
		data = take(s.bytes);
	must(cuMemsetD32_v2(data, PATTERN, s.bytes / 4), "set");
	train(&s, data, touch, compute, ends_ns);
	wrong = check(&s, data, &sum);
	give(data, s.bytes);
	printf("{");
	if (s.times)
		print_times(ends_ns, s.steps);
	free(ends_ns);
	printf("\"seconds\": %.3f, \"steps\": %llu, \"checksum\": \"%016llx\", \"checksum_ok\": "
	       "%s}\n",
		(double)(td_time_now_ns() - began) / 1e9, (unsigned long long)s.steps,
		(unsigned long long)sum, wrong ? "false" : "true");
	return wrong ? 3 : 0;
}
