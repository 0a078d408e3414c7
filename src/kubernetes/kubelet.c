/* This file implements kubelet.h. */
#include "kubernetes/kubelet.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "base/time.h"
#include "kubernetes/service.h"

#define RETRY_NS    TD_NS_PER_S
#define DEADLINE_NS (10 * TD_NS_PER_S) /* the time for one registration */
/* a kubelet calls ListAndWatch at once after a registration */
#define LISTEN_NS (5 * TD_NS_PER_S)

int td_kubelet_init(
	struct td_kubelet *kubelet, const char *dir, const char *endpoint, const char *resource)
{
	memset(kubelet, 0, sizeof(*kubelet));
	kubelet->endpoint = endpoint;
	kubelet->resource = resource;
	return (size_t)snprintf(kubelet->path, sizeof(kubelet->path), "%s/kubelet.sock", dir) <
			       sizeof(kubelet->path)
		       ? 0
		       : -ENAMETOOLONG;
}

static void hang_up(struct td_kubelet *kubelet)
{
	td_grpc_close(kubelet->call);
	kubelet->call = NULL;
}

void td_kubelet_deinit(struct td_kubelet *kubelet)
{
	hang_up(kubelet);
}

void td_kubelet_restarted(struct td_kubelet *kubelet)
{
	hang_up(kubelet);
	kubelet->is_registered = false;
	kubelet->unwatched_ns = 0;
	kubelet->retry_ns = 0;
}

/* Logs a failure. The same reason is logged once, however often it occurs. */
static void note(struct td_kubelet *kubelet, const char *why)
{
	if (strcmp(kubelet->why, why))
		td_log(TD_LOG_WARN, "kubelet=%s not registered: %s", kubelet->path, why);
	snprintf(kubelet->why, sizeof(kubelet->why), "%s", why);
}

static void take_answer(void *arg, int status, const char *text, const uint8_t *message, size_t len)
{
	struct td_kubelet *kubelet = arg;
	char why[TD_GRPC_TEXT];

	(void)message;
	(void)len;
	kubelet->has_answer = true;
	kubelet->is_registered = status == TD_GRPC_OK;
	if (kubelet->is_registered) {
		kubelet->registrations++;
		*kubelet->why = 0;
		td_log(TD_LOG_INFO, "resource=%s registered with the kubelet", kubelet->resource);
		return;
	}
	snprintf(why, sizeof(why), "status %d: %.200s", status, text);
	note(kubelet, why);
}

/* Connects to a unix socket. That succeeds or fails at once. */
static int connect_to(const char *path)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), r;

	if (fd < 0)
		return -errno;
	strcpy(address.sun_path, path);
	if (!connect(fd, (const struct sockaddr *)&address, sizeof(address)))
		return fd;
	r = -errno;
	close(fd);
	return r;
}

static void begin(struct td_kubelet *kubelet, uint64_t now_ns)
{
	const struct td_grpc_events events = {.answered = take_answer, .arg = kubelet};
	size_t len;
	td_auto_free uint8_t *message =
		td_service_register(kubelet->endpoint, kubelet->resource, &len);
	int fd = connect_to(kubelet->path);

	kubelet->retry_ns = now_ns + RETRY_NS;
	if (fd < 0) {
		note(kubelet, strerror(-fd));
		return;
	}
	kubelet->call = message ? td_grpc_open(fd, false, &events) : NULL;
	if (!kubelet->call) {
		close(fd);
		return;
	}
	kubelet->has_answer = false;
	kubelet->retry_ns = now_ns + DEADLINE_NS;
	if (td_grpc_call(kubelet->call, "/v1beta1.Registration/Register", message, len))
		hang_up(kubelet);
}

/* Registers again if no ListAndWatch has been open for LISTEN_NS. */
static void check_watched(struct td_kubelet *kubelet, bool is_watched, uint64_t now_ns)
{
	if (is_watched || !kubelet->is_registered) {
		kubelet->unwatched_ns = 0;
	} else if (!kubelet->unwatched_ns) {
		kubelet->unwatched_ns = now_ns;
	} else if (now_ns - kubelet->unwatched_ns >= LISTEN_NS) {
		td_log(TD_LOG_WARN,
			"kubelet=%s does not follow the list of GPUs: registering again",
			kubelet->path);
		td_kubelet_restarted(kubelet);
	}
}

uint64_t td_kubelet_turn(struct td_kubelet *kubelet, bool is_watched, uint64_t now_ns)
{
	int r = 0;

	check_watched(kubelet, is_watched, now_ns);
	if (!kubelet->call && !kubelet->is_registered && now_ns >= kubelet->retry_ns)
		begin(kubelet, now_ns);
	if (kubelet->call)
		r = td_grpc_turn(kubelet->call);
	if (kubelet->call && !r && !kubelet->has_answer && now_ns >= kubelet->retry_ns)
		r = -ETIMEDOUT;
	if (kubelet->call && (r || kubelet->has_answer)) {
		if (!kubelet->has_answer)
			note(kubelet, strerror(-r));
		kubelet->retry_ns = now_ns + RETRY_NS;
		hang_up(kubelet);
	}
	if (!kubelet->is_registered)
		return kubelet->retry_ns;
	if (is_watched)
		return UINT64_MAX;
	return (kubelet->unwatched_ns ? kubelet->unwatched_ns : now_ns) + LISTEN_NS;
}
