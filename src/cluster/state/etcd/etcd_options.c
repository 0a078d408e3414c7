/* This file implements etcd_options.h. */
#include "cluster/state/etcd/etcd_options.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/err.h"

static int read_password(const char *path, char *ret, struct td_err *err)
{
	td_auto_close int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	struct stat st;
	ssize_t n;

	if (fd < 0 || fstat(fd, &st))
		return td_err_set(
			err, -errno, "--password-file: %.200s: %s", path, strerror(errno));
	if (st.st_mode & 077)
		return td_err_set(err, -EPERM,
			"--password-file: others may read %.200s: expected mode 0600", path);
	n = read(fd, ret, TD_ETCD_PASSWORD_MAX - 1);
	ret[n > 0 ? n : 0] = 0;
	ret[strcspn(ret, "\r\n")] = 0;
	if (!*ret || n == TD_ETCD_PASSWORD_MAX - 1)
		return td_err_set(err, -EINVAL,
			"--password-file: %.200s: expected one line of at most %u bytes", path,
			TD_ETCD_PASSWORD_MAX - 2);
	return 0;
}

int td_etcd_settings_take(
	struct td_etcd_settings *settings, int letter, const char *value, struct td_err *err)
{
	switch (letter) {
	case 'e': settings->options.endpoints = value; return 0;
	case 'C': settings->options.ca = value; return 0;
	case 'c': settings->options.certificate = value; return 0;
	case 'k': settings->options.key = value; return 0;
	case 'u': settings->options.user = value; return 0;
	case 'p':
		settings->options.password = settings->password;
		return read_password(value, settings->password, err);
	default: return 1;
	}
}
