/* Functions that the files of the driver's route call in each other; see parking.h. */
#pragma once

#include "daemon/execute/actions.h"
#include "daemon/execute/parking.h"
#include "daemon/model/node.h"

static inline struct td_client *td_parking_client_at(struct td_list *it)
{
	return td_container_of(it, struct td_client, of_process);
}

/* -- parking_books.c -- */

/* Returns the client that the MIGRATE is to move; NULL: it is gone. */
struct td_client *td_parking_client(const struct td_node *node, const struct td_act *act);
/*
 * td_parking_process: the process of the act. NULL: it has ended, or has left the GPU that it was
 * to leave. td_parking_holder: the process that the act is under way for; NULL: there is none.
 */
struct td_process *td_parking_process(const struct td_node *node, const struct td_act *act);
struct td_process *td_parking_holder(const struct td_node *node, const struct td_act *act);
/*
 * td_parking_gpu: the GPU with that UUID. td_parking_target: the one that the MIGRATE leads to.
 * TD_GPU_MAX: it is not known.
 */
uint32_t td_parking_gpu(const struct td_node *node, const uint8_t uuid[16]);
uint32_t td_parking_target(const struct td_node *node, const struct td_act *act);
bool td_parking_is_by_driver(const struct td_act *act);

/*
 * take_off: the driver has taken the memory off the GPU, so the client is charged nothing there.
 * put_back: charges the bytes that the driver is about to bring back as before.
 */
void td_parking_take_off(struct td_client *client);
void td_parking_put_back(struct td_client *client);
uint64_t td_parking_saved_bytes(const struct td_process *process);

/*
 * Returns the room on the GPU, without what other moves have found there already. They are charged
 * only when they are done.
 */
uint64_t td_parking_room(const struct td_node *node, uint32_t gpu, const struct td_act *but);
/* Returns the first client whose GPU lacks room for what the driver would bring back, or NULL. */
const struct td_client *td_parking_lacks_room(
	const struct td_node *node, const struct td_act *act, const struct td_process *process);

/* -- parking_end.c -- */

/* Why a helper did not do what it was to do, by its end. */
extern const char *const td_parking_end_words[TD_CHECKPOINT_END_N];

/* Refuses the act. A move comes this way because the library refuses: both reasons are told. */
void td_parking_refuse(struct td_node *node, struct td_act *act, const char *why, uint64_t now_ns);
/* Sends MOVE with that stage. */
void td_parking_tell(
	struct td_node *node, const struct td_process *process, enum td_move_stage stage);
/* The program goes on, and its gate opens when a plan says so. */
void td_parking_let_go(struct td_node *node, struct td_process *process);
