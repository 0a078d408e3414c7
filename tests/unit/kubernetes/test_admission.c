/* Pods that are admitted, changed and refused; the questions are those of an API server. */
#include "test.h"

#include <errno.h>
#include <jansson.h>
#include <string.h>

#include "base/text.h"
#include "kubernetes/admission/review.h"
#include "proto/base64.h"

static const struct td_admission_options options = {
	.resource = "tandem.dev/gpu", .scheduler = "tandem"};
static const struct td_admission_options no_scheduler = {.resource = "tandem.dev/gpu"};

static struct td_review review;
static char message[TD_ERR_MSG_MAX]; /* of a refusal; "": the pod was allowed */
static char warning[256];            /* the first one, or "" */
static size_t operations;            /* of the patch */

#define CONTAINER(gpu, more) "{\"name\":\"train\",\"resources\":{\"limits\":{" gpu "}}" more "}"
#define GPU(n)               "\"tandem.dev/gpu\":" n
#define POD(annotations, spec)                                                                     \
	"{\"metadata\":{\"name\":\"p\",\"annotations\":{" annotations "}},\"spec\":{" spec "}}"
#define ONE(n) POD("", "\"containers\":[" CONTAINER(GPU("\"" n "\""), "") "]")

static int ask(const struct td_admission_options *with, const char *body, struct td_text *text,
	struct td_err *err)
{
	return td_review_answer(with, body, strlen(body), text, &review, err);
}

/* -- RFC 6902, as far as the patches use it -- */

static void add_at(json_t *root, const char *path, json_t *value)
{
	char copy[256], *name, *next;
	json_t *at = root;

	CHECK(*path == '/' && strlen(path) < sizeof(copy));
	strcpy(copy, path + 1);
	for (name = copy; (next = strchr(name, '/')); name = next) {
		*next++ = 0;
		at = json_is_array(at) ? json_array_get(at, strtoul(name, NULL, 10))
				       : json_object_get(at, name);
		CHECK(at != NULL); /* a patch of what is not there fails */
	}
	if (json_is_array(at)) {
		CHECK_STR(name, "-");
		CHECK(!json_array_append(at, value));
	} else {
		CHECK(!json_object_set(at, name, value));
	}
}

static void apply(json_t *pod, const char *patch)
{
	char bytes[4096];
	size_t length;
	json_t *list;

	CHECK(strlen(patch) < sizeof(bytes));
	CHECK(td_base64_decode(patch, strlen(patch), bytes, &length));
	list = json_loadb(bytes, length, 0, NULL);
	operations = json_array_size(list);
	CHECK(operations > 0);
	for (size_t i = 0; i < operations; i++) {
		json_t *op = json_array_get(list, i);

		CHECK_STR(json_string_value(json_object_get(op, "op")), "add");
		add_at(pod, json_string_value(json_object_get(op, "path")),
			json_object_get(op, "value"));
	}
	json_decref(list);
}

/* Returns the pod as the API server has it behind the answer. The caller frees it. */
static json_t *admit(const struct td_admission_options *with, const char *pod)
{
	struct td_text question = {0}, text = {0};
	json_t *answer, *response, *ret = json_loads(pod, JSON_ALLOW_NUL, NULL);
	const char *patch, *said;

	CHECK(ret != NULL);
	td_text_add(&question,
		"{\"kind\":\"AdmissionReview\",\"apiVersion\":\"admission.k8s.io/v1\",\"request\":{"
		"\"uid\":\"u-1\",\"kind\":{\"group\":\"\",\"version\":\"v1\",\"kind\":\"Pod\"},"
		"\"namespace\":\"lab\",\"operation\":\"CREATE\",\"object\":%s}}",
		pod);
	CHECK_EQ(ask(with, question.text, &text, NULL), 0);
	answer = json_loads(text.text, JSON_REJECT_DUPLICATES, NULL);
	response = json_object_get(answer, "response");
	CHECK_STR(json_string_value(json_object_get(response, "uid")), "u-1");
	said = json_string_value(json_object_get(json_object_get(response, "status"), "message"));
	snprintf(message, sizeof(message), "%s", said ? said : "");
	CHECK_EQ(json_is_true(json_object_get(response, "allowed")), !*message);
	said = json_string_value(json_array_get(json_object_get(response, "warnings"), 0));
	snprintf(warning, sizeof(warning), "%s", said ? said : "");
	patch = json_string_value(json_object_get(response, "patch"));
	operations = 0;
	if (patch)
		apply(ret, patch);
	json_decref(answer);
	td_text_deinit(&question);
	td_text_deinit(&text);
	return ret;
}

static const char *refusal(const char *pod)
{
	json_decref(admit(&no_scheduler, pod));
	return message;
}

static json_t *container_of(json_t *pod, const char *list, size_t index)
{
	return json_array_get(json_object_get(json_object_get(pod, "spec"), list), index);
}

/* The value of a container's variable, "none" without one, "twice" with two. */
static const char *variable(json_t *container, const char *name)
{
	json_t *env = json_object_get(container, "env");
	const char *found = NULL;

	for (size_t i = 0; i < json_array_size(env); i++) {
		json_t *entry = json_array_get(env, i);

		if (strcmp(json_string_value(json_object_get(entry, "name")), name))
			continue;
		if (found)
			return "twice";
		found = json_string_value(json_object_get(entry, "value"));
	}
	return found ? found : "none";
}

static const char *scheduler_of(json_t *pod)
{
	const char *name =
		json_string_value(json_object_get(json_object_get(pod, "spec"), "schedulerName"));

	return name ? name : "none";
}

/* -- cases -- */

TEST(hundredths_and_whole_gpus_are_allowed)
{
	static const char *good[] = {ONE("1"), ONE("50"), ONE("99"), ONE("100"), ONE("200"),
		ONE("6400"), ONE("1k"), ONE("6k"), ONE("0"),
		POD("", "\"containers\":[" CONTAINER(GPU("50"), "") "]")};

	for (size_t i = 0; i < sizeof(good) / sizeof(*good); i++) {
		CHECK_STR(refusal(good[i]), "");
		CHECK_EQ(operations, 0);
		CHECK_EQ(review.verdict, TD_ADMISSION_UNCHANGED);
	}
}

TEST(other_numbers_are_refused_and_quoted)
{
	static const struct {
		const char *pod, *quoted;
	} bad[] = {{ONE("101"), "\"101\""}, {ONE("150"), "\"150\""}, {ONE("6500"), "\"6500\""},
		{ONE("500m"), "\"500m\""}, {ONE("7k"), "\"7k\""}, {ONE("-1"), "\"-1\""},
		{ONE("1Ki"), "\"1Ki\""}, {ONE(""), "\"\""}, {ONE("k"), "\"k\""},
		{ONE("18446744073709551716"), "\"18446744073709551716\""}};

	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		const char *said = refusal(bad[i].pod);

		CHECK(strstr(said, bad[i].quoted) != NULL);
		CHECK(strstr(said, "container \"train\": tandem.dev/gpu: ") == said);
		CHECK(strstr(said, "expected 1 to 99 hundredths") != NULL);
		CHECK_EQ(review.verdict, TD_ADMISSION_REFUSED);
	}
	CHECK_STR(review.pod, "lab/p");
}

TEST(a_request_counts_where_there_is_no_limit)
{
	CHECK(strstr(refusal(POD("", "\"containers\":[{\"name\":\"c\",\"resources\":{"
				     "\"requests\":{\"tandem.dev/gpu\":\"130\"}}}]")),
		      "\"130\"") != NULL);
}

TEST(annotations_become_variables_of_those_who_ask)
{
	json_t *pod = admit(
		&no_scheduler, POD("\"tandem.dev/class\":\"guaranteed\",\"tandem.dev/mem\":\"8Gi\"",
				       "\"containers\":[{\"name\":\"proxy\"}," CONTAINER(
					       GPU("\"50\""), "") "," CONTAINER(GPU("\"25\""),
					       ",\"env\":[{\"name\":\"A\",\"value\":\"b\"}]") "]"));

	CHECK_STR(message, "");
	CHECK_EQ(operations, 3); /* a list; two appended */
	CHECK_EQ(review.verdict, TD_ADMISSION_CHANGED);
	CHECK_STR(variable(container_of(pod, "containers", 0), "TANDEM_CLASS"), "none");
	for (size_t i = 1; i < 3; i++) {
		CHECK_STR(
			variable(container_of(pod, "containers", i), "TANDEM_CLASS"), "guaranteed");
		CHECK_STR(variable(container_of(pod, "containers", i), "TANDEM_MEM"), "8Gi");
	}
	CHECK_STR(variable(container_of(pod, "containers", 2), "A"), "b");
	json_decref(pod);
}

TEST(a_soft_limit_of_memory_makes_it_move)
{
	json_t *pod =
		admit(&no_scheduler, POD("\"tandem.dev/soft\":\"20%\"",
					     "\"containers\":[" CONTAINER(GPU("\"50\""), "") "]"));

	CHECK_STR(variable(container_of(pod, "containers", 0), "TANDEM_MEM_SOFT"), "20%");
	CHECK_STR(variable(container_of(pod, "containers", 0), "TANDEM_BACKEND"), "swap");
	json_decref(pod);
}

TEST(init_containers_are_containers_too)
{
	json_t *pod =
		admit(&no_scheduler, POD("\"tandem.dev/duty\":\"30%\"",
					     "\"initContainers\":[{\"name\":\"a\"}," CONTAINER(
						     GPU("\"10\""), "") "],\"containers\":[]"));

	CHECK_STR(variable(container_of(pod, "initContainers", 1), "TANDEM_DUTY"), "30%");
	json_decref(pod);
	CHECK(strstr(refusal(POD("", "\"initContainers\":[" CONTAINER(GPU("\"101\""), "") "]")),
		      "\"101\"") != NULL);
}

TEST(an_empty_list_of_variables_and_none_are_the_same)
{
	static const char *envs[] = {",\"env\":[]", ",\"env\":null", ""};

	for (size_t i = 0; i < 3; i++) {
		struct td_text text = {0};
		json_t *pod;

		td_text_add(&text,
			"{\"metadata\":{\"annotations\":{\"tandem.dev/weight\":\"7\"}},\"spec\":{"
			"\"containers\":[{\"resources\":{\"limits\":{\"tandem.dev/"
			"gpu\":\"5\"}}%s}]}}",
			envs[i]);
		pod = admit(&no_scheduler, text.text);
		CHECK_STR(variable(container_of(pod, "containers", 0), "TANDEM_WEIGHT"), "7");
		CHECK_EQ(operations, 1);
		json_decref(pod);
		td_text_deinit(&text);
	}
}

TEST(a_variable_of_the_container_stays)
{
	json_t *pod = admit(&options, POD("\"tandem.dev/class\":\"guaranteed\"",
					      "\"containers\":[" CONTAINER(GPU("\"5\""),
						      ",\"env\":[{\"name\":\"TANDEM_CLASS\","
						      "\"value\":\"besteffort\"}]") "]"));

	CHECK_STR(variable(container_of(pod, "containers", 0), "TANDEM_CLASS"), "besteffort");
	json_decref(pod);
}

TEST(a_pod_that_was_changed_is_not_changed_again)
{
	json_t *pod = admit(&options, POD("\"tandem.dev/class\":\"online\"",
					      "\"containers\":[" CONTAINER(GPU("\"5\""), "") "]"));
	char *text = json_dumps(pod, 0);
	json_t *again;

	CHECK_EQ(operations, 2);
	again = admit(&options, text);
	CHECK_EQ(operations, 0);
	CHECK_EQ(review.verdict, TD_ADMISSION_UNCHANGED);
	json_decref(again);
	json_decref(pod);
	free(text);
}

TEST(settings_that_are_not_valid_are_refused)
{
	static const struct {
		const char *pod, *said;
	} bad[] = {
		{POD("\"tandem.dev/class\":\"best\"",
			 "\"containers\":[" CONTAINER(GPU("\"5\""), "") "]"),
			"annotation tandem.dev/class: \"best\""},
		{POD("\"tandem.dev/mem\":\"8 apples\"",
			 "\"containers\":[" CONTAINER(GPU("\"5\""), "") "]"),
			"annotation tandem.dev/mem: \"8 apples\""},
		{POD("\"tandem.dev/slack\":\"1%\"",
			 "\"containers\":[" CONTAINER(GPU("\"5\""), "") "]"),
			"container \"train\": slack=: \"1%\" has no effect"},
		{POD("", "\"containers\":[" CONTAINER(GPU("\"5\""),
				 ",\"env\":[{\"name\":\"TANDEM_DUTY\",\"value\":\"200%\"}]") "]"),
			"container \"train\": TANDEM_DUTY: \"200%\""},
		{POD("\"tandem.dev/share\":\"50\"", "\"containers\":[]"),
			"annotation tandem.dev/share: the scheduler writes it"},
	};

	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		CHECK(strstr(refusal(bad[i].pod), bad[i].said) == message);
}

TEST(a_value_from_elsewhere_is_not_judged)
{
	CHECK_STR(refusal(POD("\"tandem.dev/slack\":\"1%\"",
			  "\"containers\":[" CONTAINER(GPU("\"5\""),
				  ",\"env\":[{\"name\":\"TANDEM_CLASS\","
				  "\"valueFrom\":{\"configMapKeyRef\":{\"name\":\"a\",\"key\":"
				  "\"b\"}}}"
				  "]") "]")),
		"");
	CHECK_STR(
		refusal(POD("", "\"containers\":[" CONTAINER(GPU("\"5\""),
					",\"env\":[{\"name\":\"TANDEM_CLASS\",\"value\":\"$(OTHER)"
					"\"}]") "]")),
		"");
}

TEST(settings_without_a_share_are_warned_of)
{
	CHECK_STR(refusal(POD("\"tandem.dev/class\":\"x\"", "\"containers\":[{\"name\":\"a\"}]")),
		"");
	CHECK_STR(warning,
		"annotation tandem.dev/class has no effect: no container asks for tandem.dev/gpu");
	CHECK_STR(refusal(ONE("5")), "");
	CHECK_STR(warning, "");
}

TEST(who_names_no_scheduler_gets_ours)
{
	static const struct {
		const char *spec, *then;
	} pods[] = {{"", "tandem"}, {"\"schedulerName\":\"default-scheduler\",", "tandem"},
		{"\"schedulerName\":\"mine\",", "mine"},
		{"\"nodeName\":\"node1\",\"schedulerName\":\"default-scheduler\",",
			"default-scheduler"}};

	for (size_t i = 0; i < sizeof(pods) / sizeof(*pods); i++) {
		struct td_text text = {0};
		json_t *pod;

		td_text_add(&text,
			"{\"spec\":{%s\"containers\":[" CONTAINER(GPU("\"50\""), "") "]}}",
			pods[i].spec);
		pod = admit(&options, text.text);
		CHECK_STR(scheduler_of(pod), pods[i].then);
		json_decref(pod);
		pod = admit(&no_scheduler, text.text);
		CHECK_EQ(operations, 0);
		json_decref(pod);
		td_text_deinit(&text);
	}
}

TEST(a_pod_without_a_share_keeps_its_scheduler)
{
	json_decref(admit(&options, POD("", "\"containers\":[{\"name\":\"a\"}]")));
	CHECK_EQ(operations, 0);
}

/* Returns what is said of a change. */
static const char *refusal_of_change(const char *before, const char *after, const char *more)
{
	struct td_text question = {0}, text = {0};
	json_t *answer;
	const char *said;

	td_text_add(&question,
		"{\"kind\":\"AdmissionReview\",\"apiVersion\":\"admission.k8s.io/v1\","
		"\"request\":{\"uid\":\"u\",\"kind\":{\"kind\":\"Pod\"},\"operation\":\"UPDATE\"%s,"
		"\"oldObject\":%s,\"object\":%s}}",
		more, before, after);
	CHECK_EQ(ask(&options, question.text, &text, NULL), 0);
	answer = json_loads(text.text, 0, NULL);
	said = json_string_value(json_object_get(
		json_object_get(json_object_get(answer, "response"), "status"), "message"));
	snprintf(message, sizeof(message), "%s", said ? said : "");
	json_decref(answer);
	td_text_deinit(&question);
	td_text_deinit(&text);
	return message;
}

#define NOTED(annotations) POD(annotations, "\"containers\":[" CONTAINER(GPU("\"50\""), "") "]")

TEST(what_the_scheduler_has_written_cannot_be_changed)
{
	static const char placed[] = NOTED("\"tandem.dev/gpu-index\":\"0\"");
	static const char other[] = NOTED("\"tandem.dev/gpu-index\":\"1\"");
	static const char none[] = NOTED("\"a\":\"b\"");
	static const char class[] = NOTED("\"tandem.dev/class\":\"guaranteed\"");
	static const char plain[] = POD("\"tandem.dev/class\":\"online\"", "\"containers\":[]");

	CHECK_STR(refusal_of_change(placed, placed, ""), "");
	CHECK_STR(refusal_of_change(none, NOTED("\"a\":\"c\""), ""), "");
	CHECK(strstr(refusal_of_change(placed, other, ""), "annotation tandem.dev/gpu-index: "));
	CHECK(strstr(refusal_of_change(none, placed, ""), "annotation tandem.dev/gpu-index: "));
	CHECK(strstr(refusal_of_change(placed, none, ""), "annotation tandem.dev/gpu-index: "));
	CHECK(strstr(refusal_of_change(none, class, ""), "annotation tandem.dev/class: "));
	CHECK(strstr(refusal_of_change(none, NOTED("\"tandem.dev/gang\":\"g\""), ""),
		"annotation tandem.dev/gang: "));
	CHECK_STR(refusal_of_change(POD("", "\"containers\":[]"), plain, ""), "");
	CHECK_STR(refusal_of_change(placed, other, ",\"subResource\":\"status\""), "");
}

TEST(a_nul_in_a_text_does_not_let_a_pod_pass)
{
	CHECK(strstr(refusal(POD("\"other\":\"a\\u0000b\"",
			     "\"containers\":[" CONTAINER(GPU("\"150\""), "") "]")),
		      "\"150\"") != NULL);
}

TEST(only_new_pods_and_changes_are_judged)
{
	static const char *others[] = {"\"operation\":\"DELETE\"", "\"operation\":\"CONNECT\"",
		"\"operation\":\"CREATE\",\"subResource\":\"binding\""};

	for (size_t i = 0; i < 3; i++) {
		struct td_text question = {0}, text = {0};

		td_text_add(&question,
			"{\"kind\":\"AdmissionReview\",\"apiVersion\":\"admission.k8s.io/v1\","
			"\"request\":{\"uid\":\"u\",\"kind\":{\"kind\":\"Pod\"},%s,\"object\":%s}}",
			others[i], ONE("150"));
		CHECK_EQ(ask(&options, question.text, &text, NULL), 0);
		CHECK(strstr(text.text, "\"allowed\":true") && !strstr(text.text, "patch"));
		td_text_deinit(&question);
		td_text_deinit(&text);
	}
}

TEST(what_is_no_question_is_an_error)
{
#define HEAD "{\"kind\":\"AdmissionReview\",\"apiVersion\":\"admission.k8s.io/v1\""
	static const struct {
		const char *body, *said;
	} bad[] = {{"", "line 1"}, {"{", "line 1"}, {"[]", "kind: \"\""}, {"null", "line 1"},
		{"{\"kind\":\"Pod\"}", "kind: \"Pod\""},
		{"{\"kind\":\"AdmissionReview\",\"apiVersion\":\"admission.k8s.io/v1beta1\"}",
			"apiVersion: \"admission.k8s.io/v1beta1\""},
		{HEAD "}", "request.uid"}, {HEAD ",\"request\":{\"uid\":7}}", "request.uid"},
		{HEAD ",\"request\":{\"uid\":\"u\",\"kind\":{\"kind\":\"Node\"}}}",
			"request.kind.kind: \"Node\""},
		{HEAD ",\"request\":{\"uid\":\"u\",\"kind\":{\"kind\":\"Pod\",\"group\":\"x\"}}}",
			"request.kind.kind"}};

	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		struct td_text text = {0};
		struct td_err err = {0};

		CHECK_EQ(ask(&options, bad[i].body, &text, &err), -EINVAL);
		CHECK(strstr(err.msg, bad[i].said) == err.msg);
		CHECK_EQ(text.length, 0);
		td_text_deinit(&text);
	}
}

TEST(names_and_reasons_are_printable)
{
	CHECK(*refusal(
		"{\"metadata\":{\"generateName\":\"a\\u001b[2J-\"},\"spec\":{\"containers\":["
		"{\"name\":\"\\n\",\"resources\":{\"limits\":{\"tandem.dev/gpu\":\"\\u0007\"}}"
		"}]}}"));
	CHECK_STR(review.pod, "lab/a?[2J-");
	CHECK(!strpbrk(review.reason, "\n\a"));
}
