/*
 * Gives the processes of besteffort jobs the CPUs of the option besteffort.cpus
 * (model/machine/cpuset.h). A process that Slurm or a container engine has placed is left where it
 * is. A job that is besteffort no more gets all CPUs again.
 */
#pragma once

#include "daemon/model/machine/cpuset.h"

struct td_node;

struct td_cpus {
	struct td_cpuset cpuset;
	bool looked;
	char set[TD_CPUSET_CPUS];  /* the option, as it was looked at last; "": none */
	char root[TD_CPUSET_CPUS]; /* where the unified hierarchy is mounted */
};

/* Applies the option to new processes. Call it in each turn. */
void td_cpus_turn(struct td_cpus *cpus, struct td_node *node);
