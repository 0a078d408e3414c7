/* Carries out each order of the daemon once; see orders.h. */
#include <stdio.h>
#include <string.h>

#include "cli/supervise/orders.h"

static void answer(struct td_msg *ret, uint64_t number, enum td_ordered result, const char *reason)
{
	memset(ret, 0, sizeof(*ret));
	ret->type = TD_MSG_TYPE_ordered;
	ret->ordered.number = number;
	ret->ordered.result = (uint8_t)result;
	snprintf(ret->ordered.reason, sizeof(ret->ordered.reason), "%s", reason);
}

/* Returns why the order cannot be carried out, or NULL if it can. */
static const char *refusal(const struct td_orders *orders, const struct td_msg_order *msg,
	const struct td_life *life, const struct td_shadow *shadow)
{
	if (msg->epoch != life->starts)
		return "the job has been started again since";
	if (life->state == TD_LIFE_OVER || life->is_interrupted)
		return "the job is ending";
	if (msg->kind == TD_ORDER_STOP || msg->kind == TD_ORDER_RESTART)
		return NULL;
	if (msg->kind != TD_ORDER_SHADOW || !orders->may_shadow)
		return "tandem run cannot carry out that order: it can stop, restart and queue "
		       "jobs";
	if (life->state != TD_LIFE_RUNNING)
		return "the job does not run";
	if (shadow->state != TD_SHADOW_NONE)
		return "a second instance is being started already, or the first one still ends";
	return NULL;
}

static enum td_life_order order_of(const struct td_msg_order *msg, const struct td_life *life)
{
	if (msg->kind == TD_ORDER_RESTART)
		return TD_LIFE_ORDER_RESTART;
	return msg->requeue && life->may_queue ? TD_LIFE_ORDER_REQUEUE : TD_LIFE_ORDER_STOP;
}

enum td_orders_for td_orders_take(struct td_orders *orders, const struct td_msg_order *msg,
	const struct td_life *life, const struct td_shadow *shadow, struct td_life_input *ret_input,
	struct td_msg *ret_answers, unsigned *ret_count)
{
	bool is_new = msg->number > orders->number;

	*ret_count = 0;
	if (msg->number < orders->number) {
		answer(ret_answers + (*ret_count)++, msg->number, TD_ORDERED_REFUSED,
			"a later order has come");
		return TD_ORDERS_NOBODY;
	}
	if (is_new) {
		if (orders->is_open)
			answer(ret_answers + (*ret_count)++, orders->number, TD_ORDERED_REFUSED,
				"a later order took its place");
		orders->number = msg->number;
		orders->is_shadow = msg->kind == TD_ORDER_SHADOW;
		orders->reason = refusal(orders, msg, life, shadow);
		orders->is_open = !orders->reason;
		orders->result = orders->is_open ? TD_ORDERED_RUNNING : TD_ORDERED_REFUSED;
		orders->order = order_of(msg, life);
	}
	answer(ret_answers + (*ret_count)++, orders->number, orders->result,
		orders->reason ? orders->reason : "");
	/* A repeated order is for the program that has ended since, not for the new one. */
	if (msg->epoch != life->starts)
		return TD_ORDERS_NOBODY;
	*ret_input = (struct td_life_input){.event = TD_LIFE_ORDERED,
		.order = orders->order,
		.leave_ns = msg->leave_ns,
		.kill_ns = msg->kill_ns};
	if (!orders->is_open)
		return TD_ORDERS_NOBODY;
	if (!orders->is_shadow)
		return TD_ORDERS_LIFE;
	return is_new ? TD_ORDERS_SHADOW : TD_ORDERS_NOBODY;
}

/* Returns whether the open order has an end; *ret_done: it was fulfilled. */
static bool has_end(const struct td_orders *orders, const struct td_life *life,
	const struct td_shadow *shadow, bool *ret_done)
{
	bool is_over = life->state == TD_LIFE_OVER;

	if (orders->is_shadow) {
		*ret_done = shadow->state == TD_SHADOW_NONE && shadow->is_done;
		return is_over || shadow->state == TD_SHADOW_NONE;
	}
	*ret_done =
		orders->order == TD_LIFE_ORDER_RESTART ? life->state == TD_LIFE_RUNNING : is_over;
	if (orders->order == TD_LIFE_ORDER_REQUEUE)
		*ret_done |= life->state == TD_LIFE_QUEUED;
	return *ret_done || is_over;
}

bool td_orders_end(struct td_orders *orders, const struct td_life *life,
	const struct td_shadow *shadow, struct td_msg *ret_answer)
{
	bool is_done;

	if (!orders->is_open || !has_end(orders, life, shadow, &is_done))
		return false;
	orders->is_open = false;
	orders->result = is_done ? TD_ORDERED_DONE : TD_ORDERED_REFUSED;
	orders->reason = is_done ? NULL : "the job has ended";
	if (!is_done && orders->is_shadow && *shadow->reason)
		orders->reason = shadow->reason;
	answer(ret_answer, orders->number, orders->result, orders->reason ? orders->reason : "");
	return true;
}
