/* MPS in `tandem run` and `tandem doctor`. */
#pragma once

#include <stdbool.h>

/*
 * Sets the environment by which the program finds the MPS control daemon of its GPU, if tandemd
 * runs one there; waits for one that is starting. Prints a message on stderr if MPS is requested
 * and not available; the program then runs without it. A besteffort job (TANDEM_CLASS) beside an
 * online one gets the share of the SMs that the policy leaves to it.
 */
void td_cli_set_mps(void);

/* Reports the state of MPS on this node, and what keeps it from working, if anything. */
void td_cli_check_mps(void (*say)(void *arg, bool ok, const char *text), void *arg);
