/*
 * Gives the processes of besteffort jobs the CPUs of the option besteffort.cpus
 * (model/machine/cpuset.h). A process that Slurm or a container engine has placed is left where it
 * is, and so is one that would escape limits of its control group. A job that is besteffort no more
 * gets all CPUs again.
 */
#pragma once

#include <stdint.h>

#include "daemon/model/machine/cpuset.h"
#include "daemon/record/identity.h"

struct td_node;

struct td_cpus {
	struct td_cpuset cpuset;
	bool looked;
	char set[TD_CPUSET_CPUS];  /* the option, as it was looked at last; "": none */
	char root[TD_CPUSET_CPUS]; /* where the unified hierarchy is mounted */
	/* The last process that keeps its CPUs because of a limit, and a sentence about it. */
	uint32_t kept;
	char kept_why[320];
};

/* Applies the option to new processes. Call it in each turn. */
void td_cpus_turn(struct td_cpus *cpus, struct td_node *node, uint64_t now_ns);

/*
 * Returns why the option has no effect, or none on a process that is there and that the reader may
 * see; "": it has.
 */
const char *td_cpus_why(
	const struct td_cpus *cpus, const struct td_node *node, struct td_identity reader);
