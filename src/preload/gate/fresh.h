/*
 * Work that the process has never done before: nobody knows how long it takes, so one piece of it is tried at a time, whatever the thread; and of the programs that share a GPU beside a
 * guaranteed job one at a time (policy/node/trials.h), for which the meter page says what there is (gate_page.h: fresh). Only while there is a duty.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct td_window_mark;

/* What a piece of work with this hash will take; 0: not known. */
uint64_t td_fresh_likely_ns(uint32_t hash);

/* Is it known what it is, so that its own time can be told from that of others? Of copies and sets it is not: by the same number of bytes they take longer or shorter. */
bool td_fresh_has_name(uint32_t hash);

/* A piece without a name took so long. Those of about the same size, by powers of two, share a number; those of which no size is told share one. */
void td_fresh_note_unnamed(uint32_t hash, uint64_t ns);

/* How long it has to wait before it may be asked again whether it may go, as it is new and another one is tried; 0: not at all. */
uint64_t td_fresh_wait_ns(uint32_t hash, uint64_t now_ns);

/* It was submitted; new or not. Any thread's. Several that meet here count as one. */
void td_fresh_submitted(uint32_t hash, uint64_t now_ns);

/* The mark has ended. */
void td_fresh_ended(const struct td_window_mark *mark);

void td_fresh_forked(void);
