/* Moves the program to another GPU: the mover of agent/moves.h. */
#pragma once

struct td_mover;

extern const struct td_mover td_mover;
