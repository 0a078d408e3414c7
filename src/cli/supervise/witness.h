/*
 * The witness: a child of the supervisor in its process group, which collects signals (relay.h).
 * While the supervisor is stopped because its program is, the witness checks whether the program
 * still is stopped, and continues the supervisor if not. This is needed if the program alone was
 * continued or killed.
 *
 * The witness outlives a supervisor that is killed, and kills the program if it stays (child.c).
 */
#pragma once

#include <stdint.h>
#include <sys/types.h>

struct td_witness {
	pid_t pid; /* 0: there is no witness */
	int fd;
};

/* Starts the witness. The caller must have blocked all signals. Returns 0 or -errno. */
int td_witness_start(struct td_witness *witness);
/*
 * Returns the signals that the witness has had since the last question: bit N - 1 for signal N.
 * Returns 0 if there is no witness, or if it does not answer.
 */
uint64_t td_witness_ask(struct td_witness *witness);
/*
 * Tells the witness that the supervisor is about to stop because `program` has stopped; 0: it goes
 * on.
 */
void td_witness_watch(struct td_witness *witness, pid_t program);
/* Tells the witness the pid of the program that was started. */
void td_witness_program(struct td_witness *witness, pid_t program);
/* Ends the witness and waits for its end. */
void td_witness_end(struct td_witness *witness);
