/*
 * A program of the model: libtandem's own agent, plans, limits and backends (meson.build names the
 * files), on a driver, a gate and a connection that are made here. It is loaded once for each
 * program, so that each has its own state.
 */
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "parts.h"

#include "base/time.h"
#include "preload/agent/agent.h"
#include "preload/agent/clean_exit.h"
#include "preload/agent/leave.h"
#include "preload/agent/place.h"
#include "preload/base/backend.h"
#include "preload/base/futex.h"
#include "preload/base/page.h"
#include "preload/base/settings.h"
#include "preload/base/thread.h"
#include "preload/context/context.h"
#include "preload/driver/choose.h"
#include "preload/driver/real.h"
#include "preload/gate/gate.h"
#include "preload/measure/service.h"
#include "preload/measure/steps.h"
#include "preload/hooks/job_view.h"
#include "preload/ipc/ipc.h"
#include "preload/ipc/shares.h"
#include "preload/link/client_internal.h"
#include "preload/link/conn.h"
#include "preload/memory/arena.h"
#include "preload/outside/libraries.h"
#include "preload/outside/modules.h"
#include "preload/outside/outside.h"
#include "preload/swap/peers.h"
#include "preload/swap/swap_batch.h"
#include "proto/proto.h"
#include "proto/socket.h"

#define MIB     (1ull << 20)
#define GRANULE (2 * MIB)
#define BLOCKS  24
#define RECHECK (200 * TD_NS_PER_MS)

const struct quota_world *quota_world;
int quota_self;
uint64_t quota_busy_until_ns;

/* -- waiting -- */

void quota_preempt(void)
{
	quota_world->preempt();
}

void quota_wait_ns(uint64_t ns)
{
	quota_world->wait(quota_world->now_ns() + ns, NULL, 0);
}

int quota_lock(pthread_mutex_t *lock)
{
	quota_preempt();
	while (pthread_mutex_trylock(lock))
		quota_wait_ns(1);
	return 0;
}

#undef pthread_mutex_unlock
int quota_unlock(pthread_mutex_t *lock)
{
	return pthread_mutex_unlock(lock);
}

int quota_sleep(const struct timespec *pause)
{
	quota_wait_ns((uint64_t)pause->tv_sec * TD_NS_PER_S + (uint64_t)pause->tv_nsec);
	return 0;
}

int quota_poll(const struct timespec *timeout)
{
	quota_world->listen(quota_self, quota_world->now_ns() +
						(uint64_t)timeout->tv_sec * TD_NS_PER_S +
						(uint64_t)timeout->tv_nsec);
	return 0;
}

int quota_pid(void)
{
	return 1000 + quota_self;
}

void td_futex_wait(_Atomic uint32_t *word, uint32_t value, uint64_t timeout_ns, bool shared)
{
	(void)shared;
	quota_world->wait(quota_world->now_ns() + timeout_ns, word, value);
}

void td_futex_wake_all(_Atomic uint32_t *word, bool shared)
{
	(void)word;
	(void)shared;
}

void td_lock_take_slow(struct td_lock *lock)
{
	while (atomic_exchange(&lock->state, 2))
		quota_wait_ns(1);
}

void td_lock_wake(struct td_lock *lock)
{
	(void)lock;
}

uint64_t td_time_now_ns(void)
{
	return quota_world->now_ns();
}

void td_time_sleep_until_ns(uint64_t deadline_ns)
{
	quota_world->wait(deadline_ns, NULL, 0);
}

int td_thread_start(void *(*run)(void *))
{
	quota_world->spawn(quota_self, run);
	return 0;
}

/* -- the connection: descriptor 7; of the pages, 8 and 9 -- */

int td_conn_connect(struct td_conn *conn, const char *path)
{
	int r = quota_world->connect(quota_self);

	(void)path;
	if (!r)
		atomic_store(&conn->fd, 7);
	return r;
}

bool td_conn_is_ours(const struct td_conn *conn)
{
	return atomic_load(&conn->fd) >= 0;
}

void td_conn_close(struct td_conn *conn)
{
	if (atomic_load(&conn->fd) == 7)
		quota_world->hang_up(quota_self);
	atomic_store(&conn->fd, -1);
}

int td_conn_send(const struct td_conn *conn, const struct td_msg *msg)
{
	quota_preempt();
	return td_conn_is_ours(conn) ? quota_world->send(quota_self, msg) : -EBADF;
}

int td_conn_recv(const struct td_conn *conn, struct td_msg *ret, int *ret_fds)
{
	int r = td_conn_is_ours(conn) ? quota_world->receive(quota_self, ret) : -EBADF;

	if (!r && ret->type == TD_MSG_TYPE_welcome) {
		ret_fds[0] = 8;
		ret_fds[1] = 9;
	}
	return r;
}

int td_bell_init(struct td_bell *bell)
{
	atomic_store(&bell->in.fd, 10);
	atomic_store(&bell->out.fd, 11);
	return 0;
}

void td_bell_ring(const struct td_bell *bell)
{
	(void)bell;
	quota_world->ring(quota_self);
}

void td_bell_quiet(const struct td_bell *bell)
{
	(void)bell;
}

void td_bell_deinit(struct td_bell *bell)
{
	(void)bell;
}

/* -- the gate -- */

union td_gate_static td_gate;
union td_meter_static td_meter;
_Atomic bool td_gate_fenced;
struct td_marker td_marker_inert, td_marker_shared;
__thread struct td_marker *td_marker_self;
static unsigned inside;
static uint64_t launches;

int td_gate_map(int gate_fd, int meter_fd)
{
	(void)gate_fd;
	(void)meter_fd;
	quota_world->map(quota_self, true);
	return 0;
}

int td_gate_unmap(uint32_t word, uint64_t window_ns)
{
	(void)window_ns;
	quota_world->map(quota_self, false);
	memset(&td_gate.page, 0, sizeof(td_gate.page));
	atomic_store(&td_gate.page.word, word);
	return 0;
}

void td_gate_write(uint32_t word)
{
	atomic_store(&td_gate.page.word, word);
}

void td_gate_barrier(void)
{
}

static void wait_closed(uint32_t word)
{
	td_client_waits(true);
	quota_preempt();
	td_client_want(word);
	td_futex_wait(&td_gate.page.word, word, RECHECK, true);
	td_client_waits(false);
}

void td_gate_await(void)
{
	uint32_t word = td_gate_word();

	if (word & TD_WORD_CLOSED)
		wait_closed(word);
	else
		quota_wait_ns(TD_NS_PER_MS);
}

static bool is_all_there(void)
{
	bool all = true;

	quota_lock(&td_swap.lock);
	for (unsigned slot = 0; slot < QUOTA_GPUS; slot++)
		all &= td_swap_is_reachable(slot);
	quota_unlock(&td_swap.lock);
	return all;
}

/* As pass() in gate.c. */
static void launch(uint64_t ns)
{
	uint32_t word;

	td_context_use();
	for (;;) {
		word = td_gate_word();
		if (word & TD_WORD_CLOSED) {
			wait_closed(word);
			continue;
		}
		if (word & TD_WORD_ARMED)
			td_client_want(word);
		inside++;
		quota_preempt();
		word = td_gate_word();
		if (!(word & TD_WORD_CLOSED))
			break;
		inside--;
	}
	launches++;
	if (td_swap_is_used() && !is_all_there())
		quota_world->broken(quota_self, "work runs while memory of it is not there");
	if (quota_busy_until_ns < quota_world->now_ns())
		quota_busy_until_ns = quota_world->now_ns();
	quota_busy_until_ns += ns;
	quota_preempt();
	inside--;
}

uint64_t td_marker_launches(void)
{
	return launches;
}

bool td_marker_any_active(void)
{
	return inside != 0;
}

void td_marker_adopt_internal(void)
{
}

struct td_marker *td_marker_claim(void)
{
	return &td_marker_shared;
}

/* -- what is not part of the model -- */

struct td_settings td_settings;
_Atomic bool td_reach_begun;

void td_settings_reject(const char *name)
{
	(void)name;
}

void td_choose(void)
{
}

void td_choose_look(void)
{
}

void td_choice_get(struct td_choice *ret)
{
	*ret = (struct td_choice){.kind = td_settings.backend};
}

bool td_steps_take(struct td_steps *ret)
{
	(void)ret;
	return false;
}

void td_steps_again(void)
{
}

bool td_steps_memory_is_new(unsigned slot)
{
	(void)slot;
	return false;
}

void td_steps_get_memory(unsigned slot, struct td_step_memory *ret)
{
	(void)slot;
	*ret = (struct td_step_memory){0};
}

void td_steps_memory(unsigned slot, uint64_t bytes)
{
	(void)slot;
	(void)bytes;
}

void td_steps_outside(unsigned slot, uint64_t bytes)
{
	(void)slot;
	(void)bytes;
}

uint64_t td_steps_most(unsigned slot)
{
	(void)slot;
	return 0;
}

void td_place_step(void (*send)(const struct td_msg *msg))
{
	(void)send;
}

void td_place_message(const struct td_msg_placed *msg)
{
	(void)msg;
}

void td_place_alone(void)
{
}

void td_place_disconnected(void)
{
}

void td_place_forked(void)
{
}

void td_shares_step(void (*send)(const struct td_msg *msg))
{
	(void)send;
}

void td_shares_again(void)
{
}

/* Nobody is asked to leave here. */
/* Programs of the model are no services. */
void td_service_map(int meter_fd)
{
	(void)meter_fd;
}

bool td_service_take(struct td_service_told *ret)
{
	(void)ret;
	return false;
}

void td_service_again(void)
{
}

void td_leave_asked(
	const struct td_msg_leave *msg, void (*send)(const struct td_msg *msg), uint64_t now_ns)
{
	(void)msg;
	(void)send;
	(void)now_ns;
}

uint64_t td_leave_step(uint64_t now_ns)
{
	(void)now_ns;
	return UINT64_MAX;
}

/* No program of the model shares a GPU by MPS. */
bool td_exit_is_mps(const struct td_gpu_info *gpu)
{
	(void)gpu;
	return false;
}

void td_exit_look(unsigned gpus, bool again)
{
	(void)gpus;
	(void)again;
}

bool td_exit_step(void (*send)(const struct td_msg *msg))
{
	(void)send;
	return false;
}

void td_leave_lost(void)
{
}

void td_leave_forked(void)
{
}

void td_shares_forked(void)
{
}

void *td_arena_new(uint64_t bytes)
{
	(void)bytes;
	return (void *)16;
}

void td_arena_free(void *arena, uint64_t bytes)
{
	(void)arena;
	(void)bytes;
}

uint64_t td_arena_limit(void)
{
	return UINT64_MAX;
}

bool td_ipc_keeps(uint64_t address)
{
	(void)address;
	return false;
}

bool td_ipc_is_kept(uint64_t address)
{
	(void)address;
	return false;
}

void td_ipc_context_ends(void *context)
{
	(void)context;
}

int td_ipc_describe(uint64_t address, struct td_swap_info *ret)
{
	(void)address;
	(void)ret;
	return TD_BACKEND_NOT_MINE;
}

void td_peers_context_ends(const void *context)
{
	(void)context;
}

void td_library_gone(uint64_t key)
{
	(void)key;
}

void td_job_view(const uint8_t *gpu_uuid, uint64_t total_bytes, struct td_job_view *ret)
{
	(void)gpu_uuid;
	(void)total_bytes;
	*ret = (struct td_job_view){.limit_bytes = UINT64_MAX};
}

void td_outside_refresh(void)
{
}

bool td_outside_trim(unsigned slot)
{
	(void)slot;
	return false;
}

bool td_is_no_mapping(uint64_t address, size_t bytes)
{
	(void)address;
	(void)bytes;
	return false;
}

/* -- the program -- */

static void use(int gpu)
{
	if (!quota_make_context(gpu))
		return;
	*quota_world->current() = gpu;
	td_context_use();
}

struct block {
	uint64_t address;
	bool own;
	int gpu;
	uint64_t bytes;
};

static void create_own(struct block *block, uint64_t bytes)
{
	CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
		.location = {CU_MEM_LOCATION_TYPE_DEVICE, *quota_world->current()}};
	CUmemGenericAllocationHandle handle;
	CUdeviceptr address;

	if (td_hook_cuMemCreate(&handle, bytes, &prop, 0))
		return;
	address = quota_reserve(bytes);
	if (td_hook_cuMemMap(address, bytes, 0, handle, 0)) {
		quota_world->broken(quota_self, "the model has too few mappings");
		return;
	}
	(void)td_hook_cuMemRelease(handle);
	*block = (struct block){address, true, *quota_world->current(), bytes};
}

static void allocate_block(struct block *block, uint64_t bytes)
{
	CUdeviceptr address;

	if (!td_hook_cuMemAlloc_v2(&address, bytes))
		*block = (struct block){address, false, *quota_world->current(), bytes};
}

static void manage_block(struct block *block, uint64_t bytes)
{
	CUdeviceptr address;

	if (!td_hook_cuMemAllocManaged(&address, bytes, CU_MEM_ATTACH_GLOBAL))
		*block = (struct block){address, false, *quota_world->current(), bytes};
}

static void free_block(struct block *block)
{
	int before = *quota_world->current();

	*quota_world->current() = block->gpu;
	if (block->own) {
		quota_synchronize();
		(void)td_hook_cuMemUnmap(block->address, block->bytes);
	} else if (td_hook_cuMemFree_v2(block->address)) {
		quota_world->broken(quota_self, "memory cannot be freed");
	}
	*quota_world->current() = before;
	*block = (struct block){0};
}

static void run(unsigned thread)
{
	struct block blocks[BLOCKS] = {0};
	unsigned count = 0;

	for (;;) {
		struct quota_op op = quota_world->next(quota_self, thread, count);
		bool ready = *quota_world->current() >= 0;

		switch (op.what) {
		case QUOTA_USE: use(op.gpu); break;
		case QUOTA_ALLOCATE:
		case QUOTA_CREATE:
		case QUOTA_MANAGE:
			if (!ready || count == BLOCKS)
				break;
			if (op.what == QUOTA_ALLOCATE)
				allocate_block(&blocks[count], op.bytes);
			else if (op.what == QUOTA_MANAGE)
				manage_block(&blocks[count], op.bytes);
			else
				create_own(&blocks[count],
					(op.bytes + GRANULE - 1) / GRANULE * GRANULE);
			count += blocks[count].address != 0;
			break;
		case QUOTA_FREE:
			if (!count)
				break;
			free_block(&blocks[op.index % count]);
			blocks[op.index % count] = blocks[count - 1];
			blocks[--count].address = 0;
			break;
		case QUOTA_LAUNCH:
			if (ready)
				launch(op.ns);
			break;
		case QUOTA_SLEEP: quota_wait_ns(op.ns); break;
		case QUOTA_END: return;
		}
	}
}

static void begin(const struct quota_world *w, int program, const struct quota_settings *settings)
{
	static const struct td_backend *const backends[] = {&td_backend_plain, &td_backend_swap};

	quota_world = w;
	quota_self = program;
	strcpy(td_settings.job, settings->job);
	strcpy(td_settings.name, settings->job);
	strcpy(td_settings.socket, "model");
	strcpy(td_settings.mem, settings->mem);
	strcpy(td_settings.mem_soft, settings->mem_soft);
	td_settings.class = settings->class;
	td_settings.weight = 1;
	td_settings.backend = settings->backend;
	td_settings.host_refuses = settings->refuses;
	td_settings.drain_deadline_ns = 15 * TD_NS_PER_S;
	td_settings.idle_ns = 2 * TD_NS_PER_MS;
	td_settings.grace_ns = TD_NS_PER_S;
	quota_fill_driver();
	td_agent_set_backend(td_outside_over(backends[settings->backend]));
}

static void page(uint32_t word)
{
	atomic_store(&td_gate.page.word, word);
}

static void others(uint32_t slot, uint64_t bytes)
{
	atomic_store(&td_gate.page.others_bytes[slot], bytes);
}

static uint64_t busy_ns(void)
{
	return quota_busy_until_ns;
}

__attribute__((visibility("default")))
const struct quota_program quota_program = {begin, run, page, others, td_gate_word, busy_ns};
