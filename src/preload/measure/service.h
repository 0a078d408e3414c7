/*
 * The counters of a service (tandem_service() and its companions in tandem/tandem.h).
 *
 * They are written by the program's threads with relaxed additions, into private memory at first,
 * then into the page that the daemon reads (proto/service_page.h). A thread holds a pointer to the
 * page for the length of one addition, so a page that was replaced is kept until the next one is.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct td_service_told {
	char name[64];
	uint64_t objective_ns; /* for the 99th percentile; 0: none */
	uint32_t batch_max;    /* 0: not known */
};

/*
 * The agent's: the daemon's meter file is here. Counts so far go with it. Where the file has no
 * service page, or memory is short, counting goes on where it was.
 */
void td_service_map(int meter_fd);

/* The agent's: has the program declared a service since the last look that said so? */
bool td_service_take(struct td_service_told *ret);

/* A new daemon knows nothing: the next look says it again. */
void td_service_again(void);

/* The parent's page is not ours to write. */
void td_service_forked(void);
