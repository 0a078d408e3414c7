/* The library's settings: an invalid value counts as not set, and is told to the daemon. */
#include "test.h"

#include <stdlib.h>

#include "base/time.h"
#include "preload/base/settings.h"
#include "proto/words.h"

static void set(const char *name, const char *value)
{
	CHECK_EQ(setenv(name, value, 1), 0);
}

static void forget_all(void)
{
	static const char *const names[] = {
		"TANDEM_CLASS", "TANDEM_BACKEND", "TANDEM_WEIGHT", "TANDEM_IDLE", "TANDEM_MEM"};

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		unsetenv(names[i]);
}

TEST(values_are_read)
{
	forget_all();
	set("TANDEM_CLASS", "online");
	set("TANDEM_BACKEND", "plain");
	set("TANDEM_WEIGHT", "3");
	set("TANDEM_IDLE", "5ms");
	set("TANDEM_MEM", "8m");
	td_settings_read();
	CHECK_EQ(td_settings.class, TD_CLASS_ONLINE);
	CHECK_EQ(td_settings.backend, TD_BACKEND_PLAIN);
	CHECK_EQ(td_settings.weight, 3);
	CHECK_EQ(td_settings.idle_ns, 5 * TD_NS_PER_MS);
	CHECK_STR(td_settings.mem, "8m");
	CHECK_EQ(td_settings.rejected_count, 0);
}

TEST(a_value_that_makes_no_sense_counts_as_not_set_and_is_quoted)
{
	static const char *const wrong[] = {"TANDEM_CLASS=first", "TANDEM_BACKEND=best",
		"TANDEM_WEIGHT=0", "TANDEM_IDLE=soon", "TANDEM_MEM=much"};
	const size_t count = sizeof(wrong) / sizeof(*wrong);

	forget_all();
	for (size_t i = 0; i < count; i++) {
		char name[32];

		snprintf(name, sizeof(name), "%.*s", (int)strcspn(wrong[i], "="), wrong[i]);
		set(name, strchr(wrong[i], '=') + 1);
	}
	td_settings_read();
	CHECK_EQ(td_settings.class, TD_CLASS_BESTEFFORT);
	CHECK_EQ(td_settings.backend, TD_BACKEND_AUTO);
	CHECK_EQ(td_settings.weight, 1);
	CHECK_EQ(td_settings.idle_ns, 3 * TD_NS_PER_MS);
	CHECK_STR(td_settings.mem, "");
	CHECK_EQ(td_settings.rejected_count, count);
	for (size_t i = 0; i < count; i++) {
		bool found = false;

		for (size_t k = 0; k < count; k++)
			found |= !strcmp(td_settings.rejected[k], wrong[i]);
		CHECK(found);
	}
	forget_all();
}
