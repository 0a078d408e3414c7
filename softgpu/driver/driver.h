/*
 * The inside of softgpu's libcuda.so.1: the objects behind CUDA handles, and the functions that its
 * files call from each other.
 * Effects happen in this process: the worker thread of a stream interprets kernels and copies
 * bytes. Time and capacity belong to the server: each operation is announced to it and performed
 * here, and is complete when the server says so (softgpu/server/wire.h).
 * Lock order: sg.lock (contexts, handles) > sg_graph_lock (graphs, captures) > the lock of
 * libraries (code/library.c) > sg_pool_lock (memory pools) > context->lock (streams, their queues,
 * events) > sg_vmm_lock (mappings) > sg.memory_lock (address space, allocations). Arrays, IPC,
 * memory advice and references have locks of their own; under these only sg.memory_lock is taken.
 * No lock is held while a kernel is interpreted, bytes are copied, work is waited for, or a
 * function of the program runs. A request to the server may be made under sg_graph_lock, the lock
 * of libraries, sg_pool_lock or sg_vmm_lock. It is never made under sg.lock once there are
 * contexts, because the receiving thread takes that lock (device/fault.c).
 */
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"
#include "cuda/types.h"
#include "model/gpu_spec.h"
#include "softgpu/driver/device/bell.h"
#include "softgpu/server/client.h"

#define API __attribute__((visibility("default")))

#define GRANULE (2ull << 20)

struct sg_device {
	/*
	 * The server's number of this GPU. The devices are the GPUs that CUDA_VISIBLE_DEVICES
	 * selects.
	 */
	uint32_t gpu;
	struct sg_gpu_info info;
	uint32_t sm_count;       /* as the program sees it: an MPS client may have only a part */
	struct td_gpu_spec spec; /* the GPU's specification, for the formulas of src/model */
	struct CUctx_st *primary;
	unsigned primary_refs, primary_flags;
};

#define SG_LIMIT_N 7 /* CU_LIMIT_STACK_SIZE to CU_LIMIT_PERSISTING_L2_CACHE_SIZE */

struct CUctx_st {
	uint64_t magic;
	struct td_list link; /* in sg.contexts */
	unsigned device, flags, api_version;
	uint32_t id;       /* the server's number of the context */
	uint32_t sm_count; /* the SMs that its kernels may use */
	bool primary;
	pthread_mutex_t lock;
	struct sg_bell changed; /* rung when an operation ends or is queued */
	struct td_list streams, events, modules;
	struct CUstream_st *legacy;
	int error;           /* sticky: the CUresult that killed the context */
	volatile int cancel; /* set: running kernels stop soon */
	uint32_t peers;      /* devices enabled by cuCtxEnablePeerAccess, one bit each */
	size_t limits[SG_LIMIT_N];
	int cache_config, bank_config;
};

struct sg_work;

struct CUstream_st {
	struct td_list link; /* in context->streams */
	struct CUctx_st *context;
	unsigned flags;
	int priority;
	/* numbers of operations; written under context->lock, completed is read without it */
	uint64_t submitted, completed;
	struct sg_work *first, **last; /* queue; context->lock */
	uint64_t last_end_ns;          /* modelled time at which the last operation ended */
	bool has_worker, closing;
	pthread_t worker, thread; /* thread: the owner of a per-thread default stream */
	bool per_thread;
	struct sg_capture *capture; /* sg_graph_lock */
	/* nodes that the next captured node depends on; sg_graph_lock */
	struct CUgraphNode_st **front;
	size_t front_count;
	uint64_t id;
	int sync_policy; /* CUsynchronizationPolicy */
	char access_window[32];
};

struct CUevent_st {
	struct td_list link;
	struct CUctx_st *context;
	unsigned flags;
	struct CUstream_st *stream; /* where it was last recorded; NULL: never */
	uint64_t ticket;            /* the record's position in that stream */
	uint64_t time_ns;           /* modelled time at which the position was reached */
	bool reached;
	/*
	 * The capture in which it was last recorded, which may have ended; 0 if none.
	 * sg_graph_lock.
	 */
	uint64_t capture_id;
	struct CUgraphNode_st **front; /* captured nodes before the record */
	size_t front_count;
	struct sg_shared_event *shared; /* NULL: not an interprocess event */
	int shared_fd;                  /* -1: another process created it */
};

struct sg_dependency {
	struct CUstream_st *stream;
	uint64_t ticket;
};

/*
 * One operation in a stream. The stream's worker calls run() without any lock. A CUresult other
 * than 0 from run() kills the context.
 */
struct sg_work {
	struct sg_work *next;
	size_t bytes; /* size of this struct with what follows it; copying it copies these bytes */
	int node;     /* CU_GRAPH_NODE_TYPE_* + 1; 0: cannot be captured */
	/*
	 * These three may be NULL. queued() is called under context->lock when the operation gets
	 * its ticket. release() frees what the operation owns besides itself. copied() does for a
	 * copy what copying the bytes does not, for example counts a reference.
	 */
	void (*queued)(struct CUstream_st *stream, struct sg_work *work, uint64_t ticket);
	void (*release)(struct sg_work *work);
	void (*copied)(struct sg_work *copy);
	int (*run)(struct CUstream_st *stream, struct sg_work *work);
	struct sg_dependency *after;
	size_t after_count;
	uint64_t submit_ns;
	bool when_dead; /* also runs in a dead context */
};

/* The state of the whole process. */
struct sg_state {
	pthread_mutex_t lock;
	bool initialised;
	pid_t pid;
	struct sg_client *client;
	uint32_t device_count;
	struct sg_device devices[SG_GPU_MAX];
	uint32_t gpu_count; /* all GPUs of the server */
	uint8_t gpu_uuids[SG_GPU_MAX][16];
	struct td_list contexts;
	pthread_rwlock_t memory_lock;
};
extern struct sg_state sg;

/* -- device/device.c -- */
/* Returns the device that is the server's GPU `gpu`. False if the process does not see that GPU. */
bool sg_device_of_gpu(uint32_t gpu, uint32_t *ret);

/* -- device/context.c -- */
/*
 * Returns CUDA_SUCCESS and the calling thread's live context, or the error that the calling entry
 * point must return.
 */
int sg_current(struct CUctx_st **ret);
/* Returns CUDA_SUCCESS, or the error that every call which uses this context must return. */
int sg_context_check(struct CUctx_st *context);
bool sg_context_is_live(const struct CUctx_st *context);
/* Returns the calling thread's current context, dead or not, or NULL. */
struct CUctx_st *sg_current_or_null(void);
/*
 * Returns NOT_INITIALIZED before cuInit and in a forked child, NOT_PERMITTED inside a host
 * function.
 */
int sg_ready(void);
extern _Thread_local bool sg_in_host_function;
/* Waits until all work queued in the context has ended. */
int sg_context_synchronize(struct CUctx_st *context);
/* Waits for the work of every live context. It does not hold sg.lock while it waits. */
void sg_contexts_synchronize(void);
void sg_context_kill(struct CUctx_st *context, int error);

/* -- device/context_settings.c -- */
void sg_context_defaults(struct CUctx_st *context);
/* True if all flags are known and at most one scheduling flag is set. */
bool sg_context_flags_are_good(unsigned flags);

/*
 * Every call that takes a stream exists twice. In the _ptsz form, NULL means the calling thread's
 * default stream.
 */
#define SG_BOTH(name, parameters, plain, ptsz)                                                     \
	API CUresult name parameters                                                               \
	{                                                                                          \
		return plain;                                                                      \
	}                                                                                          \
	API CUresult name##_ptsz parameters                                                        \
	{                                                                                          \
		return ptsz;                                                                       \
	}

/* -- stream/capture.c -- */
/*
 * The checks return CUDA_SUCCESS, or the error that a call must return because streams are
 * capturing.
 */
#define SG_NOT_CAPTURING (-1)
bool sg_stream_is_capturing(struct CUstream_st *stream);
/*
 * Invalidates the capture of a stream that was given a call it cannot capture. Returns the call's
 * error.
 */
int sg_capture_refuse(struct CUstream_st *stream);
/*
 * Four kinds of calls are checked: those that query or wait for a stream, those that concern all of
 * a context, those that query or wait for an event, and those that cuda.h calls "potentially
 * unsafe".
 */
int sg_capture_check_stream(struct CUstream_st *stream);
int sg_capture_check_context(struct CUctx_st *context);
int sg_capture_check_event(struct CUevent_st *event, bool waits);
int sg_capture_check_unsafe(void);
/*
 * These return SG_NOT_CAPTURING, or the call's result after the operation went into the graph. In
 * the second case sg_capture_take() owns the work, even on failure.
 */
int sg_capture_take(struct CUstream_st *stream, struct sg_work *work);
int sg_capture_record(struct CUstream_st *stream, struct CUevent_st *event, unsigned flags);
int sg_capture_wait(struct CUstream_st *stream, struct CUevent_st *event, unsigned flags);
void sg_capture_context_gone(struct CUctx_st *context);
/* sg_current() for a potentially unsafe call. */
int sg_current_unsafe(struct CUctx_st **ret);

/* -- stream/stream.c -- */
struct CUstream_st *sg_stream_new(struct CUctx_st *context, unsigned flags, int priority);
/* Invalidates the handles of all streams of the context. Work that is queued still runs. */
void sg_streams_context_gone(struct CUctx_st *context);
/*
 * Finds the stream that a handle means for this thread, which must have a current context. NULL is
 * the legacy stream of that context, or with ptsz the thread's default stream. The stream may
 * belong to another context; the few calls for which cuda.h forbids that (launches, event records)
 * check it themselves.
 */
int sg_stream_find(CUstream handle, bool ptsz, struct CUstream_st **ret);
/* Queues work, which must be malloc'ed and is freed after it ran. ret_ticket may be NULL. */
int sg_stream_submit(struct CUstream_st *stream, struct sg_work *work, uint64_t *ret_ticket);
int sg_stream_wait_ticket(struct CUstream_st *stream, uint64_t ticket);
/* True if the stream has completed all operations up to ticket. Takes no lock. */
bool sg_stream_reached(const struct CUstream_st *stream, uint64_t ticket);

/* -- stream/event.c -- */
/* Returns the event, of any context, or NULL if the handle is not live. */
struct CUevent_st *sg_event_find(CUevent handle);
void sg_events_context_gone(struct CUctx_st *context);
/*
 * Returns the position at which the event was last recorded. The stream is NULL if there was no
 * record, or if another process made it.
 */
struct sg_dependency sg_event_last(struct CUevent_st *event);

/* -- memory/addresses.c -- */
enum sg_memory_kind {
	SG_MEMORY_DEVICE,
	SG_MEMORY_MANAGED,
	SG_MEMORY_PINNED,
	SG_MEMORY_REMOTE /* host memory of cuMemCreate, at device addresses */
};
struct sg_allocation {
	uint64_t base, bytes; /* address as the program sees it */
	enum sg_memory_kind kind;
	struct CUctx_st *context; /* NULL: mapped by the program (cuMemMap) */
	uint64_t id;              /* unique in the process; set by sg_allocation_add() */
	uint32_t device, range;   /* range: the server's number of a managed range */
	bool registered;          /* pinned by cuMemHostRegister; the program owns the pages */
	bool owned;               /* by a variable or an array: cannot be freed or exported */
	bool freeing;             /* a cuMemFreeAsync of it is queued */
	unsigned host_flags;      /* of pinned memory, as cuMemHostGetFlags returns them */
};
/* Finds the allocation that contains [address, address + bytes). False if there is none. */
bool sg_memory_find(uint64_t address, uint64_t bytes, struct sg_allocation *ret);
/* True if any allocation intersects [address, address + bytes). */
bool sg_memory_overlaps(uint64_t address, uint64_t bytes);
/*
 * Translates a device address for an access by the context. Returns the host pointer behind it, the
 * last address of its granule, and whether the access crosses the link. Returns NULL if nothing is
 * mapped there or the context may not access it. Without a context, memory that any device may
 * access is found, which is what copies need.
 */
void *sg_memory_translate(
	const struct CUctx_st *context, uint64_t address, uint64_t *ret_last, bool *ret_remote);
/*
 * Copy or fill bytes at addresses of any kind, page by page. Return 0 or ILLEGAL_ADDRESS. Any
 * address outside the window of device addresses is used as a host pointer.
 */
int sg_memory_copy(uint64_t target, uint64_t source, uint64_t bytes);
int sg_memory_fill(uint64_t target, uint64_t pattern, unsigned pattern_bytes, uint64_t count);
void sg_memory_context_gone(struct CUctx_st *context);
void sg_pinned_context_gone(struct CUctx_st *context); /* memory/alloc.c */
/* Returns the address of some allocation of that kind that belongs to the context, or 0. */
uint64_t sg_allocation_of_context(const struct CUctx_st *context, enum sg_memory_kind kind);
/*
 * Allocates managed memory whose home is `device`. context is NULL if the process owns the memory.
 */
int sg_managed_new(uint32_t device, struct CUctx_st *context, uint64_t bytes, uint64_t *ret);
void sg_managed_free(const struct sg_allocation *allocation);
/* owned: the memory belongs to a variable or an array, so the program cannot free or export it. */
int sg_memory_alloc(struct CUctx_st *context, uint64_t bytes, bool owned, uint64_t *ret);
int sg_memory_release(struct CUctx_st *context, uint64_t address);
/* Reserves device addresses. Returns 0 if the window is full. */
uint64_t sg_address_reserve(uint64_t bytes, uint64_t align);
void sg_address_release(uint64_t base, uint64_t bytes);
struct sg_granule {
	uint8_t *host;
	uint32_t devices; /* devices that may access it, one bit each */
	uint8_t home;     /* the device whose memory it is */
	/* peers: contexts with peer access to home reach it; remote: it is host memory */
	bool peers, remote;
};
/*
 * Sets the granules from base on. granule->host is the memory behind the first one; NULL there
 * unmaps them.
 */
void sg_granules_set(uint64_t base, uint64_t bytes, const struct sg_granule *granule);
#define SG_DEVICE_BIT(device) (1u << (device))
void sg_allocation_add(const struct sg_allocation *allocation);
bool sg_allocation_remove(uint64_t base, struct sg_allocation *ret);
/*
 * Marks memory of cuMemAlloc as being freed by queued work, or takes the mark back. Returns false
 * if base is not such an allocation, or already has that state.
 */
bool sg_allocation_set_freeing(uint64_t base, bool freeing);
/* True if the address is in the window of device addresses. */
bool sg_is_device_address(uint64_t address);
/* Returns the file that is behind an address from cuMemAlloc, and the offset in it. */
int sg_arena_place(uint64_t address, uint64_t *ret_offset);
/*
 * Lets other processes hold the granules of an allocation (IPC), so that its owner's free releases
 * only the owner's hold. Returns the number that an importer passes as value2 of SG_MEMORY_HOLD.
 * Returns 0 on failure, and where SG_FEATURE_IPC_KEEPS is off.
 */
uint64_t sg_granules_share(const struct sg_allocation *allocation);
void *sg_pages_new(uint64_t bytes);
/*
 * Unmaps pages at once, or after the last sg_pages_leave() if any thread is between enter and
 * leave, because a running kernel or copy may still hold pointers into them.
 */
void sg_pages_free(void *pages, uint64_t bytes);
void sg_pages_enter(void);
void sg_pages_leave(void);
/*
 * Reserves capacity on the device. Returns CUDA_SUCCESS, OUT_OF_MEMORY, or DEVICE_UNAVAILABLE
 * without a server. When there is too little, unused memory of pools is given up first. Takes
 * sg_pool_lock.
 */
int sg_reserve(uint32_t device, uint32_t context_id, uint64_t bytes);
/* Does what sg_reserve() does, but takes nothing from the pools. */
int sg_reserve_what_is_free(uint32_t device, uint32_t context_id, uint64_t bytes);
void sg_release(uint32_t device, uint32_t context_id, uint64_t bytes);

/* -- memory/pool*.c -- */
/* Frees memory of a pool at once. False if the address is not in a pool. */
bool sg_pool_free(uint64_t address);
/*
 * Free a graph's allocation that is in use, at once or in stream order. Return NOT_FOUND if the
 * address is not such an allocation.
 */
int sg_graph_memory_free(uint64_t address);
int sg_graph_memory_free_async(struct CUstream_st *stream, uint64_t address);
/* Returns the pool that owns this address, or NULL. */
void *sg_pool_of(uint64_t address);
/*
 * Releases pool memory over the release thresholds. Called after a stream, an event or a context
 * was synchronised.
 */
void sg_pools_synchronized(void);
/* Releases all unused memory of the device's pools. */
void sg_pools_trim(uint32_t device);

/* -- error.c -- */
/* The server is gone. Programs see what they would see after the loss of a GPU. */
#define SG_LOST CUDA_ERROR_DEVICE_UNAVAILABLE
