/*
 * cuIpc*MemHandle: tandem's handles (ipc.h) for the backend's memory, the driver's for all other
 * memory. Events always have the driver's handles.
 */
#include <stddef.h>

#include "preload/base/thread.h"
#include "preload/context/context.h"
#include "preload/driver/real.h"
#include "preload/rehome/rehome.h"
#include "preload/ipc/ipc.h"
#include "preload/outside/outside.h"

#define LAZY_PEER 1u /* CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS: the only flag, and not optional */

/* Gets the range of an allocation of the driver. Returns false if the driver does not say. */
static bool range_of(CUdeviceptr address, CUdeviceptr *ret_base, size_t *ret_bytes)
{
	return td_context_use() >= 0 && td_real.cuMemGetAddressRange_v2 &&
	       !td_real.cuMemGetAddressRange_v2(ret_base, ret_bytes, address);
}

/*
 * Notes an export: another process that has opened the memory may keep it after it is freed here.
 */
static CUresult note_handed(CUresult r, CUdeviceptr address)
{
	CUdeviceptr base;
	size_t bytes;

	if (!r && range_of(address, &base, &bytes))
		td_outside_note_handed(base, bytes);
	return r;
}

CUresult td_hook_cuIpcGetMemHandle(CUipcMemHandle *a0, CUdeviceptr a1)
{
	struct td_swap_info info;
	int r = td_swap_describe(a1, &info), cancel;

	if (r == TD_BACKEND_NOT_MINE)
		return note_handed(td_real.cuIpcGetMemHandle(a0, a1), a1);
	if (r || !a0 || info.base != a1 || td_ipc_is_kept(a1))
		return CUDA_ERROR_INVALID_VALUE;
	if (!td_chunk_has_handles())
		return CUDA_ERROR_NOT_SUPPORTED;
	cancel = td_thread_no_cancel();
	r = td_ipc_export(a1, a0);
	if (!r)
		td_unmovable_note(TD_UNMOVABLE(IPC));
	td_thread_may_cancel(cancel);
	return r;
}

/*
 * Notes an import. The exporting process counts the memory while it has it (docs/decisions/0009).
 */
static CUresult note_opened(CUresult r, const CUdeviceptr *address)
{
	CUdeviceptr base;
	size_t bytes;

	if (!r && address && range_of(*address, &base, &bytes))
		td_outside_note_opened(*address, bytes);
	return r;
}

static CUresult open_ours(CUdeviceptr *address, const CUipcMemHandle *handle, unsigned flags)
{
	struct td_swap_info info;
	uint64_t at;
	CUresult r;
	int cancel;

	if (!address || flags != LAZY_PEER)
		return CUDA_ERROR_INVALID_VALUE;
	cancel = td_thread_no_cancel();
	r = td_ipc_open(handle, &at);
	td_thread_may_cancel(cancel);
	if (r)
		return r;
	*address = at;
	if (!td_ipc_describe(at, &info))
		td_outside_note(TD_OUTSIDE_SHARED, TD_KEY_SHARED, at, info.bytes);
	return CUDA_SUCCESS;
}

CUresult td_hook_cuIpcOpenMemHandle(CUdeviceptr *a0, CUipcMemHandle a1, unsigned a2)
{
	if (td_ipc_is_ours(&a1))
		return open_ours(a0, &a1, a2);
	return note_opened(td_real.cuIpcOpenMemHandle(a0, a1, a2), a0);
}

CUresult td_hook_cuIpcOpenMemHandle_v2(CUdeviceptr *a0, CUipcMemHandle a1, unsigned a2)
{
	if (td_ipc_is_ours(&a1))
		return open_ours(a0, &a1, a2);
	return note_opened(td_real.cuIpcOpenMemHandle_v2(a0, a1, a2), a0);
}

CUresult td_hook_cuIpcCloseMemHandle(CUdeviceptr a0)
{
	struct td_key *key = td_outside_take(TD_KEY_SHARED, a0);
	int cancel = td_thread_no_cancel();
	bool last;
	int r = td_ipc_close(a0, &last);

	td_thread_may_cancel(cancel);
	if (r == TD_BACKEND_NOT_MINE)
		r = td_real.cuIpcCloseMemHandle(a0);
	return td_outside_end(key, r);
}
