/* The child process that becomes the supervised program. */
#pragma once

#include <signal.h>
#include <stdbool.h>
#include <sys/types.h>

/* The signal state that this process was started with. The program shall start with the same. */
struct td_inherited {
	sigset_t mask;
	struct sigaction child; /* the action of SIGCHLD */
};

struct td_child {
	pid_t pid; /* 0: no process */
	/* closed when the program is executed; -1: that has happened, or there is no process */
	int started_fd;
	bool is_unstarted; /* it could not be executed, and the error was printed */
};

/*
 * Blocks all signals, and makes sure that ended children can be waited for. Saves the state before.
 * A program that td_child_start() executes starts with that state.
 */
void td_inherited_take(struct td_inherited *ret);

/*
 * Forks and executes argv[0]. The child is killed when this process ends, even by SIGKILL.
 * `restarts` is put into TANDEM_RESTARTS. The child calls `prepare` first, if it is not NULL.
 * Returns 0 or -errno.
 */
int td_child_start(struct td_child *child, char *const *argv, unsigned restarts,
	const struct td_inherited *inherited, void (*prepare)(void));
/* Called when started_fd can be read. Returns whether the program was executed. */
bool td_child_is_executed(struct td_child *child);
