/*
 * The ends of contexts, and calls that look like them, on a driver of the test's own: its memory
 * has the addresses that the test chooses.
 */
#include "test.h"

#include <pthread.h>
#include <stdatomic.h>

#include "base/time.h"
#include "unit/preload/hooks_world.h"

#define FIRST  ((CUcontext)0xc1)
#define SECOND ((CUcontext)0xc2)
#define GREEN  ((void *)0x97)

static CUcontext current;
static bool ended[8]; /* by the last digit of the handle */
static CUdeviceptr given, freed;
static CUresult
	destroying; /* what the driver answers; if it ends the context all the same, see next */
static bool ends_anyway;
static int active[2]; /* the primary context, as it is asked about once, and again */
static unsigned asked;
static unsigned long long id;
static void (*amid)(void); /* in the middle of the driver's call */

static CUresult get_current(CUcontext *ret)
{
	*ret = current;
	return CUDA_SUCCESS;
}

static CUresult push(CUcontext context)
{
	if (ended[(uintptr_t)context % 8])
		return CUDA_ERROR_INVALID_CONTEXT;
	current = context;
	return CUDA_SUCCESS;
}

static CUresult pop(CUcontext *ret)
{
	*ret = current;
	current = SECOND;
	return CUDA_SUCCESS;
}

static CUresult give(CUdeviceptr *ret, size_t bytes)
{
	(void)bytes;
	*ret = given;
	return CUDA_SUCCESS;
}

static CUresult take_back(CUdeviceptr address)
{
	freed = address;
	return CUDA_SUCCESS;
}

static CUresult end_context(CUcontext context)
{
	if (!destroying || ends_anyway)
		ended[(uintptr_t)context % 8] = true;
	if (amid)
		amid();
	return destroying;
}

static CUresult end_green(void *green)
{
	(void)green;
	return end_context(FIRST);
}

static CUresult make_of_green(CUcontext *ret, void *green)
{
	(void)green;
	*ret = FIRST;
	return CUDA_SUCCESS;
}

static CUresult version_of(CUcontext context, unsigned *ret)
{
	*ret = 3020;
	return ended[(uintptr_t)context % 8] ? CUDA_ERROR_INVALID_CONTEXT : CUDA_SUCCESS;
}

static CUresult id_of(CUcontext context, unsigned long long *ret)
{
	(void)context;
	*ret = id;
	return CUDA_SUCCESS;
}

static CUresult leave_primary(CUdevice device)
{
	(void)device;
	return end_context(FIRST);
}

static CUresult state_of(CUdevice device, unsigned *flags, int *ret)
{
	(void)device, (void)flags;
	*ret = active[asked++ != 0];
	return CUDA_SUCCESS;
}

static CUresult begin_capture(CUstream stream, int mode)
{
	(void)stream, (void)mode;
	return CUDA_SUCCESS;
}

static CUresult end_stream(CUstream stream)
{
	(void)stream;
	return destroying;
}

static void begin_world(const struct td_backend *backend)
{
	vmm_begin(64 * BYTES, 64 * BYTES);
	vmm.fail_first = 1;
	vmm.fail_last = 0;
	td_real.cuCtxGetCurrent = get_current;
	td_real.cuCtxPushCurrent_v2 = push;
	td_real.cuCtxPopCurrent_v2 = pop;
	td_real.cuCtxDestroy_v2 = end_context;
	td_real.cuCtxDetach = end_context;
	td_real.cuCtxGetApiVersion = version_of;
	td_real.cuCtxGetId = id_of;
	td_real.cuGreenCtxDestroy = end_green;
	td_real.cuCtxFromGreenCtx = make_of_green;
	td_real.cuDevicePrimaryCtxRelease_v2 = leave_primary;
	td_real.cuDevicePrimaryCtxReset_v2 = leave_primary;
	td_real.cuDevicePrimaryCtxGetState = state_of;
	td_real.cuStreamBeginCapture_v2 = begin_capture;
	td_real.cuStreamDestroy_v2 = end_stream;
	td_real.cuMemAlloc_v2 = give;
	td_real.cuMemFree_v2 = take_back;
	hooks_begin(backend);
	memset(ended, 0, sizeof(ended));
	current = FIRST;
	given = ADDRESS;
	freed = 0;
	destroying = CUDA_SUCCESS;
	ends_anyway = false;
	active[0] = active[1] = 0;
	asked = 0;
	id = 1;
	amid = NULL;
}

static bool is_known(CUcontext context)
{
	struct td_context list[TD_CONTEXT_MAX];
	unsigned n = td_context_list(list, TD_CONTEXT_MAX);

	for (unsigned i = 0; i < n; i++)
		if (list[i].handle == context)
			return true;
	return false;
}

typedef CUresult (*end_fn)(void);

static CUresult destroy(void)
{
	return td_hook_cuCtxDestroy_v2(FIRST);
}

static CUresult detach(void)
{
	return td_hook_cuCtxDetach(FIRST);
}

static CUresult destroy_green(void)
{
	return td_hook_cuGreenCtxDestroy(GREEN);
}

static CUresult release(void)
{
	active[0] = active[1] = !ended[(uintptr_t)FIRST % 8] && destroying && !ends_anyway;
	return td_hook_cuDevicePrimaryCtxRelease_v2(0);
}

static CUresult reset(void)
{
	active[0] = active[1] = destroying && !ends_anyway;
	return td_hook_cuDevicePrimaryCtxReset_v2(0);
}

static const end_fn ends[] = {destroy, detach, destroy_green, release, reset};
static const struct td_backend *const backends[] = {&td_backend_plain, &td_backend_swap};

#define EACH(way, backend)                                                                         \
	for (unsigned way = 0; way < sizeof(ends) / sizeof(ends[0]); way++)                        \
		for (unsigned backend = 0; backend < 2; backend++)

static void begin_in_context(const struct td_backend *backend)
{
	CUcontext made;

	begin_world(backend);
	CHECK_EQ(td_hook_cuCtxFromGreenCtx(&made, GREEN), CUDA_SUCCESS);
}

/* A primary context, as an example, is not the program's to destroy. */
TEST(a_context_that_the_driver_does_not_end_keeps_its_memory)
{
	EACH(way, backend)
	{
		CUdeviceptr at;

		begin_in_context(backends[backend]);
		at = allocate();
		destroying = CUDA_ERROR_INVALID_CONTEXT;
		CHECK_EQ(ends[way](), CUDA_ERROR_INVALID_CONTEXT);
		CHECK_EQ(freed, 0);
		CHECK_EQ(demanded(), BYTES);
		CHECK_EQ(vmm.device_bytes, backend ? BYTES : 0);
		CHECK(is_known(FIRST));
		/* and the next time all of it goes */
		destroying = CUDA_SUCCESS;
		asked = 0;
		CHECK_EQ(ends[way](), CUDA_SUCCESS);
		CHECK_EQ(demanded(), 0);
		CHECK_EQ(vmm_memories() + vmm_count(vmm.mapped) + vmm_count(vmm.reserved), 0);
		CHECK_EQ(vmm.broken, 0);
		CHECK(!is_known(FIRST));
		(void)at;
	}
}

/* "May also return error codes from previous, asynchronous launches". */
TEST(a_context_that_ends_with_an_error_has_ended)
{
	EACH(way, backend)
	{
		begin_in_context(backends[backend]);
		(void)allocate();
		destroying = CUDA_ERROR_ILLEGAL_ADDRESS;
		ends_anyway = true;
		CHECK_EQ(ends[way](), CUDA_ERROR_ILLEGAL_ADDRESS);
		CHECK_EQ(demanded(), 0);
		CHECK_EQ(vmm_memories() + vmm_count(vmm.mapped) + vmm_count(vmm.reserved), 0);
		CHECK(!is_known(FIRST));
	}
}

/* Nothing of it is there when the daemon may hear that the process has left the GPU. */
static uint64_t counted_amid;

static void look(void)
{
	counted_amid = is_known(FIRST) ? demanded() : 0;
}

TEST(memory_counts_until_its_context_has_ended)
{
	EACH(way, backend)
	{
		begin_in_context(backends[backend]);
		(void)allocate();
		amid = look;
		counted_amid = 0;
		CHECK_EQ(ends[way](), CUDA_SUCCESS);
		CHECK_EQ(counted_amid, BYTES);
		CHECK_EQ(demanded(), 0);
	}
}

static CUdeviceptr given_anew;

static void allocate_in_second(void)
{
	current = SECOND;
	given_anew = allocate();
}

/*
 * The driver may reuse the addresses of a context as soon as it has ended, before the library
 * notices the end.
 */
TEST(an_address_that_another_context_has_by_then_is_not_taken_from_it)
{
	for (unsigned way = 0; way < sizeof(ends) / sizeof(ends[0]); way++) {
		begin_in_context(&td_backend_plain);
		CHECK_EQ(allocate(), ADDRESS);
		amid = allocate_in_second;
		CHECK_EQ(ends[way](), CUDA_SUCCESS);
		CHECK_EQ(given_anew, ADDRESS);
		CHECK_EQ(freed, 0);
		CHECK_EQ(demanded(), BYTES);
		CHECK_EQ(td_hook_cuMemFree_v2(given_anew), CUDA_SUCCESS);
		CHECK_EQ(freed, ADDRESS);
		CHECK_EQ(demanded(), 0);
	}
}

/* Another thread takes the primary context in the middle of it: two questions had two answers. */
TEST(whether_the_primary_context_is_gone_is_asked_once)
{
	for (unsigned backend = 0; backend < 2; backend++) {
		begin_world(backends[backend]);
		(void)allocate();
		active[1] = 1;
		CHECK_EQ(td_hook_cuDevicePrimaryCtxRelease_v2(0), CUDA_SUCCESS);
		CHECK_EQ(demanded(), 0);
		CHECK(!is_known(FIRST));
	}
}

static void renew(void)
{
	id++;
}

/* The same before the first question. */
TEST(a_primary_context_that_is_another_one_by_then_has_not_the_memory_of_the_last)
{
	for (unsigned backend = 0; backend < 2; backend++) {
		begin_world(backends[backend]);
		(void)allocate();
		active[0] = active[1] = 1;
		CHECK_EQ(td_hook_cuDevicePrimaryCtxRelease_v2(0), CUDA_SUCCESS);
		CHECK_EQ(demanded(), BYTES); /* others retain it */
		CHECK(is_known(FIRST));
		amid = renew;
		CHECK_EQ(td_hook_cuDevicePrimaryCtxRelease_v2(0), CUDA_SUCCESS);
		CHECK_EQ(demanded(), 0);
		CHECK(!is_known(FIRST));
	}
}

static CUresult again_result;

/* The other thread's call ends it, and a third one's is in the next, as ours comes back. */
static void release_beside(void)
{
	amid = NULL;
	again_result = td_hook_cuDevicePrimaryCtxRelease_v2(0);
	id++;
	(void)allocate();
	active[0] = active[1] = 1;
}

TEST(of_two_who_leave_a_context_that_ends_one_ends_what_was_in_it)
{
	for (unsigned backend = 0; backend < 2; backend++) {
		begin_world(backends[backend]);
		(void)allocate();
		amid = release_beside;
		CHECK_EQ(td_hook_cuDevicePrimaryCtxRelease_v2(0), CUDA_SUCCESS);
		CHECK_EQ(again_result, CUDA_SUCCESS);
		CHECK_EQ(demanded(), BYTES);
		CHECK(is_known(FIRST));
	}
}

static pthread_t user;
static _Atomic bool used;
static uint64_t used_serial;

static void *use(void *arg)
{
	(void)arg;
	(void)td_context_use();
	used_serial = td_context_serial();
	atomic_store(&used, true);
	return NULL;
}

/*
 * The thread's current context is another one by then, just made, with the handle of the last. It
 * would be taken for the one that ends.
 */
static void use_the_next_one(void)
{
	uint64_t end = td_time_now_ns() + 20 * TD_NS_PER_MS;

	ended[(uintptr_t)FIRST % 8] = false;
	CHECK_EQ(pthread_create(&user, NULL, use, NULL), 0);
	while (!atomic_load(&used) && td_time_now_ns() < end)
		td_time_sleep_until_ns(td_time_now_ns() + TD_NS_PER_MS);
}

TEST(a_context_with_the_handle_of_one_that_ends_is_another_one)
{
	begin_world(&td_backend_plain);
	(void)allocate();
	amid = use_the_next_one;
	CHECK_EQ(destroy(), CUDA_SUCCESS);
	CHECK_EQ(pthread_join(user, NULL), 0);
	CHECK(td_context_is_alive(used_serial));
	CHECK_EQ(demanded(), 0);
}

/* Nobody ends it any more: what waits for all captures to end would wait for ever. */
TEST(a_capture_that_is_open_when_its_context_ends_is_over)
{
	for (unsigned way = 0; way < sizeof(ends) / sizeof(ends[0]); way++) {
		CUstream stream;

		begin_in_context(&td_backend_plain);
		(void)allocate();
		CHECK_EQ(td_hook_cuStreamCreate(&stream, 0), CUDA_SUCCESS);
		current = SECOND; /* it is the stream's that counts */
		CHECK_EQ(td_hook_cuStreamBeginCapture_v2(stream, 0), CUDA_SUCCESS);
		current = FIRST;
		destroying = CUDA_ERROR_INVALID_CONTEXT;
		CHECK_EQ(ends[way](), CUDA_ERROR_INVALID_CONTEXT);
		CHECK(td_context_any_capture());
		destroying = CUDA_SUCCESS;
		asked = 0;
		CHECK_EQ(ends[way](), CUDA_SUCCESS);
		CHECK(!td_context_any_capture());
	}
}

TEST(and_one_of_another_context_is_not)
{
	CUstream stream;

	begin_world(&td_backend_plain);
	(void)allocate();
	current = SECOND;
	CHECK_EQ(td_hook_cuStreamCreate(&stream, 0), CUDA_SUCCESS);
	CHECK_EQ(td_hook_cuStreamBeginCapture_v2(stream, 0), CUDA_SUCCESS);
	CHECK_EQ(destroy(), CUDA_SUCCESS);
	CHECK(td_context_any_capture());
	td_context_capture_ended(stream);
	CHECK(!td_context_any_capture());
}

/* Its work would not be waited for, beside another one's capture. */
TEST(a_stream_that_the_driver_does_not_end_is_one_still)
{
	void *list[4];
	CUstream stream;
	unsigned n;

	begin_world(&td_backend_plain);
	(void)allocate();
	CHECK_EQ(td_hook_cuStreamCreate(&stream, 0), CUDA_SUCCESS);
	destroying = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
	current = SECOND;
	CHECK_EQ(td_hook_cuStreamDestroy_v2(stream), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
	CHECK(td_context_streams(FIRST, list, 4, &n));
	CHECK_EQ(n, 1);
	CHECK(list[0] == stream);
	destroying = CUDA_SUCCESS;
	CHECK_EQ(td_hook_cuStreamDestroy_v2(stream), CUDA_SUCCESS);
	CHECK(td_context_streams(FIRST, list, 4, &n));
	CHECK_EQ(n, 0);
}
