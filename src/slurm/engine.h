/*
 * The engine of Slurm: reads jobs and nodes from slurmctld by libslurm, and places held jobs by one
 * update each. It is linked with libslurm (GPL 2 or later), so the program that has it is under the
 * GPL as a whole.
 */
#pragma once

#include "cluster/engine/engine.h"

/* Each GPU counts as so many of the resource "tandem" of its node: a holder and four guests. */
#define TD_SLURM_PER_GPU 500u

/*
 * gpu_bytes is the memory of a GPU, of which a share of it is counted; 0: memory is not counted.
 * Returns NULL without memory.
 */
struct td_engine *td_slurm_engine_new(uint64_t gpu_bytes);
