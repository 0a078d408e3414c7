/* Injected faults, as the driver feels them. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct sg_msg;

/* Whether any call was ever to fail or to wait: the one look that each call takes. */
extern bool sg_faults_armed;
/* What this call, counted now, must return instead of its work; CUDA_SUCCESS: nothing. symbol: index in td_symbols. */
int sg_fault_of_call(unsigned symbol);
/* What ended all contexts of the device in this process; CUDA_SUCCESS: nothing. */
int sg_fault_of_device(uint32_t device);
/* Pinned host memory; false: there is no more. */
bool sg_fault_take_pinned(uint64_t bytes);
void sg_fault_give_pinned(uint64_t bytes);
/* -- checkpoint.c -- */
/* Waits while this process is locked; not of calls about checkpoints. */
void sg_checkpoint_pass(unsigned symbol);
void sg_checkpoint_notice(const struct sg_msg *msg);

/* For sg_client_new_with_notices(). */
void sg_fault_notice(const struct sg_msg *msg);
