/*
 * Intrusive doubly linked list: embed struct td_list in the element, keep another as the head.
 * An unlinked element points to itself, so that td_list_remove() of it is harmless.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct td_list {
	struct td_list *prev, *next;
};

#define td_container_of(ptr, type, member) ((type *)((char *)(ptr)-offsetof(type, member)))

static inline void td_list_init(struct td_list *l)
{
	l->prev = l->next = l;
}

static inline bool td_list_empty(const struct td_list *head)
{
	return head->next == head;
}

/* Links e before `at`; with the head as `at` this appends to the list. */
static inline void td_list_insert_before(struct td_list *at, struct td_list *e)
{
	e->prev = at->prev;
	e->next = at;
	at->prev->next = e;
	at->prev = e;
}

static inline void td_list_append(struct td_list *head, struct td_list *e)
{
	td_list_insert_before(head, e);
}

static inline void td_list_remove(struct td_list *e)
{
	e->prev->next = e->next;
	e->next->prev = e->prev;
	td_list_init(e);
}

#define td_list_for_each(it, head) for (it = (head)->next; it != (head); it = it->next)
#define td_list_for_each_safe(it, tmp, head)                                                       \
	for (it = (head)->next, tmp = it->next; it != (head); it = tmp, tmp = it->next)
