/*
 * The causes that `tandem explain` shows, from causes.def, each with the condition under which it
 * applies.
 */
#pragma once

#include <stdbool.h>

struct td_facts;

enum td_cause_group { TD_CAUSES_STATE, TD_CAUSES_PROCESS, TD_CAUSES_GPU };

struct td_cause {
	const char *id, *text, *todo;
	enum td_cause_group group;
	bool (*applies)(const struct td_facts *facts);
};

/* Causes in the order in which they are shown. An id of NULL ends the table. */
extern const struct td_cause td_causes[];
