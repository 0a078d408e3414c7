/* Packets of any daemon, drawn on a screen of any size: nothing is written beyond it. */
#include <stdlib.h>
#include <string.h>

#include "base/parse.h"
#include "view/screen.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* rows, columns, key, flags, then packets: u8 length / 16, bytes. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct td_snapshot now, before;
	struct td_screen screen = {.has_cursor = true};
	struct td_canvas canvas;
	size_t at = 4;

	if (size < 4)
		return 0;
	td_snapshot_init(&now);
	td_snapshot_init(&before);
	screen.key = data[2] % TD_JOBS_N;
	screen.descending = data[3] & 1;
	if (data[3] & 2)
		strcpy(screen.filter, "a");
	if (td_canvas_init(&canvas, data[0], data[1], data[3] & 4))
		return 0;
	while (at < size) {
		size_t len = data[at] * 16u;
		struct td_msg msg;

		at++;
		if (len > size - at)
			len = size - at;
		if (!td_proto_decode(data + at, len, &msg) && now.job_count < 64) {
			td_proto_each_str(&msg, td_printable);
			if (td_snapshot_take(&now, &msg) == 1) {
				struct td_snapshot kept = before;

				if (td_snapshot_rates(&now, &before) ||
					td_screen_note_gpus(&screen, &now))
					abort();
				td_screen_draw(&screen, &now, &canvas);
				td_screen_move(&screen, &now, (long)data[3] - 128);
				(void)td_screen_spot(
					&screen, &now, &canvas, data[0] / 2, data[1] / 2);
				before = now;
				now = kept;
				td_snapshot_clear(&now);
			}
		}
		at += len;
	}
	td_snapshot_deinit(&now);
	td_snapshot_deinit(&before);
	td_screen_deinit(&screen);
	td_canvas_deinit(&canvas);
	return 0;
}
