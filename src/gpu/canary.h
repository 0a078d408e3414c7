/*
 * The canary is a short-lived client of an MPS server that submits a trivial kernel. A server that
 * hangs still reports that it is active, so only work shows whether work ends there.
 */
#pragma once

#include <sys/types.h>

/* The exit statuses of the canary's process. */
enum td_canary_status {
	TD_CANARY_ENDED,     /* the canary's work ended with the right result */
	TD_CANARY_WRONG,     /* the canary's work failed, so the server is gone or in fault */
	TD_CANARY_NO_DRIVER, /* the canary could not try, because there is no driver or no memory */
};

/*
 * Runs the canary. Call it in a process of its own, whose environment names the control daemon and
 * the GPU. Under root it becomes the user, since each user has an own server and other users wait
 * for that. Waits for the GPU.
 */
enum td_canary_status td_canary_run(uid_t uid);

/* With this argument, followed by the user's number, the program runs as the canary. */
#define TD_CANARY_ARGUMENT "--canary"
