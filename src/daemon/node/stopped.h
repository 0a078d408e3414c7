/*
 * Programs that do not run: stopped by a signal or a debugger, or in a frozen control group. They
 * answer nothing, so whoever waits for one would wait for ever. Instead the daemon does not wait
 * for them, and their turns go to others (docs/decisions/0019).
 *
 * Who is looked at: only a process that has something on a GPU, or a turn there, while another one
 * waits for that GPU. A process counts as stopped when two looks in a row find it so, without CPU
 * time or a message in between.
 *
 * A process that runs may not answer either: its agent thread is broken, or it means harm. One that
 * does not acknowledge a GRANT for TD_ANSWER_NS, nor drains by twice the deadline, is treated in
 * the same way until it does.
 *
 * What it means: no plan is about a stopped process. Its gate is closed in its page, what it has on
 * the device stays there and counts as taken, and what it was only promised is taken back, which is
 * exact although it may go on at any moment (proto/gate_page.h). When it goes on it drains as
 * anybody does, and takes its turn.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "daemon/model/procfs.h"

struct td_client;
struct td_node;
struct td_process;

/* Moving much memory takes long, but each part of it acknowledges. */
#define TD_ANSWER_NS 10000000000ull

/* Called at the beginning of a step. Returns when to check again, or TD_NEVER. */
uint64_t td_stopped_step(struct td_node *node, uint64_t now_ns);

/* Checks the state at this moment, whether anybody waits or not. For tools. */
enum td_stop td_stopped_now(const struct td_node *node, const struct td_process *process);

/* Records that the process runs and does not answer. */
void td_stopped_is_silent(struct td_node *node, struct td_process *process, uint64_t now_ns);

/* "SIGSTOP", "debugger", "frozen", "unresponsive". */
const char *td_stop_name(enum td_stop stop);

/* Tells a client, beside a new limit, how much of it may be used without asking. */
void td_stopped_told(struct td_node *node, const struct td_client *client);
