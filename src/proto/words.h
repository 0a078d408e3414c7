/*
 * The words of the wire: what numbers in messages and in the shared pages mean. The daemon, the
 * library, the policies and the command line use the same ones. New values are appended, before the
 * count at the end.
 */
#pragma once

#include <stdint.h>

#define TD_GPU_MAX    64   /* per node: eight GPUs make up to 56 MIG slices */
#define TD_SLOT_MAX   16   /* GPUs that one process uses; a slot is its own number of a GPU */
#define TD_SLOT_HOST  TD_SLOT_MAX /* in GRANT, USED and ASK: the host's memory, not a GPU's */
#define TD_CLIENT_MAX 1024 /* per node; one client = one process on one GPU */

#define TD_PPM   1000000u

/* The largest batch of a service. */
#define TD_SERVICE_BATCH_MAX 65536u
#define TD_NEVER UINT64_MAX

enum td_class {
	TD_CLASS_ONLINE,     /* has a latency objective */
	TD_CLASS_GUARANTEED, /* its throughput is protected */
	TD_CLASS_BESTEFFORT, /* shares what is left, fairly */
	TD_CLASS_N,
};

/* A client's gate in a plan. */
enum td_gate {
	TD_GATE_OPEN,
	TD_GATE_ARMED, /* open, and the next launch reports that the client is busy again */
	TD_GATE_CLOSED,
	TD_GATE_FILL, /* in GRANTs: closed still, memory comes back, and more room is to come */
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
#define TD_FRESH_TOLD      1u /* it says so, and can be kept from it */
#define TD_FRESH_WAITS     2u /* there is some to submit */
#define TD_FRESH_IN_FLIGHT 4u /* some was submitted and not seen to end */
#define TD_FRESH_FLAGS     7u

/* How the memory of a program is kept (preload/base/backend.h). */
enum td_backend_kind {
	TD_BACKEND_PLAIN,
	TD_BACKEND_SWAP,
	TD_BACKEND_MANAGED,
	TD_BACKEND_N,
};

/* Why memory stays where it is, under the backend `auto` (choose.h). */
enum td_backend_reason {
	TD_BACKEND_NO_REASON,
	TD_BACKEND_CANNOT,    /* a GPU that the program sees cannot map memory as it takes */
	TD_BACKEND_REGISTERS, /* a device is open that may tell other hardware where memory is */
	TD_BACKEND_REASON_N,
};

/* Where memory that a program asks for can be, if it is not on the device. */
enum td_asked {
	TD_ASKED_MOVES,   /* on the host: the backend moves it */
	TD_ASKED_STAYS,   /* nowhere: pools, arrays, all memory of a program under `plain` */
	TD_ASKED_PAGES,   /* anywhere: the driver pages it, and the backend moves it for turns */
	TD_ASKED_UNIFIED, /* anywhere: the driver pages it, and it may be larger than the device */
	TD_ASKED_HOST,    /* it is the host's memory that is asked for: so much in all */
	TD_ASKED_N,
};

/* How a GRANT answers the ASK that has its ticket. */
enum td_answer {
	TD_ANSWER_NONE,  /* there is no answer in it */
	TD_ANSWER_OK,    /* the bytes may be on the device */
	TD_ANSWER_LATER, /* the gate is closed: they stay off the device until the next fill */
	TD_ANSWER_HOST,  /* they lie in host memory that the device reaches */
	TD_ANSWER_NO,    /* the program is out of memory */
	TD_ANSWER_N,
};

/* Why a handle of another process's could not be opened. On the wire. */
enum td_denied {
	TD_DENIED_NOBODY, /* its owner has ended, or cannot be reached from here */
	TD_DENIED_USER,   /* it is another user's */
	TD_DENIED_FREED,  /* there is no such memory any more */
	TD_DENIED_FAILED, /* it could not be mapped */
	TD_DENIED_N,
};

/*
 * Why programs in other network namespaces cannot open this program's memory: it does not listen at
 * its path. On the wire.
 */
enum td_unreachable {
	TD_UNREACHABLE_NOT,     /* they can */
	TD_UNREACHABLE_NOWHERE, /* there is no directory */
	TD_UNREACHABLE_TAKEN,   /* something else is there that it cannot remove */
	TD_UNREACHABLE_FAILED,  /* nothing can be made there */
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
	TD_ACTION_N,
};

/* Why a program moves to another GPU: the words are in daemon/explain. */
enum td_move_reason {
	TD_MOVE_BY_HAND,
	TD_MOVE_OVERLOAD, /* the jobs of its GPU demand more of it than there is */
	TD_MOVE_COMPACT,  /* its GPU is to be idle */
	TD_MOVE_REASON_N,
};

/* How far an action has come (daemon/execute/actions.h). The last three are its end. */
enum td_action_state {
	TD_ACTION_ASKED,     /* the supervisor or the program was told, and has not answered */
	TD_ACTION_RUNNING,   /* it has answered */
	TD_ACTION_DONE,      /* the action has had its effect */
	TD_ACTION_REFUSED,   /* the action cannot be carried out; nothing more is done */
	TD_ACTION_TIMED_OUT, /* the action has had no effect by its deadline */
	TD_ACTION_STATE_N,
};

/* HELLO: what a library can do, a bit each. */
#define TD_CAN_LEAVE 1u /* it takes LEAVE */
#define TD_CAN_MOVE  2u /* it takes MOVE */

/*
 * MOVE and MOVED: how a program comes to another GPU.
 *
 *   MOVE PREPARE --> MOVED PREPARED   its twins are there, and it has attached to that GPU
 *   MOVE GO      --> MOVED DONE       its memory is there; it detaches from the first one
 *   MOVE CANCEL                       it stays, and detaches from that GPU
 *           any  --> MOVED FAILED     it stays, and detaches from that GPU
 */
enum td_move_stage {
	TD_MOVE_PREPARE,
	TD_MOVE_PREPARED,
	TD_MOVE_GO,
	TD_MOVE_DONE,
	TD_MOVE_CANCEL,
	TD_MOVE_FAILED,
	TD_MOVE_STAGE_N,
};

/* LEAVING says how the program responds to SIGTERM, which LEAVE leads to. */
enum td_leaving {
	TD_LEAVING_ENDS,    /* by default: the library raises SIGTERM when the device is drained */
	TD_LEAVING_HANDLES, /* by its own handler, which was called just now */
	TD_LEAVING_IGNORES, /* it ignores it; the device is drained once the gate is closed */
	TD_LEAVING_N,
};
