/* The process that becomes the program. */
#pragma once

#include <signal.h>
#include <stdbool.h>
#include <sys/types.h>

/* How this process was started, which the program is to find unchanged. */
struct td_inherited {
	sigset_t mask;
	struct sigaction child; /* of SIGCHLD */
};

struct td_child {
	pid_t pid;         /* 0: there is none */
	int started_fd;    /* closed when the program is executed; -1: it was, or there is none */
	bool is_unstarted; /* it could not be executed, which was said */
};

/*
 * Blocks all signals and makes sure that ended children can be waited for. The two have no effect
 * on what a program of td_child_start() finds.
 */
void td_inherited_take(struct td_inherited *ret);

/*
 * Forks and executes argv[0], which the end of this process kills, even by SIGKILL. `restarts` goes
 * into TANDEM_RESTARTS. The child calls `prepare` first, if it is not NULL. 0 or -errno.
 */
int td_child_start(struct td_child *child, char *const *argv, unsigned restarts,
	const struct td_inherited *inherited, void (*prepare)(void));
/* started_fd can be read: true when the program was executed. */
bool td_child_is_executed(struct td_child *child);
