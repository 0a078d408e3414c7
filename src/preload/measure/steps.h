/*
 * The steps of this process: told by the program (tandem_step of include/tandem/tandem.h), or found
 * by the period of its work (period.h) while the daemon asks for that. Once the program has told a
 * step, none is guessed.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* The signature of a call: which call it is, without its sizes. */
#define TD_STEPS_FUNCTION 0x80000000u /* and a hash of the kernel's handle */

struct td_steps {
	uint64_t count;   /* that have ended */
	uint64_t step_ns; /* the last one, or the mean of those since the last look; 0: not known */
	uint64_t began_ns;  /* the present one */
	uint64_t median_ns; /* of the last ones; 0: not known */
	uint32_t unit; /* times of the same unit can be compared; 0: the program tells its steps */
	/* Share of the last intervals that was regular; 1000000 for told steps. */
	uint32_t sure_ppm;
};

/*
 * Records a call of the program, only while the gate word has TD_WORD_STEPS. Any thread may call
 * it. It never waits: a call that meets another thread's is left out.
 */
void td_steps_call(uint32_t signature);

/* The agent's: have steps ended since the last look that said so? */
bool td_steps_take(struct td_steps *ret);

/* A new daemon knows nothing: the next look says all. */
void td_steps_again(void);

/*
 * Memory within the last step that ended, for a slot (the process's number of a GPU). Zeros: no
 * step has ended, or there was no memory.
 */
struct td_step_memory {
	uint64_t peak_bytes, least_bytes; /* the most and the least in use */
	bool by_allocator; /* the program's allocator says so; else by what it has allocated */
};

/*
 * Sets how much the slot has of the backend's memory, or of outside memory (outside.h). Any thread
 * may call it under any lock; it never waits.
 */
void td_steps_memory(unsigned slot, uint64_t bytes);
void td_steps_outside(unsigned slot, uint64_t bytes);
/* The most that it ever had of both. */
uint64_t td_steps_most(unsigned slot);

/* An allocator knows what of that is in use: the most and the least since it said so last. */
void td_steps_used(unsigned slot, uint64_t peak_bytes, uint64_t least_bytes);

/* The agent's: has it changed since the last look that said so? */
bool td_steps_memory_is_new(unsigned slot);

void td_steps_get_memory(unsigned slot, struct td_step_memory *ret);

void td_steps_forked(void);
