/* This file implements spawn.h. */
#include "daemon/server/loop/spawn.h"

#include <signal.h>
#include <spawn.h>

extern char **environ;

int td_spawn(const char *program, char *const *argv, int fd, int child_fd, pid_t *ret_pid)
{
	posix_spawn_file_actions_t files;
	posix_spawnattr_t attributes;
	sigset_t none, all;
	int r;

	sigemptyset(&none);
	sigfillset(&all);
	r = posix_spawnattr_init(&attributes);
	if (r)
		return -r;
	r = posix_spawn_file_actions_init(&files);
	if (r) {
		posix_spawnattr_destroy(&attributes);
		return -r;
	}
	r = posix_spawn_file_actions_adddup2(&files, fd, child_fd);
	(void)posix_spawnattr_setsigmask(&attributes, &none);
	(void)posix_spawnattr_setsigdefault(&attributes, &all);
	(void)posix_spawnattr_setpgroup(&attributes, 0);
	(void)posix_spawnattr_setflags(&attributes,
		POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP);
	if (!r)
		r = posix_spawn(ret_pid, program, &files, &attributes, argv, environ);
	posix_spawn_file_actions_destroy(&files);
	posix_spawnattr_destroy(&attributes);
	return -r;
}
