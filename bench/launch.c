/*
 * The cost of a launch on its way to a driver that does nothing: called directly, forwarded through
 * a pointer (the least cost of any interposer), through libtandem with an open gate, with the
 * window that holds while others wait (without the driver's own cost of an event), and while it is
 * only metered; with one thread and with two. In each round the ways are measured in turn, so that
 * a machine that changes its speed changes all of them.
 *
 * The window's way calls the gate as libtandem's wrappers do, because only a daemon can set a flag
 * in the library's own gate.
 *
 * usage: launch LIBTANDEM NULL-DRIVER
 */
#include <dlfcn.h>
#include <pthread.h>

#include "base/time.h"
#include "bench/row.h"
#include "cuda/types.h"
#include "preload/driver/driver.h"
#include "preload/gate/gate.h"
#include "preload/gate/meter.h"

#define ROUNDS      101
#define CALLS       100000u
#define WINDOW_NS   (2 * TD_NS_PER_MS)
#define THREADS_MAX 2

typedef CUresult (*launch_fn)(CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
	unsigned by, unsigned bz, unsigned shared, CUstream stream, void **params, void **extra);

static launch_fn target;

static CUresult forward(CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
	unsigned by, unsigned bz, unsigned shared, CUstream stream, void **params, void **extra)
{
	return target(f, gx, gy, gz, bx, by, bz, shared, stream, params, extra);
}

static CUresult windowed(CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
	unsigned by, unsigned bz, unsigned shared, CUstream stream, void **params, void **extra)
{
	struct td_marker *marker = td_gate_enter(stream, 0);
	CUresult r = target(f, gx, gy, gz, bx, by, bz, shared, stream, params, extra);

	td_gate_leave(marker);
	return r;
}

static CUresult metered(CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
	unsigned by, unsigned bz, unsigned shared, CUstream stream, void **params, void **extra)
{
	struct td_marker *marker = td_gate_enter(stream, 0);
	CUresult r;

	if (td_meter_is_on(marker))
		td_meter_launch(marker, stream, 0,
			&(const struct td_shape){f, {gx, gy, gz}, {bx, by, bz}, shared});
	r = target(f, gx, gy, gz, bx, by, bz, shared, stream, params, extra);
	td_gate_leave(marker);
	return r;
}

/* -- a GPU that is done at once, for the window's events -- */

static int one_context(void **ret_context)
{
	*ret_context = (void *)8;
	return 0;
}

static int nothing_to_push(void *context)
{
	(void)context;
	return 0;
}

static int device_zero(int *ret_device)
{
	*ret_device = 0;
	return 0;
}

static int done(void)
{
	return 0;
}

static int some_uuid(uint8_t uuid[16], int device)
{
	uuid[0] = (uint8_t)(device + 1);
	return 0;
}

static int some_name(char *name, int len, int device)
{
	return snprintf(name, (size_t)len, "null %d", device) < 0;
}

static int some_bytes(uint64_t *ret_bytes, int device)
{
	(void)device;
	*ret_bytes = 1u << 30;
	return 0;
}

static int all_free(uint64_t *ret_free, uint64_t *ret_total)
{
	*ret_free = *ret_total = 1u << 30;
	return 0;
}

static int not_capturing(void *stream, int *ret_status)
{
	(void)stream;
	*ret_status = 0;
	return 0;
}

static int new_event(void **ret_event, unsigned flags)
{
	(void)flags;
	*ret_event = (void *)16;
	return 0;
}

static int recorded(void *event, void *stream)
{
	(void)event, (void)stream;
	return 0;
}

static int event_ok(void *event)
{
	(void)event;
	return 0;
}

static int some_attribute(int *ret_value, int attribute, int device)
{
	(void)attribute, (void)device;
	*ret_value = 132;
	return 0;
}

static int some_sms(int *ret_count)
{
	*ret_count = 132;
	return 0;
}

static int one_block(int *ret_blocks, void *function, int threads, uint64_t shared_bytes)
{
	(void)function, (void)threads, (void)shared_bytes;
	*ret_blocks = 1;
	return 0;
}

static int elapsed(float *ret_ms, void *start, void *end)
{
	(void)start, (void)end;
	*ret_ms = 0.01f;
	return 0;
}

static int same_mode(int *mode)
{
	(void)mode;
	return 0;
}

static const struct td_driver null_driver = {
	.ctx_get_current = one_context,
	.ctx_push_current = nothing_to_push,
	.ctx_pop_current = one_context,
	.ctx_get_device = device_zero,
	.ctx_get_sms = some_sms,
	.ctx_synchronize = done,
	.device_get_uuid = some_uuid,
	.device_get_name = some_name,
	.device_get_attribute = some_attribute,
	.occupancy = one_block,
	.device_total_mem = some_bytes,
	.mem_get_info = all_free,
	.stream_is_capturing = not_capturing,
	.stream_synchronize = event_ok,
	.thread_exchange_capture_mode = same_mode,
	.event_create = new_event,
	.event_record = recorded,
	.event_query = event_ok,
	.event_elapsed_ms = elapsed,
	.event_destroy = event_ok,
};

/* -- measuring -- */

static double once(launch_fn launch)
{
	uint64_t began = td_time_now_ns();

	for (unsigned i = 0; i < CALLS; i++)
		launch(NULL, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL);
	return (double)(td_time_now_ns() - began) / CALLS;
}

enum way { DIRECT, FORWARDED, LIBTANDEM, WINDOWED, WAYS };

struct run {
	pthread_t thread;
	launch_fn way[WAYS];
	double ns[WAYS][ROUNDS];
};

static void *measure(void *arg)
{
	struct run *run = arg;

	for (unsigned round = 0; round < ROUNDS; round++)
		for (unsigned i = 0; i < WAYS; i++)
			run->ns[i][round] = once(run->way[i]);
	return NULL;
}

static void report(struct run *run, const char *threads)
{
	static const char *const names[WAYS] = {
		"direct", "forwarded", "libtandem, open", "with window"};
	double over[ROUNDS];
	char figure[80];

	for (unsigned i = LIBTANDEM; i < WAYS; i++) {
		for (unsigned k = 0; k < ROUNDS; k++)
			over[k] = run->ns[i][k] - run->ns[FORWARDED][k];
		snprintf(figure, sizeof(figure), "%s over forwarded, %s", names[i], threads);
		bench_row(figure, "ns", over, ROUNDS);
	}
	for (unsigned i = 0; i < WAYS; i++) {
		snprintf(figure, sizeof(figure), "%s, %s", names[i], threads);
		bench_row(figure, "ns", run->ns[i], ROUNDS);
	}
}

static int run_with(unsigned threads, launch_fn library, const char *name)
{
	static struct run runs[THREADS_MAX];

	for (unsigned i = 0; i < threads; i++) {
		runs[i].way[DIRECT] = target;
		runs[i].way[FORWARDED] = forward;
		runs[i].way[LIBTANDEM] = library;
		runs[i].way[WINDOWED] = windowed;
		if (pthread_create(&runs[i].thread, NULL, measure, &runs[i]))
			return 1;
	}
	for (unsigned i = 0; i < threads; i++)
		pthread_join(runs[i].thread, NULL);
	report(&runs[0], name);
	return 0;
}

/* One more way, over forwarded. */
static int run_more(unsigned threads, launch_fn library, launch_fn way, const char *name)
{
	static struct run runs[THREADS_MAX];

	for (unsigned i = 0; i < threads; i++) {
		runs[i].way[DIRECT] = target;
		runs[i].way[FORWARDED] = forward;
		runs[i].way[LIBTANDEM] = library;
		runs[i].way[WINDOWED] = way;
		if (pthread_create(&runs[i].thread, NULL, measure, &runs[i]))
			return 1;
	}
	for (unsigned i = 0; i < threads; i++)
		pthread_join(runs[i].thread, NULL);
	for (unsigned k = 0; k < ROUNDS; k++)
		runs[0].ns[WINDOWED][k] -= runs[0].ns[FORWARDED][k];
	bench_row(name, "ns", runs[0].ns[WINDOWED], ROUNDS);
	return 0;
}

int main(int argc, char **argv)
{
	void *driver = argc == 3 ? dlopen(argv[2], RTLD_NOW | RTLD_GLOBAL) : NULL;
	void *library = driver ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) : NULL;
	launch_fn launch;

	if (!library) {
		fprintf(stderr, "usage: launch LIBTANDEM NULL-DRIVER (%s)\n",
			argc == 3 ? dlerror() : "two paths");
		return 2;
	}
	*(void **)&target = dlsym(driver, "cuLaunchKernel");
	*(void **)&launch = dlsym(library, "cuLaunchKernel");
	(void)td_marker_init();
	td_gate_init();
	td_driver_set(&null_driver);
	atomic_store(&td_gate.page.window_ns, WINDOW_NS);
	td_gate_write(TD_WORD_WINDOW);
	if (run_with(1, launch, "one thread") || run_with(2, launch, "two threads"))
		return 1;
	atomic_store(&td_gate.page.steps, 1);
	td_gate_write(TD_WORD_STEPS);
	if (run_more(1, launch, windowed, "while steps are looked for over forwarded, one thread"))
		return 1;
	atomic_store(&td_gate.page.steps, 0);
	atomic_store(&td_gate.page.window_ns, TD_WINDOW_METER);
	td_gate_write(TD_WORD_WINDOW);
	return run_more(1, launch, metered, "metered over forwarded, one thread") ||
	       run_more(2, launch, metered, "metered over forwarded, two threads");
}
