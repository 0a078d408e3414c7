/* This file implements xid_queue.h. */
#include "gpu/xid_queue.h"

#include <string.h>

static void drop_line(struct td_xid_queue *queue, uint32_t i)
{
	queue->line_count--;
	memmove(&queue->lines[i], &queue->lines[i + 1],
		(queue->line_count - i) * sizeof(queue->lines[0]));
}

static void drop_old_lines(struct td_xid_queue *queue, uint64_t now_ns)
{
	while (queue->line_count && now_ns - queue->lines[0].ns > TD_XID_TOGETHER_NS)
		drop_line(queue, 0);
}

static void drop_error(struct td_xid_queue *queue, uint32_t i)
{
	queue->count--;
	memmove(&queue->errors[i], &queue->errors[i + 1],
		(queue->count - i) * sizeof(queue->errors[0]));
}

static bool has_number(const struct td_xid_queue *queue, uint32_t from, uint32_t to, uint32_t xid)
{
	for (uint32_t i = from; i < to; i++)
		if (queue->errors[i].xid == xid)
			return true;
	return false;
}

/*
 * Returns whether there is room for the error. A program may cause its own errors in any number,
 * so one of a number that does not wait yet takes the place of one whose number waits twice.
 */
static bool make_room(struct td_xid_queue *queue, uint32_t xid)
{
	if (queue->count < TD_XID_QUEUE_MAX)
		return true;
	if (has_number(queue, 1, queue->count, xid))
		return false;
	for (uint32_t i = queue->count - 1; i > 1; i--) {
		if (!has_number(queue, 1, i, queue->errors[i].xid))
			continue;
		drop_error(queue, i);
		return true;
	}
	return false;
}

void td_xid_queue_event(struct td_xid_queue *queue, uint32_t xid, uint64_t now_ns)
{
	struct td_xid_error error = {.xid = xid, .ns = now_ns};

	if (!xid || !make_room(queue, xid))
		return;
	if (queue->count && error.ns <= queue->errors[queue->count - 1].ns)
		error.ns = queue->errors[queue->count - 1].ns + 1;
	drop_old_lines(queue, now_ns);
	for (uint32_t i = 0; i < queue->line_count; i++) {
		if (queue->lines[i].xid != xid)
			continue;
		error.pid = queue->lines[i].pid;
		drop_line(queue, i);
		break;
	}
	if (!queue->count)
		queue->shown_ns = now_ns;
	queue->errors[queue->count++] = error;
}

void td_xid_queue_line(struct td_xid_queue *queue, uint32_t xid, int pid, uint64_t now_ns)
{
	if (!xid || !pid)
		return;
	drop_old_lines(queue, now_ns);
	if (queue->line_count == TD_XID_QUEUE_MAX)
		drop_line(queue, 0);
	queue->lines[queue->line_count].xid = xid;
	queue->lines[queue->line_count].pid = pid;
	queue->lines[queue->line_count++].ns = now_ns;
}

/* Returns the oldest error that the line may belong to, or NULL. */
static struct td_xid_error *error_of(struct td_xid_queue *queue, uint32_t line)
{
	for (uint32_t i = 0; i < queue->count; i++) {
		struct td_xid_error *error = &queue->errors[i];

		if (error->xid == queue->lines[line].xid && !error->pid &&
			queue->lines[line].ns <= error->ns + TD_XID_TOGETHER_NS)
			return error;
	}
	return NULL;
}

/* Finds the errors of lines that came after them. */
static void pair(struct td_xid_queue *queue)
{
	uint32_t i = 0;

	while (i < queue->line_count) {
		struct td_xid_error *error = error_of(queue, i);

		if (error) {
			error->pid = queue->lines[i].pid;
			drop_line(queue, i);
		} else {
			i++;
		}
	}
}

/* Returns whether the first error may give way to the next one. */
static bool is_done(const struct td_xid_queue *queue, uint64_t now_ns)
{
	const struct td_xid_error *first = &queue->errors[0];

	return queue->count > 1 && now_ns >= queue->shown_ns + TD_XID_SHOWN_NS &&
	       (first->pid || now_ns > first->ns + TD_XID_TOGETHER_NS);
}

struct td_xid_error td_xid_queue_show(struct td_xid_queue *queue, uint64_t now_ns)
{
	pair(queue);
	if (is_done(queue, now_ns)) {
		drop_error(queue, 0);
		queue->shown_ns = now_ns;
	}
	return queue->count ? queue->errors[0] : (struct td_xid_error){.xid = 0};
}
