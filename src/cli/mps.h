/* MPS in `tandem run` and `tandem doctor`. */
#pragma once

#include <stdbool.h>

/*
 * Sets the environment by which the program finds the MPS control daemon of its GPU, if the daemon
 * runs one there, and waits for one that is starting. Says on stderr where MPS is asked for and
 * cannot be had; the program runs without it then. A besteffort job (TANDEM_CLASS) beside an online
 * one gets the share of the SMs that this leaves, by the policy.
 */
void td_cli_set_mps(void);

/* Tells what there is of MPS on this node and, where something keeps it from working, what. */
void td_cli_check_mps(void (*say)(void *arg, bool ok, const char *text), void *arg);
