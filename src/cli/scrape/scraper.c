/* This file implements scraper.h. */
#include "cli/scrape/scraper.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "cli/scrape/figures.h"

#define LATENCY ",latency="

static int take_names(struct td_scraper *s, const char *latency, struct td_err *err)
{
	int n = snprintf(s->latency, sizeof(s->latency), "%s", latency);
	const char *c = s->latency;

	while ((*c >= 'a' && *c <= 'z') || (*c >= 'A' && *c <= 'Z') || *c == '_' || *c == ':' ||
		(*c >= '0' && *c <= '9' && c > s->latency))
		c++;
	if (n <= 0 || n >= (int)sizeof(s->latency) || *c)
		return td_err_set(err, -EINVAL,
			"latency \"%.100s\" is not valid: expected the name of a histogram such as "
			"http_request_duration_seconds",
			latency);
	s->named =
		(struct td_scrape_names){"", td_scrape_unit_ns(s->latency), s->latency, "", "", ""};
	return 0;
}

int td_scraper_init(struct td_scraper *scraper, const char *text, struct td_err *err)
{
	const char *latency = strstr(text, LATENCY);
	size_t len = latency ? (size_t)(latency - text) : strlen(text);
	char url[512];
	int r = 0;

	*scraper = (struct td_scraper){.fetch = {.fd = -1}};
	if (len >= sizeof(url))
		return td_err_set(err, -EINVAL,
			"\"%.100s...\" is too long: expected at most %zu "
			"characters",
			text, sizeof(url) - 1);
	snprintf(url, sizeof(url), "%.*s", (int)len, text);
	if (latency)
		r = take_names(scraper, latency + strlen(LATENCY), err);
	if (!r)
		r = td_fetch_init(&scraper->fetch, url, err);
	return r;
}

void td_scraper_service(struct td_scraper *scraper, const char *name, uint64_t objective_ns)
{
	scraper->said.objective_ns = objective_ns;
	snprintf(scraper->said.name, sizeof(scraper->said.name), "%s", name);
}

void td_scraper_forget(struct td_scraper *scraper)
{
	scraper->before_ns = 0;
	scraper->names = NULL;
}

static void say_unknown(struct td_scraper *s, const char *why)
{
	s->said.known = s->said.has_tail = 0;
	s->said.rate_milli = s->said.mean_ns = s->said.p50_ns = s->said.p99_ns = 0;
	s->said.waiting = 0;
	snprintf(s->said.why, sizeof(s->said.why), "%s", why);
}

static void say(struct td_scraper *s, const struct td_scrape_figures *figures)
{
	s->said.known = 1;
	s->said.has_tail = figures->has_tail;
	s->said.rate_milli =
		figures->rate_per_s < 1e12 ? (uint64_t)(figures->rate_per_s * 1000 + 0.5) : 0;
	s->said.mean_ns = figures->mean_ns;
	s->said.p50_ns = figures->p50_ns;
	s->said.p99_ns = figures->p99_ns;
	s->said.waiting = figures->waiting;
	s->said.why[0] = 0;
}

static void read_page(struct td_scraper *s, const char *body, size_t len, uint64_t now_ns)
{
	const struct td_scrape_names *names = NULL;
	struct td_scrape_counts now;
	struct td_scrape_figures figures;

	if (!*s->latency)
		names = td_scrape_find(body, len, s->fetch.path, &now);
	else if (td_scrape_read(body, len, &s->named, s->fetch.path, &now))
		names = &s->named;
	if (!names) {
		/* Some engines show a metric from its first request on. */
		s->before = (struct td_scrape_counts){0};
		s->before_ns = now_ns;
		s->names = NULL;
		say_unknown(s, *s->latency ? "they do not have the named histogram"
					   : "they have no metric of an engine that tandem knows");
		return;
	}
	snprintf(s->said.source, sizeof(s->said.source), "%s",
		*names->latency ? names->latency : names->sum);
	if (!s->before_ns || (s->names && s->names != names))
		say_unknown(s, "they were read once so far");
	else if (!td_scrape_compare(
			 &s->before, &now, now_ns - s->before_ns, names->unit_ns, &figures))
		say_unknown(s, "the service has begun to count anew");
	else
		say(s, &figures);
	s->names = names;
	s->before = now;
	s->before_ns = now_ns;
}

bool td_scraper_turn(struct td_scraper *s, uint64_t now_ns, struct td_msg *ret)
{
	const char *body, *why;
	size_t len;

	if (!s->is_fetching) {
		if (now_ns < s->next_ns)
			return false;
		s->is_fetching = true;
		s->next_ns = now_ns + TD_SCRAPE_PERIOD_NS;
		td_fetch_begin(&s->fetch, now_ns + TD_SCRAPE_TIMEOUT_NS);
	}
	switch (td_fetch_go_on(&s->fetch, now_ns, &body, &len, &why)) {
	case TD_FETCH_DONE: read_page(s, body, len, now_ns); break;
	case TD_FETCH_FAILED:
		td_scraper_forget(s);
		say_unknown(s, why);
		break;
	case TD_FETCH_WAITS:
	case TD_FETCH_N: return false;
	}
	s->is_fetching = false;
	*ret = (struct td_msg){.type = TD_MSG_TYPE_figures};
	ret->figures = s->said;
	return true;
}

uint64_t td_scraper_wake_ns(const struct td_scraper *scraper)
{
	return scraper->is_fetching ? scraper->fetch.deadline_ns : scraper->next_ns;
}
