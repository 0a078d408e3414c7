/* This file implements review.h. */
#include "kubernetes/admission/review.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/parse.h"
#include "base/text.h"
#include "proto/base64.h"

#define API "admission.k8s.io/v1"

static const char *text_of(const json_t *object, const char *key)
{
	const char *text = json_string_value(json_object_get(object, key));

	return text ? text : "";
}

/* -- the answer -- */

/* Appends a member whose value is JSON of jansson. */
static int add_json(struct td_text *text, const char *name, const json_t *value)
{
	char *dump = json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY);

	if (!dump)
		return -ENOMEM;
	td_text_add(text, "\"%s\":%s", name, dump);
	free(dump);
	return 0;
}

static int add_patch(struct td_text *text, const json_t *patch)
{
	char *dump = json_dumps(patch, JSON_COMPACT);

	if (!dump)
		return -ENOMEM;
	td_text_add(text, ",\"patchType\":\"JSONPatch\",\"patch\":\"");
	td_base64_add(text, dump, strlen(dump));
	td_text_add(text, "\"");
	free(dump);
	return 0;
}

static int write_answer(
	struct td_text *text, const json_t *uid, const struct td_admission *admission)
{
	bool allowed = admission->verdict != TD_ADMISSION_REFUSED;
	int r;

	td_text_add(
		text, "{\"apiVersion\":\"" API "\",\"kind\":\"AdmissionReview\",\"response\":{");
	r = add_json(text, "uid", uid);
	td_text_add(text, ",\"allowed\":%s", allowed ? "true" : "false");
	if (!allowed) {
		/* kubectl prints no message of a status whose reason is Invalid. */
		td_text_add(
			text, ",\"status\":{\"code\":400,\"reason\":\"BadRequest\",\"message\":");
		td_text_add_json(text, admission->err.msg);
		td_text_add(text, "}");
	}
	if (!r && admission->verdict == TD_ADMISSION_CHANGED)
		r = add_patch(text, admission->patch);
	if (!r && json_array_size(admission->warnings)) {
		td_text_add(text, ",");
		r = add_json(text, "warnings", admission->warnings);
	}
	td_text_add(text, "}}");
	return r ? r : text->failed ? -ENOMEM : 0;
}

/* -- the question -- */

static int expect(struct td_err *err, const char *what, const char *text, const char *expected)
{
	struct td_err inner = {0};

	(void)td_err_expected(&inner, -EINVAL, text, expected);
	return td_err_set(err, -EINVAL, "%s: %s", what, inner.msg);
}

static int check_question(const json_t *root, struct td_err *err)
{
	const json_t *request = json_object_get(root, "request");
	const json_t *kind = json_object_get(request, "kind");

	if (strcmp(text_of(root, "kind"), "AdmissionReview"))
		return expect(err, "kind", text_of(root, "kind"), "AdmissionReview");
	if (strcmp(text_of(root, "apiVersion"), API))
		return expect(err, "apiVersion", text_of(root, "apiVersion"), API);
	if (!*text_of(request, "uid"))
		return td_err_set(err, -EINVAL, "request.uid is missing");
	if (strcmp(text_of(kind, "kind"), "Pod") || *text_of(kind, "group"))
		return expect(err, "request.kind.kind", text_of(kind, "kind"), "Pod");
	return 0;
}

/* A pod that gets its name from the API server later has the beginning of one. */
static void name_pod(const json_t *request, char *ret)
{
	const json_t *meta = json_object_get(json_object_get(request, "object"), "metadata");
	const char *name = text_of(request, "name"), *space = text_of(request, "namespace");

	name = *name                    ? name
	       : *text_of(meta, "name") ? text_of(meta, "name")
					: text_of(meta, "generateName");
	snprintf(ret, TD_REVIEW_NAME, "%.63s/%.253s", space, name);
	(void)td_printable(ret);
}

static int answer(const struct td_admission_options *options, const json_t *request,
	struct td_text *ret, struct td_review *ret_review)
{
	const json_t *pod = json_object_get(request, "object");
	const char *operation = text_of(request, "operation");
	struct td_admission admission = {0};
	int r = 0;

	if (*text_of(request, "subResource"))
		operation = "";
	if (!strcmp(operation, "CREATE"))
		r = td_admission_judge(options, pod, &admission);
	else if (!strcmp(operation, "UPDATE"))
		r = td_admission_judge_change(
			options, json_object_get(request, "oldObject"), pod, &admission);
	r = r ? r : write_answer(ret, json_object_get(request, "uid"), &admission);
	ret_review->verdict = admission.verdict;
	name_pod(request, ret_review->pod);
	strcpy(ret_review->reason, admission.err.msg);
	(void)td_printable(ret_review->reason);
	td_admission_deinit(&admission);
	return r;
}

int td_review_answer(const struct td_admission_options *options, const char *body, size_t length,
	struct td_text *ret, struct td_review *ret_review, struct td_err *err)
{
	json_error_t where;
	/* A NUL ends a text here. Were it an error, its pod would pass without a judgement. */
	json_t *root = json_loadb(body, length, JSON_ALLOW_NUL, &where);
	int r;

	if (!root)
		return td_err_set(err, -EINVAL, "line %d, column %d: %s", where.line, where.column,
			where.text);
	r = check_question(root, err);
	r = r ? r : answer(options, json_object_get(root, "request"), ret, ret_review);
	json_decref(root);
	return r;
}
