/*
 * The steps of this process: told by the program (tandem_step of include/tandem/tandem.h), or found
 * by the period of its work (period.h) while the daemon asks for that. Once the program has told a
 * step, none is guessed.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* A signature identifies a call without its sizes. This bit is set for kernels. */
#define TD_STEPS_FUNCTION 0x80000000u /* the other bits are a hash of the kernel's handle */

struct td_steps {
	uint64_t count; /* steps that have ended */
	/* the last step, or the mean of those since td_steps_take; 0: not known */
	uint64_t step_ns;
	uint64_t began_ns;  /* when the current step began */
	uint64_t median_ns; /* median of the last steps; 0: not known */
	uint32_t unit;      /* times of one unit can be compared; 0: the program tells its steps */
	/* Share of the last intervals that was regular; 1000000 for told steps. */
	uint32_t sure_ppm;
};

/*
 * Records a call of the program, only while the gate word has TD_WORD_STEPS. Any thread may call
 * it. It never waits: if another thread is in it, the call is not recorded.
 */
void td_steps_call(uint32_t signature);

/* Agent: returns true if steps have ended since it last returned true. */
bool td_steps_take(struct td_steps *ret);

/* Agent: a new daemon must be told everything again. */
void td_steps_again(void);

/*
 * Memory within the last step that ended, for a slot (the process's number of a GPU). Zeros: no
 * step has ended, or there was no memory.
 */
struct td_step_memory {
	uint64_t peak_bytes, least_bytes; /* the most and the least in use */
	bool by_allocator; /* told by the program's allocator; otherwise counted by allocations */
};

/*
 * Sets how much the slot has of the backend's memory, or of outside memory (outside.h). Any thread
 * may call it under any lock; it never waits.
 */
void td_steps_memory(unsigned slot, uint64_t bytes);
void td_steps_outside(unsigned slot, uint64_t bytes);
/* Returns the most memory that the slot ever had, backend and outside together. */
uint64_t td_steps_most(unsigned slot);

/* An allocator tells how much of that was in use: the most and the least since its last call. */
void td_steps_used(unsigned slot, uint64_t peak_bytes, uint64_t least_bytes);

/* Agent: returns true if the figures have changed since it last returned true. */
bool td_steps_memory_is_new(unsigned slot);

void td_steps_get_memory(unsigned slot, struct td_step_memory *ret);

void td_steps_forked(void);
