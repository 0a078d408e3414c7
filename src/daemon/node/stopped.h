/*
 * Programs that do not run: stopped by a signal or a debugger, or in a frozen control group. They
 * answer nothing, so a program that waits for one would wait for ever. Instead the daemon does not
 * wait for them, and their turns go to others (docs/decisions/0019).
 *
 * A process is checked only if it has memory on a GPU, or a turn there, while another one waits for
 * that GPU. It counts as stopped when two checks in a row find it so, without CPU time or a message
 * in between.
 *
 * A process that runs may fail to answer too: its agent thread is broken, or it is hostile. If it
 * does not acknowledge a GRANT for TD_ANSWER_NS, or does not drain within twice the deadline, it is
 * treated in the same way until it does.
 *
 * Plans leave a stopped process out. Its gate is closed in its page. Its memory on the device stays
 * there and counts as used. What it was only promised is taken back; that is exact although it may
 * go on at any moment (proto/gate_page.h). When it goes on, it drains like any other process and
 * takes its turn.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "daemon/model/machine/procfs.h"

struct td_client;
struct td_node;
struct td_process;

/*
 * How long a client may take to acknowledge a GRANT. Moving much memory takes long, but each part
 * of it acknowledges.
 */
#define TD_ANSWER_NS 10000000000ull

/* Called at the beginning of a step. Returns when to check again, or TD_NEVER. */
uint64_t td_stopped_step(struct td_node *node, uint64_t now_ns);

/*
 * Returns when to look for the answers to the GRANTs that a step has sent since td_stopped_step(),
 * where seq is node->next_seq before the step; TD_NEVER if it sent none.
 */
uint64_t td_stopped_told_since(const struct td_node *node, uint32_t seq, uint64_t now_ns);

/* Returns the state at this moment, for tools, whether another process waits or not. */
enum td_stop td_stopped_now(const struct td_node *node, const struct td_process *process);

/* The driver holds the process's calls up for a checkpoint (execute/parking.h). */
void td_stopped_is_locked(struct td_node *node, struct td_process *process, uint64_t now_ns);
/* Records that the process runs and does not answer. */
void td_stopped_is_silent(struct td_node *node, struct td_process *process, uint64_t now_ns);

/* Returns a word such as "SIGSTOP", "debugger", "frozen" or "unresponsive". */
const char *td_stop_name(enum td_stop stop);

/*
 * Called when a client has attached. A client of the same slot may have detached under a ceiling,
 * which is removed.
 */
void td_stopped_attached(const struct td_node *node, const struct td_client *client);

/*
 * Called after a client was told a new limit: sets its ceiling, the part of the limit that it may
 * use without asking.
 */
void td_stopped_told(struct td_node *node, const struct td_client *client);
