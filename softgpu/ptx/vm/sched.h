/* Starting, stopping and ending of threads: frame.c, warp.c, block.c. */
#pragma once

#include "ptx/vm/vm.h"

/* frame.c: makes a context with the entry's frame. Returns false if memory is short. */
bool sg_ptx_thread_start(struct thread *t);
void sg_ptx_thread_release(struct thread *t); /* its context, for the next thread */
void sg_ptx_contexts_free(struct run *run);
uint64_t *sg_ptx_thread_registers(const struct thread *t);

/*
 * These change the frame and always return NULL: the thread goes on by THREAD_FRAME, or is done, or
 * has failed.
 */
const struct insn *sg_ptx_call(struct thread *t, const struct insn *i);
const struct insn *sg_ptx_call_at(struct thread *t, const uint64_t *r, const struct insn *i);
const struct insn *sg_ptx_return(struct thread *t);

/* print.c: returns the instruction that follows, or NULL. */
const struct insn *sg_ptx_print(struct thread *t, const struct insn *i);

/*
 * warp.c: runs the warp operation that t stopped at, once all live lanes that take part are there.
 * Returns whether it ran, so that the lanes are ready again.
 */
bool sg_ptx_warp_try(struct thread *t);

/* block.c: returns false if the barrier's number or count is not valid. */
bool sg_ptx_barrier_arrive(struct thread *t, const uint64_t *r, const struct insn *i);

enum block_state { BLOCK_DONE, BLOCK_RUNNING, BLOCK_STUCK, BLOCK_FAILED };

void sg_ptx_block_init(struct block *b, struct run *run, const uint32_t id[3]);

/* Runs each thread for at most one slice beyond what waiting threads need. */
enum block_state sg_ptx_block_run(struct block *b);
