/*
 * Inside libcuda.so.1 of softgpu: the objects behind the handles and what the files ask of each other.
 *
 * Effects happen in this process: kernels are interpreted and bytes copied by the worker thread of the stream. Time and capacity are the
 * server's: each operation is announced, performed, and over when the server says so (softgpu/server/wire.h).
 *
 * Locks, in this order: sg.lock (contexts, handles) > sg_graph_lock (graphs, captures) > the libraries' (code/library.c) > pool_lock (memory pools) >
 * context->lock (streams, their queues, events) > sg_vmm_lock (mappings) > sg.memory_lock (address space, allocations). Arrays, IPC, advice and
 * references have locks of their own, under which no other of the driver's but sg.memory_lock is taken. None is held while interpreting, copying
 * or waiting for work, nor while the program's functions run; the server is asked under sg_graph_lock, the libraries', pool_lock or sg_vmm_lock,
 * never under sg.lock once there are contexts: the receiving thread takes that one (device/fault.c).
 */
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"
#include "cuda/types.h"
#include "model/gpu_spec.h"
#include "softgpu/server/client.h"

#define API __attribute__((visibility("default")))

#define GRANULE (2ull << 20)

struct sg_device {
	uint32_t
		gpu; /* the server's number of it: devices are those that CUDA_VISIBLE_DEVICES shows */
	struct sg_gpu_info info;
	struct td_gpu_spec spec; /* of the model, for the formulas of src/model */
	struct CUctx_st *primary;
	unsigned primary_refs, primary_flags;
};

#define SG_LIMIT_N 7 /* CU_LIMIT_STACK_SIZE to CU_LIMIT_PERSISTING_L2_CACHE_SIZE */

struct CUctx_st {
	uint64_t magic;
	struct td_list link; /* in sg.contexts */
	unsigned device, flags, api_version;
	uint32_t id; /* the server's */
	bool primary;
	pthread_mutex_t lock;
	pthread_cond_t changed; /* an operation has ended, or was queued */
	struct td_list streams, events, modules;
	struct CUstream_st *legacy;
	int error;           /* sticky: CUresult of what killed the context */
	volatile int cancel; /* running kernels end soon */
	uint32_t peers;      /* devices whose memory it reaches (cuCtxEnablePeerAccess); bits */
	size_t limits[SG_LIMIT_N];
	int cache_config, bank_config;
};

struct sg_work;

struct CUstream_st {
	struct td_list link; /* in context->streams */
	struct CUctx_st *context;
	unsigned flags;
	int priority;
	uint64_t submitted,
		completed; /* operations; written under context->lock, completed is read without */
	struct sg_work *first, **last; /* queue; context->lock */
	uint64_t last_end_ns;          /* modelled end of the last operation */
	bool has_worker, closing;
	pthread_t worker, thread; /* thread: whose default stream it is */
	bool per_thread;
	struct sg_capture *capture;    /* sg_graph_lock */
	struct CUgraphNode_st **front; /* what its next node comes after; sg_graph_lock */
	size_t front_count;
	uint64_t id;
	int sync_policy; /* CUsynchronizationPolicy */
	char access_window[32];
};

struct CUevent_st {
	struct td_list link;
	struct CUctx_st *context;
	unsigned flags;
	struct CUstream_st *stream; /* recorded last; NULL: never */
	uint64_t ticket;            /* position in it */
	uint64_t time_ns;           /* when that was reached */
	bool reached;
	uint64_t
		capture_id; /* recorded last in that capture, perhaps over; 0: in none; sg_graph_lock */
	struct CUgraphNode_st **front; /* what came before it there */
	size_t front_count;
	struct sg_shared_event *shared; /* NULL: this process's alone */
	int shared_fd;                  /* -1: another process made it */
};

struct sg_dependency {
	struct CUstream_st *stream;
	uint64_t ticket;
};

/* One operation in a stream. run() is called without locks by the stream's worker; it returns a CUresult that kills the context if not 0. */
struct sg_work {
	struct sg_work *next;
	size_t bytes; /* of the whole operation: a copy of them is one too */
	int node;     /* CU_GRAPH_NODE_TYPE_* + 1; 0: cannot be captured */
	/* May be NULL. queued: it is at ticket now, context->lock is held. release: what it owns besides itself. */
	void (*queued)(struct CUstream_st *stream, struct sg_work *work, uint64_t ticket);
	void (*release)(struct sg_work *work);
	void (*copied)(struct sg_work *copy); /* what a copy of it needs besides the bytes */
	int (*run)(struct CUstream_st *stream, struct sg_work *work);
	struct sg_dependency *after;
	size_t after_count;
	uint64_t submit_ns;
	bool when_dead; /* runs in a dead context too */
};

/* The process's one state. */
struct sg_state {
	pthread_mutex_t lock;
	bool initialised;
	pid_t pid;
	struct sg_client *client;
	uint32_t device_count;
	struct sg_device devices[SG_GPU_MAX];
	uint32_t gpu_count; /* all of the server */
	uint8_t gpu_uuids[SG_GPU_MAX][16];
	struct td_list contexts;
	pthread_rwlock_t memory_lock;
};
extern struct sg_state sg;

/* -- device/device.c: the device that is that GPU of the server; false: not visible -- */
bool sg_device_of_gpu(uint32_t gpu, uint32_t *ret);

/* -- device/context.c -- */
/* CUDA_SUCCESS with the calling thread's context, alive; or what a call must return. */
int sg_current(struct CUctx_st **ret);
/* CUDA_SUCCESS, or what every call that uses this context must return. */
int sg_context_check(struct CUctx_st *context);
bool sg_context_is_live(const struct CUctx_st *context);
/* Also lets a dead context through, with its error as the result. */
struct CUctx_st *sg_current_or_null(void);
int sg_ready(void); /* NOT_INITIALIZED, or in a forked child; NOT_PERMITTED in a host function */
extern _Thread_local bool sg_in_host_function;
/* Waits until everything queued in the context has ended. */
int sg_context_synchronize(struct CUctx_st *context);
/* The same of all contexts that there are, without sg.lock. */
void sg_contexts_synchronize(void);
void sg_context_kill(struct CUctx_st *context, int error);

/* -- device/context_settings.c -- */
void sg_context_defaults(struct CUctx_st *context);
/* Known ones, and one way of waiting. */
bool sg_context_flags_are_good(unsigned flags);

/* Every call that takes a stream exists twice: in the second form NULL is the calling thread's own default stream. */
#define SG_BOTH(name, parameters, plain, ptsz)                                                     \
	API CUresult name parameters                                                               \
	{                                                                                          \
		return plain;                                                                      \
	}                                                                                          \
	API CUresult name##_ptsz parameters                                                        \
	{                                                                                          \
		return ptsz;                                                                       \
	}

/* -- stream/stream.capture.c: what a call must return while streams capture, or CUDA_SUCCESS -- */
#define SG_NOT_CAPTURING (-1)
bool sg_stream_is_capturing(struct CUstream_st *stream);
/* The capturing stream cannot take this: its capture is spoilt. */
int sg_capture_refuse(struct CUstream_st *stream);
/* A call that looks at a stream, at everything in a context, at an event; one that is potentially unsafe. */
int sg_capture_check_stream(struct CUstream_st *stream);
int sg_capture_check_context(struct CUctx_st *context);
int sg_capture_check_event(struct CUevent_st *event, bool waits);
int sg_capture_check_unsafe(void);
/* SG_NOT_CAPTURING, or the result: it has gone into a graph (work is taken over then). */
int sg_capture_take(struct CUstream_st *stream, struct sg_work *work);
int sg_capture_record(struct CUstream_st *stream, struct CUevent_st *event, unsigned flags);
int sg_capture_wait(struct CUstream_st *stream, struct CUevent_st *event, unsigned flags);
void sg_capture_context_gone(struct CUctx_st *context);
/* sg_current() of a potentially unsafe call. */
int sg_current_unsafe(struct CUctx_st **ret);

/* -- stream/stream.c -- */
struct CUstream_st *sg_stream_new(struct CUctx_st *context, unsigned flags, int priority);
/* No handle of them works any more; what is queued still runs. */
void sg_streams_context_gone(struct CUctx_st *context);
/*
 * The stream that a handle means for this thread, which needs a current context: NULL is that one's legacy stream, or with ptsz the thread's own.
 * A stream may be another context's: cuda.h forbids that to few (kernels, recording events).
 */
int sg_stream_find(CUstream handle, bool ptsz, struct CUstream_st **ret);
/* Queues work (malloc'ed, freed after it ran). *ret_ticket may be NULL. */
int sg_stream_submit(struct CUstream_st *stream, struct sg_work *work, uint64_t *ret_ticket);
int sg_stream_wait_ticket(struct CUstream_st *stream, uint64_t ticket);
/* Its work has ended up to ticket. Without a lock. */
bool sg_stream_reached(const struct CUstream_st *stream, uint64_t ticket);

/* -- stream/event.c: of any context; NULL: none -- */
struct CUevent_st *sg_event_find(CUevent handle);
void sg_events_context_gone(struct CUctx_st *context);
/* What was recorded last. No stream: nothing was, or by another process. */
struct sg_dependency sg_event_last(struct CUevent_st *event);

/* -- memory/addresses.c -- */
enum sg_memory_kind {
	SG_MEMORY_DEVICE,
	SG_MEMORY_MANAGED,
	SG_MEMORY_PINNED,
	SG_MEMORY_REMOTE /* host memory at device addresses (cuMemCreate) */
};
struct sg_allocation {
	uint64_t base, bytes; /* as the program sees it */
	enum sg_memory_kind kind;
	struct CUctx_st *context; /* NULL: mapped by the program itself (VMM) */
	uint64_t id;              /* unique in the process; by sg_allocation_add() */
	uint32_t device, range;   /* range: the server's, of managed memory */
	bool registered;          /* pinned memory that the program owns */
	bool owned;               /* by a variable or an array: not to be freed or exported */
	bool freeing;             /* by work in a stream, once it gets there */
	unsigned host_flags;      /* of pinned memory: as cuMemHostGetFlags tells them */
};
/* The allocation that holds [address, address + bytes); false: none. */
bool sg_memory_find(uint64_t address, uint64_t bytes, struct sg_allocation *ret);
/* Does an allocation begin or lie in it? */
bool sg_memory_overlaps(uint64_t address, uint64_t bytes);
/* Host pointer behind a device address, the last address of its granule, and whether it lies across the link; NULL: nothing that the context
 * may access is mapped. Without a context: that any device may access, as copies reach. */
void *sg_memory_translate(
	const struct CUctx_st *context, uint64_t address, uint64_t *ret_last, bool *ret_remote);
/* Copies between addresses of any kind, page by page: 0 or ILLEGAL_ADDRESS. Plain host memory is any address that we do not know. */
int sg_memory_copy(uint64_t target, uint64_t source, uint64_t bytes);
int sg_memory_fill(uint64_t target, uint64_t pattern, unsigned pattern_bytes, uint64_t count);
void sg_memory_context_gone(struct CUctx_st *context);
void sg_pinned_context_gone(struct CUctx_st *context); /* alloc.c */
/* The address of some allocation of that kind that the context has; 0: none. */
uint64_t sg_allocation_of_context(const struct CUctx_st *context, enum sg_memory_kind kind);
/* Managed memory of a device; context may be NULL: the process's own. */
int sg_managed_new(uint32_t device, struct CUctx_st *context, uint64_t bytes, uint64_t *ret);
void sg_managed_free(const struct sg_allocation *allocation);
/* owned: a variable's or an array's, not the program's to free or to export. */
int sg_memory_alloc(struct CUctx_st *context, uint64_t bytes, bool owned, uint64_t *ret);
int sg_memory_release(struct CUctx_st *context, uint64_t address);
/* Reserves device addresses; 0: none left. */
uint64_t sg_address_reserve(uint64_t bytes, uint64_t align);
void sg_address_release(uint64_t base, uint64_t bytes);
struct sg_granule {
	uint8_t *host;
	uint32_t devices;   /* may access it; bits */
	uint8_t home;       /* the device that it is memory of */
	bool peers, remote; /* contexts with peer access to home reach it; it is host memory */
};
/* Of what is at `granule->host` on from base; NULL there: nothing. */
void sg_granules_set(uint64_t base, uint64_t bytes, const struct sg_granule *granule);
#define SG_DEVICE_BIT(device) (1u << (device))
void sg_allocation_add(const struct sg_allocation *allocation);
bool sg_allocation_remove(uint64_t base, struct sg_allocation *ret);
/* Memory of cuMemAlloc is, or is not any more, to be freed by work in a stream. False: it is none, or that already. */
bool sg_allocation_set_freeing(uint64_t base, bool freeing);
/* The device window. */
bool sg_is_device_address(uint64_t address);
/* File and offset of what is at an address from cuMemAlloc. */
int sg_arena_place(uint64_t address, uint64_t *ret_offset);
/*
 * The granules that an allocation lies in, as ones that other processes may hold by value and value2 of SG_MEMORY_HOLD: its owner, when it frees them, lets go of them alone. 0: not,
 * or where that is not modelled (SG_FEATURE_IPC_KEEPS), else value2.
 */
uint64_t sg_granules_share(const struct sg_allocation *allocation);
void *sg_pages_new(uint64_t bytes);
/* At once, or when nothing is between enter and leave any more: what runs may still hold pointers into them. */
void sg_pages_free(void *pages, uint64_t bytes);
void sg_pages_enter(void);
void sg_pages_leave(void);
/* CUDA_SUCCESS or OUT_OF_MEMORY, or DEVICE_UNAVAILABLE without a server. What pools hold and do not use is given up for it; takes sg_pool_lock. */
int sg_reserve(uint32_t device, uint32_t context_id, uint64_t bytes);
/* The same without a look at pools. */
int sg_reserve_what_is_free(uint32_t device, uint32_t context_id, uint64_t bytes);
void sg_release(uint32_t device, uint32_t context_id, uint64_t bytes);

/* -- memory/pool*.c -- */
/* Frees memory of a pool at once; false: it is none. */
bool sg_pool_free(uint64_t address);
/* A graph's allocation that is in use: gives it back at once, or in the order of a stream. NOT_FOUND: it is none. */
int sg_graph_memory_free(uint64_t address);
int sg_graph_memory_free_async(struct CUstream_st *stream, uint64_t address);
/* The pool that gave out this address; NULL: none. */
void *sg_pool_of(uint64_t address);
/* A stream, an event or a context was waited for: pools let go of what they need not keep. */
void sg_pools_synchronized(void);
/* Gives back what the pools of that device hold and nobody uses. */
void sg_pools_trim(uint32_t device);

/* -- error.c -- */
#define SG_LOST                                                                                    \
	CUDA_ERROR_DEVICE_UNAVAILABLE /* the server is gone: what a lost device's users see */
