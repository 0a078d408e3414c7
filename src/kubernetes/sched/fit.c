/*
 * Whether a node's labels and taints allow a pod: its nodeSelector, its required node affinity, and
 * its tolerations, as kube-scheduler reads them. Pure. What the pod only prefers is not read.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/parse.h"
#include "kubernetes/sched/read.h"

static const char *text_at(const json_t *object, const char *key)
{
	return json_string_value(json_object_get(object, key));
}

static bool is_equal(const char *a, const char *b)
{
	return a && b && !strcmp(a, b);
}

static bool is_among(const char *value, const json_t *values)
{
	const json_t *one;
	size_t k;

	json_array_foreach(values, k, one)
	{
		if (is_equal(value, json_string_value(one)))
			return true;
	}
	return false;
}

/* Compares whole numbers. Returns -1, 0 or 1; 0 too if one is not a number. */
static int compare(const char *value, const json_t *values)
{
	const char *other = json_string_value(json_array_get(values, 0));
	char *end, *other_end;
	long long a, b;

	if (!value || !other || !*value || !*other)
		return 0;
	a = strtoll(value, &end, 10);
	b = strtoll(other, &other_end, 10);
	return *end || *other_end ? 0 : (a > b) - (a < b);
}

/* value: the label's; NULL: the node has none. */
static bool holds(const char *operation, const char *value, const json_t *values)
{
	if (is_equal(operation, "In"))
		return is_among(value, values);
	if (is_equal(operation, "NotIn"))
		return !is_among(value, values);
	if (is_equal(operation, "Exists"))
		return value;
	if (is_equal(operation, "DoesNotExist"))
		return !value;
	if (is_equal(operation, "Gt"))
		return compare(value, values) > 0;
	return is_equal(operation, "Lt") && compare(value, values) < 0;
}

/* name: the node's, for rules about its fields, of which there is one; NULL: about labels. */
static bool all_hold(const json_t *rules, const json_t *labels, const char *name)
{
	const json_t *rule;
	size_t k;

	json_array_foreach(rules, k, rule)
	{
		const char *key = text_at(rule, "key");
		const char *value = name && is_equal(key, "metadata.name") ? name : NULL;

		if (!key)
			return false;
		if (!name)
			value = text_at(labels, key);
		if (!holds(text_at(rule, "operator"), value, json_object_get(rule, "values")))
			return false;
	}
	return true;
}

/* One of the terms has to hold; one without rules never does. */
static bool has_affinity(const struct td_kube_node *node, const json_t *terms)
{
	const json_t *term;
	size_t k;

	json_array_foreach(terms, k, term)
	{
		const json_t *labels = json_object_get(term, "matchExpressions");
		const json_t *fields = json_object_get(term, "matchFields");

		if (json_array_size(labels) + json_array_size(fields) &&
			all_hold(labels, node->labels, NULL) &&
			all_hold(fields, node->labels, node->name))
			return true;
	}
	return !terms;
}

static bool is_tolerated(const json_t *taint, const json_t *tolerations)
{
	const json_t *one;
	size_t k;

	json_array_foreach(tolerations, k, one)
	{
		const char *key = text_at(one, "key"), *effect = text_at(one, "effect");
		const char *value = text_at(one, "value"), *has = text_at(taint, "value");
		bool any_value = is_equal(text_at(one, "operator"), "Exists");

		if (effect && *effect && !is_equal(effect, text_at(taint, "effect")))
			continue;
		if (key && *key ? !is_equal(key, text_at(taint, "key")) : !any_value)
			continue;
		if (any_value || is_equal(value ? value : "", has ? has : ""))
			return true;
	}
	return false;
}

/* Returns the first taint that keeps the pod away, or NULL. */
static const json_t *first_taint(const struct td_kube_node *node, const json_t *tolerations)
{
	const json_t *taint;
	size_t k;

	json_array_foreach(node->taints, k, taint)
	{
		if (!is_equal(text_at(taint, "effect"), "PreferNoSchedule") &&
			!is_tolerated(taint, tolerations))
			return taint;
	}
	return NULL;
}

bool td_kube_allows(const struct td_kube_node *node, const struct td_kube_pod *pod, char *ret_why)
{
	const json_t *taint = first_taint(node, pod->tolerations), *value;
	const char *key = taint ? text_at(taint, "key") : NULL;
	void *at;

	*ret_why = 0;
	if (taint)
		snprintf(ret_why, TD_KUBE_WHY, "it does not tolerate the taint %.63s of node %.63s",
			key ? key : "", node->name);
	for (at = json_object_iter(pod->selector); at && !*ret_why;
		at = json_object_iter_next(pod->selector, at)) {
		key = json_object_iter_key(at);
		value = json_object_iter_value(at);
		if (!is_equal(text_at(node->labels, key), json_string_value(value)))
			snprintf(ret_why, TD_KUBE_WHY,
				"node %.63s has not the label %.63s of its nodeSelector",
				node->name, key);
	}
	if (!*ret_why && !has_affinity(node, pod->terms))
		snprintf(ret_why, TD_KUBE_WHY, "node %.63s is not one of its node affinity",
			node->name);
	(void)td_printable(ret_why);
	return !*ret_why;
}
