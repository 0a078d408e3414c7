/*
 * Slurm keeps a job's record for tandem-sched in the administrator's comment, which `scontrol show
 * job` and `squeue -O admin_comment` show.
 *
 *   tandem=0.5,mem=8Gi epoch=2 on=node1:0+1 run=1 guest why: the quota of its tenant is in use
 *
 * tandem= is the option's value, epoch= the number of the last placement, on= its node and the
 * indices of its GPUs there, run= how often Slurm had started the job again before it (so what was
 * queued again since has no placement), guest a job without guaranteed resources. Behind why: is a
 * sentence for people. Pure.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "slurm/spec.h"

#define TD_SLURM_NODE_MAX    64u   /* bytes of a node's name, with its NUL */
#define TD_SLURM_COMMENT_MAX 1024u /* bytes of a comment, with its NUL */
#define TD_SLURM_ANY_RUN     UINT32_MAX
/* Begins a sentence of spank_tandem.so, which says after a colon what has ended the job. */
#define TD_SLURM_ENDED "its node ended it"

struct td_slurm_comment {
	char spec[TD_SLURM_SPEC_MAX];
	uint64_t epoch;
	char node[TD_SLURM_NODE_MAX]; /* "": no placement */
	uint32_t gpu[TD_SLURM_GPUS_MAX], gpus;
	uint32_t run; /* TD_SLURM_ANY_RUN: not known */
	bool guest;
	char why[256];
};

/* Returns 0; -EINVAL: it is not one of ours. text may be NULL. */
int td_slurm_comment_parse(const char *text, struct td_slurm_comment *ret);
/* Writes at most TD_SLURM_COMMENT_MAX bytes. Returns ret. */
char *td_slurm_comment_write(const struct td_slurm_comment *comment, char *ret);
