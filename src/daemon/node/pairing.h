/*
 * The exchange of besteffort jobs between the GPUs of the node (policy/cluster/exchange.h): what a
 * policy that exchanges jobs is shown, and how a job that is restarted comes to its new GPU.
 *
 * Only a job that its supervisor can start again, and that left the choice of its one GPU to the
 * daemon (`tandem run --gpu any`), is exchanged. Programs are known by their names: the one of
 * `tandem run --name` is that of `tandem profile --name`; a service may also have the name that it
 * gives itself.
 *
 * The policy plans a RESTART (execute/endings.h). The job's supervisor outlives the processes of
 * the job, so it remembers the GPU. The next process that asks for a place gets it (place.h),
 * unless the GPU cannot be used by then.
 */
#pragma once

#include "daemon/model/node.h"

/* Fills in what the policy needs to exchange jobs. Does nothing for policies that do not. */
void td_pairing_show(struct td_node *node);

/*
 * Returns why the job of the process is not exchanged, as a part of a sentence; NULL if it may be,
 * or if its policy exchanges no jobs here.
 */
const char *td_pairing_obstacle(const struct td_node *node, const struct td_process *process);

/* Remembers where the supervisor's job is to be started next. NULL: nowhere in particular. */
void td_pairing_bind(struct td_supervisor *supervisor, const struct td_bound *bound);

/*
 * Returns the GPU to which the job of the process is bound, or NULL, and forgets it. The GPU is one
 * of the process's candidates and can be used.
 */
const struct td_bound *td_pairing_take(struct td_node *node, const struct td_process *process);
