/*
 * New work is work that the process has never done before. Its length is unknown, so one piece is
 * tried at a time over all threads. Of the programs that share a GPU beside a guaranteed job, one
 * program tries at a time (policy/node/beside/trials.h); the meter page shows what each has to try
 * (gate_page.h: fresh). All of this holds only while there is a duty.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct td_window_mark;

/* Returns the expected time of work with this hash; 0: not known. */
uint64_t td_fresh_likely_ns(uint32_t hash);

/*
 * Returns whether the hash identifies the work, so that its time can be told from that of other
 * work. It does not for copies and sets: the same number of bytes takes longer or shorter.
 */
bool td_fresh_has_name(uint32_t hash);

/*
 * Records the time of a copy or set. Sizes within the same power of two share one estimate, and so
 * do all whose size is not known.
 */
void td_fresh_note_unnamed(uint32_t hash, uint64_t ns);

/*
 * Returns how long new work waits before it may ask again, because another new piece is being
 * tried; 0: not at all.
 */
uint64_t td_fresh_wait_ns(uint32_t hash, uint64_t now_ns);

/*
 * Notes that the work was submitted, new or not. Any thread may call it; several at once count as
 * one.
 */
void td_fresh_submitted(uint32_t hash, uint64_t now_ns);

/* Called when the mark's work has ended: if it was the new piece, the next one may be tried. */
void td_fresh_ended(const struct td_window_mark *mark);

void td_fresh_forked(void);
