/* This file implements write.h. */
#include "kubernetes/sched/write.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define EVENT_NAME 230 /* bytes of a pod's name in its events', to which the server adds some */

static void add(struct td_text *body, const char *before, const char *text)
{
	td_text_add(body, "%s", before);
	td_text_add_json(body, text);
}

/* Names the pod, which has to be the same one as was decided about. */
static void add_metadata(struct td_text *body, const struct td_kube_pod *pod)
{
	add(body, "\"metadata\":{\"name\":", pod->name);
	add(body, ",\"namespace\":", pod->space);
	add(body, ",\"uid\":", pod->uid);
}

void td_kube_write_binding(
	struct td_text *body, const struct td_kube_pod *pod, const struct td_placement *placement)
{
	uint64_t share = pod->asks.slices / placement->count;

	td_text_add(body, "{\"apiVersion\":\"v1\",\"kind\":\"Binding\",");
	add_metadata(body, pod);
	td_text_add(body, ",\"annotations\":{\"" TD_KUBE_GPU_INDEX "\":\"");
	for (uint32_t k = 0; k < placement->count; k++)
		td_text_add(body, "%s%u", k ? "," : "", placement->places[k].gpu);
	td_text_add(body,
		"\",\"" TD_KUBE_SHARE "\":\"%" PRIu64 "\",\"" TD_KUBE_EPOCH "\":\"%" PRIu64
		"\",\"" TD_KUBE_GUEST "\":\"%s\"}},",
		share, placement->epoch, placement->guest ? "true" : "false");
	add(body, "\"target\":{\"apiVersion\":\"v1\",\"kind\":\"Node\",\"name\":",
		placement->places[0].node);
	td_text_add(body, "}}");
}

void td_kube_write_upgrade(struct td_text *body, const struct td_kube_pod *pod)
{
	add(body, "{\"metadata\":{\"uid\":", pod->uid);
	td_text_add(body, ",\"annotations\":{\"" TD_KUBE_GUEST "\":\"false\"}}}");
}

void td_kube_write_eviction(
	struct td_text *body, const struct td_kube_pod *pod, const char *version)
{
	td_text_add(
		body, "{\"apiVersion\":\"policy/%s\",\"kind\":\"Eviction\",\"metadata\":", version);
	add(body, "{\"name\":", pod->name);
	add(body, ",\"namespace\":", pod->space);
	add(body, "},\"deleteOptions\":{\"preconditions\":{\"uid\":", pod->uid);
	td_text_add(body, "}}}");
}

static void add_time(struct td_text *body, uint64_t time_s)
{
	time_t seconds = (time_t)time_s;
	struct tm parts;
	char text[32] = "1970-01-01T00:00:00";

	if (gmtime_r(&seconds, &parts))
		(void)strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S", &parts);
	td_text_add(body, "%s", text);
}

void td_kube_write_event(
	struct td_text *body, const struct td_kube_pod *pod, const struct td_kube_said *said)
{
	char name[EVENT_NAME + 2];

	snprintf(name, sizeof(name), "%.*s.", EVENT_NAME, pod->name);
	td_text_add(body, "{\"apiVersion\":\"v1\",\"kind\":\"Event\",\"metadata\":");
	add(body, "{\"generateName\":", name);
	add(body, ",\"namespace\":", pod->space);
	add(body, "},\"involvedObject\":{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"name\":",
		pod->name);
	add(body, ",\"namespace\":", pod->space);
	add(body, ",\"uid\":", pod->uid);
	add(body, "},\"reason\":", said->reason);
	add(body, ",\"message\":", said->message);
	add(body, ",\"type\":", said->is_warning ? "Warning" : "Normal");
	add(body, ",\"source\":{\"component\":", said->program);
	td_text_add(body, "},\"count\":1,\"firstTimestamp\":\"");
	add_time(body, said->time_s);
	td_text_add(body, "Z\",\"lastTimestamp\":\"");
	add_time(body, said->time_s);
	add(body, "Z\",\"reportingComponent\":", said->program);
	add(body, ",\"reportingInstance\":", said->instance);
	td_text_add(body, "}");
}

void td_kube_write_lease(struct td_text *body, const struct td_kube_claim *claim)
{
	td_text_add(body, "{\"apiVersion\":\"coordination.k8s.io/v1\",\"kind\":\"Lease\",");
	add(body, "\"metadata\":{\"name\":", claim->name);
	add(body, ",\"namespace\":", claim->space);
	if (*claim->version)
		add(body, ",\"resourceVersion\":", claim->version);
	add(body, "},\"spec\":{\"holderIdentity\":", claim->holder);
	td_text_add(body,
		",\"leaseDurationSeconds\":%u,\"leaseTransitions\":%" PRIu64 ",\"renewTime\":\"",
		claim->duration_s, claim->transitions);
	add_time(body, claim->time_us / 1000000);
	td_text_add(body, ".%06" PRIu64 "Z\"}}", claim->time_us % 1000000);
}
