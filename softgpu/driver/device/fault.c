/*
 * The effects of injected faults in this process: contexts of a GPU die, calls fail, pinned memory
 * runs out. The server sends the faults (softgpu/server/fault.c), and every exported call checks
 * for them (api/exports.c).
 */
#include "softgpu/driver/device/fault.h"

#include <string.h>

#include "cuda/symbols.h"
#include "softgpu/driver/driver.h"

/* Written by the receiving thread and read by all threads, each field atomically by itself. */
static struct {
	int error;
	uint32_t which, calls; /* which: the number of the call that fails; 0: all of them */
} calls[TD_SYMBOL_N];
static int device_error[SG_GPU_MAX];
static uint64_t pinned_limit = UINT64_MAX, pinned_bytes;
bool sg_faults_armed;

int sg_fault_of_call(unsigned symbol)
{
	uint32_t n;
	int error;

	sg_checkpoint_pass(symbol);
	error = __atomic_load_n(&calls[symbol].error, __ATOMIC_ACQUIRE);
	if (!error)
		return CUDA_SUCCESS;
	n = __atomic_add_fetch(&calls[symbol].calls, 1, __ATOMIC_RELAXED);
	return !calls[symbol].which || calls[symbol].which == n ? error : CUDA_SUCCESS;
}

int sg_fault_of_device(uint32_t device)
{
	return __atomic_load_n(&device_error[device], __ATOMIC_ACQUIRE);
}

bool sg_fault_take_pinned(uint64_t bytes)
{
	uint64_t now = __atomic_add_fetch(&pinned_bytes, bytes, __ATOMIC_RELAXED);

	if (now <= __atomic_load_n(&pinned_limit, __ATOMIC_RELAXED))
		return true;
	sg_fault_give_pinned(bytes);
	return false;
}

void sg_fault_give_pinned(uint64_t bytes)
{
	__atomic_sub_fetch(&pinned_bytes, bytes, __ATOMIC_RELAXED);
}

/*
 * Kills this process's contexts of the device; running kernels stop soon. Taking sg.lock cannot
 * deadlock the receiving thread: only cuInit holds that lock while it waits for the server, and
 * there are no contexts then.
 */
static void end_contexts(uint32_t device, int error)
{
	struct td_list *it;

	__atomic_store_n(&device_error[device], error, __ATOMIC_RELEASE);
	if (!__atomic_load_n(&sg.initialised, __ATOMIC_ACQUIRE))
		return;
	pthread_mutex_lock(&sg.lock);
	td_list_for_each (it, &sg.contexts) {
		struct CUctx_st *context = td_container_of(it, struct CUctx_st, link);

		if (context->device == device)
			sg_context_kill(context, error);
	}
	pthread_mutex_unlock(&sg.lock);
}

/* Contexts that died stay dead, as after a GPU reset. The program must be restarted. */
static void clear(void)
{
	for (unsigned i = 0; i < TD_SYMBOL_N; i++)
		__atomic_store_n(&calls[i].error, 0, __ATOMIC_RELEASE);
	__atomic_store_n(&pinned_limit, UINT64_MAX, __ATOMIC_RELAXED);
}

void sg_fault_notice(const struct sg_msg *msg)
{
	if (msg->gpu >= SG_GPU_MAX || msg->range >= TD_SYMBOL_N)
		return;
	switch ((enum sg_fault)msg->engine) {
	case SG_FAULT_CLEAR: clear(); break;
	case SG_FAULT_ECC: end_contexts(msg->gpu, CUDA_ERROR_ECC_UNCORRECTABLE); break;
	case SG_FAULT_LOST: end_contexts(msg->gpu, SG_LOST); break;
	case SG_FAULT_HOST_MEMORY:
		__atomic_store_n(&pinned_limit, msg->value, __ATOMIC_RELAXED);
		break;
	case SG_FAULT_CALL:
		calls[msg->range].which = (uint32_t)msg->value;
		calls[msg->range].calls = 0;
		__atomic_store_n(&calls[msg->range].error, (int)msg->error, __ATOMIC_RELEASE);
		__atomic_store_n(&sg_faults_armed, true, __ATOMIC_RELEASE);
		break;
	default: break; /* handled by the server */
	}
	switch (msg->engine) {
	case SG_NOTICE_MPS: end_contexts(msg->gpu, (int)msg->value); break;
	case SG_NOTICE_LOCK:
	case SG_NOTICE_UNLOCK:
	case SG_NOTICE_REMAP: sg_checkpoint_notice(msg); break;
	default: break;
	}
}
