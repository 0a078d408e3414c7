/* This file implements profiles.h. */
#include "cluster/sched/profiles.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "cluster/node/profile_key.h"
#include "cluster/sched/scheduler.h"
#include "profile/service.h"
#include "profile/speed_file.h"

#define PREFIX TD_SCHED_PREFIX TD_PROFILE_PREFIX

/* A value that was read; kind TD_PROFILE_FILE_NONE: it could not be. */
struct entry {
	enum td_profile_file kind;
	char name[TD_PROFILE_FILE_MAX];
	struct td_speed_file speeds;
	struct td_service_profile service;
	double layers[TD_MUDI_LAYERS];
};

struct td_profile_set {
	size_t count;
	struct entry entry[];
};

static void set_free(struct td_profile_set *set)
{
	for (size_t k = 0; set && k < set->count; k++) {
		if (set->entry[k].kind == TD_PROFILE_FILE_SPEEDS)
			td_speed_file_deinit(&set->entry[k].speeds);
		if (set->entry[k].kind == TD_PROFILE_FILE_SERVICE)
			td_service_profile_deinit(&set->entry[k].service);
	}
	free(set);
}

/* A value that is not understood changes nothing. */
static void read_entry(const struct td_state_item *item, struct entry *ret)
{
	const char *file = strchr(item->key + strlen(PREFIX), '/');
	struct td_err err;
	int r = -EINVAL;

	ret->kind = file ? td_profile_file_of(file + 1, ret->name) : TD_PROFILE_FILE_NONE;
	switch (ret->kind) {
	case TD_PROFILE_FILE_SPEEDS:
		r = td_speed_file_from_bytes(item->value, item->length, &ret->speeds, &err);
		break;
	case TD_PROFILE_FILE_SERVICE:
		r = td_service_profile_from_bytes(item->value, item->length, &ret->service, &err);
		break;
	case TD_PROFILE_FILE_LAYERS:
		r = td_profile_layers(item->value, item->length, ret->layers, &err);
		break;
	case TD_PROFILE_FILE_NONE: break;
	}
	if (r)
		ret->kind = TD_PROFILE_FILE_NONE;
}

static struct td_profile_set *set_new(const struct td_state_list *list)
{
	struct td_profile_set *set = calloc(1, sizeof(*set) + list->count * sizeof(*set->entry));

	if (!set)
		return NULL;
	set->count = list->count;
	for (size_t k = 0; k < list->count; k++)
		read_entry(&list->item[k], &set->entry[k]);
	return set;
}

static void look_in_speeds(const struct td_speed_file *file, const char *gpu, const char *program,
	struct td_guest_known *ret)
{
	const struct td_speed_kind *kind = td_speed_file_kind(file, gpu);
	const struct td_muxflow_profile *alone = kind ? td_speed_kind_program(kind, program) : NULL;

	if (kind && !ret->speeds)
		ret->speeds = &kind->model.predictor;
	if (alone && !ret->is_measured) {
		ret->is_measured = true;
		ret->alone = *alone;
	}
}

static void look_up(void *arg, const char *gpu, const char *program, struct td_guest_known *ret)
{
	const struct td_profile_set *set = arg;

	for (size_t k = 0; k < set->count; k++) {
		const struct entry *entry = &set->entry[k];

		if (entry->kind == TD_PROFILE_FILE_SPEEDS) {
			look_in_speeds(&entry->speeds, gpu, program, ret);
			continue;
		}
		if (strcmp(entry->name, program) != 0)
			continue;
		if (entry->kind == TD_PROFILE_FILE_LAYERS && !ret->has_layers) {
			ret->has_layers = true;
			memcpy(ret->layers, entry->layers, sizeof(ret->layers));
		}
		if (entry->kind == TD_PROFILE_FILE_SERVICE && !ret->has_curves &&
			!strcmp(entry->service.gpu, gpu)) {
			ret->has_curves = true;
			ret->curves = td_service_profile_curves(&entry->service);
		}
	}
}

static void changed(void *arg, const struct td_state_item *item, bool is_gone)
{
	struct td_shared_profiles *p = arg;

	(void)item;
	(void)is_gone;
	p->has_changed = true;
}

int td_shared_profiles_init(struct td_shared_profiles *p, struct td_state *state)
{
	*p = (struct td_shared_profiles){.has_changed = true};
	return td_mirror_init(&p->mirror, state, PREFIX, changed, p);
}

void td_shared_profiles_deinit(struct td_shared_profiles *p)
{
	td_mirror_deinit(&p->mirror);
	set_free(p->set);
	p->set = NULL;
}

uint64_t td_shared_profiles_turn(struct td_shared_profiles *p, uint64_t now_ns)
{
	uint64_t wakeup_ns;

	(void)td_mirror_turn(&p->mirror, now_ns, &wakeup_ns);
	return wakeup_ns;
}

void td_shared_profiles_look(void *profiles, struct td_brain *brain, uint64_t now_ns)
{
	struct td_shared_profiles *p = profiles;
	struct td_brain_knowledge knowledge = {.look = look_up};
	struct td_profile_set *before = p->set;
	uint64_t wakeup_ns;

	(void)td_mirror_turn(&p->mirror, now_ns, &wakeup_ns);
	if (!p->has_changed && td_brain_knows(brain) == p->set)
		return;
	knowledge.arg = set_new(&p->mirror.list);
	if (!knowledge.arg)
		return; /* no memory: at the next look */
	td_brain_know(brain, &knowledge);
	p->set = knowledge.arg;
	p->has_changed = false;
	set_free(before);
}
