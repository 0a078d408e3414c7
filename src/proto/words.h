/*
 * The words of the wire: what numbers in messages and in the shared pages mean. The daemon, the
 * library, the policies and the command line use the same ones. New values are appended, before the
 * count at the end.
 */
#pragma once

#include <stdint.h>

#define TD_GPU_MAX    64          /* per node: eight GPUs have up to 56 MIG instances */
#define TD_SLOT_MAX   16          /* GPUs of one process; a slot is the process's number of a GPU */
#define TD_SLOT_HOST  TD_SLOT_MAX /* in GRANT, USED and ASK: host memory instead of a GPU */
#define TD_CLIENT_MAX 1024        /* per node; one client = one process on one GPU */

#define TD_PPM 1000000u

/* The largest batch size of a service. */
#define TD_SERVICE_BATCH_MAX 65536u
#define TD_NEVER             UINT64_MAX

enum td_class {
	TD_CLASS_ONLINE,     /* has a latency objective */
	TD_CLASS_GUARANTEED, /* its throughput is protected */
	TD_CLASS_BESTEFFORT, /* shares what is left, fairly */
	TD_CLASS_N,
};

/* The state of a client's gate that a plan asks for. */
enum td_gate {
	TD_GATE_OPEN,
	TD_GATE_ARMED, /* open; the next launch tells the daemon that the client is busy */
	TD_GATE_CLOSED,
	TD_GATE_FILL, /* in GRANTs: still closed; memory comes back, and more room will follow */
	TD_GATE_N,
};

/*
 * The real state of a client's gate (view):
 *
 *   CLOSED   --the plan opens-->  FILLING    --all is resident-->        OPEN
 *   OPEN     --the plan closes--> DRAINING   --acknowledged-->           CLOSED
 *   FILLING  --the plan closes--> CLOSED
 *   DRAINING --past the deadline--> OPEN     (drain_overrun counts these)
 */
enum td_phase {
	TD_PHASE_CLOSED,
	TD_PHASE_FILLING,
	TD_PHASE_OPEN,
	TD_PHASE_DRAINING,
	TD_PHASE_N,
};

/* Flags about work that a client has never done before (preload/gate/fresh.c). */
#define TD_FRESH_TOLD      1u /* the client reports such work and can be kept from it */
#define TD_FRESH_WAITS     2u /* such work waits to be submitted */
#define TD_FRESH_IN_FLIGHT 4u /* such work was submitted and its end was not seen */
#define TD_FRESH_FLAGS     7u

/* How the memory of a program is kept (preload/base/backend.h). */
enum td_backend_kind {
	TD_BACKEND_PLAIN,
	TD_BACKEND_SWAP,
	TD_BACKEND_MANAGED,
	TD_BACKEND_N,
};

/* Why the backend `auto` does not move memory (preload/driver/choose.h). */
enum td_backend_reason {
	TD_BACKEND_NO_REASON,
	/* a GPU that the program sees cannot map memory as the backend needs */
	TD_BACKEND_CANNOT,
	TD_BACKEND_REGISTERS, /* an open device may give other hardware the memory's address */
	TD_BACKEND_REASON_N,
};

/* Field of ASK: the kind of memory asked for, by where it can be if the GPU has no room. */
enum td_asked {
	TD_ASKED_MOVES,   /* on the host; tandem moves it */
	TD_ASKED_STAYS,   /* on the GPU only: pools, arrays, all of the backend "plain" */
	TD_ASKED_PAGES,   /* on both; the driver pages it, and tandem prefetches it before a turn */
	TD_ASKED_UNIFIED, /* on both; the driver pages it, and it may be more than the GPU has */
	TD_ASKED_HOST,    /* the request is for host memory: the total wanted */
	TD_ASKED_N,
};

/* How a GRANT answers the ASK that has its ticket. */
enum td_answer {
	TD_ANSWER_NONE,  /* this GRANT answers no ASK */
	TD_ANSWER_OK,    /* the bytes may be on the device */
	TD_ANSWER_LATER, /* the gate is closed: the bytes stay off the device until the next fill */
	TD_ANSWER_HOST,  /* the bytes go to host memory that the device reaches */
	TD_ANSWER_NO,    /* refused: the program gets out of memory */
	TD_ANSWER_N,
};

/* DENIED: why another process's handle could not be opened. */
enum td_denied {
	TD_DENIED_NOBODY, /* its owner has ended or cannot be reached */
	TD_DENIED_USER,   /* it belongs to another user */
	TD_DENIED_FREED,  /* the memory has been freed */
	TD_DENIED_FAILED, /* the driver could not map it */
	TD_DENIED_N,
};

/*
 * SHARES: why programs in other network namespaces cannot open this program's memory, because it
 * has no socket at its path.
 */
enum td_unreachable {
	TD_UNREACHABLE_NOT,     /* no obstacle: they can */
	TD_UNREACHABLE_NOWHERE, /* the directory does not exist */
	TD_UNREACHABLE_TAKEN,   /* another file has the path and cannot be removed */
	TD_UNREACHABLE_FAILED,  /* the socket could not be created there */
	TD_UNREACHABLE_N,
};

/* An action on a client or a job, beyond its gate and limits. Plans and users (ACT) ask for it. */
enum td_action_kind {
	TD_ACTION_MAKE_ROOM,    /* some memory leaves the device while the gate is open */
	TD_ACTION_EVICT,        /* the job ends, and its supervisor may queue it again */
	TD_ACTION_MIGRATE,      /* the client moves to another GPU */
	TD_ACTION_PAUSE,        /* the gate stays closed, so that all memory may leave */
	TD_ACTION_RESUME,       /* the pause ends */
	TD_ACTION_RESTART,      /* the job ends and is started again */
	TD_ACTION_START_SHADOW, /* a second instance takes over when it is ready */
	TD_ACTION_CHECKPOINT,   /* the driver takes the program off its GPUs, onto the host */
	TD_ACTION_RESTORE,      /* the driver brings it back */
	TD_ACTION_SHARE,        /* the client gets another share of the SMs, perhaps by a shadow */
	TD_ACTION_N,
};

/* Why a program is moved to another GPU; daemon/explain has the words for users. */
enum td_move_reason {
	TD_MOVE_BY_HAND,
	TD_MOVE_OVERLOAD, /* the GPU's jobs demand more of it than it has */
	TD_MOVE_COMPACT,  /* its GPU shall become idle */
	TD_MOVE_PAIRED,   /* besteffort jobs are faster beside other services */
	TD_MOVE_REASON_N,
};

/* How far an action has come (daemon/execute/actions.h). The last three are its end. */
enum td_action_state {
	TD_ACTION_ASKED,     /* the supervisor or the program was told but has not answered yet */
	TD_ACTION_RUNNING,   /* the supervisor or the program has answered and carries it out */
	TD_ACTION_DONE,      /* the action has had its effect */
	TD_ACTION_REFUSED,   /* the action cannot be carried out; nothing more is done */
	TD_ACTION_TIMED_OUT, /* the action has had no effect by its deadline */
	TD_ACTION_STATE_N,
};

/* Bits of HELLO: what the library can do. */
#define TD_CAN_LEAVE 1u /* it can handle LEAVE */
#define TD_CAN_MOVE  2u /* it can handle MOVE */
#define TD_CAN_SHARE 4u /* it can handle MOVE with a share of the SMs */

/*
 * MOVE and MOVED: how a program comes to another GPU.
 *
 *   MOVE PREPARE --> MOVED PREPARED   its twins are there, and it has attached to that GPU
 *   MOVE GO      --> MOVED DONE       its memory is there; it detaches from the first one
 *   MOVE CANCEL                       it stays, and detaches from that GPU
 *   MOVE PUT                          the driver has moved it there, with all that it has
 *   MOVE LOOK    --> MOVABLE          even if nothing has changed
 *   MOVE HOLD                         the driver is about to block the program's calls for a
 *                                     checkpoint: the library makes none of its own from now on
 *   MOVE SAVED                        the driver has taken its memory to the host
 *   MOVE FREE                         the driver holds it no more
 *           any  --> MOVED FAILED     it stays, and detaches from that GPU
 *
 * With a share of the SMs PREPARE is about the program's own GPU: its twins are there, in a context
 * that has this share, and its memory stays as it is.
 */
enum td_move_stage {
	TD_MOVE_PREPARE,
	TD_MOVE_PREPARED,
	TD_MOVE_GO,
	TD_MOVE_DONE,
	TD_MOVE_CANCEL,
	TD_MOVE_FAILED,
	TD_MOVE_PUT,
	TD_MOVE_LOOK,
	TD_MOVE_HOLD,
	TD_MOVE_SAVED,
	TD_MOVE_FREE,
	TD_MOVE_STAGE_N,
};

/* LEAVING says how the program responds to SIGTERM, which LEAVE leads to. */
enum td_leaving {
	/* default action: the library raises SIGTERM once the device is drained */
	TD_LEAVING_ENDS,
	TD_LEAVING_HANDLES, /* by its own handler, which the library has just caused to run */
	TD_LEAVING_IGNORES, /* ignored; the device is drained once the gate is closed */
	TD_LEAVING_N,
};
