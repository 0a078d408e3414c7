/* Checks what a step leaves out; see struct td_had in model/node.h. */
#pragma once

struct td_node;

/*
 * Asserts, in debug builds, that no job or program has a thing that the node's `had` denies. Called
 * at the end of each step. had.c
 */
void td_had_check(const struct td_node *node);
