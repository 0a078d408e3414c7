/*
 * Has lessons of running services (model/services/lessons.h) kept and learnt from, by the program
 * tandem-profile: the daemon itself needs libc alone, and training takes a second or more.
 *
 * There is one such process at a time. It gets its lessons by a pipe that has room for all of them,
 * so the daemon never waits for it. It is killed after DEADLINE_NS. After a failure, which is an
 * event, there is a pause. The lessons that a process was given are lost if it fails.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "daemon/server/loop/loop.h"

struct td_node;

struct td_learner {
	/* must be first: the loop hands it back. fd -1: no process is under way */
	struct td_source source;
	struct td_loop *loop;
	pid_t pid;
	uint64_t deadline_ns;
	bool killed;
	uint64_t pause_until_ns;
};

void td_learner_init(struct td_learner *learner, struct td_loop *loop);
void td_learner_deinit(struct td_learner *learner);

/* Starts a process if lessons are due, or takes its end. Returns when to call it again. */
uint64_t td_learner_turn(struct td_learner *learner, struct td_node *node, uint64_t now_ns);
