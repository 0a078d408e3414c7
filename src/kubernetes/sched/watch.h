/*
 * Follows all objects of one resource: a list first, then a watch from the list's version on.
 *
 *           listed                 the server has forgotten that version (410)
 *  LISTING --------> WATCHING ----------------------------------------------> LISTING
 *     ^                 | ^
 *     | an error        | | the stream ended: again from the last version, with a growing pause
 *     +-- pause         +-+
 *
 * Versions are texts that only the server understands.
 */
#pragma once

#include "kubernetes/sched/api.h"
#include "kubernetes/sched/read.h"

struct td_kube_watch {
	/* The caller sets these. */
	struct td_kube_api *api;
	const char *path;     /* such as "/api/v1/pods" */
	const char *selector; /* "" or "&fieldSelector=...", escaped for a URL */
	void *arg;
	/* An object is there, or is there no longer. */
	void (*take)(void *arg, const json_t *object, bool is_deleted);
	/* Called before and after a list of all objects: one that take() did not get is gone. */
	void (*begin)(void *arg);
	void (*end)(void *arg);

	bool is_listed;  /* since td_kube_watch_renew() */
	bool is_failing; /* the list failed, which has been logged */
	struct td_kube_stream stream;
	struct td_text line, answer;
	char version[TD_NAME_MAX];
	uint64_t retry_ns, pause_ns;
};

/* Lists or watches if it is time to. Returns when to call it again at the latest. */
uint64_t td_kube_watch_turn(struct td_kube_watch *watch, uint64_t now_ns);
/* Lists again at the next turn. */
void td_kube_watch_renew(struct td_kube_watch *watch);
void td_kube_watch_deinit(struct td_kube_watch *watch);
