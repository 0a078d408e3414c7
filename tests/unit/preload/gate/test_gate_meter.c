/*
 * The meter on a GPU of the test's: launches are put one behind the other on one stream, events say
 * how far the GPU has come there, and the test says how far it is. No clock but for the gap of a
 * stream that has run dry.
 */
#include "test.h"

#include <pthread.h>
#include <string.h>

#include "base/time.h"
#include "preload/base/page.h"
#include "preload/context/context.h"
#include "preload/driver/driver.h"
#include "preload/gate/gate.h"
#include "preload/gate/meter.h"
#include "preload/gate/pace.h"

#define SMS        100
#define EVENTS_MAX 4096

static char kernels[8];
static void *const stream = (void *)0x40;

static struct {
	uint64_t queued_ns, done_ns; /* of the stream: its work ends then; the GPU is there */
	uint64_t event_ns[EVENTS_MAX];
	unsigned created, records, queries, occupancies;
	uint64_t launches;
	unsigned sms; /* that the context may use */
	bool capturing;
} gpu;

static int ctx_get_current(void **ret)
{
	*ret = (void *)8;
	return 0;
}

static int zero_device(int *ret)
{
	*ret = 0;
	return 0;
}

static int device_uuid(uint8_t uuid[16], int device)
{
	memset(uuid, 3 + device, 16);
	return 0;
}

static int device_name(char *name, int len, int device)
{
	(void)device;
	return snprintf(name, (size_t)len, "test") < 0;
}

static int attribute(int *ret, int which, int device)
{
	(void)device;
	*ret = which == 16 ? SMS : 0;
	return 0;
}

static int context_sms(int *ret)
{
	*ret = (int)gpu.sms;
	return 0;
}

static int occupancy(int *ret, void *function, int threads, uint64_t shared_bytes)
{
	(void)function;
	(void)shared_bytes;
	gpu.occupancies++;
	*ret = 2048 / threads;
	return 0;
}

static int total_mem(uint64_t *ret, int device)
{
	(void)device;
	*ret = 1 << 30;
	return 0;
}

static int mem_info(uint64_t *ret_free, uint64_t *ret_total)
{
	*ret_free = *ret_total = 1 << 30;
	return 0;
}

static int is_capturing(void *s, int *ret)
{
	*ret = s == stream && gpu.capturing;
	return 0;
}

static int mode(int *m)
{
	(void)m;
	return 0;
}

static int event_create(void **ret, unsigned flags)
{
	(void)flags;
	*ret = &gpu.event_ns[gpu.created++ % EVENTS_MAX];
	return 0;
}

static int event_record(void *event, void *s)
{
	(void)s;
	gpu.records++;
	*(uint64_t *)event = gpu.queued_ns;
	return 0;
}

static int event_query(void *event)
{
	gpu.queries++;
	return *(uint64_t *)event > gpu.done_ns ? TD_CUDA_ERROR_NOT_READY : 0;
}

static int elapsed(float *ret_ms, void *start, void *end)
{
	*ret_ms = (float)((double)(*(uint64_t *)end - *(uint64_t *)start) / 1e6);
	return 0;
}

static int event_destroy(void *event)
{
	(void)event;
	return 0;
}

static const struct td_driver driver = {
	.ctx_get_current = ctx_get_current,
	.ctx_get_device = zero_device,
	.ctx_get_sms = context_sms,
	.device_get_uuid = device_uuid,
	.device_get_name = device_name,
	.device_get_attribute = attribute,
	.occupancy = occupancy,
	.device_total_mem = total_mem,
	.mem_get_info = mem_info,
	.stream_is_capturing = is_capturing,
	.thread_exchange_capture_mode = mode,
	.event_create = event_create,
	.event_record = event_record,
	.event_query = event_query,
	.event_elapsed_ms = elapsed,
	.event_destroy = event_destroy,
};

/* A launch as libtandem's wrappers make it. */
static void launch(unsigned kernel, unsigned grid, unsigned block, uint64_t ns)
{
	uint32_t work = td_submit_work(&kernels[kernel], grid, 1, 1);
	struct td_marker *marker = td_gate_enter(stream, work);

	if (td_meter_is_on(marker))
		td_meter_launch(marker, stream, work,
			&(struct td_shape){&kernels[kernel], {grid, 1, 1}, {block, 1, 1}, 0});
	gpu.queued_ns += ns;
	gpu.launches++;
	td_gate_leave(marker);
}

static void meter(uint32_t word, uint64_t window_ns)
{
	atomic_store(&td_gate.page.window_ns, window_ns);
	td_gate_write(word);
}

static void begin(void)
{
	static bool done;

	if (!done) {
		td_marker_init();
		td_gate_init();
		td_driver_set(&driver);
	}
	done = true;
	td_gate_write(0);
	atomic_store(&td_gate.page.duty_ppm, 0);
	atomic_store(&td_gate.page.rivals, 0);
	td_meter_forget();
	if (td_marker_self)
		td_marker_self->meter = (struct td_meter_thread){0};
	memset(&td_meter, 0, sizeof(td_meter.page));
	memset(&gpu, 0, sizeof(gpu));
	gpu.sms = SMS;
}

/* The GPU has done all; the thread looks at it once more, at a launch of no length. */
static void settle(void)
{
	gpu.done_ns = UINT64_MAX;
	for (unsigned i = 0; i < 300; i++)
		launch(7, SMS, 1024, 1);
}

static bool is_about(uint64_t is, uint64_t should_be, unsigned per_mille)
{
	uint64_t off = is > should_be ? is - should_be : should_be - is;

	return off * 1000 <= should_be * per_mille;
}

TEST(while_it_is_off_no_event_is_created_and_nothing_is_asked)
{
	begin();
	for (unsigned i = 0; i < 1000; i++)
		launch(0, SMS, 256, 5000);
	CHECK_EQ(gpu.created, 0);
	CHECK_EQ(gpu.records, 0);
	CHECK_EQ(gpu.queries, 0);
	CHECK_EQ(gpu.occupancies, 0);
	CHECK_EQ(atomic_load(&td_meter.page.gpu_ns), 0);
}

TEST(the_time_of_a_busy_stream_is_measured_and_launches_before_the_first_answer_are_charged)
{
	begin();
	meter(TD_WORD_WINDOW, TD_WINDOW_METER);
	gpu.queued_ns = 1; /* of somebody else */
	for (unsigned i = 0; i < 500; i++)
		launch(0, SMS, 256, 20000);
	CHECK_EQ(atomic_load(&td_meter.page.gpu_ns), 0);
	gpu.done_ns = gpu.queued_ns;
	for (unsigned i = 0; i < 500; i++)
		launch(0, SMS, 256, 20000);
	settle();
	CHECK(is_about(atomic_load(&td_meter.page.gpu_ns), 1000 * 20000ull, 5));
	CHECK_EQ(atomic_load(&td_meter.page.used_ns[0]), atomic_load(&td_meter.page.gpu_ns));
}

TEST(nothing_waits_however_much_is_in_flight)
{
	begin();
	meter(TD_WORD_WINDOW, TD_WINDOW_METER);
	for (unsigned i = 0; i < 100000; i++)
		launch(i % 4, SMS, 256, TD_NS_PER_S);
	CHECK_EQ(gpu.launches, 100000);
	CHECK_EQ(td_marker_self->depth, 0);
}

/* The daemon converts it to the whole GPU (model/measure/activity.h). */
TEST(under_a_share_of_the_sms_a_kernel_uses_part_of_these)
{
	uint64_t used;

	begin();
	gpu.sms = SMS / 4;
	meter(TD_WORD_WINDOW, TD_WINDOW_METER);
	gpu.queued_ns = 1;
	gpu.done_ns = UINT64_MAX;
	for (unsigned i = 0; i < 1000; i++)
		launch(0, SMS / 4, 1024, 20000);
	settle();
	used = atomic_load(&td_meter.page.used_ns[0]);
	CHECK(used && is_about(atomic_load(&td_meter.page.active_ns[0]), used, 5));
}

TEST(kernels_of_different_lengths_and_sizes_are_told_apart)
{
	uint64_t used = 0, active = 0, core = 0;

	begin();
	meter(TD_WORD_WINDOW, TD_WINDOW_METER);
	gpu.queued_ns = 1;
	for (unsigned i = 0; i < 20000; i++) {
		/*
		 * The kernel uses a quarter of the SMs, or all of them, with blocks of 1024
		 * threads, two of which fit an SM.
		 */
		bool is_small = i % 3;
		uint64_t ns = is_small ? 3000 : 70000;

		launch(is_small, is_small ? SMS / 4 : SMS, 1024, ns);
		used += ns;
		active += is_small ? ns / 4 : ns;
		core += is_small ? ns / 8 : ns / 2;
		gpu.done_ns = gpu.queued_ns > 3000000 ? gpu.queued_ns - 3000000 : 0;
	}
	settle();
	CHECK_EQ(gpu.occupancies, 3);
	CHECK(is_about(atomic_load(&td_meter.page.used_ns[0]), used, 5));
	CHECK(is_about(atomic_load(&td_meter.page.active_ns[0]), active, 5));
	CHECK(is_about(atomic_load(&td_meter.page.core_ns[0]), core, 5));
}

TEST(a_launch_bound_program_gets_few_events)
{
	begin();
	meter(TD_WORD_WINDOW, TD_WINDOW_METER);
	for (unsigned i = 0; i < 100000; i++) {
		launch(0, SMS, 256, 3000);
		gpu.done_ns = gpu.queued_ns - 1;
	}
	CHECK(gpu.records > 100);
	CHECK(gpu.records < 1000);
	CHECK(gpu.queries < 2000);
	CHECK_EQ(gpu.created, 2 * TD_METER_SAMPLES);
}

TEST(each_launch_of_a_long_kernel_is_timed)
{
	uint64_t truth = 0;

	begin();
	meter(TD_WORD_WINDOW, TD_WINDOW_METER);
	for (unsigned i = 0; i < 400; i++) {
		uint64_t ns = (5 + i % 40) * TD_NS_PER_MS;

		launch(0, SMS, 256, ns);
		truth += ns;
		gpu.done_ns = gpu.queued_ns - 1;
	}
	settle();
	CHECK(is_about(atomic_load(&td_meter.page.gpu_ns), truth, 1));
}

TEST(what_the_first_launch_waited_for_is_taken_back)
{
	begin();
	meter(TD_WORD_WINDOW, TD_WINDOW_METER);
	gpu.queued_ns = 1;
	launch(0, SMS, 256, 10 * TD_NS_PER_MS);
	for (unsigned i = 1; i < 100; i++)
		launch(0, SMS, 256, 20000);
	settle();
	CHECK(is_about(atomic_load(&td_meter.page.gpu_ns), 100 * 20000ull, 50));
}

/* The program takes its time between the event and the launch. */
static void launch_late(uint64_t late_ns, uint64_t ns)
{
	uint32_t work = td_submit_work(&kernels[0], SMS, 1, 1);
	struct td_marker *slot = td_gate_enter(stream, work);

	td_meter_launch(
		slot, stream, work, &(struct td_shape){&kernels[0], {SMS, 1, 1}, {256, 1, 1}, 0});
	td_time_sleep_until_ns(td_time_now_ns() + late_ns);
	gpu.queued_ns += late_ns + ns;
	td_gate_leave(slot);
}

TEST(of_a_stream_that_had_run_dry_the_way_to_the_launch_is_not_charged)
{
	begin();
	meter(TD_WORD_WINDOW, TD_WINDOW_METER);
	gpu.done_ns = UINT64_MAX;
	for (unsigned i = 0; i < 10; i++)
		launch_late(2 * TD_NS_PER_MS, TD_NS_PER_MS);
	settle();
	CHECK(atomic_load(&td_meter.page.gpu_ns) <= 11 * TD_NS_PER_MS);
}

TEST(beside_others_their_time_is_not_charged)
{
	begin();
	meter(TD_WORD_WINDOW, TD_WINDOW_METER);
	for (unsigned i = 0; i < 4000; i++) {
		launch(0, SMS, 256, 100000);
		gpu.done_ns = gpu.queued_ns - 1;
	}
	atomic_store(&td_gate.page.rivals, TD_RIVALS);
	/* Another program has every second slice. */
	for (unsigned i = 0; i < 4000; i++) {
		launch(0, SMS, 256, 200000);
		gpu.done_ns = gpu.queued_ns - 1;
	}
	settle();
	CHECK(atomic_load(&td_meter.page.gpu_ns) > 8000 * 100000ull * 98 / 100);
	CHECK(atomic_load(&td_meter.page.gpu_ns) < 8000 * 100000ull * 125 / 100);
}

TEST(code_that_is_unloaded_is_forgotten)
{
	begin();
	meter(TD_WORD_WINDOW, TD_WINDOW_METER);
	launch(0, SMS, 256, 1000);
	launch(0, SMS, 256, 1000);
	CHECK_EQ(gpu.occupancies, 1);
	td_meter_forget();
	launch(0, SMS, 256, 1000);
	CHECK_EQ(gpu.occupancies, 2);
}

TEST(more_kinds_than_there_is_room_for_are_metered_all_the_same)
{
	begin();
	meter(TD_WORD_WINDOW, TD_WINDOW_METER);
	gpu.done_ns = UINT64_MAX;
	for (unsigned round = 0; round < 3; round++)
		for (unsigned i = 1; i <= 5000; i++)
			launch(0, i, 256, 1000);
	CHECK(gpu.occupancies >= 5000);
	CHECK_EQ(gpu.launches, 15000);
}

TEST(a_launch_into_a_graph_is_not_metered)
{
	begin();
	meter(TD_WORD_WINDOW, TD_WINDOW_METER);
	gpu.capturing = true;
	td_context_capture_begin();
	td_context_capture_begun(true, stream);
	launch(0, SMS, 256, 1000);
	td_context_capture_ended(stream);
	CHECK_EQ(gpu.records, 0);
	CHECK_EQ(gpu.occupancies, 0);
}

TEST(under_a_duty_the_activity_of_what_is_paid_is_told)
{
	uint64_t used, active;

	begin();
	atomic_store(&td_gate.page.duty_ppm, 999999);
	meter(TD_WORD_DUTY, 0);
	gpu.done_ns = UINT64_MAX;
	for (unsigned i = 0; i < 50; i++)
		launch(0, SMS / 2, 1024, 1000);
	used = atomic_load(&td_meter.page.used_ns[0]);
	active = atomic_load(&td_meter.page.active_ns[0]);
	CHECK(used > 0);
	CHECK(is_about(active, used / 2, 20));
	CHECK(is_about(atomic_load(&td_meter.page.core_ns[0]), used / 4, 20));
	td_gate_write(0);
}

/* Its share stays on the page after its bit has gone from the word. */
TEST(a_duty_that_is_over_keeps_nothing_from_being_measured)
{
	begin();
	atomic_store(&td_gate.page.duty_ppm, 500000);
	meter(TD_WORD_WINDOW, TD_WINDOW_METER);
	gpu.done_ns = UINT64_MAX;
	for (unsigned i = 0; i < 50; i++)
		launch(0, SMS / 2, 1024, 1000);
	settle();
	CHECK(gpu.records > 0);
	CHECK(atomic_load(&td_meter.page.used_ns[0]) > 0);
	td_gate_write(0);
}

static void *launch_a_little(void *arg)
{
	(void)arg;
	gpu.done_ns = UINT64_MAX;
	for (unsigned i = 0; i < 20; i++)
		launch(0, SMS, 256, 50);
	return NULL;
}

TEST(a_thread_that_ends_leaves_nothing_behind)
{
	pthread_t thread;

	begin();
	meter(TD_WORD_WINDOW, TD_WINDOW_METER);
	CHECK(!pthread_create(&thread, NULL, launch_a_little, NULL));
	pthread_join(thread, NULL);
	CHECK(atomic_load(&td_meter.page.gpu_ns) > 0);
}
