/*
 * tandem run --gpu: chooses the GPUs that the job may see. libtandem.so reads them from its
 * environment (preload/agent/place.h).
 *
 * If CUDA_VISIBLE_DEVICES is set, the candidates are its GPUs, in its order. The driver itself
 * interprets it, in a child process, so that indices, prefixes of UUIDs and parts of GPUs keep
 * their meaning. Otherwise the candidates are the daemon's list, which comes from NVML; without
 * NVML the driver is asked. Within the job the variable is cleared, as in a container, because the
 * outer indices would name other GPUs.
 */
#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/err.h"
#include "base/parse.h"
#include "base/uuid.h"
#include "cli/cli.h"
#include "gpu/nvml.h"
#include "proto/words.h"
#include "view/metrics.h"

#define ROWS_MAX 64

/* The GPUs as the daemon lists them. */
struct rows {
	uint32_t count;
	struct {
		uint32_t number, known;
		char name[64], uuid[TD_UUID_TEXT];
	} row[ROWS_MAX];
	bool by_nvml;
};

struct list {
	uint32_t count;
	char uuid[TD_GPU_MAX][TD_UUID_TEXT];
};

static void keep_row(const struct td_msg *msg, void *arg)
{
	struct rows *rows = arg;

	if (msg->type != TD_MSG_TYPE_gpu || rows->count == ROWS_MAX)
		return;
	rows->row[rows->count].number = msg->gpu.index;
	rows->row[rows->count].known = msg->gpu.known;
	snprintf(rows->row[rows->count].name, sizeof(rows->row[0].name), "%.63s", msg->gpu.name);
	td_gpu_uuid(rows->row[rows->count].uuid, &msg->gpu);
	for (uint32_t i = 0; i < rows->count; i++)
		if (!strcmp(rows->row[i].uuid, rows->row[rows->count].uuid))
			return;
	rows->by_nvml |= msg->gpu.known != 0;
	rows->count++;
}

static int find_uuid(const struct list *list, const char *uuid)
{
	for (uint32_t i = 0; i < list->count; i++)
		if (!strcmp(list->uuid[i], uuid))
			return (int)i;
	return -1;
}

static void add_uuid(struct list *list, const char *uuid)
{
	if (list->count < TD_GPU_MAX)
		snprintf(list->uuid[list->count++], TD_UUID_TEXT, "%.40s", uuid);
}

/* -- the driver's list -- */

/* Writes one line for each device; runs in the child process. */
static void write_devices(int out)
{
	void *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
	int (*init)(unsigned), (*get_count)(int *), (*get)(int *, int);
	int (*get_uuid)(uint8_t *, int), (*get_uuid_v2)(uint8_t *, int), count = 0, device;

	if (!driver)
		return;
	*(void **)&init = dlsym(driver, "cuInit");
	*(void **)&get_count = dlsym(driver, "cuDeviceGetCount");
	*(void **)&get = dlsym(driver, "cuDeviceGet");
	*(void **)&get_uuid = dlsym(driver, "cuDeviceGetUuid");
	*(void **)&get_uuid_v2 = dlsym(driver, "cuDeviceGetUuid_v2");
	if (!init || !get_count || !get || !get_uuid || init(0) || get_count(&count))
		return;
	for (int i = 0; i < count; i++) {
		uint8_t whole[16], own[16];
		char text[TD_UUID_TEXT + 1];

		if (get(&device, i) || get_uuid(whole, device))
			return;
		memcpy(own, whole, sizeof(own));
		if (get_uuid_v2)
			(void)get_uuid_v2(own, device);
		td_uuid_format(text, own);
		/*
		 * For a part of a GPU, cuDeviceGetUuid_v2() returns its own UUID, and
		 * cuDeviceGetUuid() that of the whole GPU.
		 */
		if (memcmp(own, whole, sizeof(own)))
			memcpy(text, "MIG-", 4);
		strcat(text, "\n");
		if (write(out, text, strlen(text)) < 0)
			return;
	}
}

static int list_by_driver(struct list *ret)
{
	char line[TD_UUID_TEXT + 1];
	int fds[2];
	pid_t pid;
	FILE *in;

	if (pipe(fds) < 0)
		return td_cli_fail("pipe: %s", strerror(errno));
	fflush(stdout);
	pid = fork();
	if (pid < 0) {
		close(fds[0]);
		close(fds[1]);
		return td_cli_fail("fork: %s", strerror(errno));
	}
	if (pid == 0) {
		close(fds[0]);
		write_devices(fds[1]);
		_exit(0);
	}
	close(fds[1]);
	in = fdopen(fds[0], "r");
	while (in && fgets(line, sizeof(line), in)) {
		line[strcspn(line, "\n")] = 0;
		if (*line)
			add_uuid(ret, line);
	}
	if (in)
		fclose(in);
	else
		close(fds[0]);
	waitpid(pid, NULL, 0);
	return 0;
}

/* -- the candidates -- */

/*
 * Returns the candidates as text: "0 (NVIDIA H200, GPU-...), 1 (...)", or only the UUID of a GPU
 * that the daemon does not know.
 */
static const char *describe(const struct rows *rows, const struct list *candidates)
{
	static char text[2048];
	size_t n = 0;

	for (uint32_t i = 0; i < candidates->count && n < sizeof(text); i++) {
		uint32_t k = 0;

		while (k < rows->count && strcmp(rows->row[k].uuid, candidates->uuid[i]))
			k++;
		if (k < rows->count)
			n += (size_t)snprintf(text + n, sizeof(text) - n, "%s%u (%s, %s)",
				n ? ", " : "", rows->row[k].number, rows->row[k].name,
				rows->row[k].uuid);
		else
			n += (size_t)snprintf(text + n, sizeof(text) - n, "%s%s", n ? ", " : "",
				candidates->uuid[i]);
	}
	return text;
}

static int list_candidates(const struct rows *rows, struct list *ret)
{
	const char *visible = getenv("CUDA_VISIBLE_DEVICES");

	if (!visible && rows->by_nvml) {
		for (uint32_t i = 0; i < rows->count; i++)
			if (!(rows->row[i].known & TD_GPU_IS_DIVIDED))
				add_uuid(ret, rows->row[i].uuid);
	}
	/* Only the driver knows parts of a GPU that no program has used yet. */
	if (!ret->count && list_by_driver(ret))
		return TD_EXIT_USAGE;
	if (ret->count)
		return 0;
	if (visible)
		return td_cli_fail(
			"--gpu: CUDA_VISIBLE_DEVICES=\"%.200s\" leaves no GPU to choose from",
			visible);
	return td_cli_fail("--gpu: there is no GPU here: see tandem doctor");
}

/* -- the value of --gpu -- */

static bool is_row(const struct rows *rows, uint32_t row, const char *word, size_t len)
{
	char number[12];

	snprintf(number, sizeof(number), "%u", rows->row[row].number);
	return (strlen(number) == len && !memcmp(number, word, len)) ||
	       (len > 4 && !strncasecmp(rows->row[row].uuid, word, len));
}

static int fail_word(
	const char *word, size_t len, const struct rows *rows, const struct list *candidates)
{
	const char *visible = getenv("CUDA_VISIBLE_DEVICES");

	for (uint32_t i = 0; i < rows->count; i++)
		if (rows->row[i].known & TD_GPU_IS_DIVIDED && is_row(rows, i, word, len))
			return td_cli_fail("--gpu: \"%.*s\" is divided by MIG: name its parts in "
					   "CUDA_VISIBLE_DEVICES, and --gpu any",
				(int)len, word);
	return td_cli_fail(
		"--gpu: \"%.*s\" is not a GPU %s%s: expected any, any:N, first, or some of "
		"%s",
		(int)(len < 64 ? len : 64), word, visible ? "within CUDA_VISIBLE_DEVICES=" : "here",
		visible ? visible : "", describe(rows, candidates));
}

/*
 * Returns the index of the candidate with that number or UUID. The beginning of a UUID is enough if
 * it is unique. Returns -1 if there is none.
 */
static int find_word(
	const char *word, size_t len, const struct rows *rows, const struct list *candidates)
{
	char text[TD_UUID_TEXT];
	uint64_t number;
	int found = -1;

	if (!len || len >= sizeof(text))
		return -1;
	memcpy(text, word, len);
	text[len] = 0;
	for (uint32_t i = 0; len > 4 && i < candidates->count; i++) {
		if (strncasecmp(candidates->uuid[i], text, len))
			continue;
		if (found >= 0)
			return -1;
		found = (int)i;
	}
	if (found >= 0 || td_parse_u64(text, 0, UINT32_MAX - 1, &number, NULL))
		return found;
	for (uint32_t i = 0; i < rows->count; i++)
		if (rows->row[i].number == number)
			return find_uuid(candidates, rows->row[i].uuid);
	return -1;
}

static int choose_words(
	const char *words, const struct rows *rows, const struct list *candidates, struct list *ret)
{
	const char *all = words;

	while (words) {
		size_t len = strcspn(words, ",");
		int found = find_word(words, len, rows, candidates);

		if (!len && *all)
			return td_cli_fail("--gpu: \"%.64s\" is not valid: expected a GPU before "
					   "and behind each comma, of %s",
				all, describe(rows, candidates));
		if (found < 0)
			return fail_word(words, len, rows, candidates);
		if (find_uuid(ret, candidates->uuid[found]) >= 0)
			return td_cli_fail("--gpu: \"%.*s\" is named twice", (int)len, words);
		add_uuid(ret, candidates->uuid[found]);
		words = words[len] ? words + len + 1 : NULL;
	}
	return 0;
}

/*
 * Returns the count of "any" (1) or "any:2" (2). Returns 0 if the value is something else; below 0
 * after printing an error.
 */
static int count_of_any(const char *value, const struct rows *rows, const struct list *candidates)
{
	struct td_err err = {0};
	uint64_t count = 1;

	if (strncmp(value, "any", 3) || (value[3] && value[3] != ':'))
		return 0;
	if (value[3] && td_parse_u64(value + 4, 1, candidates->count, &count, &err)) {
		td_cli_fail(
			"--gpu %.64s: %s; there is %s", value, err.msg, describe(rows, candidates));
		return -1;
	}
	return (int)count;
}

/* Sets the job's variables. rest: the candidates that are not chosen are visible to it, too. */
static int set_environment(const struct list *list, uint32_t count, bool rest)
{
	char text[TD_GPU_MAX * TD_UUID_TEXT] = "", number[12];

	for (uint32_t i = 0; i < list->count; i++) {
		strcat(text, i ? "," : "");
		strcat(text, list->uuid[i]);
	}
	snprintf(number, sizeof(number), "%u", count);
	setenv("TANDEM_GPUS", text, 1);
	setenv("TANDEM_GPU_COUNT", number, 1);
	if (rest)
		setenv("TANDEM_GPU_REST", "1", 1);
	else
		unsetenv("TANDEM_GPU_REST");
	unsetenv("CUDA_VISIBLE_DEVICES");
	return 0;
}

/*
 * Lists the GPUs in the order of the daemon's numbers, which is NVML's. Without NVML there are no
 * numbers, and the driver lists the candidates.
 */
static void list_by_nvml(struct rows *rows)
{
	struct td_nvml_gpu gpus[TD_NVML_GPU_MAX];
	struct td_nvml *nvml;
	int count;

	memset(rows, 0, sizeof(*rows));
	if (td_nvml_open(NULL, &nvml))
		return;
	count = td_nvml_sample(nvml, gpus);
	for (int i = 0; i < count; i++) {
		struct td_msg msg = {.type = TD_MSG_TYPE_gpu};

		msg.gpu.index = gpus[i].index;
		msg.gpu.known = gpus[i].known | (gpus[i].mig ? TD_GPU_IS_DIVIDED : 0);
		memcpy(msg.gpu.gpu, gpus[i].uuid, sizeof(msg.gpu.gpu));
		snprintf(msg.gpu.name, sizeof(msg.gpu.name), "%s", gpus[i].name);
		keep_row(&msg, rows);
	}
	td_nvml_close(nvml);
}

int td_cli_place(const char *value, bool alone)
{
	static struct rows rows;
	const struct td_msg request = {.type = TD_MSG_TYPE_list_gpus};
	struct list candidates = {0}, chosen = {0};
	bool first = !strcmp(value, "first");
	int any, asked = alone ? TD_CLI_NO_DAEMON : td_cli_ask_or_start(&request, keep_row, &rows);

	if (asked == TD_CLI_NO_DAEMON)
		list_by_nvml(&rows);
	else if (asked)
		return TD_EXIT_USAGE;
	if (list_candidates(&rows, &candidates))
		return TD_EXIT_USAGE;
	any = first ? 1 : count_of_any(value, &rows, &candidates);
	if (any < 0 || (!any && choose_words(value, &rows, &candidates, &chosen)))
		return TD_EXIT_USAGE;
	(void)set_environment(
		any ? &candidates : &chosen, any ? (uint32_t)any : chosen.count, first);
	return asked;
}
