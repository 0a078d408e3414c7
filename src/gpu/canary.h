/*
 * The canary: a short-lived client of an MPS server with a trivial piece of work. A server that
 * hangs says that it is active; whether work ends there is known only from work.
 */
#pragma once

#include <sys/types.h>

/* The exit status of the canary's process, if no signal ended it. */
enum td_canary_status {
	TD_CANARY_ENDED,     /* its work has ended, and is right */
	TD_CANARY_WRONG,     /* it has ended with an error: the server is gone, or in fault */
	TD_CANARY_NO_DRIVER, /* it could not try: there is no driver, or no memory */
};

/*
 * In that process. The environment says which control daemon and which GPU. Under root it becomes
 * the user, as each one has a server of his own, and others wait for that. Waits for the GPU.
 */
enum td_canary_status td_canary_run(uid_t uid);

/* The argument by which a program is the canary instead of itself; the user's number follows. */
#define TD_CANARY_ARGUMENT "--canary"
