/* This file implements learning.h. */
#include "daemon/node/learning.h"

#include <stdio.h>
#include <string.h>

#include "daemon/model/job.h"
#include "daemon/model/node.h"

/* Below this part of the time, training beside a service disturbs it less than its layers say. */
#define DUTY_LEAST_PPM 900000u

static bool is_studied(const struct td_node *node, const struct td_client *client)
{
	const struct td_service *service = client->process->service;

	return service && service->page && service->outside == TD_SERVICE_INSIDE &&
	       service->profile &&
	       !strcmp(service->profile->learnt.gpu, node->gpus[client->gpu].name);
}

static bool is_at_work(const struct td_client *client)
{
	const struct td_process *process = client->process;

	return process->phase == TD_PHASE_OPEN && !process->stop.is && !client->failed;
}

/* Adds the layers of a program; false: they are not known, or it has not most of the time. */
static bool add_layers(const struct td_client *client, struct td_study_of *of)
{
	uint32_t duty_ppm = client->process->pacing.duty_ppm;
	uint64_t sum = 0;

	for (uint32_t k = 0; k < TD_MUDI_LAYERS; k++) {
		double count = of->layers[k] + client->profile.layers[k];

		if (!(count <= UINT32_MAX))
			return false;
		of->layers[k] = (uint32_t)count;
		sum += (uint64_t)client->profile.layers[k];
	}
	return sum && (!duty_ppm || duty_ppm >= DUTY_LEAST_PPM);
}

/* Returns the company, batch and share of the service now; all 0 unless all beside it are known. */
static struct td_study_of look_around(const struct td_node *node, const struct td_client *service)
{
	struct td_study_of of, none;
	struct td_list *it;

	/* Two of these are compared as bytes. */
	memset(&of, 0, sizeof(of));
	memset(&none, 0, sizeof(none));
	if (!is_at_work(service) || node->gpu_views[service->gpu].mps != TD_MPS_ON)
		return none;
	td_list_for_each (it, &node->clients) {
		const struct td_client *client = td_client_at(it);

		if (client == service || client->gpu != service->gpu ||
			client->process->job == service->process->job || !is_at_work(client))
			continue;
		if (client->process->service || client->process->foreign ||
			!add_layers(client, &of))
			return none;
	}
	of.batch = service->process->service->batch;
	of.share_ppm = service->sm_share_ppm ? service->sm_share_ppm : TD_PPM;
	return of;
}

uint64_t td_learning_look(struct td_node *node, uint64_t now_ns)
{
	uint64_t wakeup = UINT64_MAX;
	struct td_list *it;

	if (!node->had.services || !node->options.learn)
		return wakeup;
	td_list_for_each (it, &node->clients) {
		struct td_client *client = td_client_at(it);
		struct td_service *service = client->process->service;
		struct td_study_of of;
		uint64_t next;

		if (!is_studied(node, client))
			continue;
		of = look_around(node, client);
		next = td_lessons_look(&node->lessons, &service->study, service->page, &of,
			service->name, node->gpus[client->gpu].name, now_ns);
		wakeup = next < wakeup ? next : wakeup;
	}
	return wakeup;
}

void td_learning_learnt(struct td_node *node, uint64_t now_ns)
{
	struct td_list *it;

	node->event_ns = now_ns;
	td_list_for_each (it, &node->processes) {
		struct td_service *service = td_process_at(it)->service;
		struct td_profile_entry *before = service ? service->profile : NULL;

		if (!before)
			continue;
		/* The earlier one is dropped last, so that the newer one has another address. */
		service->profile = td_profiles_take(&node->profiles, service->name);
		td_profiles_drop(before);
	}
}

void td_learning_failed(struct td_node *node, const char *why, uint64_t now_ns)
{
	char sentence[192];

	snprintf(sentence, sizeof(sentence),
		"what was measured of running services is not kept: %.120s", why);
	node->event_ns = now_ns;
	node->profiles.report(node->profiles.arg, sentence);
}
