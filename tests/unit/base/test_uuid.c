/* UUIDs as NVIDIA's tools write them. */
#include "test.h"

#include <errno.h>

#include "base/uuid.h"

TEST(uuids_are_read_and_others_refused)
{
	static const char *const bad[] = {"GPU-00112233-4455-6677-8899-aabbccddeef",
		"GPU-00112233+4455-6677-8899-aabbccddeeff",
		"GPU-00112233-4455-6677-8899-aabbccddeefg",
		"GPU-00112233-4455-6677-8899-aabbccddeeff0", "00112233-4455-6677-8899-aabbccddeeff",
		"gpu-00112233-4455-6677-8899-aabbccddeeff", "GPU-", ""};
	uint8_t uuid[16];

	CHECK_EQ(td_uuid_parse("GPU-00112233-4455-6677-8899-AAbbccddeeff", uuid), 0);
	for (int i = 0; i < 16; i++)
		CHECK_EQ(uuid[i], i * 0x11);
	CHECK_EQ(td_uuid_parse("MIG-ff112233-4455-6677-8899-aabbccddeeff", uuid), 0);
	CHECK_EQ(uuid[0], 0xff);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		CHECK_EQ(td_uuid_parse(bad[i], uuid), -EINVAL);
	CHECK_EQ(uuid[0], 0xff);
}

TEST(what_is_written_is_read_again)
{
	uint8_t uuid[16], again[16];
	char text[TD_UUID_TEXT];

	for (int i = 0; i < 16; i++)
		uuid[i] = (uint8_t)(0xf0 - 13 * i);
	CHECK_EQ(strlen(td_uuid_format(text, uuid)), TD_UUID_TEXT - 1);
	CHECK_EQ(td_uuid_parse(text, again), 0);
	CHECK(!memcmp(uuid, again, sizeof(uuid)));
}
