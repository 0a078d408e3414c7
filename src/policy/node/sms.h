/*
 * The SMs that protected jobs leave on a GPU, for besteffort work beside them under MPS.
 *
 * MuxFlow (4.3, Fig. 8) gives offline work the SMs that the online work does not use. What counts
 * is the share that its kernels take while they run, not their activity over the time: a service
 * that keeps 70 % of the SMs busy for 30 % of the time leaves 30 % of them, not 79 %.
 */
#pragma once

#include "policy/policy.h"

/*
 * Returns the share that clients up to that class (ONLINE: online ones; GUARANTEED: both) leave, in
 * whole percents and at least 10 %; 0: none is there, so there is no bound. One whose need is not
 * known counts as the whole GPU.
 */
uint32_t td_sms_left_ppm(const struct td_view *view, uint32_t gpu, enum td_class up_to);
