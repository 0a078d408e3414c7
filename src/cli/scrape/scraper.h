/*
 * Reads the /metrics of a service once a second, and makes the message FIGURES from two readings
 * (proto/messages.def). After a reading that failed the figures are unknown until there are two
 * new ones.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "cli/scrape/fetch.h"
#include "cli/scrape/text.h"
#include "proto/proto.h"

struct td_err;

#define TD_SCRAPE_PERIOD_NS  1000000000ull
#define TD_SCRAPE_TIMEOUT_NS 2000000000ull

struct td_scraper {
	struct td_fetch fetch;        /* fetch.fd is what td_scraper_turn() waits for */
	char latency[TD_SCRAPE_NAME]; /* the histogram that the user named; "": one of names.def */
	struct td_scrape_names named;
	const struct td_scrape_names *names; /* those found last; NULL: none */
	struct td_scrape_counts before;
	uint64_t before_ns; /* when `before` was read; 0: it was not */
	bool is_fetching;
	uint64_t next_ns; /* when the next reading is due */
	struct td_msg_figures said;
};

/*
 * Takes the option's text, URL[,latency=NAME]. Returns 0 or -EINVAL with a sentence in err. What it
 * has taken lasts as long as the process.
 */
int td_scraper_init(struct td_scraper *scraper, const char *text, struct td_err *err);
/* Sets the name of the service, and the objective for its P99; 0: none. */
void td_scraper_service(struct td_scraper *scraper, const char *name, uint64_t objective_ns);

/* The program has ended or begins anew: there is no earlier reading. */
void td_scraper_forget(struct td_scraper *scraper);
/* Goes on. Returns whether a reading has ended or failed; then *ret is the message for it. */
bool td_scraper_turn(struct td_scraper *scraper, uint64_t now_ns, struct td_msg *ret);
/* Returns when td_scraper_turn() is due even if its descriptor stays quiet. */
uint64_t td_scraper_wake_ns(const struct td_scraper *scraper);
