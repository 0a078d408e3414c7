/*
 * The moves of the backend swap on a driver of the test's own (fake_vmm.h), each with each of its
 * driver calls failing once, and with all failing from that one on. No byte is lost, nothing is in
 * two places, nothing leaks, and once the driver works again everything can be reached.
 */
#include "test.h"

#include <errno.h>

#include "base/time.h"
#include "unit/preload/fake_vmm.h"
#include "preload/agent/plans.h"
#include "preload/base/agent_calls.h"
#include "preload/gate/gate.h"
#include "preload/link/client_internal.h"
#include "preload/link/host.h"
#include "preload/swap/swap.h"
#include "proto/proto.h"

#define SLOT   0
#define CHUNKS 40 /* several batches */
#define LARGE  30
#define BYTES  ((uint64_t)CHUNKS * VMM_GRANULE)

static uint64_t ranges[2];
static uint32_t word;

static void send_nothing(const struct td_msg *msg)
{
	(void)msg;
}

static void report_nothing(unsigned slot)
{
	(void)slot;
}

static void close_gate(void)
{
	word += TD_WORD_STEP;
	td_gate_write(TD_WORD_CLOSED | word);
	for (unsigned i = 0; i < 10 && !td_plans_is_still(); i++)
		(void)td_plans_step(td_time_now_ns());
}

static void open_gate(void)
{
	td_gate_write(0);
	(void)td_plans_step(td_time_now_ns());
}

static uint64_t chunk_address(unsigned i)
{
	return i < LARGE ? ranges[0] + (uint64_t)i * VMM_GRANULE
			 : ranges[1] + (uint64_t)(i - LARGE) * VMM_GRANULE;
}

static void begin_world(void)
{
	static bool once;

	if (!once) {
		td_gate_init();
		td_plans_init(send_nothing);
		td_backend_swap.forked();
	}
	once = true;
	vmm_begin(BYTES, BYTES);
	vmm.fail_last = 0;
	CHECK_EQ(td_backend_swap.alloc(SLOT, (uint64_t)LARGE * VMM_GRANULE, &ranges[0]), 0);
	CHECK_EQ(td_backend_swap.alloc(SLOT, (uint64_t)(CHUNKS - LARGE) * VMM_GRANULE, &ranges[1]),
		0);
	for (unsigned i = 0; i < CHUNKS; i++)
		memset(vmm_at(chunk_address(i), VMM_GRANULE), (int)i + 1, VMM_GRANULE);
	close_gate();
	CHECK(td_plans_is_still());
}

static const struct td_chunk *chunk_of(unsigned i)
{
	const struct td_range *range = td_swap_find(chunk_address(i));

	return &range->chunks[(chunk_address(i) - range->base) / VMM_GRANULE];
}

static bool has_its_bytes(const char *bytes, unsigned i)
{
	for (unsigned k = 0; k < VMM_GRANULE; k++)
		if (bytes[k] != (char)(i + 1))
			return false;
	return true;
}

/* Each chunk is in one place, has its bytes there, and is counted there. */
static void is_all_right(void)
{
	uint64_t on_device = 0, spilled = 0;
	struct td_memory_stats stats;

	for (unsigned i = 0; i < CHUNKS; i++) {
		const struct td_chunk *chunk = chunk_of(i);
		char *mapped = vmm_at(chunk_address(i), VMM_GRANULE);

		CHECK(chunk->place == TD_PLACE_DEVICE || chunk->place == TD_PLACE_HOST ||
			chunk->place == TD_PLACE_ARENA);
		CHECK_EQ(!mapped, chunk->place == TD_PLACE_ARENA || chunk->loose);
		CHECK_EQ(chunk->hosted, chunk->place == TD_PLACE_HOST);
		CHECK_EQ(chunk->charged, chunk->hosted || chunk->arena);
		CHECK(!chunk->hosted || !chunk->arena);
		if (chunk->place == TD_PLACE_ARENA) {
			CHECK(has_its_bytes(chunk->arena, i));
			continue;
		}
		CHECK(has_its_bytes(vmm.memory[chunk->handle - 1].data, i));
		CHECK_EQ(vmm.memory[chunk->handle - 1].host, chunk->place == TD_PLACE_HOST);
		*(chunk->place == TD_PLACE_HOST ? &spilled : &on_device) += VMM_GRANULE;
	}
	td_backend_swap.stats(SLOT, &stats);
	CHECK_EQ(stats.resident_bytes, on_device);
	CHECK_EQ(stats.spilled_bytes, spilled);
	CHECK_EQ(stats.host_bytes, BYTES - on_device);
	/* Nothing is left over. */
	CHECK_EQ(vmm.device_bytes, on_device);
	CHECK_EQ(vmm.host_bytes, spilled);
	CHECK_EQ(vmm_count(vmm.reserved), 2);
	CHECK_EQ(vmm.begun, vmm.done);
	CHECK_EQ(vmm.events, 0);
	CHECK_EQ(td_swap_find(ranges[0])->moving + td_swap_find(ranges[1])->moving, 0);
	CHECK_EQ(vmm.broken, 0);
}

static void end_world(void)
{
	vmm.fail_last = 0;
	open_gate();
	CHECK_EQ(td_backend_swap.free(ranges[0]), 0);
	CHECK_EQ(td_backend_swap.free(ranges[1]), 0);
	CHECK_EQ(vmm_memories(), 0);
	CHECK_EQ(vmm_count(vmm.reserved) + vmm_count(vmm.mapped), 0);
	CHECK_EQ(vmm.broken, 0);
	/* All of the host's memory is given back, once. */
	CHECK(td_host_take(UINT64_MAX, UINT64_MAX));
	td_host_give(UINT64_MAX);
}

/* With a driver that is well again all of it can be reached, and be on the device. */
static void recovers(void)
{
	vmm.fail_last = 0;
	CHECK_EQ(td_backend_swap.fill(SLOT, BYTES, report_nothing), 0);
	is_all_right();
	for (unsigned i = 0; i < CHUNKS; i++)
		CHECK_EQ(chunk_of(i)->place, TD_PLACE_DEVICE);
}

static int shrink(uint64_t limit)
{
	return td_backend_swap.shrink(SLOT, limit, report_nothing);
}

static int fill(uint64_t limit)
{
	return td_backend_swap.fill(SLOT, limit, report_nothing);
}

static int reach(uint64_t limit)
{
	return td_backend_swap.reach(SLOT, limit, report_nothing);
}

#define SOME (7ull * VMM_GRANULE)

struct way {
	const char *name;
	int (*before)(uint64_t limit);
	int (*move)(uint64_t limit);
	uint64_t before_bytes, move_bytes;
};

static const struct way ways[] = {
	{"device to arena", NULL, shrink, 0, SOME},
	{"arena to device", shrink, fill, SOME, BYTES},
	{"device to mapped host", NULL, reach, 0, SOME},
	{"mapped host to device", reach, fill, SOME, BYTES},
	{"arena to mapped host", shrink, reach, SOME, SOME},
	{"arena and device to mapped host", shrink, reach, 20ull * VMM_GRANULE, SOME},
};

/* Returns how many calls it made of the driver. */
static unsigned fail_one(const struct way *way, unsigned first, unsigned last)
{
	unsigned calls;

	begin_world();
	if (way->before)
		(void)way->before(way->before_bytes);
	is_all_right();
	vmm.calls = 0;
	vmm.fail_first = first;
	vmm.fail_last = last;
	(void)way->move(way->move_bytes);
	calls = vmm.calls;
	is_all_right();
	recovers();
	end_world();
	return calls;
}

static void fail_each(const struct way *way)
{
	unsigned calls = fail_one(way, 1, 0);

	CHECK(calls > CHUNKS);
	for (unsigned i = 1; i <= calls; i++) {
		(void)fail_one(way, i, i);
		(void)fail_one(way, i, i + 1);
		(void)fail_one(way, i, UINT32_MAX);
	}
}

TEST(no_byte_is_lost_on_the_way_off_the_device)
{
	fail_each(&ways[0]);
}
TEST(no_byte_is_lost_on_the_way_back)
{
	fail_each(&ways[1]);
}
TEST(no_byte_is_lost_on_the_way_to_host_memory_in_reach)
{
	fail_each(&ways[2]);
}
TEST(no_byte_is_lost_on_the_way_from_there)
{
	fail_each(&ways[3]);
}
TEST(no_byte_is_lost_when_what_is_out_of_reach_is_mapped)
{
	fail_each(&ways[4]);
}
TEST(no_byte_is_lost_when_some_is_mapped_and_some_exchanged)
{
	fail_each(&ways[5]);
}

static CUresult refuse_memory(CUmemGenericAllocationHandle *handle, size_t bytes,
	const CUmemAllocationProp *prop, unsigned long long flags)
{
	(void)handle;
	(void)bytes;
	(void)prop;
	(void)flags;
	return CUDA_ERROR_DEVICE_UNAVAILABLE;
}

static CUresult tell_nothing(size_t *left, size_t *all)
{
	(void)left;
	(void)all;
	return CUDA_ERROR_DEVICE_UNAVAILABLE;
}

/* Otherwise it would be filled for ever, and all behind it would wait. */
TEST(an_address_that_is_no_allocation_frees_nothing)
{
	begin_world();
	CHECK_EQ(td_swap_release(0x10), CUDA_ERROR_INVALID_VALUE);
	CHECK_EQ(td_swap_release(ranges[0] + VMM_GRANULE), CUDA_ERROR_INVALID_VALUE);
	is_all_right();
	end_world();
}

TEST(a_device_that_is_gone_is_not_waited_for)
{
	struct td_memory_stats stats;

	begin_world();
	CHECK_EQ(shrink(SOME), 0);
	td_real.cuMemCreate = refuse_memory;
	CHECK_EQ(fill(BYTES), 2); /* it answers */
	td_real.cuMemGetInfo_v2 = tell_nothing;
	CHECK_EQ(fill(BYTES), -ENOTRECOVERABLE);
	td_backend_swap.stats(SLOT, &stats);
	CHECK_EQ(stats.failed, CUDA_ERROR_DEVICE_UNAVAILABLE);
	td_real.cuMemCreate = vmm_create;
	is_all_right();
	recovers();
	td_backend_swap.stats(SLOT, &stats);
	CHECK_EQ(stats.failed, 0);
	end_world();
}

TEST(a_limit_is_kept_exactly_both_ways)
{
	struct td_memory_stats stats;

	begin_world();
	CHECK_EQ(reach(SOME), 0);
	td_backend_swap.stats(SLOT, &stats);
	CHECK_EQ(stats.resident_bytes, SOME);
	CHECK_EQ(fill(2 * SOME), 0);
	td_backend_swap.stats(SLOT, &stats);
	CHECK_EQ(stats.resident_bytes, 2 * SOME);
	is_all_right();
	recovers();
	end_world();
}

static uint64_t fixed_bytes(void)
{
	struct td_memory_stats stats;

	td_backend_swap.stats(SLOT, &stats);
	return stats.fixed_bytes;
}

static void grant(uint64_t bytes)
{
	const struct td_msg_grant msg = {.slot = TD_SLOT_HOST, .host_bytes = bytes};

	(void)td_host_message(&msg);
}

TEST(what_is_mapped_on_the_host_counts_as_what_is_pinned_there_does)
{
	begin_world();
	grant(SOME);
	CHECK_EQ(reach(0), 0);
	CHECK_EQ(vmm.host_bytes, SOME);
	is_all_right();
	CHECK_EQ(shrink(0), 0); /* nor is there a place to leave for */
	CHECK_EQ(vmm.device_bytes, BYTES - SOME);
	is_all_right();
	grant(UINT64_MAX);
	recovers();
	end_world();
}

TEST(what_goes_from_an_arena_to_where_it_is_in_reach_counts_once)
{
	begin_world();
	grant(BYTES);
	CHECK_EQ(shrink(0), 0);
	CHECK_EQ(vmm.device_bytes, 0);
	CHECK_EQ(reach(0), 0);
	CHECK_EQ(vmm.host_bytes, BYTES);
	is_all_right();
	/* Memory that was in an arena before leaves no room taken there. */
	CHECK_EQ(shrink(0), 0);
	CHECK_EQ(fill(BYTES), 0);
	CHECK_EQ(shrink(0), 0);
	CHECK_EQ(fill(BYTES), 0);
	CHECK_EQ(reach(0), 0);
	is_all_right();
	grant(UINT64_MAX);
	recovers();
	end_world();
}

TEST(what_is_kept_for_the_next_time_makes_room_for_what_is_to_be_in_reach)
{
	begin_world();
	grant(SOME);
	CHECK_EQ(td_swap_pin(ranges[0]), 0); /* so that the other goes first */
	CHECK_EQ(shrink(BYTES - SOME), 0);
	CHECK_EQ(fill(BYTES), 0);
	td_swap_unpin(ranges[0]);
	CHECK_EQ(vmm.device_bytes, BYTES);
	CHECK_EQ(reach(BYTES - SOME), 0);
	CHECK_EQ(chunk_of(0)->place, TD_PLACE_HOST);
	CHECK_EQ(vmm.host_bytes, SOME);
	is_all_right();
	grant(UINT64_MAX);
	recovers();
	end_world();
}

TEST(what_is_allocated_on_the_host_for_lack_of_a_daemon_counts)
{
	uint64_t address;

	begin_world();
	open_gate();
	CHECK_EQ(td_backend_swap.alloc(SLOT, VMM_GRANULE, &address), 0);
	CHECK_EQ(vmm.host_bytes, VMM_GRANULE);
	CHECK(td_swap_find(address)->chunks[0].charged);
	CHECK(!td_host_take(UINT64_MAX, UINT64_MAX));
	CHECK_EQ(td_backend_swap.free(address), 0);
	close_gate();
	recovers();
	end_world();
}

/* Bytes that have no place would be lost: it waits. */
TEST(what_is_out_of_reach_and_has_no_place_keeps_the_rest_waiting)
{
	begin_world();
	CHECK_EQ(shrink(0), 0);
	vmm.host_most = SOME;
	CHECK_EQ(reach(0), 1);
	is_all_right();
	vmm.host_most = BYTES;
	CHECK_EQ(reach(0), 0);
	recovers();
	end_world();
}

TEST(how_much_the_host_is_to_have_is_known_beforehand_and_never_more_than_all)
{
	begin_world();
	CHECK_EQ(td_backend_swap.host_bytes(SLOT, UINT64_MAX, false), 0);
	CHECK_EQ(td_backend_swap.host_bytes(SLOT, 0, false), BYTES);
	CHECK_EQ(td_backend_swap.host_bytes(SLOT, SOME, true), BYTES - SOME + VMM_GRANULE);
	CHECK_EQ(reach(SOME), 0);
	CHECK_EQ(td_backend_swap.host_bytes(SLOT, UINT64_MAX, false), BYTES - SOME);
	CHECK_EQ(td_backend_swap.host_bytes(SLOT, BYTES, true), BYTES - SOME);
	CHECK_EQ(td_backend_swap.host_bytes(SLOT, 0, false), BYTES);
	recovers();
	end_world();
}

TEST(a_device_or_host_that_is_full_in_the_middle_keeps_the_rest_where_it_is)
{
	begin_world();
	vmm.host_most = SOME;
	CHECK_EQ(reach(0), 0); /* it goes on with that */
	is_all_right();
	CHECK_EQ(vmm.host_bytes, SOME);
	CHECK_EQ(fixed_bytes(), BYTES - SOME);
	vmm.host_most = BYTES;
	CHECK_EQ(reach(0), 0);
	CHECK_EQ(vmm.host_bytes, BYTES);
	CHECK_EQ(fixed_bytes(), 0);
	vmm.device_most = SOME;
	CHECK_EQ(fill(BYTES), 0);
	is_all_right();
	CHECK_EQ(vmm.device_bytes, SOME);
	vmm.device_most = BYTES;
	recovers();
	end_world();
}

/* Kernels that use it may be running. */
TEST(what_is_mapped_stays_where_it_is_unless_all_work_has_ended)
{
	begin_world();
	CHECK_EQ(reach(SOME), 0);
	open_gate();
	CHECK_EQ(fill(BYTES), 0);
	CHECK_EQ(vmm.device_bytes, SOME);
	/* Closed, but not seen to be, nor drained. */
	word += TD_WORD_STEP;
	td_gate_write(TD_WORD_CLOSED | word);
	CHECK_EQ(fill(BYTES), 0);
	CHECK_EQ(vmm.device_bytes, SOME);
	CHECK_EQ(reach(0), 1);
	CHECK_EQ(vmm.device_bytes, SOME);
	close_gate();
	recovers();
	end_world();
}

/* Another thread opens it to a second device while it is being mapped. */
static CUresult map_and_open_to_another(CUdeviceptr address, size_t bytes, size_t offset,
	CUmemGenericAllocationHandle handle, unsigned long long flags)
{
	CUresult r = vmm_map(address, bytes, offset, handle, flags);

	td_chunk_peer(0, 1, true);
	return r;
}

static CUresult refuse_to_open(
	CUdeviceptr address, size_t bytes, const CUmemAccessDesc *access, size_t count)
{
	return access[0].location.id ? CUDA_ERROR_INVALID_VALUE
				     : vmm_open(address, bytes, access, count);
}

static uint64_t least_counted;

static CUresult count_and_unmap(CUdeviceptr address, size_t bytes)
{
	struct td_memory_stats stats;

	td_client_totals(SLOT, &stats);
	if (stats.demanded_bytes < least_counted)
		least_counted = stats.demanded_bytes;
	return vmm_unmap(address, bytes);
}

TEST(what_could_not_be_allocated_after_all_counts_until_the_driver_has_it)
{
	uint64_t address;
	unsigned before;

	begin_world();
	open_gate();
	before = vmm_memories();
	vmm.device_most = 2 * BYTES;
	td_real.cuMemMap = map_and_open_to_another;
	td_real.cuMemSetAccess = refuse_to_open;
	td_real.cuMemUnmap = count_and_unmap;
	least_counted = UINT64_MAX;
	CHECK_EQ(td_backend_swap.alloc(SLOT, 4 * VMM_GRANULE, &address), CUDA_ERROR_INVALID_VALUE);
	CHECK_EQ(least_counted, 4 * VMM_GRANULE);
	CHECK_EQ(vmm_memories(), before);
	CHECK_EQ(vmm.broken, 0);
	td_chunk_peer(0, 1, false);
	close_gate();
	vmm.device_most = BYTES;
	recovers();
	end_world();
}

static unsigned lets_go_at;

/* The daemon lets a process whose other GPU has failed go at once. */
static CUresult await_and_open(CUevent event)
{
	if (!--lets_go_at)
		td_gate_write(0);
	return vmm_await_event(event);
}

TEST(what_is_to_stay_comes_back_first)
{
	begin_world();
	CHECK_EQ(reach(SOME), 0);
	CHECK_EQ(vmm.device_bytes, SOME);
	td_swap_pin_all();
	CHECK_EQ(fill(BYTES), 0);
	CHECK_EQ(vmm.device_bytes, BYTES);
	is_all_right();
	/* and then it stays */
	(void)reach(SOME);
	CHECK_EQ(vmm.device_bytes, BYTES);
	is_all_right();
	end_world();
	td_swap.stays = false;
}

TEST(what_is_on_its_way_when_the_gate_opens_stays_where_it_was)
{
	begin_world();
	td_real.cuEventSynchronize = await_and_open;
	lets_go_at = 1;
	CHECK_EQ(reach(0), 1);
	CHECK_EQ(vmm.device_bytes, BYTES);
	is_all_right();
	close_gate();
	lets_go_at = 1000;
	CHECK_EQ(reach(0), 0);
	lets_go_at = 1;
	CHECK_EQ(fill(BYTES), 0);
	CHECK_EQ(vmm.device_bytes, 0);
	is_all_right();
	close_gate();
	lets_go_at = 1000;
	recovers();
	end_world();
}

static CUresult bound = CUDA_SUCCESS;

static CUresult bind(CUmemGenericAllocationHandle object, size_t offset, CUdeviceptr address,
	size_t bytes, unsigned long long flags)
{
	(void)object, (void)offset, (void)address, (void)bytes, (void)flags;
	return bound;
}

TEST(what_is_bound_for_multicast_stays_and_what_was_refused_does_not)
{
	begin_world();
	td_real.cuMulticastBindAddr = bind;
	bound = CUDA_ERROR_INVALID_VALUE;
	CHECK_EQ(td_hook_cuMulticastBindAddr(1, 0, ranges[1], VMM_GRANULE, 0), bound);
	CHECK_EQ(td_swap_find(ranges[1])->pins, 0);
	bound = CUDA_SUCCESS;
	CHECK_EQ(td_hook_cuMulticastBindAddr(1, 0, ranges[1] + VMM_GRANULE, VMM_GRANULE, 0), bound);
	(void)reach(0);
	CHECK_EQ(vmm.device_bytes, (uint64_t)(CHUNKS - LARGE) * VMM_GRANULE);
	is_all_right();
	CHECK_EQ(fill(BYTES), 0);
	end_world();
}

/* -- the spare block -- */

static uint64_t in_use(void)
{
	struct td_memory_stats stats;

	td_backend_swap.stats(SLOT, &stats);
	return stats.demanded_bytes;
}

static uint64_t small_block(void)
{
	uint64_t address;

	CHECK_EQ(td_backend_swap.alloc(SLOT, 1000, &address), 0);
	return address;
}

TEST(a_small_block_is_kept_for_the_next_small_allocation)
{
	uint64_t before, address;

	vmm_begin(BYTES, BYTES);
	before = in_use();
	td_client_set_keep(SLOT, true);
	address = small_block();
	CHECK_EQ(in_use(), before + VMM_GRANULE);
	CHECK_EQ(td_backend_swap.free(address), 0);
	CHECK_EQ(in_use(), before + VMM_GRANULE);
	CHECK(td_backend_swap.free(address)); /* for the program it is gone */
	CHECK_EQ(small_block(), address);
	CHECK_EQ(td_backend_swap.free(address), 0);
	td_backend_swap.trim(SLOT, false);
	CHECK_EQ(in_use(), before);
	td_client_set_keep(SLOT, false);
}

TEST(what_is_kept_goes_with_age_another_allocation_or_the_permission)
{
	uint64_t before, address;

	vmm_begin(BYTES, BYTES);
	before = in_use();
	td_client_set_keep(SLOT, true);
	CHECK_EQ(td_backend_swap.free(small_block()), 0);
	td_backend_swap.trim(SLOT, true); /* it is new */
	CHECK_EQ(in_use(), before + VMM_GRANULE);
	td_backend_swap.trim(SLOT, true);
	CHECK_EQ(in_use(), before);
	CHECK_EQ(td_backend_swap.free(small_block()), 0);
	CHECK_EQ(td_backend_swap.alloc(SLOT, 2 * VMM_GRANULE, &address), 0);
	CHECK_EQ(in_use(), before + 2 * VMM_GRANULE);
	CHECK_EQ(td_backend_swap.free(address), 0);
	td_client_set_keep(SLOT, false);
	CHECK_EQ(td_backend_swap.free(small_block()), 0);
	CHECK_EQ(in_use(), before);
}
