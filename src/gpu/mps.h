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

#define TD_MPS_PATH          96 /* a pipe directory, with the NUL: there are sockets in it */
#define TD_MPS_PROGRAM       "nvidia-cuda-mps-control"
#define TD_MPS_TERMINATE_MAX 16

enum td_mpsd_state {
	TD_MPSD_OFF,
	TD_MPSD_STARTING,
	TD_MPSD_READY,
	TD_MPSD_FAULT, /* a client's fault: nobody new until they are gone; or its server died */
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
	char why[160]; /* FAILED: the reason; else what happened last */
	bool wanted, restarts;
	int epoll_fd;
	pid_t control, server; /* 0: none, or not known */
	int control_fd, server_fd;
	struct {
		enum td_mps_command what;
		pid_t pid;
		int pid_fd, out_fd;
		uint64_t until_ns;
		bool killed;            /* for it did not answer; it has not ended yet */
	} call;                         /* the command that runs */
	uint64_t retry_ns, look_ns;     /* when it is started, or asked, next */
	uint64_t asked_ns;              /* when it was asked last */
	uint32_t failures;              /* starts or lives that failed, since one lasted */
	uint64_t started_ns, server_ns; /* when the control daemon, and its server, were found */
	/* Clients that the server is to let go of: terminate_client. 0: a free place. */
	pid_t terminate[TD_MPS_TERMINATE_MAX];
};

/* The directory must be one that is private to this daemon and GPU. 0 or -errno. */
int td_mpsd_init(struct td_mpsd *mps, const char *directory, const char *gpu);
/* A control daemon that runs is told to quit, and not waited for. */
void td_mpsd_deinit(struct td_mpsd *mps);

/* It is to run, or not. The next step acts on it. */
void td_mpsd_want(struct td_mpsd *mps, bool wanted);
/* Ends the server with all its clients' contexts, and starts anew. */
void td_mpsd_restart(struct td_mpsd *mps);

/*
 * There are clients, and so a server: finds it soon, where it is not known yet. Returns when the
 * next step is due for that, UINT64_MAX: it is known.
 */
uint64_t td_mpsd_find(struct td_mpsd *mps);

/*
 * Has the server end the contexts of its client, which makes the end of that process harmless. The
 * next step acts on it. If there are too many at once, the last ones are dropped.
 */
void td_mpsd_terminate(struct td_mpsd *mps, pid_t client);

/*
 * Starts a program with the environment of the server's clients, and without a terminal. 0 or
 * -errno.
 */
int td_mpsd_spawn(const struct td_mpsd *mps, const char *program, char *const *argv, pid_t *ret);

/* Readable when td_mpsd_step() has something to do before its time. */
int td_mpsd_fd(const struct td_mpsd *mps);
/* Goes on as far as it can without waiting. Returns when to be called again, UINT64_MAX: never. */
uint64_t td_mpsd_step(struct td_mpsd *mps, uint64_t now_ns);

/* When the present control daemon was started, or its server if that is younger; 0: none runs. */
uint64_t td_mpsd_started_ns(const struct td_mpsd *mps);

/* Is the control program on the PATH? */
bool td_mps_is_installed(void);

/* "off", "starting", "ready", "fault", "stopping", "failed". */
const char *td_mpsd_state_name(enum td_mpsd_state state);

/* Reads the first pid of an answer to get_server_list; 0: there is none. */
pid_t td_mps_parse_list(const char *text);
/* Is this answer to get_server_status FAULT? */
bool td_mps_parse_fault(const char *text);

/* The owner, present or past, of a pipe directory. */
struct td_mps_place {
	char directory[TD_MPS_PATH];
	pid_t pid; /* of the control daemon; 0: there is no pid file */
	uid_t uid; /* whose it is */
	bool alive;
};

/* Looks at that directory. False if there is no pid file. */
bool td_mps_look(const char *directory, struct td_mps_place *ret);
/*
 * Tells whether there is a control daemon of root or of our user that any program finds without our
 * help: in $CUDA_MPS_PIPE_DIRECTORY, unless that is below the directory `own`, or in the default
 * directory.
 */
bool td_mps_foreign(const char *own, struct td_mps_place *ret);
