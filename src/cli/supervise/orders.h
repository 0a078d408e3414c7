/* Obeys each order of the daemon once: numbers, epochs and answers (proto/orders.h). Pure. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "cli/supervise/life.h"
#include "proto/orders.h"
#include "proto/proto.h"

struct td_orders {
	uint64_t number; /* the highest that came; 0: none */
	bool is_open;    /* that order has not ended */
	enum td_life_order order;
	enum td_ordered result; /* the last answer to it */
	const char *reason;     /* of that */
};

#define TD_ORDERS_ANSWERS 2

/*
 * ORDER has come. True: `life` is to be stepped with *ret_input. Up to TD_ORDERS_ANSWERS answers
 * are written, *ret_count says how many.
 */
bool td_orders_take(struct td_orders *orders, const struct td_msg_order *msg,
	const struct td_life *life, struct td_life_input *ret_input, struct td_msg *ret_answers,
	unsigned *ret_count);
/*
 * After each step of `life`: has the open order got what it asked for, or can it not get it any
 * more? True: *ret_answer says so. A restart is done when the new program is executed.
 */
bool td_orders_end(struct td_orders *orders, const struct td_life *life, struct td_msg *ret_answer);
