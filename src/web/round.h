/* Writes rounds and events as JSON for the page (round.def). Pure, apart from memory. */
#pragma once

#include "base/text.h"
#include "view/snapshot.h"

/* Writes {"gpu": ["index", ...], "job": [...], "others": [...], "event": [...]}. */
void td_round_write_fields(struct td_text *text);
/*
 * Writes {"time": ms of the daemon's clock, "wall": ms since 1970, "gpus": [[...], ...], "jobs":
 * ..., "others": ...}.
 */
void td_round_write(struct td_text *text, const struct td_snapshot *snapshot, uint64_t wall_ns);
/* Writes one event as a row. */
void td_round_write_event(struct td_text *text, const struct td_msg_event *event);
