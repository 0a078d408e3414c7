/*
 * How much host memory the process may use for bytes that have left the device, pinned or mapped:
 * its part of the daemon's host.limit, and at most TANDEM_HOST_LIMIT. The daemon grants it (HOST).
 * The process tells how much it uses, and asks (HOST_NEED) before it takes more. Until a daemon has
 * granted anything there is no limit. A lost daemon's grant is void: without a daemon no memory
 * leaves the device.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct td_msg;
struct td_msg_grant;

/* -- any thread -- */

/* Takes host memory. Returns false if own_limit or the grant does not allow it. */
bool td_host_take(uint64_t bytes, uint64_t own_limit);
void td_host_give(uint64_t bytes);

/* Like td_host_take, but asks the daemon and waits for its answer if the grant does not suffice. */
bool td_host_take_asking(uint64_t bytes, uint64_t own_limit);

/* Returns how many bytes the daemon lets the process have in all; UINT64_MAX: no limit. */
uint64_t td_host_granted(void);

/*
 * Returns whether the process may have this much host memory in all; waits for the daemon's answer.
 * The caller must already have included the bytes in the sum that td_host_step() is told.
 */
bool td_host_reserve(uint64_t bytes);

/* -- the agent -- */

/*
 * Returns true if so much host memory in all is granted, or if the daemon has already answered a
 * request for it with less.
 */
bool td_host_ready(uint64_t bytes);
/*
 * Returns how much host memory the process would have in all if its threads got what they ask for;
 * 0: none asks.
 */
uint64_t td_host_expected(void);
/*
 * Returns whether the daemon was asked for more host memory and has not answered yet. Any thread.
 */
bool td_host_is_asking(void);
/* Returns whether a daemon has limited the host memory. */
bool td_host_is_bounded(void);
/* Other processes lack host memory, so pinned memory that is not in use should be freed. */
bool td_host_is_pressed(void);
/* Handles a GRANT for the host. Returns true if more is granted than before. */
bool td_host_message(const struct td_msg_grant *msg);
/*
 * Tells the daemon what has changed. wanted() returns the bytes that are in use on the host, are
 * going to be, or have to be reserved for memory that may have to leave.
 */
void td_host_step(void (*send)(const struct td_msg *msg), uint64_t (*wanted)(void));
/* The daemon is another one or gone: there is no limit and no open question. */
void td_host_anew(void);
void td_host_forked(void);
