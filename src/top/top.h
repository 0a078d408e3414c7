/* main.c (connection, options, printing) and terminal.c (screen, keys) share this state. */
#pragma once

#include "view/screen.h"

/* The bytes for the output of another verb, which is shown over the table. */
#define TD_TOP_DETAIL_BYTES 16384

struct td_top {
	/* Options. */
	bool batch, json, ascii;
	uint64_t period_ns, rounds; /* rounds: how many to show before the end; 0: no bound */
	/* The connection. fd below 0: not connected. */
	char path[256];
	int fd;
	bool greets; /* the answer to GET has not come yet */
	/*
	 * Three rounds of rows from the daemon: the one that is arriving, the one that is shown,
	 * and the one that was shown before.
	 */
	struct td_snapshot arriving, shown, before;
	bool has_round;
	uint64_t seen;
	struct td_screen screen;
	struct td_canvas canvas;
	/* The keyboard. */
	bool asks_filter, ends;
	char note[600], detail[TD_TOP_DETAIL_BYTES];
	uint64_t note_until_ns;
	/* A key that ends the job sure_pid if it is pressed again before sure_until_ns; 0: none. */
	int sure_key;
	uint32_t sure_pid;
	uint64_t sure_until_ns;
};

/* Prints an error. Returns the exit status for it. */
int td_top_fail(const char *text);

/* Connects and asks for rounds. If that fails, the note on the screen says why. */
void td_top_call(struct td_top *top);
void td_top_hang_up(struct td_top *top);
/*
 * Reads the messages that have come. Returns whether a round is complete or the connection has
 * ended.
 */
bool td_top_listen(struct td_top *top);

/* Shows a line at the bottom for that long; 0: until another one is shown. */
void td_top_say(struct td_top *top, uint64_t for_ns, const char *text);
/* Draws the screen on the canvas. */
void td_top_draw(struct td_top *top);

/* Shows the screen until the user quits. Returns an exit status. */
int td_top_run_terminal(struct td_top *top);
