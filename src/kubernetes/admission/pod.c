/* This file implements pod.h. */
#include "kubernetes/admission/pod.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proto/job_keys.h"

#define HUNDREDTHS_MAX    (TD_ADMISSION_GPUS_MAX * 100)
#define DEFAULT_SCHEDULER "default-scheduler" /* what the API server writes where none is named */

/* One pod under review. */
struct review {
	const struct td_admission_options *options;
	struct td_admission *ret;
	const json_t *pod;
	char setting[TD_JOB_KEY_N][TD_JOB_VALUE_MAX]; /* from annotations; "": not given */
	bool asks;                                    /* a container asks for GPUs */
	bool failed;                                  /* memory was short */
};

static const char *kinds[] = {"initContainers", "containers"};

static const json_t *annotations_of(const json_t *pod)
{
	return json_object_get(json_object_get(pod, "metadata"), "annotations");
}

static const json_t *spec_of(const json_t *pod)
{
	return json_object_get(pod, "spec");
}

/* -- the patch -- */

static void append(struct review *review, json_t *list, json_t *item)
{
	if (json_array_append_new(list, item)) /* it takes the item also if it fails */
		review->failed = true;
}

/* In RFC 6902 "add" replaces a member that is there. */
static void patch(struct review *review, const char *path, json_t *value)
{
	append(review, review->ret->patch,
		json_pack("{s:s, s:s, s:o}", "op", "add", "path", path, "value", value));
	review->ret->verdict = TD_ADMISSION_CHANGED;
}

static void warn(struct review *review, const char *text)
{
	append(review, review->ret->warnings, json_string(text));
}

/* -- what is asked for -- */

/*
 * Reads a quantity as the API server writes it, which has an integer and perhaps a suffix: 1000 is
 * "1k". Other suffixes are no sensible number of GPUs.
 */
static int parse_hundredths(const char *text, uint32_t *ret, struct td_err *err)
{
	size_t digits = strspn(text, "0123456789");
	uint64_t value = 0;

	for (size_t i = 0; i < digits && value <= HUNDREDTHS_MAX; i++)
		value = value * 10 + (uint64_t)(text[i] - '0');
	if (text[digits] == 'k' && !text[digits + 1])
		value *= 1000;
	else if (text[digits])
		digits = 0;
	if (!digits || value > HUNDREDTHS_MAX || (value > 100 && value % 100))
		return td_err_expected(err, -EINVAL, text,
			"1 to 99 hundredths of one GPU, or 100, 200, ... 6400 for whole GPUs");
	*ret = (uint32_t)value;
	return 0;
}

/* The quantity of the resource in a container, or NULL; ret_number has 24 bytes. */
static const char *quantity_of(const json_t *container, const char *resource, char *ret_number)
{
	const json_t *resources = json_object_get(container, "resources");
	const json_t *value = json_object_get(json_object_get(resources, "limits"), resource);

	if (!value)
		value = json_object_get(json_object_get(resources, "requests"), resource);
	if (json_is_integer(value)) {
		snprintf(ret_number, 24, "%lld", (long long)json_integer_value(value));
		return ret_number;
	}
	return json_string_value(value);
}

static const char *name_of(const json_t *container)
{
	const char *name = json_string_value(json_object_get(container, "name"));

	return name ? name : "";
}

/* Returns 1 if the container asks for GPUs, 0 if it does not, or -EINVAL. */
static int asks(struct review *review, const json_t *container)
{
	char number[24];
	const char *text = quantity_of(container, review->options->resource, number);
	struct td_err inner = {0};
	uint32_t hundredths = 0;

	if (!text)
		return 0;
	if (parse_hundredths(text, &hundredths, &inner))
		return td_err_set(&review->ret->err, -EINVAL, "container \"%.63s\": %.64s: %s",
			name_of(container), review->options->resource, inner.msg);
	return hundredths ? 1 : 0;
}

/* -- settings -- */

static const char *const placement[] = {
#define NAME(name) name,
	TD_KUBE_PLACEMENT(NAME)
#undef NAME
};

static const char *const wishes[] = {
#define NAME(name) name,
	TD_KUBE_WISHES(NAME)
#undef NAME
};

enum {
	PLACEMENTS = sizeof(placement) / sizeof(*placement),
	WISHES = sizeof(wishes) / sizeof(*wishes),
};

/* A pod that comes with them would claim a place that nobody gave it. */
static int refuse_placement(struct review *review)
{
	const json_t *annotations = annotations_of(review->pod);

	for (size_t i = 0; i < PLACEMENTS; i++)
		if (json_object_get(annotations, placement[i]))
			return td_err_set(&review->ret->err, -EINVAL,
				"annotation %s: the scheduler writes it: expected a pod without it",
				placement[i]);
	return 0;
}

static int read_annotations(struct review *review)
{
	const json_t *annotations = annotations_of(review->pod);
	struct td_err *err = &review->ret->err, inner = {0};

	for (uint32_t k = 0; k < TD_JOB_KEY_N; k++) {
		char name[64];
		const char *value;

		snprintf(name, sizeof(name), TD_KUBE_DOMAIN "%s", td_job_key_name(k));
		value = json_string_value(json_object_get(annotations, name));
		if (!value)
			continue;
		if (td_job_key_check(k, value, &inner))
			return td_err_set(err, -EINVAL, "annotation %s: %s", name, inner.msg);
		strcpy(review->setting[k], value);
	}
	return 0;
}

/* The variable of that name in a list of them, or NULL. */
static const json_t *find_variable(const json_t *env, const char *name)
{
	for (size_t i = 0; i < json_array_size(env); i++) {
		const json_t *entry = json_array_get(env, i);
		const char *its = json_string_value(json_object_get(entry, "name"));

		if (its && !strcmp(its, name))
			return entry;
	}
	return NULL;
}

/*
 * Computes the values that the container will have: those of its own variables come before the
 * annotations. Those that come from elsewhere (valueFrom) are not known here.
 */
static int check_container(struct review *review, const json_t *container)
{
	const json_t *env = json_object_get(container, "env");
	struct td_err *err = &review->ret->err, inner = {0};
	char values[TD_JOB_KEY_N][TD_JOB_VALUE_MAX];
	bool knows_all = true;

	memcpy(values, review->setting, sizeof(values));
	for (uint32_t k = 0; k < TD_JOB_KEY_N; k++) {
		const json_t *variable = find_variable(env, td_job_key_variable(k));
		const char *value = json_string_value(json_object_get(variable, "value"));

		if (!variable)
			continue;
		knows_all = knows_all && value && !strstr(value, "$(");
		if (!value || strstr(value, "$("))
			continue;
		if (td_job_key_check(k, value, &inner))
			return td_err_set(err, -EINVAL, "container \"%.63s\": %s: %s",
				name_of(container), td_job_key_variable(k), inner.msg);
		strcpy(values[k], value);
	}
	if (knows_all && td_job_keys_check(values, &inner))
		return td_err_set(
			err, -EINVAL, "container \"%.63s\": %s", name_of(container), inner.msg);
	return 0;
}

/* The variables that a container gets, in a list. */
static json_t *list_variables(struct review *review, const json_t *env)
{
	const char *soft = review->setting[TD_JOB_KEY_soft];
	json_t *list = json_array();

	for (uint32_t k = 0; k <= TD_JOB_KEY_N; k++) {
		/* Memory beyond the soft limit has to move, as with `tandem run --mem-soft`. */
		bool is_last = k == TD_JOB_KEY_N;
		const char *name = is_last ? "TANDEM_BACKEND" : td_job_key_variable(k);
		const char *value = !is_last ? review->setting[k] : *soft ? "swap" : "";

		if (*value && !find_variable(env, name))
			append(review, list, json_pack("{s:s, s:s}", "name", name, "value", value));
	}
	return list;
}

static void add_variables(
	struct review *review, const json_t *container, const char *kind, size_t index)
{
	const json_t *env = json_object_get(container, "env");
	json_t *list = list_variables(review, env);
	char path[64];

	snprintf(path, sizeof(path), "/spec/%s/%zu/env", kind, index);
	if (json_array_size(list) && !json_array_size(env)) {
		patch(review, path, json_incref(list));
	} else {
		strcat(path, "/-");
		for (size_t i = 0; i < json_array_size(list); i++)
			patch(review, path, json_incref(json_array_get(list, i)));
	}
	json_decref(list);
}

/* -- the pod -- */

static int judge_container(
	struct review *review, const json_t *container, const char *kind, size_t index)
{
	int r = asks(review, container);

	if (r <= 0)
		return r;
	review->asks = true;
	r = check_container(review, container);
	if (!r)
		add_variables(review, container, kind, index);
	return r;
}

static int judge_containers(struct review *review)
{
	int r = 0;

	for (size_t kind = 0; kind < sizeof(kinds) / sizeof(*kinds) && !r; kind++) {
		const json_t *list = json_object_get(spec_of(review->pod), kinds[kind]);

		for (size_t i = 0; i < json_array_size(list) && !r; i++)
			r = judge_container(review, json_array_get(list, i), kinds[kind], i);
	}
	return r;
}

/* A pod that names a node, or another scheduler than the default, keeps what it says. */
static void set_scheduler(struct review *review)
{
	const json_t *spec = spec_of(review->pod);
	const char *ours = review->options->scheduler;
	const char *its = json_string_value(json_object_get(spec, "schedulerName"));
	const char *node = json_string_value(json_object_get(spec, "nodeName"));

	if (!ours || (node && *node) || (its && *its && strcmp(its, DEFAULT_SCHEDULER)) ||
		!strcmp(ours, DEFAULT_SCHEDULER))
		return;
	patch(review, "/spec/schedulerName", json_string(ours));
}

/* Settings without a share are a mistake that nobody would notice. */
static void warn_of_settings(struct review *review)
{
	const json_t *annotations = annotations_of(review->pod);
	char text[256];

	for (uint32_t k = 0; k < TD_JOB_KEY_N; k++) {
		snprintf(text, sizeof(text), TD_KUBE_DOMAIN "%s", td_job_key_name(k));
		if (!json_object_get(annotations, text))
			continue;
		snprintf(text, sizeof(text),
			"annotation " TD_KUBE_DOMAIN "%s has no effect: no container asks for "
			"%.64s",
			td_job_key_name(k), review->options->resource);
		warn(review, text);
	}
}

/* Whether a container of the pod has the resource, whatever its number. */
static bool names_resource(const struct review *review)
{
	char number[24];

	for (size_t kind = 0; kind < sizeof(kinds) / sizeof(*kinds); kind++) {
		const json_t *list = json_object_get(spec_of(review->pod), kinds[kind]);

		for (size_t i = 0; i < json_array_size(list); i++)
			if (quantity_of(json_array_get(list, i), review->options->resource, number))
				return true;
	}
	return false;
}

int td_admission_judge(
	const struct td_admission_options *options, const json_t *pod, struct td_admission *ret)
{
	struct review review = {.options = options, .ret = ret, .pod = pod};
	int r;

	*ret = (struct td_admission){.patch = json_array(), .warnings = json_array()};
	if (!ret->patch || !ret->warnings)
		return -ENOMEM;
	r = refuse_placement(&review);
	if (!r && names_resource(&review))
		r = read_annotations(&review);
	r = r ? r : judge_containers(&review);
	if (r)
		ret->verdict = TD_ADMISSION_REFUSED;
	else if (review.asks)
		set_scheduler(&review);
	else
		warn_of_settings(&review);
	return review.failed ? -ENOMEM : 0;
}

static bool is_changed(const json_t *before, const json_t *after, const char *name)
{
	const json_t *a = json_object_get(before, name), *b = json_object_get(after, name);

	return (a || b) && !json_equal(a, b);
}

int td_admission_judge_change(const struct td_admission_options *options, const json_t *before,
	const json_t *pod, struct td_admission *ret)
{
	const struct review review = {.options = options, .ret = ret, .pod = pod};
	const json_t *old = annotations_of(before), *new = annotations_of(pod);
	const char *changed = NULL;

	*ret = (struct td_admission){.patch = json_array(), .warnings = json_array()};
	if (!ret->patch || !ret->warnings)
		return -ENOMEM;
	for (size_t i = 0; i < PLACEMENTS && !changed; i++)
		if (is_changed(old, new, placement[i]))
			changed = placement[i];
	for (size_t i = 0; i < WISHES && !changed && names_resource(&review); i++)
		if (is_changed(old, new, wishes[i]))
			changed = wishes[i];
	if (!changed)
		return 0;
	(void)td_err_set(&ret->err, -EINVAL,
		"annotation %s: the pod is placed by it: expected it as it was", changed);
	ret->verdict = TD_ADMISSION_REFUSED;
	return 0;
}

void td_admission_deinit(struct td_admission *admission)
{
	json_decref(admission->patch);
	json_decref(admission->warnings);
}
