/*
 * MIGRATE: a program moves to another GPU (proto/words.h, enum td_move_stage). Its act passes these
 * stages:
 *
 *   PREPARE   MOVE PREPARE was sent; the program makes its context and objects there and attaches
 *   ROOM      memory is kept free for it on that GPU, as soon as there is enough
 *   CLOSE     its gate closes, whatever the plan says
 *   GO        MOVE GO was sent; its memory follows
 *   DONE      the program's client is the one on the new GPU; the old one detaches
 *
 * The driver may move a program that the library cannot move (parking.h).
 *
 * Each stage has a deadline. Before GO a move is given up by MOVE CANCEL, and the program stays.
 *
 * From ROOM on, memory is charged on both GPUs. Plans apply to one client of the program only; the
 * other is set aside (td_client.aside). The policy is not shown the memory that is kept free for
 * the move.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "daemon/model/supervisors.h"
#include "proto/words.h"

struct td_act;
struct td_client;
struct td_err;
struct td_job;
struct td_node;
struct td_process;

enum td_migration_stage {
	TD_MIGRATION_PREPARE,
	TD_MIGRATION_ROOM,
	TD_MIGRATION_CLOSE,
	TD_MIGRATION_GO,
};

struct td_migration {
	enum td_migration_stage stage;
	enum td_move_reason why;
	uint8_t gpu[16];
	uint64_t deadline_ns;
	uint32_t to; /* the slot on the new GPU, valid once the move is prepared */
	/* These belong to parking.c. undoes: another helper undoes what the first may have done. */
	bool by_driver, undoes;
	uint64_t unmovable;    /* why it goes by the driver; may be over when that refuses */
	uint64_t began_ns;     /* when the helper, or the switch of a share, began */
	struct td_bound bound; /* for a RESTART that exchanges the job */
};

/*
 * Returns whether a policy may plan a move of the process now. It may not while a refusal is
 * remembered.
 */
bool td_move_is_possible(const struct td_node *node, const struct td_process *process);

/* Begins a move of the act's client to act->migration.gpu, or refuses it. */
void td_move_begin(struct td_node *node, struct td_act *act, uint64_t now_ns);
/* Lets the move progress. The caller fills the policy's view afterwards. */
void td_move_step(struct td_node *node, struct td_act *act, uint64_t now_ns);
uint64_t td_move_wakeup(const struct td_act *act);

/* Updates the GPUs that the job was placed on, after its process has moved. */
void td_move_place_anew(struct td_job *job, const uint8_t *from, const uint8_t *to);

/* Finds a GPU by its number or UUID. Returns 0, or -ENOENT with a sentence in err. */
int td_move_find_gpu(
	const struct td_node *node, const char *text, uint8_t ret_uuid[16], struct td_err *err);

/* Returns the bytes of the GPU that are kept free for programs that move to it. */
uint64_t td_move_reserved_bytes(const struct td_node *node, uint32_t gpu);
