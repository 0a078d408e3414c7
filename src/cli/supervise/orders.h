/*
 * Makes sure that each order of the daemon is carried out once, by numbers, epochs and answers
 * (proto/orders.h). Pure.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "cli/supervise/life.h"
#include "cli/supervise/shadow.h"
#include "proto/orders.h"
#include "proto/proto.h"

struct td_orders {
	bool may_shadow; /* --shadow: set by the owner */
	bool is_shadow;  /* the order with that number is for a shadow */
	uint64_t number; /* the highest number that has come; 0: none */
	bool is_open;    /* the order with that number has not ended */
	enum td_life_order order;
	enum td_ordered result; /* the last answer to that order */
	const char *reason;     /* the reason in that answer */
};

#define TD_ORDERS_ANSWERS 2

/* Who carries an order out. */
enum td_orders_for {
	TD_ORDERS_NOBODY, /* the order was refused, or was carried out before */
	TD_ORDERS_LIFE,   /* the caller steps `life` with *ret_input */
	TD_ORDERS_SHADOW, /* a shadow is to be started; leave_ns and kill_ns of *ret_input hold */
	TD_ORDERS_FOR_N,
};

/*
 * Takes an ORDER. Writes up to TD_ORDERS_ANSWERS answers; *ret_count is their number. Returns who
 * carries it out.
 */
enum td_orders_for td_orders_take(struct td_orders *orders, const struct td_msg_order *msg,
	const struct td_life *life, const struct td_shadow *shadow, struct td_life_input *ret_input,
	struct td_msg *ret_answers, unsigned *ret_count);
/*
 * Called after each step of `life` or `shadow`. Returns true if the open order was fulfilled, or
 * cannot be any more; *ret_answer says which. A restart is fulfilled when the new program is
 * executed, and a shadow when the first instance has ended.
 */
bool td_orders_end(struct td_orders *orders, const struct td_life *life,
	const struct td_shadow *shadow, struct td_msg *ret_answer);
