/*
 * How much of the host's memory the process may have for bytes that have left the device, pinned or
 * mapped: its part of the daemon's host.limit, beside TANDEM_HOST_LIMIT.
 *
 * The daemon grants (HOST); the process says what it has, and what it would have (HOST_NEED),
 * before it takes more. Until a daemon has granted anything there is no bound, and what a daemon
 * that is gone has granted does not hold any more: without one nothing leaves the device.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct td_msg;
struct td_msg_grant;

/* -- any thread -- */

/* False: there may be no more, by own_limit or by what is granted. */
bool td_host_take(uint64_t bytes, uint64_t own_limit);
void td_host_give(uint64_t bytes);

/* The same, but the daemon is asked if it has not granted so much; waits for its answer. */
bool td_host_take_asking(uint64_t bytes, uint64_t own_limit);

/* The daemon lets the process have so much in all; UINT64_MAX: no bound. */
uint64_t td_host_granted(void);

/*
 * May the process have so much in all? Waits for the daemon's answer. What that is wanted for is in
 * what td_host_step is told already.
 */
bool td_host_reserve(uint64_t bytes);

/* -- the agent -- */

/* So much in all has been granted, or was asked for and has been answered with what there is. */
bool td_host_ready(uint64_t bytes);
/* The bytes in all if threads got what they ask for; 0: none asks. */
uint64_t td_host_expected(void);
/* Has the daemon been asked for more, and not answered yet? Any thread. */
bool td_host_is_asking(void);
/* Has a daemon set a bound? */
bool td_host_is_bounded(void);
/* Others lack it: what is pinned and not in use is to be given back. */
bool td_host_is_pressed(void);
/* True: more is granted than before. */
bool td_host_message(const struct td_msg_grant *msg);
/*
 * Says what has changed. wanted: how much is in use on the host, is to be, or has to be reserved
 * for what could have to leave.
 */
void td_host_step(void (*send)(const struct td_msg *msg), uint64_t (*wanted)(void));
/* Another daemon, or none any more: no bound, and no question is open. */
void td_host_anew(void);
void td_host_forked(void);
