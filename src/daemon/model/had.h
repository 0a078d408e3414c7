/*
 * Things that most nodes do not have. A step leaves out the passes over all jobs or programs that
 * only such a thing would need, because with many programs each pass costs. Debug builds check at
 * the end of each step that nothing was left out wrongly (execute/had.c).
 */
#pragma once

#include <stdbool.h>

struct td_had {
	/* These are set for good once a program has used the thing. */
	bool imports;  /* some client has opened memory of others */
	bool services; /* some process has said that it is a service */
	/* These are as of the last step. */
	bool acts;       /* there were actions, so jobs may be marked as leaving (actions.c) */
	bool exchanges;  /* some job drained to move memory (soft.c) */
	bool kept_out;   /* others' immovable memory kept some job out (soft.c) */
	bool moments;    /* some program was held for another one, or favoured (alone.c) */
	bool host_limit; /* host.limit was set, so processes may have bounds (host.c) */
};
