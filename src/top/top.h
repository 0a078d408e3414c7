/* main.c (connection, options, printing) and terminal.c (screen, keys) share this state. */
#pragma once

#include "view/screen.h"

/* Room for the output of another verb, which is shown over the table. */
#define TD_TOP_DETAIL_BYTES 16384

struct td_top {
	/* Options. */
	bool batch, json, ascii;
	uint64_t period_ns, rounds; /* rounds: after which to end; 0: never */
	/* The connection. fd below 0: there is none. */
	char path[256];
	int fd;
	bool greets; /* the answer to GET is still to come */
	/* Rounds: the one that arrives, the one that is shown, the one before it. */
	struct td_snapshot arriving, shown, before;
	bool has_round;
	uint64_t seen;
	struct td_screen screen;
	struct td_canvas canvas;
	/* The keyboard. */
	bool asks_filter, ends;
	char note[600], detail[TD_TOP_DETAIL_BYTES];
	uint64_t note_until_ns;
	/* A key that ends this job when it is pressed again until then; 0: none. */
	int sure_key;
	uint32_t sure_pid;
	uint64_t sure_until_ns;
};

/* Prints an error; returns the exit status of one. */
int td_top_fail(const char *text);

/* Connects and asks for rounds; where that fails, the note says why. */
void td_top_call(struct td_top *top);
void td_top_hang_up(struct td_top *top);
/* Takes what has come. True: a round is complete, or the connection has ended. */
bool td_top_listen(struct td_top *top);

/* A line at the bottom, for so long; 0: until another one. */
void td_top_say(struct td_top *top, uint64_t for_ns, const char *text);
/* Draws on the canvas. */
void td_top_draw(struct td_top *top);

/* Shows the screen until the person quits. An exit status. */
int td_top_run_terminal(struct td_top *top);
