/* The child process that becomes the supervised program. */
#pragma once

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
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
	bool is_unstarted; /* the program could not be executed, and the error was printed */
	/* gets a byte when the program calls tandem_ready(); -1: it cannot say so */
	int ready_fd;
	uint32_t instance; /* TANDEM_INSTANCE; 0: none */
};

/* The settings of one start of the program. */
struct td_start {
	unsigned restarts;     /* put into TANDEM_RESTARTS */
	uint32_t instance;     /* put into TANDEM_INSTANCE; 0: the program has no instances */
	uint32_t sm_share_ppm; /* the program's share of the SMs under MPS; 0: as inherited */
	void (*prepare)(void); /* called in the child after that; NULL: nothing */
};

/*
 * Blocks all signals, and makes sure that ended children can be waited for. Saves the state before.
 * A program that td_child_start() executes starts with that state.
 */
void td_inherited_take(struct td_inherited *ret);

/*
 * Forks and executes argv[0]. The child is killed when this process ends, even by SIGKILL. One with
 * instances can call tandem_ready(). Returns 0 or -errno.
 */
int td_child_start(struct td_child *child, char *const *argv, const struct td_start *start,
	const struct td_inherited *inherited);
/* Called when ready_fd can be read. Returns whether the program has called tandem_ready(). */
bool td_child_is_ready(struct td_child *child);
/* Closes the descriptors of a child that has ended, and forgets it. */
void td_child_forget(struct td_child *child);
/* Called when started_fd can be read. Returns whether the program was executed. */
bool td_child_is_executed(struct td_child *child);
