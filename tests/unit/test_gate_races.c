/* What one thread does in the middle of what another does. */
#include "agent_world.h"

/*
 * A driver that is asked about an event by a thread of the usual mode, while any thread captures in the usual mode, refuses and spoils that capture. Which may begin at
 * any moment.
 */
CASE(pacing_looks_at_its_events_as_no_capture_forbids)
{
	start_open(1);
	atomic_store(&d.gate->window_ns, MS);
	word(TD_WORD_WINDOW | TD_WORD_STEP);
	for (unsigned i = 0; i < 4; i++)
		launch_on(FAKE_STREAM);
	EXPECT(atomic_load(&fake.queries) != 0);
	EXPECT(atomic_load(&fake.queries_not_relaxed) == 0);
	EXPECT(fake_mode_now == 0); /* the program's own is what it was */
}
