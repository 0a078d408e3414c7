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
	uint64_t objective_ns; /* objective for the 99th percentile; 0: none */
	uint32_t batch_max;    /* largest batch; 0: not known */
};

/*
 * Agent: maps the service page of the daemon's meter file and copies the counters there. If the
 * file has no such page, or mmap fails, counting goes on in the current page.
 */
void td_service_map(int meter_fd);

/* Agent: returns true once for each declaration of a service, with *ret. */
bool td_service_take(struct td_service_told *ret);

/* Agent: a new daemon must be told again, so the next td_service_take returns true. */
void td_service_again(void);

/* Called in a forked child, which must not write to the parent's page. */
void td_service_forked(void);
