/*
 * One MPS control daemon of our own for one GPU: started, watched and ended by the commands of
 * nvidia-cuda-mps-control, in a pipe directory of its own. Nothing here waits for it: commands are
 * child processes, and their ends, that of the control daemon and that of its server are readable
 * from td_mpsd_fd().
 *
 *	OFF --want--> STARTING --its pid file--> READY <--> FAULT
 *	 ^                |                        |
 *	 |             it says why not        it has died
 *	 |                v                        v
 *	 |             FAILED --a while later--> STARTING
 *	 +--not wanted: quit, which waits for its clients (STOPPING)
 *
 * A control daemon that lives in our directory already is ours, from before a restart of ours: it
 * is taken over. One that lives elsewhere is somebody else's, and left alone: td_mps_foreign().
 *
 * One control daemon per GPU: with one server for two GPUs a fault on one keeps newcomers from the
 * other.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/uuid.h"

/* Maximum length of a pipe directory with the NUL, since sockets have paths in it. */
#define TD_MPS_PATH          96
#define TD_MPS_PROGRAM       "nvidia-cuda-mps-control"
#define TD_MPS_TERMINATE_MAX 16

enum td_mpsd_state {
	TD_MPSD_OFF,
	TD_MPSD_STARTING,
	TD_MPSD_READY,
	/* A client's fault, and no new clients until its clients are gone; or the server died. */
	TD_MPSD_FAULT,
	TD_MPSD_STOPPING,
	TD_MPSD_FAILED,
	TD_MPSD_STATE_N,
};

enum td_mps_command {
	TD_MPS_NONE,
	TD_MPS_START,
	TD_MPS_LIST,
	TD_MPS_STATUS,
	TD_MPS_TERMINATE,
	TD_MPS_QUIT,
};

struct td_mpsd {
	char directory[TD_MPS_PATH], gpu[TD_UUID_TEXT];
	enum td_mpsd_state state;
	char why[160]; /* in state FAILED: the reason; otherwise the last event */
	bool wanted, restarts;
	int epoll_fd;
	pid_t control, server; /* process ids; 0: none, or not known */
	int control_fd, server_fd;
	struct {
		enum td_mps_command what;
		pid_t pid;
		int pid_fd, out_fd;
		uint64_t until_ns;
		/* The command did not answer in time and was killed, but has not ended yet. */
		bool killed;
	} call;                         /* the command that runs */
	uint64_t retry_ns, look_ns;     /* time of the next start, and of the next question */
	uint64_t asked_ns;              /* time of the last question */
	bool is_sought;                 /* td_mpsd_find() was called since the last question */
	uint32_t finds;                 /* questions in a row for which it was */
	uint32_t failures;              /* failures in a row to start or to stay alive */
	uint64_t started_ns, server_ns; /* when the control daemon and its server were found */
	/* Clients that the server has to let go with terminate_client. 0: the entry is free. */
	pid_t terminate[TD_MPS_TERMINATE_MAX];
};

/*
 * Initialises the struct. The directory must be private to this daemon and GPU. Returns 0 or
 * -errno.
 */
int td_mpsd_init(struct td_mpsd *mps, const char *directory, const char *gpu);
/* Tells a running control daemon to quit, and does not wait for it. */
void td_mpsd_deinit(struct td_mpsd *mps);

/* Sets whether the control daemon should run. The next step acts on it. */
void td_mpsd_want(struct td_mpsd *mps, bool wanted);
/* Ends the server with the contexts of all its clients, and starts it anew. */
void td_mpsd_restart(struct td_mpsd *mps);

/*
 * Call while there are clients, so that their server is found soon. Returns when the next step is
 * due for that; UINT64_MAX: the server is known.
 */
uint64_t td_mpsd_find(struct td_mpsd *mps);

/*
 * Makes the server end the contexts of one client, so that the end of that process harms no other.
 * The next step acts on it. Dropped if TD_MPS_TERMINATE_MAX clients wait already.
 */
void td_mpsd_terminate(struct td_mpsd *mps, pid_t client);

/*
 * Starts a program with the environment of the server's clients, and without a terminal. Returns 0
 * or -errno.
 */
int td_mpsd_spawn(const struct td_mpsd *mps, const char *program, char *const *argv, pid_t *ret);

/* Returns a descriptor that is readable when td_mpsd_step() has something to do before its time. */
int td_mpsd_fd(const struct td_mpsd *mps);
/*
 * Does what can be done without waiting. Returns the time of the next call; UINT64_MAX: none is
 * needed.
 */
uint64_t td_mpsd_step(struct td_mpsd *mps, uint64_t now_ns);

/*
 * Returns when the present control daemon was started, or its server if that is younger; 0: none
 * runs.
 */
uint64_t td_mpsd_started_ns(const struct td_mpsd *mps);

/* Tells whether the control program is on the PATH. */
bool td_mps_is_installed(void);

/* Returns "off", "starting", "ready", "fault", "stopping" or "failed". */
const char *td_mpsd_state_name(enum td_mpsd_state state);

/* Reads the first pid of an answer to get_server_list; 0: there is none. */
pid_t td_mps_parse_list(const char *text);
/* Tells whether an answer to get_server_status says FAULT. */
bool td_mps_parse_fault(const char *text);

/* A pipe directory and its control daemon, which may have ended. */
struct td_mps_place {
	char directory[TD_MPS_PATH];
	pid_t pid; /* process id of the control daemon; 0: there is no pid file */
	uid_t uid; /* user of the control daemon */
	bool alive;
};

/* Looks at a pipe directory. Returns false if there is no pid file. */
bool td_mps_look(const char *directory, struct td_mps_place *ret);
/*
 * Tells whether there is a control daemon of root or our user that programs would find by
 * themselves: in $CUDA_MPS_PIPE_DIRECTORY, unless that is below the directory `own`, or in the
 * default directory.
 */
bool td_mps_foreign(const char *own, struct td_mps_place *ret);
