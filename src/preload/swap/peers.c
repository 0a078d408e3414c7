/*
 * Peer access between devices. cuCtxEnablePeerAccess opens all cuMemAlloc memory of a context,
 * present and future, but no mappings. The backend's mappings are opened here, device by device,
 * and so are its later ones. This file also handles calls that tell other hardware where memory is:
 * that memory then stays in place.
 */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#include "cuda/objects.h"
#include "preload/driver/driver.h"
#include "preload/driver/real.h"
#include "preload/rehome/rehome.h"
#include "preload/swap/peers.h"
#include "preload/swap/swap.h"

/* One entry for each cuCtxEnablePeerAccess that is in force. */
struct pair {
	struct pair *next;
	CUcontext from, to; /* work in `from` may access memory of `to` */
	CUdevice from_device, to_device;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* taken before td_swap.lock */
static struct pair *pairs;                               /* guarded by lock */

/* Asks for the device where the context's work is now, since mappings are opened for that one. */
static bool device_of(CUcontext context, CUdevice *ret)
{
	CUcontext popped;
	bool told;

	if (td_real.cuCtxPushCurrent_v2(context))
		return false;
	told = !td_driver()->ctx_get_device(ret);
	(void)td_real.cuCtxPopCurrent_v2(&popped);
	return told;
}

/* The caller holds the lock. */
static bool is_open(CUdevice from, CUdevice to)
{
	for (const struct pair *p = pairs; p; p = p->next)
		if (p->from_device == from && p->to_device == to)
			return true;
	return false;
}

/* Opens or closes the existing mappings of device `to` for device `from`, and all later ones. */
static int open_device(CUdevice from, CUdevice to, bool open)
{
	int r = CUDA_SUCCESS;

	pthread_mutex_lock(&td_swap.lock);
	td_chunk_peer(to, from, open);
	for (struct td_range *range = td_swap.ranges; range && !r; range = range->next)
		for (size_t i = 0; i < range->count && range->device == to && !r; i++)
			r = td_chunk_open(&range->chunks[i], from, open);
	if (r && open)
		td_chunk_peer(to, from, false);
	pthread_mutex_unlock(&td_swap.lock);
	return r;
}

/*
 * Removes the pair from the list. With the last pair of two devices the mappings are closed. The
 * caller holds the lock.
 */
static void remove_pair(struct pair **at)
{
	struct pair *p = *at;

	*at = p->next;
	if (!is_open(p->from_device, p->to_device))
		(void)open_device(p->from_device, p->to_device, false);
	free(p);
}

static int add_pair(CUcontext to)
{
	struct pair *p = calloc(1, sizeof(*p));
	int r = CUDA_SUCCESS;

	if (!p || td_real.cuCtxGetCurrent(&p->from) ||
		td_driver()->ctx_get_device(&p->from_device) || !device_of(to, &p->to_device)) {
		free(p);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	p->to = to;
	pthread_mutex_lock(&lock);
	if (!is_open(p->from_device, p->to_device))
		r = open_device(p->from_device, p->to_device, true);
	if (!r) {
		p->next = pairs;
		pairs = p;
	}
	pthread_mutex_unlock(&lock);
	if (r)
		free(p);
	return r;
}

CUresult td_hook_cuCtxEnablePeerAccess(CUcontext a0, unsigned a1)
{
	CUresult r, error;

	/* A move to another GPU must not come between the call and its record. */
	td_rehome_begin();
	r = td_real.cuCtxEnablePeerAccess(a0, a1);
	error = r ? r : add_pair(a0);
	if (!error)
		td_unmovable_note(TD_UNMOVABLE(PEERS));
	else if (!r)
		(void)td_real.cuCtxDisablePeerAccess(a0);
	td_rehome_end();
	return error;
}

CUresult td_hook_cuCtxDisablePeerAccess(CUcontext a0)
{
	CUresult r = td_real.cuCtxDisablePeerAccess(a0);
	CUcontext from = NULL;

	if (r)
		return r;
	(void)td_real.cuCtxGetCurrent(&from);
	pthread_mutex_lock(&lock);
	for (struct pair **p = &pairs; *p; p = &(*p)->next) {
		if ((*p)->from != from || (*p)->to != a0)
			continue;
		remove_pair(p);
		break;
	}
	pthread_mutex_unlock(&lock);
	return r;
}

void td_peers_context_ends(const void *context)
{
	pthread_mutex_lock(&lock);
	for (struct pair **p = &pairs; *p;) {
		if ((*p)->from == context || (*p)->to == context)
			remove_pair(p);
		else
			p = &(*p)->next;
	}
	pthread_mutex_unlock(&lock);
}

bool td_peers_reach(int from, int to)
{
	bool open;

	pthread_mutex_lock(&lock);
	open = is_open(from, to);
	pthread_mutex_unlock(&lock);
	return open;
}

void td_peers_forked(void)
{
	pthread_mutex_init(&lock, NULL);
	pairs = NULL;
	td_chunk_forked();
}

/*
 * -- hardware beside the GPU, such as network cards: it uses physical addresses, so the memory
 * stays in place until it is freed --
 */

/*
 * Pins the memory if it is the backend's (*ret_pinned: whether it was pinned now). Returns
 * CUDA_SUCCESS, or why it cannot be pinned.
 */
static CUresult pin_ours(CUdeviceptr address, bool *ret_pinned)
{
	struct td_swap_info info;
	CUresult r = CUDA_SUCCESS;

	*ret_pinned = !td_swap_describe(address, &info);
	if (*ret_pinned)
		r = td_swap_pin(address);
	return r;
}

/* Passes on the driver's result r. If the driver has refused the call, the pin is undone. */
static CUresult pinned_for(CUdeviceptr address, bool pinned, CUresult r)
{
	if (r && pinned)
		td_swap_unpin(address);
	return r;
}

/*
 * A program sets the attribute SYNC_MEMOPS when it is about to register the memory for RDMA, so the
 * memory is pinned.
 */
CUresult td_hook_cuPointerSetAttribute(const void *a0, int a1, CUdeviceptr a2)
{
	bool pinned = false;
	CUresult r = a1 == TD_POINTER_SYNC_MEMOPS ? pin_ours(a2, &pinned) : CUDA_SUCCESS;

	return r ? r : pinned_for(a2, pinned, td_real.cuPointerSetAttribute(a0, a1, a2));
}

CUresult td_hook_cuMemGetHandleForAddressRange(
	void *a0, CUdeviceptr a1, size_t a2, int a3, unsigned long long a4)
{
	bool pinned;
	CUresult r = pin_ours(a1, &pinned);

	return r ? r
		 : pinned_for(
			   a1, pinned, td_real.cuMemGetHandleForAddressRange(a0, a1, a2, a3, a4));
}

/*
 * After the binding, other GPUs write to this physical memory, even if the program unmaps it. So it
 * is pinned.
 */
CUresult td_hook_cuMulticastBindAddr(CUmemGenericAllocationHandle a0, size_t a1, CUdeviceptr a2,
	size_t a3, unsigned long long a4)
{
	bool pinned;
	CUresult r = pin_ours(a2, &pinned);

	return r ? r : pinned_for(a2, pinned, td_real.cuMulticastBindAddr(a0, a1, a2, a3, a4));
}
