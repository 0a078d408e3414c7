/* Any packet decodes to a message or an error; a decoded message encodes, and decodes to itself. */
#include <stdlib.h>
#include <string.h>

#include "proto/proto.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct td_msg first, second;
	uint8_t packet[TD_PROTO_MAX];
	int n;

	if (td_proto_decode(data, size, &first))
		return 0;
	n = td_proto_encode(&first, packet, sizeof(packet));
	if (n < 0 || td_proto_decode(packet, (size_t)n, &second) ||
		memcmp(&first, &second, sizeof(first)))
		abort();
	return 0;
}
