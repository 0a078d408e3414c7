/* This file implements account.h. */
#include "kubernetes/sched/account.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/err.h"

#define FOLDER "/var/run/secrets/kubernetes.io/serviceaccount/"

static const char *file_or_null(const char *path)
{
	return access(path, R_OK) ? NULL : path;
}

static void read_space(char *ret)
{
	td_auto_close int fd = open(FOLDER "namespace", O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? 0 : read(fd, ret, TD_KUBE_NAME - 1);

	ret[n > 0 ? n : 0] = 0;
	ret[strcspn(ret, " \t\r\n")] = 0;
}

static int find_server(const char *given, char *ret, size_t len, struct td_err *err)
{
	const char *host = getenv("KUBERNETES_SERVICE_HOST");
	const char *port = getenv("KUBERNETES_SERVICE_PORT");

	port = port && *port ? port : "443";
	if (given)
		snprintf(ret, len, "%s", given);
	else if (host && *host && strlen(host) < 128)
		snprintf(ret, len, "https://%s%s%s:%.5s", strchr(host, ':') ? "[" : "", host,
			strchr(host, ':') ? "]" : "", port);
	else
		return td_err_set(err, -EINVAL,
			"this is not a pod of a cluster: --server is missing, see --help");
	return 0;
}

int td_kube_account_find(
	const struct td_kube_account *given, struct td_kube_found *ret, struct td_err *err)
{
	int r = find_server(given->server, ret->server, sizeof(ret->server), err);

	if (r)
		return r;
	ret->account = *given;
	ret->account.server = ret->server;
	if (!given->token_file)
		ret->account.token_file = file_or_null(FOLDER "token");
	if (!given->ca_file)
		ret->account.ca_file = file_or_null(FOLDER "ca.crt");
	read_space(ret->space);
	return 0;
}
