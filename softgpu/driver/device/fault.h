/* Injected faults, inside the driver of each process. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct sg_msg;

/*
 * True once a fault of calls was injected. Every exported call reads it and skips
 * sg_fault_of_call() while it is false.
 */
extern bool sg_faults_armed;
/*
 * Counts a call and returns the error that it must return instead of doing its work, or
 * CUDA_SUCCESS. symbol is its index in td_symbols.
 */
int sg_fault_of_call(unsigned symbol);
/* Returns the error that killed this process's contexts of the device, or CUDA_SUCCESS. */
int sg_fault_of_device(uint32_t device);
/* Accounts pinned host memory. Returns false if an injected limit would be exceeded. */
bool sg_fault_take_pinned(uint64_t bytes);
void sg_fault_give_pinned(uint64_t bytes);
/* -- checkpoint.c -- */
/* Blocks while this process is locked by a checkpoint. Calls of the checkpoint API pass. */
void sg_checkpoint_pass(unsigned symbol);
void sg_checkpoint_notice(const struct sg_msg *msg);

/* Handles a NOTICE of the server: the callback for sg_client_new_with_notices(). */
void sg_fault_notice(const struct sg_msg *msg);
