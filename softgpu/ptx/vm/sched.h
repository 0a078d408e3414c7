/* How threads start, stop for each other, and end: frame.c, warp.c, block.c. */
#pragma once

#include "ptx/vm/vm.h"

/* frame.c. Makes a context with the entry's frame. false: no memory. */
bool sg_ptx_thread_start(struct thread *t);
void sg_ptx_thread_release(struct thread *t); /* its context, for the next thread */
void sg_ptx_contexts_free(struct run *run);
uint64_t *sg_ptx_thread_registers(const struct thread *t);

/* Change the frame; always NULL: the thread goes on by THREAD_FRAME, or is done, or failed. */
const struct insn *sg_ptx_call(struct thread *t, const struct insn *i);
const struct insn *sg_ptx_call_at(struct thread *t, const uint64_t *r, const struct insn *i);
const struct insn *sg_ptx_return(struct thread *t);

/* print.c. The instruction that follows, or NULL. */
const struct insn *sg_ptx_print(struct thread *t, const struct insn *i);

/* warp.c. Runs the warp operation that t stopped at, once every live lane that it names is there.
 * true: they are ready again. */
bool sg_ptx_warp_try(struct thread *t);

/* block.c. false: the barrier's number or count is not valid. */
bool sg_ptx_barrier_arrive(struct thread *t, const uint64_t *r, const struct insn *i);

enum block_state { BLOCK_DONE, BLOCK_RUNNING, BLOCK_STUCK, BLOCK_FAILED };

void sg_ptx_block_init(struct block *b, struct run *run, const uint32_t id[3]);

/* Runs each thread for at most one slice beyond what waiting threads need. */
enum block_state sg_ptx_block_run(struct block *b);
