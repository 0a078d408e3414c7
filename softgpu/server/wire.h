/*
 * The messages between the software driver and the softgpu server: fixed-size structs over unix
 * SOCK_SEQPACKET, one message per packet, one connection per client process. Both sides come from
 * one build; the version is checked at HELLO.
 *
 * Division of work. The driver (libcuda.so.1, in the client) owns streams, order and effects: it
 * interprets kernels and copies bytes in its own process. The server owns what processes share:
 * capacity and time. For each operation that reaches the head of its stream the driver sends BEGIN,
 * performs the effect, sends LENGTH with its findings (modelled length, pages touched) and waits
 * for DONE, which the server sends at the modelled instant: time slices, other contexts, page
 * faults and the link included. An effect that took longer than its modelled time makes the run
 * `lagged`.
 *
 * A dead client's connection closes: its contexts, memory and turn are gone at that moment. A dead
 * server closes all connections: every driver call then fails with a CUDA error (documented in
 * driver) and nothing hangs.
 *
 * The server's socket is $SOFTGPU_DIR/socket.
 */
#pragma once

#include <stdint.h>

#define SG_WIRE_VERSION 11
/*
 * A kernel may begin this long before the server hears of it. With slower messages the GPU is idle
 * meanwhile.
 */
#define SG_LATE_MAX_NS 200000u
#define SG_NAME_MAX    64
#define SG_GPU_MAX     64
/* The most page runs in one TOUCH message. */
#define SG_TOUCH_MAX 64

enum sg_msg_type {
	/* driver -> server; those marked (r) are answered by REPLY with the same ticket */
	SG_HELLO,    /* (r) pid, version -> value = gpu count */
	SG_GPU_INFO, /* (r) gpu -> struct sg_gpu_info follows in the same packet */
	/*
	 * (r) gpu, value = share of the SMs in ppm that an MPS client's context may use, 0: the
	 * client's -> value = context id; out of memory if its own cost does not fit
	 */
	SG_CONTEXT_NEW,
	SG_CONTEXT_FREE,   /* (r) context: its memory and pending operations go with it */
	SG_MEMORY_RESERVE, /* (r) gpu, context (0: owned by the process, as cuMemCreate does),
			      bytes; all or nothing */
	SG_MEMORY_RELEASE, /* (r) gpu, context, bytes */
	SG_MEMORY_HOLD,    /* (r) gpu, bytes; value, value2: of a file, inode and device; what no
			   process holds yet is reserved, all or nothing; the rest is held by one
			   more, and by the first of them charged */
	SG_MEMORY_DROP,  /* (r) value, value2: one HOLD of it less; with the last one it is freed */
	SG_MEMORY_INFO,  /* (r) gpu -> value = free bytes, value2 = total bytes */
	SG_MANAGED_NEW,  /* (r) gpu, bytes -> value = range id; takes no device memory yet */
	SG_MANAGED_FREE, /* (r) range */
	SG_OP_BEGIN,     /* op, context, engine; value = bytes for copies (length follows from the
			link); value2 = since when a kernel was the next one, 0: since now;
			range = share of the SMs that it needs by its blocks, in ppm, 0: all */
	SG_OP_TOUCH, /* op; page runs of managed ranges, in the order of access; before LENGTH */
	/*
	 * op, value = modelled solo length in ns, value2 = share of the SMs that had a block;
	 * range = share of the SMs that it needs, bytes = part of the memory bandwidth that it
	 * takes, all in ppm
	 */
	SG_OP_LENGTH,
	SG_OP_PREFETCH,    /* op, context, range, value = first byte, value2 = bytes, engine =
			      direction */
	SG_STATUS,         /* (r) -> the reply's text: one packet of JSON, at most SG_STATUS_MAX */
	SG_PROCESSES,      /* (r) gpu -> value rows of struct sg_process follow */
	SG_GPU_STATE,      /* (r) gpu -> struct sg_gpu_state follows */
	SG_GPM,            /* (r) gpu -> struct sg_gpm_sample follows */
	SG_STOP,           /* (r) the server exits after answering */
	SG_RESET_COUNTERS, /* (r) starts a new measured run: busy time, bytes, faults, lag from zero
			    */
	SG_FAULT,          /* (r) injects a fault: gpu, engine = enum sg_fault, and the fields that
			      this fault has */
	SG_CHECKPOINT,     /* (r) engine = enum sg_checkpoint, value = pid */
	SG_LOCKED,         /* this process holds up its calls, and its work has ended; value = that
			      of the notice */
	SG_XID,            /* a context ended by this Xid; sent to all clients as a NOTICE */
	SG_MEMORY_SHARE,   /* (r) gpu, context, bytes; value, value2 as for HOLD: so much of what
			      the context has becomes what HOLD would have made */
	/* MPS; mps.c. A share is in ppm of the SMs. */
	SG_MPS_SERVE, /* (r) value = GPUs, a bit each, value2 = share of clients: from now on this
			 connection is an MPS server, known by its pid */
	SG_MPS_JOIN,  /* (r) value = the server's pid, value2 = the client's own share -> value =
			 GPUs, value2 = the share that it has */
	SG_MPS_SET,   /* (r) value = the server's pid, value2 = the share that it gives to clients
			 that join later */
	SG_MPS_STATE, /* (r) value = the server's pid -> value = enum sg_mps_state, value2 = share;
			 the pids of its clients follow */
	/*
	 * (r) value = the server's pid, value2 = the number of a GPU among the server's: clients
	 * that join later get so many bytes there at most. value 0: the sender does, on that gpu.
	 */
	SG_MPS_LIMIT,
	SG_MPS_TERMINATE, /* (r) value = the server's pid, value2 = the client's */
	SG_MPS_FAULT,     /* gpu, value = CUresult: a kernel of this client faulted */
	SG_MPS_LEAVE,     /* this client ends in order, whatever is in flight */
	/* server -> driver */
	SG_REPLY,  /* ticket, error (0, or SG_ERR_*), value, value2 */
	SG_DONE,   /* op, error, value = start ns, value2 = end ns (CLOCK_MONOTONIC, modelled
		     instants) */
	SG_NOTICE, /* gpu, engine = enum sg_fault: it holds for this client from now on */
};

/*
 * Injected faults. Those marked (now) happen once, to the present clients; the others hold until
 * SG_FAULT_CLEAR, for newcomers too.
 */
enum sg_fault {
	SG_FAULT_CLEAR, /* all of them, of all GPUs; contexts that were ended stay so */
	SG_FAULT_XID,   /* (now) value = number; an event for NVML, no more */
	/* (now) an uncorrectable memory error ends every context of the GPU; Xid 48 */
	SG_FAULT_ECC,
	SG_FAULT_LOST,        /* the GPU is off the bus; Xid 79 */
	SG_FAULT_HANG,        /* nothing ends on the GPU */
	SG_FAULT_LINK,        /* value = bytes per second of pinned copies */
	SG_FAULT_HOST_MEMORY, /* value = bytes of pinned memory that each process gets at most */
	SG_FAULT_CALL, /* range = the driver's symbol (src/cuda/symbols.h), value = which call of a
				 process, 0: each; error = CUresult */
	SG_FAULT_MPS_EARLY_EXIT, /* value 1: MPS clients that are killed do no harm */
	SG_FAULT_N,
};
#define SG_FAULTS_MAX 64

/*
 * Other notices, by engine too: a process is locked, goes on, or finds its GPUs elsewhere (value:
 * see sg_remap).
 */
enum {
	SG_NOTICE_LOCK = 100,
	SG_NOTICE_UNLOCK,
	SG_NOTICE_REMAP,
	SG_NOTICE_MPS, /* gpu, value = CUresult: the contexts of this GPU are ended */
};

enum sg_mps_state { SG_MPS_ACTIVE, SG_MPS_FAULTED };

enum sg_checkpoint {
	SG_CHECKPOINT_STATE, /* -> value = enum sg_process_state */
	SG_CHECKPOINT_LOCK,
	SG_CHECKPOINT_SAVE, /* -> value = bytes that left */
	/*
	 * value2 = the new number of each of the first SG_REMAP_MAX GPUs, four bits each, range =
	 * the GPUs that were not named, a bit each -> value = bytes that came.
	 */
	SG_CHECKPOINT_RESTORE,
	SG_CHECKPOINT_UNLOCK,
	SG_CHECKPOINT_N,
};
#define SG_REMAP_MAX     16 /* the other GPUs keep their numbers */
#define SG_REMAP_NOTHING 0xfedcba9876543210ull

enum sg_process_state {
	SG_PROCESS_RUNNING,
	SG_PROCESS_LOCKING, /* its work has not ended yet */
	SG_PROCESS_LOCKED,
	SG_PROCESS_CHECKPOINTED,
};

enum sg_err {
	SG_OK,
	SG_ERR_MEMORY, /* the memory does not fit */
	SG_ERR_HANDLE, /* no such context, range or operation of this client */
	SG_ERR_VALUE,  /* a value is malformed */
	SG_ERR_VERSION,
	SG_ERR_STATE,  /* not possible in the present state */
	SG_ERR_SHARED, /* other processes hold it, too */
	SG_ERR_LOST,   /* the GPU is not there any more */
	SG_ERR_MPS,    /* not for clients of MPS */
	SG_ERR_MPS_NOT_READY,
	SG_ERR_MPS_CLIENTS, /* there are too many clients */
	SG_ERR_MPS_TERMINATED,
	SG_ERR_MPS_GONE, /* the MPS server has ended */
};

enum sg_engine {
	SG_ENGINE_COMPUTE,
	SG_ENGINE_H2D,
	SG_ENGINE_D2H,
	SG_ENGINE_D2D, /* runs on the compute engine at DRAM rate */
	SG_ENGINE_N,
};

struct sg_msg {
	uint32_t type;   /* enum sg_msg_type */
	uint32_t ticket; /* chosen by the driver; echoed by the reply */
	uint32_t gpu;
	uint32_t context;
	uint32_t engine;
	uint32_t error;
	uint32_t range;
	uint32_t flags; /* SG_FLAG_* */
	uint64_t op;    /* chosen by the driver; unique within its connection */
	uint64_t bytes;
	uint64_t value, value2;
};

#define SG_FLAG_PAGEABLE 1u /* a copy from or to pageable host memory: the slower rate */

/* Pages [first, first + count) of a range; follows struct sg_msg in an SG_OP_TOUCH packet, value =
 * number of runs. */
struct sg_touch {
	uint32_t range;
	uint32_t write; /* 1: dirties the pages */
	uint64_t first, count;
};

#define SG_FEATURE_HOST_VMM 1u /* cuMemCreate on the host */
#define SG_FEATURE_MIG                                                                             \
	2u /* divided: programs find a part, which is all of it, under a UUID of its own */

#define SG_FEATURE_IPC_KEEPS                                                                       \
	4u /* memory by IPC handle stays while others have it open, though its owner has freed it \
	    */

struct sg_gpu_info {
	char name[SG_NAME_MAX]; /* "softgpu a100" */
	uint8_t uuid[16];
	uint64_t memory_bytes, managed_page_bytes;
	uint32_t sm_count, clock_mhz, compute_major, compute_minor;
	uint32_t threads_per_sm, blocks_per_sm, shared_per_sm_bytes, shared_per_block_bytes,
		registers_per_sm;
	uint32_t instr_ps;    /* one instruction of one thread, picoseconds */
	uint64_t instr_per_s; /* of the whole GPU */
	uint64_t dram_bytes_per_s, link_bytes_per_s, launch_ns;
	uint64_t context_bytes;
	uint32_t pci_bus, pci_device;
	uint32_t features; /* SG_FEATURE_* */
	uint32_t model;    /* index into src/model's table of models, for both sides */
};

/* Load is that of the last whole window of 200 ms (SG_LOAD_WINDOW_NS). */
struct sg_gpu_state {
	uint32_t utilisation_ppm; /* a kernel, a set or a copy within the device was running */
	uint32_t link_ppm;        /* a copy over the link was running */
	uint32_t clock_mhz, temperature_celsius, power_mw, max_power_mw;
	uint64_t used_bytes, total_bytes; /* used: what cuMemGetInfo does not call free */
	uint64_t window_end_ns;           /* the end of the window that the load was measured in */
};

/* Counters since the server's start, for averages between two of them. */
struct sg_gpm_sample {
	uint64_t time_ns, busy_ns;
	uint64_t sm_busy_ns; /* busy time, weighted by the share of the SMs that had a block */
	uint64_t in_bytes, out_bytes;
};

struct sg_process {
	uint32_t pid, gpu;
	uint64_t memory_bytes; /* contexts, reservations and resident managed pages */
};

#define SG_STATUS_MAX (64 * 1024)
