/* Arbitrary answers of etcd's gateway. */
#include <assert.h>
#include <errno.h>
#include <string.h>

#include "cluster/state/etcd/gateway.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_item(const struct td_state_item *item)
{
	size_t length = strlen(item->key);

	assert(length && length < TD_STATE_KEY_MAX && !item->value[item->length]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct td_gateway_answer answer;
	int r = td_gateway_parse((const char *)data, size, &answer);

	assert(r == 0 || r == TD_STATE_BROKEN || r == -ENOMEM);
	if (r)
		return 0;
	for (size_t i = 0; i < answer.items; i++)
		check_item(&answer.item[i]);
	for (size_t i = 0; i < answer.events; i++)
		check_item(&answer.event[i].item);
	assert(!answer.token || (*answer.token && !strpbrk(answer.token, "\r\n")));
	r = td_gateway_result(&answer, true);
	assert(r >= 0 && r < TD_STATE_RESULT_N && (r == 0) == (answer.code == 0));
	td_gateway_answer_deinit(&answer);
	return 0;
}
