/*
 * Checkpoints of this process or another (cuCheckpointProcess*). The calls ask the server
 * (softgpu/server/checkpoint.c). A process that is to be locked blocks its CUDA calls here, waits
 * until its work has ended, and reports that.
 * cuCheckpointProcessGetRestoreThreadId is not implemented, because no thread of the process takes
 * part in a restore here.
 */
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cuda/symbols.h"
#include "softgpu/driver/driver.h"
#include "softgpu/driver/device/fault.h"

#define LOOK_EVERY_NS 1000000

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static bool locked; /* guarded by lock */

/* -- in the process that is checkpointed -- */

void sg_checkpoint_pass(unsigned symbol)
{
	/* Calls of the checkpoint API pass, because a process may unlock itself. */
	if (symbol >= TD_SYMBOL_cuCheckpointProcessCheckpoint &&
		symbol <= TD_SYMBOL_cuCheckpointProcessUnlock)
		return;
	pthread_mutex_lock(&lock);
	while (locked)
		pthread_cond_wait(&changed, &lock);
	pthread_mutex_unlock(&lock);
}

/*
 * Waits for all submitted work and reports to the server. sg.lock is not held meanwhile, so calls
 * continue if the asker gives up and unlocks.
 */
static void *drain(void *arg)
{
	struct sg_msg msg = {.type = SG_LOCKED, .value = (uint64_t)(uintptr_t)arg};

	sg_contexts_synchronize();
	(void)sg_client_tell(sg.client, &msg);
	return NULL;
}

/* which: the server's number of the lock. */
static void set_locked(bool on, uint64_t which)
{
	pthread_t thread;

	pthread_mutex_lock(&lock);
	locked = on;
	pthread_cond_broadcast(&changed);
	pthread_mutex_unlock(&lock);
	/* The receiving thread must not block, so another thread waits. */
	if (on && pthread_create(&thread, NULL, drain, (void *)(uintptr_t)which) == 0)
		pthread_detach(thread);
}

void sg_checkpoint_notice(const struct sg_msg *msg)
{
	switch (msg->engine) {
	case SG_NOTICE_LOCK:
		__atomic_store_n(&sg_faults_armed, true, __ATOMIC_RELEASE);
		set_locked(true, msg->value);
		break;
	case SG_NOTICE_UNLOCK: set_locked(false, 0); break;
	case SG_NOTICE_REMAP: sg_client_moved(sg.client, msg->value); break;
	default: break;
	}
}

/* -- in the process that asks for a checkpoint -- */

struct lock_args {
	unsigned timeout_ms, reserved0;
	uint64_t reserved1[7];
};
struct gpu_pair {
	CUuuid from, to;
};
struct restore_args {
	const struct gpu_pair *pairs;
	unsigned count;
	char reserved[44];
	uint64_t reserved1;
};
#define ARGUMENT_BYTES 64

_Static_assert(sizeof(struct lock_args) == 64 && sizeof(struct restore_args) == 64,
	"CUcheckpointLockArgs and CUcheckpointRestoreArgs of cuda.h");

/* cuda.h: "Reserved for future use, must be zeroed". NULL: there are no arguments. */
static bool is_zero(const void *bytes, size_t count)
{
	for (size_t i = 0; bytes && i < count; i++)
		if (((const char *)bytes)[i])
			return false;
	return true;
}

static int ask_with(int pid, enum sg_checkpoint what, uint64_t map, uint32_t missing, uint64_t *ret)
{
	struct sg_msg msg = {.type = SG_CHECKPOINT,
		.engine = what,
		.range = missing,
		.value = (uint64_t)pid,
		.value2 = map};

	if (pid <= 0)
		return CUDA_ERROR_INVALID_VALUE;
	if (sg_client_request(sg.client, &msg, NULL, 0, NULL))
		return SG_LOST;
	if (ret)
		*ret = msg.value;
	switch (msg.error) {
	case SG_OK: return CUDA_SUCCESS;
	case SG_ERR_STATE: return CUDA_ERROR_ILLEGAL_STATE;
	case SG_ERR_MEMORY: return CUDA_ERROR_OUT_OF_MEMORY;
	case SG_ERR_SHARED:
	case SG_ERR_MPS: return CUDA_ERROR_NOT_SUPPORTED;
	default: return CUDA_ERROR_INVALID_VALUE;
	}
}

static int ask(int pid, enum sg_checkpoint what, uint64_t map, uint64_t *ret)
{
	return ask_with(pid, what, map, 0, ret);
}

API CUresult cuCheckpointProcessGetState(int pid, int *state)
{
	static const int states[] = {[SG_PROCESS_RUNNING] = 0,
		[SG_PROCESS_LOCKING] = 0,
		[SG_PROCESS_LOCKED] = 1,
		[SG_PROCESS_CHECKPOINTED] = 2};
	uint64_t value;
	int r = sg_ready();

	if (!r && !state)
		r = CUDA_ERROR_INVALID_VALUE;
	if (!r)
		r = ask(pid, SG_CHECKPOINT_STATE, 0, &value);
	if (!r)
		*state = states[value];
	return r;
}

/*
 * cuda.h: "CUDA_ERROR_NOT_READY ... timed out". The process continues to run in that case. A
 * timeout of 0 means no limit.
 */
static int wait_locked(int pid, unsigned timeout_ms)
{
	const struct timespec pause = {0, LOOK_EVERY_NS};
	uint64_t state;
	int r;

	for (unsigned ms = 0;; ms++) {
		r = ask(pid, SG_CHECKPOINT_STATE, 0, &state);
		if (r || state == SG_PROCESS_LOCKED)
			return r;
		if (timeout_ms && ms >= timeout_ms) {
			(void)ask(pid, SG_CHECKPOINT_UNLOCK, 0, NULL);
			return CUDA_ERROR_NOT_READY;
		}
		nanosleep(&pause, NULL);
	}
}

API CUresult cuCheckpointProcessLock(int pid, const struct lock_args *args)
{
	int r = sg_ready();

	if (!r && args && (args->reserved0 || !is_zero(args->reserved1, sizeof(args->reserved1))))
		r = CUDA_ERROR_INVALID_VALUE;
	if (!r)
		r = ask(pid, SG_CHECKPOINT_LOCK, 0, NULL);
	return r ? r : wait_locked(pid, args ? args->timeout_ms : 0);
}

/* Waits for the time that copying the bytes over the link takes. */
static void take_time(uint64_t bytes)
{
	uint64_t ns = (uint64_t)((double)bytes * 1e9 / (double)sg.devices[0].info.link_bytes_per_s);
	const struct timespec pause = {(time_t)(ns / 1000000000), (long)(ns % 1000000000)};

	nanosleep(&pause, NULL);
}

API CUresult cuCheckpointProcessCheckpoint(int pid, const void *args)
{
	uint64_t bytes;
	int r = sg_ready();

	if (!r && !is_zero(args, ARGUMENT_BYTES))
		r = CUDA_ERROR_INVALID_VALUE;
	if (!r)
		r = ask(pid, SG_CHECKPOINT_SAVE, 0, &bytes);
	if (!r)
		take_time(bytes);
	return r;
}

/*
 * Returns the server's number of the GPU. It is not a device ordinal, because the checkpointed
 * process may see other GPUs than this one.
 */
static int gpu_of(const CUuuid *uuid)
{
	for (uint32_t i = 0; i < sg.gpu_count; i++)
		if (!memcmp(uuid->bytes, sg.gpu_uuids[i], sizeof(uuid->bytes)))
			return (int)i;
	return -1;
}

/*
 * cuda.h: "it must contain every checkpointed GPU". The server knows which those are: the map tells
 * it those that are missing.
 */
static int make_map(const struct restore_args *args, uint64_t *map, uint32_t *ret_missing)
{
	*map = SG_REMAP_NOTHING;
	*ret_missing = args && args->count ? UINT32_MAX : 0;
	if (args && ((args->count && !args->pairs) || args->reserved1 ||
			    !is_zero(args->reserved, sizeof(args->reserved))))
		return CUDA_ERROR_INVALID_VALUE;
	for (unsigned i = 0; args && i < args->count; i++) {
		int from = gpu_of(&args->pairs[i].from), to = gpu_of(&args->pairs[i].to);

		if (from < 0 || to < 0 || from >= SG_REMAP_MAX || to >= SG_REMAP_MAX)
			return CUDA_ERROR_INVALID_VALUE;
		*map &= ~(15ull << (4 * from));
		*map |= (uint64_t)to << (4 * from);
		*ret_missing &= ~(1u << from);
	}
	return CUDA_SUCCESS;
}

API CUresult cuCheckpointProcessRestore(int pid, const struct restore_args *args)
{
	uint64_t map, bytes;
	uint32_t missing;
	int r = sg_ready();

	if (!r)
		r = make_map(args, &map, &missing);
	if (!r)
		r = ask_with(pid, SG_CHECKPOINT_RESTORE, map, missing, &bytes);
	if (!r)
		take_time(bytes);
	return r;
}

API CUresult cuCheckpointProcessUnlock(int pid, const void *args)
{
	int r = sg_ready();

	if (!r && !is_zero(args, ARGUMENT_BYTES))
		r = CUDA_ERROR_INVALID_VALUE;
	return r ? r : ask(pid, SG_CHECKPOINT_UNLOCK, 0, NULL);
}
