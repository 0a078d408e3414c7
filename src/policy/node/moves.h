/*
 * The demands of a node's clients, for algorithms that move them between GPUs, and the moves that
 * such an algorithm has wanted for long enough.
 *
 * An application is a client. Its core demand is what the interposer found by occupancy, over the
 * time that its gate was open: a program that is closed for turns or slices demands no less. Its
 * memory demand is what it has allocated, as a share of the GPU's capacity. A client can move if
 * its program can, and if it is alone in its group: a group's GPUs are chosen together. One that is
 * on its way counts where it goes.
 *
 * Where contexts take turns, programs that share a GPU hide what each would use alone: see unhide()
 * in moves.c.
 *
 * Hysteresis. A move stops the program for a while, and demands of one window vary. So a move is
 * planned once it has been wanted for its hold time without a break, and a program that has moved
 * stays for TD_MOVES_REST_TIMES its last pause, at least TD_MOVES_REST_MIN_NS. Plans name a move
 * until the view shows the client on its way.
 *
 * A GPU to which no job may be moved is shown as full.
 */
#pragma once

#include "policy/algo/control/balance.h"
#include "policy/policy.h"

/* The clients of a node, and one more on each GPU. */
#define TD_MOVES_APPS_MAX (TD_CLIENT_MAX + TD_GPU_MAX)
/* A program that has moved stays at least so long: moves take at most a twentieth of its time. */
#define TD_MOVES_REST_TIMES  20
#define TD_MOVES_REST_MIN_NS 1000000000ull

/* The demand of a client, and the move that is wanted for it. In the view's order. */
struct td_moves_known {
	uint32_t id;
	uint64_t at_ns, held_ns;
	double core, open;      /* means of time: the cores used, and its open gate */
	double used;            /* what it used of its GPU beside the others */
	double free;            /* the client's demand, measured while its GPU had room */
	bool is_learned;        /* `free` was measured for long enough */
	uint64_t room_at_ns;    /* when the GPU last had room */
	uint64_t room_since_ns; /* since when it has had room without a break; 0: it has none */
	bool wanted;
	enum td_move_reason why;
	uint32_t to;
	uint64_t wanted_since_ns;
};

/* A zeroed struct is valid. */
struct td_moves {
	uint32_t known_count;
	struct td_moves_known known[TD_CLIENT_MAX];
	/* The view's clients in its order, then stand-ins that fill shut GPUs. */
	struct td_balance_app apps[TD_MOVES_APPS_MAX];
	uint16_t first[TD_CLIENT_MAX];               /* the first client of each one's group */
	struct td_moves_known before[TD_CLIENT_MAX]; /* scratch */
};

/* Fills apps. Returns their number. */
uint32_t td_moves_look(struct td_moves *moves, const struct td_view *view, uint64_t now_ns);

/*
 * Plans those of the moves that have been wanted for long enough: hold_ns[m] for moves[m]. To be
 * called once in each step after td_moves_look, with no moves if none is wanted.
 */
void td_moves_plan(struct td_moves *moves, const struct td_view *view,
	const struct td_balance_move *wanted, uint32_t count, const uint64_t *hold_ns,
	enum td_move_reason why, uint64_t now_ns, struct td_plan *plan);

/* Forgets all about the GPU with this index, because the index means another GPU from now on. */
void td_moves_forget_gpu(struct td_moves *moves, uint32_t gpu);
