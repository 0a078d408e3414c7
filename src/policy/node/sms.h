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
 * Returns the share that the clients of classes up to `up_to` leave (ONLINE: online ones;
 * GUARANTEED: both), in whole percents and at least 10 %. A client whose need is not known counts
 * as the whole GPU. 0: there is no such client, so there is no bound.
 */
uint32_t td_sms_left_ppm(const struct td_view *view, uint32_t gpu, enum td_class up_to);
