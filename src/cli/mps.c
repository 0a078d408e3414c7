/*
 * MPS for programs. A program finds a control daemon by its environment before its first CUDA call,
 * so `tandem run` must know the GPU. It does if the program may see only one GPU. MPS numbers the
 * GPUs of a control daemon from 0; a UUID means the same GPU with and without MPS.
 */
#include "cli/mps.h"

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/time.h"
#include "base/uuid.h"
#include "cli/cli.h"
#include "cuda/visible.h"
#include "gpu/mps.h"
#include "proto/socket.h"
#include "proto/words.h"
#include "view/metrics.h"

#define GPUS_MAX     64
#define START_NS     (20 * TD_NS_PER_S)
#define LOOK_NS      (20 * TD_NS_PER_MS)
#define PIPE         "CUDA_MPS_PIPE_DIRECTORY"
#define SHARE        "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE"
#define PER_CONTEXT  "CUDA_MPS_ENABLE_PER_CTX_DEVICE_MULTIPROCESSOR_PARTITIONING"
#define DEFAULT_PIPE "/tmp/nvidia-mps"

struct gpus {
	uint32_t count;
	struct {
		uint32_t number, sm_share_ppm;
		char state[16], text[TD_MPS_PATH + 160];
	} gpu[GPUS_MAX];
	uint8_t uuid[GPUS_MAX][16];
};

static void keep_gpu(const struct td_msg *msg, void *arg)
{
	struct gpus *gpus = arg;
	uint32_t i = gpus->count;

	if (msg->type != TD_MSG_TYPE_gpu || i == GPUS_MAX)
		return;
	gpus->gpu[i].number = msg->gpu.index;
	gpus->gpu[i].sm_share_ppm = msg->gpu.sm_share_ppm;
	snprintf(gpus->gpu[i].state, sizeof(gpus->gpu[i].state), "%.15s", msg->gpu.mps);
	snprintf(gpus->gpu[i].text, sizeof(gpus->gpu[i].text), "%s", msg->gpu.mps_text);
	memcpy(gpus->uuid[i], msg->gpu.gpu, 16);
	gpus->count++;
}

/* Returns whether a daemon answers, and prints nothing. */
static bool has_daemon(void)
{
	char path[256];
	bool answers;
	int fd;

	if (td_socket_path_typed(path, sizeof(path), &(struct td_err){0}))
		return false;
	fd = td_cli_connect(path);
	if (fd < 0)
		return false;
	answers = !td_cli_probe(fd);
	close(fd);
	return answers;
}

/* -- tandem run -- */

struct wants {
	bool on, automatic, shares;
};

/* The policies that hold programs to shares of the SMs. */
static const char *const by_shares[] = {"muxflow", "mudi", NULL};

static bool is_one_of(const char *name, const char *const *names)
{
	while (*names && strcmp(name, *names))
		names++;
	return *names != NULL;
}

static void note_option(const struct td_msg *msg, void *arg)
{
	struct wants *wants = arg;

	if (msg->type != TD_MSG_TYPE_option)
		return;
	if (!strcmp(msg->option.key, "mps")) {
		wants->on = !strcmp(msg->option.value, "on");
		wants->automatic = !strcmp(msg->option.value, "auto");
	}
	if (!strcmp(msg->option.key, "policy"))
		wants->shares = is_one_of(msg->option.value, by_shares);
}

/* Returns whether MPS is to be used; decides as the daemon does (daemon/server/gpus/mps.c). */
static bool is_wanted(void)
{
	const struct td_msg get = {.type = TD_MSG_TYPE_get};
	struct wants wants = {0};

	return !td_cli_ask(&get, note_option, &wants) &&
	       (wants.on || (wants.automatic && wants.shares));
}

static bool has_starting(const struct gpus *gpus)
{
	for (uint32_t i = 0; i < gpus->count; i++)
		if (!strcmp(gpus->gpu[i].state, "starting") ||
			!strcmp(gpus->gpu[i].state, "stopping") ||
			!strcmp(gpus->gpu[i].state, "fault"))
			return true;
	return false;
}

/*
 * Lists the GPUs once no control daemon is starting any more, or START_NS have passed. A control
 * daemon in fault counts as starting, since it is about to be started anew.
 */
static bool list_started(struct gpus *gpus)
{
	const struct td_msg list = {.type = TD_MSG_TYPE_list_gpus};
	uint64_t end_ns = td_time_now_ns() + START_NS;

	do {
		gpus->count = 0;
		if (td_cli_ask(&list, keep_gpu, gpus))
			return false;
		if (!has_starting(gpus))
			return true;
		td_time_sleep_until_ns(td_time_now_ns() + LOOK_NS);
	} while (td_time_now_ns() < end_ns);
	return true;
}

/* Returns the index of the only GPU that the program may see; -1 if there are several or none. */
static int find_only(const struct gpus *gpus)
{
	const char *chosen = getenv("TANDEM_GPUS");
	uint32_t order[GPUS_MAX];

	return td_visible(chosen ? chosen : getenv("CUDA_VISIBLE_DEVICES"), gpus->uuid, gpus->count,
		       order) == 1
		       ? (int)order[0]
		       : -1;
}

static void complain(const char *why)
{
	fprintf(stderr, "tandem: MPS: %s: the program runs without it\n", why);
}

/*
 * Sets the program's share of the SMs, in whole percents, to what online jobs leave, unless the
 * user has chosen one.
 */
static void set_share(uint32_t sm_share_ppm)
{
	const char *class = getenv("TANDEM_CLASS");
	char percent[16];

	if (!sm_share_ppm || (class && strcmp(class, "besteffort")))
		return;
	snprintf(percent, sizeof(percent), "%u", sm_share_ppm / (TD_PPM / 100));
	if (getenv(SHARE))
		return;
	setenv(SHARE, percent, 1);
	/*
	 * The percentage is one for each context, so that the program can give a later context a
	 * larger one.
	 */
	setenv(PER_CONTEXT, "1", 1);
}

static bool is_one(const char *count)
{
	return count && !strcmp(count, "1");
}

void td_cli_set_mps(void)
{
	char uuid[TD_UUID_TEXT], why[320];
	struct gpus gpus = {0};
	int i;

	if (getenv(PIPE) || !has_daemon() || !is_wanted() || !list_started(&gpus) || !gpus.count)
		return;
	i = find_only(&gpus);
	/*
	 * If the daemon chooses the program's one GPU later, libtandem.so sets the variables of MPS
	 * then.
	 */
	if (i < 0 && is_one(getenv("TANDEM_GPU_COUNT")))
		return;
	if (i < 0) {
		complain("each GPU has a control daemon of its own, and the program may see "
			 "several: name one by --gpu");
		return;
	}
	if (!strcmp(gpus.gpu[i].state, "ready")) {
		setenv(PIPE, gpus.gpu[i].text, 1);
		if (!getenv("TANDEM_GPUS"))
			setenv("CUDA_VISIBLE_DEVICES", td_uuid_format(uuid, gpus.uuid[i]), 1);
		set_share(gpus.gpu[i].sm_share_ppm);
		return;
	}
	/* The program itself finds a control daemon that tandem did not start. */
	if (!strcmp(gpus.gpu[i].state, "foreign") || !gpus.gpu[i].state[0])
		return;
	snprintf(why, sizeof(why), "GPU %u: %s%s%s", gpus.gpu[i].number, gpus.gpu[i].state,
		*gpus.gpu[i].text ? ": " : "", gpus.gpu[i].text);
	complain(why);
}

/* -- tandem doctor -- */

struct sayer {
	void (*say)(void *arg, bool ok, const char *text);
	void *arg;
};

/*
 * Checks a pipe directory that is not tandem's: reports whose control daemon runs, or ran, there.
 */
static void check_place(const struct sayer *to, const char *directory)
{
	struct td_mps_place place;
	char text[320];

	if (!td_mps_look(directory, &place))
		return;
	if (!place.alive)
		snprintf(text, sizeof(text),
			"%.90s has the pid file of process %d, which is no control daemon: remove "
			"the directory if none is to run there",
			directory, (int)place.pid);
	else if (place.uid && place.uid != geteuid())
		snprintf(text, sizeof(text),
			"%.90s has the control daemon of user %u, which refuses programs of "
			"others: set " PIPE,
			directory, (unsigned)place.uid);
	else
		snprintf(text, sizeof(text),
			"%.90s has a control daemon, process %d: it is left alone, and tandem "
			"starts none",
			directory, (int)place.pid);
	to->say(to->arg, place.alive && (!place.uid || place.uid == geteuid()), text);
}

/* Reports whether MPS can serve a GPU, by its compute mode and its compute capability. */
static void check_device(const struct sayer *to, int device, int mode, int major)
{
	char text[200] = "";

	if (mode == 2)
		snprintf(text, sizeof(text),
			"GPU %d is in compute mode \"prohibited\": no program gets a context there",
			device);
	else if (mode == 3)
		snprintf(text, sizeof(text),
			"GPU %d is in compute mode \"exclusive process\": an MPS server starts "
			"only "
			"while no other program has a context there",
			device);
	else if (major < 7)
		snprintf(text, sizeof(text),
			"GPU %d is older than Volta: MPS has no shares of SMs there, and clients "
			"can reach each other's memory",
			device);
	if (*text)
		to->say(to->arg, mode != 2, text);
}

/* CU_DEVICE_ATTRIBUTE_COMPUTE_MODE and _COMPUTE_CAPABILITY_MAJOR */
enum { COMPUTE_MODE = 20, CAPABILITY_MAJOR = 75 };

static void check_devices(const struct sayer *to)
{
	void *handle = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_LOCAL);
	int (*init)(unsigned), (*get_count)(int *), (*get)(int *, int, int), count = 0;

	if (!handle)
		return;
	*(void **)&init = dlsym(handle, "cuInit");
	*(void **)&get_count = dlsym(handle, "cuDeviceGetCount");
	*(void **)&get = dlsym(handle, "cuDeviceGetAttribute");
	if (!init || !get_count || !get || init(0) || get_count(&count))
		count = 0;
	for (int i = 0; i < count; i++) {
		int mode = 0, major = 0;

		if (!get(&mode, COMPUTE_MODE, i) && !get(&major, CAPABILITY_MAJOR, i))
			check_device(to, i, mode, major);
	}
	dlclose(handle);
}

/* Reports on the control daemons that tandemd has started. */
static void check_own(const struct sayer *to)
{
	const struct td_msg list = {.type = TD_MSG_TYPE_list_gpus};
	struct gpus gpus = {0};
	char text[400];

	if (!has_daemon() || td_cli_ask(&list, keep_gpu, &gpus))
		return;
	for (uint32_t i = 0; i < gpus.count; i++) {
		bool failed =
			!strcmp(gpus.gpu[i].state, "failed") || !strcmp(gpus.gpu[i].state, "fault");

		if (!gpus.gpu[i].state[0] || !strcmp(gpus.gpu[i].state, "foreign"))
			continue;
		snprintf(text, sizeof(text), "GPU %u: %s%s%s", gpus.gpu[i].number,
			gpus.gpu[i].state, *gpus.gpu[i].text ? ": " : "", gpus.gpu[i].text);
		to->say(to->arg, !failed, text);
	}
}

void td_cli_check_mps(void (*say)(void *arg, bool ok, const char *text), void *arg)
{
	const struct sayer to = {say, arg};
	const char *set = getenv(PIPE);

	if (set && *set)
		check_place(&to, set);
	if (!set || strcmp(set, DEFAULT_PIPE))
		check_place(&to, DEFAULT_PIPE);
	if (!td_mps_is_installed()) {
		say(arg, true, "none: " TD_MPS_PROGRAM " is not on the PATH");
		return;
	}
	check_devices(&to);
	check_own(&to);
}
