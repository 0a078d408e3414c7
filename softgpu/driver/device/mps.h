/* This process as a client of an MPS server. Without one, these calls return "no" or "all". */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct CUctx_st;

/*
 * Asks the MPS control daemon for a server and joins it. dir is the softgpu directory of this
 * process. Returns CUDA_SUCCESS, also without a daemon, or what cuInit() returns.
 */
int sg_mps_join(const char *dir);
/*
 * Tells the server of the memory limits that the environment has. Call after the devices were
 * chosen, whose numbers it uses. Returns CUDA_SUCCESS, or what cuInit() returns.
 */
int sg_mps_limit(void);
/* The pid of the MPS server, or 0. */
int sg_mps_server(void);
/* True if this process may use the server's GPU `gpu`. */
bool sg_mps_has_gpu(uint32_t gpu);
/* Returns how many SMs the device seems to have. Call after the devices were chosen. */
uint32_t sg_mps_sm_count(uint32_t device);
/*
 * Returns the SMs of a new context on the device, which asks for `asked`; 0: for no number. The
 * environment and the server may allow fewer.
 */
uint32_t sg_mps_context_sms(uint32_t device, uint32_t asked);
/* Converts a number of SMs to ppm of the device's, which the server takes. */
uint32_t sg_mps_ppm(uint32_t device, uint32_t sms);
/* The CUresult for an error of SG_CONTEXT_NEW. */
int sg_mps_result(uint32_t error);
/* A context died of an error of its own. Under MPS others die of it, too. */
void sg_mps_context_died(const struct CUctx_st *context, int error);
