/*
 * The driver's own checkpoints of another process (cuCheckpointProcess*, cuda.h): its CUDA calls
 * are held up, its memory goes to the host, and its GPUs are released; later the memory comes back,
 * to the same GPUs or to others. The calls block for seconds, so a process of its own makes them.
 *
 *   running --lock--> locked --checkpoint--> checkpointed --restore--> locked --unlock--> running
 */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* With this argument, followed by those of td_checkpoint_main(), the program runs as the helper. */
#define TD_CHECKPOINT_ARGUMENT "--checkpoint"

/* The helper's task, by its first argument. */
enum td_checkpoint {
	TD_CHECKPOINT_SAVE, /* lock and checkpoint */
	/* Undo: restore the process where it was and unlock it; if it is only locked, unlock it. */
	TD_CHECKPOINT_BACK,
	TD_CHECKPOINT_MOVE, /* save, restore on other GPUs, and unlock */
	TD_CHECKPOINT_N,
};

/*
 * How it ended; also the exit status of the helper. Unless the comment says otherwise the process
 * runs as before.
 */
enum td_checkpoint_end {
	TD_CHECKPOINT_DONE,
	TD_CHECKPOINT_NO_DRIVER, /* libcuda.so.1 is not there, or does not start */
	TD_CHECKPOINT_TOO_OLD,   /* the driver has no checkpoints */
	TD_CHECKPOINT_NO_REMAP,  /* the driver has them, but not to other GPUs */
	TD_CHECKPOINT_NO_LOCK,   /* the process's work did not end in time, or the driver refused */
	TD_CHECKPOINT_REFUSED,   /* the driver would not checkpoint it */
	/*
	 * No GPU has room for it. After BACK the process is still checkpointed; after MOVE it runs
	 * where it was.
	 */
	TD_CHECKPOINT_NO_ROOM,
	TD_CHECKPOINT_NOT_BACK,  /* the process could not be restored, and is still checkpointed */
	TD_CHECKPOINT_NOT_SAVED, /* BACK: it is not checkpointed */
	TD_CHECKPOINT_BUSY,      /* no exit status: too many helpers are at work */
	/* The driver refused the other GPU at MOVE; the process runs where it was. */
	TD_CHECKPOINT_NOT_MOVED,
	TD_CHECKPOINT_UNLOCKED, /* BACK: it was only locked, its memory is on its GPUs */
	TD_CHECKPOINT_END_N,
};

/*
 * MOVE: the helper writes one byte here before it restores the process on the other GPUs, and one
 * before it brings the process back instead. If it is ended, the last one tells which of both it
 * had begun: cuCheckpointProcessGetState does not say on which GPU a process is.
 */
#define TD_CHECKPOINT_FD 3
enum td_checkpoint_step {
	TD_CHECKPOINT_BEFORE, /* nothing was written */
	TD_CHECKPOINT_THERE,
	TD_CHECKPOINT_RETURNS,
};

/*
 * If the daemon ends meanwhile, nobody would hear of the result. A helper that can still do so
 * leaves the process as it was.
 *
 * The arguments of the helper, each of which is one string:
 * [0] the number of an enum td_checkpoint  [1] pid  [2] uid, the user that root becomes
 * [3] how long locking may take, in ms     [4] the pid of the daemon
 * [5...] MOVE: pairs of UUIDs, each as 32 hex digits
 */
#define TD_CHECKPOINT_PAIRS_MAX 64
enum td_checkpoint_end td_checkpoint_main(int argc, char **argv);

/* Writes a UUID as 32 hex digits, and reads one. The latter returns 0 or -EINVAL. */
#define TD_CHECKPOINT_HEX 33
char *td_checkpoint_hex(char ret[TD_CHECKPOINT_HEX], const uint8_t uuid[16]);
int td_checkpoint_unhex(const char *text, uint8_t ret[16]);
