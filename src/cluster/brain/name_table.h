/*
 * A table from names to numbers below a maximum, for the brain's jobs and nodes. All memory is
 * allocated at once. A number is used again when its name was removed, the last one removed first.
 */
#pragma once

#include <stdint.h>

#define TD_NAME_MAX 64u /* the bytes of a name with its NUL */
#define TD_NO_NAME  UINT32_MAX

struct td_name_table {
	uint32_t max, count, free;
	uint32_t *head, heads; /* chains by hash; `heads` is a power of two */
	uint32_t *next;
	char (*name)[TD_NAME_MAX]; /* "": the number is free */
};

/*
 * Makes room for `max` names. Names are numbered from 0 upwards, or from max - 1 downwards. Returns
 * 0 or -ENOMEM.
 */
int td_name_table_init(struct td_name_table *names, uint32_t max, int downwards);
void td_name_table_deinit(struct td_name_table *names);
/* Returns the number of a name, or TD_NO_NAME. */
uint32_t td_name_table_find(const struct td_name_table *names, const char *name);
/* Returns the number of a new name; TD_NO_NAME: the table is full, or the name "" or too long. */
uint32_t td_name_table_add(struct td_name_table *names, const char *name);
void td_name_table_remove(struct td_name_table *names, uint32_t at);
