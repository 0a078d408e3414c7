/*
 * Finds out by /proc whether one program listens for connections wherever another one does. It
 * stands for readiness where a program does not call tandem_ready().
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

/*
 * Returns whether `first` and its descendants listen on at least one TCP port, and `second` and its
 * descendants on each of these. Addresses are not compared.
 */
bool td_listens_as(pid_t first, pid_t second);
