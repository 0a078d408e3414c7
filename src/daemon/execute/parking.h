/*
 * The driver's route: CHECKPOINT takes a program off its GPUs, RESTORE brings it back, and a
 * MIGRATE that the program's own library refuses may go this way too. A helper makes the driver's
 * calls (gpu/checkpoint.h); while they hold up the program's calls, it counts as stopped
 * (TD_STOP_LOCKED).
 *
 *   CHECKPOINT: CLOSE its gate --> HELP --> its memory is off the books: DONE
 *   RESTORE:    ROOM on its GPUs, charged again --> HELP --> DONE, the gate opens
 *   MIGRATE:    ROOM on the new GPU --> CLOSE --> HELP --> its client is on the new GPU: DONE
 *
 * CLOSE and ROOM have deadlines. A helper has none: the driver's calls cannot be cancelled, and the
 * library's gate is closed until they end. If the helper fails, the program goes on as before; what
 * it says can mean that the program is left checkpointed (TD_CHECKPOINT_NOT_BACK), then RESTORE can
 * be tried again. If the helper is killed, another one brings the program back; where it is then
 * follows from the driver's state and from what the first had begun.
 *
 * The program's library keeps what the driver does with it (MOVE HOLD, SAVED, FREE), and tells it
 * to a daemon that was restarted.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "daemon/record/identity.h"
#include "gpu/checkpoint.h"

struct td_act;
struct td_client;
struct td_node;
struct td_process;

/* The order for a helper. */
struct td_checkpoint_order {
	uint64_t number; /* of the act */
	enum td_checkpoint what;
	pid_t pid;
	struct td_identity who;
	uint32_t timeout_ms;
	uint32_t pair_count; /* for MOVE: each GPU of the machine, and where its memory goes */
	uint8_t pairs[TD_CHECKPOINT_PAIRS_MAX][2][16];
};

/* Can the driver move a program that its library does not move, by these TD_UNMOVABLE bits? */
bool td_parking_may_move(const struct td_node *node, uint64_t reasons);

/* Begins a CHECKPOINT, a RESTORE, or a MIGRATE by the driver's route, or refuses it. */
void td_parking_begin(struct td_node *node, struct td_act *act, uint64_t now_ns);
/* Lets it progress. The caller fills the policy's view afterwards. */
void td_parking_step(struct td_node *node, struct td_act *act, uint64_t now_ns);

/*
 * A program that has come from another daemon says that the driver held it: bits HELD and SAVED of
 * TD_UNMOVABLE. It is checkpointed, or, if that is not certain, the driver is to bring it back.
 */
void td_parking_found(
	struct td_node *node, struct td_process *process, uint64_t held, uint64_t now_ns);

/*
 * The helper of the act with that number has ended. is_there: it had begun to restore the program
 * on the new GPU (TD_CHECKPOINT_THERE).
 */
void td_parking_ended(struct td_node *node, uint64_t number, enum td_checkpoint_end end,
	bool is_there, uint64_t now_ns);

/* Returns the bytes of the GPU that are kept free for programs that the driver moves there. */
uint64_t td_parking_reserved_bytes(const struct td_node *node, uint32_t gpu);
