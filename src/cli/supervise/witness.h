/*
 * The witness: a child of the supervisor in its process group that does nothing but collect signals
 * (relay.h). While the supervisor is stopped beside its program, it also looks whether the program
 * still is, and continues the supervisor if not: nothing else would, if somebody continues or kills
 * the program alone.
 *
 * It outlives a supervisor that is killed, and kills the program if that stays (child.c).
 */
#pragma once

#include <stdint.h>
#include <sys/types.h>

struct td_witness {
	pid_t pid; /* 0: there is none */
	int fd;
};

/* All signals are blocked in the caller. 0 or -errno. */
int td_witness_start(struct td_witness *witness);
/* The signals that it has had since it was asked last, bit N - 1 for number N; 0 where there is no
 * witness, or none that answers. */
uint64_t td_witness_ask(struct td_witness *witness);
/* The supervisor is about to stop because `program` has; or goes on (0). */
void td_witness_watch(struct td_witness *witness, pid_t program);
/* The supervisor has started this program. */
void td_witness_program(struct td_witness *witness, pid_t program);
/* Ends it and waits for that. */
void td_witness_end(struct td_witness *witness);
