/*
 * Programs that are hard to drain, one per mode; run under `softgpu run -- tandem run`. Each checks
 * its own results and returns 0.
 *
 *   flag FILE      a kernel waits for a flag that another thread sets only after its own launch
 *   callback FILE  a host function wants a lock that the program holds while it launches
 *   threads        every thread launches into its own default stream, by handle and by the
 *                  per-thread symbols
 *   gpus           every thread uses a GPU of its own
 *   capture FILE   one thread has a capture open, which nothing may break, while others launch
 *   global         the same in the usual mode, in which any thread breaks it that waits for the GPU
 *                  or queries whether it is done
 *
 * The test creates FILE once the gate is closing (capture: once the program is drained). The launch
 * that ends the wait comes after that.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/time.h"
#include "cuda/types.h"

CUresult cuInit(unsigned flags);
CUresult cuDeviceGetCount(int *count);
CUresult cuDeviceGet(CUdevice *device, int ordinal);
CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device);
CUresult cuCtxSetCurrent(CUcontext context);
CUresult cuCtxSynchronize(void);
CUresult cuModuleLoadData(CUmodule *module, const void *image);
CUresult cuModuleGetFunction(CUfunction *function, CUmodule module, const char *name);
CUresult cuMemAlloc_v2(CUdeviceptr *address, size_t bytes);
CUresult cuMemHostAlloc(void **host, size_t bytes, unsigned flags);
CUresult cuMemsetD32_v2(CUdeviceptr address, unsigned value, size_t count);
CUresult cuMemcpyDtoH_v2(void *host, CUdeviceptr address, size_t bytes);
CUresult cuStreamCreate(CUstream *stream, unsigned flags);
CUresult cuStreamSynchronize(CUstream stream);
CUresult cuLaunchHostFunc(CUstream stream, CUhostFn function, void *arg);
CUresult cuLaunchKernel(CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
	unsigned by, unsigned bz, unsigned shared, CUstream stream, void **params, void **extra);
CUresult cuLaunchKernel_ptsz(CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
	unsigned by, unsigned bz, unsigned shared, CUstream stream, void **params, void **extra);

CUresult cuStreamBeginCapture_v2(CUstream stream, int mode);
CUresult cuStreamEndCapture(CUstream stream, void **graph);
CUresult cuGraphInstantiateWithFlags(void **executable, void *graph, unsigned long long flags);
CUresult cuGraphLaunch(void *executable, CUstream stream);

#define WORDS   1024u
#define THREADS 4
#define ROUNDS  12
#define BURST   10

/* add: every word one more, after 1 ms. hold: until the word at p is not 0. */
static const char ptx[] =
	".version 7.0\n.target sm_70\n.address_size 64\n"
	".visible .entry add(.param .u64 p)\n{\n"
	".reg .u64 %a<3>;\n.reg .u32 %r<6>;\n"
	"mov.u32 %r0, 1000000;\nnanosleep.u32 %r0;\n"
	"ld.param.u64 %a0, [p];\nmov.u32 %r1, %ctaid.x;\nmov.u32 %r2, %ntid.x;\n"
	"mov.u32 %r3, %tid.x;\nmad.lo.u32 %r4, %r1, %r2, %r3;\nmul.wide.u32 %a1, %r4, 4;\n"
	"add.u64 %a2, %a0, %a1;\nld.global.u32 %r5, [%a2];\nadd.u32 %r5, %r5, 1;\n"
	"st.global.u32 [%a2], %r5;\nret;\n}\n"
	".visible .entry hold(.param .u64 p)\n{\n"
	".reg .u64 %a;\n.reg .u32 %r;\n.reg .pred %q;\n"
	"ld.param.u64 %a, [p];\nL:\nld.volatile.global.u32 %r, [%a];\nsetp.eq.u32 %q, %r, 0;\n"
	"@%q bra L;\nret;\n}\n";

struct gpu {
	CUcontext context;
	CUfunction add, hold;
};

static const char *go_file;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void must(CUresult r, const char *what)
{
	if (!r)
		return;
	fprintf(stderr, "drain_test: %s: error %d\n", what, r);
	exit(1);
}

static void use_gpu(int ordinal, struct gpu *ret)
{
	CUdevice device;
	CUmodule module;

	must(cuDeviceGet(&device, ordinal), "device");
	must(cuDevicePrimaryCtxRetain(&ret->context, device), "context");
	must(cuCtxSetCurrent(ret->context), "context");
	must(cuModuleLoadData(&module, ptx), "module");
	must(cuModuleGetFunction(&ret->add, module, "add"), "add");
	must(cuModuleGetFunction(&ret->hold, module, "hold"), "hold");
}

static CUdeviceptr new_words(void)
{
	CUdeviceptr words;

	must(cuMemAlloc_v2(&words, WORDS * 4), "allocate");
	must(cuMemsetD32_v2(words, 0, WORDS), "set");
	/*
	 * It need not be done when the call returns, and non-blocking streams do not wait for it.
	 */
	must(cuCtxSynchronize(), "synchronize");
	return words;
}

static void add(const struct gpu *gpu, CUdeviceptr words, CUstream stream)
{
	void *params[] = {&words};

	must(cuLaunchKernel(gpu->add, WORDS / 256, 1, 1, 256, 1, 1, 0, stream, params, NULL),
		"launch");
}

static void expect(CUdeviceptr words, unsigned count)
{
	unsigned seen[WORDS];

	unsigned wrong = 0, last = 0;

	must(cuMemcpyDtoH_v2(seen, words, sizeof(seen)), "copy back");
	for (unsigned i = 0; i < WORDS; i++) {
		if (seen[i] != count) {
			wrong++;
			last = i;
		}
	}
	if (!wrong)
		return;
	fprintf(stderr, "drain_test: %u words of %u are wrong; word %u is %u, expected %u\n", wrong,
		WORDS, last, seen[last], count);
	exit(3);
}

static void wait_for_go(void)
{
	while (access(go_file, F_OK))
		td_time_sleep_until_ns(td_time_now_ns() + TD_NS_PER_MS);
}

/* -- a kernel that waits for a gated thread -- */

struct setter {
	struct gpu *gpu;
	CUdeviceptr words;
	volatile unsigned *flag;
};

static void *set_flag(void *arg)
{
	const struct setter *setter = arg;
	CUstream stream;

	must(cuCtxSetCurrent(setter->gpu->context), "context");
	must(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), "stream");
	wait_for_go();
	add(setter->gpu, setter->words, stream);
	*setter->flag = 1;
	return NULL;
}

static void flag(void)
{
	struct gpu gpu;
	struct setter setter = {.gpu = &gpu};
	void *host, *params[] = {&host};
	pthread_t thread;
	CUstream stream;

	use_gpu(0, &gpu);
	setter.words = new_words();
	must(cuMemHostAlloc(&host, 4096, 0), "pinned");
	memset(host, 0, 4096);
	setter.flag = host;
	must(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), "stream");
	must(cuLaunchKernel(gpu.hold, 1, 1, 1, 1, 1, 1, 0, stream, params, NULL), "launch");
	pthread_create(&thread, NULL, set_flag, &setter);
	pthread_join(thread, NULL);
	must(cuCtxSynchronize(), "synchronize");
	expect(setter.words, 1);
}

/* -- a host function that wants the program's lock -- */

static void take_lock(void *arg)
{
	pthread_mutex_lock(&lock);
	++*(unsigned *)arg;
	pthread_mutex_unlock(&lock);
}

static void callback(void)
{
	struct gpu gpu;
	CUdeviceptr words;
	CUstream stream;
	unsigned called = 0;

	use_gpu(0, &gpu);
	words = new_words();
	must(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), "stream");
	pthread_mutex_lock(&lock);
	must(cuLaunchHostFunc(stream, take_lock, &called), "host function");
	wait_for_go();
	add(&gpu, words, stream);
	pthread_mutex_unlock(&lock);
	must(cuCtxSynchronize(), "synchronize");
	expect(words, 1);
	if (called != 1)
		exit(3);
}

/* -- streams that only their own thread can name, and several GPUs -- */

struct worker {
	struct gpu gpu;
	unsigned number;
	pthread_t thread;
};

static void *work_on_own_stream(void *arg)
{
	struct worker *worker = arg;
	CUdeviceptr words;
	void *params[] = {&words};

	must(cuCtxSetCurrent(worker->gpu.context), "context");
	words = new_words();
	for (unsigned round = 0; round < ROUNDS; round++) {
		for (unsigned i = 0; i < BURST; i++) {
			if (worker->number % 2)
				add(&worker->gpu, words, CU_STREAM_PER_THREAD);
			else
				must(cuLaunchKernel_ptsz(worker->gpu.add, WORDS / 256, 1, 1, 256, 1,
					     1, 0, NULL, params, NULL),
					"launch");
		}
		must(cuStreamSynchronize(CU_STREAM_PER_THREAD), "synchronize");
	}
	expect(words, ROUNDS * BURST);
	return NULL;
}

static void work(struct worker *workers, unsigned count)
{
	for (unsigned i = 0; i < count; i++) {
		workers[i].number = i;
		pthread_create(&workers[i].thread, NULL, work_on_own_stream, &workers[i]);
	}
	for (unsigned i = 0; i < count; i++)
		pthread_join(workers[i].thread, NULL);
}

static void threads(void)
{
	struct worker workers[THREADS];
	struct gpu gpu;

	use_gpu(0, &gpu);
	for (unsigned i = 0; i < THREADS; i++)
		workers[i].gpu = gpu;
	work(workers, THREADS);
}

static void gpus(void)
{
	struct worker workers[2 * THREADS];
	int count;

	must(cuDeviceGetCount(&count), "count");
	for (int i = 0; i < count && i < 2 * THREADS; i++)
		use_gpu(i, &workers[i].gpu);
	work(workers, (unsigned)count);
}

/* -- a capture that is open while the gate closes -- */

struct launcher {
	struct gpu *gpu;
	CUdeviceptr words;
	CUstream stream;
	unsigned launches;
	_Atomic bool stop;
};

static void *launch_until_told(void *arg)
{
	struct launcher *launcher = arg;
	CUstream stream;

	must(cuCtxSetCurrent(launcher->gpu->context), "context");
	must(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), "stream");
	while (!atomic_load(&launcher->stop)) {
		add(launcher->gpu, launcher->words, stream);
		launcher->launches++;
		if (launcher->launches % BURST == 0)
			must(cuStreamSynchronize(stream), "synchronize");
	}
	must(cuStreamSynchronize(stream), "synchronize");
	return NULL;
}

static void capture(void)
{
	struct gpu gpu;
	struct launcher launcher = {.gpu = &gpu};
	void *graph, *executable;
	pthread_t thread;
	CUdeviceptr words;
	CUstream stream;

	use_gpu(0, &gpu);
	words = new_words();
	launcher.words = new_words();
	must(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), "stream");
	must(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_RELAXED), "begin capture");
	add(&gpu, words, stream);
	pthread_create(&thread, NULL, launch_until_told, &launcher);
	wait_for_go();
	add(&gpu, words, stream);
	must(cuStreamEndCapture(stream, &graph), "end capture");
	atomic_store(&launcher.stop, true);
	pthread_join(thread, NULL);
	must(cuGraphInstantiateWithFlags(&executable, graph, 0), "instantiate");
	must(cuGraphLaunch(executable, stream), "launch graph");
	must(cuGraphLaunch(executable, stream), "launch graph");
	must(cuCtxSynchronize(), "synchronize");
	expect(words, 4);
	expect(launcher.words, launcher.launches);
}

static void *launch_some(void *arg)
{
	struct launcher *launcher = arg;

	must(cuCtxSetCurrent(launcher->gpu->context), "context");
	while (launcher->launches < BURST) {
		add(launcher->gpu, launcher->words, launcher->stream);
		launcher->launches++;
	}
	return NULL;
}

static void global(void)
{
	struct gpu gpu;
	struct launcher launcher = {.gpu = &gpu};
	pthread_t thread;
	CUdeviceptr words;
	CUstream stream;
	void *graph;

	use_gpu(0, &gpu);
	words = new_words();
	launcher.words = new_words();
	must(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), "stream");
	must(cuStreamCreate(&launcher.stream, CU_STREAM_NON_BLOCKING), "stream");
	must(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_GLOBAL), "begin capture");
	add(&gpu, words, stream);
	pthread_create(&thread, NULL, launch_some, &launcher);
	pthread_join(thread, NULL);
	must(cuStreamEndCapture(stream, &graph), "end capture");
	must(cuStreamSynchronize(launcher.stream), "synchronize");
	expect(words, 0);
	expect(launcher.words, BURST);
}

int main(int argc, char **argv)
{
	const char *mode = argc > 1 ? argv[1] : "";

	go_file = argc > 2 ? argv[2] : "";
	must(cuInit(0), "init");
	if (!strcmp(mode, "flag"))
		flag();
	else if (!strcmp(mode, "callback"))
		callback();
	else if (!strcmp(mode, "threads"))
		threads();
	else if (!strcmp(mode, "gpus"))
		gpus();
	else if (!strcmp(mode, "capture"))
		capture();
	else if (!strcmp(mode, "global"))
		global();
	else
		return 2;
	return 0;
}
